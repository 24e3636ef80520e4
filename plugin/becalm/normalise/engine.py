"""Applies rules to rendered output. Documents that no rule changes keep their bytes.

Rules act in the order of their packs and files, in turns until none changes anything; of two that mean one field,
the later one decides (`normalise.decisions`). A document is parsed only if its text holds what some rule needs; with
N documents and R rules the cost is that of N texts and of the rules that fit an object.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from becalm.errors import RuleError
from becalm.manifests import yamlio
from becalm.manifests.objects import Object, ObjectId
from becalm.manifests.paths import Path
from becalm.manifests.paths import render as render_path
from becalm.manifests.scalars import Value
from becalm.manifests.stream import Document, split
from becalm.normalise import builtin, computed, duration, quantity
from becalm.normalise.computed import Facts
from becalm.normalise.decisions import Decisions, May
from becalm.normalise.defaults import Schema, part
from becalm.normalise.look import Look
from becalm.normalise.places import DROPPED, at, remove
from becalm.normalise.policy import Selection
from becalm.normalise.rendered import Cluster, Render
from becalm.normalise.rules import Condition, Rule, is_kind, is_like
from becalm.normalise.selectors import AnyKey, Elements, Key, Selector

_HEAD = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*")
#: Rules and packs that an object is left alone by, with commas between: `-core/status,-admission`.
ANNOTATION = "becalm.dev/rules"
#: What rules may change in one render; a mistake in one that fills lists could multiply without an end.
_MOST_CHANGES = 100_000
#: How often rules may act on what other rules have left.
_MOST_TURNS = 50
_FORMS = {"quantity": quantity.canonical, "duration": duration.canonical}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field that a rule changed; its values are not kept, since they may be secret."""

    rule: Rule
    object: ObjectId
    path: Path


@dataclass(frozen=True, slots=True)
class Normalised:
    """The output, and what was changed, in its order."""

    output: str
    changes: tuple[Change, ...]


def normalise(output: str, selection: Selection, cluster: Cluster) -> Normalised:
    """Apply rules to a stream of documents.

    Args:
        output: what was rendered.
        selection: the rules, in the order in which they act.
        cluster: where the objects go.

    Raises:
        ManifestError: a document that a rule might mean cannot be read.
        RuleError: an object refuses rules, and its application has no say of it.
    """
    documents = split(output)
    render = Render(documents, cluster)
    index = _Index(selection.rules)
    texts: list[str] = []
    changes: list[Change] = []
    for document in documents:
        done = [] if document.is_empty else _document(document, index, render, selection)
        if not done:
            texts.append(document.separator + document.text)
            continue
        changes += done
        if len(changes) > _MOST_CHANGES:
            raise _too_many()
        texts.append(document.separator + _written(document, render.value(document)))
    return Normalised("".join(texts) if changes else output, tuple(changes))


def _too_many() -> RuleError:
    return RuleError(f"rules change more than {_MOST_CHANGES:,} fields", hint="look for one that multiplies")


class _Index:
    """Rules by the kinds that they name, so that most documents are not compared with most rules."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._known: dict[tuple[frozenset[str], str | None], list[Rule]] = {}

    def of(self, look: Look, render: Render) -> list[Rule]:
        """The rules that name a document's kinds; all of them where its text does not tell."""
        key = (look.kinds, look.group)
        if key not in self._known:
            self._known[key] = [
                rule
                for rule in self._rules
                if (not key[0] or _names_kind(rule, *key)) and _may_refer(rule, render)
            ]
        return self._known[key]

    def wanted(self, look: Look, render: Render) -> list[Rule]:
        """The rules that could change a document as it is, as far as texts tell."""
        return [
            rule
            for rule in self.of(look, render)
            if (
                computed.SETS[rule.computed].may_be_in(look, render.facts)
                if rule.computed
                else look.may_hold(rule)
            )
        ]


def _may_refer(rule: Rule, render: Render) -> bool:
    referred = rule.when.referred
    return not referred or any(render.of_kind(reference.kind) for reference in referred)


def _names_kind(rule: Rule, kinds: frozenset[str], group: str | None) -> bool:
    return any(
        (group is None or is_like(group, match.group)) and any(is_like(kind, match.kind) for kind in kinds)
        for match in rule.match
    )


def _document(document: Document, index: _Index, render: Render, selection: Selection) -> list[Change]:
    look = render.look(document)
    wanted = index.wanted(look, render)
    if not wanted and ANNOTATION not in document.text:
        return []
    changes: list[Change] = []
    originals: list[Object] = []
    for number, (owner, obj) in enumerate(render.begin(document)):
        refused = _refused(obj, owner, selection)
        rules = [
            rule
            for rule in index.of(look, render)
            if refused.isdisjoint((rule.id, rule.pack, "all")) and selection.acts(rule, owner)
        ]
        found, is_contested = _object(owner, obj, rules, wanted, render)
        if is_contested:
            originals = originals or [original for _, original in render.unchanged(document)]
            found = [c for c in _last(found) if not _is_same(originals[number], obj, c.path)]
        changes += found
    return changes


def _last(changes: Sequence[Change]) -> Iterator[Change]:
    """The last change of each field."""
    yield from {change.path: change for change in changes}.values()


_NOTHING = object()


def _is_same(before: Object, after: Object, path: Path) -> bool:
    """Whether two objects hold the same at a path."""
    found: list[Any] = [before, after]
    for step in path:
        for index, value in enumerate(found):
            try:
                found[index] = value[step]
            except (KeyError, IndexError, TypeError):
                found[index] = _NOTHING
    # True, 1 and 1.0 are equal in Python.
    return repr(found[0]) == repr(found[1])


def _object(
    owner: ObjectId, obj: Object, rules: Sequence[Rule], wanted: Sequence[Rule], render: Render
) -> tuple[list[Change], bool]:
    """Apply rules until none changes anything; what the text showed counts until the first change.

    Returns:
        The changes, and whether some rule was kept from one.
    """
    first = {rule.id for rule in wanted}
    changes: list[Change] = []
    decisions = Decisions()
    _reserve(owner, obj, rules, render, decisions)
    for _ in range(_MOST_TURNS):
        before = len(changes)
        for place, rule in enumerate(rules):
            if not changes and rule.id not in first:
                continue
            if rule.fits(owner, str(obj.get("apiVersion"))) and holds(rule.when, owner, obj, render):
                found = _apply(rule, obj, render.facts, decisions.may(place, fills=rule.verb == "fill"))
                changes += [Change(rule=rule, object=owner, path=path) for path in found]
                _decided(place, rule, found, obj, decisions)
                if len(changes) > _MOST_CHANGES:
                    break
        if len(changes) == before or len(changes) > _MOST_CHANGES:
            return changes, decisions.is_contested
    last = changes[-1]
    raise RuleError(
        f"{last.rule.id} changes {render_path(last.path)} again and again",
        where=str(owner),
        hint="a rule has to leave alone what it has changed; please report it if the rule is built in",
    )


def _decided(place: int, rule: Rule, paths: Sequence[Path], obj: Object, decisions: Decisions) -> None:
    for path in paths:
        if path[-2:] in DROPPED and rule.verb == "fill":
            # Taking its keys away would make room for the fill again.
            decisions.decide(place, path, at(obj, path))
        elif rule.verb != "strip" or isinstance(path[-1], str):
            decisions.decide(place, path)
    if rule.verb == "strip":
        decisions.forget_elements({path[:-1] for path in paths if isinstance(path[-1], int)})


def _reserve(
    owner: ObjectId, obj: Object, rules: Sequence[Rule], render: Render, decisions: Decisions
) -> None:
    """Keep other rules from filling in what one leaves out on purpose, because something else writes it."""
    for place, rule in enumerate(rules):
        if (
            rule.verb == "fill"
            and rule.when.unreferred
            and rule.fits(owner, str(obj.get("apiVersion")))
            and any(render.refers(reference, owner) for reference in rule.when.unreferred)
            and holds(replace(rule.when, unreferred=()), owner, obj, render)
        ):
            for selector, _ in rule.targets:
                for path in selector.holders(obj):
                    decisions.reserve(place, (*path, selector.last))


def _refused(obj: Object, owner: ObjectId, selection: Selection) -> set[str]:
    """The rules and packs that an object's annotation switches off."""
    metadata: Any = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if text is not None and not isinstance(text, str):
        raise RuleError(
            f"the annotation {ANNOTATION} is no text", where=str(owner), hint="write -PACK or -PACK/RULE"
        )
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    if words and not selection.scope.holds(owner):
        raise RuleError(
            f"the annotation {ANNOTATION} is of no effect, since the operator limits rules of applications",
            where=str(owner),
            hint="remove it, or ask the operator for BECALM_APP_RULES",
        )
    for word in words:
        if not word.startswith("-") or not selection.knows(word[1:]):
            raise RuleError(
                f"{word[:100]!r} in the annotation {ANNOTATION} switches no rule off",
                where=str(owner),
                hint="write -PACK or -PACK/RULE; `becalm rules list` names all",
            )
    return {word[1:] for word in words}


def holds(when: Condition, owner: ObjectId, obj: Object, render: Render) -> bool:
    """Whether what a condition says of a whole object is so."""
    if not when.object.hold(obj):
        return False
    if when.below is not None and not builtin.is_older(render.facts.kube_version, when.below):
        return False
    if any(render.refers(reference, owner) for reference in when.unreferred):
        return False
    return not when.referred or any(render.refers(reference, owner) for reference in when.referred)


def _apply(rule: Rule, obj: Object, facts: Facts, may: May) -> list[Path]:
    if rule.computed:
        return computed.SETS[rule.computed].apply(obj, facts, may)
    done: list[Path] = []
    for selector, wanted in rule.targets:
        match rule.verb:
            case "fill":
                if _is_in_schema(selector, obj, facts):
                    done += _fill(rule, obj, selector, wanted, may)
            case "strip":
                meant = [path for path in selector.find(obj) if _meant(rule, obj, path) and may(path)]
                done += remove(obj, meant)
            case "canonicalise":
                done += _canonicalise(rule, obj, selector, wanted, may)
    return done


def _is_in_schema(selector: Selector, obj: Object, facts: Facts) -> bool:
    """Whether the definition at hand, if one is, has a field: what it lacks, the API server would drop."""
    schema = facts.definitions.schema(obj)
    if schema is None or not isinstance(selector.steps[0], Key) or selector.steps[0].name == "metadata":
        return True
    node: Schema = schema
    for step in selector.steps:
        if node.get("x-kubernetes-preserve-unknown-fields"):
            return True
        match step:
            case Key(name):
                below = part(part(node, "properties") or {}, name)
            case AnyKey():
                below = part(node, "additionalProperties")
            case Elements():
                below = part(node, "items")
        if below is None:
            return False
        node = below
    return True


def _fill(rule: Rule, obj: Object, selector: Selector, wanted: Value, may: May) -> list[Path]:
    done = []
    holders = selector.holders(obj)
    if len(holders) > _MOST_CHANGES:
        raise _too_many()
    for path in holders:
        holder: Any = at(obj, path)
        here = (*path, selector.last)
        if selector.last not in holder and rule.when.holder.hold(holder) and may(here):
            holder[selector.last] = copy.deepcopy(wanted)
            done.append(here)
    return done


def _canonicalise(rule: Rule, obj: Object, selector: Selector, form: str, may: May) -> list[Path]:
    done = []
    for path in selector.find(obj):
        holder: Any = at(obj, path[:-1])
        value = holder[path[-1]]
        if isinstance(value, bool | float) or not isinstance(value, str | int) or not _meant(rule, obj, path):
            continue
        try:
            new = _FORMS[form](str(value))
        except ValueError:
            continue
        if (type(value) is not str or new != value) and may(path):
            holder[path[-1]] = new
            done.append(path)
    return done


def _meant(rule: Rule, obj: Object, path: Path) -> bool:
    """Whether the conditions on a field and on what holds it are fulfilled."""
    value = at(obj, path)
    if rule.when.value is not None and not is_kind(value, rule.when.value):
        return False
    return rule.when.holder.hold(at(obj, path[:-1]))


def _written(document: Document, value: Value) -> str:
    """A document's new text: the comments at its start, then the value, and as many newlines at its end."""
    head = _HEAD.match(document.text)
    text = (head.group() if head else "") + yamlio.dump(value)
    stripped = document.text.rstrip("\n")
    return text.rstrip("\n") + document.text[len(stripped) :]
