"""Where a piece of text lands in rendered objects: object and field, through base64.

A field of a Secret's `data` is base64; so may be any string that looks like it, and parts of longer
strings (`auths` of a Docker configuration). Decoding goes a few levels deep.
"""

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from becalm.manifests.objects import Object, ObjectId
from becalm.manifests.paths import Path, leaves

_MAX_NESTING = 3
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
#: All UTF-8 and a little more. Most digests are no text, and to raise an exception for each takes three times as long.
_MAYBE_TEXT = re.compile(
    rb"(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})*+\Z"
)
_INNER_KEY = re.compile(r"([A-Za-z0-9_][\w.-]*)[\"']?\s*[:=]\s*[\"']?[^\s,;&]*$")
_SECTION = re.compile(r"^\s*\[([^\]\s]+)\]\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A string of an object, and the strings that base64 hides in it."""

    object: ObjectId
    path: Path
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One place where a text lands.

    `inner` is the nearest key before it within a longer text (an entry of an embedded file), ""
    where there is none; `whole` tells whether it is all of the field; `offset` counts characters.
    """

    object: ObjectId
    path: Path
    inner: str
    whole: bool
    offset: int

    def rank(self) -> tuple[bool, bool, ObjectId, str, int]:
        """Sorts the place that owns a value first: Secrets, whole fields, then by name."""
        path = "\0".join(str(step) for step in self.path)
        return self.object.kind != "Secret", not self.whole, self.object, path, self.offset


def strings(obj: Object, identity: ObjectId) -> Iterator[Leaf]:
    """Every string of an object, keys included, with what base64 hides in it."""
    for path, scalar in leaves(obj, keys=True):
        if isinstance(scalar, str) and scalar:
            yield Leaf(object=identity, path=path, texts=tuple(decoded(scalar)))


def decoded(text: str, nesting: int = 0) -> Iterator[str]:
    """A text, and the texts that base64 hides in it, a few levels deep."""
    yield text
    if nesting >= _MAX_NESTING:
        return
    for match in _BASE64.finditer(text):
        token = match.group()
        if len(token) % 4:
            continue
        try:
            data = binascii.a2b_base64(token, strict_mode=True)
            if _MAYBE_TEXT.match(data) is None:
                continue
            hidden = data.decode()
        except (binascii.Error, ValueError):
            continue
        yield from decoded(hidden, nesting + 1)


class Index:
    """The strings of a render, searchable for the places where a text lands.

    A search costs one pass over all strings, letter case ignored (charts lower and upper their values).
    """

    def __init__(self, among: Iterable[Leaf]) -> None:
        self._entries: list[tuple[Leaf, str]] = [(leaf, text) for leaf in among for text in leaf.texts]
        self._starts: list[int] = []
        lowered: list[str] = []
        position = 0
        for _, text in self._entries:
            # A letter whose lower case is longer than itself would shift all that follows.
            lower = text.lower()
            lowered.append(lower if len(lower) == len(text) else text)
            self._starts.append(position)
            position += len(text) + 1
        self._all = "\0".join(lowered)

    def find(self, text: str) -> list[Landing]:
        """All places where a text lands, the one that owns it first, at most one for each string."""
        wanted = text.lower()
        found: dict[int, Landing] = {}
        at = self._all.find(wanted)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            leaf, candidate = self._entries[number]
            offset = at - self._starts[number]
            landing = Landing(
                object=leaf.object,
                path=leaf.path,
                inner=_inner(candidate, offset),
                whole=len(candidate.strip()) == len(text),
                offset=offset,
            )
            found.setdefault(id(leaf), landing)
            at = self._all.find(wanted, self._starts[number] + len(candidate) + 1)
        return sorted(found.values(), key=Landing.rank)


@dataclass(frozen=True, slots=True)
class Part:
    """A document as text, and what reads its strings, which takes much longer."""

    text: str
    read: Callable[[], Iterable[Leaf]]


class Parts:
    """The strings of many documents, of which only those are read that can hold what is searched.

    Where a text lands, its longest run without a blank stands in the document too, or in what base64 hides in
    it: YAML folds lines at blanks only. Documents in which something is escaped, or that are not ASCII, are always read.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = list(parts)
        self._read: dict[int, Index] = {}
        self._always: list[int] = []
        self._starts: list[int] = []
        lowered: list[str] = []
        position = 0
        for number, part in enumerate(self._parts):
            visible = "\0".join(decoded(part.text))
            # What stands in an escape need not be what it says.
            if "\\" in part.text or "''" in part.text or not visible.isascii():
                self._always.append(number)
            text = visible.lower()
            lowered.append(text)
            self._starts.append(position)
            position += len(text) + 1
        self._all = "\0".join(lowered)

    def find(self, text: str) -> list[Landing]:
        """As `Index.find` over all documents."""
        numbers = sorted({*self._always, *self._holding(max(text.lower().split(), key=len, default=""))})
        found = [landing for number in numbers for landing in self._index(number).find(text)]
        return sorted(found, key=Landing.rank)

    def _holding(self, run: str) -> Iterator[int]:
        at = self._all.find(run)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            yield number
            if number + 1 == len(self._starts):
                return
            at = self._all.find(run, self._starts[number + 1])

    def _index(self, number: int) -> Index:
        if number not in self._read:
            self._read[number] = Index(self._parts[number].read())
        return self._read[number]


def _inner(text: str, offset: int) -> str:
    line_start = text.rfind("\n", 0, offset) + 1
    match = _INNER_KEY.search(text[line_start:offset])
    if match is None:
        return ""
    sections = _SECTION.findall(text, 0, line_start)
    return f"[{sections[-1]}]{match.group(1)}" if sections else match.group(1)
