"""Writes a chart tree to a directory, with some files replaced, added or renamed.

Helm must load from it the very same chart, except for those files. Packed subcharts stay
packed, as the files they were unless something inside them changes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from becalm.errors import SourceError
from becalm.sources.archive import write_chart_archive
from becalm.sources.helmignore import Rules
from becalm.sources.packing import Packed
from becalm.sources.tree import BOM, HELMIGNORE, ChartTree, Location

_PACKED_NAME = "chart.tgz"
_CHUNK = 1024 * 1024


def write_chart(
    tree: ChartTree,
    replaced: Mapping[Location, bytes],
    destination: Path,
    *,
    renamed: Mapping[Location, Location] | None = None,
) -> Path:
    """Write the chart below `destination`, which must be missing or empty.

    Files get mode 0600 and directories 0700. Ignored files are left out.

    Args:
        tree: the chart.
        replaced: new content by location, as Helm is to see it; a location that does not exist
            adds a file.
        destination: the directory to write.
        renamed: old location to new one. The content is the one `replaced` has for the new or
            the old location, else the old content.

    Returns:
        The path to give to Helm. It is `destination`, or an archive in it when Helm would load
        something else from a directory: it applies `.helmignore` and its own rule
        `templates/.?*` to directories but not to archives, so a packed chart can hold files that
        no directory can, and an added file can fall under a rule.

    Raises:
        SourceError: a packed subchart or a file cannot be read, or the chart cannot be written.
        ValueError: a location that makes no sense; a mistake of the caller.
    """
    files = _apply(tree, _edits(tree, replaced, renamed or {}))
    try:
        destination.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(destination.iterdir()):
            raise ValueError(f"{destination} is not empty")
        if _loads_completely(files):
            _write_directory(files, destination)
            return destination
        packed = write_chart_archive("chart", {path: _bytes(content) for path, content in files.items()})
        with open(destination / _PACKED_NAME, "xb", opener=_private) as target:
            target.write(packed)
        return destination / _PACKED_NAME
    except OSError as error:
        raise no_copy(tree, error) from error


def no_copy(tree: ChartTree, error: OSError) -> SourceError:
    """The error of a chart that cannot be copied."""
    return SourceError(
        f"the chart cannot be copied to the working directory: {error.strerror}", where=tree.where
    )


def pack_chart(tree: ChartTree, replaced: Mapping[Location, bytes]) -> Packed | None:
    """The chart in one file, for helm alone; None where helm would see another chart in it than in a directory.

    Args:
        tree: the chart.
        replaced: as for `write_chart`.

    Raises:
        SourceError: a file cannot be read.
        ValueError: as `write_chart`.
    """
    files = _apply(tree, _edits(tree, replaced, {}))
    try:
        contents = {path: _bytes(content) for path, content in files.items()}
    except OSError as error:
        raise no_copy(tree, error) from error
    try:
        return Packed(contents)
    except ValueError:
        return None


def _edits(
    tree: ChartTree, replaced: Mapping[Location, bytes], renamed: Mapping[Location, Location]
) -> dict[Location, bytes | None]:
    """New content by location; None drops the file."""
    edits: dict[Location, bytes | None] = {
        location: _shielded(content) for location, content in replaced.items() if location not in renamed
    }
    for old, new in renamed.items():
        if _exists(tree, new) and new not in renamed:
            raise ValueError(f"{new} exists already")
        if new in replaced:
            edits[new] = _shielded(replaced[new])
        elif old in replaced:
            edits[new] = _shielded(replaced[old])
        else:
            edits[new] = _owner(tree, old).read_raw(old[-1])
    for old in renamed:
        edits.setdefault(old, None)
    return edits


def _shielded(content: bytes) -> bytes:
    """Helm takes one byte order mark away; content that begins with one keeps it."""
    return BOM + content if content.startswith(BOM) else content


def _owner(tree: ChartTree, location: Location) -> ChartTree:
    for archive in location[:-1]:
        if archive not in tree.archives:
            raise ValueError(f"{location}: {tree.where} has no packed subchart {archive}")
        tree = tree.archives[archive]
    return tree


def _exists(tree: ChartTree, location: Location) -> bool:
    return _owner(tree, location).has(location[-1])


def _apply(tree: ChartTree, edits: Mapping[Location, bytes | None]) -> dict[str, Path | bytes]:
    files = {path: tree.stored(path) for path in tree.paths()}
    inside: dict[str, dict[Location, bytes | None]] = {}
    for location, content in edits.items():
        path = location[0]
        _require_safe(path)
        if len(location) > 1:
            inside.setdefault(path, {})[location[1:]] = content
        elif content is None:
            files.pop(path, None)
        else:
            files[path] = content
    for archive, inner in inside.items():
        if (archive,) in edits or archive not in tree.archives:
            raise ValueError(f"{archive} is no packed subchart of {tree.where}, or is itself replaced")
        content_by_path = _apply(tree.archives[archive], inner)
        files[archive] = write_chart_archive(
            "chart", {path: _bytes(content) for path, content in content_by_path.items()}
        )
    return files


def _require_safe(path: str) -> None:
    if str(PurePosixPath(path)) != path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise ValueError(f"{path!r} is no path inside a chart")


def _loads_completely(files: Mapping[str, Path | bytes]) -> bool:
    """Whether Helm, given these files as a directory, would ignore none of them.

    A file that is still at its place in a directory has been seen by the same rules.
    """
    fresh = [path for path, content in files.items() if isinstance(content, bytes)]
    try:
        rules = Rules.default()
        if HELMIGNORE in files:
            text = _bytes(files[HELMIGNORE]).decode("utf-8", "surrogateescape")
            rules = Rules.parse(text, where=HELMIGNORE)
    except SourceError:
        return False
    folders = {str(folder) for path in fresh for folder in PurePosixPath(path).parents}
    return not (
        any(rules.ignores(path, False) for path in fresh)
        or any(rules.ignores(folder, True) for folder in folders)
    )


def _bytes(content: Path | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def _write_directory(files: Mapping[str, Path | bytes], destination: Path) -> None:
    made = {PurePosixPath()}
    for path, content in sorted(files.items(), key=lambda item: item[0]):
        for folder in reversed(PurePosixPath(path).parents):
            if folder not in made:
                (destination / folder).mkdir(mode=0o700)
                made.add(folder)
        # Plain descriptors: file objects take twice as long, and a chart may have hundreds of files.
        output = _private(f"{destination}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        try:
            if isinstance(content, bytes):
                _put(content, output)
            else:
                _copy(content, output)
        finally:
            os.close(output)


def _copy(path: Path, output: int) -> None:
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while chunk := os.read(source, _CHUNK):
            _put(chunk, output)
    finally:
        os.close(source)


def _put(data: bytes, output: int) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(output, rest) :]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
