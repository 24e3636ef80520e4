"""How Argo CD decides that an object is out of sync, as far as tests need it.

`legacy` is its usual three-way comparison, `merged` is the structured merge of server-side apply (gitops-engine,
pkg/diff/diff.go). Left out: resource tracking, ignoreDifferences but for the status, knownTypeFields, the
comparison on the server (there the API server normalises both sides), PodDisruptionBudget selectors, and
the defaults that `scheme_defaults` lacks.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Sequence
from typing import Any

import scheme_defaults

from becalm.normalise import builtin
from becalm.normalise.builtin import Types

_ATOMIC_STRUCTS = frozenset(
    (
        "core/v1.ConfigMapKeySelector", "core/v1.LocalObjectReference", "core/v1.NodeSelector",
        "core/v1.ObjectFieldSelector", "core/v1.ObjectReference", "core/v1.ResourceFieldSelector",
        "core/v1.SecretKeySelector", "core/v1.TypedLocalObjectReference", "meta/v1.LabelSelector",
        "networking/v1.ServiceBackendPort", "rbac/v1.RoleRef", "rbac/v1.Subject",
    )
)  # fmt: skip
#: Besides the merge key, for structured merge (`+listMapKey`).
_MORE_KEYS = {"containerPort": ("protocol", "TCP"), "port": ("protocol", "TCP")}
_RETAINS_KEYS = ("strategy", "volumes")


class ComparisonError(Exception):
    """The comparison fails, which makes the whole application Unknown."""


# --- what happens to both sides first


def _remarshal(obj: dict, types: Types) -> dict:
    """Through the Go type, which drops what it leaves out and writes quantities its way; raw if a field misfits."""
    root = types.of(obj)
    if not root or next(builtin.misfits(obj, types), None) is not None:
        return copy.deepcopy(obj)
    return _encode(obj, root, types)


def _encode(value: Any, written: str, types: Types) -> Any:
    written = written.removeprefix("*")
    if value is None:
        return None
    if written.startswith("[]"):
        return [_encode(one, written[2:], types) for one in value]
    if written.startswith("{}"):
        zero = "" if written == "{}string" else None
        return {key: zero if one is None else _encode(one, written[2:], types) for key, one in value.items()}
    if written in ("quantity", "duration"):
        return builtin.canonical(value, written)
    struct = types.struct(written)
    if struct is None:
        return copy.deepcopy(value)
    out = {}
    for key, one in value.items():
        if key not in struct:
            out[key] = one
            continue
        new = _encode(one, struct[key].type, types)
        is_zero = new is None or (not struct[key].type.startswith("*") and new in ("", 0, False, [], {}))
        if is_zero and types.struct(struct[key].type) is not None and new is not None:
            is_zero = False
        if not (is_zero and struct[key].omitempty):
            out[key] = new
    return out


def _normalise(obj: dict, *, ignore_status: bool) -> dict:
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("creationTimestamp", None)
    if ignore_status:
        obj.pop("status", None)
    if obj.get("kind") == "Secret":
        data = {key: value or "" for key, value in (obj.get("data") or {}).items()}
        for key, value in (obj.pop("stringData", None) or {}).items():
            data[key] = base64.b64encode(str(value).encode()).decode()
        if data:
            obj["data"] = data
    if obj.get("kind") in ("Role", "ClusterRole") and obj.get("rules") == []:
        obj["rules"] = None
    return obj


def _prepared(obj: dict, types: Types, *, ignore_status: bool) -> dict:
    return _normalise(_remarshal(obj, types), ignore_status=ignore_status)


def _defaulted(first: dict, second: dict, types: Types) -> tuple[dict, dict]:
    """Both with scheme defaults, which need the Go type as well."""
    if any(next(builtin.misfits(obj, types), None) is not None for obj in (first, second)):
        return first, second
    return scheme_defaults.fill(first), scheme_defaults.fill(second)


# --- the usual comparison


def legacy(
    desired: dict,
    live: dict | None,
    applied: dict | None = None,
    *,
    kube_version: str = "",
    ignore_status: bool = True,
) -> bool:
    """Whether an object is out of sync; `applied` is what its last-applied annotation holds."""
    if live is None:
        return True
    types = builtin.types(kube_version)
    want = _prepared(desired, types, ignore_status=ignore_status)
    have = _prepared(live, types, ignore_status=ignore_status)
    orig = want if applied is None else _normalise(copy.deepcopy(applied), ignore_status=ignore_status)
    want, orig = _without_defaults_of_argo(want), _without_defaults_of_argo(orig)
    root = types.of(desired)
    if not root:
        cut = _cut(have, orig)
        return _merge_patch(cut, want, orig, have) != cut
    if desired.get("kind") == "StatefulSet":
        _cut_claims(have, want)
    predicted, have = _defaulted(_strategic(have, want, orig, root, types), have, types)
    return predicted != have


def _without_defaults_of_argo(obj: dict) -> dict:
    obj = copy.deepcopy(obj)
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("namespace", None)
        if not metadata.get("annotations", True):
            del metadata["annotations"]
    return obj


def _cut_claims(have: dict, want: dict) -> None:
    claims, wanted = (obj.get("spec", {}).get("volumeClaimTemplates") for obj in (have, want))
    if isinstance(claims, list) and isinstance(wanted, list):
        have["spec"]["volumeClaimTemplates"] = _cut(claims, wanted)


def _cut(live: Any, orig: Any) -> Any:
    """What of a live value was applied; elements of lists by their place, further ones are kept."""
    if isinstance(live, dict) and isinstance(orig, dict):
        return {key: _cut(value, orig[key]) for key, value in live.items() if key in orig}
    if isinstance(live, list) and isinstance(orig, list):
        return [_cut(one, orig[n]) if n < len(orig) else one for n, one in enumerate(live)]
    return live


def _merge_patch(cut: Any, want: Any, orig: Any, live: Any) -> Any:
    """The live value after a JSON merge patch of three ways."""
    if not (isinstance(cut, dict) and isinstance(want, dict)):
        if isinstance(cut, list) and isinstance(want, list) and _same_elements(cut, want, live):
            return cut
        return want
    orig = orig if isinstance(orig, dict) else {}
    live = live if isinstance(live, dict) else {}
    out = {key: value for key, value in cut.items() if key in want or key not in orig}
    for key, value in want.items():
        if value is not None:
            out[key] = (
                _merge_patch(cut[key], value, orig.get(key), live.get(key))
                if key in cut
                else _without_nulls(value)
            )
    return out


def _same_elements(cut: list, want: list, live: Any) -> bool:
    """Nulls of an element are silent, unless the live one has fields of its own."""
    if len(cut) != len(want):
        return False
    for place, (one, wanted) in enumerate(zip(cut, want, strict=True)):
        if one == wanted:
            continue
        whole = live[place] if isinstance(live, list) and place < len(live) else one
        if whole != one or _without_nulls(wanted) != one:
            return False
    return True


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return value


def _strategic(live: Any, want: Any, orig: Any, written: str, types: Types) -> Any:
    """The live value after a strategic merge patch of three ways."""
    if not (isinstance(live, dict) and isinstance(want, dict)):
        return want
    struct = types.struct(written.removeprefix("*")) or {}
    orig = orig if isinstance(orig, dict) else {}
    out = {key: value for key, value in live.items() if key not in orig or want.get(key) is not None}
    for key, value in want.items():
        field = struct.get(key)
        inner = field.type.removeprefix("*") if field else ""
        if value is None:
            out.pop(key, None)
        elif key not in live:
            out[key] = value
        elif (
            field is not None and field.merge_key and isinstance(value, list) and isinstance(live[key], list)
        ):
            out[key] = _strategic_list(live[key], value, orig.get(key), (field.merge_key, inner[2:]), types)
        elif isinstance(value, dict):
            out[key] = _strategic(live[key], value, orig.get(key), inner, types)
            if key in _RETAINS_KEYS:
                out[key] = {name: one for name, one in out[key].items() if name in value}
        else:
            out[key] = value
    return out


def _strategic_list(live: list, want: list, orig: Any, element: tuple[str, str], types: Types) -> list:
    """Elements by key: those of the live list in their places, ours in our order."""
    key, written = element

    def keyed(items: Any) -> dict:
        return {one.get(key): one for one in items or () if isinstance(one, dict)}

    had, wanted, applied = keyed(live), keyed(want), keyed(orig)
    shared = iter([name for name in wanted if name in had])
    out = []
    for one in live:
        name = one.get(key)
        if name in wanted:
            name = next(shared, None)
            if name is not None:
                out.append(_strategic(had[name], wanted[name], applied.get(name), written, types))
        elif name not in applied:
            out.append(one)
    return out + [one for name, one in wanted.items() if name not in had]


# --- structured merge


def merged(
    desired: dict,
    live: dict | None,
    owned: Sequence[tuple] = (),
    *,
    kube_version: str = "",
    ignore_status: bool = True,
) -> bool:
    """Whether an object is out of sync under server-side apply.

    `owned` are paths that Argo CD, and nobody else, has applied.

    Raises:
        ComparisonError: the object does not fit its type, or a key of a list is there twice.
    """
    if live is None:
        return True
    types = builtin.types(kube_version)
    if next(builtin.misfits(desired, types), None) is not None:
        raise ComparisonError("a field does not fit its type")
    want = _prepared(desired, types, ignore_status=ignore_status)
    have = _prepared(live, types, ignore_status=ignore_status)
    predicted = _apply(have, want, types.of(desired), types)
    for path in owned:
        _drop(predicted, want, path)
    predicted, have = _defaulted(predicted, have, types)
    return predicted != have


def _apply(live: Any, want: Any, written: str, types: Types) -> Any:
    written = written.removeprefix("*")
    if not (isinstance(live, dict) and isinstance(want, dict)) or written in _ATOMIC_STRUCTS:
        _check_keys(want, written, types)
        return want
    struct = types.struct(written) or {}
    out = dict(live)
    for key, value in want.items():
        field = struct.get(key)
        inner = field.type.removeprefix("*") if field else ""
        if field is not None and field.merge_key and isinstance(value, list):
            out[key] = _apply_list(live.get(key), value, (field.merge_key, inner[2:]), types)
        elif key == "finalizers" and isinstance(value, list):
            out[key] = [*value, *(one for one in live.get(key) or () if one not in value)]
        else:
            out[key] = _apply(live.get(key), value, inner, types)
    return out


def _apply_list(live: Any, want: list, element: tuple[str, str], types: Types) -> list:
    key, written = element
    more = _MORE_KEYS.get(key)

    def keyed(items: Any) -> dict:
        found: dict = {}
        for one in items or ():
            name = (one.get(key), one.get(more[0], more[1]) if more else None)
            if name in found:
                raise ComparisonError(f"the key {name} is there twice")
            found[name] = one
        return found

    had, wanted = keyed(live), keyed(want)
    shared = iter([name for name in wanted if name in had])
    out = []
    for name, one in had.items():
        name = next(shared) if name in wanted else name  # noqa: PLW2901  # our order in the live places
        out.append(_apply(had[name], wanted[name], written, types) if name in wanted else one)
    return out + [one for name, one in wanted.items() if name not in had]


def _check_keys(value: Any, written: str, types: Types) -> None:
    """Keys that are there twice below something that only we have."""
    struct = types.struct(written) or {}
    for key, one in value.items() if isinstance(value, dict) else ():
        field = struct.get(key)
        if field is not None and field.merge_key and isinstance(one, list):
            _apply_list([], one, (field.merge_key, field.type.removeprefix("*")[2:]), types)


def _drop(predicted: dict, want: dict, path: tuple) -> None:
    holder: Any = predicted
    wanted: Any = want
    for step in path[:-1]:
        try:
            holder = holder[step]
            wanted = wanted[step] if wanted is not None else None
        except (KeyError, IndexError, TypeError):
            if not isinstance(holder, dict | list):
                return
            wanted = None
    if isinstance(holder, dict) and not (isinstance(wanted, dict) and path[-1] in wanted):
        holder.pop(path[-1], None)
