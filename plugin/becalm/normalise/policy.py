"""Which rules act on which objects: the built-in choice, then the operator's, then the app's, then the object's.

A later say overrides an earlier one. The operator can keep the app's say to some kinds, or forbid it; an app
that says something all the same gets an error, since what it relies on would not happen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from becalm.errors import RuleError, nearest
from becalm.manifests.objects import ObjectId
from becalm.normalise.rules import Match, Pack, Rule

BUILT_IN = "built in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """What somebody says of rules.

    `where` is what gave the switches (a variable, a parameter, a file), for messages and reports; a switch is
    `+PACK`, `-PACK`, `+PACK/RULE` or `-PACK/RULE`, or `all` in the place of a pack. Switching a pack on leaves out
    the rules that say `enabled: false` themselves.
    """

    where: str
    switches: tuple[str, ...] = ()


_NOTHING = Say(where="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The kinds of which an app has a say: None for all of them, nothing for none."""

    kinds: tuple[Match, ...] | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether the app has no say at all."""
        return self.kinds == ()

    def holds(self, owner: ObjectId) -> bool:
        """Whether the app has a say of an object."""
        return self.kinds is None or any(match.fits(owner) for match in self.kinds)

    def covers(self, match: Match) -> bool:
        """Whether everything that a rule of the app could mean is in the scope."""
        return self.kinds is None or any(
            (one.group, one.kind) == (match.group, match.kind) for one in self.kinds
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rules that may act, in order, and on which objects.

    `usual` are the ids of those that act on every object, `app` of those that act where the app has a say
    (both are the same where it says nothing), and `switched_by` tells for each acting rule who decided.
    """

    rules: tuple[Rule, ...]
    usual: frozenset[str]
    app: frozenset[str]
    scope: Scope = field(default_factory=Scope)
    switched_by: Mapping[str, str] = field(default_factory=dict)

    def acts(self, rule: Rule, owner: ObjectId) -> bool:
        """Whether a rule acts on an object, leaving the object's own annotation aside."""
        if self.usual is self.app:
            return True
        return rule.id in (self.app if self.scope.holds(owner) else self.usual)

    def knows(self, name: str) -> bool:
        """Whether a switch could name it: `all`, a pack or a rule, acting or not."""
        names = self.switched_by
        return name == "all" or any(name in (one, one.partition("/")[0]) for one in names)


def always(rules: Sequence[Rule]) -> Selection:
    """These rules, on every object."""
    ids = frozenset(rule.id for rule in rules)
    return Selection(rules=tuple(rules), usual=ids, app=ids, switched_by=dict.fromkeys(ids, BUILT_IN))


def select(  # noqa: PLR0913  # who says something, in the order in which it counts
    packs: Sequence[Pack],
    operator: Sequence[Say] = (),
    *,
    app: Sequence[Say] = (),
    app_packs: Sequence[Pack] = (),
    scope: Scope | None = None,
    last: Say = _NOTHING,
) -> Selection:
    """Decide which rules act.

    Args:
        packs: built-in ones and the operator's; later ones' rules act after those of earlier ones.
        operator: what the operator says, in order.
        app: what the app says, in order, after the operator.
        app_packs: the app's own rules, which act last.
        scope: where the app has a say; everywhere if it is left out.
        last: what a person says by hand, after everybody else.

    Raises:
        RuleError: a switch names nothing, two packs have one id, or the app says more than it may.
    """
    scope = scope or Scope()
    app = [say for say in app if say.switches]
    _check_ids([*packs, *app_packs])
    _check_scope(scope, app, app_packs)
    switched_by = {rule.id: BUILT_IN for pack in packs for rule in pack.rules}
    usual = {rule.id: rule.enabled for pack in packs for rule in pack.rules}
    by_name = {rule.id for pack in (*packs, *app_packs) for rule in pack.rules if rule.by_name}
    for say in operator:
        _switch(usual, say, switched_by, by_name)
    chosen = usual
    if app or app_packs:
        chosen = usual | {rule.id: rule.enabled for pack in app_packs for rule in pack.rules}
        switched_by |= {rule.id: "the application's rules" for pack in app_packs for rule in pack.rules}
        for say in app:
            _switch(chosen, say, switched_by, by_name)
    if chosen is not usual:
        _switch(usual, last, switched_by, by_name, known=chosen)
    _switch(chosen, last, switched_by, by_name)
    usual_ids = frozenset(name for name, acts in usual.items() if acts)
    app_ids = usual_ids if chosen is usual else frozenset(name for name, acts in chosen.items() if acts)
    return Selection(
        rules=tuple(
            rule
            for pack in (*packs, *app_packs)
            for rule in pack.rules
            if rule.id in usual_ids or rule.id in app_ids
        ),
        usual=usual_ids,
        app=app_ids,
        scope=scope,
        switched_by=switched_by,
    )


def _check_ids(packs: Sequence[Pack]) -> None:
    ids = [pack.id for pack in packs]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise RuleError(f"there are two packs {twice!r}", where="rules", hint="give your pack another id")


def _check_scope(scope: Scope, app: Sequence[Say], app_packs: Sequence[Pack]) -> None:
    if scope.is_nothing and (app or app_packs):
        raise RuleError(
            "the operator has forbidden rules of applications",
            where=app[0].where if app else "the application's rules",
            hint="remove them, or ask the operator for BECALM_APP_RULES",
        )
    for pack in app_packs:
        for rule in pack.rules:
            for match in rule.match:
                if not scope.covers(match):
                    raise RuleError(
                        f"the operator allows no rule of an application for {match.kind}",
                        where=rule.id,
                        hint="write group and kind as BECALM_APP_RULES does, without globs",
                    )


def _switch(
    acting: dict[str, bool],
    say: Say,
    switched_by: dict[str, str],
    by_name: Collection[str],
    known: Collection[str] = (),
) -> None:
    """Switch rules among `acting`; those that only `known` has may be named, and are left alone."""
    for switch in say.switches:
        name, is_on = switch[1:], switch[:1] == "+"
        if switch[:1] not in ("+", "-") or not _named(name, known or acting):
            raise _unknown(switch, known or acting, say.where)
        named = [
            rule_id
            for rule_id in _named(name, acting)
            if not is_on or name == rule_id or rule_id not in by_name
        ]
        acting |= dict.fromkeys(named, is_on)
        switched_by |= dict.fromkeys(named, say.where)


def _named(name: str, ids: Collection[str]) -> list[str]:
    return [rule_id for rule_id in ids if name in ("all", rule_id, rule_id.partition("/")[0])]


def _unknown(switch: str, ids: Collection[str], where: str) -> RuleError:
    packs = dict.fromkeys(rule_id.partition("/")[0] for rule_id in ids)
    names_all = "`becalm rules list` names all"
    if switch[:1] not in ("+", "-"):
        # What has no sign may be a rule all the same, so nothing is guessed.
        what = f"+{switch} or -{switch}" if _named(switch, ids) else "+PACK/RULE or -PACK/RULE"
        return RuleError(f"{switch!r} has no sign", where=where, hint=f"write {what}; {names_all}")
    return RuleError(
        f"{switch!r} switches no rule",
        where=where,
        hint=nearest(switch[1:], [*packs, *ids], otherwise=names_all, sign=switch[:1]),
    )
