"""The parameters of Kustomize that an app team can set, by the names of Argo CD's own Kustomize source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from becalm.config.schema import first_error
from becalm.errors import ConfigError, ManifestError, nearest
from becalm.manifests import yamlio

_WHERE = "source.plugin.parameters: patches"
_TEXT = {"type": "string", "maxLength": 65536}
_TARGET = ("group", "version", "kind", "name", "namespace", "annotationSelector", "labelSelector")
#: pkg/apis/application/v1alpha1/types.go, `KustomizePatch`.
_PATCHES = {
    "type": "array",
    "maxItems": 500,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "path": _TEXT,
            "patch": _TEXT,
            "target": {
                "type": "object",
                "additionalProperties": False,
                "properties": dict.fromkeys(_TARGET, _TEXT),
            },
            "options": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KustomizeParameters:
    """What is set; empty where nothing is. `patches` are maps of `path`, `patch`, `target` and `options`.

    `namespace`, `kubeVersion` and `apiVersions` are those of `HelmParameters`.
    """

    name_prefix: str = ""
    name_suffix: str = ""
    images: tuple[str, ...] = ()
    replicas: Mapping[str, str] = field(default_factory=dict)
    common_labels: Mapping[str, str] = field(default_factory=dict)
    force_common_labels: bool = False
    label_without_selector: bool = False
    label_include_templates: bool = False
    common_annotations: Mapping[str, str] = field(default_factory=dict)
    force_common_annotations: bool = False
    common_annotations_envsubst: bool = False
    components: tuple[str, ...] = ()
    ignore_missing_components: bool = False
    patches: tuple[Mapping[str, Any], ...] = ()


def read(found: Mapping[str, Any]) -> KustomizeParameters:
    """The parameters, from all that are set.

    Raises:
        ConfigError: `patches` are none.
    """
    given: dict[str, Any] = {}
    for one in fields(KustomizeParameters):
        value = found.get(_parameter(one.name))
        if value is None:
            continue
        if one.name == "patches":
            given[one.name] = _patches(value)
        elif one.type == "bool":
            given[one.name] = value == "true"
        else:
            given[one.name] = tuple(value) if isinstance(value, list) else value
    return KustomizeParameters(**given)


def _parameter(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name)


#: The names in source.plugin.parameters.
NAMES = tuple(_parameter(one.name) for one in fields(KustomizeParameters))


def _patches(text: str) -> tuple[Mapping[str, Any], ...]:
    try:
        value: Any = yamlio.load(text, where=_WHERE)
    except ManifestError as error:
        raise ConfigError(error.what, where=error.where, hint="write a list, as YAML or JSON") from error
    if value is None:
        return ()
    if isinstance(value, list):
        value = [_without_nulls(one) for one in value]
    first = first_error(value, _PATCHES)
    if first is not None and first.validator == "additionalProperties" and isinstance(first.instance, dict):
        known = list(first.schema["properties"])  # type: ignore[index]  # the schema above is a map
        name = next(key for key in first.instance if key not in known)
        raise ConfigError(
            f"{str(name)[:60]!r} is no field of it",
            where=": ".join([_WHERE, *map(str, first.absolute_path)]),
            hint=nearest(str(name), known, otherwise=f"the fields are {', '.join(known)}"),
        )
    if first is not None:
        raise ConfigError(
            f"the value does not fit: {first.validator}",
            where=": ".join([_WHERE, *map(str, first.absolute_path)]),
            hint="write a list of maps of path, patch, target and options",
        )
    return tuple(value)


def _without_nulls(value: Any) -> Any:
    """A map as Go reads it, which takes null for nothing."""
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(one) for key, one in value.items() if one is not None}
