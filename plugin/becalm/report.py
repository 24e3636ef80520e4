"""What the web process is told of a render: what was done and why, and nothing that is secret.

Nothing here may fail a render that is done already, or cost much beside it: a document is parsed only if a rule
changed it, or its text says that it may hold a Secret or a certificate, or if it is small and of a kind of Kubernetes
itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from becalm import certs, explain
from becalm.derive.certificates import lenient
from becalm.errors import ManifestError, PluginError
from becalm.items import text_of
from becalm.manifests import yamlio
from becalm.manifests.masking import Secrets
from becalm.manifests.objects import Object, ObjectId, identify, objects
from becalm.manifests.paths import render as render_path
from becalm.manifests.stream import Document, split
from becalm.normalise import builtin
from becalm.normalise.look import Look
from becalm.request import Request, Result
from becalm.stabilise.stabiliser import Stabilised

MOST_CHANGES: Final = 5_000
MOST_DIFFS: Final = 100
MOST_DIFF_CHARACTERS: Final = 1_500_000
"""Characters of all differences; a record has at most 4 MiB."""

#: Characters of documents that are looked through for unknown fields, in all and each.
_MOST_LOOKED = 1_000_000
_LONGEST_LOOKED = 100_000
_DEFINITION = "\nkind: CustomResourceDefinition\n"
#: A certificate's first line, as it is and in base64 at each of three offsets.
_CERTIFICATE = re.compile(r"-----BEGIN|LS0tLS1CRUdJT|0tLS0tQkVHSU|tLS0tLUJFR0lO")


def report(request: Request, result: Result) -> dict[str, Any]:
    """The fields of a record that a render knows, from `source` on.

    Values of Secrets, and what was derived, are in no field. Where charts were inflated by Kustomize, what was
    derived for them is not known here, so there are no differences; that would take the values out of becalm-helm.
    """
    secrets = Secrets()
    secrets.add_derived(_derived(result.stabilised))
    documents = split(result.output)
    filled = [document for document in documents if not document.is_empty]
    before = [] if result.before == result.output else split(result.before)
    changed = [(old, new) for old, new in zip(before, documents, strict=False) if old.text != new.text]
    looks = [(document, Look(document)) for document in filled if not _is_definition(document)]
    olds = [(old, Look(old)) for old, _ in changed]
    _take_secrets((*olds, *looks), request.options.namespace, secrets)
    with lenient():
        certificates, unknown = _looked_through(looks, request, result, secrets)
    diffs, is_cut = _diffs(changed, request, secrets)
    found: dict[str, Any] = {
        "source": source_of(request),
        "runs": result.runs,
        "objects": len(filled),
        "bytes": len(result.output.encode("utf-8", "surrogatepass")),
        "seed": "" if request.seed is None else request.seed.id,
        "warnings": [secrets.name(warned.line()) for warned in (*result.warnings, *result.notices)],
        "stabilised": _stabilised(result.stabilised, secrets),
        "changes": [
            {
                "object": secrets.name(str(change.object)),
                "path": secrets.name(render_path(change.path)),
                "rule": change.rule.id,
                "why": change.rule.reason,
                "verb": change.rule.verb,
            }
            for change in result.changes[:MOST_CHANGES]
        ],
        "unknown": unknown,
        "diffs": diffs,
        "certificates": certificates,
    }
    return {**found, "truncated": True} if is_cut or len(result.changes) > MOST_CHANGES else found


def source_of(request: Request) -> str:
    """What is rendered; "unknown" where that cannot be told."""
    try:
        return request.kind or "unknown"
    except PluginError:
        return "unknown"


def _derived(stabilised: Stabilised | None) -> Iterator[str]:
    """Every derived or pinned value, what stood for it while it was looked for, and the secrets that functions were given."""
    yield from stabilised.texts if stabilised else ()
    for settled in stabilised.draws.values() if stabilised else ():
        if not isinstance(settled.value, list):  # the order of a shuffle
            yield text_of(settled.value)
        if isinstance(settled.value, dict):
            yield from map(str, settled.value.values())
        # The places of a draw are those of a provisional text, which may be part of a key.
        yield from settled.draw.texts
        yield from settled.draw.given


def _stabilised(stabilised: Stabilised | None, secrets: Secrets) -> list[dict[str, str]]:
    """Each field with derived values, with the calls that gave them."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for settled in stabilised.draws.values() if stabilised else ():
        assert stabilised is not None
        owner = settled.places[0] if settled.places else None
        site = stabilised.sites.items[settled.draw.site]
        one = {
            "object": secrets.name(str(owner.object)) if owner else "",
            "path": secrets.name(render_path(owner.path)) if owner else "",
            "function": settled.draw.function,
            "place": f"{site.file}:{site.line}",
        }
        found[tuple(one.values())] = one
    return list(found.values())


def _objects(document: Document, namespace: str) -> list[tuple[ObjectId, Object]]:
    """The objects of a document; none where it cannot be read, which Argo CD will say."""
    try:
        found = [obj for _, obj in objects([document])]
    except ManifestError:
        return []
    owners = ((identify(obj, namespace), obj) for obj in found)
    return [(owner, obj) for owner, obj in owners if owner is not None]


def _is_definition(document: Document) -> bool:
    """Whether it is a CustomResourceDefinition and no more; they are long and hold nothing that is told."""
    text = document.text
    return _DEFINITION in text and text.count("\nkind:") == 1 and not _CERTIFICATE.search(text)


def _take_secrets(documents: Iterable[tuple[Document, Look]], namespace: str, secrets: Secrets) -> None:
    for document, look in documents:
        if "Secret" in look.kinds or not look.kinds:
            for owner, obj in _objects(document, namespace):
                secrets.add_object(obj, owner)


def _looked_through(
    documents: Iterable[tuple[Document, Look]], request: Request, result: Result, secrets: Secrets
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The certificates and the unknown fields."""
    namespace = request.options.namespace
    table = builtin.types(request.options.kube_version)
    certificates: list[dict[str, Any]] = []
    unknown: list[dict[str, str]] = []
    planned = certs.planned(result)
    looked = 0
    for document, look in documents:
        may_hold = not look.kinds or "Secret" in look.kinds or _CERTIFICATE.search(document.text) is not None
        length = len(document.text)
        is_small = length <= _LONGEST_LOOKED and looked + length <= _MOST_LOOKED
        has_types = is_small and (not look.kinds or not look.kinds.isdisjoint(builtin.names()))
        if not may_hold and not has_types:
            continue
        looked += length if has_types else 0
        for owner, obj in _objects(document, namespace):
            if may_hold:
                certificates += (
                    _certificate(one, planned, secrets) for one in certs.certificates(obj, namespace)
                )
            if has_types:
                unknown += (
                    {
                        "object": secrets.name(one.object),
                        "path": secrets.name(one.field),
                        "nearest": one.wanted,
                    }
                    for one in explain.misfits_of(obj, owner, table)
                    if one.problem == "unknown"
                )
    return certificates, unknown


def _certificate(one: certs.Found, planned: dict[bytes, int], secrets: Secrets) -> dict[str, Any]:
    certificate = one.certificate
    return {
        "object": secrets.name(str(one.owner)),
        "path": secrets.name(one.place),
        "subject": secrets.name(certs.subject(certificate)),
        "from": int(certificate.not_valid_before_utc.timestamp()),
        "until": int(certificate.not_valid_after_utc.timestamp()),
        "changes": planned.get(certs.fingerprint(certificate), 0),
    }


def _diffs(
    changed: list[tuple[Document, Document]], request: Request, secrets: Secrets
) -> tuple[list[dict[str, str]], bool]:
    """Every object that rules changed, before and after, and whether some are left out."""
    if request.tool.inflates and source_of(request) in ("kustomize", "chain"):
        return [], bool(changed)
    found: list[dict[str, str]] = []
    characters = 0
    for old, new in changed:
        for owner, before, after in _pairs(old, new, request.options.namespace):
            one = {"object": secrets.name(str(owner)), **_written(owner, before, after, secrets)}
            characters += len(one["before"]) + len(one["after"])
            if len(found) >= MOST_DIFFS or characters > MOST_DIFF_CHARACTERS:
                return found, True
            found.append(one)
    return found, False


def _pairs(
    old: Document, new: Document, namespace: str
) -> Iterator[tuple[ObjectId, Object | None, Object | None]]:
    """The objects of two forms of a document that differ; None for what one of them does not have."""
    before, after = _objects(old, namespace), _objects(new, namespace)
    if [owner for owner, _ in before] == [owner for owner, _ in after]:
        for (owner, one), (_, other) in zip(before, after, strict=True):
            if one != other:
                yield owner, one, other
        return
    others = dict(after)
    for owner, one in before:
        if one != others.get(owner):
            yield owner, one, others.get(owner)


def _written(
    owner: ObjectId, before: Object | None, after: Object | None, secrets: Secrets
) -> dict[str, str]:
    shown = secrets.masked([(owner, obj) for obj in (before, after) if obj is not None])
    texts = [yamlio.dump(dict(obj)) for obj in shown]
    return {"before": texts.pop(0) if before is not None else "", "after": texts.pop() if texts else ""}
