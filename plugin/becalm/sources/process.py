"""Runs helm and kustomize: the only module that starts processes.

Each child gets its own process group, so a time limit ends the whole family (helm is a
grandchild below kustomize). The price is that a signal sent to *our* group does not reach the
children; `forward_termination` passes it on.

Linux only: a finished child must be left unreaped (`waitid` with `WNOWAIT`) until its group has
been killed, or the group's number could already belong to somebody else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from becalm.errors import ToolFailedError, ToolMissingError, ToolTimeoutError

MIB = 1024 * 1024

# Argo CD sends TERM, waits 5 seconds and sends KILL (its cmpserver/plugin/plugin.go), so all of
# the tidying up has to fit well below that.
_GRACE = 1.0
_REAP = 2.0
#: Seconds for what is still on its way when the first program has ended.
_LINGER = 3.0
_TICK = 0.02
_CHUNK = 256 * 1024
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One run of a tool.

    Attributes:
        argv: the program (looked up in the PATH of `env`) and its arguments; never a secret.
        cwd: the working directory.
        env: the whole environment; nothing is inherited.
        timeout: seconds until the process group is ended.
        max_stdout: bytes of standard output; more than that ends the process group.
        stdin: a file for standard input, which else is empty.
        max_stderr: bytes of standard error that are kept. Up to this size it is kept whole; of
            more, the first and last halves are. Less than 4 MiB is not wise, since requests
            from templates are read from it.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(repr=False)
    timeout: float
    stdin: Path | None = None
    max_stdout: int = 128 * MIB
    max_stderr: int = 4 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a command ended.

    Attributes:
        returncode: the exit code, or minus the number of the signal that ended the tool.
        stdout: standard output, possibly with secrets, hence not part of the `repr`.
        stderr: standard error, likewise.
        seconds: wall-clock time from start to end.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    seconds: float


def run(command: Command) -> Completed:
    """Run a command to its end and return what it printed.

    Whatever happens, no process of the group is left: after a normal end a background process
    that still holds the pipes is killed as well, and so is the group when this function is left
    by an exception.

    Raises:
        ToolMissingError: the program is not there or cannot be executed.
        ToolFailedError: it printed more than `max_stdout`, or could not be started.
        ToolTimeoutError: it did not end within `timeout`.
    """
    started = time.monotonic()
    child = _start(command)
    try:
        stdout, stderr = _communicate(command, child, started + command.timeout)
        return Completed(
            argv=command.argv,
            returncode=child.wait(_REAP),
            stdout=stdout,
            stderr=stderr,
            seconds=time.monotonic() - started,
        )
    finally:
        _finish(child)


def attend(argv: Sequence[str], *, env: Mapping[str, str], stdin: Path | None = None) -> int:
    """Run a program in our place: with our streams, directory and process group, for as long as it takes.

    SIGTERM, SIGINT and SIGHUP are passed on to it, and what it makes of them is its business.

    Args:
        argv: the program (a path) and its arguments.
        env: its whole environment.
        stdin: a file for standard input, else ours.

    Returns:
        The exit code, or minus the number of the signal that ended it.

    Raises:
        ToolMissingError: the program is not there or cannot be executed.
    """
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    previous = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        with contextlib.ExitStack() as stack:
            source = None if stdin is None else stack.enter_context(stdin.open("rb"))
            child = subprocess.Popen(argv, env=dict(env), stdin=source)
        for number in early:
            child.send_signal(number)
        return child.wait()
    except OSError as error:
        raise ToolMissingError(f"{argv[0]} cannot be run: {error.strerror}") from error
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def together(programs: Sequence[Sequence[str]], *, env: Mapping[str, str], grace: float) -> int:
    """Run programs that end together, with our streams: when one ends, or a signal comes, all are told to end.

    Args:
        programs: arguments of each, the first a path.
        env: their whole environment.
        grace: seconds from SIGTERM to SIGKILL for the first of them, which has work to finish; once it has ended, the
            others get a few more at most.

    Returns:
        The exit code of the first that ended (128 and the number for a signal), 0 after a signal to us.

    Raises:
        ToolMissingError: one cannot be run; those before it have been ended.
    """
    stopped: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    previous = {number: signal.signal(number, lambda number, _: stopped.append(number)) for number in numbers}
    children: list[subprocess.Popen[bytes]] = []
    code = 0
    try:
        for argv in programs:
            child = _attended(argv, env)
            children.append(child)
        while not stopped:
            time.sleep(_TICK)
            ended = _reaped({child.pid for child in children})
            if ended is not None:
                code = ended
                break
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _end_together(children, grace)
    return code


def _attended(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(argv, env=dict(env))
    except OSError as error:
        raise ToolMissingError(f"{argv[0]} cannot be run: {error.strerror}") from error


def _reaped(known: set[int]) -> int | None:
    """Reap whatever has ended; the exit code of the first that is known."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            return 0
        if found is None:
            return None
        if found.si_pid in known:
            return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status


def _end_together(children: Sequence[subprocess.Popen[bytes]], grace: float) -> None:
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)
    until = time.monotonic() + grace
    for child in children:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, until - time.monotonic()))
        # argocd-cmp-server never ends on SIGTERM, and has removed its socket (cmpserver/server.go).
        until = min(until, time.monotonic() + _LINGER)
    for child in children:
        if child.returncode is None:
            child.kill()
            child.wait(_REAP)


@contextlib.contextmanager
def forward_termination() -> Iterator[None]:
    """While active, SIGTERM and SIGINT end every running process group, then this process.

    The groups get SIGTERM, one second of grace and SIGKILL; then `SystemExit` with code 143 or
    130 is raised in the main thread. Commands of other threads end too, as failed.

    Must be entered in the main thread, where Python runs its signal handlers.
    """
    previous = {number: signal.signal(number, _terminate) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _state.ended_by = None


class _State:
    """The running groups, shared with the signal handler.

    There is no lock: a handler runs in the middle of the main thread's own code and would wait
    for itself. Each single operation on the set is atomic.
    """

    def __init__(self) -> None:
        self.groups: set[int] = set()
        #: Threads, by their number, that have perhaps started a child that is in no group yet.
        self.starting: set[int] = set()
        self.ended_by: int | None = None
        self.main_is_starting = False


_state = _State()


def _start(command: Command) -> subprocess.Popen[bytes]:
    is_main = threading.current_thread() is threading.main_thread()
    # A handler that raised between the fork and the next line would leave a child nobody knows.
    if is_main:
        _state.main_is_starting = True
    _state.starting.add(threading.get_ident())
    try:
        child = _spawn(command)
        _state.groups.add(child.pid)
    finally:
        _state.starting.discard(threading.get_ident())
        if is_main:
            _state.main_is_starting = False
    if _state.ended_by is not None:
        try:
            _end_groups(_state.groups.copy() if is_main else {child.pid})
        finally:
            _finish(child)
        if is_main:
            raise SystemExit(128 + _state.ended_by)
        raise ToolFailedError(f"{_name(command)} was stopped because becalm is being ended")
    return child


def _spawn(command: Command) -> subprocess.Popen[bytes]:
    source = None
    try:
        source = None if command.stdin is None else command.stdin.open("rb")
        return subprocess.Popen(
            command.argv,
            cwd=os.fspath(command.cwd),
            env=dict(command.env),
            stdin=source or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            # Argo CD ends becalm with SIGKILL, and the group of a child is not that of becalm.
            preexec_fn=_end_with_parent(os.getpid()),  # noqa: PLW1509  # one call of the system, no lock
        )
    except OSError as error:
        if error.filename == os.fspath(command.cwd):
            raise  # our own working directory: a bug, not the user's fault
        program = command.argv[0]
        if error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.EISDIR):
            raise ToolMissingError(
                f"{program} cannot be run: {error.strerror}",
                hint="install it, or name one with --helm or --kustomize (BECALM_HELM, BECALM_KUSTOMIZE)",
            ) from error
        raise ToolFailedError(f"{_name(command)} could not be started: {error.strerror}") from error
    except ValueError as error:
        # The argument itself stays out of the message: it may be somebody's value.
        raise ToolFailedError(
            f"{_name(command)} could not be started: an argument or variable holds a NUL character"
        ) from error
    finally:
        if source is not None:
            source.close()


def _end_with_parent(parent: int) -> Callable[[], None]:
    """What a child does before it becomes the tool: ask the kernel for SIGKILL when its parent ends (prctl(2))."""
    import ctypes  # noqa: PLC0415  # only where a tool is started

    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask


def _name(command: Command) -> str:
    """The tool for a message: `helm template`. Further arguments may hold values."""
    program = Path(command.argv[0]).name
    verb = command.argv[1] if len(command.argv) > 1 else ""
    return f"{program} {verb}" if verb.isalpha() else program


def _communicate(command: Command, child: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes]:
    assert child.stdout is not None
    assert child.stderr is not None
    out = _Output(command)
    err = _HeadAndTail(command.max_stderr)
    with selectors.DefaultSelector() as selector:
        for pipe, sink in ((child.stdout, out), (child.stderr, err)):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, sink)
        while not _has_exited(child.pid):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                _end_groups({child.pid})
                raise ToolTimeoutError(
                    f"{_name(command)} did not end within {command.timeout:g} s and was killed",
                    hint="raise the time limit, or make the chart smaller",
                )
            if selector.get_map():
                _pump(selector, min(_TICK, remaining))
            else:
                time.sleep(min(_TICK / 10, remaining))
        # What the tool wrote is in the pipes by now. Whoever still holds them must not keep us.
        _kill_group(child.pid)
        for key in list(selector.get_map().values()):
            while _read(selector, key) and time.monotonic() < deadline:
                pass
    return bytes(out.data), err.join()


def _pump(selector: selectors.BaseSelector, seconds: float) -> None:
    for key, _ in selector.select(seconds):
        _read(selector, key)


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
    """Move one chunk from a pipe to its sink; False when there is nothing (more) for now."""
    try:
        chunk = os.read(key.fd, _CHUNK)
    except BlockingIOError:
        return False
    if not chunk:
        selector.unregister(key.fileobj)
        return False
    key.data.add(chunk)
    return True


class _Output:
    """Standard output, all of it or an error."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.data = bytearray()

    def add(self, chunk: bytes) -> None:
        if len(self.data) + len(chunk) > self.command.max_stdout:
            raise ToolFailedError(
                f"{_name(self.command)} printed more than {self.command.max_stdout / MIB:g} MiB and was killed",
                hint="split the application",
            )
        self.data += chunk


class _HeadAndTail:
    """Standard error: whole up to `limit` bytes, else its first and its last half."""

    def __init__(self, limit: int) -> None:
        self.half = limit - limit // 2
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = 0

    def add(self, chunk: bytes) -> None:
        room = self.half - len(self.head)
        self.head += chunk[:room]
        self.tail += chunk[room:]
        if len(self.tail) > 2 * self.half + _CHUNK:
            self._trim()

    def _trim(self) -> None:
        surplus = len(self.tail) - self.half
        if surplus > 0:
            del self.tail[:surplus]
            self.dropped += surplus

    def join(self) -> bytes:
        self._trim()
        gap = f"\n[{self.dropped} bytes left out]\n".encode() if self.dropped else b""
        return bytes(self.head + gap + self.tail)


def _has_exited(pid: int) -> bool:
    """Whether the child has ended, leaving it unreaped so that its group's number stays taken."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal_group(pid: int, number: int) -> None:
    # EPERM: what is left of the group runs under another user; there is nothing we can do.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_group(pid: int) -> None:
    _signal_group(pid, signal.SIGKILL)


def _end_groups(pids: set[int]) -> None:
    """SIGTERM to all groups, a second of grace for their leaders, then SIGKILL to what is left."""
    for pid in pids:
        _signal_group(pid, signal.SIGTERM)
    until = time.monotonic() + _GRACE
    while time.monotonic() < until and not all(_has_exited(pid) for pid in pids):
        time.sleep(_TICK)
    for pid in pids:
        _kill_group(pid)


def _finish(child: subprocess.Popen[bytes]) -> None:
    """Leave nothing of the child: no process, no pipe, no entry in the table of groups."""
    if child.returncode is None:
        _kill_group(child.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_REAP)
    _state.groups.discard(child.pid)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _terminate(number: int, _frame: FrameType | None) -> None:
    if _state.ended_by is not None:
        return
    _state.ended_by = number
    if _state.main_is_starting:
        return  # `_start` sees `ended_by` and ends the child that it knows by then
    # When this thread ends, so do the others, and a child that one of them is about to enter would be left.
    until = time.monotonic() + _GRACE
    while _state.starting and time.monotonic() < until:
        time.sleep(_TICK)
    _end_groups(_state.groups.copy())
    raise SystemExit(128 + number)
