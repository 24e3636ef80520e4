"""What a document's text shows, without parsing it, of the rules that could change it.

Every answer here may be a yes too often, never a no too often: parsing is what costs, and the text is at hand.
"""

from __future__ import annotations

import re
from functools import cached_property

from becalm.manifests.stream import Document
from becalm.normalise import flow
from becalm.normalise.rules import Rule
from becalm.normalise.selectors import AnyKey, Selector

#: A value's place: behind the colon and a comment, or at the start of the next line (fillers are gone).
GAP = r"[ \t]*(?:#[^\n]*)?(?:\n[ \t]*)?"
#: A kind, and what it is; nothing where that stands elsewhere or in another form.
_ANY_KIND = re.compile(
    r"(?:^|(?<=[\s{,\-\"']))(?:[\"']kind[\"'](?=[ \t]*:)|kind(?=[ \t]*:[ \t\n\"']))\s*:\s*(?:[\"']?([A-Za-z0-9.]+))?"
)
_KIND = re.compile(rf"[\"']?kind[\"']?[ \t]*:{GAP}[\"']?([A-Za-z0-9.]+)[\"']?[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_VERSION = re.compile(
    rf"[\"']?apiVersion[\"']?[ \t]*:{GAP}[\"']?([A-Za-z0-9./-]+)[\"']?[ \t]*(?:#[^\n]*)?(?:\n|\Z)"
)
#: A key's line, or an element's, with blank or comment lines below it, and such lines.
_FILLED = re.compile(r":[ \t]*(?:#[^\n]*)?\n[ \t]*(?:#|\n)")
_FILLERS = re.compile(r"\n[ \t]*(?:#[^\n]*)?(?=\n)")
#: A document in braces, or with all of its lines indented.
_NO_ROOT_KEYS = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?:[ \t]+[^ \t#\n]|[{\[&!?])")
#: What stands below a schema, line by line; the kind tells that there is one.
_SCHEMA = re.compile(r"\n( *)openAPIV3Schema:[ \t]*\n(?:\1 +[^\n]*\n|[ \t]*\n)*")
#: The keys that lead to one.
_SCHEMAS = {"schema", "validation", "openAPIV3Schema"}
_DEFINITION = "\nkind: CustomResourceDefinition\n"
#: A key below another one.
_ENTRY = re.compile(r"\n[ \t]+[^\s#][^\n]*:")
_ALIAS = re.compile(r"\*(?<=[ \t]\*)[\w-]")
_ANCHOR = re.compile(r"&(?<=[ \t]&)[\w-]")
_COMPLEX_KEY = re.compile(r"^[ \t]*(?:-[ \t]+)*\?[ \t\n]", re.MULTILINE)
#: A text in double quotes, in one piece, and whether it is a key; it may end with the line instead.
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*(?:"([ \t]*:)?|\\?(?=\n|\Z))')
_COLON = re.compile(r"(?:[\"'][ \t]*:|[ \t]*:(?=[ \t\n]|\Z))")
_NEXT_LINE = re.compile(r"\n( *)([^\s])")
_GAP = re.compile(GAP)
_LEAD = re.compile(r"[ \-\"']*")
_ROOT_KEY = re.compile(r"[\"']?([^\s\"':]+)[\"']?[ \t]*:(?=\s|\Z)")
_NEXT_ROOT = re.compile(r"\n[^ \t#\n-]")
_VALUES = {
    "false": re.compile(r"[\w!]"),
    "zero": re.compile(r"[-+]?\.?0|!"),
    "nonzero": re.compile(r"[^\s]"),
    "null": re.compile(r"!|null|Null|NULL|~|[,}\]]"),
    "empty": re.compile(r"!|null|Null|NULL|~|[\"'\[{|>&,}\]]"),
}
#: Where long texts are, and the kinds that hold them.
_DATA = ("data", "stringData", "binaryData")
_DATA_KINDS = {"ConfigMap", "Secret"}


class Look:
    """The text of one document.

    Blank lines and lines of comments are left out where they stand between keys and values, and so are the schemas
    of a definition, which are most of its text and which hardly a rule is about.
    """

    def __init__(self, document: Document) -> None:
        text = document.text.lstrip("\ufeff")
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if _DEFINITION in text:
            text = _SCHEMA.sub(r"\n\1openAPIV3Schema: x\n", text)
        self.text = _FILLERS.sub("", text) if _FILLED.search(text) else text
        self._blocks: dict[str, str] = {}

    def may_hold(self, rule: Rule) -> bool:
        """Whether a field that a rule names, and could change, may be in the document."""
        if self.is_opaque:
            return True
        return any(self._holds(rule, selector) for selector, _ in rule.targets)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of the document's objects, and perhaps some more words; nothing where the text does not tell."""
        if len(self._roots.get("kind", ())) == 1 and "items" not in self._roots:
            match = _KIND.match(self.block("kind"))
            if match is not None and not match[1].endswith("List"):
                return frozenset((match[1],))
            if match is None:
                return frozenset()
        found = frozenset(_ANY_KIND.findall(self.text))
        return frozenset() if "" in found or _has_escaped_key(self.text) else found

    @cached_property
    def is_opaque(self) -> bool:
        """Whether fields may be where the text does not show them.

        That is in lists of objects, behind aliases and merges, and under keys in unusual forms.
        """
        text = self.text
        return (
            not self.kinds
            or "items" in self._roots
            or any(kind.endswith("List") for kind in self.kinds)
            or any(len(spans) > 1 for spans in self._roots.values())
            or _NO_ROOT_KEYS.match(text) is not None
            or ("<" in text and "<<" in text)
            or ("&" in text and _ANCHOR.search(text) is not None)
            or (_DEFINITION in text and "*" in text and _ALIAS.search(text) is not None)
            or ("?" in text and _COMPLEX_KEY.search(text) is not None)
            or flow.is_odd(self.shallow)
            or _has_escaped_key(self.shallow)
        )

    @cached_property
    def has_braces(self) -> bool:
        """Whether something stands in braces, so that columns and lines tell nothing of it."""
        return flow.has_braces(self.shallow)

    @cached_property
    def shallow(self) -> str:
        """The text without the data of a ConfigMap or Secret, which may be long."""
        if not self.kinds or not self.kinds <= _DATA_KINDS:
            return self.text
        out, at_ = "", 0
        for name in _DATA:
            for start, end in self._roots.get(name, ()):
                line = self.text.find("\n", start)
                is_block = 0 <= line < end and self.text[start:line].rstrip().endswith(":")
                if is_block and _ENTRY.search(self.text, line, end) is not None:
                    out += self.text[at_:line] + " x\n"
                    at_ = end
        return out + self.text[at_:]

    @cached_property
    def group(self) -> str | None:
        """The API group of the document's object, "" for the core group; None where there may be several."""
        match = None if self.is_opaque else _VERSION.match(self.block("apiVersion"))
        return None if match is None else match[1].rpartition("/")[0]

    def _holds(self, rule: Rule, selector: Selector) -> bool:
        """Whether the block of the selector's first key holds the others, and the last one what it should."""
        keys = selector.keys
        if _DEFINITION in self.text and (AnyKey() in selector.steps or not _SCHEMAS.isdisjoint(keys)):
            return True
        block = self.block(keys[0])
        if rule.verb == "fill":
            return (bool(block) or len(keys) == 1) and all(name in block for name in keys[1:-1])
        if not block:
            return False
        for name in keys[1:]:
            if name not in block:
                return False
        kind = rule.when.value if selector.last else None
        return rule.verb != "strip" or _shows(keys[-1], block, kind)

    def block(self, name: str) -> str:
        """The text of a key at the root, up to the next one; "" where there is none."""
        if name not in self._blocks:
            start, end = self._roots.get(name, [(0, 0)])[0]
            self._blocks[name] = self.text[start:end]
        return self._blocks[name]

    @cached_property
    def _roots(self) -> dict[str, list[tuple[int, int]]]:
        """Where the keys at the root begin and end."""
        starts = [0, *(match.end() - 1 for match in _NEXT_ROOT.finditer(self.text))]
        found: dict[str, list[tuple[int, int]]] = {}
        for start, end in zip(starts, [*starts[1:], len(self.text)], strict=True):
            match = _ROOT_KEY.match(self.text, start, end)
            if match is not None:
                found.setdefault(match[1], []).append((start, end))
        return found


def _has_escaped_key(text: str) -> bool:
    """Whether a key in quotes, or a text in quotes over lines, has escapes."""
    return "\\" in text and any(
        "\\" in match[0] and (match[1] is not None or not match[0].endswith('"'))
        for match in _QUOTED.finditer(text)
    )


def _shows(name: str, block: str, kind: str | None) -> bool:
    """Whether a key stands somewhere in a block with a value that may be of a kind."""
    at_ = block.find(name)
    while at_ >= 0:
        before = block[at_ - 1] if at_ else "\n"
        colon = _COLON.match(block, at_ + len(name)) if not (before.isalnum() or before in "_./") else None
        if colon is not None:
            if kind is None or _VALUES[kind].match(block, _value(block, colon.end())):
                return True
            if kind in ("empty", "null", "nonzero") and opens_nothing(block, colon.end() - 1):
                return True
        at_ = block.find(name, at_ + 1)
    return False


def _value(block: str, colon: int) -> int:
    """Where a value begins, on the key's line or below it."""
    match = _GAP.match(block, colon)
    return match.end() if match else colon


def opens_nothing(text: str, colon: int) -> bool:
    """Whether a key whose line ends behind its colon has no value: no deeper line or list element follows."""
    line_end = text.find("\n", colon)
    rest = text[colon + 1 : line_end if line_end >= 0 else None].strip()
    if rest and not rest.startswith("#"):
        return False
    start = text.rfind("\n", 0, colon) + 1
    lead = _LEAD.match(text, start, colon)
    indent = len(lead[0].rstrip("\"'")) if lead else 0
    following = _NEXT_LINE.match(text, line_end) if line_end >= 0 else None
    # An element of a list may stand in the column of the list's key.
    return following is None or len(following[1]) + (following[2] == "-") <= indent
