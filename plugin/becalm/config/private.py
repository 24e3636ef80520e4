"""Directories that only we can read, and files in them that appear complete or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def is_private(directory: Path) -> bool:
    """Whether a directory, made if it is missing, is ours alone (mode 0700, no link)."""
    return not trouble(directory)


def trouble(directory: Path) -> str:
    """What keeps a directory, made if it is missing, from being ours alone, as the end of a sentence; "" for nothing."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        return f"cannot be made or opened: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return "is a link or no directory"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, and becalm is user {os.geteuid()}"
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return f"is open to others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


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


def prune(directory: Path, *, most_bytes: int | None = None, most_entries: int = 100_000) -> None:
    """Remove the files that were used least recently, until half of what may be there is left; nothing below that.

    Directories and links in it stay, and do not count.

    Args:
        directory: with the files.
        most_bytes: that they may take together; None for any number.
        most_entries: that may be there.

    Raises:
        OSError: the directory cannot be read, or a file cannot be removed.
    """
    with os.scandir(directory) as entries:
        files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    if most_bytes is None and len(files) <= most_entries:
        # Their number is known without a look at each.
        return
    found = []
    for entry in files:
        with suppress(OSError):
            state = entry.stat(follow_symlinks=False)
            found.append((state.st_mtime_ns, entry.path, state.st_size))
    size, left = sum(one[2] for one in found), len(found)
    most, enough = (size, size) if most_bytes is None else (most_bytes, most_bytes // 2)
    if size <= most and left <= most_entries:
        return
    for _, path, taken in sorted(found):
        if size <= enough and left <= most_entries // 2:
            break
        Path(path).unlink(missing_ok=True)
        size, left = size - taken, left - 1
