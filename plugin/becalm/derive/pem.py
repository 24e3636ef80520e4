"""PEM (RFC 7468) as Go's encoding/pem reads and writes it: blocks, with text around them ignored."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

_BLOCK = re.compile(
    r"^-----BEGIN ([A-Z0-9 ]+)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*$", re.MULTILINE | re.DOTALL
)
_HEADER = re.compile(r"^[A-Za-z0-9-]+:.*\n(?:[ \t].*\n)*", re.MULTILINE)


def blocks(text: str) -> Iterator[tuple[str, bytes]]:
    """Every block of a text: its label and the bytes in it. Damaged blocks are left out."""
    for match in _BLOCK.finditer(text):
        body = _HEADER.sub("", match.group(2))
        try:
            yield match.group(1), base64.b64decode("".join(body.split()), validate=True)
        except (binascii.Error, ValueError):
            continue


def first(text: str) -> tuple[str, bytes] | None:
    """The first block of a text."""
    return next(blocks(text), None)


def write(label: str, data: bytes) -> str:
    """A block, in lines of 64 characters."""
    text = base64.b64encode(data).decode("ascii")
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))
