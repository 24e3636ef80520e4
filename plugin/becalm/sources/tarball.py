"""A small streaming reader for tar archives, with Helm's view of them (Go's archive/tar).

Python's own `tarfile` is not used for reading: it takes a broken header in the middle for the
end of the archive, where Go reports an error, and it believes any size that a metadata header
claims. Here a broken header is an error, and everything that is read is counted.
"""

from __future__ import annotations

import enum
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from becalm.errors import SourceError

MIB = 1024 * 1024

_BLOCK = 512
_ZEROS = bytes(_BLOCK)
# Go's limit for a metadata header (maxSpecialFileSize).
_MAX_METADATA = MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """What one archive may hold; the sizes are those of Helm.

    Attributes:
        entries: headers of any kind, directories and metadata included.
        file_bytes: size of one unpacked file, in bytes.
        total_bytes: size of all unpacked files and metadata, in bytes.
    """

    entries: int = 100_000
    file_bytes: int = 5 * MIB
    total_bytes: int = 100 * MIB


class Kind(enum.Enum):
    """What an entry is, as far as it matters to a chart."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "symbolic link"
    HARD_LINK = "hard link"
    DEVICE = "device"
    FIFO = "named pipe"
    SPARSE = "sparse file"
    METADATA = "metadata"
    OTHER = "entry of unknown type"


_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,
    b"1": Kind.HARD_LINK,
    b"2": Kind.LINK,
    b"3": Kind.DEVICE,
    b"4": Kind.DEVICE,
    b"5": Kind.DIRECTORY,
    b"6": Kind.FIFO,
    b"S": Kind.SPARSE,
    b"x": Kind.METADATA,
    b"g": Kind.METADATA,
    b"L": Kind.METADATA,
    b"K": Kind.METADATA,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry that stands for something; `data` is empty for all but files."""

    name: str
    kind: Kind
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    type: bytes
    name: bytes
    size: int
    mode: int


def read_entries(data: bytes, *, where: str, limits: ArchiveLimits) -> Iterator[Entry]:
    """Yield the entries of a gzipped tar archive, one file in memory at a time.

    Names are decoded as UTF-8 with `surrogateescape`. Like Helm, it stops at the end of the
    archive and does not look at what follows there.

    Raises:
        SourceError: not a gzip file, broken, cut off, or above a limit; names archive and entry.
    """
    if not data.startswith(b"\x1f\x8b\x08"):
        raise SourceError("this is not a gzipped archive", where=where, hint="package it with `helm package`")
    reader = _Reader(gzip.GzipFile(fileobj=io.BytesIO(data), mode="rb"), where, limits)
    try:
        yield from reader.entries()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(
            "the archive is damaged or cut off", where=where, hint="fetch or package it again"
        ) from error


class _Reader:
    def __init__(self, stream: gzip.GzipFile, where: str, limits: ArchiveLimits) -> None:
        self.stream = stream
        self.where = where
        self.limits = limits
        self.headers = 0
        self.total = 0

    def entries(self) -> Iterator[Entry]:
        pax: dict[bytes, bytes] = {}
        long_name = b""
        while (header := self._next_header()) is not None:
            kind = _KINDS.get(header.type, Kind.OTHER)
            if kind is Kind.METADATA:
                content = self._content(header.name, header.size, _MAX_METADATA)
                if header.type == b"x":
                    pax = self._pax_records(content)
                elif header.type == b"L":
                    long_name = _text(content)
                continue  # `g` and `K` change nothing that Helm uses
            yield self._entry(header, kind, pax, long_name)
            pax, long_name = {}, b""

    def _entry(self, header: _Header, kind: Kind, pax: dict[bytes, bytes], long_name: bytes) -> Entry:
        raw_name = long_name or pax.get(b"path") or header.name
        name = raw_name.decode("utf-8", "surrogateescape")
        if header.type == b"\0" and name.endswith("/"):
            kind = Kind.DIRECTORY
        if pax and any(key.startswith(b"GNU.sparse.") for key in pax):
            kind = Kind.SPARSE
        if kind is not Kind.FILE:
            return Entry(name=name, kind=kind, data=b"")
        size = header.size
        if pax.get(b"size"):
            size = self._number(pax[b"size"], 10)
        content = self._content(raw_name, size, self.limits.file_bytes)
        # Helm asks the mode, too, whether something is a directory.
        is_directory = header.mode & 0o170000 == 0o040000
        return Entry(name=name, kind=Kind.DIRECTORY if is_directory else Kind.FILE, data=content)

    def _next_header(self) -> _Header | None:
        block = self._block()
        if block is None:
            return None
        if block == _ZEROS:
            following = self._block()
            if following is None or following == _ZEROS:
                return None
            raise self._broken()
        self.headers += 1
        if self.headers > self.limits.entries:
            raise self._refused(f"the archive has more than {self.limits.entries} entries")
        return self._parse(block)

    def _parse(self, block: bytes) -> _Header:
        unsigned = sum(block[:148]) + 8 * 32 + sum(block[156:])
        stored = self._number(block[148:156])
        if stored != unsigned:
            # Very old programs summed signed characters.
            negative = sum(1 for byte in block[:148] + block[156:] if byte > 127)
            if stored != unsigned - 256 * negative:
                raise self._broken()
        name = _text(block[:100])
        prefix = b""
        if block[257:263] == b"ustar\0":
            is_star = block[508:512] == b"tar\0"
            prefix = _text(block[345:476] if is_star else block[345:500])
        return _Header(
            type=block[156:157],
            name=prefix + b"/" + name if prefix else name,
            size=self._number(block[124:136]),
            mode=self._number(block[100:108]),
        )

    def _number(self, field: bytes, base: int = 8) -> int:
        """A number field: digits, or big-endian binary if the first bit is set."""
        if base == 8 and field[0] & 0x80:
            value = int.from_bytes(field, "big", signed=True)
            value = value + (1 << (8 * len(field) - 1)) if value < 0 and not field[0] & 0x40 else -1
            if not 0 <= value < 1 << 63:
                raise self._broken()
            return value
        digits = _text(field.strip(b" \0")) if base == 8 else field
        if not digits and base == 8:
            return 0
        if not digits.isdigit() or len(digits) > 22:
            raise self._broken()
        try:
            return int(digits, base)
        except ValueError:
            raise self._broken() from None

    def _pax_records(self, content: bytes) -> dict[bytes, bytes]:
        records: dict[bytes, bytes] = {}
        while content:
            length, _, _ = content.partition(b" ")
            if not length.isdigit() or len(length) > 7:
                raise self._broken()
            record, content = content[: int(length)], content[int(length) :]
            key, equals, value = record[len(length) + 1 : -1].partition(b"=")
            if len(record) != int(length) or not record.endswith(b"\n") or not equals or not key:
                raise self._broken()
            if b"\0" in (value if key == b"path" else key):
                raise self._broken()
            records[key] = value
        return records

    def _content(self, name: bytes, size: int, most: int) -> bytes:
        if size == 0:
            return b""
        if size > most:
            raise self._refused(f"the entry {_shown(name)} is larger than {most / MIB:g} MiB")
        self.total += size
        if self.total > self.limits.total_bytes:
            raise self._refused(
                f"the archive unpacks to more than {self.limits.total_bytes / MIB:g} MiB (at {_shown(name)})"
            )
        # Go, too, lets the padding of the last file be missing.
        content = self.stream.read(size + -size % _BLOCK)
        if len(content) < size:
            raise EOFError
        return content[:size]

    def _block(self) -> bytes | None:
        block = self.stream.read(_BLOCK)
        if block and len(block) < _BLOCK:
            raise EOFError
        return block or None

    def _broken(self) -> SourceError:
        return SourceError(
            f"the archive is damaged: entry {self.headers} has no valid header",
            where=self.where,
            hint="fetch or package it again",
        )

    def _refused(self, what: str) -> SourceError:
        return SourceError(what, where=self.where, hint="remove from the chart what it does not need")


def _shown(name: bytes) -> str:
    return repr(name.decode("utf-8", "surrogateescape"))


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]
