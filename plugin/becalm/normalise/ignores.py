"""Drift that no change of a manifest can prevent: the catalogue of what to tell Argo CD to ignore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from becalm.manifests import yamlio
from becalm.manifests.objects import ObjectId
from becalm.normalise import rules, selectors
from becalm.normalise.rules import Condition, Match
from becalm.normalise.selectors import AnyKey, Elements, Key, Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Objects and the fields of theirs that are ignored.

    `jq` are further expressions. `is_added` tells that the fields are only in the cluster, so that an object
    without them is meant as well. Where there is a condition, it tells whether the case is there.
    """

    match: tuple[Match, ...]
    fields: tuple[Selector, ...]
    jq: tuple[str, ...]
    is_added: bool
    when: Condition | None

    def fits(self, owner: ObjectId) -> bool:
        """Whether it may mean an object."""
        return any(match.fits(owner) for match in self.match)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One kind of drift: why rendering cannot help, what Argo CD needs besides, and what that risks."""

    id: str
    reason: str
    risk: str
    sync_options: tuple[str, ...]
    cases: tuple[Case, ...]

    @property
    def is_found(self) -> bool:
        """Whether a render itself shows that the drift will be there."""
        return any(case.when is not None for case in self.cases)


@cache
def entries() -> tuple[Entry, ...]:
    """The catalogue, in its order."""
    text = resources.files("becalm.normalise").joinpath("ignores.yaml").read_text("utf-8")
    value: Any = yamlio.load(text, where="ignores.yaml", strict=True)
    return tuple(_entry(one) for one in value)


def _entry(entry: Mapping[str, Any]) -> Entry:
    return Entry(
        id=entry["id"],
        reason=entry["reason"],
        risk=entry.get("risk", ""),
        sync_options=tuple(entry.get("sync_options", ())),
        cases=tuple(_case(case, entry["id"]) for case in entry["cases"]),
    )


def _case(case: Mapping[str, Any], where: str) -> Case:
    return Case(
        match=tuple(Match(**match) for match in case["match"]),
        fields=tuple(selectors.parse(text, where=where) for text in case.get("fields", ())),
        jq=tuple(case.get("jq", ())),
        is_added=bool(case.get("added")),
        when=rules.condition(case["when"], where) if "when" in case else None,
    )


def pointer(selector: Selector) -> str | None:
    """The JSON pointer (RFC 6901) of a field that is in no list; None for any other."""
    parts = []
    for step in selector.steps:
        if not isinstance(step, Key):
            return None
        parts.append("/" + step.name.replace("~", "~0").replace("/", "~1"))
    return "".join(parts)


def jq(selector: Selector) -> str:
    """The jq expression of a field, which names nothing where a part of it is missing."""
    out = ""
    for step in selector.steps:
        match step:
            case Key(name):
                out += _field(name)
            case AnyKey() | Elements("", _):
                out += "[]?"
            case Elements(key, value):
                out = f"({out}[]? | select({_field(key)} == {_quoted(value)}))"
    return out


def _field(name: str) -> str:
    return f".{name}" if name.isidentifier() and name.isascii() else f".{_quoted(name)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
