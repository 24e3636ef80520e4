"""Tables of text, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of equally many columns, aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def times(text: str, number: int) -> str:
    """A text with how often it stands for something, where that is more than once."""
    return f"{text} ({number} times)" if number > 1 else text
