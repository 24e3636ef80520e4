"""Removes what renders left behind that were killed: their private directories."""

from __future__ import annotations

import fcntl
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
                    is_old = state.st_uid == os.geteuid() and state.st_mtime < now - self._age
                    if is_old and not _is_used(entry.path):
                        shutil.rmtree(entry.path, ignore_errors=True)


def _is_used(directory: str) -> bool:
    """Whether a render holds the lock of its directory, as it does until it ends.

    Raises:
        OSError: it is no directory, or gone.
    """
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(number)
    return False
