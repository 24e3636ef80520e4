"""The types of Kubernetes' own kinds, as its Go structs have them, and what does not fit them.

`builtin_types.json` is made from k8s.io/api by tools/builtin_types. Argo CD decodes and encodes an object of
these kinds through the same structs (gitops-engine, pkg/diff, `remarshal`), which brings quantities to their
canonical form and leaves empty values out; one unknown or mistyped field switches that off for the whole
object, and fails the comparison of the whole application under structured merge.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from becalm.config.schema import packaged
from becalm.manifests.objects import Object
from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value
from becalm.normalise import duration, quantity

#: How alike two names have to be: `strategy` and `updateStrategy` are.
_NEAR = 0.7
_RELEASE = re.compile(r"v?1\.(\d+)")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct.

    `type` is `string`, `bool`, `int`, `float`, `bytes`, `time`, `quantity`, `duration`, `int-or-string`,
    `any`, or a struct's name, behind any of `*` (pointer), `[]` (list) and `{}` (map with string keys).
    `omitempty` tells that Go leaves the zero value out; `merge_key` is the key of a list that is merged by
    key (`patchMergeKey`), else "".
    """

    type: str
    omitempty: bool
    merge_key: str


Struct = dict[str, Field]
"""The fields of a struct, by their names in JSON."""


class Types:
    """The types of one release of Kubernetes."""

    def __init__(self, release: int) -> None:
        self._release = release
        self._structs: dict[str, Struct] = {}

    def of(self, obj: Object) -> str:
        """The name of an object's struct; "" for an object of any other kind."""
        version, kind = obj.get("apiVersion"), obj.get("kind")
        entry = _table()["kinds"].get(f"{version}/{kind}")
        return "" if entry is None else _in_release(entry, self._release)

    def struct(self, name: str) -> Struct | None:
        """A struct by its name; None for the name of anything else."""
        if name not in self._structs:
            raw = _table()["types"].get(name)
            if raw is None:
                return None
            texts = {key: _in_release(entry, self._release) for key, entry in raw.items()}
            self._structs[name] = {key: _field(text) for key, text in texts.items() if text}
        return self._structs[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A field that the object's type does not have, or whose value is of another type.

    `wanted` is the nearest field's name for an unknown field ("" if none is near), the type for a mistyped one.
    """

    path: Path
    is_unknown: bool
    wanted: str


def minor(kube_version: str) -> int | None:
    """The minor release of a version as Argo CD gives it (`v1.31.4+k3s1`), if it is one."""
    match = _RELEASE.match(kube_version)
    return int(match[1]) if match else None


def is_older(kube_version: str, release: int) -> bool:
    """Whether a version is of a minor release before another; not where it is unknown."""
    found = minor(kube_version)
    return found is not None and found < release


@cache
def types(kube_version: str) -> Types:
    """The types for a version of Kubernetes as Argo CD gives it.

    Without one, those of the newest release; for an older or newer one, those of the nearest.
    """
    first, last = _table()["releases"]
    found = minor(kube_version)
    return Types(last if found is None else min(max(found, first), last))


@cache
def _table() -> dict[str, Any]:
    return packaged("becalm.normalise", "builtin_types.json")


@cache
def known() -> frozenset[tuple[str, str]]:
    """The group and the name of every kind, of every release."""
    parts = (key.rpartition("/") for key in _table()["kinds"])
    return frozenset((version.rpartition("/")[0], kind) for version, _, kind in parts)


@cache
def names() -> frozenset[str]:
    """All kinds, of every release, without group and version."""
    return frozenset(key.rpartition("/")[2] for key in _table()["kinds"])


def _in_release(entry: str | list[Any], release: int) -> str:
    """What is written for a release; "" where it has none."""
    if isinstance(entry, str):
        return entry
    spans = (entry[start : start + 3] for start in range(0, len(entry), 3))
    return next((text for text, first, last in spans if first <= release <= last), "")


def _field(text: str) -> Field:
    written, _, merge_key = text.partition(" ")
    return Field(written.removesuffix("?"), written.endswith("?"), merge_key)


def walk(obj: Object, table: Types) -> Iterator[tuple[Path, Value, Field | None, Struct]]:
    """Every field of an object's structs: its path, value, type (None where it is unknown), and its siblings.

    Values of a wrong type are not gone into. A field comes before what it holds.
    An object whose kind is not one of Kubernetes' own has none.
    """
    root = table.of(obj)
    todo: list[tuple[Path, Value, str]] = [((), obj, root)] if root else []
    while todo:
        path, value, written = todo.pop()
        written = written.removeprefix("*")
        inner: list[tuple[Path, Value, str]] = []
        if written.startswith("[]") and isinstance(value, list):
            inner = [((*path, index), one, written[2:]) for index, one in enumerate(value)]
        elif written.startswith("{}") and isinstance(value, dict):
            inner = [((*path, key), one, written[2:]) for key, one in value.items()]
        elif isinstance(value, dict) and (struct := table.struct(written)) is not None:
            for key, one in value.items():
                field = struct.get(key)
                if not path and key in ("apiVersion", "kind"):
                    continue
                yield (*path, key), one, field, struct
                if field is not None:
                    inner.append(((*path, key), one, field.type))
        todo += reversed(inner)


def misfits(obj: Object, table: Types) -> Iterator[Misfit]:
    """What does not fit the type of an object; nothing for a kind that is not Kubernetes' own.

    Names are compared exactly, as the API server's strict validation does.
    """
    for path, value, field, struct in walk(obj, table):
        if field is None:
            by_lower = {one.lower(): one for one in struct}
            near = difflib.get_close_matches(str(path[-1]).lower(), by_lower, 1, _NEAR)
            yield Misfit(path=path, is_unknown=True, wanted=by_lower[near[0]] if near else "")
        else:
            yield from _mistyped(path, value, field.type, table)


def _mistyped(path: Path, value: Value, written: str, table: Types) -> Iterator[Misfit]:
    """Values of scalars' types that are wrong; structs' fields are for `walk`."""
    written = written.removeprefix("*")
    if value is None:
        return
    if written[:2] in ("[]", "{}"):
        children: Any
        if written[:2] == "[]" and isinstance(value, list):
            children = enumerate(value)
        elif written[:2] == "{}" and isinstance(value, dict):
            children = value.items()
        else:
            yield Misfit(path=path, is_unknown=False, wanted="list" if written[:2] == "[]" else "map")
            return
        for key, one in children:
            yield from _mistyped((*path, key), one, written[2:], table)
    elif table.struct(written) is not None:
        if not isinstance(value, dict):
            yield Misfit(path=path, is_unknown=False, wanted="map")
    elif not _fits(value, written):
        yield Misfit(path=path, is_unknown=False, wanted=written)


def _fits(value: Value, written: str) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match written:
        case "any":
            fits = True
        case "bool":
            fits = isinstance(value, bool)
        case "int":
            fits = is_number and value == int(value)  # type: ignore[arg-type]
        case "float":
            fits = is_number
        case "int-or-string":
            fits = isinstance(value, str) or (is_number and isinstance(value, int))
        case "quantity":
            fits = canonical(value, written) is not None
        case _:
            fits = isinstance(value, str)
    return fits


def canonical(value: Value, written: str) -> str | None:
    """The canonical text of a `quantity` or `duration`; None where the value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return quantity.canonical(str(value)) if written == "quantity" else duration.canonical(str(value))
    except ValueError:
        return None
