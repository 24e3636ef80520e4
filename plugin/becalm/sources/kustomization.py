"""Kustomizations as files: read, with the usual names of fields, and everything that they refer to.

Kustomize itself guards single files, but no directories, and an operator may switch its guard off; here nothing may
lead out of the repository. What is on other servers is listed, with whether it stays what it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from becalm.errors import ManifestError, SourceError, Warned
from becalm.manifests import stream, yamlio
from becalm.sources import globs, repospec, requirements
from becalm.sources.detect import KUSTOMIZATIONS, kustomization
from becalm.sources.edits import get
from becalm.sources.tree import read_file

_MOST_BYTES = 16 * 1024 * 1024
_MOST = 2000
_FIELDS = (
    "apiVersion", "kind", "metadata", "openapi", "namePrefix", "nameSuffix", "namespace", "commonLabels", "labels",
    "commonAnnotations", "patchesStrategicMerge", "patchesJson6902", "patches", "images", "imageTags", "replacements",
    "replicas", "vars", "sortOptions", "resources", "components", "crds", "bases", "configMapGenerator",
    "secretGenerator", "helmGlobals", "helmCharts", "helmChartInflationGenerator", "generatorOptions",
    "configurations", "generators", "transformers", "validators", "buildMetadata",
)  # fmt: skip
_NAMES = {name.lower(): name for name in _FIELDS}
#: Lists of references to files; those of the second also to directories and repositories.
_LISTS = (
    "resources",
    "bases",
    "components",
    "crds",
    "configurations",
    "generators",
    "transformers",
    "validators",
)
_CLONED = ("resources", "bases", "components", "generators", "transformers", "validators")
_CHARTS = ("helmCharts", "helmChartInflationGenerator")
_PLUGINS = ("generators", "transformers", "validators")
#: Maps whose names are the writer's own.
_FREE = frozenset(("labels", "annotations", "commonlabels", "commonannotations", "pairs", "valuesinline"))
#: Fields by which Kustomize's own generators and transformers read files (api/internal/builtins).
_READING = frozenset((
    "files", "envs", "env", "path", "paths", "replacements", "valuesfile", "additionalvaluesfiles", "values",
    "charthome", "confighome", "helmhome", "chartdir",
))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """What a kustomization refers to, with those that it refers to.

    `warnings` are for what may be something else tomorrow; `has_remotes` says whether anything is on other servers, and
    `has_charts` whether charts are inflated. `files` are those of the repository that are named, in order, and `sees_all`
    tells whether they are all that is read. `named` are the names of files and directories, from the repository's root and with
    the links in them, each with what it leads to.
    """

    warnings: tuple[Warned, ...]
    has_remotes: bool
    has_charts: bool
    files: tuple[Path, ...]
    sees_all: bool
    named: tuple[tuple[str, Path], ...]


def read(directory: Path, where: str) -> dict[str, Any]:
    """The kustomization of a directory, its fields by their usual names.

    Raises:
        SourceError: there is none, or more than one, or it cannot be read.
    """
    path = kustomization(directory, where)
    place = f"{where}/{path.name}"
    try:
        text = read_file(path, place, _MOST_BYTES).decode("utf-8-sig")
    except UnicodeError as error:
        raise SourceError("the file cannot be read", where=place, hint="it has to be UTF-8") from error
    try:
        # Kustomize reads the first document and nothing behind it (sigs.k8s.io/yaml, `Unmarshal`).
        first = next((one for one in stream.split(text, where=place) if not one.is_empty), None)
        value = None if first is None else yamlio.load(first.text, where=place)
    except ManifestError as error:
        raise SourceError(error.what, where=error.where, hint=error.hint) from error
    if value is not None and not isinstance(value, dict):
        raise SourceError("the kustomization is no map", where=place, hint="see Kustomize's reference")
    _require_plain(value, place)
    found: dict[str, Any] = {}
    for key, content in (value or {}).items():
        # Go's encoding/json does not look at the case.
        name = _NAMES.get(key.lower(), key)
        if name in found:
            raise SourceError(
                f"the field {name!r} is there in two spellings", where=place, hint="keep one of them"
            )
        found[name] = content
    return found


def reachable(
    app: Path, root: Path, content: Mapping[str, Any], where: str, *, reads_anything: bool
) -> Reachable:
    """Look at everything local that a kustomization refers to.

    Args:
        app: its directory.
        root: the repository.
        content: the kustomization, edited.
        where: the directory, for messages.
        reads_anything: whether Kustomize does not guard files; then what cannot be looked at from here is refused.

    Raises:
        SourceError: something leads out of the repository, or is refused, or a kustomization cannot be read.
    """
    walk = _Walk(root=Path(os.path.realpath(root)), reads_anything=reads_anything)
    real = Path(os.path.realpath(app))
    walk.inside(real, kustomization(real, where).name, where)
    walk.look(real, content, where)
    return Reachable(
        warnings=tuple(dict.fromkeys(walk.warnings)),
        has_remotes=walk.has_remotes,
        has_charts=walk.has_charts,
        files=tuple(sorted(walk.files)),
        sees_all=walk.sees_all,
        named=tuple(sorted(walk.named)),
    )


@dataclass(slots=True, kw_only=True)
class _Walk:
    root: Path
    reads_anything: bool
    warnings: list[Warned] = field(default_factory=list)
    has_remotes: bool = False
    has_charts: bool = False
    sees_all: bool = True
    files: set[Path] = field(default_factory=set)
    named: set[tuple[str, Path]] = field(default_factory=set)
    seen: set[Path] = field(default_factory=set)

    def look(self, directory: Path, content: Mapping[str, Any], where: str) -> None:
        """One kustomization, and those below it; each directory once."""
        self.seen.add(directory)
        # Generators and the like may name files that only they know, and charts are whole directories.
        self.sees_all = self.sees_all and not any(content.get(name) for name in (*_PLUGINS, *_CHARTS))
        self.has_charts = self.has_charts or any(content.get(name) for name in _CHARTS)
        self.files.add(kustomization(directory, where))
        if len(self.seen) > _MOST:
            raise SourceError(f"there are more than {_MOST} kustomizations", where=where)
        for name, text in _references(content):
            place = f"{where}: {name}"
            if _is_inline(text):
                if self.reads_anything and name in _PLUGINS:
                    self._reads_no_file(text, place)
                # Kustomize takes for a path what it cannot read as an object.
                if not any(map(os.path.lexists, _both(directory, text))):
                    continue
            is_clone = name in _CLONED and repospec.parse(text) is not None
            if repospec.is_remote_file(text) or (is_clone and not (directory / text).is_file()):
                self._remote(text, place)
                self._stays(directory, text, place)
                continue
            target = self.inside(directory, text, place)
            self.named.add((f"{directory.relative_to(self.root).as_posix()}/{text}", target))
            if not target.is_dir():
                self.files.add(target)
            if self.reads_anything and name in _PLUGINS:
                self._plugin(target, place)
            if name not in _CLONED or target in self.seen or not target.is_dir():
                continue
            if any((target / one).is_file() for one in KUSTOMIZATIONS):  # else Kustomize says so
                below = target.relative_to(self.root).as_posix()
                self.inside(target, kustomization(target, below).name, place)
                self.look(target, read(target, below), below)
        for chart in _charts(content):
            self._chart(chart, f"{where}: helmCharts")

    def inside(self, directory: Path, text: str, place: str) -> Path:
        """A local path with its links followed."""
        if not globs.is_path(text) or text != text.strip():
            raise SourceError(f"{text[:200]!r} is no path", where=place, hint="correct it")
        return self._stays(directory, text, place)

    def _stays(self, directory: Path, text: str, place: str) -> Path:
        """Refuse what leads out, whether `..` is taken as a step up or, as Go does it, takes away what is before it."""
        targets = [Path(os.path.realpath(path)) for path in _both(directory, text)]
        if text.startswith("/") or not all(target.is_relative_to(self.root) for target in targets):
            raise SourceError(
                f"{repospec.shown(text)[:200]!r} leads out of the repository",
                where=place,
                hint="keep it in the repository",
            )
        return targets[0]

    def _plugin(self, target: Path, place: str) -> None:
        """A generator or the like in a file: what it reads, nobody guards."""
        if not target.is_file():
            raise _unguarded("a generator or transformer that is no file", place)
        try:
            text = read_file(target, place, _MOST_BYTES).decode()
        except UnicodeError as error:
            raise _unguarded("a generator or transformer that is not UTF-8", place) from error
        self._reads_no_file(text, place)

    def _reads_no_file(self, text: str, place: str) -> None:
        try:
            objects = [yamlio.load(document.text, where=place) for document in stream.split(text)]
        except ManifestError as error:
            raise _unguarded("a generator or transformer that cannot be looked at", place) from error
        while objects:
            value = objects.pop()
            for key, below in value.items() if isinstance(value, dict) else ():
                if str(key).lower() in _READING or not str(key).isascii():
                    raise _unguarded(f"a generator or transformer with {str(key)[:40]!r}", place)
                objects += below if str(key).lower() == "items" and isinstance(below, list) else ()

    def _remote(self, text: str, place: str) -> None:
        self.has_remotes = True
        if self.reads_anything:
            raise _unguarded(f"{repospec.shown(text)!r}", place)
        spec = repospec.parse(text)
        parts = (spec.ref, spec.clone.partition("://")[2] or spec.clone) if spec else ()
        if any(part.startswith("-") for part in parts):
            raise SourceError(
                f"{repospec.shown(text)!r} would become an option of git",
                where=place,
                hint="correct the address",
            )
        if not repospec.is_pinned(text):
            self.warnings.append(
                Warned(
                    f"{repospec.shown(text)!r} names no commit and no version, so it may be something else tomorrow",
                    where=place,
                    hint="add ?ref= with a full commit or a tag such as v1.2.3",
                )
            )

    def _chart(self, chart: Mapping[str, Any], place: str) -> None:
        if not get(chart, "repo"):
            return
        self.has_remotes = True
        name, version = (str(get(chart, key) or "") for key in ("name", "version"))
        if not requirements.is_exact(version):
            self.warnings.append(
                Warned(
                    f"the chart {name[:100]!r} has no exact version, so another one may be fetched tomorrow",
                    where=place,
                    hint="write a version such as 1.2.3",
                )
            )


def _both(directory: Path, text: str) -> tuple[str, str]:
    """A path as the system reads it, and as Go cleans it."""
    joined = f"{directory}/{text}"
    return joined, os.path.normpath(joined)


def _require_plain(value: Any, place: str) -> None:
    """Refuse names of fields that Go takes for others: it folds some signs that are not ASCII, and knows no case.

    Raises:
        SourceError: a name has such signs, or there are two spellings of one.
    """
    if isinstance(value, list):
        for one in value:
            _require_plain(one, place)
    if not isinstance(value, dict):
        return
    known: dict[str, str] = {}
    for key, below in value.items():
        other = known.setdefault(str(key).lower(), str(key))
        if not str(key).isascii() or other != key:
            raise SourceError(
                f"the field {str(key)[:40]!r} is there in two spellings"
                if other != key
                else f"{str(key)[:40]!r} is no field",
                where=place,
                hint="keep one of them" if other != key else "write it in plain letters",
            )
        if not (isinstance(below, dict) and str(key).lower() in _FREE):
            _require_plain(below, place)


def _unguarded(what: str, place: str) -> SourceError:
    return SourceError(
        f"with LoadRestrictionsNone, {what} could read any file of the machine",
        where=place,
        hint="copy it into the repository as a field of the kustomization, or ask the operator to remove that option",
    )


def _charts(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from _entries(content.get("helmCharts"))
    for entry in _entries(content.get("helmChartInflationGenerator")):
        yield {
            "name": get(entry, "chartName"),
            "version": get(entry, "chartVersion"),
            "repo": get(entry, "chartRepoUrl"),
        }


def _references(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields that name files, directories or repositories, and the names; no text that stands in itself."""
    for name in (*_LISTS, "patchesStrategicMerge"):
        yield from ((name, text) for text in _texts(content.get(name)))
    for name, keys in (
        ("openapi", ("path",)),
        ("patches", ("path",)),
        ("patchesJson6902", ("path",)),
        ("replacements", ("path",)),
        ("configMapGenerator", ("env",)),
        ("secretGenerator", ("env",)),
        ("helmCharts", ("valuesFile",)),
        ("helmGlobals", ("chartHome", "configHome")),
        ("helmChartInflationGenerator", ("chartHome", "helmHome", "values")),
    ):
        for entry in _entries(content.get(name)):
            yield from ((name, text) for text in _texts([get(entry, key) for key in keys]))
    for name in ("configMapGenerator", "secretGenerator"):
        for entry in _entries(content.get(name)):
            files = [text.rpartition("=")[2] for text in _texts(get(entry, "files"))]
            yield from ((name, text) for text in (*files, *_texts(get(entry, "envs"))))
    for entry in _entries(content.get("helmCharts")):
        yield from (("helmCharts", text) for text in _texts(get(entry, "additionalValuesFiles")))


def _is_inline(text: str) -> bool:
    return "\n" in text or text.lstrip().startswith("{")


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str) and text] if isinstance(value, list) else []


def _entries(value: Any) -> list[Mapping[str, Any]]:
    """The maps of a list; of a map, itself."""
    if isinstance(value, dict):
        return [value]
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
