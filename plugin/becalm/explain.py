"""What normalisation changed in a chart's output, by which rule and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from becalm.errors import RuleError
from becalm.manifests import yamlio
from becalm.manifests.paths import render as render_path
from becalm.normalise.rules import Pack, Rule
from becalm.pipeline import Request, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One changed field; `first_sync` tells what applying it does to an object that was applied before."""

    object: str
    field: str
    verb: str
    rule: str
    reason: str
    first_sync: str


_REMOVES = "removes the field from the cluster once, if it was applied before"


def explain(request: Request) -> list[Explained]:
    """Render a chart and tell what rules changed, in the order of the output.

    Raises:
        PluginError: as `pipeline.render`.
    """
    return [
        Explained(
            object=str(change.object),
            field=render_path(change.path),
            verb=change.rule.verb,
            rule=change.rule.id,
            reason=change.rule.reason,
            first_sync=_REMOVES if change.rule.verb == "strip" else "",
        )
        for change in render(request).changes
    ]


def lines(found: Iterable[Explained]) -> Iterator[str]:
    """For people: each object with its fields, then the rules with their reasons."""
    reasons: dict[str, str] = {}
    owner = ""
    for one in found:
        if one.object != owner:
            owner = one.object
            yield owner
        reasons[one.rule] = one.reason
        yield f"  {one.verb:<12} {one.field}  ({one.rule}){' *' if one.first_sync else ''}"
    if not reasons:
        yield "No rule changes anything."
        return
    yield ""
    for rule, reason in reasons.items():
        yield f"{rule}: {reason}"
    yield ""
    yield f"* The first sync {_REMOVES}."


def shown(packs: Iterable[Pack], rule_id: str) -> str:
    """A built-in rule for people.

    Raises:
        RuleError: there is none of that id.
    """
    for pack in packs:
        for rule in pack.rules:
            if rule.id == rule_id:
                return _shown(pack, rule)
    raise RuleError(f"there is no rule {rule_id!r}", hint="`becalm rules list` names all")


def _shown(pack: Pack, rule: Rule) -> str:
    out = [f"{rule.id}  ({rule.verb}; {pack.title})", "", rule.reason, "", "Kinds:"]
    out += [f"  {match.kind}{f'.{match.group}' if match.group else ''}" for match in rule.match]
    out += ["", "Fields:"]
    out += [f"  {selector}{'' if wanted is None else f': {wanted!r}'}" for selector, wanted in rule.targets]
    if rule.evidence:
        out += ["", "Evidence:", *(f"  {text}" for text in rule.evidence)]
    for example in rule.examples:
        kind = "leaves alone" if example.after is None else "changes"
        out += ["", f"Example that it {kind}: {example.title}", ""]
        out += [f"  {line}" for line in yamlio.dump(dict(example.before)).splitlines()]
        if example.after is not None:
            out += ["", "  becomes", ""]
            out += [f"  {line}" for line in yamlio.dump(dict(example.after)).splitlines()]
    return "\n".join(out) + "\n"
