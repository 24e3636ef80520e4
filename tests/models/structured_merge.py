"""Types as structured merge sees them, and what an apply by force makes of a live object.

The rules are those of sigs.k8s.io/structured-merge-diff as they were observed through Argo
CD; the tables are the markers in k8s.io/api and k8s.io/apimachinery 0.36, from which the static schema of
client-go's applyconfigurations is made. What is here of lists by key serves strategic merge as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from becalm.normalise import builtin

#: `+structType=atomic` and `+mapType=atomic` in k8s.io/api and k8s.io/apimachinery.
ATOMIC_STRUCTS = frozenset(
    (
        "admissionregistration/v1.MatchResources",
        "admissionregistration/v1.NamedRuleWithOperations",
        "admissionregistration/v1.ParamKind",
        "admissionregistration/v1.ParamRef",
        "admissionregistration/v1.Variable",
        "autoscaling/v1.CrossVersionObjectReference",
        "core/v1.ConfigMapKeySelector",
        "core/v1.EndpointAddress",
        "core/v1.EndpointPort",
        "core/v1.FileKeySelector",
        "core/v1.LocalObjectReference",
        "core/v1.NodeSelector",
        "core/v1.NodeSelectorTerm",
        "core/v1.ObjectFieldSelector",
        "core/v1.ObjectReference",
        "core/v1.ResourceFieldSelector",
        "core/v1.ScopeSelector",
        "core/v1.SecretKeySelector",
        "core/v1.SecretReference",
        "core/v1.TopologySelectorTerm",
        "core/v1.TypedLocalObjectReference",
        "discovery/v1.EndpointPort",
        "meta/v1.LabelSelector",
        "meta/v1.OwnerReference",
        "networking/v1.ServiceBackendPort",
        "rbac/v1.RoleRef",
        "rbac/v1.Subject",
    )
)
ATOMIC_MAPS = frozenset(
    {
        ("core/v1.PodSpec", "nodeSelector"),
        ("core/v1.ServiceSpec", "selector"),
        ("core/v1.ReplicationControllerSpec", "selector"),
        ("node/v1.Scheduling", "nodeSelector"),
    }
)
#: Lists whose keys under structured merge are more than their `patchMergeKey`.
LIST_MAPS = {
    ("core/v1.Container", "ports"): ("containerPort", "protocol"),
    ("core/v1.EphemeralContainer", "ports"): ("containerPort", "protocol"),
    ("core/v1.ServiceSpec", "ports"): ("port", "protocol"),
    ("core/v1.PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
    ("core/v1.ResourceRequirements", "claims"): ("name",),
}
SETS = frozenset(
    {
        ("meta/v1.ObjectMeta", "finalizers"),
        ("storage/v1.CSIDriverSpec", "volumeLifecycleModes"),
        ("batch/v1.PodFailurePolicyOnExitCodesRequirement", "values"),
        ("admissionregistration/v1.ValidatingAdmissionPolicyBindingSpec", "validationActions"),
    }
)
KEY_DEFAULTS = {"protocol": "TCP"}


class ComparisonError(Exception):
    """One object cannot be compared, and so the whole application is Unknown."""


def numbered(items: Iterable[Any], key_of: Callable[[Any], tuple]) -> Iterator[tuple[tuple[tuple, int], Any]]:
    """Items with their keys, and how often the key was there before."""
    seen: dict[tuple, int] = {}
    for item in items:
        key = key_of(item)
        yield (key, seen.get(key, 0)), item
        seen[key] = seen.get(key, 0) + 1


def by_key(
    desired: list, live: list, key_of: Callable[[Any], tuple], join: Callable[[Any, Any], Any]
) -> list:
    """Items of both lists: live order where ours agrees with it, else ours; what only live has stays."""
    ours, theirs = dict(numbered(desired, key_of)), dict(numbered(live, key_of))
    joined = {key: join(one, theirs[key]) if key in theirs else one for key, one in ours.items()}
    agrees = [key for key in ours if key in theirs] == [key for key in theirs if key in ours]
    order = [*theirs, *ours] if agrees else [*ours, *theirs]
    return [joined.get(key, theirs.get(key)) for key in dict.fromkeys(order)]


@dataclass(frozen=True)
class Shape:
    """The type of a value for structured merge: `form` is map, list, any, or a scalar's type."""

    form: str = "any"
    relation: str = "granular"
    keys: tuple[str, ...] = ()
    child: Callable[[str], Shape | None] = lambda _: ANY
    item: Callable[[], Shape] = lambda: ANY

    def identity(self, value: Any) -> tuple:
        """What tells an item of a keyed list or of a set from the others."""
        if not self.keys:
            return (json.dumps(value) if isinstance(value, dict | list) else value,)
        return tuple(value.get(key, KEY_DEFAULTS.get(key)) for key in self.keys)


ANY = Shape()


def typed(
    written: str, table: builtin.Types, place: tuple[str, str] = ("", ""), merge_key: str = ""
) -> Shape:
    """The shape of one of Kubernetes' own types."""
    bare = written.removeprefix("*")
    if bare.startswith("[]"):
        keys = LIST_MAPS.get(place, (merge_key,) if merge_key else ())
        relation = "keyed" if keys or place in SETS else "atomic"
        return Shape("list", relation, keys, item=lambda: typed(bare[2:], table))
    if bare.startswith("{}"):
        relation = "atomic" if place in ATOMIC_MAPS else "granular"
        return Shape("map", relation, child=lambda _: typed(bare[2:], table))
    struct = table.struct(bare)
    if struct is None:
        return Shape(bare if bare in ("string", "bool", "int", "float", "bytes") else "any")

    def child(key: str) -> Shape | None:
        field = struct.get(key)
        return None if field is None else typed(field.type, table, (bare, key), field.merge_key)

    return Shape("map", "atomic" if bare in ATOMIC_STRUCTS else "granular", child=child)


def custom(schema: dict | None, table: builtin.Types) -> Shape:
    """The shape of a custom resource, whose metadata is that of every object."""
    body = _described(schema) if schema else replace(ANY, form="map")
    own = {
        "apiVersion": Shape("string"),
        "kind": Shape("string"),
        "metadata": typed("meta/v1.ObjectMeta", table),
    }
    return replace(body, child=lambda key: own.get(key) or body.child(key))


def _described(schema: dict) -> Shape:
    """The shape that an OpenAPI schema gives; lists are atomic and maps granular unless it says otherwise."""
    match schema.get("type"):
        case _ if schema.get("x-kubernetes-int-or-string"):
            return ANY
        case "array":
            kind = schema.get("x-kubernetes-list-type", "atomic")
            keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
            return Shape(
                "list",
                "atomic" if kind == "atomic" else "keyed",
                keys,
                item=lambda: _described(schema["items"]),
            )
        case "object":
            return Shape("map", schema.get("x-kubernetes-map-type", "granular"), child=_fields(schema))
        case scalar:
            return Shape(
                {"boolean": "bool", "integer": "int", "number": "float"}.get(scalar, scalar or "any")
            )


def _fields(schema: dict) -> Callable[[str], Shape | None]:
    known, more = schema.get("properties", {}), schema.get("additionalProperties")
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or more is True or not (known or more)

    def child(key: str) -> Shape | None:
        if key in known:
            return _described(known[key])
        return _described(more) if isinstance(more, dict) else ANY if is_open else None

    return child


def check(shape: Shape, value: Any, path: tuple) -> None:
    """Refuse what structured-merge-diff cannot read as this type; nulls are read as anything."""
    if shape.form == "any" or value is None:
        return
    where = ".".join(map(str, path))
    wanted = {
        "map": dict,
        "list": list,
        "string": str,
        "bytes": str,
        "bool": bool,
        "int": int,
        "float": (int, float),
    }
    is_number = shape.form in ("int", "float")
    if not isinstance(value, wanted[shape.form]) or (is_number and isinstance(value, bool)):
        raise ComparisonError(f"{where}: wanted {shape.form}")
    if isinstance(value, dict):
        for key, one in value.items():
            child = shape.child(key)
            if child is None:
                raise ComparisonError(f"{where}: unknown field {key}")
            check(child, one, (*path, key))
    elif isinstance(value, list):
        for n, one in enumerate(value):
            check(shape.item(), one, (*path, n))
        if shape.relation == "keyed":
            names = [shape.identity(one) for one in value]
            if len(set(names)) < len(names) or any(None in name for name in names):
                raise ComparisonError(f"{where}: an item's key is missing or there twice")


def merge(shape: Shape, desired: Any, live: Any) -> Any:
    """Live after applying what is desired, by force."""
    if desired is None:
        return live if isinstance(live, dict) else None
    if shape.relation != "atomic" and isinstance(desired, dict) and isinstance(live, dict):
        inner = ((key, one, shape.child(key) or ANY) for key, one in desired.items())
        return {
            **live,
            **{key: merge(kind, one, live[key]) if key in live else one for key, one, kind in inner},
        }
    if shape.relation == "keyed" and isinstance(desired, list) and isinstance(live, list):
        return by_key(desired, live, shape.identity, lambda one, now: merge(shape.item(), one, now))
    return deepcopy(desired)


def has(shape: Shape, value: Any, path: tuple) -> bool:
    if not path:
        return True
    found = _step(shape, value, path[0])
    return found is not None and has(found[0], found[1], path[1:])


def _step(shape: Shape, value: Any, step: Any) -> tuple[Shape, Any] | None:
    """What one step of a path leads to."""
    if isinstance(value, dict) and step in value:
        return shape.child(step) or ANY, value[step]
    if isinstance(value, list) and shape.relation == "keyed":
        return next(((shape.item(), one) for one in value if shape.identity(one) == step), None)
    return None


def removed(shape: Shape, value: Any, path: tuple) -> Any:
    """Without what a path leads to."""
    found = _step(shape, value, path[0])
    if found is None:
        return value
    if isinstance(value, dict):
        rest = {key: one for key, one in value.items() if key != path[0]}
        return {**rest, path[0]: removed(*found, path[1:])} if path[1:] else rest
    rest = [removed(*found, path[1:])] if path[1:] else []
    return [new for one in value for new in (rest if shape.identity(one) == path[0] else [one])]
