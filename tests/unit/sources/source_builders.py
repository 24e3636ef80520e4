"""Builds charts and archives from dicts, so that each test shows its whole input."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

CHART_YAML = b"apiVersion: v2\nname: demo\nversion: 1.0.0\n"


def tar_entry(name: str | bytes, content: bytes = b"", *, type_: bytes = b"0", mode: int = 0o644) -> bytes:
    """One raw ustar entry; no check of any kind, so it can be as wrong as a test wants."""
    raw_name = name.encode() if isinstance(name, str) else name
    header = bytearray(512)
    header[: len(raw_name)] = raw_name
    header[100:108] = b"%07o\0" % mode
    header[124:136] = b"%011o\0" % len(content)
    header[148:156] = b" " * 8
    header[156:157] = type_
    header[257:265] = b"ustar\x0000"
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)


def tgz(*entries: bytes) -> bytes:
    """Gzip raw entries together with the end mark."""
    return gzip.compress(b"".join(entries) + bytes(1024), 1)


def chart_tgz(files: Mapping[str, bytes], name: str = "demo") -> bytes:
    """A packed chart as an ordinary tar program writes it; Chart.yaml is added."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, content in {"Chart.yaml": CHART_YAML, **files}.items():
            header = tarfile.TarInfo(f"{name}/{path}")
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return packed.getvalue()


def write_files(top: Path, files: Mapping[str, bytes | str], links: Iterable[tuple[str, str]] = ()) -> Path:
    """Write files (and symbolic links, path to target) below `top`; Chart.yaml is not added."""
    for path, content in files.items():
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    for path, destination in links:
        link = top / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(destination)
    return top
