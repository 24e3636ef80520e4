"""Directories that only we can read, and files in them that appear complete or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def is_private(directory: Path) -> bool:
    """Whether a directory, made if it is missing, is ours alone (mode 0700, no link)."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError:
        return False
    others = stat.S_IRWXG | stat.S_IRWXO
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & others


def write(path: Path, data: bytes) -> None:
    """Write a file of mode 0600; its name appears with its content complete.

    Raises:
        OSError: it cannot be written; nothing is left.
    """
    # mkstemp gives mode 0600.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def prune(directory: Path, most_bytes: int, most_entries: int = 100_000) -> None:
    """Remove the files that were used least recently, until half of what may be there is left; nothing below that.

    Raises:
        OSError: the directory cannot be read.
    """
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                found.append((state.st_mtime_ns, entry.path, state.st_size))
    size, left = sum(one[2] for one in found), len(found)
    if size <= most_bytes and left <= most_entries:
        return
    for _, path, taken in sorted(found):
        if size <= most_bytes // 2 and left <= most_entries // 2:
            break
        Path(path).unlink(missing_ok=True)
        size, left = size - taken, left - 1
