"""Which charts a chart depends on, which of them are not there, and what its lock says.

As Helm has it. A dependency is missing when no chart in `charts/`, packed or not, has its *name*: Helm asks for nothing
else (pkg/action, `CheckDependencies`), so a chart whose vendored dependency has an unwanted version renders as with
stock helm. Conditions and tags do not count. The dependencies are those of `Chart.yaml`, or of a `requirements.yaml`
(pkg/chart/loader). A lock fits when its digest is that of both lists (internal/resolver, `HashReq`, and for charts
of API version v1 also `HashV2Req` of Helm 2).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from becalm.errors import PluginError, SourceError
from becalm.manifests import yamlio
from becalm.sources.tree import ChartTree

#: `1.2.3`, also with a v, a pre-release and build data: anything less can mean another version tomorrow.
_EXACT = re.compile(r"(=\s*)?v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,249}")
_VERSION = re.compile(r"[0-9A-Za-z.+~^<>=!*,| -]{0,200}")
_SUBCHART = re.compile(r"charts/[^/]+/Chart\.yaml")
#: The keys of Helm's `Dependency`, in the order in which Go writes them, with those that are left out when empty.
_KEYS = {
    "name": False, "version": True, "repository": False, "condition": True, "tags": True, "enabled": True,
    "import-values": True, "alias": True,
}  # fmt: skip
_EMPTY: dict[str, Any] = {"name": "", "repository": ""}
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One chart that another asks for: `version` is exact, a range, or "" for any."""

    name: str
    version: str
    repository: str

    @property
    def is_exact(self) -> bool:
        """Whether `version` can only ever mean one."""
        return is_exact(self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a chart lacks.

    Attributes:
        file: where dependencies are named: `Chart.yaml` or `requirements.yaml`.
        missing: each different one once, in order; with a lock, as that has them.
        is_locked: whether the chart has a lock.
    """

    file: str = "Chart.yaml"
    missing: tuple[Dependency, ...] = ()
    is_locked: bool = False


def is_exact(version: str) -> bool:
    """Whether a version is no range."""
    return _EXACT.fullmatch(version.strip()) is not None


def check_name(name: str, *, where: str) -> str:
    """A chart's name, which becomes part of paths and of addresses.

    Raises:
        SourceError: it is none.
    """
    if not _NAME.fullmatch(name) or ".." in name:
        raise SourceError(
            f"{name[:100]!r} is no name of a chart", where=where, hint="use letters, digits, - . and _"
        )
    return name


def check_version(version: str, *, where: str) -> str:
    """A version or range.

    Raises:
        SourceError: it holds what neither has.
    """
    if not _VERSION.fullmatch(version):
        raise SourceError(
            f"{version[:100]!r} is neither a version nor a range", where=where, hint="write for example 1.2.3"
        )
    return version.strip()


def read(tree: ChartTree) -> Requirements:
    """What a chart lacks; nothing for most charts, and then no lock is looked at, as in Helm.

    Raises:
        SourceError: a file is not what Helm reads, or the lock is out of date.
    """
    file, wanted = declared(tree)
    if not wanted:
        return Requirements()
    present = set(_present(tree))
    missing = [entry for entry in wanted if str(entry.get("name", "")) not in present]
    if not missing:
        return Requirements()
    locked = _lock(tree, file, wanted)
    if locked is not None:
        names = {str(entry.get("name", "")) for entry in missing}
        missing = [entry for entry in locked if str(entry.get("name", "")) in names]
    found = (_dependency(entry, f"{tree.where}/{file}") for entry in missing)
    return Requirements(file=file, missing=tuple(dict.fromkeys(found)), is_locked=locked is not None)


def declared(tree: ChartTree) -> tuple[str, list[dict[str, Any]]]:
    """Where a chart names its dependencies, `Chart.yaml` or `requirements.yaml`, and the entries as they are written.

    Raises:
        SourceError: a file is not what Helm reads.
    """
    entries = _entries(tree, "Chart.yaml", _mapping(tree, "Chart.yaml"))
    if tree.has("requirements.yaml"):
        older = _entries(tree, "requirements.yaml", _mapping(tree, "requirements.yaml"))
        if older:
            return "requirements.yaml", older
    return "Chart.yaml", entries


def named(tree: ChartTree) -> tuple[str, str]:
    """A chart's own name and version.

    Raises:
        SourceError: its Chart.yaml has none.
    """
    chart = _mapping(tree, "Chart.yaml")
    where = f"{tree.where}/Chart.yaml"
    name, version = check_name(str(chart.get("name") or ""), where=where), str(chart.get("version") or "")
    if not is_exact(version):
        raise SourceError(f"{version[:100]!r} is no version", where=where, hint="write for example 1.2.3")
    return name, version


def _present(tree: ChartTree) -> Iterator[str]:
    """The names of the charts in `charts/`."""
    for path in tree.paths():
        if _SUBCHART.fullmatch(path) and path.split("/")[1][0] not in "._":
            yield str(_mapping(tree, path).get("name", ""))
        elif path in tree.archives and path.count("/") == 1:
            yield str(_mapping(tree.archives[path], "Chart.yaml").get("name", ""))


def _mapping(tree: ChartTree, path: str) -> dict[str, Any]:
    where = f"{tree.where}/{path}"
    try:
        value = yamlio.load(tree.read(path).decode("utf-8", "replace"), where=where)
    except PluginError as error:
        raise SourceError(f"the file cannot be read: {error.what}", where=where, hint=error.hint) from error
    if not isinstance(value, dict):
        raise SourceError("the file is not a YAML mapping", where=where, hint="write it as Helm wants it")
    return value


def _entries(tree: ChartTree, path: str, value: dict[str, Any]) -> list[dict[str, Any]]:
    entries = value.get("dependencies") or []
    if (
        not isinstance(entries, list)
        or not all(isinstance(one, dict) for one in entries)
        or len(entries) > _MOST
    ):
        raise SourceError(
            f"`dependencies` is no list of at most {_MOST} charts", where=f"{tree.where}/{path}",
            hint="write it as Helm wants it",
        )  # fmt: skip
    return entries


def _dependency(entry: dict[str, Any], where: str) -> Dependency:
    name = check_name(str(entry.get("name") or ""), where=where)
    version = check_version(str(entry.get("version") or ""), where=f"{where}: {name}")
    return Dependency(name=name, version=version, repository=str(entry.get("repository") or ""))


def _lock(tree: ChartTree, file: str, wanted: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    path = "Chart.lock" if file == "Chart.yaml" else "requirements.lock"
    if not tree.has(path):
        return None
    value = _mapping(tree, path)
    locked = _entries(tree, path, value)
    fits = value.get("digest") == digest([wanted, locked])
    if not fits and _mapping(tree, "Chart.yaml").get("apiVersion") == "v1":
        fits = value.get("digest") == digest(wanted)
    if not fits:
        raise SourceError(
            f"the lock is out of sync with {file}",
            where=f"{tree.where}/{path}",
            hint="run `helm dependency update` and commit what it writes",
        )
    return locked


def digest(value: Sequence[Any]) -> str:
    """The digest that Helm writes into a lock: SHA-256 of the dependencies as Go writes them in JSON."""
    text = json.dumps(_in_order(value), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        # Go's encoder escapes these, wherever they are; in JSON they can only be in strings.
        text = text.replace(character, f"\\u{ord(character):04x}")
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        entry = {key: value.get(key) or _EMPTY.get(key) for key in _KEYS}
        found = {key: one for key, one in entry.items() if one or not _KEYS[key]}
        if "import-values" in found:
            found["import-values"] = _sorted(found["import-values"])
        return found
    return [_in_order(one) for one in value]


def _sorted(value: Any) -> Any:
    """Maps as Go writes them, by key."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value
