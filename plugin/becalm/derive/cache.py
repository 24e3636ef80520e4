"""A cache on disk for values that take long to derive: keys and password hashes.

An entry's name is a digest of its item key, from which neither the seed nor the value can be found,
and its content is encrypted and authenticated under that key: who reads the directory learns nothing
without the seed, and what was changed in it is derived anew. Entries never grow stale, since a value
is a pure function of its key.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from becalm.config import private
from becalm.derive.labels import SCHEME

#: Entries above this number are removed, the least recently written first.
LIMIT = 4096
_LARGEST = 64 * 1024


class Cache:
    """Entries in a directory of mode 0700, files of mode 0600.

    A directory that cannot be made or that belongs to another user, or that others can write to, is
    not used; then every value is derived.

    Args:
        directory: where entries are, made when it is needed; None caches nothing.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._usable: bool | None = None

    def value(self, key: bytes, derive: Callable[[], str]) -> str:
        """The value of an item key, from the cache or derived.

        Args:
            key: 32 bytes that bind everything the value depends on.
            derive: computes it.
        """
        directory = self._ready()
        if directory is None:
            return derive()
        path = directory / hmac.digest(key, f"becalm cache entry {SCHEME}".encode(), "sha256").hex()
        found = _read(path, key)
        if found is None:
            found = derive()
            with suppress(OSError):
                private.write(path, _seal(key, found))
                private.prune(directory, most_entries=LIMIT)
        return found

    def _ready(self) -> Path | None:
        if self._usable is None:
            self._usable = self._directory is not None and private.is_private(self._directory)
        return self._directory if self._usable else None


def _read(path: Path, key: bytes) -> str | None:
    try:
        if path.lstat().st_size > _LARGEST:
            return None
        return _open(key, path.read_bytes())
    except OSError:
        return None


def _cipher(key: bytes) -> tuple[bytes, bytes]:
    """The encryption key of an entry, and its nonce: one key encrypts one value only."""
    return hmac.digest(key, b"becalm cache encryption", "sha256"), bytes(12)


def _seal(key: bytes, value: str) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    secret, nonce = _cipher(key)
    return AESGCM(secret).encrypt(nonce, value.encode("utf-8", "surrogateescape"), None)


def _open(key: bytes, data: bytes) -> str | None:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    secret, nonce = _cipher(key)
    try:
        return AESGCM(secret).decrypt(nonce, data, None).decode("utf-8", "surrogateescape")
    except (InvalidTag, ValueError):
        return None
