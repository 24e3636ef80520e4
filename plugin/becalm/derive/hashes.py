"""Password hashes and encrypted texts as sprig gives them, with a derived salt or vector.

Salts depend on the password, so that a new password never meets an old salt.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from becalm.derive.labels import encode
from becalm.derive.stream import Stream

_COST = 10  # golang.org/x/crypto/bcrypt, DefaultCost
_LONGEST = 72
_BLOCK = 16
_AES_KEY = 32


def bcrypt(key: bytes, password: str) -> str:
    """The bcrypt hash of a password, or the text that sprig gives for one above 72 bytes."""
    import bcrypt as library  # noqa: PLC0415  # only where a chart hashes

    data = password.encode("utf-8", "surrogateescape")
    if len(data) > _LONGEST:
        return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    salt = Stream(_bound(key, "bcrypt", password)).read(16)
    return library.hashpw(data, _salt_text(salt)).decode("ascii")


def _salt_text(salt: bytes) -> bytes:
    """Version, cost and salt in bcrypt's own base64."""
    standard = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    own = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    text = base64.b64encode(salt).rstrip(b"=").translate(bytes.maketrans(standard, own))
    return b"$2a$%02d$" % _COST + text


def htpasswd(key: bytes, user: str, password: str, algorithm: str) -> str:
    """A line of an htpasswd file.

    Args:
        key: the item key.
        user: without a colon; else the text that sprig gives.
        password: up to 72 bytes; else the text that sprig gives.
        algorithm: "sha" for SHA-1 without salt, anything else for bcrypt.
    """
    if ":" in user:
        return f"invalid username: {user}"
    if algorithm == "sha":
        digest = hashlib.sha1(password.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        return f"{user}:{{SHA}}{base64.b64encode(digest).decode('ascii')}"
    return f"{user}:{bcrypt(key, password)}"


def matches(text: str, password: str) -> bool | None:
    """Whether a hash of an htpasswd file (bcrypt, or `{SHA}`) is of this password; None for other sorts."""
    data = password.encode("utf-8", "surrogateescape")
    if text.startswith("{SHA}"):
        digest = hashlib.sha1(data, usedforsecurity=False).digest()
        return hmac.compare_digest(text[5:], base64.b64encode(digest).decode("ascii"))
    if not text.startswith("$2"):
        return None
    import bcrypt as library  # noqa: PLC0415

    try:
        return library.checkpw(data, text.encode("utf-8", "surrogateescape"))
    except ValueError:
        return None


def encrypt_aes(key: bytes, password: str, text: str) -> str:
    """AES-256-CBC as sprig's encryptAES: base64 of the vector and the padded, encrypted text.

    The vector depends on all that is encrypted, as in a synthetic vector mode, so that equal
    beginnings of different texts do not show.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

    if not text:
        return ""
    data = text.encode("utf-8", "surrogateescape")
    padding = _BLOCK - len(data) % _BLOCK
    secret = _aes_key(password)
    vector = Stream(_bound(key, "encryptAES", password, text)).read(_BLOCK)
    encryptor = Cipher(algorithms.AES(secret), modes.CBC(vector)).encryptor()
    encrypted = encryptor.update(data + bytes([padding]) * padding) + encryptor.finalize()
    return base64.b64encode(vector + encrypted).decode("ascii")


def decrypt_aes(password: str, text: str) -> str | None:
    """The text that sprig's encryptAES encrypted; None where it did not, or with another password."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

    try:
        data = base64.b64decode(text, validate=True)
        decryptor = Cipher(algorithms.AES(_aes_key(password)), modes.CBC(data[:_BLOCK])).decryptor()
        padded = decryptor.update(data[_BLOCK:]) + decryptor.finalize()
    except ValueError:
        return None
    length = padded[-1] if padded else 0
    if not 1 <= length <= _BLOCK or padded[-length:] != bytes([length]) * length:
        return None
    return padded[:-length].decode("utf-8", "surrogateescape")


def _aes_key(password: str) -> bytes:
    return password.encode("utf-8", "surrogateescape")[:_AES_KEY].ljust(_AES_KEY, b"\0")


def _bound(key: bytes, *parts: str) -> bytes:
    return hmac.digest(key, encode(parts), "sha256")
