"""HMAC_DRBG with SHA-256 (NIST SP 800-90A, section 10.1.2), as C2SP det-keygen uses it.

Never reseeded, no additional input: a sequence that its seed fixes.
"""

from __future__ import annotations

import hmac


class HmacDrbg:
    """The generator, instantiated with seed material (the seed, then a personalisation string)."""

    def __init__(self, material: bytes) -> None:
        self._key = bytes(32)
        self._value = b"\x01" * 32
        self._update(b"\x00" + material)
        self._update(b"\x01" + material)

    def _update(self, tagged: bytes) -> None:
        self._key = hmac.digest(self._key, self._value + tagged, "sha256")
        self._value = hmac.digest(self._key, self._value, "sha256")

    def output(self, count: int) -> bytes:
        """The next `count` bytes, without the update that ends a request."""
        out = b""
        while len(out) < count:
            self._value = hmac.digest(self._key, self._value, "sha256")
            out += self._value
        return out[:count]

    def advance(self) -> None:
        """The update that ends a request and begins the next."""
        self._update(b"\x00")
