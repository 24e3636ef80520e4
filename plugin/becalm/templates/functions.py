"""The functions that templates can call, and how the ones that are not hermetic are answered."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

Treatment = Literal["draw", "clock", "clock-fallback", "order", "empty", "lookup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function whose result depends on more than its arguments.

    `arguments` are the types of its parameters (int, string, strings, certificate), `result` is
    the type of its result; both are empty where the treatment needs neither.
    """

    name: str
    treatment: Treatment
    reason: str
    arguments: tuple[str, ...] = ()
    result: str = ""


@cache
def functions() -> dict[str, Function]:
    """Every function that is not hermetic, by name."""
    return {
        name: Function(
            name=name,
            treatment=entry["treatment"],
            reason=entry["reason"],
            arguments=tuple(entry.get("arguments", ())),
            result=entry.get("result", ""),
        )
        for name, entry in _table()["functions"].items()
    }


@cache
def hermetic() -> dict[str, str]:
    """Every hermetic function, with the first Helm version that has it ("" where all do)."""
    table = _table()["hermetic"]
    return {**dict.fromkeys(table["always"], ""), **table["since"]}


@cache
def rewritten() -> tuple[str, ...]:
    """The names of all functions whose calls are rewritten, sorted."""
    return tuple(sorted(name for name, function in functions().items() if function.treatment != "empty"))


@cache
def drawing() -> tuple[str, ...]:
    """The same without those that look things up, which are rewritten only where somebody wants to know of them."""
    return tuple(name for name in rewritten() if functions()[name].treatment != "lookup")


@cache
def _mention(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds one of the names of functions, as a whole word."""
    return re.compile(rf"(?<![\w.$])(?:{'|'.join(names)})(?!\w)")


@cache
def stems() -> tuple[str, ...]:
    """A few strings, one of which every rewritten function's name contains.

    Looking for them first is faster than looking for them by an order of magnitude.
    """
    return ("rand", "gen", "uuidv4", "shuffle", "now", "ago", "date", "Date", "htpasswd", "bcrypt", "AES",
            "durationRound", "keys", "values", "lookup")  # fmt: skip


def mentions(text: str) -> bool:
    """Whether a text may call a function that is rewritten (never False when it does)."""
    return _mentions(text, rewritten())


def draws(text: str) -> bool:
    """The same for those of `drawing`."""
    return _mentions(text, drawing())


def looks(text: str) -> bool:
    """Whether a text may look things up (never False when it does)."""
    return "lookup" in text and _mentions(text, ("lookup",))


def _mentions(text: str, names: tuple[str, ...]) -> bool:
    start = text.find("{{")
    if start < 0 or not any(text.find(stem, start) >= 0 for stem in stems()):
        return False
    return _mention(names).search(text, start) is not None


@cache
def _table() -> dict[str, Any]:
    text = resources.files("becalm.templates").joinpath("functions.toml").read_text("utf-8")
    return tomllib.loads(text)
