"""Where answers are kept: files of our own, and a Redis that several replicas share.

Every entry is encrypted and authenticated under a key that is derived from the seed, with its name and its time (AES-SIV,
RFC 5297, which needs no nonce, so that two writers of one entry give nothing away). What was changed or cut off on the way is
a miss, is removed, and is told.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from becalm.answers import shared
from becalm.config import private
from becalm.config.keeping import Keeping
from becalm.derive.seed import Seed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

_SCHEME = b"becalm answers 1"
_LARGEST = 256 * 1024 * 1024
_TIMES = 16
_RENDERS = "renders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An answer as text, made and right from `made` to before `until`, in seconds since 1970."""

    made: int
    until: int
    content: str = field(repr=False)


def unfit(keeping: Keeping) -> str:
    """Why nothing is kept in the cache's directory, and what to do, in one line; "" where it is used or none is wanted."""
    if keeping.directory is None:
        return ""
    for directory in (keeping.directory, keeping.directory / _RENDERS):
        why = private.trouble(directory)
        if why:
            return (
                f"BECALM_CACHE_DIR: {directory} {why}, so nothing is kept there; "
                "name a directory that is becalm's alone (mode 0700), or set it to off"
            )
    return ""


class Store:
    """Answers of one seed.

    Args:
        keeping: the operator's settings.
        seed: that encrypts; without one nothing is kept.
    """

    def __init__(self, keeping: Keeping, seed: Seed | None) -> None:
        self._keeping = keeping
        self._secret = b"" if seed is None else hmac.digest(seed.secret, _SCHEME, "sha512")
        self._directory: Path | None = None
        self.complaints: tuple[str, ...] = ()
        if seed is None or keeping.directory is None:
            return
        why = unfit(keeping)
        if why:
            self.complaints = (why,)
        else:
            self._directory = keeping.directory / _RENDERS

    @property
    def keeps(self) -> bool:
        """Whether anything is kept."""
        return bool(self._secret) and (self._directory is not None or bool(self._keeping.redis))

    def get(self, digest: bytes, *, at: int) -> Entry | None:
        """The entry of a key, if it is there, whole, and right at this time."""
        name = self._name(digest)
        if self._directory is not None:
            path = self._directory / name
            with suppress(OSError):
                if path.stat().st_size <= _LARGEST:
                    found = self._opened(name, path.read_bytes(), "the cache's directory", at=at)
                    if found is not None:
                        os.utime(path)
                        return found
                    path.unlink()
        data = shared.get(self._keeping, name)
        found = None if data is None else self._opened(name, data, "Redis", at=at)
        if found is not None and data is not None:
            self._write(name, data)
        return found

    def put(self, digest: bytes, entry: Entry) -> None:
        """Keep an entry. Where that fails, it is not kept, and nothing else happens."""
        name = self._name(digest)
        times = entry.made.to_bytes(8, "big") + entry.until.to_bytes(8, "big")
        data = times + self._cipher().encrypt(
            zlib.compress(entry.content.encode(), 1), [name.encode(), times]
        )
        self._write(name, data)
        shared.put(self._keeping, name, data, seconds=entry.until - entry.made)

    def _name(self, digest: bytes) -> str:
        return hmac.digest(self._secret, digest, "sha256").hex()

    def _cipher(self) -> AESSIV:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415  # takes long to load

        return AESSIV(hashlib.sha512(self._secret).digest())

    def _opened(self, name: str, data: bytes, where: str, *, at: int) -> Entry | None:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415

        times, sealed = data[:_TIMES], data[_TIMES:]
        made, until = (int.from_bytes(part, "big") for part in (times[:8], times[8:]))
        try:
            content = zlib.decompress(self._cipher().decrypt(sealed, [name.encode(), times])).decode()
        except (InvalidTag, ValueError, zlib.error):
            self.complaints += (f"an entry of {where} was damaged, and is made anew",)
            return None
        # Before `made` the clock has been set back.
        return Entry(made=made, until=until, content=content) if made <= at < until else None

    def _write(self, name: str, data: bytes) -> None:
        if self._directory is None or len(data) > _LARGEST:
            return
        with suppress(OSError):
            private.write(self._directory / name, data)
            # Names are spread evenly: one write in sixteen looks whether there is too much.
            if name[0] == "0":
                private.prune(self._directory, most_bytes=self._keeping.bytes)
