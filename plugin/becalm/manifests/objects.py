"""Kubernetes objects in documents, and what tells one from another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from becalm.errors import ManifestError
from becalm.manifests import yamlio
from becalm.manifests.scalars import Value
from becalm.manifests.stream import Document

Object = dict[str, Value]
"""A mapping as loaded, usually with `apiVersion`, `kind` and `metadata`."""

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_STORAGE = "storage.k8s.io"
# Kinds of Kubernetes itself that have no namespace. Which custom kinds have none, only the cluster knows.
_CLUSTER_SCOPED = frozenset(
    (
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        (_RBAC, "ClusterRole"),
        (_RBAC, "ClusterRoleBinding"),
        (_ADMISSION, "MutatingAdmissionPolicy"),
        (_ADMISSION, "MutatingAdmissionPolicyBinding"),
        (_ADMISSION, "MutatingWebhookConfiguration"),
        (_ADMISSION, "ValidatingAdmissionPolicy"),
        (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
        (_ADMISSION, "ValidatingWebhookConfiguration"),
        (_STORAGE, "CSIDriver"),
        (_STORAGE, "CSINode"),
        (_STORAGE, "StorageClass"),
        (_STORAGE, "VolumeAttachment"),
        (_STORAGE, "VolumeAttributesClass"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "IngressClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("resource.k8s.io", "DeviceClass"),
        ("scheduling.k8s.io", "PriorityClass"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectId:
    """What identifies an object in a cluster; ordered by kind, namespace, name, group.

    The API version is left out, since the same object can be written in several.
    """

    kind: str
    namespace: str
    """Empty for kinds that have none."""
    name: str
    """`metadata.name`, or `metadata.generateName` where there is no name."""
    group: str
    """The API group without version; empty for the core group."""

    def __str__(self) -> str:
        """`Secret/ns/name`, `Deployment.apps/ns/name`, or `Namespace/name` without a namespace."""
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return "/".join((kind, self.namespace, self.name) if self.namespace else (kind, self.name))


def identify(obj: Value, default_namespace: str) -> ObjectId | None:
    """The identity of an object, or None if it has no kind or no name.

    Args:
        obj: any loaded value.
        default_namespace: where an object without `metadata.namespace` will land. It is not used for the
            kinds of Kubernetes itself that have no namespace.
    """
    if not isinstance(obj, dict):
        return None
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return None
    kind = _text(obj, "kind")
    name = _text(metadata, "name") or _text(metadata, "generateName")
    if not kind or not name:
        return None
    group, slash, _ = _text(obj, "apiVersion").rpartition("/")
    group = group if slash else ""
    namespace = _text(metadata, "namespace") or default_namespace
    if (group, kind) in _CLUSTER_SCOPED:
        namespace = ""
    return ObjectId(kind=kind, namespace=namespace, name=name, group=group)


def _text(mapping: Object, key: str) -> str:
    value: Any = mapping.get(key)
    return value if isinstance(value, str) else ""


def flatten(obj: Object, *, where: str) -> list[Object]:
    """The objects that Argo CD makes of one document's value.

    Whatever its kind, a mapping whose `items` is a list is replaced by the items (one level, the wrapper is
    lost), and one with `items: null` and neither `spec` nor `status` is dropped (`reposerver/repository`).

    Raises:
        ManifestError: an item is not a mapping.
    """
    if "items" not in obj:
        return [obj]
    items = obj["items"]
    if items is None:
        return [obj] if "spec" in obj or "status" in obj else []
    if not isinstance(items, list):
        return [obj]
    found = []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise ManifestError(f"items[{index}] is not a mapping, which Argo CD refuses", where=where)
        found.append(item)
    return found


def objects(
    documents: Iterable[Document], *, strict: bool = False, warnings: list[str] | None = None
) -> Iterator[tuple[Document, Object]]:
    """Every object of the documents with its document, lists flattened, empty documents left out.

    Args:
        documents: as `stream.split` gives them.
        strict: a key given twice is an error.
        warnings: receives one sentence for each key given twice.

    Raises:
        ManifestError: a document is not YAML, not a mapping, or has no `kind`; Argo CD refuses each of them.
    """
    for document in documents:
        if document.is_empty:
            continue
        value = yamlio.load(
            document.text, where=document.where, line=document.line, strict=strict, warnings=warnings
        )
        if value is None:
            continue
        if not isinstance(value, dict):
            raise ManifestError(
                "the document is not a mapping",
                where=f"{document.where}, line {document.line}",
                hint="check the template for stray text",
            )
        if not _text(value, "kind"):
            raise ManifestError(
                "the document has no `kind`",
                where=f"{document.where}, line {document.line}",
                hint="check the template for stray text",
            )
        for obj in flatten(value, where=document.where):
            yield document, obj
