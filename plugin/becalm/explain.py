"""What normalisation changed in a chart's output, by which rule and why, and what it could not mend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from becalm.errors import RuleError, nearest
from becalm.manifests import yamlio
from becalm.manifests.objects import Object, ObjectId, identify, objects
from becalm.manifests.paths import render as render_path
from becalm.manifests.stream import split
from becalm.normalise import builtin, computed
from becalm.normalise.policy import BUILT_IN
from becalm.normalise.rules import Condition, Example, Pack, Rule
from becalm.pipeline import render
from becalm.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One changed field; `first_sync` tells what applying it does to an object that was applied before.

    `switched_by` is who decided that the rule acts.
    """

    object: str
    field: str
    verb: str
    rule: str
    reason: str
    switched_by: str
    first_sync: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A field that its kind does not have, or whose value is of another type: Argo CD then compares raw text.

    `problem` is `unknown` or `mistyped`; `wanted` the nearest name or the type, "" if there is none.
    """

    object: str
    field: str
    problem: str
    wanted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What the chart looked up, "" where that is not known, in which place, and how it was answered."""

    object: str
    place: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What was changed, in the order of the output, what does not fit its kind, and what was looked up."""

    changes: tuple[Explained, ...]
    misfits: tuple[Misfit, ...]
    lookups: tuple[Lookup, ...] = ()


_REMOVES = "takes the field away once, if it was applied before"
#: What these take away, the API server never stored.
_NEVER_STORED = ("unknown-fields", "duplicates")


def explain(request: Request) -> Explanation:
    """Render a chart and tell what rules changed.

    Raises:
        PluginError: as `pipeline.render`.
    """
    result = render(request)
    changes = (
        Explained(
            object=str(change.object),
            field=render_path(change.path),
            verb=change.rule.verb,
            rule=change.rule.id,
            reason=change.rule.reason,
            switched_by=result.selection.switched_by.get(change.rule.id, BUILT_IN),
            first_sync=_first_sync(change.rule),
        )
        for change in result.changes
    )
    found = misfits(result.output, request.options.namespace, request.options.kube_version)
    looked = (
        Lookup(object="" if one.asked is None else str(one.asked), place=one.place, answer=one.answer)
        for one in result.lookups
    )
    return Explanation(changes=tuple(changes), misfits=tuple(found), lookups=tuple(looked))


def misfits(output: str, namespace: str, kube_version: str) -> Iterator[Misfit]:
    """Unknown and mistyped fields of Kubernetes' own kinds in an output."""
    table = builtin.types(kube_version)
    for _, obj in objects(split(output)):
        owner = identify(obj, namespace)
        if owner is not None:
            yield from misfits_of(obj, owner, table)


def misfits_of(obj: Object, owner: ObjectId, table: builtin.Types) -> Iterator[Misfit]:
    """The same in one object."""
    for one in builtin.misfits(obj, table):
        yield Misfit(
            object=str(owner),
            field=render_path(one.path),
            problem="unknown" if one.is_unknown else "mistyped",
            wanted=one.wanted,
        )


def _first_sync(rule: Rule) -> str:
    if rule.first_sync or rule.verb != "strip":
        return rule.first_sync
    return "" if rule.computed in _NEVER_STORED else _REMOVES


def lines(found: Explanation) -> Iterator[str]:
    """For people: each object with its fields, the rules with their reasons, then what does not fit."""
    rules: dict[str, Explained] = {}
    owner = ""
    for one in found.changes:
        if one.object != owner:
            owner = one.object
            yield owner
        rules[one.rule] = one
        yield f"  {one.verb:<12} {one.field}  ({one.rule}){' *' if one.first_sync else ''}"
    if not rules:
        yield "No rule changes anything."
    else:
        yield ""
    for one in rules.values():
        by = "" if one.switched_by == BUILT_IN else f" Switched on by {one.switched_by}."
        yield f"{one.rule}: {one.reason}{by}"
        if one.first_sync:
            yield f"  * The first sync {one.first_sync}."
    yield from _misfit_lines(found.misfits)
    if found.lookups:
        yield ""
        yield "The chart looks things up in the cluster, which is answered as BECALM_LOOKUP says:"
    for looked in found.lookups:
        yield f"  {looked.answer:<12} {looked.object or 'something'}  ({looked.place})"


def _misfit_lines(found: Sequence[Misfit]) -> Iterator[str]:
    if not found:
        return
    yield ""
    yield "These fields do not fit their kinds, so Argo CD compares the objects as raw text, and fails on them under"
    yield "server-side apply. Mend them in the chart, or drop unknown ones with --rule=+core/unknown-fields:"
    owner = ""
    for one in found:
        if one.object != owner:
            owner = one.object
            yield owner
        if one.problem == "mistyped":
            hint = f": the value is no {one.wanted}"
        else:
            hint = f"; did you mean {one.wanted}?" if one.wanted else ""
        yield f"  {one.problem:<12} {one.field}{hint}"


def shown(packs: Iterable[Pack], rule_id: str) -> str:
    """A built-in rule for people.

    Raises:
        RuleError: there is none of that id.
    """
    names: list[str] = []
    for pack in packs:
        names.append(pack.id)
        for rule in pack.rules:
            names.append(rule.id)
            if rule.id == rule_id:
                return _shown(pack, rule)
    hint = nearest(rule_id, names, otherwise="`becalm rules list` names all")
    raise RuleError(f"there is no rule {rule_id[:100]!r}", hint=hint)


def _shown(pack: Pack, rule: Rule) -> str:
    out = [f"{rule.id}  ({rule.verb}; {pack.title})", "", rule.reason, "", "Kinds:"]
    for match in rule.match:
        versions = f", versions {', '.join(match.versions)}" if match.versions else ""
        out.append(f"  {match.kind}{f'.{match.group}' if match.group else ''}{versions}")
    out += ["", "Fields:"]
    if rule.computed:
        out.append(f"  {computed.SETS[rule.computed].about} ({rule.computed})")
    out += [f"  {selector}{'' if wanted is None else f': {wanted!r}'}" for selector, wanted in rule.targets]
    conditions = list(_conditions(rule.when))
    if conditions:
        out += ["", "When:", *(f"  {text}" for text in conditions)]
    if rule.by_name or not rule.enabled:
        out += ["", f"It acts when it is switched on: +{rule.id if rule.by_name else pack.id}"]
    else:
        out += ["", f"It acts by itself; -{rule.id} switches it off."]
    first_sync = _first_sync(rule)
    if first_sync:
        out += ["", f"The first sync {first_sync}."]
    if rule.evidence:
        out += ["", "Evidence:", *(f"  {text}" for text in rule.evidence)]
    for example in rule.examples:
        out += _example(example)
    return "\n".join(out) + "\n"


def _conditions(when: Condition) -> Iterator[str]:
    """What must be so for a rule to act, a line for each."""
    if when.value is not None:
        yield f"the value is {when.value}"
    for fields, where in ((when.object, "the object"), (when.holder, "what holds the field")):
        if fields.present:
            yield f"{where} has {' and '.join(map(str, fields.present))}"
        if fields.any:
            yield f"{where} has something in {' or '.join(map(str, fields.any))}"
        if fields.absent:
            yield f"{where} does not have {' or '.join(map(str, fields.absent))}"
        for selector, wanted in fields.equals:
            yield f"{where} has {selector}: {wanted!r}"
    for references, what in (
        (when.referred, "in the render, one of these names the object"),
        (when.unreferred, "in the render, none of these names the object"),
    ):
        if references:
            yield f"{what}:"
            yield from (f"  {one.kind}.{one.group}, in {one.path}" for one in references)
    if when.below is not None:
        yield f"the server is older than 1.{when.below}"


def _example(example: Example) -> list[str]:
    def text(value: Mapping[str, Any]) -> list[str]:
        return [f"  {line}" for line in yamlio.dump(dict(value)).splitlines()]

    kind = "leaves alone" if example.after is None else "changes"
    out = ["", f"Example that it {kind}: {example.title}", "", *text(example.before)]
    if example.after is not None:
        out += ["", "  becomes", "", *text(example.after)]
    for other in example.others:
        out += ["", "  beside", "", *text(other)]
    return out
