"""Build one value from the events of a YAML parser, by the rules of Go's decoder.

The reference is `decode.go` of go.yaml.in/yaml/v2 2.4.3 and `convertToJSONableObject` of sigs.k8s.io/yaml
1.6.0. Nothing here recurses; an alias is priced before it is expanded.
"""

from __future__ import annotations

import base64
import math
import re
from types import NoneType
from typing import Any, Final, NoReturn, Protocol

from becalm.errors import ManifestError
from becalm.manifests import paths, scalars
from becalm.manifests.scalars import Value

MAX_DEPTH: Final = 500
"""Mappings and lists inside one another; real manifests stay below 50."""

MAX_NODES: Final = 5_000_000
"""Keys and values in one document, aliases expanded; 5 MB of manifests have about 250,000."""

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = _TAG + "merge"
_SEQUENCE_TAGS = frozenset((None, "!", _TAG + "seq", _TAG + "omap", _TAG + "pairs"))
_MAPPING_TAGS = frozenset((None, "!", _TAG + "map", _TAG + "set"))
_SCALAR_TAGS: dict[str, type] = {
    _TAG + "null": NoneType,
    _TAG + "bool": bool,
    _TAG + "int": int,
    _TAG + "float": float,
}
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt][0-9:]+(?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})| [0-9:]+(?:\.[0-9]+)?)?"
).fullmatch
_ABSENT: Final[Any] = object()
_SHOWN = 80


class Mark(Protocol):
    """A place in the text; `line` counts from 0."""

    line: int


class Event(Protocol):
    """The part of a parser's event that all kinds have."""

    start_mark: Mark


class NodeEvent(Event, Protocol):
    """The start of a list or mapping, or an alias."""

    anchor: str | None
    tag: str | None


class ScalarEvent(NodeEvent, Protocol):
    """A scalar; `implicit[0]` says that it is plain and untagged (or tagged `!`)."""

    value: str
    implicit: tuple[bool, bool]


class _Slot:
    """What an anchor stands for; `size` (in nodes) stays 0 until the anchored node is complete."""

    __slots__ = ("size", "value")

    def __init__(self, value: Value, size: int) -> None:
        self.value = value
        self.size = size


class _Frame:
    """An open list or mapping.

    `key` is the pending key, `merging` says that it was `<<`, `other` holds what Go calls the keys that are
    not strings, by their text, and `given` the keys written here (None until a merge adds others).
    """

    __slots__ = ("given", "key", "merging", "other", "slot", "start", "value")

    def __init__(self, value: Any, start: int, slot: _Slot | None) -> None:
        self.value = value
        self.start = start
        self.slot = slot
        self.key: Any = _ABSENT
        self.merging = False
        self.other: dict[str, Any] = {}
        self.given: set[str] | None = None


class TreeBuilder:
    """Takes the events between a document's start and its end; the value is then in `root`.

    Args:
        where: the document, for messages.
        line: the number of its first line, for messages.
        strict: a key given twice is an error rather than a warning.
        warnings: receives one sentence for each key given twice.
    """

    def __init__(self, *, where: str, line: int, strict: bool, warnings: list[str] | None) -> None:
        self.root: Any = None
        self._where = where
        self._line = line
        self._strict = strict
        self._warnings = warnings
        self._nodes = 0
        self._aliased = 0
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Slot] = {}
        self._memo: dict[str, scalars.Scalar] = {}
        # Per mapping with keys that are not strings: the mapping (so that its id stays taken) and those keys.
        self._other: dict[int, tuple[Any, dict[str, Any]]] = {}

    def fail(self, what: str, line: int | None = None, *, hint: str | None = None) -> NoReturn:
        """Raise a `ManifestError` for a line that counts from 0 within the document."""
        place = self._where if line is None else f"{self._where}, line {self._line + line}"
        raise ManifestError(what, where=place, hint=hint) from None

    @property
    def is_open(self) -> bool:
        """Whether a list or mapping still waits for its end."""
        return bool(self._stack)

    def scalar(self, event: ScalarEvent) -> None:
        """A scalar: resolve it as Go does and put it where it belongs."""
        self._nodes += 1
        text = event.value
        value: Any = text
        if event.tag is not None:
            value = self._tagged(event)
        elif event.implicit[0] and text[:1] in scalars.HINTS:
            if text in self._memo:
                value = self._memo[text]
            else:
                value = self._memo[text] = scalars.plain(text)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Slot(value, 1)
        if text == "<<" and _is_merge(event) and self._awaits_key():
            # Go's decoder doesn't visit a merge key, so it isn't counted.
            self._nodes -= 1
            self._stack[-1].merging = True
        else:
            self._add(value, event)

    def open(self, event: NodeEvent, *, mapping: bool) -> None:
        """The start of a mapping or list; Go ignores tags here, and only the usual ones are let through."""
        line = event.start_mark.line
        if event.tag not in (_MAPPING_TAGS if mapping else _SEQUENCE_TAGS):
            self._refuse_tag(event)
        if len(self._stack) >= MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH}", line)
        slot = None
        if event.anchor is not None:
            slot = self._anchors[event.anchor] = _Slot(None, 0)
        self._stack.append(_Frame({} if mapping else [], self._nodes, slot))
        self._count(1, line)

    def close(self, event: Event) -> None:
        """The end of the innermost mapping or list."""
        frame = self._stack.pop()
        if frame.other:
            self._other[id(frame.value)] = (frame.value, frame.other)
        if frame.slot is not None:
            frame.slot.value = frame.value
            frame.slot.size = self._nodes - frame.start
        self._count(0, event.start_mark.line)
        self._add(frame.value, event)

    def alias(self, event: NodeEvent) -> None:
        """A use of an anchor: check what it would cost, then add a copy."""
        line = event.start_mark.line
        slot = self._anchors.get(event.anchor or "")
        if slot is None:
            self.fail("an alias without its anchor", line)
        if slot.size == 0:
            self.fail("an alias inside the value that it stands for", line)
        self._aliased += slot.size
        self._count(1 + slot.size, line)
        share = self._aliased / self._nodes
        if self._aliased > 100 and self._nodes > 1000 and share > _allowed_alias_share(self._nodes):
            self.fail("more uses of aliases than Argo CD accepts", line)
        if isinstance(slot.value, list) and self._stack and self._stack[-1].merging:
            self._refuse_merge(line)
        self._add(self._copy(slot.value, line), event)

    def _awaits_key(self) -> bool:
        frame = self._stack[-1] if self._stack else None
        return (
            frame is not None and frame.key is _ABSENT and not frame.merging and isinstance(frame.value, dict)
        )

    def _add(self, value: Any, event: Event) -> None:
        """Put a finished node into the open list or mapping: as an item, a key, or the value of the key."""
        if not self._stack:
            self.root = self._number(value, event) if value.__class__ is float else value
            return
        frame = self._stack[-1]
        container = frame.value
        if container.__class__ is list:
            # Numbers in a list that is a mapping's key are dealt with when that key is refused.
            container.append(self._number(value, event) if value.__class__ is float else value)
        elif frame.merging:
            frame.merging = False
            self._merge(frame, value, event.start_mark.line)
        elif frame.key is _ABSENT:
            if value.__class__ is str and value not in container:
                frame.key = value
            else:
                frame.key = self._key(frame, value, event.start_mark.line)
        else:
            container[frame.key] = self._number(value, event) if value.__class__ is float else value
            if frame.given is not None:
                frame.given.add(frame.key)
            frame.key = _ABSENT

    def _number(self, value: float, event: Event) -> float | int:
        if not math.isfinite(value):
            self.fail("an infinite or undefined number, which JSON cannot hold", event.start_mark.line)
        return scalars.narrow(value)

    def _key(self, frame: _Frame, key: Any, line: int) -> str:
        """The text of a key that is not a string or that is there already."""
        if key is None or isinstance(key, list | dict):
            self.fail("a key that is null, a list or a mapping, which Argo CD refuses", line)
        identity: Any = None
        text: str | None = key
        if not isinstance(key, str):
            # Go's maps never find a NaN again.
            identity = object() if math.isnan(key) else (type(key), key)
            text = scalars.key_text(key)
        if text is None:
            self.fail("an integer key beyond 63 bits, which Argo CD refuses", line)
        if text in frame.value:
            self._require_same_kind(frame, text, identity, line)
            if frame.given is None or text in frame.given:
                self._twice(text, line)
        if identity is not None:
            frame.other[text] = identity
        else:
            frame.other.pop(text, None)
        return text

    def _require_same_kind(self, frame: _Frame, text: str, identity: Any, line: int) -> None:
        if frame.other.get(text) != identity:
            self.fail(
                f"key {self._path(text)} is there as a string and as a number or bool (or as two kinds of"
                " number), and Argo CD keeps one of them at random",
                line,
                hint="write the key once",
            )

    def _twice(self, text: str, line: int) -> None:
        if self._strict:
            self.fail(f"key {self._path(text)} is there twice", line, hint="remove one of them")
        if self._warnings is not None:
            place = f"{self._where}, line {self._line + line}"
            self._warnings.append(f"{place}: key {self._path(text)} is there twice; the last one counts")

    def _path(self, last: str) -> str:
        steps: list[str | int] = []
        for frame in self._stack[:-1]:
            key = "?" if frame.key is _ABSENT else frame.key
            steps.append(len(frame.value) if isinstance(frame.value, list) else key)
        shown = paths.render((*steps, last))
        return shown if len(shown) <= _SHOWN else "..." + shown[-_SHOWN:]

    def _merge(self, frame: _Frame, value: Any, line: int) -> None:
        """`<<`: take over the keys of one mapping or of several, where the earlier ones take precedence."""
        if frame.given is None:
            frame.given = set(frame.value)
        for source in reversed(value) if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                self._refuse_merge(line)
            _, other = self._other.get(id(source), (None, {}))
            for text, item in source.items():
                if text in frame.value:
                    self._require_same_kind(frame, text, other.get(text), line)
                if text in other:
                    frame.other[text] = other[text]
                frame.value[text] = item

    def _refuse_merge(self, line: int) -> NoReturn:
        self.fail("a merge key (<<) needs a mapping or a list of mappings", line)

    def _count(self, more: int, line: int) -> None:
        self._nodes += more
        if self._nodes > MAX_NODES:
            self.fail(f"more than {MAX_NODES} values, each use of an alias counted in full", line)

    def _copy(self, value: Value, line: int) -> Value:
        """A separate copy, so that changing one use of an anchor never changes another."""
        holder: Any = [value]
        todo: list[tuple[Any, int]] = [(holder, len(self._stack))]
        while todo:
            target, depth = todo.pop()
            for at, item in list(target.items() if isinstance(target, dict) else enumerate(target)):
                if not isinstance(item, list | dict):
                    continue
                if depth >= MAX_DEPTH:
                    self.fail(f"nested deeper than {MAX_DEPTH}", line)
                copied = target[at] = item.copy()
                todo.append((copied, depth + 1))
                if id(item) in self._other:
                    self._other[id(copied)] = (copied, self._other[id(item)][1])
        copy: Value = holder[0]
        return copy

    def _tagged(self, event: ScalarEvent) -> scalars.Scalar:
        """A scalar with an explicit tag: Go resolves the text first and then requires that type."""
        tag, text, line = event.tag or "", event.value, event.start_mark.line
        if tag in ("!", _TAG + "str") or (tag == _MERGE and text == "<<"):
            return text
        if tag == _TAG + "binary":
            return self._binary(text, line)
        if tag == _TAG + "timestamp" and _TIMESTAMP(text):
            return text
        if tag not in _SCALAR_TAGS and tag != _TAG + "timestamp":
            self._refuse_tag(event)
        value = scalars.plain(text) if text[:1] in scalars.HINTS else text
        if tag == _TAG + "float" and type(value) is int and value <= scalars.INT64_MAX:
            return float(value)
        if type(value) is not _SCALAR_TAGS.get(tag):
            self.fail(f"a value that does not fit its tag !!{tag.removeprefix(_TAG)}", line)
        return value

    def _binary(self, text: str, line: int) -> str:
        data = text.replace("\r", "").replace("\n", "")
        try:
            value = base64.b64decode(data.encode("ascii"), validate=True).decode("utf-8")
        except ValueError:
            value = None
        # Python forgives surplus padding, Go doesn't.
        if value is None or len(data) % 4:
            self.fail("a !!binary value that is not base64 of UTF-8 text", line)
        return value

    def _refuse_tag(self, event: NodeEvent) -> NoReturn:
        self.fail("a tag that manifests may not use", event.start_mark.line, hint="remove the tag")


def _is_merge(event: ScalarEvent) -> bool:
    return event.implicit[0] or event.tag == _MERGE


def _allowed_alias_share(nodes: int) -> float:
    """The part of all decoded nodes that may come from aliases (`allowedAliasRatio` of decode.go)."""
    low, high = 400_000, 4_000_000
    return 0.99 - 0.89 * (min(max(nodes, low), high) - low) / (high - low)
