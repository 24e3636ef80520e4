"""Removes what renders left behind that were killed: their private directories."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

_PREFIX = "becalm-"
_EVERY = 60.0


class Tidy:
    """Looks through a directory for temporary files, at most once a minute.

    Args:
        directory: where renders put their private directories.
        age: seconds after which nobody works in one any more.
    """

    def __init__(self, directory: Path, age: float) -> None:
        self._directory = directory
        self._age = age
        self._last = 0.0

    def up(self, now: float) -> None:
        """Remove what is older.

        Args:
            now: seconds since 1970, as files have them.
        """
        if self._last and time.monotonic() < self._last + _EVERY:
            return
        self._last = time.monotonic()
        with suppress(OSError), os.scandir(self._directory) as entries:
            for entry in entries:
                if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
                    continue
                with suppress(OSError):
                    state = entry.stat(follow_symlinks=False)
                    if state.st_uid == os.geteuid() and state.st_mtime < now - self._age:
                        shutil.rmtree(entry.path, ignore_errors=True)
