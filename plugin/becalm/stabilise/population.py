"""Objects, as an API server would give them to `lookup`."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace

from becalm.manifests.objects import Object, ObjectId, identify
from becalm.manifests.scalars import Value
from becalm.stabilise.looking import Asked


class Population:
    """Objects by what they are asked for.

    A later object takes the place of an earlier one of the same identity.

    Args:
        objects: as manifests have them.
        namespace: of objects that name none.
    """

    def __init__(self, objects: Iterable[Object], *, namespace: str) -> None:
        self._namespace = namespace
        self._objects: dict[ObjectId, Object] = {}
        for obj in objects:
            owner = identify(obj, namespace)
            if owner is not None:
                self._objects[owner] = obj

    def find(self, asked: Asked) -> Object:
        """What a lookup gives: the object, a list of all, or an empty mapping.

        As in helm's own (pkg/engine/lookup_func.go), the namespace does not count for kinds that have none, and an
        object that has one is not found without.
        """
        group, slash, _ = asked.api_version.rpartition("/")
        group = group if slash else ""
        if asked.name:
            owner = ObjectId(kind=asked.kind, namespace=asked.namespace, name=asked.name, group=group)
            for one in (owner, replace(owner, namespace="")):
                if one in self._objects:
                    return stored(self._objects[one], one)
            unscoped = self._unscoped(replace(owner, namespace=self._namespace))
            return {} if asked.namespace or unscoped is None else unscoped
        found = sorted(
            (
                owner
                for owner in self._objects
                if (owner.kind, owner.group) == (asked.kind, group)
                and (asked.namespace in ("", owner.namespace) or not owner.namespace)
            ),
            key=lambda owner: (owner.namespace, owner.name),
        )
        return listed(asked, [stored(self._objects[owner], owner) for owner in found])

    def _unscoped(self, owner: ObjectId) -> Object | None:
        """An object that names no namespace, of a custom kind that may have none."""
        obj = self._objects.get(owner)
        metadata = None if obj is None else obj.get("metadata")
        is_custom = "." in owner.group and not owner.group.endswith(".k8s.io")
        return obj if is_custom and isinstance(metadata, dict) and not metadata.get("namespace") else None


def listed(asked: Asked, items: list[Object]) -> Object:
    """The list of these objects."""
    values: list[Value] = list(items)
    return {
        "apiVersion": asked.api_version,
        "kind": f"{asked.kind}List",
        "metadata": {"resourceVersion": ""},
        "items": values,
    }


def stored(obj: Object, owner: ObjectId) -> Object:
    """An object as the API server gives it back: with its namespace, and a Secret's texts in base64; else as it is."""
    done = dict(obj)
    metadata = obj.get("metadata")
    if owner.namespace and isinstance(metadata, dict):
        done["metadata"] = {**metadata, "namespace": owner.namespace}
    if owner.kind == "Secret" and not owner.group:
        texts = done.pop("stringData", None)
        data = done.get("data")
        if isinstance(texts, dict):
            encoded: dict[str, Value] = {
                key: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
                for key, text in texts.items()
                if isinstance(text, str)
            }
            done["data"] = {**(data if isinstance(data, dict) else {}), **encoded}
    return done
