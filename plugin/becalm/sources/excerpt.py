"""What a program said, in a bearable length."""

from __future__ import annotations


def short(line: str, most: int) -> str:
    """A line of about `most` characters, without its middle where it is longer.

    An endless recursion of a template is told in 80 KB, and its end says what it is.
    """
    if len(line) <= most:
        return line
    half = most // 2
    return f"{line[:half]} [...] {line[-half:]}"
