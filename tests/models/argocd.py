"""How Argo CD decides that an object is OutOfSync, as its own source does (gitops-engine, pkg/diff).

`legacy` is mode L (three-way, without a last-applied annotation two-way), `merged` mode M (structured merge).
Left out: mode S, resource tracking, ignoreDifferences and managedFieldsManagers, knownTypeFields, the order of
Endpoints, ignoreAggregatedRoles, fields in another case than the type's (here they are unknown), and defaults
that scheme_defaults lacks. In mode M only what is desired is checked against its type, and where the schema of
a custom resource is not given, nothing but its metadata is.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import scheme_defaults
import structured_merge
from structured_merge import ComparisonError, by_key, numbered

from becalm.normalise import builtin

__all__ = ["ComparisonError", "legacy", "merged"]

#: `patchStrategy` other than `merge` by key, of k8s.io/api.
RETAIN_KEYS = frozenset(
    {
        ("apps/v1.DeploymentSpec", "strategy"),
        ("core/v1.PodSpec", "volumes"),
        ("core/v1.PodSpec", "resourceClaims"),
    }
)
REPLACED = frozenset({("policy/v1.PodDisruptionBudgetSpec", "selector")})
#: Fields of Go types that are never empty in the eyes of `omitempty`.
NEVER_EMPTY = frozenset(("quantity", "duration", "int-or-string", "any"))
ZEROES = {
    "string": "",
    "bool": False,
    "int": 0,
    "float": 0,
    "int-or-string": 0,
    "quantity": "0",
    "duration": "0s",
}
NULLABLE = frozenset(("bytes", "time", "any"))


def legacy(
    desired: dict,
    live: dict | None,
    applied: dict | None = None,
    *,
    kube_version: str = "",
    ignore_status: bool = True,
) -> bool:
    """Whether an object is OutOfSync in mode L; `applied` is the content of its last-applied annotation."""
    if live is None:
        return True
    table = builtin.types(kube_version)
    name = table.of(desired)
    wanted, present = (prepare(obj, table, ignore_status=ignore_status) for obj in (desired, live))
    original = wanted if applied is None else _normalise(plain(applied), ignore_status=ignore_status)
    wanted, original = (_without_place(obj) for obj in (wanted, original))
    if not name:
        patch = _json_patch(original, wanted, cut(original, present))
        return not same(patched(present, patch), present)
    predicted = _strategic(original, _with_live_claims(original, wanted, present), present, name, table)
    return not same(*(_defaulted(obj, kube_version) for obj in (predicted, present)))


def merged(
    desired: dict,
    live: dict | None,
    owned: Sequence[tuple] = (),
    *,
    kube_version: str = "",
    ignore_status: bool = True,
    schema: dict | None = None,
) -> bool:
    """Whether an object is OutOfSync in mode M.

    Args:
        owned: paths that argocd-controller has applied and nobody else owns. A step is the name of a field, the
            tuple of an item's keys for a list-map, and the tuple of the item itself for a set.
        schema: OpenAPI v3 of a custom resource, with its x-kubernetes markers.

    Raises:
        ComparisonError: a field is unknown or of a wrong type, or an item of a keyed list is there twice.
    """
    if live is None:
        return True
    table = builtin.types(kube_version)
    name = table.of(desired)
    shape = structured_merge.typed(name, table) if name else structured_merge.custom(schema, table)
    structured_merge.check(shape, plain(desired), ())
    wanted, present = (prepare(obj, table, ignore_status=ignore_status) for obj in (desired, live))
    predicted = structured_merge.merge(shape, wanted, present)
    for path in owned:
        if not structured_merge.has(shape, wanted, path):
            predicted = structured_merge.removed(shape, predicted, path)
    sides = (
        (predicted, present) if not name else (_defaulted(obj, kube_version) for obj in (predicted, present))
    )
    return not same(*sides)


def same(one: Any, other: Any) -> bool:
    """Equality of two JSON documents, in which 1 is not true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def plain(value: Any) -> Any:
    """A copy with the numbers that JSON would give back: 1.0 is 1."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# --- the steps that all modes share


def prepare(obj: dict, table: builtin.Types, *, ignore_status: bool) -> dict:
    """Remarshalled, where every field fits its type, and normalised."""
    obj = plain(obj)
    name = table.of(obj)
    if name and not any(builtin.misfits(obj, table)):
        obj = _encode(obj, name, table)
    return _normalise(obj, ignore_status=ignore_status)


def _encode(value: Any, written: str, table: builtin.Types) -> Any:
    """What Go writes of what it has read: `remarshal` in gitops-engine, pkg/diff."""
    bare = written.removeprefix("*")
    if value is None:
        is_nil = bare != written or bare[:2] in ("[]", "{}") or bare in NULLABLE
        return None if is_nil else ZEROES.get(bare, {})
    if bare.startswith("[]"):
        return [_encode(one, bare[2:], table) for one in value]
    if bare.startswith("{}"):
        return {key: _encode(one, bare[2:], table) for key, one in value.items()}
    struct = table.struct(bare)
    if struct is None:
        text = builtin.canonical(value, bare) if bare in ("quantity", "duration") else value
        return "".join(text.split()) if bare == "bytes" else text
    fields = ((key, struct[key], _encode(one, struct[key].type, table)) for key, one in value.items())
    return {key: one for key, field, one in fields if not (field.omitempty and _is_empty(one, field, table))}


def _is_empty(value: Any, field: builtin.Field, table: builtin.Types) -> bool:
    """What `omitempty` leaves out: a pointer only if it is nil, a struct never."""
    if value is None or field.type.startswith("*"):
        return value is None
    return field.type not in NEVER_EMPTY and table.struct(field.type) is None and not value


def _normalise(obj: dict, *, ignore_status: bool) -> dict:
    """`Normalize` of gitops-engine, and the ignored status, which Argo CD's settings add by default."""
    if ignore_status:
        obj.pop("status", None)
    if isinstance(obj.get("metadata"), dict):
        obj["metadata"].pop("creationTimestamp", None)
    version, kind = obj.get("apiVersion", ""), obj.get("kind")
    if (version, kind) == ("v1", "Secret"):
        data = {key: one or "" for key, one in (obj.get("data") or {}).items()}
        for key, text in (obj.pop("stringData", None) or {}).items():
            data[key] = base64.b64encode(str(text).encode()).decode()
        if data:
            obj["data"] = data
    is_role = version.startswith("rbac.authorization.k8s.io/") and kind in ("Role", "ClusterRole")
    if is_role and obj.get("rules") == []:
        obj["rules"] = None
    return obj


def _defaulted(obj: dict, kube_version: str) -> dict:
    """With scheme defaults, which a mistyped field prevents and an unknown one does not."""
    misfits = builtin.misfits(obj, builtin.types(kube_version))
    return obj if any(not one.is_unknown for one in misfits) else scheme_defaults.apply(obj, kube_version)


# --- mode L


def _without_place(obj: dict) -> dict:
    """Without the namespace, and without annotations if there are none (`removeNamespaceAnnotation`)."""
    metadata = {key: one for key, one in (obj.get("metadata") or {}).items() if key != "namespace"}
    if not metadata.get("annotations", True):
        del metadata["annotations"]
    return {**obj, "metadata": metadata} if "metadata" in obj else obj


def cut(original: Any, live: Any) -> Any:
    """Live cut to the keys of what was applied; items by their place, further ones kept (`RemoveMapFields`)."""
    if isinstance(original, dict) and isinstance(live, dict):
        return {key: cut(one, live[key]) for key, one in original.items() if key in live}
    if isinstance(original, list) and isinstance(live, list):
        return [cut(original[n], one) if n < len(original) else one for n, one in enumerate(live)]
    return live


def _json_patch(original: dict, desired: dict, live: dict) -> dict:
    """`CreateThreeWayJSONMergePatch`: changes from live without their nulls, and removals from what was applied."""
    patch = {key: None for key in original if key not in desired}
    for key, one in desired.items():
        before, now = original.get(key), live.get(key)
        if one is None:
            if before is not None:
                patch[key] = None
        elif isinstance(one, dict) and isinstance(now, dict):
            inner = _json_patch(before if isinstance(before, dict) else {}, one, now)
            if inner:
                patch[key] = inner
        elif not same(one, now):
            changes = _changes(one)
            if changes or not isinstance(one, dict) or not one:
                patch[key] = changes
    return patch


def _changes(value: Any) -> Any:
    """A new map without nulls and without maps that held nothing else; empty maps are values."""
    if not isinstance(value, dict):
        return value
    inner = {key: _changes(one) for key, one in value.items() if one is not None}
    return {key: one for key, one in inner.items() if one != {} or value[key] == {}}


def patched(live: Any, patch: Any) -> Any:
    """RFC 7386 as evanphx/json-patch does it: a list replaces, and the maps in it lose their nulls."""
    if isinstance(patch, list):
        return [patched({}, one) if isinstance(one, dict) else one for one in patch]
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for key, one in patch.items():
        if one is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), one)
    return result


def _with_live_claims(original: dict, desired: dict, live: dict) -> dict:
    """With the live claim templates of a StatefulSet, unless they differ in what was applied."""
    kind, claims = desired.get("kind"), "volumeClaimTemplates"
    specs = [obj.get("spec") or {} for obj in (original, desired, live)]
    if kind != "StatefulSet" or not all(isinstance(spec.get(claims), list) for spec in specs):
        return desired
    known = cut(specs[0][claims], specs[2][claims])
    found = specs[2][claims] if same(known, specs[1][claims]) else specs[1][claims]
    return {**desired, "spec": {**specs[1], claims: found}}


def _strategic(original: Any, desired: dict, live: dict, name: str, table: builtin.Types) -> dict:
    """Live after the three-way strategic merge patch (k8s.io/apimachinery, pkg/util/strategicpatch)."""
    bare = name.removeprefix("*")
    struct = table.struct(bare) or {}
    original = original if isinstance(original, dict) else {}
    result = {key: one for key, one in live.items() if key in desired or key not in original}
    for key, one in desired.items():
        written = bare[2:] if bare.startswith("{}") else struct[key].type if key in struct else "any"
        now, before, place = live.get(key), original.get(key), (bare, key)
        if one is None:
            if now is not None:
                result.pop(key)
        elif isinstance(one, dict) and isinstance(now, dict) and place not in REPLACED:
            inner = _strategic(before, one, now, written, table)
            result[key] = {k: v for k, v in inner.items() if k in one} if place in RETAIN_KEYS else inner
        elif isinstance(one, list) and isinstance(now, list) and (key in struct):
            result[key] = _strategic_list(before, one, now, place, table)
        else:
            result[key] = patched({}, one) if isinstance(one, dict) else one
    return result


def _strategic_list(
    original: Any, desired: list, live: list, place: tuple[str, str], table: builtin.Types
) -> list:
    """Merged by key, or the desired list where the type has no key; of duplicates the first one wins."""
    field = (table.struct(place[0]) or {})[place[1]]
    if not field.merge_key and place != ("meta/v1.ObjectMeta", "finalizers"):
        return desired

    def key_of(item: Any) -> tuple:
        return (item.get(field.merge_key) if isinstance(item, dict) else item,)

    def join(one: Any, now: Any) -> Any:
        if not isinstance(one, dict) or not isinstance(now, dict):
            return one
        before = next((item for item in original or () if key_of(item) == key_of(one)), None)
        inner = _strategic(before, one, now, field.type.removeprefix("*")[2:], table)
        return {key: value for key, value in inner.items() if key in one} if place in RETAIN_KEYS else inner

    names = {key_of(item) for item in desired}
    gone = {key_of(item) for item in original or ()} - names
    present = [item for item in live if key_of(item) not in gone]
    counts = {name: len([item for item in live if key_of(item) == name]) for name in names}
    kept = [item for (name, n), item in numbered(desired, key_of) if n < counts[name] or not counts[name]]
    return by_key(kept, present, key_of, join)
