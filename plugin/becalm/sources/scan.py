"""Lists the files of a chart directory the way Helm does, without leaving the repository.

Helm follows every symbolic link (its internal/sympath). Here a link may only lead to something
below the repository's root, and never back to a directory that is just being listed.
"""

from __future__ import annotations

import itertools
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from becalm.errors import SourceError
from becalm.sources.helmignore import Rules

GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanLimits:
    """How much a chart directory may hold.

    Attributes:
        entries: files and directories that are looked at, ignored ones included.
        total_bytes: size of all files that are not ignored, in bytes.
        depth: directories within directories.
    """

    entries: int = 100_000
    total_bytes: int = GIB
    depth: int = 100


def scan_directory(
    top: Path, *, root: Path, where: str, rules: Rules, limits: ScanLimits | None = None
) -> dict[str, Path]:
    """List the files that Helm would load.

    Args:
        top: the chart directory, resolved.
        root: the directory that no link may leave, resolved.
        where: the chart, for messages.
        rules: its `.helmignore`.
        limits: how much it may hold.

    Returns:
        POSIX path relative to the chart to the real file, links resolved.

    Raises:
        SourceError: a refused or broken link, an irregular file, something unreadable, or more
            than the limits allow; names the path.
    """
    scan = _Scan(root=root, where=where, rules=rules, limits=limits or ScanLimits())
    scan.directory("", top, (str(top),))
    return scan.files


class _Scan:
    def __init__(self, *, root: Path, where: str, rules: Rules, limits: ScanLimits) -> None:
        self.root = root
        self.where = where
        self.rules = rules
        self.limits = limits
        self.files: dict[str, Path] = {}
        self.entries = 0
        self.total = 0

    def directory(self, prefix: str, real: Path, chain: tuple[str, ...]) -> None:
        if len(chain) > self.limits.depth:
            raise self._error(prefix, f"folders are nested deeper than {self.limits.depth}")
        try:
            with os.scandir(real) as listing:
                found = list(itertools.islice(listing, self.limits.entries - self.entries + 1))
        except OSError as error:
            raise self._error(prefix, f"the folder cannot be read: {error.strerror}") from error
        self.entries += len(found)
        if self.entries > self.limits.entries:
            raise self._error("", f"the chart has more than {self.limits.entries} files and folders")
        for entry in sorted(found, key=lambda entry: entry.name):
            self._entry(prefix + entry.name, entry, chain)

    def _entry(self, path: str, entry: os.DirEntry[str], chain: tuple[str, ...]) -> None:
        real = Path(entry.path)
        if entry.is_symlink():
            link = self._follow(path, real)
            if link is None:
                return
            real = link
        try:
            status = real.stat()
        except OSError as error:
            raise self._error(path, f"cannot be read: {error.strerror}") from error
        is_dir = stat.S_ISDIR(status.st_mode)
        if self.rules.ignores(path, is_dir):
            return
        if is_dir:
            if str(real) in chain:
                raise self._error(path, "the link leads back to a folder that contains it")
            self.directory(path + "/", real, (*chain, str(real)))
        elif stat.S_ISREG(status.st_mode):
            self._file(path, real, status.st_size)
        else:
            raise self._error(path, "is a device, socket or named pipe")

    def _follow(self, path: str, link: Path) -> Path | None:
        """The real target of a link, or None if Helm would not look at it anyway."""
        try:
            real = Path(os.path.realpath(link, strict=True))
        except OSError as error:
            # Helm stops here even if a rule ignores the link.
            raise self._error(path, f"{_describe(link)} cannot be followed: {error.strerror}") from error
        if real.is_relative_to(self.root):
            return real
        if self.rules.ignores(path, False) and self.rules.ignores(path, True):
            return None
        raise self._error(
            path, f"{_describe(link)} leads out of the repository", hint="replace the link with a copy"
        )

    def _file(self, path: str, real: Path, size: int) -> None:
        self.total += size
        if self.total > self.limits.total_bytes:
            raise self._error(
                "",
                f"the chart is larger than {self.limits.total_bytes / GIB:g} GiB",
                hint="exclude files with a .helmignore",
            )
        self.files[path] = real

    def _error(self, path: str, what: str, hint: str | None = None) -> SourceError:
        return SourceError(
            what, where=f"{self.where}/{path}".rstrip("/"), hint=hint or "correct the chart's files"
        )


def _describe(link: Path) -> str:
    return f"the symbolic link to {str(link.readlink())!r}"
