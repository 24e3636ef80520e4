"""Split rendered output into documents where Argo CD splits it.

The rule is that of `YAMLReader` in k8s.io/apimachinery 0.36.1 (`pkg/util/yaml/decoder.go`): a line that
*begins* with `---` is a separator, nothing else is, and only white space or a comment may follow it there.
What YAML would allow beyond that (text on the line, `...`, directives) Argo CD refuses or silently loses,
so it is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from becalm.errors import ManifestError

MAX_BYTES: Final = 100 * 1024 * 1024
"""Bytes of UTF-8 in one stream: what Argo CD's own gRPC limit lets through."""

MAX_DOCUMENTS: Final = 50_000
"""Documents in one stream; the largest known charts render below 2,000."""

# unicode.IsSpace of Go, which is not str.isspace (that has U+001C to U+001F too).
_GO_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
# YAML 1.1 ends a comment at any of these breaks.
_BREAKS = "\r\n\x85\u2028\u2029"
_BLANKS = re.compile(f"(?:[ \t{_BREAKS}]++|#[^{_BREAKS}]*+)*+")
_NULL = re.compile(f"(?:~|null|Null|NULL)(?=[ \t{_BREAKS}]|\\Z)")
_SOURCE = re.compile(r"^(?:---[ \t]+)?# Source: *([^\r\n]*[^\s])", re.MULTILINE)
_DOCUMENT_END = re.compile(r"^\.\.\.(?=\s|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a stream.

    Joining `separator + text` of all documents gives the stream back, byte for byte.
    """

    text: str
    """The exact text between two separator lines."""

    separator: str
    """The exact separator line before the text, with its newline; empty for text that has none before it."""

    source: str | None
    """What Helm's `# Source: ` comment names, or None."""

    line: int
    """The number of the text's first line in the stream, from 1."""

    index: int
    """The place in the stream, from 0, empty documents included."""

    is_empty: bool
    """Only blanks, comments or `null`: Argo CD drops the document."""

    @property
    def where(self) -> str:
        """The document for messages: `document 3 (Source: chart/templates/a.yaml)`, counted from 1."""
        number = f"document {self.index + 1}"
        return f"{number} (Source: {self.source})" if self.source else number


def split(
    text: str,
    *,
    where: str = "output",
    max_bytes: int = MAX_BYTES,
    max_documents: int = MAX_DOCUMENTS,
) -> list[Document]:
    """The documents of a stream, empty ones included.

    A separator at the very start belongs to the first document, as in Argo CD; a stream without any
    characters has no documents.

    Raises:
        ManifestError: a limit is exceeded, a separator line carries text, content follows `...` (Argo CD
            would lose it), or a document begins with a directive. Messages name lines, never content.
    """
    if len(text) > max_bytes or _utf8_length(text) > max_bytes:
        raise ManifestError(f"more than {max_bytes} bytes", where=where)
    has_ends = text.startswith("...") or "\n..." in text
    documents: list[Document] = []
    line = 1
    for begin, start, end in _parts(text):
        if len(documents) >= max_documents:
            raise ManifestError(f"more than {max_documents} documents", where=where)
        if start > begin:
            _check_separator(text, begin, start, f"{where}, line {line}")
            line += text.count("\n", begin, start)
        content = _BLANKS.match(text, start + (start == 0 and text.startswith("\ufeff")), end)
        at = content.end() if content else start
        source = _SOURCE.search(text, begin, at)
        document = Document(
            text=text[start:end],
            separator=text[begin:start],
            source=source.group(1) if source else None,
            line=line,
            index=len(documents),
            is_empty=_is_null(text, at, end),
        )
        if start and text.startswith("\ufeff", start, end):
            _refuse("a byte order mark inside the stream", document, 0)
        if text.startswith("%", at, end):
            _refuse("a % directive, which Argo CD refuses", document, at - start)
        if has_ends:
            _check_end(document)
        documents.append(document)
        line += text.count("\n", start, end)
    return documents


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _parts(text: str) -> Iterator[tuple[int, int, int]]:
    """For each document where its separator begins, where its text begins, and where its text ends."""
    begin = start = 0
    if text.startswith("---"):
        start = _next_line(text, 0)
    while begin < len(text):
        # The newline before a separator may be the last character of the separator line before it.
        at = text.find("\n---", max(start - 1, 0))
        end = len(text) if at < 0 else at + 1
        yield begin, start, end
        begin, start = end, _next_line(text, end)


def _next_line(text: str, at: int) -> int:
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1


def _check_separator(text: str, begin: int, start: int, where: str) -> None:
    rest = text[begin + 3 : start].strip(_GO_SPACE)
    if rest and not rest.startswith("#"):
        raise ManifestError(
            "text after `---` on a separator line, which Argo CD refuses",
            where=where,
            hint="begin the document on the next line",
        )


def _is_null(text: str, at: int, end: int) -> bool:
    null = _NULL.match(text, at, end)
    if null:
        rest = _BLANKS.match(text, null.end(), end)
        at = rest.end() if rest else at
    return at == end


def _check_end(document: Document) -> None:
    marker = _DOCUMENT_END.search(document.text)
    if not marker:
        return
    rest = _BLANKS.match(document.text, marker.end())
    if rest and rest.end() != len(document.text):
        _refuse("content after `...`, which Argo CD would silently lose", document, rest.end())


def _refuse(what: str, document: Document, offset: int) -> None:
    line = document.line + document.text.count("\n", 0, offset)
    raise ManifestError(what, where=f"{document.where}, line {line}", hint="separate documents with `---`")
