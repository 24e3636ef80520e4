"""What each function can give: regular expressions to find a value by, and what refuses one that was found."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from becalm.derive import hashes, keys
from becalm.errors import DerivationError

#: What may stand in the place of a text that a function gives.
ANY = r"[\s\S]+?"
_CLASSES = {
    "randAlphaNum": "[A-Za-z0-9]",
    "randAlpha": "[A-Za-z]",
    "randNumeric": "[0-9]",
    "randAscii": "[ -~]",
    "randBytes": "[A-Za-z0-9+/=]",
}
_CERTIFICATE = r"-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----\n?"
_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+?-----END [A-Z ]*PRIVATE KEY-----\n?"
_HASH = r"[^\s:,;\"']+"


def is_certificate(function: str) -> bool:
    """Whether the function gives a certificate with its key."""
    return function.startswith("gen") and function != "genPrivateKey"


def shape(function: str, arguments: str, index: int, text: str) -> tuple[str, str]:
    """The regular expressions of what a function gives, and of what may stand in its place.

    Args:
        function: that draws.
        arguments: the JSON of its arguments.
        index: 0, or 1 for the key of a certificate.
        text: a value, of which the length counts.
    """
    user = re.escape([*json.loads(arguments), ""][0]) if function == "htpasswd" else ""
    if function in _CLASSES:
        return f"{_CLASSES[function]}{{{len(text)}}}", ANY
    special = {
        "randInt": (r"-?[0-9]+", ""),
        "uuidv4": (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", ANY),
        "genPrivateKey": (_KEY, ""),
        "bcrypt": (_HASH, ""),
        "htpasswd": (f"{user}:{_HASH}", ""),
        "encryptAES": (r"[A-Za-z0-9+/]*={0,2}", ""),
    }
    return special.get(function) or ((_CERTIFICATE, "") if index == 0 else (_KEY, ""))


def text_shape(text: str) -> tuple[str, str]:
    """The same for a text that an action or a named template makes of what it draws."""
    for letters in ("[0-9]", "[0-9a-f]", "[A-Za-z0-9]", "[A-Za-z0-9+/=]", r"\S"):
        if re.fullmatch(f"{letters}+", text):
            return f"{letters}{{{len(text)}}}", ANY
    return ANY, ANY


def refusal(function: str, texts: Sequence[str]) -> str:
    """Why a live value cannot be what a function gives; "" where it can.

    Args:
        function: that draws.
        texts: the value; of a certificate also its key, "" where that is nowhere to be seen.
    """
    try:
        if function == "genPrivateKey":
            keys.read(texts[0])
        elif is_certificate(function):
            return _pair_refusal(*texts)
        elif function == "randInt":
            int(texts[0])
    except (DerivationError, ValueError):
        return "the live value cannot be read"
    return ""


def _pair_refusal(certificate: str, key: str) -> str:
    from cryptography import x509  # noqa: PLC0415  # takes long to load
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    def public(one: object) -> bytes:
        return one.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined,no-any-return]

    own = public(x509.load_pem_x509_certificate(certificate.encode()).public_key())
    if key and public(keys.read(key).public_key()) != own:
        return "the live certificate and the live key do not belong together"
    return ""


def names_refusal(certificate: str, arguments: str) -> str:
    """Why a live certificate is not what a chart asks for now; "" where it has all the names.

    Args:
        certificate: as PEM.
        arguments: the JSON of the names and days that the chart gives.
    """
    from cryptography import x509  # noqa: PLC0415  # takes long to load

    _, *names, _ = json.loads(arguments)
    try:
        found = x509.load_pem_x509_certificate(certificate.encode()).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
        present = {*found.value.get_values_for_type(x509.DNSName)}
        present |= {str(one) for one in found.value.get_values_for_type(x509.IPAddress)}
    except x509.ExtensionNotFound:
        present = set()
    lacks = any(name not in present for group in names for name in group)
    return "the live certificate lacks a name that the chart asks for" if lacks else ""


def hash_refusal(function: str, text: str, given: Sequence[str], *, is_known: bool) -> str:
    """Why a live hash is not kept; "" where it is.

    Args:
        function: bcrypt, htpasswd or encryptAES.
        text: the live hash.
        given: the password that the chart hashes, as it is after the adoption; of encryptAES also the text.
        is_known: whether that password can be seen anywhere; of one that nobody sees, the hash is kept as it is.
    """
    if not is_known:
        return ""
    if function == "encryptAES":
        password, plain = given
        does_match: bool | None = hashes.decrypt_aes(password, text) == plain
    else:
        does_match = hashes.matches(text.partition(":")[2] if function == "htpasswd" else text, given[0])
    if does_match is None:
        return "the live hash is of a sort that becalm cannot check"
    return "" if does_match else "the live hash does not match the password"
