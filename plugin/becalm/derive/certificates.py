"""Certificates with the fields that sprig gives them, a derived serial number and stable signatures.

sprig (crypto.go) leaves most to Go's x509.CreateCertificate; the order of the extensions, the string
types of names and the identifiers of keys follow that function.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from becalm.derive import keys, pem
from becalm.derive.keys import PrivateKey
from becalm.derive.labels import encode
from becalm.derive.windows import Window
from becalm.errors import DerivationError

_PRINTABLE = re.compile(r"[A-Za-z0-9 '()+,./:=?-]*")
_IPV4 = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
Signer = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What sprig's functions return: the certificate and its private key, both PEM."""

    cert: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a certificate is to say.

    Args:
        name: the common name; "" gives an empty subject.
        ips: IP addresses, as Go's net.ParseIP reads them.
        dns: DNS names.
        is_ca: whether it may sign others.
    """

    name: str
    ips: Sequence[str] = ()
    dns: Sequence[str] = ()
    is_ca: bool = False


def issue(
    request: Request, *, private: str, window: Window, item: bytes, issuer: Certificate | None = None
) -> Certificate:
    """Issue a certificate.

    Args:
        request: what it says.
        private: the PEM text of its key.
        window: when it is valid.
        item: the item key, from which the serial number is derived.
        issuer: who signs; None signs with its own key.

    Raises:
        DerivationError: Go would refuse to issue it.
    """
    own = _signer(keys.read(private))
    subject = _subject(request.name)
    parent = None if issuer is None else _read(issuer.cert)
    signer = own if issuer is None else _signer(keys.read(issuer.key))
    if parent is not None and _public_of(parent) != _public(signer):
        raise DerivationError("the issuer's key is not that of its certificate")
    with lenient():
        parent_name = subject if parent is None else parent.subject
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(parent_name)
        .public_key(own.public_key())
        .serial_number(_serial(item, request, own, signer, window))
        .not_valid_before(_time(window.start))
        .not_valid_after(_time(window.end))
    )
    # Go names the issuer's key only where the issuer has another name.
    is_other = parent_name.public_bytes() != subject.public_bytes()
    named = parent if is_other else None
    for extension, critical in _extensions(request, own, named):
        builder = builder.add_extension(extension, critical=critical)
    if isinstance(signer, ec.EllipticCurvePrivateKey):
        done = builder.sign(signer, _hash(signer), ecdsa_deterministic=True)
    else:
        done = builder.sign(signer, _hash(signer))
    return Certificate(cert=done.public_bytes(Encoding.PEM).decode("ascii"), key=keys.write(own))


def _signer(key: PrivateKey) -> Signer:
    if isinstance(key, dsa.DSAPrivateKey):
        raise DerivationError("a DSA key cannot sign or be in a certificate")
    return key


def _hash(key: Signer) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    """As Go chooses where nothing is asked for."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    size = key.curve.key_size if isinstance(key, ec.EllipticCurvePrivateKey) else 0
    if size == 384:
        return hashes.SHA384()
    return hashes.SHA512() if size == 521 else hashes.SHA256()


def _read(text: str) -> x509.Certificate:
    block = pem.first(text)
    if block is None:
        raise DerivationError("the issuer's certificate cannot be decoded")
    try:
        return x509.load_der_x509_certificate(block[1])
    except (ValueError, UnsupportedAlgorithm) as error:
        raise DerivationError("the issuer's certificate cannot be read") from error


def _subject(name: str) -> x509.Name:
    if not name:
        return x509.Name([])
    # encoding/asn1 writes a PrintableString where it can; and Go does not limit the length to 64.
    kind = _ASN1Type.PrintableString if _PRINTABLE.fullmatch(name) else _ASN1Type.UTF8String
    with lenient():
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name, kind, _validate=False)])


@contextmanager
def lenient() -> Iterator[None]:
    """Lets `cryptography` take names that are longer than they should be without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _serial(item: bytes, request: Request, own: Signer, signer: Signer, window: Window) -> int:
    """128 derived bits, never zero; all that differs between two certificates of one issuer is in it."""
    parts: tuple[str | int, ...] = (
        "becalm serial number",
        request.name,
        len(request.ips),
        *request.ips,
        len(request.dns),
        *request.dns,
        int(request.is_ca),
        window.start,
        window.end,
        _fingerprint(own),
        _fingerprint(signer),
    )
    return int.from_bytes(hmac.digest(item, encode(parts), "sha256")[:16], "big") or 1


def _fingerprint(key: Signer) -> str:
    return hashlib.sha256(_public(key)).hexdigest()


def _public(key: Signer) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _public_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _extensions(
    request: Request, own: Signer, parent: x509.Certificate | None
) -> list[tuple[x509.ExtensionType, bool]]:
    """The extensions in Go's order, each with whether it is critical."""
    found: list[tuple[x509.ExtensionType, bool]] = [
        (_usage(is_ca=request.is_ca), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False),
        (x509.BasicConstraints(ca=request.is_ca, path_length=None), True),
    ]
    if request.is_ca:
        found.append((_key_identifier(own), False))
    identifier = b"" if parent is None else _identifier_of(parent)
    if identifier:
        found.append((x509.AuthorityKeyIdentifier(identifier, None, None), False))
    names = [*map(_dns, request.dns), *map(_ip, request.ips)]
    if names:
        found.append((x509.SubjectAlternativeName(names), not request.name))
    return found


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_encipherment=True, key_cert_sign=is_ca, content_commitment=False,
        data_encipherment=False, key_agreement=False, crl_sign=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip


def _key_identifier(key: Signer) -> x509.SubjectKeyIdentifier:
    """RFC 7093, method 1, as Go since 1.25: the first 160 bits of the SHA-256 of the public key."""
    return x509.SubjectKeyIdentifier(hashlib.sha256(_bit_string(key)).digest()[:20])


def _bit_string(key: Signer) -> bytes:
    """The content of the subjectPublicKey bit string."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        return public.public_bytes(Encoding.DER, PublicFormat.PKCS1)
    if isinstance(public, ec.EllipticCurvePublicKey):
        return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return public.public_bytes_raw()


def _identifier_of(parent: x509.Certificate) -> bytes:
    try:
        return parent.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except (x509.ExtensionNotFound, ValueError):
        return b""


def _dns(name: str) -> x509.GeneralName:
    if not name.isascii():
        raise DerivationError("a DNS name is not ASCII")
    return x509.DNSName(name)


def _ip(text: str) -> x509.GeneralName:
    """As net.ParseIP: no zones, no leading zeros; an IPv4 address in IPv6 form is an IPv4 address."""
    try:
        # Python would take leading zeros and zones.
        plain = _IPV4.fullmatch(text) or (":" in text and "%" not in text)
        address = ipaddress.ip_address(text if plain else "")
    except ValueError as error:
        raise DerivationError("an IP address cannot be read") from error
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return x509.IPAddress(mapped or address)
