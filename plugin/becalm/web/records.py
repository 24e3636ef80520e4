"""What the service tells of a render: one JSON object in a line, read with limits.

Fields that are missing have their empty value, so that an older service can tell a newer page. A field of another
type is an error: it is a fault of the service, and nothing of such a line can be trusted. Texts and lists that are
too long are cut, and the record says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

MAX_LINE: Final = 4 * 1024 * 1024
"""Bytes of one line, its end left out."""

OUTCOMES: Final = ("rendered", "cached", "failed", "timeout", "cancelled", "overloaded")
"""How a render ended; the first two are successes."""

SOURCES: Final = ("helm", "kustomize", "chain", "directory", "unknown")
"""What was rendered."""

_SUCCESSES: Final = ("rendered", "cached")
_SHORT: Final = 1_000
_LONG: Final = 512 * 1024
#: What a string and an object with its slots take beside their characters, in bytes, on CPython 3.11 and newer.
_STRING: Final = 56
_ITEM: Final = 120
_LATEST: Final = 10**11  # the year 5138, which every date function can write
_MOST = {
    "warnings": 200,
    "stabilised": 5_000,
    "changes": 5_000,
    "unknown": 2_000,
    "diffs": 200,
    "certificates": 1_000,
}
_STAGES: Final = 20
_CONTROLS: Final = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")
_T = TypeVar("_T")


class RecordError(ValueError):
    """A line is no record. The message names the field, never what is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How busy the service is: renders that wait, and that run.

    `unhealthy` and `unready` are reasons in one line, "" where there is none.
    """

    queue: int = 0
    rendering: int = 0
    unhealthy: str = ""
    unready: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stabilised:
    """One derived value: the object and field that own it, the function, and the call in the chart."""

    object: str = ""
    path: str = ""
    function: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field that a rule changed, and why."""

    object: str = ""
    path: str = ""
    rule: str = ""
    why: str = ""
    verb: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A field that its kind does not have; `nearest` is the name that it is most like, or ""."""

    object: str = ""
    path: str = ""
    nearest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """An object as YAML before and after its normalising."""

    object: str = ""
    before: str = field(default="", repr=False)
    after: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate in the output; times are seconds since 1970, `changes` is 0 where it is not derived."""

    object: str = ""
    path: str = ""
    subject: str = ""
    start: float = 0.0
    until: float = 0.0
    changes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One render in a line. `at` is its start in seconds since 1970, `seconds` what it took."""

    at: float = 0.0
    app: str = ""
    project: str = ""
    namespace: str = ""
    path: str = ""
    source: str = "unknown"
    outcome: str = "failed"
    code: int = 0
    error: str = ""
    seconds: float = 0.0
    runs: int = 0
    objects: int = 0
    bytes: int = 0
    warnings: int = 0

    @property
    def is_success(self) -> bool:
        """Whether Argo CD was given manifests."""
        return self.outcome in _SUCCESSES

    @property
    def is_failure(self) -> bool:
        """Whether Argo CD was given an error; a cancelled render was given up by Argo CD itself."""
        return not self.is_success and self.outcome != "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that the service tells of one render.

    `size` is about what it takes in memory, in bytes, `diffs_size` the part of `diffs`.
    """

    summary: Summary
    stages: Mapping[str, float] = field(default_factory=dict)
    seed: str = ""
    warnings: tuple[str, ...] = ()
    stabilised: tuple[Stabilised, ...] = ()
    changes: tuple[Change, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    diffs: tuple[Diff, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    killed: int = 0
    truncated: bool = False
    size: int = 0
    diffs_size: int = 0

    @property
    def has_details(self) -> bool:
        """Whether it tells what the output is like: a render does, and a hit whose report was kept."""
        details = (self.stabilised, self.changes, self.unknown, self.diffs, self.certificates)
        return self.summary.outcome == "rendered" or (self.summary.is_success and any(details))


def read(line: bytes) -> Record | State:
    """What one line tells.

    Raises:
        RecordError: it is too long, no JSON object, or a field has another type.
    """
    if len(line) > MAX_LINE:
        raise RecordError("the line is too long")
    try:
        value = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise RecordError("the line is no JSON") from None
    if not isinstance(value, dict):
        raise RecordError("the line is no JSON object")
    if "state" in value:
        return _state(_Reader({"state": value["state"]}).mapping("state"))
    return _record(_Reader(value))


def _no_number(_: str) -> float:
    raise RecordError("a number is not finite")


class _Reader:
    """Typed access to the fields of a JSON object; equal texts are kept once."""

    def __init__(self, value: Mapping[str, Any], kept: dict[str, str] | None = None) -> None:
        self._value = value
        self._kept = {} if kept is None else kept
        self.size = 0
        self.is_cut = False

    def _get(self, name: str, kind: type | tuple[type, ...], usual: Any) -> Any:
        value = self._value.get(name, usual)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise RecordError(f"the field {name} has another type")
        return value

    def text(self, name: str, *, most: int = _SHORT, usual: str = "") -> str:
        return self.kept(self._get(name, str, usual), most=most)

    def kept(self, text: str, *, most: int = _SHORT) -> str:
        if len(text) > most:
            self.is_cut = True
            text = f"{text[:most]}…"
        text = cleaned(text)
        if text not in self._kept:
            self._kept[text] = text
            self.size += _taken(text)
        return self._kept[text]

    def choice(self, name: str, among: tuple[str, ...], usual: str) -> str:
        text: str = self._get(name, str, usual)
        return text if text in among else usual

    def whole(self, name: str, *, least: int = 0) -> int:
        value: int = self._get(name, int, 0)
        if not least <= value <= 10**15:
            raise RecordError(f"the field {name} is out of its range")
        return value

    def number(self, name: str) -> float:
        value = self._get(name, (int, float), 0.0)
        if not (-_LATEST <= value <= _LATEST and math.isfinite(value)):
            raise RecordError(f"the field {name} is out of its range")
        return float(value)

    def flag(self, name: str) -> bool:
        flag: bool = self._get(name, bool, False)
        return flag

    def mapping(self, name: str) -> _Reader:
        return _Reader(self._get(name, dict, {}), self._kept)

    def stages(self) -> dict[str, float]:
        stages = self._get("stages", dict, {})
        if not all(isinstance(one, int | float) and abs(one) <= _LATEST for one in stages.values()):
            raise RecordError("the field stages has another type")
        names = [name for name in stages if len(name) <= 40][:_STAGES]
        return {self.kept(name): max(0.0, float(stages[name])) for name in names}

    def texts(self, name: str) -> tuple[str, ...]:
        values: list[Any] = self._get(name, list, [])
        if not all(isinstance(value, str) for value in values):
            raise RecordError(f"the field {name} has another type")
        return tuple(self.kept(value) for value in self._cut(name, values))

    def items(self, name: str, read: Callable[[_Reader], _T]) -> tuple[_T, ...]:
        values: list[Any] = self._get(name, list, [])
        found = []
        for value in self._cut(name, values):
            if not isinstance(value, dict):
                raise RecordError(f"the field {name} has another type")
            reader = _Reader(value, self._kept)
            found.append(read(reader))
            self.size += reader.size + _ITEM
            self.is_cut |= reader.is_cut
        return tuple(found)

    def _cut(self, name: str, values: list[Any]) -> list[Any]:
        self.is_cut |= len(values) > _MOST[name]
        return values[: _MOST[name]]


def _taken(text: str) -> int:
    """About what a text takes in memory, in bytes; rather too much than too little."""
    return _STRING + len(text) * (1 if text.isascii() else 4)


def cleaned(text: str) -> str:
    """A text without what HTML and terminals do not take: control characters and halves of surrogate pairs."""
    return text if text.isprintable() else _CONTROLS.sub("\ufffd", text)


def _state(reader: _Reader) -> State:
    return State(
        queue=reader.whole("queue"),
        rendering=reader.whole("rendering"),
        unhealthy=_line(reader, "unhealthy"),
        unready=_line(reader, "unready"),
    )


def _line(reader: _Reader, name: str) -> str:
    return " ".join(reader.text(name).split())


def _record(reader: _Reader) -> Record:
    warnings = reader.texts("warnings")
    summary = Summary(
        at=reader.number("at"),
        app=reader.text("app", most=512),
        project=reader.text("project", most=256),
        namespace=reader.text("namespace", most=256),
        path=reader.text("path", most=512),
        source=reader.choice("source", SOURCES, "unknown"),
        outcome=reader.choice("outcome", OUTCOMES, "failed"),
        code=reader.whole("code", least=-255),  # a signal, as Popen gives it
        error=_line(reader, "error"),
        seconds=max(0.0, reader.number("seconds")),
        runs=reader.whole("runs"),
        objects=reader.whole("objects"),
        bytes=reader.whole("bytes"),
        warnings=len(warnings),
    )
    record = Record(
        summary=summary,
        stages=reader.stages(),
        seed=reader.text("seed", most=128),
        warnings=warnings,
        stabilised=reader.items("stabilised", _stabilised),
        changes=reader.items("changes", _change),
        unknown=reader.items("unknown", _unknown),
        certificates=reader.items("certificates", _certificate),
        killed=reader.whole("killed"),
    )
    rest = reader.size
    return replace(
        record,
        diffs=reader.items("diffs", _diff),
        truncated=reader.flag("truncated") or reader.is_cut,
        size=reader.size + 4 * _ITEM,
        diffs_size=reader.size - rest,
    )


def _stabilised(reader: _Reader) -> Stabilised:
    return Stabilised(
        object=reader.text("object"),
        path=reader.text("path"),
        function=reader.text("function"),
        place=reader.text("place"),
    )


def _change(reader: _Reader) -> Change:
    return Change(
        object=reader.text("object"),
        path=reader.text("path"),
        rule=reader.text("rule"),
        why=reader.text("why"),
        verb=reader.text("verb"),
    )


def _unknown(reader: _Reader) -> Unknown:
    return Unknown(object=reader.text("object"), path=reader.text("path"), nearest=reader.text("nearest"))


def _diff(reader: _Reader) -> Diff:
    return Diff(
        object=reader.text("object"),
        before=reader.text("before", most=_LONG),
        after=reader.text("after", most=_LONG),
    )


def _certificate(reader: _Reader) -> Certificate:
    return Certificate(
        object=reader.text("object"),
        path=reader.text("path"),
        subject=reader.text("subject"),
        start=reader.number("from"),
        until=reader.number("until"),
        changes=reader.number("changes"),
    )
