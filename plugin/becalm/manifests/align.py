"""Finding in a live text what was drawn for it, by two renders of the same text that drew other values.

Both renders are read side by side: where they show the two values of one draw, there is a hole; what both say is literal;
base64 is looked into; and what differs in any other way (a checksum) may be anything. The holes, filled from a live text
that says the same around them, are the values that were drawn for it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Case = Literal["", "lower", "upper"]

_BASE64 = re.compile(r"[A-Za-z0-9+/]{2,}={0,2}")
_ANY_BASE64 = r"[A-Za-z0-9+/]*={0,2}"
_BREAK = r"(?:\n[ \t]*|\\n)"
_NESTING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What may stand in a text: its two values, and the regular expressions of the values that it can have.

    `shape` is exactly what the draw gives, `loose` is what may stand in its place when nothing else is unsure,
    "" where only the shape will do.
    """

    id: str
    a: str = field(repr=False)
    b: str = field(repr=False)
    shape: str
    loose: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Where a source stands, perhaps in another case, or with other line breaks (`separator`, else a newline)."""

    source: Source
    case: Case = ""
    separator: str = "\n"


@dataclass(frozen=True, slots=True)
class Nested:
    """A token of base64, and what is in it."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Anything:
    """What differs for other reasons; the regular expression of what it may be."""

    pattern: str


Part = str | Hole | Nested | Anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A hole, with the value that a live text has there; `exact` where the case is the draw's own."""

    source: str
    value: str = field(repr=False)
    exact: bool


def parts(a: str, b: str, sources: Sequence[Source], nesting: int = 0) -> tuple[Part, ...]:
    """The parts of a text that two renders gave as `a` and `b`; no hole where they cannot be told apart."""
    if a == b:
        return (a,) if a else ()
    whole = _Pair(a, b, sources, nesting).parts()
    if whole is not None:
        return whole
    lines_a, lines_b = a.split("\n"), b.split("\n")
    if len(lines_a) != len(lines_b) or len(lines_a) == 1:
        return (Anything(r"[\s\S]*"),)
    found: list[Part] = []
    for number, (one, other) in enumerate(zip(lines_a, lines_b, strict=True)):
        if number:
            found.append("\n")
        line = _Pair(one, other, sources, nesting).parts()
        found += (Anything(r"[^\n]*"),) if line is None else line
    return tuple(_joined(found))


def holes(among: Iterable[Part]) -> list[Hole]:
    """All holes, those in base64 too, in their order."""
    found: list[Hole] = []
    for part in among:
        if isinstance(part, Hole):
            found.append(part)
        elif isinstance(part, Nested):
            found += holes(part.parts)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A part, where it is in one text, and where it ends in the other."""

    part: Part
    start: int
    end: int
    end_b: int


class _Pair:
    """Two texts that are read side by side."""

    def __init__(self, a: str, b: str, sources: Sequence[Source], nesting: int) -> None:
        self._a = a
        self._b = b
        self._sources = sources
        self._nesting = nesting
        self._names = {f"s{number}": one for number, one in enumerate(_spellings(a, sources))}
        pattern = "|".join(f"(?P<{name}>{one.pattern})" for name, one in self._names.items())
        self._scan = re.compile(pattern) if pattern else None

    def parts(self) -> tuple[Part, ...] | None:
        """The parts; None where the texts differ in what is neither a hole nor base64."""
        found: list[Part] = []
        at = other = 0
        while (step := self._next_hole(at, other) or self._next_token(at, other)) is not None:
            found += (self._a[at : step.start], step.part)
            at, other = step.end, step.end_b
        if self._a[at:] != self._b[other:]:
            return None
        found.append(self._a[at:])
        return tuple(_joined(found))

    def _next_hole(self, at: int, other: int) -> _Step | None:
        """The next hole, if both texts say the same up to it."""
        begin = at
        while self._scan is not None and (match := self._scan.search(self._a, begin)) is not None:
            gap = self._a[at : match.start()]
            if not self._b.startswith(gap, other):
                return None
            found = self._names[match.lastgroup or ""].hole(match.group(), self._b, other + len(gap))
            if found is not None:
                part, end = found
                return _Step(part=part, start=match.start(), end=match.end(), end_b=end)
            # It stands here by chance; the next character may begin what is meant.
            begin = match.start() + 1
        return None

    def _next_token(self, at: int, other: int) -> _Step | None:
        """The next token of base64 that is not the same in both texts, if they say the same up to it."""
        for match in _BASE64.finditer(self._a, at):
            gap = self._a[at : match.start()]
            if not self._b.startswith(gap, other):
                return None
            theirs = _BASE64.match(self._b, other + len(gap))
            if theirs is not None and theirs.group() != match.group():
                part = self._token(match.group(), theirs.group())
                return _Step(part=part, start=match.start(), end=match.end(), end_b=theirs.end())
        return None

    def _token(self, token: str, theirs: str) -> Part:
        one, two = _decoded(token), _decoded(theirs)
        if one is None or two is None or self._nesting >= _NESTING:
            return Anything(_ANY_BASE64)
        return Nested(parts(one, two, self._sources, self._nesting + 1))


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way in which a source can stand in a text."""

    source: Source
    case: Case
    a: str
    b: str

    @property
    def pattern(self) -> str:
        return _BREAK.join(map(re.escape, self.a.split("\n")))

    def hole(self, text: str, b: str, at: int) -> tuple[Part, int] | None:
        """The hole, and where it ends in the other text."""
        separator = "\n"
        if "\n" in self.a:
            found = re.search(_BREAK, text)
            separator = "\n" if found is None else found.group()
        value = self.b.replace("\n", separator)
        if not b.startswith(value, at) or text != self.a.replace("\n", separator):
            return None
        return Hole(source=self.source, case=self.case, separator=separator), at + len(value)


def _spellings(a: str, sources: Sequence[Source]) -> list[_Spelling]:
    found: dict[tuple[str, str], _Spelling] = {}
    for source in sources:
        first = source.a.split("\n", 1)[0]
        cases: tuple[Case, ...] = ("", "lower", "upper")
        for case in cases:
            if not first or _cased(first, case) not in a:
                continue
            for one, other in ((source.a, source.b), (source.a.rstrip("\n"), source.b.rstrip("\n"))):
                texts = _cased(one, case), _cased(other, case)
                if texts[0] and texts[0] != texts[1]:
                    found.setdefault(texts, _Spelling(source, case, *texts))
    # The longest first, since a text may begin with another.
    return sorted(found.values(), key=lambda one: (-len(one.a), one.a, one.b))


def _cased(text: str, case: Case) -> str:
    return text.lower() if case == "lower" else text.upper() if case == "upper" else text


def _decoded(token: str) -> str | None:
    try:
        return base64.b64decode(token, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _joined(found: Iterable[Part]) -> list[Part]:
    """The parts with literals that follow each other put together."""
    out: list[Part] = []
    for part in found:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        elif part != "":
            out.append(part)
    return out


def fits(form: Sequence[Part], live: str) -> bool:
    """Whether a live text says the same around the holes, with values of exactly their shapes in them."""
    return _fill(form, live, is_loose=False) is not None


def fill(form: Sequence[Part], live: str) -> list[Filled] | None:
    """What stands in the holes of a live text; None where the text does not say the same around them.

    First all of it is compared, then each line with a hole by itself, since another version of a chart may say other
    things in the rest.
    """
    for is_loose in (False, True):
        if is_loose and len({hole.source.id for hole in holes(form)}) > 1:
            break
        found = _fill(form, live, is_loose=is_loose)
        if found is not None:
            return found
    return _by_lines(form, live)


def _fill(form: Sequence[Part], live: str, *, is_loose: bool) -> list[Filled] | None:
    match = re.fullmatch(_Pattern(is_loose=is_loose).of(form), live)
    return None if match is None else _read(form, match.groupdict())


def _by_lines(form: Sequence[Part], live: str) -> list[Filled] | None:
    found: list[Filled] = []
    lines = live.split("\n")
    for line in _lines(form):
        if not holes(line) or any(isinstance(part, Hole) and "\n" in part.source.a for part in line):
            continue
        is_named = isinstance(line[0], str) and line[0].strip() != ""
        for is_loose in (False, True) if is_named and len(holes(line)) == 1 else (False,):
            filled = [one for text in lines if (one := _fill(line, text, is_loose=is_loose)) is not None]
            if len(filled) == 1:
                found += filled[0]
                break
    return found or None


def _lines(form: Sequence[Part]) -> list[list[Part]]:
    lines: list[list[Part]] = [[]]
    for part in form:
        if not isinstance(part, str):
            lines[-1].append(part)
            continue
        first, *rest = part.split("\n")
        lines[-1].append(first)
        lines += [[text] for text in rest]
    return [_joined(line) for line in lines]


class _Pattern:
    """Writes the regular expression of a form; its groups are numbered in the order of its parts."""

    def __init__(self, *, is_loose: bool) -> None:
        self._is_loose = is_loose
        self._seen: dict[Hole, str] = {}
        self._number = 0

    def of(self, form: Sequence[Part]) -> str:
        return "".join(map(self._part, form))

    def _part(self, part: Part) -> str:
        match part:
            case str():
                return re.escape(part)
            case Anything():
                return f"(?:{part.pattern})"
            case Nested():
                self._number += 1
                return f"(?P<n{self._number}>{_ANY_BASE64})"
            case Hole():
                if part in self._seen:
                    return f"(?P={self._seen[part]})"
                self._number += 1
                name = self._seen[part] = f"h{self._number}"
                return f"(?P<{name}>{_shape(part, is_loose=self._is_loose)})"


def _shape(hole: Hole, *, is_loose: bool) -> str:
    shape = hole.source.loose if is_loose and hole.source.loose else hole.source.shape
    if hole.separator != "\n":
        shape = shape.replace(r"\n", f"(?:{re.escape(hole.separator)})")
    # A shape in one case may be written in the other.
    return f"(?i:{shape})" if hole.case else shape


def _read(form: Sequence[Part], groups: Mapping[str, str]) -> list[Filled] | None:
    found: list[Filled] = []
    seen: set[Hole] = set()
    number = 0
    for part in form:
        if isinstance(part, Nested):
            number += 1
            text = _decoded(groups[f"n{number}"])
            inner = None if text is None else fill(part.parts, text)
            if inner is None and holes(part.parts):
                return None
            found += inner or []
        elif isinstance(part, Hole) and part not in seen:
            number += 1
            seen.add(part)
            value = groups[f"h{number}"].replace(part.separator, "\n")
            found.append(Filled(source=part.source.id, value=value, exact=not part.case))
    return found
