"""Plain directories of manifests, as Argo CD's own source of them reads them (reposerver/repository, `findManifests`).

Files count by their ending, in lexical order of their paths. What does not look like a manifest is left out, and what
says `+argocd:skip-file-rendering` as well. `include` and `exclude` are globs of paths below the directory, in which `*`
goes over slashes and `{a,b}` is either (util/glob of Argo CD).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from becalm.errors import ConfigError, SourceError
from becalm.manifests import yamlio
from becalm.sources.detect import MANIFESTS

_SKIPPED = "+argocd:skip-file-rendering"
_OWN = ".becalm.yaml"
_LOOKS = ("apiVersion", "kind", "metadata")
_MIB = 1024 * 1024
_MOST_FILES = 10_000
_MOST_BYTES = 64 * _MIB
_TOKEN = re.compile(r"\\(?P<escaped>.)|\[(?P<no>!)?(?P<set>[^\]]+)\]|(?P<other>.)", re.DOTALL)
_START = re.compile(r"\A(?:\s*(?:#[^\n]*)?\n)*---[ \t]*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryOptions:
    """What Argo CD's `source.directory` can say; empty globs take everything in and leave nothing out."""

    recurse: bool = False
    include: str = ""
    exclude: str = ""


def read(directory: Path, options: DirectoryOptions, *, root: Path | None, where: str) -> str:
    """The manifests of a directory in one stream, each file below a comment with its path.

    Args:
        directory: of the application.
        options: which files.
        root: the repository, which links may not leave; None means the directory itself.
        where: the directory, for messages.

    Raises:
        ConfigError: a glob is none.
        SourceError: a file cannot be read, leads out of the repository, or is Jsonnet.
    """
    inside = Path(os.path.realpath(root or directory))
    texts: list[str] = []
    size = 0
    for path in _chosen(directory, options):
        name = path.relative_to(directory).as_posix()
        place = f"{where}/{name}"
        if not Path(os.path.realpath(path)).is_relative_to(inside):
            raise SourceError("the link leads out of the repository", where=place, hint="copy the file")
        if path.suffix == ".jsonnet":
            raise SourceError(
                "Jsonnet is not rendered",
                where=place,
                hint="leave it out with directory.exclude, or render it to YAML",
            )
        text = _read(path, place)
        size += len(text)
        if size > _MOST_BYTES:
            raise SourceError(f"the files are larger than {_MOST_BYTES // _MIB} MiB", where=where)
        if _SKIPPED not in text and all(word in text for word in _LOOKS):
            texts.append(f"---\n# Source: {name}\n{_document(text, place, is_json=path.suffix == '.json')}")
    return "".join(texts)


def _chosen(directory: Path, options: DirectoryOptions) -> Iterator[Path]:
    include, exclude = _glob(options.include, "include"), _glob(options.exclude, "exclude")
    number = 0
    for path in _files(directory, recurse=options.recurse):
        name = path.relative_to(directory).as_posix()
        if path.suffix not in MANIFESTS or path.name == _OWN:
            continue
        if options.include and not include.fullmatch(name):
            continue
        if options.exclude and exclude.fullmatch(name):
            continue
        number += 1
        if number > _MOST_FILES:
            raise SourceError(f"there are more than {_MOST_FILES:,} files", where=str(directory.name))
        yield path


def _files(directory: Path, *, recurse: bool) -> Iterator[Path]:
    """Files in the order of Go's filepath.Walk, which goes into no linked directory."""
    for entry in sorted(os.scandir(directory), key=lambda one: os.fsencode(one.name)):
        if entry.is_dir(follow_symlinks=False):
            if recurse:
                yield from _files(Path(entry.path), recurse=True)
        elif entry.is_file():
            yield Path(entry.path)


def _glob(pattern: str, name: str) -> re.Pattern[str]:
    """A glob of Argo CD's library, gobwas/glob, without separators.

    Raises:
        ConfigError: a bracket is not closed.
    """
    out, depth = "", 0
    for match in _TOKEN.finditer(pattern):
        one = match["other"]
        if match["escaped"] is not None:
            out += re.escape(match["escaped"])
        elif match["set"] is not None:
            out += f"[{'^' if match['no'] else ''}{re.escape(match['set']).replace(chr(92) + '-', '-')}]"
        elif one == "{":
            out, depth = out + "(?:", depth + 1
        elif one == "}" and depth:
            out, depth = out + ")", depth - 1
        elif one == "," and depth:
            out += "|"
        else:
            out += {"*": "[^\\0]*", "?": "[^\\0]"}.get(one, re.escape(one))
    try:
        return re.compile(out, re.DOTALL)
    except re.error as error:
        raise ConfigError(
            f"{pattern[:200]!r} is no glob",
            where=f"directory.{name}",
            hint="write for example '{a/*,b.yaml}'",
        ) from error


def _read(path: Path, place: str) -> str:
    try:
        data = path.read_bytes()
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise SourceError("the file cannot be read", where=place, hint="it has to be UTF-8") from error


def _document(text: str, place: str, *, is_json: bool) -> str:
    """A file's text, without a separator at its start, and with a newline at its end."""
    if is_json:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SourceError(
                "the file is not JSON", where=place, hint="check it with a JSON parser"
            ) from error
        return yamlio.dump(value)
    text = _START.sub("", text)
    return text if text.endswith("\n") else f"{text}\n"
