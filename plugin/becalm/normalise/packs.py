"""The built-in catalogue, users' rule files, and which of all rules act."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from becalm.errors import RuleError
from becalm.normalise.rules import Pack, Rule, load


@cache
def built_in() -> tuple[Pack, ...]:
    """The packs of the catalogue, in the order of their files' names."""
    folder = resources.files("becalm.normalise").joinpath("catalogue")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name
    )
    return tuple(load(file.read_text("utf-8"), where=file.name, check=False) for file in files)


def read(path: Path) -> Pack:
    """A user's rule file.

    Raises:
        RuleError: it cannot be read, or is wrong; the message names the line.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise RuleError("the rule file cannot be read", where=str(path), hint="check its path") from error
    return load(text, where=str(path))


def select(packs: Sequence[Pack], switches: Iterable[str], *, where: str) -> list[Rule]:
    """The rules that act, in order.

    Args:
        packs: later packs' rules act after those of earlier ones.
        switches: `+PACK`, `-PACK`, `+PACK/RULE` or `-PACK/RULE`, or `all` in the place of a pack; a later one
            overrides an earlier one.
        where: what gave the switches, for messages.

    Raises:
        RuleError: a switch names nothing, or two packs have the same id.
    """
    ids = [pack.id for pack in packs]
    if len(set(ids)) != len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise RuleError(f"there are two packs {twice!r}", where=where, hint="give your pack another id")
    acting = {rule.id: pack.enabled for pack in packs for rule in pack.rules}
    for switch in switches:
        name = switch[1:]
        named = [rule_id for rule_id in acting if name in ("all", rule_id, rule_id.partition("/")[0])]
        if switch[:1] not in ("+", "-") or not named:
            close = difflib.get_close_matches(name, [*ids, *acting], 1)
            raise RuleError(
                f"{switch!r} switches no rule",
                where=where,
                hint=f"did you mean {switch[:1]}{close[0]}?" if close else "`becalm rules list` names all",
            )
        acting |= dict.fromkeys(named, switch[0] == "+")
    return [rule for pack in packs for rule in pack.rules if acting[rule.id]]
