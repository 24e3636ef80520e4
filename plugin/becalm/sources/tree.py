"""A chart as a tree of files, loaded as Helm loads it.

Helm applies a `.helmignore` only to the directory it is told to load, and only the one at its
top: not to archives, not to the ones of subcharts. `ChartTree.paths` is what is left then.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from becalm.errors import SourceError
from becalm.sources.archive import ArchiveLimits, read_chart_archive
from becalm.sources.helmignore import Rules
from becalm.sources.layout import is_packed_subchart
from becalm.sources.scan import scan_directory

# A file of a chart: the archives on the way to it, then its path in the last one.
Location = tuple[str, ...]

BOM = b"\xef\xbb\xbf"
HELMIGNORE = ".helmignore"

_MIB = 1024 * 1024
_MAX_IGNORE_FILE = _MIB
# What all packed subcharts of one chart may unpack to, together. Helm has a limit per archive
# only, so archives within archives could multiply.
_MAX_UNPACKED = 256 * _MIB
_MAX_NESTING = 20


class _Budget:
    """What may still be unpacked, shared by all archives of a chart."""

    def __init__(self) -> None:
        self.total_bytes = _MAX_UNPACKED
        self.entries = ArchiveLimits().entries

    def unpack(self, data: bytes, where: str) -> dict[str, bytes]:
        standard = ArchiveLimits()
        files = read_chart_archive(
            data,
            where=where,
            limits=ArchiveLimits(
                entries=min(standard.entries, self.entries),
                file_bytes=standard.file_bytes,
                total_bytes=min(standard.total_bytes, self.total_bytes),
            ),
        )
        self.entries -= len(files)
        self.total_bytes -= sum(map(len, files.values()))
        return files


class ChartTree:
    """The files of one chart directory or one archive, unpacked subcharts included.

    Files of a directory are read when somebody asks for them; a packed subchart is opened when
    somebody asks for it. Not meant to be shared between threads.

    Attributes:
        where: the chart for messages, as a person would write it: `mychart`, or
            `mychart/charts/redis-17.0.0.tgz`.
        archives: the packed subcharts that Helm loads, by their path (`charts/x-1.tgz`,
            `charts/foo/charts/y-2.tgz`). Looking one up opens it, and can raise `SourceError`.
    """

    def __init__(
        self, where: str, files: Mapping[str, Path | bytes], *, budget: _Budget, nesting: int = 0
    ) -> None:
        self.where = where
        self.archives: Mapping[str, ChartTree] = _Archives(self)
        self._files = files
        self._read: dict[str, bytes] = {}
        self._budget = budget
        self._nesting = nesting

    def __repr__(self) -> str:
        return f"ChartTree({self.where!r})"

    def paths(self) -> list[str]:
        """All paths, sorted, without those that Helm ignores; packed subcharts are one path each."""
        return sorted(self._files)

    def has(self, path: str) -> bool:
        """Whether there is such a file (not: a directory)."""
        return path in self._files

    def read(self, path: str) -> bytes:
        """The content of a file as Helm sees it: without a UTF-8 byte order mark.

        Raises:
            SourceError: there is no such file, it cannot be read, or it is larger than Helm loads.
        """
        return self.read_raw(path).removeprefix(BOM)

    def read_raw(self, path: str) -> bytes:
        """The content of a file, unchanged. Raises like `read`."""
        content = self.stored(path)
        if isinstance(content, bytes):
            return content
        if path not in self._read:
            self._read[path] = read_file(content, f"{self.where}/{path}", ArchiveLimits().file_bytes)
        return self._read[path]

    def stored(self, path: str) -> Path | bytes:
        """Where the content is: a file on disk (links resolved), or the bytes from an archive.

        Raises:
            SourceError: there is no such file.
        """
        try:
            return self._files[path]
        except KeyError:
            raise SourceError(f"the chart has no file {path!r}", where=self.where) from None

    def walk(self) -> Iterator[tuple[Location, ChartTree, str]]:
        """Yield every file with its location and the tree that holds it; opens every archive.

        A packed subchart comes as a file of its own, followed by the files inside it.
        """
        for path in self.paths():
            yield (path,), self, path
            if path in self.archives:
                for location, tree, inner in self.archives[path].walk():
                    yield (path, *location), tree, inner

    def open_archive(self, path: str) -> ChartTree:
        """Read a packed subchart; `archives` does so once."""
        where = f"{self.where}/{path}"
        if self._nesting >= _MAX_NESTING:
            raise SourceError(f"archives are nested deeper than {_MAX_NESTING}", where=where)
        files = self._budget.unpack(self.read_raw(path), where)
        return ChartTree(where, files, budget=self._budget, nesting=self._nesting + 1)


class _Archives(Mapping[str, ChartTree]):
    def __init__(self, tree: ChartTree) -> None:
        self._tree = tree
        self._opened: dict[str, ChartTree] = {}

    def __getitem__(self, path: str) -> ChartTree:
        if path not in self:
            raise KeyError(path)
        if path not in self._opened:
            self._opened[path] = self._tree.open_archive(path)
        return self._opened[path]

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and is_packed_subchart(path) and self._tree.has(path)

    def __iter__(self) -> Iterator[str]:
        return iter([path for path in self._tree.paths() if is_packed_subchart(path)])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def load_chart(path: Path, *, root: Path | None = None) -> ChartTree:
    """Load a chart from a directory or a `.tgz` file.

    Args:
        path: the chart.
        root: the repository's root, which neither the chart nor a link in it may leave; None
            means the chart itself.

    Raises:
        SourceError: there is no chart, Helm could not load it, or it is refused; names the place.
    """
    where = label(path, root)
    try:
        real = Path(os.path.realpath(path, strict=True))
        mode = real.stat().st_mode
    except OSError as error:
        raise SourceError(
            f"there is no chart here: {error.strerror}", where=where, hint="correct the path"
        ) from error
    real_root = real if root is None else Path(os.path.realpath(root))
    if not real.is_relative_to(real_root):
        raise SourceError(
            "the chart lies outside of the repository", where=where, hint="correct the path or the link"
        )
    if stat.S_ISDIR(mode):
        return ChartTree(where, _directory_files(real, real_root, where), budget=_Budget())
    data = read_file(real, where, ArchiveLimits().total_bytes) if stat.S_ISREG(mode) else b""
    if not data.startswith(b"\x1f\x8b"):
        raise SourceError(
            "this is neither a chart directory nor a .tgz archive",
            where=where,
            hint="point to the directory that holds Chart.yaml",
        )
    budget = _Budget()
    return ChartTree(where, budget.unpack(data, where), budget=budget)


def _directory_files(top: Path, root: Path, where: str) -> dict[str, Path]:
    # Asked first, so that a wrong path does not end in listing a whole repository.
    missing = SourceError(
        "there is no Chart.yaml in this directory", where=where, hint="point to the chart's directory"
    )
    if not os.path.lexists(top / "Chart.yaml"):
        raise missing
    files = scan_directory(top, root=root, where=where, rules=rules(top, root, where))
    if "Chart.yaml" not in files:
        raise missing
    return files


def rules(top: Path, root: Path, where: str) -> Rules:
    """What a chart's `.helmignore` leaves out.

    Args:
        top: the chart's directory.
        root: which a link may not leave, resolved.
        where: the chart, for messages.

    Raises:
        SourceError: the file cannot be read, leads out of the root, or holds what Helm refuses.
    """
    ignore_file = top / HELMIGNORE
    if not ignore_file.exists():
        return Rules.default()
    where = f"{where}/{HELMIGNORE}"
    real = Path(os.path.realpath(ignore_file))
    if not real.is_relative_to(root):
        raise SourceError(
            f"the symbolic link to {str(ignore_file.readlink())!r} leads out of the repository",
            where=where,
            hint="replace the link with a copy",
        )
    text = read_file(real, where, _MAX_IGNORE_FILE).decode("utf-8", "surrogateescape")
    return Rules.parse(text, where=where)


def read_file(path: Path, where: str, most: int) -> bytes:
    """Read a regular file of at most `most` bytes.

    Raises:
        SourceError: it cannot be read, is larger, or is no regular file.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SourceError("this is not a regular file", where=where)
            content = file.read(most + 1)
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}", where=where) from error
    if len(content) > most:
        raise SourceError(f"the file is larger than {most / _MIB:g} MiB", where=where)
    return content


def label(path: Path, root: Path | None) -> str:
    """The path below the repository's root, or the last name if it is the root or elsewhere."""
    if root is not None:
        relative = os.path.relpath(path, root)
        if relative != "." and not relative.startswith(".."):
            return Path(relative).as_posix()
    return path.resolve().name
