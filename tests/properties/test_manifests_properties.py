"""Reading and writing manifests: nothing is lost, and every fault is a ManifestError."""

from __future__ import annotations

import contextlib

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from becalm.errors import ManifestError
from becalm.manifests import yamlio
from becalm.manifests.objects import objects
from becalm.manifests.stream import split

EXAMPLES = settings(max_examples=max(300, settings().max_examples * 20))
LINES = ("---", "--- ", "--- # c", "---\t", "----", "...", " ---", "# Source: a/templates/b.yaml", "a: 1", "a: |", "  b",
         "- c", "", "null", "~", "%YAML 1.1", "\ufeff", "&a [*a]", "a: &b {c: *b}", "? x", '"', "'", "{", "}", "\t", "a: !!t x",
         "\x85", "\u2028", "\x00", "0o7", "1e3", "yes: no", "2001-01-01", "<<: *a", "a: b: c", "é", "\ud800")  # fmt: skip
YAML = st.lists(st.sampled_from(LINES), max_size=12).flatmap(
    lambda lines: st.sampled_from(("\n", "\r\n", "\n\n")).map(lambda end: end.join(lines))
)
# Words that YAML, or Go's reading of it, may take for something else than text.
TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(("", "yes", "No", "~", "null", "0x1F", "0o17", "017", "1_000", ".5", "1e3", "+.inf", "=", "<<", "- a", "a: b",
                     "#c", " a", "a ", "a\n", "\n\na\n\n", "2001-01-01", "2001-01-01T00:00:00Z", "!x", "&a", "*a", "|", ">", "%a",
                     "@a", "`a", "---", "...", "\t", "\x7f", "\x85", "\u2028", "\ufeff", "\U0001f600", "1:30", "0b1", "-0", "y", "n")),
)  # fmt: skip
NUMBERS = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)


@EXAMPLES
@given(YAML)
def test_documents_joined_are_the_stream(text: str) -> None:
    try:
        documents = split(text)
    except ManifestError:
        assume(condition=False)
        return
    assert "".join(document.separator + document.text for document in documents) == text


@EXAMPLES
@given(st.one_of(YAML, st.text(max_size=60)))
def test_any_text_is_read_or_refused_with_a_manifest_error(text: str) -> None:
    with contextlib.suppress(ManifestError):
        list(objects(split(text)))
    with contextlib.suppress(ManifestError):
        yamlio.load(text, where="text")


@EXAMPLES
@given(VALUES)
def test_what_is_written_reads_as_the_same_value(value) -> None:
    text = yamlio.dump(value)
    again = yamlio.load(text, where="text")
    assert again == value
    assert types(again) == types(value)
    assert yamlio.dump(again) == text


def types(value) -> object:
    if isinstance(value, dict):
        return {key: types(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [types(inner) for inner in value]
    return float if type(value) is int else type(value)  # JSON has one kind of number; 1.0 is written as 1


@EXAMPLES
@given(st.lists(VALUES, max_size=4))
def test_written_documents_are_split_where_they_were_joined(values) -> None:
    texts = [yamlio.dump(value) for value in values]
    stream = "".join(f"---\n{text}" for text in texts)
    assert [document.text for document in split(stream)] == texts
