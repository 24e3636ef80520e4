"""Every certificate in what a chart renders: what it says, when it changes, and whether its chain verifies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from becalm.derive import instant, keys, pem
from becalm.derive.certificates import lenient
from becalm.errors import DerivationError
from becalm.manifests import landing
from becalm.manifests.objects import ObjectId, identify, objects
from becalm.manifests.paths import render as render_path
from becalm.manifests.stream import split
from becalm.pipeline import Request, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One certificate at one place.

    `changes` is when becalm replaces it, "" where it is not derived. `issued_by` are the places of the
    certificates that signed it, empty where none is rendered. `key` is the place of its private key in the
    same object, "" where there is none. Times are RFC 3339 in UTC.
    """

    object: str
    field: str
    subject: str
    names: list[str]
    issuer: str
    is_ca: bool
    valid_from: str
    valid_to: str
    changes: str
    chain: str
    issued_by: list[str]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    owner: ObjectId
    place: str
    certificate: x509.Certificate


def certs(request: Request) -> list[Report]:
    """Render a chart and look at its certificates, in the order of the output.

    Raises:
        PluginError: as `pipeline.render`.
    """
    done = render(request)
    found, private = _search(done.output, request.options.namespace)
    changes = {_fingerprint(x509.load_pem_x509_certificate(cert.encode())): issued.window.change
               for cert, issued in done.issued.items()}  # fmt: skip
    with lenient():
        return [_report(one, found, private, changes) for one in found]


def _search(output: str, namespace: str) -> tuple[list[_Found], list[tuple[ObjectId, str, bytes]]]:
    """The certificates, and the private keys as object, place and public key."""
    found: dict[tuple[ObjectId, str, bytes], _Found] = {}
    private: list[tuple[ObjectId, str, bytes]] = []
    for owner, place, label, text in _blocks(output, namespace):
        if label == "CERTIFICATE":
            try:
                certificate = x509.load_pem_x509_certificate(text.encode())
            except (ValueError, UnsupportedAlgorithm):
                continue
            key = (owner, place, _fingerprint(certificate))
            found.setdefault(key, _Found(owner=owner, place=place, certificate=certificate))
        elif label.endswith("PRIVATE KEY"):
            try:
                public = keys.read(text).public_key()
            except DerivationError:
                continue
            private.append(
                (owner, place, public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
            )
    return list(found.values()), private


def _blocks(output: str, namespace: str) -> Iterator[tuple[ObjectId, str, str, str]]:
    """Every PEM block in every string, through base64: object, field, label, and the block as PEM."""
    for _, obj in objects(split(output)):
        owner = identify(obj, namespace)
        for leaf in () if owner is None else landing.strings(obj, owner):
            for text in leaf.texts:
                for label, data in pem.blocks(text):
                    yield leaf.object, render_path(leaf.path), label, pem.write(label, data)


def _report(
    one: _Found, found: list[_Found], private: list[tuple[ObjectId, str, bytes]], changes: dict[bytes, int]
) -> Report:
    certificate = one.certificate
    issuers = [other for other in found if _signed(certificate, other.certificate)]
    is_own = certificate.subject == certificate.issuer and _signed(certificate, certificate)
    change = changes.get(_fingerprint(certificate))
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    owned = (place for owner, place, public in private if owner == one.owner and public == key)
    return Report(
        object=_written(one.owner),
        field=one.place,
        subject=certificate.subject.rfc4514_string(),
        names=_names(certificate),
        issuer=certificate.issuer.rfc4514_string(),
        is_ca=_is_ca(certificate),
        valid_from=_time(certificate.not_valid_before_utc),
        valid_to=_time(certificate.not_valid_after_utc),
        changes="" if change is None else instant.written(change),
        chain="self-signed" if is_own else "verifies" if issuers else "no issuer is rendered",
        issued_by=[] if is_own else list(dict.fromkeys(f"{_written(o.owner)} {o.place}" for o in issuers)),
        key=next(owned, ""),
    )


def _signed(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    """Whether the name, the key and the right to sign of `by` fit."""
    if not _is_ca(by) and by != certificate:
        return False
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _is_ca(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [str(name.value) for name in names]


def _fingerprint(certificate: x509.Certificate) -> bytes:
    return certificate.fingerprint(SHA256())


def _time(moment: datetime) -> str:
    return instant.written(int(moment.timestamp()))


def _written(owner: ObjectId) -> str:
    kind = f"{owner.kind}.{owner.group}" if owner.group else owner.kind
    return f"{kind}/{owner.namespace}/{owner.name}" if owner.namespace else f"{kind}/{owner.name}"


def lines(reports: Iterable[Report], *, at: int) -> Iterator[str]:
    """The reports for people."""
    today = datetime.fromisoformat(instant.written(at))

    def days(text: str) -> str:
        count = (datetime.fromisoformat(text) - today).days
        return f"{text} (in {count} days)" if count >= 0 else f"{text} ({-count} days ago)"

    for one in reports:
        yield f"{one.object} {one.field}"
        yield f"  subject  {one.subject or '(empty)'}{', an authority' if one.is_ca else ''}"
        if one.names:
            yield f"  names    {', '.join(one.names)}"
        yield f"  issuer   {one.issuer or '(empty)'}"
        yield f"  valid    {one.valid_from} to {days(one.valid_to)}"
        yield f"  changes  {days(one.changes) if one.changes else 'never: it is not derived'}"
        yield f"  chain    {one.chain}{': issued by ' + one.issued_by[0] if one.issued_by else ''}"
        yield f"  key      {one.key or 'not in this object'}"
        yield ""
