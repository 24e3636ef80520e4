"""Live objects, as `kubectl get -o yaml` prints them, and how what is rendered differs from them."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from becalm.errors import ManifestError
from becalm.manifests.objects import Object, ObjectId, identify, objects
from becalm.manifests.paths import Path
from becalm.manifests.paths import render as render_path
from becalm.manifests.scalars import Value
from becalm.manifests.stream import split

State = Literal["same", "changes", "new", "new object", "only live"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field that holds a secret, or what was drawn: what a sync does to it.

    The fingerprints tell whether two values are equal, within one application, and nothing else; "" where there is none.
    """

    object: str
    field: str
    state: State
    live: str
    rendered: str

    @property
    def changes(self) -> bool:
        """Whether a sync gives a running application another value."""
        return self.state == "changes"


class Live:
    """The live objects of one namespace's application, or more of them."""

    def __init__(self, found: Iterable[tuple[ObjectId, Object]]) -> None:
        self._objects = dict(found)

    def get(self, owner: ObjectId) -> Object | None:
        """The object with this identity."""
        return self._objects.get(owner)

    def like(self, owner: ObjectId) -> Iterator[tuple[ObjectId, Object]]:
        """Objects of the same kind and namespace, in the order of their names."""
        for one, obj in sorted(self._objects.items()):
            if (one.kind, one.group, one.namespace) == (owner.kind, owner.group, owner.namespace):
                yield one, obj


def read(texts: Iterable[tuple[str, str]], namespace: str) -> Live:
    """The objects of files.

    Args:
        texts: of YAML or JSON, one or more documents or Lists, each with its name for messages.
        namespace: of objects that name none.

    Raises:
        ManifestError: one is not YAML, or holds no object.
    """
    found: list[tuple[ObjectId, Object]] = []
    for name, text in texts:
        before = len(found)
        try:
            parsed = list(objects(split(text)))
        except ManifestError as error:
            raise ManifestError(error.what, where=f"{name}: {error.where}", hint=error.hint) from None
        for _, obj in parsed:
            owner = identify(obj, namespace)
            if owner is not None:
                found.append((owner, folded(obj)))
        if len(found) == before:
            raise ManifestError(
                "there is no object in it",
                where=name,
                hint="write it with `kubectl get secret,configmap --namespace NS --output yaml`",
            )
    return Live(found)


def rendered(output: str, namespace: str) -> list[tuple[ObjectId, Object]]:
    """The objects of a render, Secrets as the server stores them."""
    return [
        (owner, folded(obj))
        for _, obj in objects(split(output))
        if (owner := identify(obj, namespace)) is not None
    ]


def folded(obj: Object) -> Object:
    """An object as the server stores it: of a Secret, `stringData` becomes part of `data` (pkg/registry/core/secret)."""
    plain = obj.get("stringData")
    if obj.get("kind") != "Secret" or not isinstance(plain, dict):
        return obj
    data = obj.get("data")
    encoded: Object = {
        key: base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")
        if isinstance(text, str)
        else text
        for key, text in plain.items()
    }
    rest: Object = {key: value for key, value in obj.items() if key != "stringData"}
    return {**rest, "data": {**(data if isinstance(data, dict) else {}), **encoded}}


def at(obj: Value, path: Path) -> Value:
    """What stands at a path; None where there is nothing."""
    for step in path:
        if isinstance(obj, dict) and isinstance(step, str):
            obj = obj.get(step)
        elif isinstance(obj, list) and isinstance(step, int):
            obj = obj[step] if step < len(obj) else None
        else:
            return None
    return obj


def text_of(value: Value) -> str | None:
    """A scalar as text; None for anything else."""
    if value is None or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else str(value)


def fields(
    output: Sequence[tuple[ObjectId, Object]],
    live: Live,
    places: Iterable[tuple[ObjectId, Path]],
    key: bytes,
) -> list[Field]:
    """What a sync does to every value of every Secret, and to what was drawn in other objects.

    Args:
        output: the objects of a render.
        live: those of the cluster.
        places: what was drawn; Secrets are looked at in whole.
        key: of the fingerprints.
    """
    drawn: dict[ObjectId, dict[Path, None]] = {}
    for owner, path in places:
        drawn.setdefault(owner, {})[path] = None
    found: list[Field] = []
    for owner, obj in output:
        theirs = live.get(owner)
        paths = _data_paths(obj, theirs) if owner.kind == "Secret" else list(drawn.get(owner, {}))
        for path in paths:
            ours_text, their_text = text_of(at(obj, path)), text_of(at(theirs, path))
            if ours_text is not None or their_text is not None:
                found.append(
                    Field(
                        object=str(owner),
                        field=render_path(path),
                        state=_state(ours_text, their_text, is_new=theirs is None),
                        live=_fingerprint(key, their_text),
                        rendered=_fingerprint(key, ours_text),
                    )
                )
    return found


def _data_paths(obj: Object, theirs: Object | None) -> list[Path]:
    names: dict[str, None] = {}
    for one in (obj, theirs or {}):
        data = one.get("data")
        names |= dict.fromkeys(data if isinstance(data, dict) else ())
    return [("data", name) for name in sorted(names)]


def _state(ours: str | None, theirs: str | None, *, is_new: bool) -> State:
    if is_new:
        return "new object"
    if theirs is None:
        return "new"
    if ours is None:
        return "only live"
    return "same" if ours == theirs else "changes"


def _fingerprint(key: bytes, text: str | None) -> str:
    if text is None:
        return ""
    return hmac.digest(key, b"becalm fingerprint" + text.encode("utf-8", "surrogateescape"), "sha256").hex()[
        :16
    ]
