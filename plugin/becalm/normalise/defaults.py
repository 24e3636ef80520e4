"""Structural defaulting: the fields that the API server adds to custom resources from their CRD's schema.

The rules are those of k8s.io/apiextensions-apiserver, pkg/apiserver/schema/defaulting: a property that is
missing, or null where the schema does not allow null, gets a copy of its default, and what is added is itself
filled; elements of lists and additional properties are filled where they exist. Other words of a schema
(`x-kubernetes-preserve-unknown-fields`, `x-kubernetes-embedded-resource`, `x-kubernetes-int-or-string`,
`anyOf`) add nothing. A field that the schema does not name is never added.

Argo CD compares fields outside of lists one by one and ignores those that only the cluster has, but a list as a
whole. So by default only what is inside of a list, or of a map that is replaced as a whole
(`x-kubernetes-map-type: atomic`), is filled.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from becalm.errors import ManifestError
from becalm.manifests.objects import Object
from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value
from becalm.normalise.decisions import May, anything

Schema = dict[str, Any]
"""An OpenAPI v3 schema as a CRD holds it."""

_DEEPEST = 200


def schema_of(crd: Object, version: str) -> Schema | None:
    """The schema of one version of a CustomResourceDefinition (apiextensions.k8s.io/v1), if it has one.

    Args:
        crd: the CustomResourceDefinition.
        version: the version that the custom resource is written in.
    """
    spec = crd.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    for entry in versions if isinstance(versions, list) else ():
        if isinstance(entry, dict) and entry.get("name") == version:
            holder = entry.get("schema")
            schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
            return schema if isinstance(schema, dict) else None
    return None


def fill(obj: Object, schema: Schema, may: May = anything, *, everywhere: bool = False) -> list[Path]:
    """Add defaults to a custom resource, in place.

    Args:
        obj: the custom resource.
        schema: of its version.
        may: whether a path may be added.
        everywhere: also outside of lists and atomic maps.

    Returns:
        The paths of what was added, in the order of the schema; nothing inside of something that was added.

    Raises:
        ManifestError: the object is nested too deeply.
    """
    work = _Work(may=may, added=[])
    _fill(obj, schema, (), work, inside=everywhere)
    return work.added


@dataclass(frozen=True, slots=True)
class _Work:
    """What may be added, and what was."""

    may: May
    added: list[Path]


def _fill(value: Value, schema: Schema, path: Path, work: _Work, *, inside: bool) -> None:
    """Fill one value; `inside` tells whether a missing field is to be added here."""
    if len(path) > _DEEPEST:
        raise ManifestError("nested too deeply to be filled with defaults", where=str(path[0]))
    if isinstance(value, dict):
        _fill_map(value, schema, path, work, inside=inside)
    elif isinstance(value, list):
        items = part(schema, "items")
        if items is None:
            return
        for index, element in enumerate(value):
            here = (*path, index)
            is_missing = element is None and not items.get("nullable")
            if is_missing and items.get("default") is not None and work.may(here):
                value[index] = copy.deepcopy(items["default"])
                work.added.append(here)
            _fill(value[index], items, here, work, inside=True)


def _fill_map(value: dict[str, Value], schema: Schema, path: Path, work: _Work, *, inside: bool) -> None:
    inside = inside or schema.get("x-kubernetes-map-type") == "atomic"
    properties = part(schema, "properties") or {}
    # The API server leaves apiVersion, kind and metadata of the whole object to itself.
    own = {"apiVersion", "kind", "metadata"} if not path else set()
    for key, field in properties.items():
        if key in own or not isinstance(field, dict):
            continue
        here = (*path, key)
        if inside and _is_missing(value, key, field) and work.may(here):
            value[key] = copy.deepcopy(field["default"])
            work.added.append(here)
            _fill(value[key], field, here, _Work(work.may, []), inside=True)
        elif key in value:
            _fill(value[key], field, here, work, inside=inside)
    others = part(schema, "additionalProperties")
    if others is None:
        return
    for key in list(value):
        if key in properties or key in own:
            continue
        here = (*path, key)
        if inside and _is_missing(value, key, others) and work.may(here):
            value[key] = copy.deepcopy(others["default"])
            work.added.append(here)
        _fill(value[key], others, here, work, inside=inside)


def _is_missing(value: dict[str, Value], key: str, schema: Schema) -> bool:
    """Whether a map lacks a key that has a default."""
    if schema.get("default") is None:
        return False
    return key not in value or (value[key] is None and not schema.get("nullable"))


def part(schema: Schema, key: str) -> Schema | None:
    """A part of a schema; None where it is missing or no schema of its own."""
    found = schema.get(key)
    return found if isinstance(found, dict) else None


def prune_nulls(obj: Object, schema: Schema, may: May = anything) -> list[Path]:
    """Take away the nulls that the API server takes away after defaulting, in place: where the schema allows none.

    Args:
        obj: the custom resource.
        schema: of its version.
        may: whether a path may be taken away.

    Returns:
        The paths of what was taken away.

    Raises:
        ManifestError: the object is nested too deeply.
    """
    taken: list[Path] = []
    _prune(obj, schema, (), may, taken)
    return taken


def _prune(value: Value, schema: Schema, path: Path, may: May, taken: list[Path]) -> None:
    if len(path) > _DEEPEST:
        raise ManifestError("nested too deeply to be pruned", where=str(path[0]))
    if isinstance(value, list):
        items = part(schema, "items")
        for index, element in enumerate(value) if items is not None else ():
            assert items is not None
            _prune(element, items, (*path, index), may, taken)
        return
    if not isinstance(value, dict):
        return
    properties = part(schema, "properties") or {}
    others = part(schema, "additionalProperties")
    for key in list(value):
        field = properties.get(key, others)
        if not isinstance(field, dict):
            continue
        if value[key] is None and not field.get("nullable") and may((*path, key)):
            del value[key]
            taken.append((*path, key))
        else:
            _prune(value[key], field, (*path, key), may, taken)
