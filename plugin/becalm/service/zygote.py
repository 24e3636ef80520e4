"""The service itself: one thread that listens, queues, forks, watches and tells.

Every order is first looked for in what is kept, by a process that stands by for that (becalm.service.reader); what is not
there waits for its turn to be rendered, in a process of its own (becalm.service.child). So what is kept never waits for what
is rendered.

A client that goes away takes its render along, whether it waits or runs. A render that is late is told to end, and killed
two seconds later with whatever it started. On SIGTERM nothing new is taken, and what has been taken is finished.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from becalm.derive import clock
from becalm.service import child, listening, orphans, reader
from becalm.service.child import Order
from becalm.service.clients import Client
from becalm.service.queue import FairQueue
from becalm.service.readers import Reader, Readers
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

Tell = Callable[[dict[str, Any]], None]


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
        self._readers = Readers()
        self._unread: FairQueue[Client] = FairQueue()
        self._queue: FairQueue[Client] = FairQueue()
        self._clients: set[Client] = set()
        self._reading: dict[int, Client] = {}
        self._running: dict[int, Client] = {}
        self._others: dict[int, Callable[[int], None]] = {}
        self._stopping = 0.0
        self._listener = listening.listen(settings.socket)
        self._told = (0, 0, "")
        self._most_clients = max(
            1, (listening.more_files() - _FILES_OF_OURS - settings.concurrency) // _FILES_OF_EACH
        )
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
                for key, _ in self._selector.select(self._patience()):
                    if key.data is None:
                        with contextlib.suppress(BlockingIOError):
                            wakeup.recv(4096)
                    else:
                        key.data()
                self._reap()
                self._end_late()
                self._readers.rest()
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

    def _patience(self) -> float | None:
        """Seconds after which to look at clocks; None where there is none to look at."""
        return _TICK if self._clients or self._running or self._readers.pids else None

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
        return (
            not (self._clients or self._reading or self._running)
            or time.monotonic() > self._stopping + _DRAIN
        )

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
        one = Client(connection, time.monotonic(), float(clock.now()))
        self._clients.add(one)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._read(one))

    def _read(self, one: Client) -> None:
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

    def _take(self, one: Client, order: Order) -> None:
        """A whole message is there."""
        one.app = order.environment.get(b"ARGOCD_APP_NAME", b"").decode("utf-8", "replace")
        free = max(0, self._settings.concurrency - len(self._running))
        waiting = len(self._unread) + len(self._queue)
        if not self._stopping and waiting < self._settings.queue + free:
            self._wait(self._unread, one)
        else:
            why = "becalm is being stopped" if self._stopping else f"{waiting} renders wait already"
            hint = (
                "try again"
                if self._stopping
                else "try again, or raise BECALM_CONCURRENCY or the sidecar's processors"
            )
            self._record(one, outcome="overloaded", error=why)
            self._answer(one, f"busy {why}; {hint}")

    def _wait(self, queue: FairQueue[Client], one: Client) -> None:
        one.wait()
        queue.put(one.app, one)

    def _fill(self) -> None:
        most = self._settings.concurrency
        while len(self._unread) and len(self._reading) < most:
            self._begin(self._unread.get(), self._look)
        while len(self._queue) and len(self._running) < most:
            self._begin(self._queue.get(), self._start)

    def _begin(self, one: Client, do: Callable[[Client, Order], None]) -> None:
        assert one.order is not None
        one.begin()
        try:
            do(one, one.order)
        except OSError as error:
            # Too many processes, or no memory for one more.
            why = f"no process can be started: {error.strerror}"
            self._record(one, outcome="overloaded", error=why)
            self._answer(one, f"busy {why}; try again, or raise the limits of the sidecar")

    def _look(self, one: Client, order: Order) -> None:
        """Have a reader look for the answer.

        Raises:
            OSError: the machine has no room for it.
        """
        one.record = os.memfd_create("record")
        one.reader = self._readers.hand(order, one.record)
        one.pid = one.reader.pid
        self._reading[one.pid] = one
        self._selector.register(
            one.reader.control, selectors.EVENT_READ, partial(self._hear, one, one.reader)
        )

    def _hear(self, one: Client, by: Reader) -> None:
        """A reader says how far it is, or has ended, which is seen by `_reap`."""
        said = b""
        with contextlib.suppress(OSError):
            said = by.control.recv(100)
        if not said:
            self._selector.unregister(by.control)
            return
        if reader.WRITTEN in said and not one.why:
            one.answered = time.monotonic()
            self._answer(one, reader.WRITTEN.decode().strip())
        if not said.endswith((reader.DONE, reader.ANEW)) or one.why:
            return  # one that is told to end ends, whatever it says
        self._selector.unregister(by.control)
        self._readers.back(by)
        del self._reading[by.pid]
        if said.endswith(reader.DONE):
            self._record(one, **one.told(0))
        else:
            self._render(one)

    def _render(self, one: Client) -> None:
        """No answer is kept."""
        one.reader, one.pid = None, 0
        self._wait(self._queue, one)

    def _start(self, one: Client, order: Order) -> None:
        """Fork the child of a render.

        Raises:
            OSError: the machine has no room for it.
        """
        one.pid, one.notice = child.start(order, one.record)
        self._selector.register(one.notice, selectors.EVENT_READ, partial(self._notice, one))
        self._running[one.pid] = one

    def _notice(self, one: Client) -> None:
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
            if found.si_pid in self._running:
                self._ended(self._running.pop(found.si_pid), status)
            elif found.si_pid in self._reading:
                self._unable(self._reading.pop(found.si_pid), status)
            elif found.si_pid in self._others:
                self._others.pop(found.si_pid)(status)
            self._readers.gone(found.si_pid)

    def _unable(self, one: Client, status: int) -> None:
        """A reader has ended with an order; where nobody ended it, the render shows what is wrong."""
        assert one.reader is not None
        with contextlib.suppress(KeyError):
            self._selector.unregister(one.reader.control)
        if one.why or one.answered:
            self._ended(one, status)
            return
        one.begin_anew()
        self._render(one)

    def _ended(self, one: Client, status: int) -> None:
        orphans.kill(set(self._children()))
        if one.notice >= 0:
            self._notice(one)
        self._record(one, **one.told(status))
        if one.answered:
            return
        if one.why == "timeout":
            limit = f"{self._settings.deadline:g} s"
            self._answer(one, f"late the render did not end within {limit}, of which it waited {one.waited:.1f} s; "
                              "make the application smaller, or raise BECALM_DEADLINE with Argo CD's own limit")  # fmt: skip
        elif status >= 0 and not one.why:
            self._answer(one, f"exit {status}")
        else:
            # The client renders by itself.
            self._drop(one)

    def _end_late(self) -> None:
        now = time.monotonic()
        for one in (*self._running.values(), *self._reading.values()):
            # Long after its answer a render is still not done with what remains.
            if one.answered and now > one.answered + self._settings.deadline:
                os.kill(one.pid, signal.SIGKILL)
        for one in list(self._clients):
            if one.ending and now > one.ending + _GRACE and self._is_at_work(one):
                os.kill(one.pid, signal.SIGKILL)
            elif not one.why and now > one.since + self._settings.deadline:
                self._give_up(one, "timeout")
            elif one.order is None and now > one.since + _SECONDS_TO_ASK:
                self._drop(one)

    def _is_at_work(self, one: Client) -> bool:
        return one.pid in self._running or one.pid in self._reading

    def _give_up(self, one: Client, why: str) -> None:
        if self._is_at_work(one):
            if not one.why:
                one.why, one.ending = why, time.monotonic()
                os.kill(one.pid, signal.SIGTERM)
            if why == "cancelled" and one.connection.fileno() >= 0:
                self._selector.unregister(one.connection)
                one.connection.close()
            return
        for queue in (self._unread, self._queue):
            queue.remove(one.app, one)
        if one.order is None:
            self._drop(one)
            return
        self._record(one, outcome=why)
        self._answer(one, f"late the render waited {self._settings.deadline:g} s for its turn; "
                          "raise BECALM_CONCURRENCY or the sidecar's processors")  # fmt: skip

    def _answer(self, one: Client, text: str) -> None:
        with contextlib.suppress(OSError):
            one.connection.settimeout(_SECONDS_TO_SEND)
            one.connection.sendall(f"{text}\n".encode())
        self._drop(one)

    def _drop(self, one: Client) -> None:
        self._clients.discard(one)
        if one.connection.fileno() >= 0:
            with contextlib.suppress(KeyError):
                self._selector.unregister(one.connection)
            one.connection.close()
        one.message.close()
        if not one.pid:
            one.close_record()

    def _record(self, one: Client, **told: Any) -> None:
        line = one.line(told)
        if line is not None:
            self._tell(line)

    def _tell_state(self) -> None:
        waiting = len(self._unread) + len(self._queue)
        state = (waiting, len(self._running), "it is being stopped" if self._stopping else "")
        if state != self._told:
            self._told = state
            self._tell({"state": dict(zip(("queue", "rendering", "unready"), state, strict=True))})

    def _end_all(self) -> None:
        self._signal_all(signal.SIGTERM)
        until = time.monotonic() + _GRACE
        while self._children() and time.monotonic() < until:
            self._reap()
            time.sleep(0.02)
        self._signal_all(signal.SIGKILL)
        orphans.kill(set())
        if self._listener.fileno() >= 0:
            self._listener.close()
            self._settings.socket.unlink(missing_ok=True)

    def _children(self) -> tuple[int, ...]:
        return (*self._running, *self._others, *self._readers.pids)

    def _signal_all(self, number: int) -> None:
        for pid in self._children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _nothing(*_: object) -> None:
    """The wake-up is enough."""
