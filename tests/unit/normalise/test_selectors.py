"""Selectors: what they name, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becalm.errors import RuleError
from becalm.manifests import paths
from becalm.normalise.selectors import AnyKey, Elements, Key, parse

OBJECT = {
    "metadata": {"annotations": {"checksum/config": "1", "a b": "2"}, "labels": {"x": "1", "y": "2"}},
    "spec": {
        "replicas": 2,
        "containers": [
            {"name": "app", "image": "a", "env": [{"name": "A"}, {"name": "B", "value": "b"}]},
            {"name": "side", "env": None},
            "stray",
        ],
        "empty": [],
    },
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("spec.replicas", ["spec.replicas"]),
        ("spec.missing", []),
        ("spec.replicas.more", []),
        ("spec.containers[].image", ["spec.containers[0].image"]),
        ("spec.containers[]", ["spec.containers[0]", "spec.containers[1]", "spec.containers[2]"]),
        ("spec.containers[name=side]", ["spec.containers[1]"]),
        ("spec.containers[name=none]", []),
        ("spec.containers[].env[name=B].value", ["spec.containers[0].env[1].value"]),
        ("spec.empty[]", []),
        ("spec[]", []),
        ("metadata.labels[*]", ["metadata.labels.x", "metadata.labels.y"]),
        ("metadata.annotations[checksum/config]", ["metadata.annotations[checksum/config]"]),
        ('metadata.annotations["a b"]', ['metadata.annotations["a b"]']),
        ("metadata[*].x", ["metadata.labels.x"]),
    ],
)
def test_fields_are_found(text: str, found: list[str]) -> None:
    selector = parse(text, where="a rule")
    assert [paths.render(path) for path in selector.find(OBJECT)] == found
    assert str(selector) == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("spec.missing", ["spec"]),
        ("spec.containers[].image", ["spec.containers[0]", "spec.containers[1]"]),
        ("spec.containers[].env[].value", ["spec.containers[0].env[0]", "spec.containers[0].env[1]"]),
        ("spec.other.missing", []),
        ("new", [""]),
    ],
)
def test_places_for_a_field_are_found(text: str, found: list[str]) -> None:
    assert [paths.render(path) for path in parse(text, where="a rule").holders(OBJECT)] == found


def test_only_a_key_has_a_place() -> None:
    assert parse("a[]", where="r").last == ""
    assert parse("a[].b", where="r").last == "b"
    with pytest.raises(ValueError, match="does not end with a key"):
        parse("a[]", where="r").holders({})


@pytest.mark.parametrize(
    "text",
    ["", ".", "[]", "[*]", "[a=b]", "a..b", "a.", ".a", "a[0]", "a[0].b", "a[", "a]", "a[]b", "a[=b]", "a[b=]", "a[b=c",
     'a["b', "a[**]", "a b", "a[b=c=d]", "a[].[]"],
)  # fmt: skip
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(RuleError, match=r"rules\.yaml:3: .* is no selector, at column \d"):
        parse(text, where="rules.yaml:3")


NAMES = st.from_regex(r"[a-z][a-zA-Z0-9]{0,5}", fullmatch=True)
STEPS = st.lists(
    st.builds(Key, NAMES) | st.just(AnyKey()) | st.builds(Elements) | st.builds(Elements, NAMES, NAMES)
)


def written(steps: list) -> str:
    text = ""
    for step in steps:
        match step:
            case Key(name):
                text += f".{name}" if text else name
            case AnyKey():
                text += "[*]"
            case Elements(key, value):
                text += f"[{key}={value}]" if key else "[]"
    return text


@given(NAMES, STEPS)
def test_what_is_written_is_read(first: str, steps: list) -> None:
    every = [Key(first), *steps]
    assert list(parse(written(every), where="r").steps) == every
