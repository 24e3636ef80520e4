"""A chart in one file for helm, since a disk makes one file much sooner than several hundred.

Nobody but helm reads it, and at once, so nothing is compressed. An archive may consist of several gzip members (RFC 1952,
2.2), so what is the same in one render and the next is packed once.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from becalm.sources.archive import add
from becalm.sources.tarball import MIB, ArchiveLimits

_DRIVE = re.compile("[a-zA-Z]:")
#: Of all files together; more is not worth the memory.
_MOST = 32 * MIB
_GZIP = 16 + zlib.MAX_WBITS


class Packed:
    """The files of a chart that stay the same, by their POSIX paths.

    Raises:
        ValueError: helm would load something else from an archive than from a directory, or not load it.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        if not all(map(_is_plain, files)) or sum(map(len, files.values())) > _MOST:
            raise ValueError("no archive for helm")
        if any(len(data) > ArchiveLimits().file_bytes for data in files.values()):
            raise ValueError("helm loads no such file from an archive")
        self._member = _member(_blocks(files))

    def write(self, path: Path, added: Mapping[str, bytes]) -> None:
        """Write the archive with some files more; one that is there is replaced.

        Raises:
            OSError: there is no room.
        """
        last = _member(_blocks(added) + bytes(2 * tarfile.BLOCKSIZE))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(path, "wb", opener=lambda name, _: os.open(name, flags, 0o600)) as file:
            file.write(self._member)
            file.write(last)


def _is_plain(path: str) -> bool:
    """Whether helm gives a file of an archive just this name (pkg/chart/loader/archive)."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return "\\" not in path and not _DRIVE.match(path)


def _blocks(files: Mapping[str, bytes]) -> bytes:
    """The files as tar has them, without its end."""
    blocks = io.BytesIO()
    archive = tarfile.open(fileobj=blocks, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115  # closing writes the end
    add(archive, "chart", files)
    return blocks.getvalue()


def _member(data: bytes) -> bytes:
    packing = zlib.compressobj(level=0, wbits=_GZIP)
    return packing.compress(data) + packing.flush()
