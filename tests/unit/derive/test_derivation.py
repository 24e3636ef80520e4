"""The bytes that users rely on, and the laws of derivation."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becalm.derive import labels, seed, values
from becalm.errors import ConfigError

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "derive.json").read_text())
KEYS = st.binary(min_size=32, max_size=32)


def test_the_app_key_is_pinned() -> None:
    """A change of the app key is a new scheme version, never a slip."""
    name, project, namespace, cluster = VECTORS["application"]
    app = labels.Application(name=name, project=project, namespace=namespace, cluster=cluster)
    secret = bytes.fromhex(VECTORS["seed"])
    assert seed.Seed(secret).id == VECTORS["seed_id"]
    assert labels.app_key(secret, VECTORS["seed_id"], app).hex() == VECTORS["app_key"]


@pytest.mark.parametrize("vector", VECTORS["values"], ids=lambda v: f"{v['function']}{v['arguments']}")
def test_values_are_pinned(vector: dict) -> None:
    """The value of every function for a label never changes."""
    key = labels.item_key(bytes.fromhex(VECTORS["app_key"]), labels.Label(tuple(vector["label"])))
    assert values.value(vector["function"], vector["arguments"], key) == vector["value"]


def test_hkdf_agrees_with_rfc_5869() -> None:
    """Test case 3 of RFC 5869: no salt, no info."""
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    assert labels.hkdf(b"\x0b" * 22, b"", 42).hex() == expected


PARTS = st.lists(st.text() | st.integers())


@given(PARTS, PARTS)
def test_lists_that_differ_encode_differently(a: list, b: list) -> None:
    """No two lists of parts run together."""
    assert (labels.encode(a) == labels.encode(b)) == (a == b)


@given(KEYS, st.sampled_from(sorted(values.ALPHABETS)), st.integers(-2, 200))
def test_strings_have_their_alphabet_and_length(key: bytes, function: str, count: int) -> None:
    """Strings have as many characters as asked for, all of the function's alphabet."""
    text = values.value(function, [count], key)
    assert len(text) == max(0, count)
    assert set(text) <= set(values.ALPHABETS[function])


@given(KEYS, st.integers(-1000, 1000), st.integers(1, 10**9))
def test_integers_are_in_range(key: bytes, low: int, size: int) -> None:
    """randInt gives a number from low up to, not including, high."""
    assert low <= int(values.value("randInt", [low, low + size], key)) < low + size


@given(KEYS, st.integers(0, 60))
def test_a_shuffle_is_a_permutation(key: bytes, length: int) -> None:
    """Each position occurs once."""
    assert sorted(values.value("shuffle", [length], key)) == list(range(length))


def test_characters_are_uniform() -> None:
    """No character of an alphabet is much likelier than another."""
    text = values.characters(bytes(32), values.ALPHABETS["randAlphaNum"], 62_000)
    assert all(800 < text.count(c) < 1200 for c in values.ALPHABETS["randAlphaNum"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bytes(range(31)), "has 31 bytes"),
        (b"becalm-seed-v1:" + base64.urlsafe_b64encode(bytes(range(31))), "has 31 bytes"),
        (b"becalm-seed-v1:!!!!", "damaged"),
        (bytes(64), "not random"),
        (b"", "has 0 bytes"),
    ],
)
def test_bad_seeds_are_refused(content: bytes, words: str) -> None:
    """A seed that is short, damaged or not random is an error that does not show it."""
    with pytest.raises(ConfigError, match=words) as caught:
        seed.parse(content, where="seed")
    assert repr(content)[2:20] not in str(caught.value) or not content


def test_a_new_seed_reads_back_and_does_not_show_itself() -> None:
    """`seed new` writes what `parse` reads, and a seed's representation hides it."""
    parsed = seed.parse(seed.new(), where="seed")
    assert len(parsed.secret) == 32
    assert repr(parsed.secret) not in repr(parsed)
