"""Downloaded charts on disk: each once, by the SHA-256 of its archive, and an index of what has been fetched.

The index is by repository, name, exact version, and by whose credentials served: what was fetched with a
Secret that is for one project is found by that project's apps only, and what was fetched with credentials is not
found by who has none. Names of entries are digests of those keys. An archive whose content does not have the
digest of its name is no hit, and is fetched anew. Files appear complete or not at all (`config.private`), so any
number of processes can share the directory; the worst that a race gives is one download too many.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from becalm.config import private

_MIB = 1024 * 1024
#: Above this, the archives that were used least recently go, until half of it is left.
LIMIT_BYTES = 512 * _MIB
LIMIT_ENTRIES = 4096
_LARGEST = 100 * _MIB
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What an archive was fetched as: `scope` tells whose credentials served, "" where there were none."""

    repository: str
    name: str
    version: str
    scope: str

    @property
    def entry(self) -> str:
        """The name of the entry in the index."""
        parts = [self.repository, self.name, self.version, self.scope]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class ChartCache:
    """Archives below `charts` of a directory that only we can read; another one is not used.

    Args:
        directory: becalm's cache; None keeps nothing.
    """

    def __init__(self, directory: Path | None, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._archives: Path | None = None
        self._index: Path | None = None
        if directory is None:
            return
        charts = directory / "charts"
        if all(map(private.is_private, (directory, charts, charts / "archives", charts / "index"))):
            self._archives, self._index = charts / "archives", charts / "index"

    def get(self, key: Key) -> bytes | None:
        """The archive, if it is there and whole."""
        if self._archives is None or self._index is None:
            return None
        try:
            digest = (self._index / key.entry).read_text("ascii").strip()
            if not _DIGEST.fullmatch(digest):
                return None
            path = self._archives / f"{digest}.tgz"
            if path.lstat().st_size > _LARGEST:
                return None
            data = path.read_bytes()
        except (OSError, UnicodeDecodeError):
            return None
        if hashlib.sha256(data).hexdigest() != digest:
            with suppress(OSError):
                path.unlink()
            return None
        for used in (path, self._index / key.entry):
            with suppress(OSError):
                os.utime(used)
        return data

    def put(self, key: Key, data: bytes) -> None:
        """Keep an archive. Where that fails (no space, say), it is not kept, and nothing else happens."""
        if self._archives is None or self._index is None or len(data) > _LARGEST:
            return
        digest = hashlib.sha256(data).hexdigest()
        with suppress(OSError):
            # The archive first: an index entry never points to what has not been there.
            private.write(self._archives / f"{digest}.tgz", data)
            private.write(self._index / key.entry, digest.encode())
            private.prune(self._archives, most_bytes=self._limit, most_entries=LIMIT_ENTRIES)
            private.prune(self._index, most_bytes=self._limit, most_entries=LIMIT_ENTRIES)
