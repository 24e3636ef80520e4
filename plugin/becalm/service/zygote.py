"""The service itself: one thread that listens, queues, forks, watches and tells.

A client that goes away takes its render along, whether it waits or runs. A render that is late is told to end, and killed
two seconds later with whatever it started. On SIGTERM nothing new is taken, and what has been taken is finished.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from becalm.derive import clock
from becalm.service import child, health, listening, orphans
from becalm.service.child import Order
from becalm.service.listening import Message
from becalm.service.queue import FairQueue
from becalm.service.settings import Settings

_GRACE = 2.0
#: Renders that have been taken when SIGTERM comes get this long.
_DRAIN = 25.0
_SECONDS_TO_SEND = 5.0
_TICK = 1.0
#: A client sends its message at once; one that does not gives way to others.
_SECONDS_TO_ASK = 10.0
#: Files of a client: connection, directory, output, errors, record and notice.
_FILES_OF_EACH = 6
#: Files that are there anyway, with room for a start of the web process.
_FILES_OF_OURS = 64
_MOST_FILES = 1 << 16

Tell = Callable[[dict[str, Any]], None]


@dataclass(slots=True, eq=False)
class _Client:
    connection: socket.socket
    since: float
    at: float
    message: Message = field(default_factory=Message)
    order: Order | None = None
    app: str = ""
    pid: int = 0
    pidfd: int = -1
    record: int = -1
    notice: int = -1
    answered: float = 0.0
    started: float = 0.0
    ending: float = 0.0
    why: str = ""


class Service:
    """Renders for those who connect.

    Args:
        settings: the operator's.
        tell: is given the record of each render, and states of the queue.
    """

    def __init__(self, settings: Settings, tell: Tell) -> None:
        self._settings = settings
        self._tell = tell
        self._selector = selectors.DefaultSelector()
        self._queue: FairQueue[_Client] = FairQueue()
        self._clients: set[_Client] = set()
        self._running: dict[int, _Client] = {}
        self._others: dict[int, Callable[[int], None]] = {}
        self._stopping = 0.0
        self._listener = listening.listen(settings.socket)
        self._told = (0, 0, "")
        self._most_clients = max(1, (_more_files() - _FILES_OF_OURS) // _FILES_OF_EACH)
        orphans.adopt()

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, then finish what has been taken."""
        wakeup, signals = socket.socketpair()
        for one in (wakeup, signals):
            one.setblocking(False)
        signal.set_wakeup_fd(signals.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, _nothing)
        self._selector.register(wakeup, selectors.EVENT_READ, None)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        try:
            while not self._is_done():
                for key, _ in self._selector.select(_TICK if self._clients or self._running else None):
                    if key.data is None:
                        with contextlib.suppress(BlockingIOError):
                            wakeup.recv(4096)
                    else:
                        key.data()
                self._reap()
                self._end_late()
                self._fill()
                self._tell_state()
        finally:
            self._end_all()

    def watch(self, pid: int, ended: Callable[[int], None]) -> None:
        """Have a function called with the exit status of another child when that ends."""
        self._others[pid] = ended

    def when_writable(self, number: int, do: Callable[[], None]) -> None:
        """Have a function called while an open file takes more."""
        self._selector.register(number, selectors.EVENT_WRITE, do)

    def forget(self, number: int) -> None:
        """No longer look at an open file."""
        self._selector.unregister(number)

    def _stop(self, *_: object) -> None:
        self._stopping = self._stopping or time.monotonic()

    def _is_done(self) -> bool:
        if not self._stopping:
            return False
        if self._listener.fileno() >= 0:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._settings.socket.unlink(missing_ok=True)
            # Who has not asked by now renders without us; waiting for it would only hold the end up.
            for one in [client for client in self._clients if client.order is None]:
                self._drop(one)
        return not (self._clients or self._running) or time.monotonic() > self._stopping + _DRAIN

    def _accept(self) -> None:
        try:
            connection = listening.accept(self._listener)
        except OSError:
            # The machine has no more files. The listener stays readable, so do not ask again at once.
            time.sleep(_TICK / 20)
            return
        if connection is None:
            return
        if len(self._clients) >= self._most_clients:
            with contextlib.suppress(OSError):
                connection.sendall(
                    b"busy becalm may open no more files; try again, or raise the limit (ulimit -n)\n"
                )
            connection.close()
            return
        one = _Client(connection, time.monotonic(), float(clock.now()))
        self._clients.add(one)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._read(one))

    def _read(self, one: _Client) -> None:
        try:
            number = one.message.receive(one.connection)
        except BlockingIOError:
            return
        if not number or one.order is not None:
            # The client is gone, or says what it should not.
            self._give_up(one, "cancelled")
            return
        try:
            one.order = one.message.order()
        except ValueError:
            self._drop(one)
            return
        if one.order is not None:
            self._take(one, one.order)

    def _take(self, one: _Client, order: Order) -> None:
        """A whole message is there."""
        one.app = order.environment.get(b"ARGOCD_APP_NAME", b"").decode("utf-8", "replace")
        free = max(0, self._settings.concurrency - len(self._running))
        if not self._stopping and len(self._queue) < self._settings.queue + free:
            self._queue.put(one.app, one)
        else:
            why = "becalm is being stopped" if self._stopping else f"{len(self._queue)} renders wait already"
            hint = (
                "try again"
                if self._stopping
                else "try again, or raise BECALM_CONCURRENCY or the sidecar's processors"
            )
            self._record(one, outcome="overloaded", error=why)
            self._answer(one, f"busy {why}; {hint}")

    def _fill(self) -> None:
        while len(self._queue) and len(self._running) < self._settings.concurrency:
            one = self._queue.get()
            assert one.order is not None
            one.started = time.monotonic()
            try:
                self._start(one, one.order)
            except OSError as error:
                # Too many processes, or no memory for one more.
                why = f"no process can be started: {error.strerror}"
                self._record(one, outcome="overloaded", error=why)
                self._answer(one, f"busy {why}; try again, or raise the limits of the sidecar")

    def _start(self, one: _Client, order: Order) -> None:
        """Fork the child of a render.

        Raises:
            OSError: the machine has no room for it; nothing of it is left.
        """
        with contextlib.ExitStack() as opened:
            record = os.memfd_create("record")
            opened.callback(os.close, record)
            reading, notice = os.pipe()
            opened.callback(os.close, notice)
            with contextlib.ExitStack() as failed:
                failed.callback(os.close, reading)
                own = os.getpid()
                pid = os.fork()
                if pid == 0:
                    child.run(order, record, notice, service=own)
                failed.pop_all()
            opened.pop_all()
        os.close(notice)
        one.record, one.notice, one.pid = record, reading, pid
        self._selector.register(reading, selectors.EVENT_READ, partial(self._notice, one))
        self._running[pid] = one

    def _notice(self, one: _Client) -> None:
        """Output and errors of a render are complete, or its process has ended; what it still does nobody waits for."""
        text = os.read(one.notice, 100).decode("ascii", "replace").strip()
        self._selector.unregister(one.notice)
        os.close(one.notice)
        one.notice = -1
        if text and not one.why:
            one.answered = time.monotonic()
            self._answer(one, text)

    def _reap(self) -> None:
        """Look at every child that has ended; those that nobody knows are what killed renders left."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                return
            if found is None:
                return
            status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
            one = self._running.pop(found.si_pid, None)
            if one is not None:
                self._ended(one, status)
            elif found.si_pid in self._others:
                self._others.pop(found.si_pid)(status)

    def _ended(self, one: _Client, status: int) -> None:
        orphans.kill({*self._running, *self._others})
        os.lseek(one.record, 0, os.SEEK_SET)
        told = _parsed(os.read(one.record, child.LARGEST + 1))
        os.close(one.record)
        if one.notice >= 0:
            self._notice(one)
        seconds = (one.answered or time.monotonic()) - one.started
        stages = {
            "queue": round(one.started - one.since, 4),
            **told.get("stages", {}),
            "render": round(seconds, 4),
        }
        outcome = one.why or ("failed" if status else str(told.get("outcome", "rendered")))
        if status < 0 and not one.why:
            told["error"] = f"the render was ended by signal {-status}"
        self._record(
            one,
            **{
                **told,
                "outcome": outcome,
                "code": status,
                "stages": stages,
                "killed": int(status < 0 or bool(one.why)),
            },
        )
        if one.answered:
            return
        if one.why == "timeout":
            limit = f"{self._settings.deadline:g} s"
            self._answer(one, f"late the render did not end within {limit}, of which it waited {stages['queue']:.1f} s; "
                              "make the application smaller, or raise BECALM_DEADLINE with Argo CD's own limit")  # fmt: skip
        elif status >= 0 and not one.why:
            self._answer(one, f"exit {status}")
        else:
            # The client renders by itself.
            self._drop(one)

    def _end_late(self) -> None:
        now = time.monotonic()
        for one in self._running.values():
            # Long after its answer a render is still not done with what remains.
            if one.answered and now > one.answered + self._settings.deadline:
                os.kill(one.pid, signal.SIGKILL)
        for one in list(self._clients):
            if one.ending and now > one.ending + _GRACE and one.pid in self._running:
                os.kill(one.pid, signal.SIGKILL)
            elif not one.why and now > one.since + self._settings.deadline:
                self._give_up(one, "timeout")
            elif one.order is None and now > one.since + _SECONDS_TO_ASK:
                self._drop(one)

    def _give_up(self, one: _Client, why: str) -> None:
        if one.pid in self._running:
            if not one.why:
                one.why, one.ending = why, time.monotonic()
                os.kill(one.pid, signal.SIGTERM)
            if why == "cancelled" and one.connection.fileno() >= 0:
                self._selector.unregister(one.connection)
                one.connection.close()
            return
        self._queue.remove(one.app, one)
        if one.order is None:
            self._drop(one)
            return
        self._record(one, outcome=why)
        self._answer(one, f"late the render waited {self._settings.deadline:g} s for its turn; "
                          "raise BECALM_CONCURRENCY or the sidecar's processors")  # fmt: skip

    def _answer(self, one: _Client, text: str) -> None:
        with contextlib.suppress(OSError):
            one.connection.settimeout(_SECONDS_TO_SEND)
            one.connection.sendall(f"{text}\n".encode())
        self._drop(one)

    def _drop(self, one: _Client) -> None:
        self._clients.discard(one)
        if one.connection.fileno() >= 0:
            with contextlib.suppress(KeyError):
                self._selector.unregister(one.connection)
            one.connection.close()
        one.message.close()

    def _record(self, one: _Client, **told: Any) -> None:
        assert one.order is not None
        if health.MARK in one.order.environment:
            return
        given = {
            key: one.order.environment.get(name, b"").decode("utf-8", "replace")
            for key, name in (("app", b"ARGOCD_APP_NAME"), ("project", b"ARGOCD_APP_PROJECT_NAME"),
                              ("namespace", b"ARGOCD_APP_NAMESPACE"), ("path", b"ARGOCD_APP_SOURCE_PATH"))
        }  # fmt: skip
        usual = {"source": "unknown", "code": 0, "error": "", "runs": 0, "warnings": [], "killed": 0}
        self._tell({
            "at": one.at, **usual, **told, **given, "seconds": round((one.answered or time.monotonic()) - one.since, 4)
        })  # fmt: skip

    def _tell_state(self) -> None:
        state = (len(self._queue), len(self._running), "it is being stopped" if self._stopping else "")
        if state != self._told:
            self._told = state
            self._tell({"state": dict(zip(("queue", "rendering", "unready"), state, strict=True))})

    def _end_all(self) -> None:
        for pid in (*self._running, *self._others):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + _GRACE
        while (self._running or self._others) and time.monotonic() < until:
            self._reap()
            time.sleep(0.02)
        for pid in (*self._running, *self._others):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        orphans.kill(set())
        if self._listener.fileno() >= 0:
            self._listener.close()
            self._settings.socket.unlink(missing_ok=True)


def _more_files() -> int:
    """Let this process open as many files as it may, within reason; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft >= most:
        return most
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _nothing(*_: object) -> None:
    """The wake-up is enough."""
