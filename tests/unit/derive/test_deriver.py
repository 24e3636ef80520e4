"""Answers: what they depend on, and what may come from the cache."""

from __future__ import annotations

import json

import pytest

from becalm.derive.cache import Cache
from becalm.derive.deriver import Deriver
from becalm.derive.labels import Label
from becalm.derive.windows import Windows
from becalm.errors import DerivationError

LABEL = Label(("site", "x"))
AT = 1_790_000_000


def deriver(tmp_path, *, key: bytes = bytes(32), at: int = AT) -> Deriver:
    return Deriver(key, at=at, windows=Windows(), cache=Cache(tmp_path / "cache"))


def value(one: Deriver, function: str, arguments: list, *given: str, label: Label = LABEL) -> object:
    return one.value(label, function, json.dumps(arguments), given)


@pytest.mark.parametrize(
    ("function", "arguments", "given"),
    [
        ("genPrivateKey", ["rsa"], ()),
        ("htpasswd", ["u"], ("p",)),
        ("bcrypt", [], ("p",)),
        ("genCA", ["ca", 9], ()),
    ],
)
def test_a_cache_changes_nothing(tmp_path, function, arguments, given):
    without = Deriver(bytes(32), at=AT, windows=Windows(), cache=Cache(None))
    first = value(deriver(tmp_path), function, arguments, *given)
    assert value(deriver(tmp_path), function, arguments, *given) == first
    assert value(without, function, arguments, *given) == first
    assert list((tmp_path / "cache").iterdir())
    assert value(deriver(tmp_path, key=b"k" * 32), function, arguments, *given) != first
    assert value(deriver(tmp_path), function, arguments, *given, label=Label(("site", "y"))) != first


def test_what_is_in_no_label_is_in_the_caches_key(tmp_path):
    """Users and passwords that are drawn may change under one label."""
    lines = [
        value(deriver(tmp_path), "htpasswd", [user, *algorithm], password)
        for user in ("a", "b")
        for password in ("p", "q")
        for algorithm in ((), ("sha",))
    ]
    assert len(set(lines)) == 8
    assert [line[:2] for line in lines] == ["a:"] * 4 + ["b:"] * 4
    hashes = {value(deriver(tmp_path), "bcrypt", [], password) for password in ("p", "q")}
    assert len(hashes) == 2


def test_time_changes_certificates_and_no_keys(tmp_path):
    one, two = (value(deriver(tmp_path, at=at), "genCA", ["ca", 9]) for at in (AT, AT + 90 * 86_400))
    assert one.key == two.key
    assert one.cert != two.cert


@pytest.mark.parametrize("days", [0, -1])
def test_a_certificate_has_a_day_at_least(tmp_path, days):
    with pytest.raises(DerivationError, match="ends before it begins"):
        value(deriver(tmp_path), "genCA", ["ca", days])


@pytest.mark.parametrize("days", [36_500, 4_000_000, 10**15])
def test_long_validities_end_at_the_end_of_time(tmp_path, days):
    made = value(deriver(tmp_path), "genCA", ["ca", days])
    assert made.cert.startswith("-----BEGIN CERTIFICATE-----")


def test_kinds_of_keys_that_sprig_does_not_know(tmp_path):
    assert value(deriver(tmp_path), "genPrivateKey", ["rot13"]) == "Unknown type rot13"
