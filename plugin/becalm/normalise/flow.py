"""What maps in braces and lists in brackets hide from a look at keys and their colons in a text (YAML 1.2, chapter 7.4).

Every answer may be a yes too often, never a no too often, as in `normalise.look`.
"""

from __future__ import annotations

import re

_START = re.compile(r"[{\[]")
#: Texts in quotes, signs, and texts without quotes, in which a colon stands only inside of a word.
_PIECE = re.compile(
    r"""(?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*')|(?P<sign>[{}\[\],:\n#"'])"""
    r"""|(?P<plain>[^\s{}\[\],:#"'](?:[^\s{}\[\],:]|:(?![\s{}\[\],]))*)"""
)


def has_braces(text: str) -> bool:
    """Whether something stands in braces, but for empty ones, templates and what is inside of a word."""
    at = text.find("{")
    while at >= 0:
        if _is_value(text, at) and text[at + 1 : at + 12].lstrip(" \t")[:1] not in ("}", "{"):
            return True
        at = text.find("{", at + 1)
    return False


def is_odd(text: str) -> bool:
    """Whether some braces hold keys without colons or lines, or some brackets hold pairs or lines."""
    if "{" not in text and "[" not in text:
        return False
    end = 0
    for match in _START.finditer(text):
        at = match.start()
        if at < end or not _is_value(text, at):
            continue
        if text[at : at + 2] in ("{}", "[]", "{{"):
            continue
        found = _end(text, at)
        if found is None:
            return True
        end = found
    return False


def _is_value(text: str, at: int) -> bool:
    """Whether a bracket may begin a value: behind a colon, a dash or another bracket, or in a line's beginning."""
    before = text[max(0, at - 12) : at].rstrip(" \t")
    return not before or before[-1] in ":-[{,\n"


def _end(text: str, at: int) -> int | None:
    """The end of what begins at a bracket; None where it is odd."""
    # For each open bracket: whether it is a map, and whether its entry has a text, and a colon.
    is_map: list[bool] = []
    has_text: list[bool] = []
    has_colon: list[bool] = []
    before = ""
    for match in _PIECE.finditer(text, at):
        sign = match[0]
        if match["sign"] is None:
            has_text[-1] = True
        elif sign in "{[":
            if has_text:
                has_text[-1] = True
            is_map.append(sign == "{")
            has_text.append(False)
            has_colon.append(False)
        elif sign in ",}]":
            if is_map[-1] and has_text[-1] and not has_colon[-1]:
                return None
            if sign == ",":
                has_text[-1] = has_colon[-1] = False
            else:
                is_map.pop()
                has_text.pop()
                has_colon.pop()
                if not is_map:
                    return match.end()
        elif sign == ":" and is_map[-1] and _separates(text, match.end(), before):
            has_colon[-1] = True
        else:
            # A line's end, a comment, a quote that is not closed, a pair in a list, or a colon in an odd place.
            return None
        before = sign[-1]
    return None


def _separates(text: str, end: int, before: str) -> bool:
    """Whether a colon stands between key and value: before a space, or behind quotes or brackets (as in JSON)."""
    # At the end of the text there is nothing, which is in every text.
    return before in ('"', "'", "}", "]") or text[end : end + 1] in " \t\n,{}[]"
