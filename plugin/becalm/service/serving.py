"""`becalm serve`: loads everything, starts the web process, tells the log, and serves."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from becalm.answers import store
from becalm.config import keeping
from becalm.derive import clock, instant
from becalm.service import settings
from becalm.service.health import Health
from becalm.service.lines import Lines
from becalm.service.settings import Settings
from becalm.service.tidy import Tidy
from becalm.service.warm import warm_up
from becalm.service.zygote import Service
from becalm.web import server

#: A web process that ends is started again, but not at once.
_PAUSE = 5.0
_LAST = 1 << 16


def serve(variables: Mapping[str, str]) -> int:
    """Serve until SIGTERM; the exit code.

    Raises:
        ConfigError: a variable is wrong, or the socket cannot be made.
    """
    chosen = settings.read(variables)
    unfit = store.unfit(keeping.read(variables))
    telling = _Telling(chosen, variables)
    service = Service(chosen, telling.tell)
    warm_up(variables)
    telling.start_web(service)
    if unfit:
        telling.log({"service": "the cache is not used", "error": unfit})
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
        self._lines: Lines | None = None
        self._started = 0.0
        self._service: Service | None = None

    def tell(self, record: dict[str, Any]) -> None:
        """One record of a render, or a state of the queue."""
        if "state" not in record:
            self.log(_brief(record))
        if record.get("killed"):
            self.tidy.up(clock.now())
        is_due = self._lines is None and time.monotonic() > self._started + _PAUSE
        if is_due and self._service is not None:
            self.start_web(self._service)
        if self._lines is not None:
            self._lines.send(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))

    def log(self, record: dict[str, Any]) -> None:
        """One line on stderr."""
        if self._settings.log_json:
            text = json.dumps(record, ensure_ascii=False)
        else:
            text = " ".join(
                f"{key}={_word(value)}" for key, value in record.items() if value not in ("", 0, [], None)
            )
        # A log that takes no more, such as a file on a full disk, is no reason to end.
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def start_web(self, service: Service) -> None:
        """Fork the process that serves health, metrics and page."""
        self._service = service
        if self._listening is None:
            return
        self._started = time.monotonic()
        reading, writing = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            self.log({"service": "the web process cannot be started", "error": error.strerror})
            return
        if pid == 0:
            code = 1
            try:
                signal.set_wakeup_fd(-1)
                # It can be started while renders run, and must not keep their connections and outputs.
                _close_all_but(reading, self._listening.fileno())
                health = Health(self._settings.socket, self._variables)
                server.run(
                    reading,
                    self._listening,
                    healthy=health.unhealthy,
                    ready=health.unready,
                    page=self._settings.has_page,
                    names=self._settings.web_names,
                )
                code = 0
            finally:
                os._exit(code)
        os.close(reading)
        self._lines = Lines(writing, watch=service.when_writable, forget=service.forget)
        service.watch(pid, self._web_ended)

    def _web_ended(self, status: int) -> None:
        if self._lines is not None:
            self._lines.close()
        self._lines = None
        self.log({"service": "the web process ended", "status": status})


def _close_all_but(*kept: int) -> None:
    """Close every file of this process but standard streams and these."""
    first = 3
    for number in sorted(kept):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, _LAST)


def _word(value: object) -> str:
    """A value that is one word of a line, whatever a stranger wrote into it."""
    text = str(value)
    return text if text.isprintable() and not set(text) & set(' "=') else json.dumps(text)


def _brief(record: dict[str, Any]) -> dict[str, Any]:
    """A record for the log: lists become numbers."""
    found = {key: len(value) if isinstance(value, list) else value for key, value in record.items()}
    return {**found, "at": instant.written(int(record["at"]))}
