"""Packed charts (`.tgz`): safe reading, and writing that always gives the same bytes.

The names follow Helm (its pkg/chart/loader/archive): the first part of a name is the chart's
directory and is dropped, whatever it is. Where Helm is lenient, this is strict: it refuses
links, devices, `..` anywhere, absolute names and two different files of the same name.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import tarfile
from collections.abc import Mapping
from pathlib import PurePosixPath

from becalm.errors import SourceError
from becalm.sources.tarball import ArchiveLimits, Entry, Kind, read_entries

__all__ = ["ArchiveLimits", "add", "read_chart_archive", "write_chart_archive"]

_DRIVE = re.compile("[a-zA-Z]:/")
_HINT = "package the chart again with `helm package`"


def read_chart_archive(data: bytes, *, where: str, limits: ArchiveLimits | None = None) -> dict[str, bytes]:
    """Read a packed chart into memory.

    Args:
        data: the `.tgz` file.
        where: its path, for messages.
        limits: how much it may hold; by default as much as Helm loads.

    Returns:
        POSIX path, relative to the chart's directory, to content, in the order of the archive.
        A byte order mark is still in the content.

    Raises:
        SourceError: broken, refused, above a limit or without Chart.yaml; names the archive
            and, where there is one, the entry.
    """
    files: dict[str, bytes] = {}
    for entry in read_entries(data, where=where, limits=limits or ArchiveLimits()):
        if entry.kind is Kind.DIRECTORY:
            continue
        if entry.kind is not Kind.FILE:
            raise _refusal(where, entry, f"is a {entry.kind.value}")
        path = _path(where, entry)
        if files.setdefault(path, entry.data) != entry.data:
            raise _refusal(where, entry, "comes twice, with different content")
    _refuse_files_in_files(where, files)
    if "Chart.yaml" not in files:
        raise SourceError("the archive holds no Chart.yaml below its first folder", where=where, hint=_HINT)
    return files


def write_chart_archive(name: str, files: Mapping[str, bytes]) -> bytes:
    """Pack a chart. The same files always give the same bytes.

    Args:
        name: the directory inside the archive; Helm does not look at it.
        files: POSIX path, relative to the chart, to content.

    """
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=6) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        add(archive, name, files)
    return packed.getvalue()


def add(archive: tarfile.TarFile, name: str, files: Mapping[str, bytes]) -> None:
    """Add the files of a chart to an archive.

    Files come in the order in which Helm walks a directory, since it renders the files of
    `crds/` in the order in which it loads them.
    """
    for path in sorted(files, key=lambda path: path.split("/")):
        header = tarfile.TarInfo(f"{name}/{path}")
        header.size = len(files[path])
        header.mode = 0o644
        archive.addfile(header, io.BytesIO(files[path]))


def _path(where: str, entry: Entry) -> str:
    """The path of an entry below the chart's directory.

    Helm takes a name with backslashes for one written on Windows, where they separate. A name
    with both could mean two things, so it is refused.
    """
    name = entry.name
    if "\\" in name:
        if "/" in name:
            raise _refusal(where, entry, "mixes / and \\")
        name = name.replace("\\", "/")
    parts = name.split("/")
    if ".." in parts:
        raise _refusal(where, entry, "leads out of the archive with ..")
    below = "/".join(parts[1:])
    if not parts[0] or below.startswith("/") or _DRIVE.match(name) or _DRIVE.match(below):
        raise _refusal(where, entry, "has an absolute name")
    path = posixpath.normpath(below)
    if path == ".":
        raise _refusal(where, entry, "lies outside of the chart's folder")
    return path


def _refuse_files_in_files(where: str, files: Mapping[str, bytes]) -> None:
    for folder in {str(folder) for path in files for folder in PurePosixPath(path).parents}:
        if folder in files:
            raise SourceError(f"the entry {folder!r} is a file and a folder at once", where=where, hint=_HINT)


def _refusal(where: str, entry: Entry, problem: str) -> SourceError:
    return SourceError(f"the entry {entry.name!r} {problem}", where=where, hint=_HINT)
