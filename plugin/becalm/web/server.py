"""The web process itself: it reads what the service tells from a pipe, and serves it over TCP."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from waitress.server import create_server

from becalm.errors import ConfigError, bug
from becalm.web.app import LOOPBACK_HOSTS, Check, application
from becalm.web.metrics import Metrics
from becalm.web.recent import Recent
from becalm.web.records import MAX_LINE, Record, RecordError, read

__all__ = ["DEFAULT_ADDRESS", "OFF", "Address", "Reader", "address", "application", "listen", "run"]

DEFAULT_ADDRESS: Final = "127.0.0.1:9360"
OFF: Final = "off"
_ADDRESS: Final = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+)):([0-9]{1,5})")
_THREADS: Final = 4
#: Those that say nothing must not keep the kubelet out, which would start the sidecar again.
_CONNECTIONS: Final = 500
_CHUNK: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen: an IP address or a name of this machine, and a port; 0 is any that is free."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether nobody else can ask."""
        if self.host == "localhost":
            return True
        with contextlib.suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False


def address(text: str, *, where: str) -> Address | None:
    """What `HOST:PORT` or `[IPv6]:PORT` says; None for `off`.

    Raises:
        ConfigError: it is something else.
    """
    if text == OFF:
        return None
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match[3]) > 65_535:
        raise ConfigError(
            f"{text[:100]!r} is no address",
            where=where,
            hint=f"write HOST:PORT, as {DEFAULT_ADDRESS}, or off",
        )
    return Address(host=match[1] or match[2], port=int(match[3]))


def listen(where: Address) -> socket.socket:
    """A listening socket, so that a port that is taken is found before anything is started.

    Raises:
        ConfigError: nothing can listen there.
    """
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((where.host, where.port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"nothing can listen there: {error.strerror}",
            where=f"{where.host}:{where.port}",
            hint="choose another BECALM_WEB_ADDRESS, or off",
        ) from error
    return listening


class Reader:
    """Takes bytes of a pipe and hands on each line that is a record; memory is bounded by one line."""

    def __init__(self, recent: Recent, metrics: Metrics) -> None:
        self._recent = recent
        self._metrics = metrics
        self._rest = bytearray()
        self._is_skipping = False

    def feed(self, data: bytes) -> None:
        """Take what was read."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._keep(end)
            if self._rest and not self._is_skipping:
                self._line(bytes(self._rest))
            self._rest.clear()
            self._is_skipping = False
        self._keep(rest)

    def _keep(self, data: bytes) -> None:
        if self._is_skipping:
            return
        self._rest += data
        if len(self._rest) > MAX_LINE:
            self._metrics.refuse()
            self._rest.clear()
            self._is_skipping = True

    def _line(self, line: bytes) -> None:
        try:
            told = read(line)
        except RecordError as error:
            sys.stderr.write(f"Warning: a line of the service is no record: {error}\n")
            self._metrics.refuse()
            return
        if isinstance(told, Record):
            self._recent.add(told)
            self._metrics.add(told)
        else:
            self._recent.tell(told)
            self._metrics.tell(told)


def run(  # noqa: PLR0913  # each is one thing that the service chooses
    pipe_fd: int,
    where: Address | socket.socket,
    *,
    healthy: Check | None = None,
    ready: Check | None = None,
    page: bool = True,
    names: Sequence[str] = (),
    started: Callable[[int], None] = lambda _port: None,
) -> None:
    """Serve until the pipe closes, since the service is gone then, or until SIGTERM.

    It has to run in the main thread of a process of its own, which must not hold the pipe's other end.

    Args:
        pipe_fd: the end to read from; it is closed in the end.
        where: where to listen, or what listens already.
        healthy: is asked after what the service itself said on the pipe, by /healthz.
        ready: the same for /readyz.
        page: whether there are pages beside health and metrics.
        names: those by which pages may be asked for, beside addresses and names of the cluster.
        started: is told the port before the first request is answered.

    Raises:
        ConfigError: nothing can listen there.
    """
    recent = Recent()
    metrics = Metrics(recent)
    listening = listen(where) if isinstance(where, Address) else where
    host, port = listening.getsockname()[:2]
    app = application(
        recent,
        metrics,
        healthy=lambda: recent.state.unhealthy or (healthy() if healthy else None),
        ready=lambda: recent.state.unhealthy or recent.state.unready or (ready() if ready else None),
        page=page,
        names=names,
        hosts=LOOPBACK_HOSTS if Address(host=host, port=port).is_loopback else None,
    )
    channels: dict[int, Any] = {}
    server = create_server(
        app, channels, sockets=[listening], threads=_THREADS, ident=None, clear_untrusted_proxy_headers=True,
        max_request_body_size=1, max_request_header_size=16 * 1024, connection_limit=_CONNECTIONS, channel_timeout=10,
        cleanup_interval=5, asyncore_use_poll=True,
    )  # fmt: skip

    def stop() -> None:
        for channel in list(channels.values()):
            channel.close()

    # One socket makes one server, and its trigger runs what it is given in the thread of `server.run`.
    trigger: Any = getattr(server, "trigger")  # noqa: B009  # the stubs know the union of both kinds only
    wake_reader, wake = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: _poke(wake))
    # The service tells it to end; a Ctrl-C of the terminal is for the service.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reader = threading.Thread(
        target=_pump,
        args=(pipe_fd, wake_reader, Reader(recent, metrics), lambda: trigger.pull_trigger(stop)),
        daemon=True,
    )
    reader.start()
    started(port)
    try:
        server.run()
    finally:
        _poke(wake)
        reader.join(timeout=5)
        server.task_dispatcher.shutdown(timeout=2)
        for fd in (pipe_fd, wake_reader, wake):
            with contextlib.suppress(OSError):
                os.close(fd)


def _poke(fd: int) -> None:
    with contextlib.suppress(OSError):
        os.write(fd, b"\0")


def _pump(pipe_fd: int, wake_fd: int, reader: Reader, stop: Callable[[], None]) -> None:
    """Read the pipe until it closes, or until something comes from `wake_fd`."""
    poll = select.poll()
    for fd in (pipe_fd, wake_fd):
        poll.register(fd, select.POLLIN)
    try:
        while True:
            if any(fd == wake_fd for fd, _ in poll.poll()):
                return
            try:
                data = os.read(pipe_fd, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                return
            if not data:
                return
            reader.feed(data)
    except Exception as error:  # noqa: BLE001  # Python would print its text, which may hold a value
        sys.stderr.write(bug(error))
    finally:
        with contextlib.suppress(OSError):
            stop()
