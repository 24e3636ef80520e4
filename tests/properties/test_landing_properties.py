"""Where a text lands is the same whether all documents are read or only those that can hold it."""

from __future__ import annotations

import base64
from functools import partial

import yaml
from hypothesis import given, reject
from hypothesis import strategies as st

from becalm.errors import ManifestError
from becalm.manifests.landing import Index, Part, Parts, strings
from becalm.manifests.objects import identify, objects
from becalm.manifests.stream import split

WORDS = [
    "s3cretValue",
    "S3CRETVALUE",
    "another-one",
    "with blank in it",
    "it's",
    'quo"ted',
    "back\\slash",
    "line\nbreak",
    "übung",
    "12345678",
    "a" * 90,
]


def hidden(text: str, deep: int) -> str:
    for _ in range(deep):
        text = base64.b64encode(text.encode()).decode()
    return text


TEXTS = st.builds(
    lambda before, word, deep, after: before + hidden(word, deep) + after,
    st.sampled_from(["", "user:", "https://", "a b ", "x" * 70 + " ", "key = "]),
    st.sampled_from(WORDS),
    st.integers(0, 3),
    st.sampled_from(
        ["", "@host", " and more words so that a line is folded somewhere in here", "\n", "/path"]
    ),
)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.builds(
    lambda kind, name, data: {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": data},
    st.sampled_from(["Secret", "ConfigMap"]),
    st.sampled_from(["one", "two", "three"]),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3),
)
STYLES = st.fixed_dictionaries(
    {
        "default_style": st.sampled_from([None, '"', "'", "|", ">"]),
        "default_flow_style": st.sampled_from([True, False, None]),
        "width": st.sampled_from([20, 80, 10_000]),
        "allow_unicode": st.booleans(),
    }
)


@given(
    st.lists(st.tuples(OBJECTS, STYLES), max_size=5),
    st.lists(st.sampled_from(WORDS) | TEXTS, min_size=1, max_size=4),
)
def test_reading_less_finds_the_same(documents, searched):
    output = "---\n".join(yaml.safe_dump(obj, **style) for obj, style in documents)
    try:
        found = split(output)
    except ManifestError:
        reject()

    def leaves(document):
        for _, obj in objects([document]):
            yield from strings(obj, identify(obj, "ns"))

    try:
        every = Index(leaf for document in found for leaf in leaves(document))
    except ManifestError:
        reject()  # PyYAML writes what Kubernetes would not read
    parts = Parts(Part(document.text, partial(leaves, document)) for document in found)
    for text in searched:
        wanted = text.strip().strip("\"'")
        if len(wanted) >= 6:
            assert parts.find(wanted) == every.find(wanted)
