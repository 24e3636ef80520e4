"""Sealing: texts that may be committed beside a chart, since only a sidecar with the seed opens them, for one application.

    sealing key = HKDF-SHA256(app key without epoch, info = encode("becalm sealing", scheme), 64 bytes)
    sealed      = base64(AES-SIV(sealing key, padded content, associated data = encode(name parts...)))

AES-SIV is RFC 5297: it needs no nonce, so equal contents under equal names give equal texts, and a file with one changed
value changes in one line. The name is authenticated: what is sealed cannot be moved to another name or application. The
content is padded to whole blocks of 64 bytes, so that a text tells little of its length.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from becalm.derive.labels import SCHEME, Application, app_key, encode, hkdf
from becalm.derive.seed import Seed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

_BLOCK = 64
_LENGTH = 4

#: What a sealed text stands for; strings and integers, the first of them its kind.
Name = tuple[str | int, ...]


class SealedError(Exception):
    """A sealed text is damaged, or was sealed under another name, for another application or with another seed."""


class Sealer:
    """Seals and opens the texts of one application.

    Args:
        seed: the operator's.
        application: whose texts they are. Its epoch does not count: what is sealed can be opened after it was raised.
    """

    def __init__(self, seed: Seed, application: Application) -> None:
        key = app_key(seed.secret, seed.id, application)
        self._key = hkdf(key, encode(("becalm sealing", SCHEME)), 64)

    def seal(self, name: Name, content: bytes) -> str:
        """The content as one line of base64, the same for the same name and content."""
        framed = len(content).to_bytes(_LENGTH, "big") + content
        padded = framed + bytes(-len(framed) % _BLOCK)
        return base64.b64encode(self._cipher().encrypt(padded, [encode(name)])).decode("ascii")

    def open(self, name: Name, text: str) -> bytes:
        """The content.

        Raises:
            SealedError: it was not sealed like this.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # takes long to load

        try:
            data = base64.b64decode(text, validate=True)
            # The last character of base64 holds bits that nobody reads.
            if base64.b64encode(data).decode("ascii") != text:
                raise SealedError
            padded = self._cipher().decrypt(data, [encode(name)])
        except (InvalidTag, binascii.Error, ValueError):
            raise SealedError from None
        length = int.from_bytes(padded[:_LENGTH], "big")
        return padded[_LENGTH : _LENGTH + length]

    def _cipher(self) -> AESSIV:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415  # takes long to load

        return AESSIV(self._key)
