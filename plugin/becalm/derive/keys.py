"""Private keys as sprig writes them, from item keys.

sprig (crypto.go, pemBlockForKey) writes RSA keys as PKCS #1, ECDSA keys as SEC 1, DSA keys in
OpenSSL's own form, and all others as PKCS #8.
"""

from __future__ import annotations

from collections.abc import Callable

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from becalm.derive import numbers, pem
from becalm.errors import DerivationError

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | dsa.DSAPrivateKey

_CURVES = (ec.SECP224R1, ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)


def rsa_key(key: bytes, bits: int) -> str:
    """The PEM text of an RSA key of so many bits."""
    found = numbers.rsa(numbers.key_seed(key), bits)
    p, q, d = found.p, found.q, found.d
    public = rsa.RSAPublicNumbers(numbers.RSA_EXPONENT, p * q)
    private = rsa.RSAPrivateNumbers(
        p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), public
    )
    # The numbers were just tested; OpenSSL would test them again for as long as they took to find.
    return write(private.private_key(unsafe_skip_rsa_key_validation=True))


def ecdsa_key(key: bytes) -> str:
    """The PEM text of an ECDSA key on P-256."""
    return write(ec.derive_private_key(numbers.ecdsa(numbers.key_seed(key), "P-256"), ec.SECP256R1()))


def ed25519_key(key: bytes) -> str:
    """The PEM text of an Ed25519 key, whose private key (RFC 8032) is the seed itself."""
    return write(ed25519.Ed25519PrivateKey.from_private_bytes(numbers.key_seed(key)))


def dsa_key(key: bytes) -> str:
    """The PEM text of a DSA key, L2048N256."""
    found = numbers.dsa(numbers.key_seed(key))
    public = dsa.DSAPublicNumbers(found.y, dsa.DSAParameterNumbers(found.p, found.q, found.g))
    return write(dsa.DSAPrivateNumbers(found.x, public).private_key())


#: What `genPrivateKey TYPE` makes of an item key.
KINDS: dict[str, Callable[[bytes], str]] = {
    "": lambda key: rsa_key(key, 4096),
    "rsa": lambda key: rsa_key(key, 4096),
    "dsa": dsa_key,
    "ecdsa": ecdsa_key,
    "ed25519": ed25519_key,
}


def write(key: PrivateKey) -> str:
    """A private key in the form that sprig gives its kind."""
    is_other = isinstance(key, ed25519.Ed25519PrivateKey)
    form = PrivateFormat.PKCS8 if is_other else PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode("ascii")


def read(text: str) -> PrivateKey:
    """The first private key of a PEM text, of the kinds that sprig reads and can sign with.

    Raises:
        DerivationError: there is none.
    """
    block = pem.first(text)
    if block is None:
        raise DerivationError("no PEM data in the private key")
    label, data = block
    if label not in ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY"):
        raise DerivationError(f"a PEM block of type {label[:40]} is no private key")
    try:
        # OpenSSL would test the primes, for as long as it takes to find them.
        key = load_der_private_key(data, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DerivationError("the private key cannot be read") from error
    if isinstance(key, ec.EllipticCurvePrivateKey) and not isinstance(key.curve, _CURVES):
        raise DerivationError(f"keys on the curve {key.curve.name} are not supported")
    if isinstance(key, rsa.RSAPrivateKey):
        _check(key.private_numbers())
    if not isinstance(key, PrivateKey):
        raise DerivationError("this kind of private key is not supported")
    return key


def _check(key: rsa.RSAPrivateNumbers) -> None:
    """What Go asks of an RSA key (crypto/rsa, PrivateKey.Validate): numbers that belong together."""
    n, e = key.public_numbers.n, key.public_numbers.e
    fits = min(key.p, key.q) > 1 and key.p % 2 and key.q % 2 and key.p * key.q == n
    if not fits or any((e * key.d - 1) % (prime - 1) for prime in (key.p, key.q)):
        raise DerivationError("the numbers of the RSA key do not belong together")
    crt = (key.d % (key.p - 1), key.d % (key.q - 1), pow(key.q, -1, key.p))
    if crt != (key.dmp1, key.dmq1, key.iqmp):
        raise DerivationError("the numbers of the RSA key do not belong together")
