"""Plain directories of manifests, as Argo CD's own source of them reads them (reposerver/repository, `findManifests`).

Files count by their ending, in lexical order of their paths. What does not look like a manifest is left out, and what
says `+argocd:skip-file-rendering` as well. `include` and `exclude` are globs of paths below the directory, in which `*`
goes over slashes and `{a,b}` is either (util/glob of Argo CD).
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from becalm.errors import ConfigError, ManifestError, SourceError
from becalm.manifests import stream, yamlio
from becalm.sources.detect import MANIFESTS
from becalm.sources.tree import read_file

_SKIPPED = "+argocd:skip-file-rendering"
_OWN = ".becalm.yaml"
_LOOKS = ("apiVersion:", "kind:", "metadata:")
_LEAVE_OUT = "leave the file out with directory.exclude"
_MIB = 1024 * 1024
_MOST_FILES = 10_000
_MOST_BYTES = 64 * _MIB
#: One sign, with a backslash before it or not, or a set of signs.
_SIGN = re.compile(r"\\.|\[!?[^\]]+\]|.", re.DOTALL)
_MOST_ALTERNATIVES = 1000
_MOST_BRACES = 100
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
        ManifestError: a part of a file is no object.
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
        if _SKIPPED in text:
            continue
        found = _json(text, place) if path.suffix == ".json" else _yaml(text, place)
        texts += [f"---\n# Source: {name}\n{found}"] if found else []
    return "".join(texts)


def _chosen(directory: Path, options: DirectoryOptions) -> Iterator[Path]:
    include, exclude = _glob(options.include, "include"), _glob(options.exclude, "exclude")
    number = 0
    for path in _files(directory, recurse=options.recurse):
        name = path.relative_to(directory).as_posix()
        if path.suffix not in (*MANIFESTS, ".jsonnet") or path.name == _OWN:
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
        ConfigError: a brace is not closed, or there are too many alternatives.
    """
    if pattern.count("{") > _MOST_BRACES:
        raise ConfigError(f"the glob has more than {_MOST_BRACES} braces", where=f"directory.{name}")
    found, _ = _alternatives(_SIGN.findall(pattern), name)
    # What fnmatch makes of a glob takes no time by the power of its stars.
    return re.compile("|".join(map(fnmatch.translate, found)))


def _alternatives(signs: list[str], name: str, *, inside: bool = False) -> tuple[list[str], list[str]]:
    """The globs without braces that a glob stands for, and the signs behind the brace that closes it."""
    done: list[str] = []
    begun = [""]
    while signs:
        sign, *signs = signs
        if inside and sign == "}":
            return done + begun, signs
        if inside and sign == ",":
            done, begun = done + begun, [""]
            continue
        if sign == "{":
            choices, signs = _alternatives(signs, name, inside=True)
        else:
            choices = [_plain(sign)]
        if len(begun) * len(choices) > _MOST_ALTERNATIVES:
            raise ConfigError("the glob has too many alternatives", where=f"directory.{name}")
        begun = [one + choice for one in begun for choice in choices]
    if inside:
        raise ConfigError(
            "a brace of the glob is not closed",
            where=f"directory.{name}",
            hint="write for example '{a/*,b.yaml}'",
        )
    return begun, []


def _plain(sign: str) -> str:
    """A sign as fnmatch reads it, which knows no backslashes."""
    if not sign.startswith("\\"):
        return sign
    return f"[{sign[1]}]" if sign[1:] in ("*", "?", "[") else sign[1:]


def _read(path: Path, place: str) -> str:
    data = read_file(path, place, _MOST_BYTES)
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeError as error:
        raise SourceError("the file cannot be read", where=place, hint="it has to be UTF-8") from error


def _json(text: str, place: str) -> str:
    """The one object of a JSON file, as YAML."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError("the file is not JSON", where=place, hint=f"check it, or {_LEAVE_OUT}") from error
    if not _is_object(value):
        raise SourceError(
            "the file holds no Kubernetes object", where=place, hint=f"add a kind, or {_LEAVE_OUT}"
        )
    return yamlio.dump(value)


def _yaml(text: str, place: str) -> str:
    """A YAML file's text without a separator at its start; "" for a file that is something else.

    As Argo CD has it (reposerver/repository, `getObjsFromYAMLOrJson`): a file of which a part is wrong is an error, and so
    is one that looks like a manifest; any other file that holds no object is left out.
    """
    number = 0
    try:
        for document in stream.split(text, where=place):
            number += _is_one(document, place)
    except ManifestError as error:
        if number == 0 and not all(word in text for word in _LOOKS):
            return ""
        raise ManifestError(error.what, where=error.where, hint=error.hint or _LEAVE_OUT) from error
    if number == 0:
        return ""
    text = _START.sub("", text)
    return text if text.endswith("\n") else f"{text}\n"


def _is_one(document: stream.Document, place: str) -> bool:
    """Whether a document holds an object, not nothing.

    Raises:
        ManifestError: it holds something else.
    """
    value = None if document.is_empty else yamlio.load(document.text, where=place)
    if value is not None and not _is_object(value):
        raise ManifestError(
            "a document holds no Kubernetes object", where=place, hint=f"add a kind, or {_LEAVE_OUT}"
        )
    return value is not None


def _is_object(value: object) -> bool:
    """Whether Kubernetes reads it as one (k8s.io/apimachinery, `unstructuredJSONScheme`): a map with a kind."""
    return isinstance(value, dict) and isinstance(value.get("kind"), str) and value["kind"] != ""
