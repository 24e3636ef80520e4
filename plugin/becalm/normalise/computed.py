"""Sets of fields that no list of paths can name: they depend on an object's type, schema or values.

A rule names one in the place of its paths (`strip: nulls`). Each changes one object in place, tells the paths
that it changed, and changes nothing the second time.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from becalm.manifests.objects import Object
from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value
from becalm.normalise import builtin, defaults, definitions, known
from becalm.normalise.builtin import Types
from becalm.normalise.decisions import May
from becalm.normalise.definitions import Definitions
from becalm.normalise.look import GAP, Look, opens_nothing
from becalm.normalise.places import at, remove


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the cluster."""

    kube_version: str
    types: Types
    definitions: Definitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """One set of fields.

    `about` is what it is for people. `may_be_in` tells from a text whether it may hold some of the set;
    `apply` changes an object in place, where it may, and gives the paths of what it changed.
    """

    about: str
    may_be_in: Callable[[Look, Facts], bool]
    apply: Callable[[Object, Facts, May], list[Path]]


def _is_built_in(look: Look) -> bool:
    return not look.kinds or not look.kinds.isdisjoint(builtin.names())


# --- strip: nulls

_NULL_WORDS = ("~", "null", "Null", "NULL", "{")
_WRITTEN_NULL = re.compile(rf":{GAP}(?:(?:null|Null|NULL|~)(?=[\s#,}}]|\Z)|[,}}])|!!null")
_NO_VALUE = re.compile(r":[ \t]*(?:#[^\n]*)?(?:\n|\Z)")


def _may_hold_null(look: Look, _: Facts) -> bool:
    """Whether some key has no value: nothing deeper stands below it, or it says null.

    Of definitions only the metadata counts: what is null in them elsewhere is data of a schema. Data of
    ConfigMaps and Secrets is never touched.
    """
    text = look.block("metadata") if look.kinds == {definitions.KIND} else look.shallow
    if look.is_opaque:
        return True
    if any(word in text for word in _NULL_WORDS) and _WRITTEN_NULL.search(text) is not None:
        return True
    return any(opens_nothing(text, match.start()) for match in _NO_VALUE.finditer(text))


#: Argo CD takes it away before it compares (gitops-engine, pkg/diff, `Normalize`).
_OWN_TIME: Path = ("metadata", "creationTimestamp")
#: Null is how a manifest of another strategy has the server take its own default away, under server-side apply.
_UNSET = "rollingUpdate"


def _nulls(obj: Object, facts: Facts, may: May) -> list[Path]:
    """Nulls that mean their absence: of fields by type, by schema where one is at hand, and in metadata.

    A key of a map, such as a selector, a ConfigMap's data or a request, is kept: Go reads "" or 0 there, which
    is another thing than no key. Only annotations without a value are taken away.
    """
    if facts.types.of(obj):
        is_data = obj.get("kind") == definitions.KIND
        found = [
            path
            for path, value, field, _ in builtin.walk(obj, facts.types)
            if value is None
            and field is not None
            and path != _OWN_TIME
            and path[-1] != _UNSET
            and not (is_data and path[0] != "metadata")
        ]
        return remove(obj, [path for path in (*found, *_annotations(obj)) if may(path)])
    found = [*_annotations(obj), *_creation_timestamps(obj)]
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        found += [("metadata", key) for key, value in metadata.items() if value is None]
    done = remove(obj, [path for path in dict.fromkeys(found) if path != _OWN_TIME and may(path)])
    schema = facts.definitions.schema(obj)
    return done + (defaults.prune_nulls(obj, schema, may) if schema is not None else [])


#: Where objects have metadata: their own, and that of their templates.
_METADATA = (
    ("metadata",),
    ("spec", "template", "metadata"),
    ("spec", "jobTemplate", "metadata"),
    ("spec", "jobTemplate", "spec", "template", "metadata"),
)


def _annotations(obj: Object) -> Iterator[Path]:
    """Annotations of the object, and of its templates, that have no value."""
    for holder in _METADATA:
        value: Any = obj
        for step in (*holder, "annotations"):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, dict):
            yield from ((*holder, "annotations", key) for key, one in value.items() if one is None)


def _creation_timestamps(obj: Object) -> Iterator[Path]:
    """Null times of metadata at any depth, as Go programs print them in templates."""
    todo: list[tuple[Path, Value]] = [((), obj)]
    while todo:
        path, value = todo.pop()
        children: Any = ()
        if isinstance(value, dict):
            if path[-1:] == ("metadata",) and value.get("creationTimestamp", "") is None:
                yield (*path, "creationTimestamp")
            children = value.items()
        elif isinstance(value, list):
            children = enumerate(value)
        todo += [((*path, key), child) for key, child in children if isinstance(child, dict | list)]


# --- strip: unknown-fields, empty-fields, duplicates


def _unknown(obj: Object, facts: Facts, may: May) -> list[Path]:
    found = [one.path for one in builtin.misfits(obj, facts.types) if one.is_unknown and may(one.path)]
    return remove(obj, found)


_EMPTY = re.compile(r"\[[ \t]*\]|\{[ \t]*\}|\"\"|''|[|>][-+0-9]*[ \t]*\n|!!")


def _may_hold_empty(look: Look, _: Facts) -> bool:
    return _is_built_in(look) and (look.is_opaque or _EMPTY.search(look.text) is not None)


def _empty(obj: Object, facts: Facts, may: May) -> list[Path]:
    """Empty lists, maps and texts that Go leaves out; pointers and structs are kept, since there empty means something."""
    found = [
        path
        for path, value, field, _ in builtin.walk(obj, facts.types)
        if value in ("", [], {})
        and field is not None
        and field.omitempty
        and (field.type in ("string", "bytes") or field.type[:2] in ("[]", "{}"))
        and may(path)
    ]
    return remove(obj, found)


#: Every `patchMergeKey` of k8s.io/api.
_MERGE_KEYS = (
    "containerPort", "devicePath", "ip", "mountPath", "name", "port", "resourceClaimName", "status", "topologyKey",
    "type", "uid",
)  # fmt: skip
#: Such a key in a line of its own, or first in an element's, with its value.
_KEYED = re.compile(
    rf"^([ \t]*)(-[ \t]+)?[\"']?({'|'.join(_MERGE_KEYS)})[\"']?[ \t]*:{GAP}[\"']?([^\n]*)$", re.MULTILINE
)
#: A value that may be the same as one in other signs: `!!int "80"`, 0x50, 8_0.
_OTHER_FORM = re.compile(r"[!&*|>]|[-+]?0\w|[-+]|\d+_")
#: Elements whose keys stand in columns of their own.
_WIDE = re.compile(r"^[ \t]*-(?:[ \t]{2,}|[ \t]+-[ \t])", re.MULTILINE)
#: Kinds without keyed lists and without quantities, whose texts are long or look as if they had some.
_PLAIN = {"ConfigMap", "Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "NetworkPolicy"}


#: The fields besides the merge key that tell elements apart (`+listMapKey` in k8s.io/api), with their defaults.
_MORE_KEYS = {"containerPort": (("protocol", "TCP"),), "port": (("protocol", "TCP"),)}


def _may_hold_duplicates(look: Look, _: Facts) -> bool:
    """Whether some key of an element has one value twice at one depth."""
    if not _is_built_in(look) or (
        look.kinds and look.kinds <= _PLAIN and "ownerReferences" not in look.block("metadata")
    ):
        return False
    if look.is_opaque or look.has_braces or _WIDE.search(look.text) is not None:
        return True
    found = [
        (len(match[1]) + (2 if match[2] else 0), match[3], match[4].partition(" #")[0].rstrip(" \t\"'"))
        for match in _KEYED.finditer(look.text)
    ]
    return len(set(found)) < len(found) or any(_OTHER_FORM.match(value) for _, _, value in found)


def _duplicates(obj: Object, facts: Facts, may: May) -> list[Path]:
    """Elements of keyed lists that say nothing: the same element again, or a variable that a later one sets."""
    found: set[Path] = set()
    order: list[Path] = []
    for path, value, field, _ in builtin.walk(obj, facts.types):
        if field is None or not field.merge_key or not isinstance(value, list):
            continue
        if any(path[:length] in found for length in range(1, len(path))):
            continue
        for index in _doubled(value, field.merge_key, is_env=path[-1] == "env"):
            if not may((*path, index)):
                continue
            order.append((*path, index))
            found.add((*path, index))
    return remove(obj, order)


def _doubled(elements: list[Value], key: str, *, is_env: bool) -> list[int]:
    places: dict[tuple[Any, ...], list[int]] = {}
    reads = _reads(elements) if is_env else {}
    for index, element in enumerate(elements):
        if isinstance(element, dict) and isinstance(element.get(key), str | int):
            more = [element.get(name, usual) for name, usual in _MORE_KEYS.get(key, ())]
            if not all(isinstance(one, str) for one in more):
                continue
            places.setdefault((element[key], *more), []).append(index)
    doubled: list[int] = []
    for identity, indices in places.items():
        if len(indices) == 1:
            continue
        name = str(identity[0])
        if is_env and (len(name) > _LONGEST_NAME or _is_between(reads.get(name, ()), indices)):
            continue
        if all(elements[index] == elements[indices[0]] for index in indices):
            doubled += indices[1:]
        elif is_env and not _may_be_unset(elements[indices[-1]]):
            # The last one counts in a container, and nothing up to there reads an earlier one.
            doubled += indices[:-1]
    return doubled


def _may_be_unset(variable: Value) -> bool:
    """Whether a variable comes from where it may be missing; an earlier one of its name counts then."""
    source = variable.get("valueFrom") if isinstance(variable, dict) else None
    return isinstance(source, dict) and any(
        isinstance(one, dict) and one.get("optional") not in (None, False) for one in source.values()
    )


_LONGEST_NAME = 300
_READ = re.compile(rf"(?=\$\(([^)]{{0,{_LONGEST_NAME}}})\))")


def _reads(elements: list[Value]) -> dict[str, list[int]]:
    """Where the values of variables refer to others, by their names."""
    found: dict[str, list[int]] = {}
    for index, element in enumerate(elements):
        text = str(element.get("value")) if isinstance(element, dict) else ""
        for name in _READ.findall(text) if "$(" in text else ():
            found.setdefault(name, []).append(index)
    return found


def _is_between(reads: Sequence[int], indices: list[int]) -> bool:
    """Whether one of the places is behind the first index and not behind the last one."""
    at_ = bisect.bisect_right(reads, indices[0])
    return at_ < len(reads) and reads[at_] <= indices[-1]


# --- fill: defaults from definitions


def _may_be_defined(look: Look, facts: Facts) -> bool:
    if look.kinds == {definitions.KIND} or look.group == "":
        return False
    return not look.kinds or any(
        (look.group, kind) not in builtin.known() and facts.definitions.may_know(kind)
        for kind in sorted(look.kinds)
    )


def _defined(obj: Object, facts: Facts, may: May, *, everywhere: bool = False) -> list[Path]:
    schema = facts.definitions.schema(obj)
    return [] if schema is None else defaults.fill(obj, schema, may, everywhere=everywhere)


def _defined_everywhere(obj: Object, facts: Facts, may: May) -> list[Path]:
    return _defined(obj, facts, may, everywhere=True)


def _may_be_known(look: Look, _: Facts) -> bool:
    return not look.kinds or any(kind.lower() in known.kinds() for kind in look.kinds)


def _known(obj: Object, facts: Facts, may: May) -> list[Path]:
    """Nothing where a definition is at hand: it says more than what is known without it."""
    if facts.definitions.schema(obj) is not None:
        return []
    schema = known.schema(f"{obj.get('apiVersion')}", f"{obj.get('kind')}")
    return [] if schema is None else defaults.fill(obj, schema, may)


# --- canonicalise


#: Fields that are quantities, and the names of resources: Kubernetes' own, and others' with a slash
#: (pkg/apis/core/validation of Kubernetes).
_QUANTITIES = re.compile(
    r"(?:cpu|memory|storage|hugepages-\w+|sizeLimit|divisor|[vV]alue|imumVolumeSize|capacity|/[\w.-]+)"
    rf"[\"']?[ \t]*:(?={GAP}([\"']?)([^\s\"',{{}}\[\]]*))"
)
#: Kinds with quantities by names of every sort.
_QUOTAS = {"ResourceQuota", "LimitRange", "Node"}


def _may_hold_raw_forms(look: Look, _: Facts) -> bool:
    if not _is_built_in(look) or (look.kinds and look.kinds <= _PLAIN):
        return False
    if look.is_opaque or not look.kinds.isdisjoint(_QUOTAS):
        return True
    return any(_may_be_raw(match[2], is_quoted=bool(match[1])) for match in _QUANTITIES.finditer(look.text))


def _may_be_raw(text: str, *, is_quoted: bool) -> bool:
    """Whether the text of a value may be a quantity in another form than it is stored in."""
    if text[:1] in ("", "|", ">", "&", "*", "!"):
        return True
    form = builtin.canonical(text, "quantity")
    return form is not None and (
        form != text or (not is_quoted and text.lstrip("+-")[:1].isdigit() and text[-1:].isdigit())
    )


def _raw_forms(obj: Object, facts: Facts, may: May) -> list[Path]:
    """Quantities of an object that Argo CD compares as raw text, because some field does not fit its type."""
    if next(builtin.misfits(obj, facts.types), None) is None:
        return []
    done: list[Path] = []
    for path, value, field, _ in list(builtin.walk(obj, facts.types)):
        if field is None:
            continue
        form = field.type.removeprefix("*")
        places = [path]
        if form.startswith("{}") and isinstance(value, dict):
            form, places = form[2:], [(*path, key) for key in value]
        if form != "quantity":
            continue
        for place in places:
            new = builtin.canonical(at(obj, place), form)
            if new is not None and new != at(obj, place) and may(place):
                holder: Any = at(obj, place[:-1])
                holder[place[-1]] = new
                done.append(place)
    return done


#: The first release that stores autoscaling/v2 (test/integration/etcd/data.go of Kubernetes). Older ones store
#: autoscaling/v1, where a CPU utilisation is a field of its own, which is read back behind all other metrics
#: (pkg/apis/autoscaling/v1/conversion.go).
_KEEPS_METRIC_ORDER = 27
_METRICS: Path = ("spec", "metrics")


def _may_hold_metrics(look: Look, facts: Facts) -> bool:
    return builtin.is_older(facts.kube_version, _KEEPS_METRIC_ORDER) and "metrics" in look.text


def _metric_order(obj: Object, facts: Facts, may: May) -> list[Path]:
    if not builtin.is_older(facts.kube_version, _KEEPS_METRIC_ORDER):
        return []
    spec: Any = obj.get("spec")
    metrics = spec.get("metrics") if isinstance(spec, dict) else None
    if not isinstance(metrics, list):
        return []
    found = [index for index, metric in enumerate(metrics) if _is_cpu_utilisation(metric)]
    # Of several only one is kept by such a server; which one is meant is the author's to say.
    if len(found) != 1 or found[0] == len(metrics) - 1 or not may(_METRICS):
        return []
    metrics.append(metrics.pop(found[0]))
    return [_METRICS]


def _is_cpu_utilisation(metric: Any) -> bool:
    resource = (
        metric.get("resource") if isinstance(metric, dict) and metric.get("type") == "Resource" else None
    )
    if not isinstance(resource, dict) or resource.get("name") != "cpu":
        return False
    target = resource.get("target")
    return isinstance(target, dict) and target.get("averageUtilization") is not None


#: By name; docs/rules.md explains them.
SETS: dict[str, Computed] = {
    "nulls": Computed(
        about="nulls that the API server drops", may_be_in=_may_hold_null, apply=_nulls
    ),
    "unknown-fields": Computed(
        about="fields that the kind does not have",
        may_be_in=lambda look, _: _is_built_in(look), apply=_unknown,
    ),
    "empty-fields": Computed(
        about="empty lists, maps and texts that mean their absence",
        may_be_in=_may_hold_empty, apply=_empty,
    ),
    "duplicates": Computed(
        about="elements of keyed lists that are there twice",
        may_be_in=_may_hold_duplicates, apply=_duplicates,
    ),
    "definition-defaults": Computed(
        about="defaults of the definition at hand, inside lists and atomic maps",
        may_be_in=_may_be_defined, apply=_defined,
    ),
    "definition-defaults-everywhere": Computed(
        about="all defaults of the definition at hand",
        may_be_in=_may_be_defined, apply=_defined_everywhere,
    ),
    "known-defaults": Computed(
        about="defaults inside lists that becalm knows of well-known kinds",
        may_be_in=_may_be_known, apply=_known,
    ),
    "raw-forms": Computed(
        about="quantities of objects that Argo CD compares as raw text",
        may_be_in=_may_hold_raw_forms, apply=_raw_forms,
    ),
    "metric-order": Computed(
        about="the order of metrics, as servers before 1.27 store them",
        may_be_in=_may_hold_metrics, apply=_metric_order,
    ),
}  # fmt: skip
