"""Where two rendered streams differ: object and field, never a value."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Literal

from becalm.manifests.objects import Object, ObjectId, identify, objects
from becalm.manifests.paths import Path, leaves
from becalm.manifests.scalars import Value
from becalm.manifests.stream import Document, split

Kind = Literal["changed", "only-a", "only-b"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One leaf, or one object, that is not the same in both streams."""

    object: ObjectId | None
    """The object, named as in stream a if it is there; None if it has no kind or name."""

    path: Path
    """The field; empty if the whole object is in one stream only."""

    kind: Kind
    """`changed`, or the only stream that has the field or object."""

    where: str
    """The object's document, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    document: Document
    obj: Object
    id: ObjectId | None


def differences(a_text: str, b_text: str, default_namespace: str) -> list[Difference]:
    """What differs between two streams, in the order of stream a, then what only b has.

    Documents that are there in both, character by character, are not parsed. The rest is paired by identity;
    several of one identity by their order; and objects still alone (a random name, say) by source, kind and
    namespace, in document order. The order of documents and keys is not a difference, that of lists is.

    Raises:
        ManifestError: a document that differs cannot be read.
    """
    a_items, b_items = _unequal(split(a_text, where="a"), split(b_text, where="b"), default_namespace)
    partner: dict[int, int] = {}
    for loose in (False, True):
        _pair(a_items, b_items, partner, loose=loose)
    found: list[Difference] = []
    for index, item in enumerate(a_items):
        if index not in partner:
            found.append(_whole(item, "only-a"))
            continue
        for path, kind in _changed(item.obj, b_items[partner[index]].obj):
            found.append(Difference(object=item.id, path=path, kind=kind, where=item.document.where))
    paired = set(partner.values())
    found.extend(_whole(item, "only-b") for index, item in enumerate(b_items) if index not in paired)
    return found


def _whole(item: _Item, kind: Kind) -> Difference:
    return Difference(object=item.id, path=(), kind=kind, where=item.document.where)


def _unequal(
    a_documents: list[Document], b_documents: list[Document], default_namespace: str
) -> tuple[list[_Item], list[_Item]]:
    """The objects of those documents that have no equal text on the other side, duplicates counted."""
    common = Counter(d.text for d in a_documents) & Counter(d.text for d in b_documents)
    sides = []
    for documents in (a_documents, b_documents):
        left = common.copy()
        rest = []
        for document in documents:
            if left[document.text] > 0:
                left[document.text] -= 1
            else:
                rest.append(document)
        sides.append(
            [_Item(document=d, obj=obj, id=identify(obj, default_namespace)) for d, obj in objects(rest)]
        )
    return sides[0], sides[1]


def _pair(a_items: list[_Item], b_items: list[_Item], partner: dict[int, int], *, loose: bool) -> None:
    """Add to `partner` (index in a to index in b) what has the same key and the same rank among its equals."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    taken = set(partner.values())
    for index, item in enumerate(b_items):
        key = _key(item, loose=loose)
        if index not in taken and key is not None:
            waiting[key].append(index)
    for queue in waiting.values():
        queue.reverse()
    for index, item in enumerate(a_items):
        key = _key(item, loose=loose)
        if index not in partner and key is not None and waiting.get(key):
            partner[index] = waiting[key].pop()


def _key(item: _Item, *, loose: bool) -> Hashable:
    if not loose:
        return item.id
    if item.id is None:
        return (item.document.source, str(item.obj.get("kind")))
    return (item.document.source, item.id.kind, item.id.group, item.id.namespace)


def _changed(a: Value, b: Value) -> Iterator[tuple[Path, Kind]]:
    todo: list[tuple[Path, Value, Value]] = [((), a, b)]
    while todo:
        path, left, right = todo.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            steps: list[str | int] = [*left, *(key for key in right if key not in left)]
        elif isinstance(left, list) and isinstance(right, list):
            steps = list(range(max(len(left), len(right))))
        else:
            if type(left) is not type(right) or left != right:
                yield path, "changed"
            continue
        both: list[tuple[Path, Value, Value]] = []
        for step in steps:
            in_left, in_right = _has(left, step), _has(right, step)
            if in_left and in_right:
                both.append(((*path, step), left[step], right[step]))  # type: ignore[index]
                continue
            only: Value = (left if in_left else right)[step]  # type: ignore[index]
            kind: Kind = "only-a" if in_left else "only-b"
            yield from (((*path, step, *rest), kind) for rest in _ends(only))
        todo.extend(reversed(both))


def _has(node: dict[str, Value] | list[Value], step: str | int) -> bool:
    return isinstance(step, int) and step < len(node) if isinstance(node, list) else step in node


def _ends(value: Value) -> Iterator[Path]:
    """The paths of a subtree's leaves, or the subtree itself if it has none."""
    none = True
    for path, _ in leaves(value):
        none = False
        yield path
    if none:
        yield ()
