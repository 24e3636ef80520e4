"""The difference of two texts, line by line, as rows of a table."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

MOST_LINES: Final = 2_000
"""Lines that are compared, without those that both texts begin or end with: the cost grows with their square."""

CONTEXT: Final = 3
"""Equal lines that are shown around a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line: `+` added, `-` removed, " " equal, `@` lines that are left out. Numbers are from 1, 0 for none."""

    sign: Literal["+", "-", " ", "@"]
    old: int = 0
    new: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Rows, and how many lines were added and removed; `is_too_long` where the texts were not compared."""

    rows: tuple[Row, ...] = ()
    added: int = 0
    removed: int = 0
    is_too_long: bool = False


def compare(before: str, after: str) -> Difference:
    """The difference of two texts."""
    old, new = before.splitlines(), after.splitlines()
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(middle_old), len(middle_new)) > MOST_LINES:
        return Difference(is_too_long=True)
    start = max(0, head - CONTEXT)
    shown = min(CONTEXT, tail)
    one = old[start : len(old) - tail + shown]
    other = new[start : len(new) - tail + shown]
    rows = tuple(_rows(one, other, start, len(old) - start - len(one)))
    return Difference(
        rows=rows,
        added=sum(row.sign == "+" for row in rows),
        removed=sum(row.sign == "-" for row in rows),
    )


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two texts begin with."""
    count = 0
    for line, second in zip(one, other, strict=False):
        if line != second:
            break
        count += 1
    return count


def _rows(old: Sequence[str], new: Sequence[str], skipped: int, rest: int) -> Iterator[Row]:
    """Rows of what is compared, after `skipped` equal lines and before `rest` more."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    end = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first = group[0][1] + skipped
        if first > end:
            yield Row(sign="@", text=_left_out(first - end))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                for index, line in enumerate(old[old_from:old_to]):
                    yield Row(
                        sign=" ",
                        old=skipped + old_from + index + 1,
                        new=skipped + new_from + index + 1,
                        text=line,
                    )
                continue
            for index, line in enumerate(old[old_from:old_to]):
                yield Row(sign="-", old=skipped + old_from + index + 1, text=line)
            for index, line in enumerate(new[new_from:new_to]):
                yield Row(sign="+", new=skipped + new_from + index + 1, text=line)
        end = group[-1][2] + skipped
    if (left := skipped + len(old) + rest - end) and end:
        yield Row(sign="@", text=_left_out(left))


def _left_out(count: int) -> str:
    return "1 equal line" if count == 1 else f"{count} equal lines"
