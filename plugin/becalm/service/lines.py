"""Whole lines for a process that may be slow or stand still: the service never waits for it."""

from __future__ import annotations

import os
from collections.abc import Callable

#: What waits for the reader; lines beyond that are lost to it.
MOST_BYTES = 8 * 1024 * 1024


class Lines:
    """Writes to a pipe as much as it takes, and keeps the rest.

    Args:
        pipe: its writing end, which this closes.
        watch: is given the pipe and `flush` when something waits, and calls that as soon as the pipe takes more.
        forget: is given the pipe when nothing waits any more.
        most: bytes that may wait.
    """

    def __init__(
        self,
        pipe: int,
        *,
        watch: Callable[[int, Callable[[], None]], None],
        forget: Callable[[int], None],
        most: int = MOST_BYTES,
    ) -> None:
        os.set_blocking(pipe, False)
        self._pipe = pipe
        self._watch = watch
        self._forget = forget
        self._most = most
        self._rest = bytearray()

    def send(self, line: bytes) -> None:
        """Write a line, or keep it, or leave it out whole: half a line would spoil the next."""
        if len(self._rest) + len(line) >= self._most:
            return
        was_idle = not self._rest
        self._rest += line + b"\n"
        if was_idle:
            self._write()
            if self._rest:
                self._watch(self._pipe, self.flush)

    def flush(self) -> None:
        """Write what waits, as far as the pipe takes it."""
        self._write()
        if not self._rest:
            self._forget(self._pipe)

    def close(self) -> None:
        """The reader is gone."""
        if self._rest:
            self._forget(self._pipe)
            self._rest.clear()
        os.close(self._pipe)

    def _write(self) -> None:
        try:
            del self._rest[: os.write(self._pipe, self._rest)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._rest.clear()
