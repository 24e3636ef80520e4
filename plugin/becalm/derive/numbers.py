"""Numbers of private keys from seeds: RSA and ECDSA by C2SP det-keygen, DSA by FIPS 186-4.

https://c2sp.org/det-keygen fixes every step but the primality test, which must not draw from the
generator; so a faster or stricter test never changes a key. GMP's test is Baillie-PSW, with
further Miller-Rabin rounds.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from functools import cache

import gmpy2

from becalm.derive.drbg import HmacDrbg
from becalm.derive.stream import Stream

RSA_EXPONENT = 65537
#: The orders of the curves' base points (SP 800-186, section 3.2.1).
ORDERS = {
    "P-224": 2**224 - 0xE95D1F470FC1EC22D6BAA3A3D5C3,
    "P-256": 2**256 - 2**224 + 2**192 - 0x43190552DF1A6C21012FFD85EEDF9BFE,
    "P-384": 2**384 - 0x389CB27E0BC8D220A7E5F24DB74F58851313E695333AD68D,
    "P-521": 2**521 - 0x5AE79787C40D069948033FEB708F65A2FC44A36477663B851449048E16EC79BF7,
}
_MINIMUM_SEED = 16
_TRIAL_BOUND = 1 << 16
_ROUNDS = 28  # of which GMP takes the first 24 as done by Baillie-PSW


@dataclass(frozen=True, slots=True)
class RsaNumbers:
    """An RSA private key: the primes and the private exponent; the public exponent is 65537."""

    p: int
    q: int
    d: int


@dataclass(frozen=True, slots=True)
class DsaNumbers:
    """A DSA key: the domain parameters p, q and g, the public value y and the private value x."""

    p: int
    q: int
    g: int
    y: int
    x: int


@cache
def _primorial() -> gmpy2.mpz:
    return gmpy2.primorial(_TRIAL_BOUND)


def is_prime(number: int) -> bool:
    """Whether a number above 2^16 is prime, with an error far below 2^-100."""
    candidate = gmpy2.mpz(number)
    if gmpy2.gcd(candidate, _primorial()) != 1:
        return False
    return bool(gmpy2.is_prime(candidate, _ROUNDS))


def rsa(seed: bytes, bits: int) -> RsaNumbers:
    """An RSA key by det-keygen.

    Args:
        seed: at least 16 bytes.
        bits: of the modulus; a multiple of 16, at least 2048.
    """
    _check_seed(seed)
    if bits < 2048 or bits % 16:
        raise ValueError("the modulus has at least 2048 bits, and a multiple of 16")
    drbg = HmacDrbg(seed + b"det RSA key gen" + bits.to_bytes(2, "big"))
    while True:
        p = _rsa_prime(drbg, bits // 16)
        drbg.advance()
        q = _rsa_prime(drbg, bits // 16)
        divisor = gmpy2.gcd(p - 1, q - 1)
        order = (p - 1) * (q - 1) // divisor
        if divisor < 1 << 32 and gmpy2.gcd(RSA_EXPONENT, order) == 1:
            return RsaNumbers(p, q, int(gmpy2.invert(RSA_EXPONENT, order)))
        drbg.advance()


def _rsa_prime(drbg: HmacDrbg, size: int) -> int:
    top, low = 0xC0 << (8 * (size - 1)), 0x07
    while True:
        candidate = int.from_bytes(drbg.output(size), "big") | top | low
        if is_prime(candidate):
            return candidate
        drbg.advance()


def ecdsa(seed: bytes, curve: str) -> int:
    """The private scalar of an ECDSA key by det-keygen.

    Args:
        seed: at least 16 bytes.
        curve: P-224, P-256, P-384 or P-521.
    """
    _check_seed(seed)
    order = ORDERS[curve]
    drbg = HmacDrbg(seed + f"det ECDSA key gen {curve}".encode())
    scalar = _scalar(drbg, order)
    if scalar >= order and curve == "P-256":
        drbg.advance()
        scalar = _scalar(drbg, order)
    if not 0 < scalar < order:
        raise ValueError("no scalar in range, which happens for one seed in 2^64")
    return scalar


def _scalar(drbg: HmacDrbg, order: int) -> int:
    size = (order.bit_length() + 7) // 8
    return int.from_bytes(drbg.output(size), "big") >> (8 * size - order.bit_length())


def _check_seed(seed: bytes) -> None:
    if len(seed) < _MINIMUM_SEED:
        raise ValueError("a seed has at least 16 bytes")


def dsa(key: bytes) -> DsaNumbers:
    """A DSA key with its own domain parameters, L = 2048 and N = 256, SHA-256.

    The stream of `key` gives 32-byte domain parameter seeds until one yields primes (FIPS 186-4,
    A.1.1.2), then 40 bytes for x (B.1.1); g is the canonical one of index 1 (A.2.3).

    Args:
        key: 32 bytes.
    """
    stream = Stream(key)
    while True:
        seed = stream.read(32)
        p, q = _dsa_primes(seed)
        if p:
            break
    g = _dsa_generator(seed, p, q)
    x = int.from_bytes(stream.read(40), "big") % (q - 1) + 1
    return DsaNumbers(p, q, g, int(gmpy2.powmod(g, x, p)), x)


def _dsa_primes(seed: bytes) -> tuple[int, int]:
    """Steps 6 to 15 of A.1.1.2; (0, 0) where the seed yields none."""
    half = 1 << 255
    q = int.from_bytes(hashlib.sha256(seed).digest(), "big") % half
    q += half + 1 - q % 2
    if not is_prime(q):
        return 0, 0
    base = int.from_bytes(seed, "big")
    offset = 1
    for _ in range(4 * 2048):
        blocks = [
            hashlib.sha256(((base + offset + j) % (1 << 256)).to_bytes(32, "big")).digest() for j in range(8)
        ]
        x = int.from_bytes(b"".join(reversed(blocks)), "big") % (1 << 2047) + (1 << 2047)
        p = x - (x % (2 * q) - 1)
        if p >= 1 << 2047 and is_prime(p):
            return p, q
        offset += 8
    return 0, 0


def _dsa_generator(seed: bytes, p: int, q: int) -> int:
    exponent = (p - 1) // q
    for count in range(1, 1 << 16):
        digest = hashlib.sha256(seed + b"ggen\x01" + count.to_bytes(2, "big")).digest()
        g = int(gmpy2.powmod(int.from_bytes(digest, "big"), exponent, p))
        if g >= 2:
            return g
    raise ValueError("no generator, which happens for no seed in practice")


def key_seed(key: bytes) -> bytes:
    """The det-keygen seed (32 bytes) of an item key."""
    return hmac.digest(key, b"becalm det-keygen seed", "sha256")
