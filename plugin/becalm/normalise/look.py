"""What a document's text shows, without parsing it, of the rules that could change it.

Every answer here may be a yes too often, never a no too often: parsing is what costs, and the text is at hand.
"""

from __future__ import annotations

import re
from functools import cached_property

from becalm.manifests.stream import Document
from becalm.normalise.rules import Rule
from becalm.normalise.selectors import Selector

_KIND = re.compile(r"(?:^|(?<=[\s{,\-\"']))[\"']?kind[\"']?\s*:\s*[\"']?([A-Za-z0-9.]+)")
#: A document in braces, or with all of its lines indented.
_NO_ROOT_KEYS = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?:[ \t]+[^ \t#\n]|[{\[&!?])")
_ANCHOR = re.compile(r"&(?<=[ \t]&)[\w-]")
_VERSION = re.compile(
    r"[\"']?apiVersion[\"']?[ \t]*:[ \t]+[\"']?([A-Za-z0-9./-]+)[\"']?[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)"
)
_COLON = re.compile(r"[\"']?[ \t]*:(?=[ \t\r\n]|$)[ \t]*")
#: The first line below that is neither blank nor a comment: its indentation, and the first sign.
_NEXT_LINE = re.compile(r"(?:\n[ \t\r]*(?:#[^\n]*)?(?=\n))*\n( *)([^\s#])")
_GAP = re.compile(r"(?:\s|#[^\n]*\n)*")
_LEAD = re.compile(r"[ \-\"']*")
_ROOT_KEY = re.compile(r"[\"']?([^\s\"':]+)[\"']?[ \t]*:(?=\s|\Z)")
_NEXT_ROOT = re.compile(r"\n[^ \t#\r\n-]")
_VALUES = {
    "false": re.compile(r"[\w!]"),
    "zero": re.compile(r"[-+]?\.?0|!"),
    "null": re.compile(r"!|null|Null|NULL|~"),
    "empty": re.compile(r"!|null|Null|NULL|~|[\"'\[{|>&]"),
}


class Look:
    """The text of one document."""

    def __init__(self, document: Document) -> None:
        self.text = document.text
        self.kinds = kinds(document.text)
        self._blocks: dict[str, str] = {}

    def may_hold(self, rule: Rule) -> bool:
        """Whether a field that a rule names, and could change, may be in the document."""
        if self.is_opaque:
            return True
        return any(self._holds(rule, selector) for selector, _ in rule.targets)

    @cached_property
    def is_opaque(self) -> bool:
        """Whether fields may be where the text does not show them: lists of objects, flow style, aliases, merges."""
        text = self.text
        return (
            any(kind.endswith("List") for kind in self.kinds)
            or _NO_ROOT_KEYS.match(text) is not None
            or ("<" in text and "<<" in text)
            or ("*" in text and "&" in text and _ANCHOR.search(text) is not None)
            or _has_complex_key(text)
        )

    @cached_property
    def group(self) -> str | None:
        """The API group of the document's object, "" for the core group; None where there may be several."""
        match = None if self.is_opaque else _VERSION.match(self._block("apiVersion"))
        return None if match is None else match[1].rpartition("/")[0]

    def opens_nothing(self, colon: int) -> bool:
        """Whether a key whose line ends behind its colon has no value: no deeper line or list element follows."""
        start = self.text.rfind("\n", 0, colon) + 1
        return _opens_nothing(self.text, start + len(_LEAD.match(self.text, start, colon)[0]), colon + 1)  # type: ignore[index]

    def _holds(self, rule: Rule, selector: Selector) -> bool:
        """Whether the block of the selector's first key holds the others, and the last one what it should."""
        keys = selector.keys
        block = self._block(keys[0])
        if rule.verb == "fill":
            return (bool(block) or len(keys) == 1) and all(name in block for name in keys[1:-1])
        if not block:
            return False
        for name in keys[1:]:
            if name not in block:
                return False
        return rule.verb != "strip" or _shows(keys[-1], block, rule.when.value)

    def _block(self, name: str) -> str:
        """The text of a key at the root, up to the next one; "" where there is none."""
        if name not in self._blocks:
            start, end = self._roots.get(name, (0, 0))
            self._blocks[name] = self.text[start:end]
        return self._blocks[name]

    @cached_property
    def _roots(self) -> dict[str, tuple[int, int]]:
        """Where the keys at the root begin and end."""
        starts = [0, *(match.end() - 1 for match in _NEXT_ROOT.finditer(self.text))]
        found: dict[str, tuple[int, int]] = {}
        for start, end in zip(starts, [*starts[1:], len(self.text)], strict=True):
            match = _ROOT_KEY.match(self.text, start, end)
            if match is not None:
                found.setdefault(match[1], (start, end))
        return found


def _has_complex_key(text: str) -> bool:
    """Whether a line begins with a key in the long form (`? key`)."""
    at_ = text.find("? ")
    while at_ >= 0:
        if not text[text.rfind("\n", 0, at_) + 1 : at_].strip(" \t-"):
            return True
        at_ = text.find("? ", at_ + 1)
    return False


def kinds(text: str) -> set[str]:
    """The kinds of a document's objects, and perhaps some more words."""
    start = _root_key(text, "kind")
    match = None if start < 0 else _KIND.match(text, start)
    if match is None or match.group(1).endswith("List"):
        return set(_KIND.findall(text))
    return {match.group(1)}


def _root_key(text: str, name: str) -> int:
    for written in (name, f'"{name}"', f"'{name}'"):
        at_ = 0 if text.startswith(written) else text.find(f"\n{written}") + 1
        while at_ or text.startswith(written):
            if _COLON.match(text, at_ + len(written)):
                return at_
            at_ = text.find(f"\n{written}", at_ + 1) + 1
            if not at_:
                break
    return -1


def _shows(name: str, block: str, kind: str | None) -> bool:
    """Whether a key stands somewhere in a block with a value that may be of a kind."""
    at_ = block.find(name)
    while at_ >= 0:
        before = block[at_ - 1] if at_ else "\n"
        colon = _COLON.match(block, at_ + len(name)) if not (before.isalnum() or before in "_./") else None
        if colon is not None:
            if kind is None or _VALUES[kind].match(block, _value(block, colon.end())):
                return True
            if kind in ("empty", "null") and _opens_nothing(block, at_, colon.end()):
                return True
        at_ = block.find(name, at_ + 1)
    return False


def _value(block: str, colon: int) -> int:
    """Where a value begins, on the key's line or below it."""
    match = _GAP.match(block, colon)
    return match.end() if match else colon


def _opens_nothing(block: str, key: int, colon: int) -> bool:
    """Whether the rest of a key's line is empty, and no deeper line or list element follows."""
    line_end = block.find("\n", colon)
    rest = block[colon : line_end if line_end >= 0 else None].strip()
    if rest and not rest.startswith("#"):
        return False
    start = block.rfind("\n", 0, key) + 1
    indent = len(block[start:key]) - len(block[start:key].lstrip(" -"))
    following = _NEXT_LINE.match(block, line_end) if line_end >= 0 else None
    # An element of a list may stand in the column of the list's key.
    return following is None or len(following[1]) + (following[2] == "-") <= indent
