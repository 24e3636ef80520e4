"""What the index of an HTTP chart repository says of one chart: the digests of its archives.

Helm chooses the version and downloads it, but compares no digest (pkg/downloader verifies provenance only). Indexes
can hold tens of megabytes, of which one chart's part is read: in YAML's block style, in which `helm repo index`
writes, the lines of an entry are those below its key that are indented further, whatever they hold.
"""

from __future__ import annotations

import re
from typing import Any

from becalm.errors import PluginError, SourceError
from becalm.manifests import yamlio

_ENTRIES = re.compile(r"^entries:[ \t]*\n", re.MULTILINE)
_KEY = re.compile(r"^(?P<indent> +)(?P<key>[^\s#][^\n]*?):[ \t]*$", re.MULTILINE)


def digest(text: str, name: str, version: str, *, where: str) -> str:
    """The digest of an archive in hexadecimal; "" where the index has none.

    Raises:
        SourceError: the index is not YAML.
    """
    entries = _part(text, name)
    if entries is None:
        whole = _load(text, where)
        entries = whole.get("entries") if isinstance(whole, dict) else None
        entries = entries.get(name) if isinstance(entries, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and _same(str(entry.get("version", "")), version):
            return str(entry.get("digest") or "").removeprefix("sha256:").lower()
    return ""


def _same(left: str, right: str) -> bool:
    return left.removeprefix("v") == right.removeprefix("v")


def _part(text: str, name: str) -> Any:
    """The value of one entry; None where the index is written in another style."""
    entries = _ENTRIES.search(text)
    first = _KEY.match(text, entries.end()) if entries else None
    if first is None:
        return None
    indent = len(first["indent"])
    key = re.compile(
        rf"^ {{{indent}}}(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}'):[ \t]*\n",
        re.MULTILINE,
    )
    start = key.search(text, first.start())
    if start is None:
        return None
    # A list may stand at its key's own indentation.
    end = re.compile(rf"^ {{0,{indent}}}[^ \n#-]", re.MULTILINE).search(text, start.end())
    part = text[start.end() : end.start() if end else len(text)]
    try:
        return yamlio.load(part, where="index.yaml")
    except PluginError:
        return None  # an anchor of another entry, perhaps


def _load(text: str, where: str) -> Any:
    try:
        return yamlio.load(text, where="index.yaml")
    except PluginError as error:
        raise SourceError(
            "the repository's index.yaml is not YAML", where=where, hint="tell whoever keeps the repository"
        ) from error
