"""`ignoreDifferences` for drift that no change of the manifest can prevent, as YAML to paste."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from becalm.errors import RuleError, nearest
from becalm.manifests import yamlio
from becalm.manifests.objects import Object, ObjectId
from becalm.manifests.stream import split
from becalm.normalise import ignores, selectors
from becalm.normalise.engine import Change, holds
from becalm.normalise.ignores import Case, Entry
from becalm.normalise.rendered import Cluster, Render
from becalm.normalise.selectors import Selector
from becalm.pipeline import render
from becalm.request import Request

Form = Literal["application", "argocd-cm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """What to ignore of one object, and by which entry; `pointers` and `jq` are Argo CD's.

    The owner's namespace is "" where it may have none, since Argo CD compares it with that of the live object
    (util/argo/normalizers), and its name where the server makes it up.
    """

    owner: ObjectId
    entry: Entry
    pointers: tuple[str, ...]
    jq: tuple[str, ...]


#: What is asked for by field, without an entry of the catalogue.
_ASKED = Entry(
    id="",
    reason="It was asked for with --field.",
    risk="Argo CD no longer shows a change of the field, and applies it only with another one.",
    sync_options=(),
    cases=(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asks for: entries by id, and fields of objects.

    A field is `KIND.GROUP/NAME FIELD`, `KIND.GROUP FIELD` or, for the core group, without `.GROUP`.
    """

    entries: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


def ignored(request: Request, wanted: Wanted) -> list[Ignored]:
    """Render a chart and tell what to ignore: what the render shows, and what is asked for.

    Raises:
        RuleError: an entry is unknown, or a field is no field or in no object.
        PluginError: as `pipeline.render`.
    """
    chosen = _chosen(wanted.entries)
    fields = [_field(text) for text in wanted.fields]
    result = render(request)
    output = result.output
    cluster = Cluster(namespace=request.options.namespace, kube_version=request.options.kube_version)
    documents = split(output)
    shown = Render(documents, cluster)
    found: list[Ignored] = []
    for document in documents:
        for owner, obj in () if document.is_empty else shown.unchanged(document):
            for entry in ignores.entries():
                is_asked = entry.id in chosen
                cases = [case for case in entry.cases if _is_meant(case, is_asked, owner, obj, shown)]
                if cases:
                    found.append(_ignored(_place(owner, obj, shown), obj, entry, cases))
            own = [selector for match, selector in fields if _matches(match, owner) and selector.find(obj)]
            if own:
                found.append(_of(_place(owner, obj, shown), _ASKED, own))
    _refuse_unused(fields, found, wanted, result.changes)
    return found


def _place(owner: ObjectId, obj: Object, shown: Render) -> ObjectId:
    metadata: Any = obj["metadata"]
    # Of custom kinds only the cluster knows whether they have a namespace.
    is_placed = bool(metadata.get("namespace")) or bool(shown.facts.types.of(obj))
    return replace(
        owner,
        namespace=owner.namespace if is_placed else "",
        name=owner.name if metadata.get("name") else "",
    )


def _chosen(names: Sequence[str]) -> set[str]:
    known = [entry.id for entry in ignores.entries()]
    for name in names:
        if name not in known:
            raise RuleError(
                f"there is no entry {name!r}",
                where="--entry",
                hint=nearest(name, known, otherwise="`becalm rules ignores` names all"),
            )
    return set(names)


def _is_meant(case: Case, is_asked: bool, owner: ObjectId, obj: Object, shown: Render) -> bool:
    if not case.fits(owner):
        return False
    if case.when is not None:
        return is_asked or holds(case.when, owner, obj, shown)
    return is_asked and (case.is_added or any(field.find(obj) for field in case.fields))


def _ignored(owner: ObjectId, obj: Object, entry: Entry, cases: Iterable[Case]) -> Ignored:
    fields: list[Selector] = []
    jq: list[str] = []
    for case in cases:
        is_whole = case.is_added or case.when is not None
        fields += [field for field in case.fields if is_whole or field.find(obj)]
        jq += case.jq
    return _of(owner, entry, fields, jq)


def _of(owner: ObjectId, entry: Entry, fields: Iterable[Selector], jq: Iterable[str] = ()) -> Ignored:
    """Pointers where they can say it, since they need no jq; a path with a list only jq can."""
    pointers: list[str] = []
    expressions = list(jq)
    for field in dict.fromkeys(fields):
        pointer = ignores.pointer(field)
        if pointer is None:
            expressions.append(ignores.jq(field))
        else:
            pointers.append(pointer)
    return Ignored(owner=owner, entry=entry, pointers=tuple(pointers), jq=tuple(expressions))


_Target = tuple[str, str, str]


def _field(text: str) -> tuple[_Target, Selector]:
    target, space, path = text.strip().partition(" ")
    kind, _, name = target.partition("/")
    kind, _, group = kind.partition(".")
    if not space or not kind:
        raise RuleError(
            f"{text[:100]!r} is no field of an object",
            where="--field",
            hint="write 'Deployment.apps/web spec.template.metadata.annotations[a/b]'",
        )
    return (group, kind, name), selectors.parse(path.strip(), where="--field")


def _matches(target: _Target, owner: ObjectId) -> bool:
    group, kind, name = target
    return (group, kind) == (owner.group, owner.kind) and (not name or owner.name in ("", name))


def _refuse_unused(
    fields: Sequence[tuple[_Target, Selector]],
    found: Sequence[Ignored],
    wanted: Wanted,
    changes: Sequence[Change],
) -> None:
    """A field or an entry that no object has is a mistake, and what is written for it would do nothing."""
    for entry in wanted.entries:
        if not any(one.entry.id == entry for one in found):
            raise RuleError(
                f"no object in the output is one of {entry!r}",
                where="--entry",
                hint="`becalm rules ignores` tells what it is for",
            )
    texts = {(one.owner, expression) for one in found for expression in (*one.pointers, *one.jq)}
    for (target, selector), text in zip(fields, wanted.fields, strict=True):
        expression = ignores.pointer(selector) or ignores.jq(selector)
        if not any(_matches(target, owner) and expression == text_ for owner, text_ in texts):
            raise RuleError(
                f"no object in the output has {text!r}",
                where="--field",
                hint=_why_missing(target, selector, changes),
            )


def _why_missing(target: _Target, selector: Selector, changes: Sequence[Change]) -> str:
    for change in changes:
        names = [step for step in change.path if isinstance(step, str)]
        if change.rule.verb == "strip" and _matches(target, change.object) and names == list(selector.keys):
            return f"{change.rule.id} takes it away, so it shows no difference"
    return "check kind, group and field against `becalm render`"


def written(found: Sequence[Ignored], form: Form) -> str:
    """YAML with the reasons as comments: fields of an Application, or of the ConfigMap argocd-cm."""
    out = "".join(f"# {line}\n" for line in _comments(found))
    options = _sync_options(found)
    if form == "argocd-cm" and options:
        out += f"# The Application needs these sync options as well: {', '.join(options)}\n"
    value = _application(found) if form == "application" else _argocd_cm(found)
    return out + yamlio.dump(value)


def _comments(found: Sequence[Ignored]) -> Iterator[str]:
    for entry in {one.entry.id: one.entry for one in found}.values():
        yield f"{entry.id or 'fields'}: {entry.reason}"
        if entry.risk:
            yield f"  Risk: {entry.risk}"


def _application(found: Sequence[Ignored]) -> dict[str, Any]:
    groups = _grouped(found, lambda one: one.owner)
    spec: dict[str, Any] = {
        "ignoreDifferences": [_difference(owner, group) for owner, group in groups.items()]
    }
    options = _sync_options(found)
    if options:
        spec["syncPolicy"] = {"syncOptions": options}
    return {"spec": spec}


def _sync_options(found: Sequence[Ignored]) -> list[str]:
    return list(dict.fromkeys(option for one in found for option in one.entry.sync_options))


_Key = TypeVar("_Key")


def _grouped(found: Sequence[Ignored], key: Callable[[Ignored], _Key]) -> dict[_Key, list[Ignored]]:
    groups: dict[_Key, list[Ignored]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return groups


def _difference(owner: ObjectId, found: Sequence[Ignored]) -> dict[str, Any]:
    difference: dict[str, Any] = {"group": owner.group} if owner.group else {}
    difference["kind"] = owner.kind
    if owner.name:
        difference["name"] = owner.name
    if owner.namespace:
        difference["namespace"] = owner.namespace
    return difference | _expressions(found)


def _expressions(found: Sequence[Ignored]) -> dict[str, Any]:
    """All that is ignored by some entries, each expression once."""
    pointers = list(dict.fromkeys(pointer for one in found for pointer in one.pointers))
    jq = list(dict.fromkeys(expression for one in found for expression in one.jq))
    out: dict[str, Any] = {}
    if pointers:
        out["jsonPointers"] = pointers
    if jq:
        out["jqPathExpressions"] = jq
    return out


def _argocd_cm(found: Sequence[Ignored]) -> dict[str, Any]:
    """By kind, as argocd-cm has it; it knows no names, so it concerns every object of the kind."""
    groups = _grouped(
        found, lambda one: f"{one.owner.group}_{one.owner.kind}" if one.owner.group else one.owner.kind
    )
    prefix = "resource.customizations.ignoreDifferences."
    return {"data": {f"{prefix}{key}": yamlio.dump(_expressions(group)) for key, group in groups.items()}}
