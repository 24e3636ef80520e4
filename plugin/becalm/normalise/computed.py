"""Sets of fields that no list of paths can name: they depend on an object's type, schema or values.

A rule names one in the place of its paths (`strip: nulls`). Each changes one object in place, tells the paths
that it changed, and changes nothing the second time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from becalm.manifests.objects import Object
from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value
from becalm.normalise import builtin, defaults, definitions, known
from becalm.normalise.builtin import Types
from becalm.normalise.defaults import Schema
from becalm.normalise.definitions import Definitions
from becalm.normalise.look import Look
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

    `verb` is the one that it belongs to. `may_be_in` tells from a text whether it may hold some of the set;
    `apply` changes an object in place and gives the paths of what it changed.
    """

    verb: str
    about: str
    may_be_in: Callable[[Look, Facts], bool]
    apply: Callable[[Object, Facts], list[Path]]


def _is_built_in(look: Look) -> bool:
    return not look.kinds.isdisjoint(builtin.names())


# --- strip: nulls

#: What a written null has in its text, and what a line that ends behind its colon may have there.
_NULL_WORDS = ("~", "null", ":,", ":}", "Null", "NULL")
_BLANKS = ((" ", ": \n"), (" ", ":  "), ("\t", ":\t"), ("\r", ":\r"), ("#", ": #"))
_WRITTEN_NULL = re.compile(r":(?:\s|#[^\n]*\n)+(?:null|Null|NULL|~)(?=[\s,}#]|\Z)|:[,}]|!!null")
_NO_VALUE = re.compile(r":[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)")


def _may_hold_null(look: Look, _: Facts) -> bool:
    """Whether some key has no value: nothing deeper stands below it, or it says null.

    Definitions are left alone: what is null in them is data of a schema, or the time that nobody compares.
    """
    if look.kinds == {definitions.KIND}:
        return False
    text = look.text
    if look.is_opaque:
        return True
    if any(word in text for word in _NULL_WORDS) and _WRITTEN_NULL.search(text) is not None:
        return True
    return any(look.opens_nothing(colon) for colon in _line_ends(text))


def _line_ends(text: str) -> Iterator[int]:
    """The places of colons with nothing but blanks and a comment behind them on their line."""
    # A single sign is found much faster than two.
    if any(sign in text and blank in text for sign, blank in _BLANKS) or text.endswith(":"):
        yield from (match.start() for match in _NO_VALUE.finditer(text))
        return
    colon = text.find(":\n")
    while colon >= 0:
        yield colon
        colon = text.find(":\n", colon + 1)


#: Argo CD takes it away before it compares (gitops-engine, pkg/diff, `Normalize`).
_OWN_TIME: Path = ("metadata", "creationTimestamp")
#: Null is how a manifest of another strategy has the server take its own default away, under server-side apply.
_UNSET = "rollingUpdate"


def _nulls(obj: Object, facts: Facts) -> list[Path]:
    """Nulls that the API server drops: by type, by schema where one is at hand, and in any object's metadata."""
    if facts.types.of(obj):
        found = [
            path
            for path, value, field, _ in builtin.walk(obj, facts.types)
            if value is None and field is not None and path != _OWN_TIME and path[-1] != _UNSET
        ]
        return remove(obj, [*found, *_null_entries(obj, facts.types)])
    found = [("metadata", *path) for path in _nulls_below(obj.get("metadata"))]
    found += [path for path in _creation_timestamps(obj) if path not in found]
    done = remove(obj, [path for path in found if path != _OWN_TIME])
    schema = facts.definitions.schema(obj)
    return done + (defaults.prune_nulls(obj, schema) if schema is not None else [])


def _null_entries(obj: Object, types: Types) -> Iterator[Path]:
    """Keys of maps, such as labels or a ConfigMap's data, that have no value."""
    for path, value, field, _ in builtin.walk(obj, types):
        if field is not None and field.type.removeprefix("*").startswith("{}") and isinstance(value, dict):
            yield from ((*path, key) for key, one in value.items() if one is None)


def _nulls_below(value: Value) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, one in value.items():
            if one is None:
                yield (key,)
            else:
                yield from ((key, *path) for path in _nulls_below(one))


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


def _unknown(obj: Object, facts: Facts) -> list[Path]:
    found = [one.path for one in builtin.misfits(obj, facts.types) if one.is_unknown]
    return remove(obj, found)


_EMPTY = re.compile(r"[\[{\"'][\]}\"']|:[ \t]*\n")


def _may_hold_empty(look: Look, _: Facts) -> bool:
    return _is_built_in(look) and _EMPTY.search(look.text) is not None


def _empty(obj: Object, facts: Facts) -> list[Path]:
    """Empty lists, maps and texts that Go leaves out; pointers and structs are kept, since there empty means something."""
    found = [
        path
        for path, value, field, _ in builtin.walk(obj, facts.types)
        if value in ("", [], {})
        and field is not None
        and field.omitempty
        and (field.type in ("string", "bytes") or field.type[:2] in ("[]", "{}"))
    ]
    return remove(obj, found)


#: Every `patchMergeKey` of k8s.io/api.
_MERGE_KEYS = (
    "containerPort", "devicePath", "ip", "mountPath", "name", "port", "resourceClaimName", "status", "topologyKey",
    "type", "uid",
)  # fmt: skip
#: Such a key in a line of its own, with what stands before it, and in an element in braces.
_KEYED = re.compile(
    rf"^([ \t]*(?:-[ \t]+)*[\"']?)({'|'.join(_MERGE_KEYS)})[\"']?[ \t]*:[ \t]*(\S.*)?$", re.MULTILINE
)
_FLOW_ELEMENT = re.compile(rf"\{{[^{{}}\n]*(?:{'|'.join(_MERGE_KEYS)})[\"']?[ \t]*:")
#: Kinds without keyed lists and without quantities, whose texts are long or look as if they had some.
_PLAIN = {"ConfigMap", "Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "NetworkPolicy"}


#: The fields besides the merge key that tell elements apart (`+listMapKey` in k8s.io/api), with their defaults.
_MORE_KEYS = {"containerPort": (("protocol", "TCP"),), "port": (("protocol", "TCP"),)}


def _may_hold_duplicates(look: Look, _: Facts) -> bool:
    """Whether some key of an element has one value twice in one column, or elements are not written in lines."""
    if not _is_built_in(look) or look.kinds <= _PLAIN:
        return False
    if look.is_opaque or _FLOW_ELEMENT.search(look.text) is not None:
        return True
    found = [(len(match[1]), match[2], match[3]) for match in _KEYED.finditer(look.text)]
    return len(set(found)) < len(found)


def _duplicates(obj: Object, facts: Facts) -> list[Path]:
    """Elements of keyed lists whose key was there before: the same element again, or an overridden variable."""
    found: list[Path] = []
    for path, value, field, _ in builtin.walk(obj, facts.types):
        if field is not None and field.merge_key and isinstance(value, list):
            if any(path[: len(one)] == one for one in found):
                continue
            found += [(*path, index) for index in _doubled(value, field.merge_key, path[-1] == "env")]
    return remove(obj, found)


def _doubled(elements: list[Value], key: str, are_variables: bool) -> list[int]:
    seen: dict[tuple[Any, ...], int] = {}
    doubled = []
    for index, element in enumerate(elements):
        if not isinstance(element, dict) or not isinstance(element.get(key), str | int):
            continue
        identity = (element[key], *(element.get(name, usual) for name, usual in _MORE_KEYS.get(key, ())))
        if identity not in seen:
            seen[identity] = index
        elif element == elements[seen[identity]]:
            doubled.append(index)
        elif are_variables and not _is_read(elements[seen[identity] : index], str(element[key])):
            # The last one counts in a container, and nothing between them reads the first.
            doubled.append(seen[identity])
            seen[identity] = index
    return doubled


def _is_read(elements: list[Value], name: str) -> bool:
    return any(isinstance(one, dict) and f"$({name})" in str(one.get("value")) for one in elements)


# --- fill: defaults from definitions


def _may_be_defined(look: Look, facts: Facts) -> bool:
    return any(
        kind not in builtin.names() and kind != definitions.KIND and facts.definitions.may_know(kind)
        for kind in look.kinds
    )


def _defined(obj: Object, facts: Facts, *, everywhere: bool = False) -> list[Path]:
    schema = facts.definitions.schema(obj)
    return [] if schema is None else defaults.fill(obj, schema, everywhere=everywhere)


def _defined_everywhere(obj: Object, facts: Facts) -> list[Path]:
    return _defined(obj, facts, everywhere=True)


def _may_be_known(look: Look, _: Facts) -> bool:
    return any(kind.lower() in known.kinds() for kind in look.kinds)


def _known(obj: Object, facts: Facts) -> list[Path]:
    """Nothing where a definition is at hand: it says more than what is known without it."""
    schema: Schema | None = None
    if facts.definitions.schema(obj) is None:
        schema = definitions.known_schema(obj)
    return [] if schema is None else defaults.fill(obj, schema)


# --- canonicalise


#: Fields that are quantities, and the names of resources: Kubernetes' own, and others' with a slash
#: (pkg/apis/core/validation of Kubernetes).
_QUANTITIES = re.compile(
    r"(?:cpu|memory|storage|hugepages-\w+|sizeLimit|divisor|[vV]alue|imumVolumeSize|capacity|/[\w.-]+)"
    r"[\"']?[ \t]*:(?=(?:\s|#[^\n]*\n)+([\"']?)([^\s\"',{}\[\]]*))"
)
#: Kinds with quantities by names of every sort.
_QUOTAS = {"ResourceQuota", "LimitRange", "Node"}


def _may_hold_raw_forms(look: Look, _: Facts) -> bool:
    if not _is_built_in(look) or look.kinds <= _PLAIN:
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


def _raw_forms(obj: Object, facts: Facts) -> list[Path]:
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
            if new is not None and new != at(obj, place):
                holder: Any = at(obj, place[:-1])
                holder[place[-1]] = new
                done.append(place)
    return done


#: The first release that stores autoscaling/v2 (test/integration/etcd/data.go of Kubernetes). Older ones store
#: autoscaling/v1, where a CPU utilisation is a field of its own, which is read back behind all other metrics
#: (pkg/apis/autoscaling/v1/conversion.go).
_KEEPS_METRIC_ORDER = 27


def _may_hold_metrics(look: Look, facts: Facts) -> bool:
    release = builtin.minor(facts.kube_version)
    return release is not None and release < _KEEPS_METRIC_ORDER and "metrics" in look.text


def _metric_order(obj: Object, _: Facts) -> list[Path]:
    spec: Any = obj.get("spec")
    metrics = spec.get("metrics") if isinstance(spec, dict) else None
    if not isinstance(metrics, list):
        return []
    first = next((index for index, metric in enumerate(metrics) if _is_cpu_utilisation(metric)), None)
    if first is None or first == len(metrics) - 1:
        return []
    metrics.append(metrics.pop(first))
    return [("spec", "metrics")]


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
        verb="strip", about="nulls that the API server drops", may_be_in=_may_hold_null, apply=_nulls
    ),
    "unknown-fields": Computed(
        verb="strip", about="fields that the kind does not have",
        may_be_in=lambda look, _: _is_built_in(look), apply=_unknown,
    ),
    "empty-fields": Computed(
        verb="strip", about="empty lists, maps and texts that mean their absence",
        may_be_in=_may_hold_empty, apply=_empty,
    ),
    "duplicates": Computed(
        verb="strip", about="elements of keyed lists that are there twice",
        may_be_in=_may_hold_duplicates, apply=_duplicates,
    ),
    "definition-defaults": Computed(
        verb="fill", about="defaults of the definition at hand, inside lists and atomic maps",
        may_be_in=_may_be_defined, apply=_defined,
    ),
    "definition-defaults-everywhere": Computed(
        verb="fill", about="all defaults of the definition at hand",
        may_be_in=_may_be_defined, apply=_defined_everywhere,
    ),
    "known-defaults": Computed(
        verb="fill", about="defaults inside lists that becalm knows of well-known kinds",
        may_be_in=_may_be_known, apply=_known,
    ),
    "raw-forms": Computed(
        verb="canonicalise", about="quantities of objects that Argo CD compares as raw text",
        may_be_in=_may_hold_raw_forms, apply=_raw_forms,
    ),
    "metric-order": Computed(
        verb="canonicalise", about="the order of metrics, as servers before 1.27 store them",
        may_be_in=_may_hold_metrics, apply=_metric_order,
    ),
}  # fmt: skip
