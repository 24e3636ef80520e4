"""Globs over files of a repository, as Argo CD's library reads them (github.com/bmatcuk/doublestar), in bounded time."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path

from becalm.errors import SourceError

_MAGIC = re.compile(r"[*?\[]")
_MOST = 50_000
_LONGEST_NAME = 255


def is_glob(name: str) -> bool:
    """Whether a name is a pattern."""
    return _MAGIC.search(name) is not None


def is_path(text: str) -> bool:
    """Whether a text can be a path at all: no NUL, no control character, no name that is too long, and encodable."""
    try:
        data = os.fsencode(text)
    except UnicodeError:
        return False
    has_controls = any(byte < 0x20 or byte == 0x7F for byte in data)
    return bool(text) and not has_controls and all(len(part) <= _LONGEST_NAME for part in data.split(b"/"))


def matches(base: Path, pattern: str, *, where: str) -> list[Path]:
    """The paths below a directory that fit, in lexical order; linked directories count, but no way leads round in circles.

    Args:
        base: the directory.
        pattern: `*`, `?` and sets stand for a part of one name, `**` for any number of directories.
        where: who asks, for messages.

    Raises:
        SourceError: there are too many paths below the directory.
    """
    wanted = pattern.replace("[^", "[!").split("/")
    depth = None if "**" in wanted else len(wanted)
    found = _walk(base, depth, where)
    return [base / path for path in sorted(found) if _fits(path.split("/"), wanted)]


def climbed(base: Path, pattern: str) -> tuple[Path, str]:
    """A directory and a pattern below it, for one that can lead up from `base`; the caller checks where it leads."""
    pattern = os.path.normpath(pattern)
    while pattern.startswith("../"):
        base, pattern = base.parent, pattern[3:]
    return base, pattern


def _fits(names: list[str], wanted: list[str]) -> bool:
    """Whether names fit parts of a pattern, of which `**` stands for any number; in time of their product."""
    # ends[n]: whether the parts so far fit the first n names.
    ends = [True] + [False] * len(names)
    for part in wanted:
        if part == "**":
            first = ends.index(True) if True in ends else len(ends)
            ends = [number >= first for number in range(len(ends))]
        else:
            ends = [False] + [
                ends[number] and fnmatch.fnmatchcase(name, part) for number, name in enumerate(names)
            ]
    return ends[-1]


def _walk(base: Path, depth: int | None, where: str) -> Iterator[str]:
    number = 0
    waiting: list[tuple[Path, str, int, tuple[str, ...]]] = [(base, "", 1, (os.path.realpath(base),))]
    while waiting:
        directory, prefix, level, above = waiting.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            number += 1
            if number > _MOST:
                raise SourceError(
                    f"the pattern has more than {_MOST:,} files to look at",
                    where=where,
                    hint="write a longer path",
                )
            if entry.name == ".git":
                continue
            path = prefix + entry.name
            yield path
            if entry.is_dir() and (depth is None or level < depth):
                real = os.path.realpath(entry.path)
                if real not in above:
                    waiting.append((Path(entry.path), f"{path}/", level + 1, (*above, real)))
