"""The documents of one render and the cluster that they go to, as rules look at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from becalm.manifests import yamlio
from becalm.manifests.objects import Object, ObjectId, flatten, identify
from becalm.manifests.scalars import Value
from becalm.manifests.stream import Document
from becalm.normalise import builtin
from becalm.normalise.computed import Facts
from becalm.normalise.definitions import Definitions
from becalm.normalise.look import Look
from becalm.normalise.places import at
from becalm.normalise.rules import Reference

#: Kinds that a reference has to name.
_SCALED = ("StatefulSet", "ReplicaSet", "DaemonSet", "Rollout", "MachineSet")
#: Stands for kinds that no text names.
_UNTOLD = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where the objects go.

    `namespace` is that of objects that name none, `kube_version` is "" where it is not known, `definitions`
    are files of CustomResourceDefinitions that the cluster has.
    """

    namespace: str
    kube_version: str = ""
    definitions: tuple[File, ...] = ()


class Render:
    """The documents of one render, each parsed when it is first needed."""

    def __init__(self, documents: Sequence[Document], cluster: Cluster) -> None:
        self.documents = documents
        self.namespace = cluster.namespace
        self._looks: dict[int, Look] = {}
        self.facts = Facts(
            kube_version=cluster.kube_version,
            types=builtin.types(cluster.kube_version),
            definitions=Definitions(documents, cluster.definitions, self.look),
        )
        self._values: dict[int, Any] = {}
        self._begun: set[int] = set()
        self._by_kind: dict[str, list[Document]] | None = None
        self._targets: dict[int, dict[tuple[str, str], list[Value]]] = {}

    def look(self, document: Document) -> Look:
        """What a document's text shows."""
        if document.index not in self._looks:
            self._looks[document.index] = Look(document)
        return self._looks[document.index]

    def value(self, document: Document) -> Any:
        """What a document holds; the same object each time, and rules change it in place."""
        if document.index not in self._values:
            self._values[document.index] = _loaded(document)
        return self._values[document.index]

    def begin(self, document: Document) -> list[tuple[ObjectId, Object]]:
        """The objects of a document, which rules are about to change."""
        found = list(self._objects(document, self.value(document)))
        self._begun.add(document.index)
        return found

    def unchanged(self, document: Document) -> Iterator[tuple[ObjectId, Object]]:
        """The objects of a document as they were rendered."""
        value = _loaded(document) if document.index in self._begun else self.value(document)
        return self._objects(document, value)

    def _objects(self, document: Document, value: Any) -> Iterator[tuple[ObjectId, Object]]:
        for obj in flatten(value, where=document.where) if isinstance(value, dict) else ():
            owner = identify(obj, self.namespace)
            if owner is not None:
                yield owner, obj

    def refers(self, reference: Reference, to: ObjectId) -> bool:
        """Whether an object of the reference's kind names another by kind and name, in its namespace."""
        if id(reference) not in self._targets:
            found: dict[tuple[str, str], list[Value]] = {}
            for owner, obj in self._referring(reference):
                for path in reference.path.find(obj):
                    target: Any = at(obj, path)
                    name = target.get("name") if isinstance(target, dict) else target
                    found.setdefault((owner.namespace, str(name)), []).append(target)
            self._targets[id(reference)] = found
        targets = self._targets[id(reference)].get((to.namespace, to.name), ())
        return any(_means(target, reference, to) for target in targets)

    def _referring(self, reference: Reference) -> Iterator[tuple[ObjectId, Object]]:
        for document in self.of_kind(reference.kind):
            for owner, obj in self.unchanged(document):
                if (owner.group, owner.kind) == (reference.group, reference.kind):
                    yield owner, obj

    def of_kind(self, kind: str) -> Sequence[Document]:
        """The documents whose text names a kind, and those whose text tells none."""
        if self._by_kind is None:
            self._by_kind = {}
            filled = [document for document in self.documents if not document.is_empty]
            names = {name for document in filled for name in self.look(document).kinds}
            for document in filled:
                for name in sorted(self.look(document).kinds or {*names, _UNTOLD}):
                    self._by_kind.setdefault(name, []).append(document)
        return self._by_kind.get(kind, self._by_kind.get(_UNTOLD, []))


def _loaded(document: Document) -> Any:
    return yamlio.load(document.text, where=document.where, line=document.line)


def _means(target: Value, reference: Reference, owner: ObjectId) -> bool:
    """Whether a reference of an object's name means the object; a plain text is no more than a name.

    Where a scaler names no kind, KEDA means a Deployment (keda.sh/v1alpha1, `scaleTargetRef`).
    """
    if not isinstance(target, dict):
        return True
    if any(target.get(key) != value for key, value in reference.equals):
        return False
    version = target.get("apiVersion")
    if isinstance(version, str) and version and version.rpartition("/")[0] != owner.group:
        return False
    if "kind" in target:
        return target["kind"] == owner.kind
    return owner.kind not in _SCALED
