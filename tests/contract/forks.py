"""Runs becalm's commands in processes of their own without starting Python for each: a server loads all and forks.

A child that starts Python and loads becalm takes 0.3 s of a processor before it does anything, and there are thousands.
A fork has its own descriptors, directory, environment, signals and exit code, as a child that was started has. It has
not its own hash seed, and PYTHON variables come too late for it: `children.run` starts Python where one is given.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import becalm

_HEADER = struct.Struct("!I")


class Forks:
    """A server, started when it is first asked for something, and ended with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._socket: socket.socket | None = None

    def run(
        self,
        program: str,
        argv: Sequence[str],
        *,
        cwd: Path | str,
        env: Mapping[str, str],
        stdin: bytes,
        timeout: float,
    ) -> tuple[int, bytes, bytes]:
        """Run a program's `main` in a fork; its exit code as of `subprocess`, and what it wrote.

        Raises:
            subprocess.TimeoutExpired: and the fork is killed.
        """
        request = json.dumps([program, list(argv), str(cwd), dict(env)]).encode()
        out, err, status = os.pipe(), os.pipe(), os.pipe()
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            given = [source.fileno(), out[1], err[1], status[1]]
            with self._lock:
                server = self._server()
                socket.send_fds(server, [_HEADER.pack(len(request))], given)
                server.sendall(request)
        for _, end in (out, err, status):
            os.close(end)
        written: dict[int, bytearray] = {end: bytearray() for end in (out[0], err[0], status[0])}
        try:
            self._read(written, argv, timeout, status[0])
        finally:
            for end in written:
                os.close(end)
        (code,) = struct.unpack("!i", written[status[0]][4:])
        return code, bytes(written[out[0]]), bytes(written[err[0]])

    def _server(self) -> socket.socket:
        if self._socket is None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._socket, theirs = socket.socketpair()
            variables = {name: value for name, value in os.environ.items() if not name.startswith("BECALM_")}
            child = subprocess.Popen(
                [sys.executable, "-W", "error", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=variables,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            theirs.close()
            atexit.register(self._end, self._socket, child)
        return self._socket

    @staticmethod
    def _end(ours: socket.socket, child: subprocess.Popen[bytes]) -> None:
        ours.close()
        child.wait(30)

    @staticmethod
    def _read(written: dict[int, bytearray], argv: Sequence[str], timeout: float, status: int) -> None:
        until = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for end in written:
                selector.register(end, selectors.EVENT_READ)
            while selector.get_map():
                left = until - time.monotonic()
                if left <= 0:
                    if len(written[status]) >= 4:
                        os.kill(struct.unpack("!i", written[status][:4])[0], signal.SIGKILL)
                    raise subprocess.TimeoutExpired(list(argv), timeout)
                for key, _ in selector.select(left):
                    data = os.read(key.fd, 1 << 20)
                    written[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)


FORKS = Forks()


def _serve(connection: socket.socket) -> None:
    """Fork for each request; the process id and then the exit code are written to its last descriptor."""
    for module in pkgutil.walk_packages(becalm.__path__, "becalm."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    importlib.import_module("becalm.__main__")
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    running: dict[int, int] = {}
    is_open = True
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        while is_open or running:
            for key, _ in selector.select():
                if key.fd == wake:
                    os.read(wake, 1 << 10)
                    _reap(running)
                    continue
                header, given, _, _ = socket.recv_fds(connection, _HEADER.size, 4)
                if not header:
                    is_open = False
                    selector.unregister(connection)
                    continue
                (size,) = _HEADER.unpack(header)
                request = json.loads(_exactly(connection, size))
                pid = os.fork()
                if pid == 0:
                    _become(request, given)
                os.write(given[3], struct.pack("!i", pid))
                running[pid] = given[3]
                for end in given[:3]:
                    os.close(end)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        data += connection.recv(size - len(data))
    return bytes(data)


def _reap(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        end = running.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # of a run that took too long
            os.write(end, struct.pack("!i", os.waitstatus_to_exitcode(status)))
        os.close(end)


def _become(request: list, given: list[int]) -> None:
    """Be the process that was asked for, and end."""
    program, argv, cwd, env = request
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in range(3):
        os.dup2(given[number], number, inheritable=True)
    os.closerange(3, 256)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.argv = argv
    # The kernel tells what the server was started with.
    sys.modules["becalm.dropin.launch"].environment = lambda: dict(os.environ)
    code = 1
    try:
        try:
            code = sys.modules[program].main()
        except SystemExit as end:
            code = end.code
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  # as Python does at the end of a program
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        os._exit(code or 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as socket_:
        _serve(socket_)
