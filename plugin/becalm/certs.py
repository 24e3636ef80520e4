"""Every certificate in what a chart renders: what it says, when it changes, and whether its chain verifies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from becalm.derive import instant, keys, pem
from becalm.derive.certificates import lenient
from becalm.derive.deriver import Issued
from becalm.errors import DerivationError
from becalm.manifests import landing
from becalm.manifests.objects import Object, ObjectId, identify, objects
from becalm.manifests.paths import render as render_path
from becalm.manifests.stream import split
from becalm.pipeline import render
from becalm.request import Request, Result


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
class Found:
    """A certificate at one place of an object."""

    owner: ObjectId
    place: str
    certificate: x509.Certificate


def certs(request: Request) -> list[Report]:
    """Render a chart and look at its certificates, in the order of the output.

    Raises:
        PluginError: as `pipeline.render`.
    """
    done = render(request)
    blocks = [
        block for _, obj in objects(split(done.output)) for block in _blocks(obj, request.options.namespace)
    ]
    found, private, due = list(_certificates(blocks)), list(_private(blocks)), planned(done)
    with lenient():
        return [_report(one, found, private, due) for one in found]


def changes(issued: Mapping[str, Issued]) -> dict[bytes, int]:
    """When each certificate that was derived is replaced, in seconds since 1970, by its fingerprint."""
    return {
        fingerprint(x509.load_pem_x509_certificate(certificate.encode())): one.window.change
        for certificate, one in issued.items()
    }


def planned(result: Result) -> dict[bytes, int]:
    """The same of a render, with those in charts that Kustomize inflated."""
    return {**result.charts.changes, **changes(result.issued)}


def certificates(obj: Object, namespace: str) -> list[Found]:
    """The certificates of one object, through base64."""
    return list(_certificates(_blocks(obj, namespace)))


def _certificates(blocks: Iterable[_Block]) -> Iterator[Found]:
    seen: set[tuple[ObjectId, str, bytes]] = set()
    for owner, place, label, text in blocks:
        if label != "CERTIFICATE":
            continue
        try:
            certificate = x509.load_pem_x509_certificate(text.encode())
        except (ValueError, UnsupportedAlgorithm):
            continue
        key = (owner, place, fingerprint(certificate))
        if key not in seen:
            seen.add(key)
            yield Found(owner=owner, place=place, certificate=certificate)


def _private(blocks: Iterable[_Block]) -> Iterator[tuple[ObjectId, str, bytes]]:
    """The private keys as object, place and public key."""
    for owner, place, label, text in blocks:
        if not label.endswith("PRIVATE KEY"):
            continue
        try:
            public = keys.read(text).public_key()
        except DerivationError:
            continue
        yield owner, place, public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


#: Object, field, label, and the block as PEM.
_Block = tuple[ObjectId, str, str, str]


def _blocks(obj: Object, namespace: str) -> Iterator[_Block]:
    """Every PEM block in every string of an object, through base64."""
    owner = identify(obj, namespace)
    for leaf in () if owner is None else landing.strings(obj, owner):
        for text in leaf.texts:
            for label, data in pem.blocks(text):
                yield leaf.object, render_path(leaf.path), label, pem.write(label, data)


def _report(
    one: Found, found: list[Found], private: list[tuple[ObjectId, str, bytes]], due: dict[bytes, int]
) -> Report:
    certificate = one.certificate
    issuers = [other for other in found if _signed(certificate, other.certificate)]
    is_own = certificate.subject == certificate.issuer and _signed(certificate, certificate)
    change = due.get(fingerprint(certificate))
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    owned = (place for owner, place, public in private if owner == one.owner and public == key)
    return Report(
        object=str(one.owner),
        field=one.place,
        subject=subject(certificate),
        names=_names(certificate),
        issuer=certificate.issuer.rfc4514_string(),
        is_ca=_is_ca(certificate),
        valid_from=_time(certificate.not_valid_before_utc),
        valid_to=_time(certificate.not_valid_after_utc),
        changes="" if change is None else instant.written(change),
        chain="self-signed" if is_own else "verifies" if issuers else "no issuer is rendered",
        issued_by=[] if is_own else list(dict.fromkeys(f"{o.owner} {o.place}" for o in issuers)),
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


def fingerprint(certificate: x509.Certificate) -> bytes:
    """What tells one certificate from another."""
    return certificate.fingerprint(SHA256())


def subject(certificate: x509.Certificate) -> str:
    """The subject, as RFC 4514 writes it."""
    return certificate.subject.rfc4514_string()


def _time(moment: datetime) -> str:
    return instant.written(int(moment.timestamp()))


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
