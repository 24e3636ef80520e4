"""`becalm serve`: loads everything, starts the web process, tells the log, and serves."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from becalm.derive import clock, instant
from becalm.service import settings
from becalm.service.health import Health
from becalm.service.settings import Settings
from becalm.service.tidy import Tidy
from becalm.service.warm import warm_up
from becalm.service.zygote import Service
from becalm.web import server

#: A web process that ends is started again, but not at once.
_PAUSE = 5.0
#: What waits for a web process that does not read; more is lost to it, not to the log.
_PIPE = 1024 * 1024
#: Seconds that a reader gets to make room for one line.
_PATIENCE = 0.5


def serve(variables: Mapping[str, str]) -> int:
    """Serve until SIGTERM; the exit code.

    Raises:
        ConfigError: a variable is wrong, or the socket cannot be made.
    """
    chosen = settings.read(variables)
    telling = _Telling(chosen, variables)
    service = Service(chosen, telling.tell)
    warm_up(variables)
    telling.start_web(service)
    telling.tidy.up(clock.now())
    gc.collect()
    # What is loaded stays: the collector need not look at it, so children share it.
    gc.freeze()
    telling.log(
        {
            "service": "ready",
            "socket": str(chosen.socket),
            "concurrency": chosen.concurrency,
            "web": "off" if chosen.web is None else f"{chosen.web.host}:{chosen.web.port}",
        }
    )
    service.run()
    telling.log({"service": "stopped"})
    return 0


class _Telling:
    """Where records go: one line each to the log, and to the web process."""

    def __init__(self, chosen: Settings, variables: Mapping[str, str]) -> None:
        self._settings = chosen
        self._variables = variables
        self._listening = None if chosen.web is None else server.listen(chosen.web)
        self.tidy = Tidy(Path(tempfile.gettempdir()), 4 * chosen.deadline)
        self._pipe = -1
        self._rest = b""
        self._started = 0.0
        self._service: Service | None = None

    def tell(self, record: dict[str, Any]) -> None:
        """One record of a render, or a state of the queue."""
        if "state" not in record:
            self.log(_brief(record))
        if record.get("killed"):
            self.tidy.up(clock.now())
        is_due = self._pipe < 0 and time.monotonic() > self._started + _PAUSE
        if is_due and self._service is not None:
            self.start_web(self._service)
        if self._pipe >= 0:
            self._send(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def log(self, record: dict[str, Any]) -> None:
        """One line on stderr."""
        if self._settings.log_json:
            text = json.dumps(record, ensure_ascii=False)
        else:
            text = " ".join(
                f"{key}={value}" for key, value in record.items() if value not in ("", 0, [], None)
            )
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def start_web(self, service: Service) -> None:
        """Fork the process that serves health, metrics and page."""
        self._service = service
        if self._listening is None:
            return
        self._started = time.monotonic()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(writing)
                signal.set_wakeup_fd(-1)
                health = Health(self._settings.socket, self._variables)
                server.run(
                    reading,
                    self._listening,
                    healthy=health.unhealthy,
                    ready=health.unready,
                    page=self._settings.has_page,
                )
                code = 0
            finally:
                os._exit(code)
        os.close(reading)
        os.set_blocking(writing, False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE)
        self._pipe = writing
        self._rest = b""
        service.watch(pid, self._web_ended)

    def _web_ended(self, status: int) -> None:
        os.close(self._pipe)
        self._pipe = -1
        self.log({"service": "the web process ended", "status": status})

    def _send(self, line: bytes) -> None:
        """The whole line or nothing of it, since half a line would spoil the next; never wait long for a reader that hangs."""
        if self._rest:
            # The reader is behind: what comes now is lost to it.
            self._flush(0.0)
            return
        self._rest = line
        self._flush(_PATIENCE)

    def _flush(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._rest:
            try:
                self._rest = self._rest[os.write(self._pipe, self._rest) :]
            except BlockingIOError:
                left = until - time.monotonic()
                if left <= 0 or not select.select((), (self._pipe,), (), left)[1]:
                    return
            except BrokenPipeError:
                self._rest = b""


def _brief(record: dict[str, Any]) -> dict[str, Any]:
    """A record for the log: lists become numbers."""
    found = {key: len(value) if isinstance(value, list) else value for key, value in record.items()}
    return {**found, "at": instant.written(int(record["at"]))}
