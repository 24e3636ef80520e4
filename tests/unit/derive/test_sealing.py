"""Sealed texts: stable, bound to their name and application, and damaged by every change."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becalm.derive.labels import Application
from becalm.derive.sealing import SealedError, Sealer
from becalm.derive.seed import Seed

SEED = Seed(bytes(range(32)))
APP = Application(name="shop", project="default", namespace="prod", cluster="eu-1")
NAME = ("pin", "landing", "", "Secret", "prod", "db", "data.password", 16)
VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "sealing.json").read_text("utf-8"))


@pytest.mark.parametrize("vector", VECTORS["sealed"], ids=lambda vector: vector["name"][0])
def test_sealed_texts_are_pinned(vector: dict) -> None:
    """Committed files must open in every later version."""
    name, content = tuple(vector["name"]), vector["content"].encode()
    assert Sealer(SEED, APP).seal(name, content) == vector["text"]
    assert Sealer(SEED, APP).open(name, vector["text"]) == content


@given(st.binary(max_size=300))
def test_what_is_sealed_is_opened(content: bytes) -> None:
    sealer = Sealer(SEED, APP)
    assert sealer.open(NAME, sealer.seal(NAME, content)) == content


@pytest.mark.parametrize(
    "other",
    [
        Sealer(Seed(bytes(range(1, 33))), APP),
        *(
            Sealer(SEED, replace(APP, **{field: "x"}))
            for field in ("name", "project", "namespace", "cluster")
        ),
    ],
    ids=("seed", "name", "project", "namespace", "cluster"),
)
def test_another_application_or_seed_opens_nothing(other: Sealer) -> None:
    with pytest.raises(SealedError):
        other.open(NAME, Sealer(SEED, APP).seal(NAME, b"secret"))


@pytest.mark.parametrize("name", [NAME[:-1], (*NAME[:-1], "16"), (*NAME, ""), ("lookup", *NAME[1:])])
def test_another_name_opens_nothing(name: tuple[str | int, ...]) -> None:
    with pytest.raises(SealedError):
        Sealer(SEED, APP).open(name, Sealer(SEED, APP).seal(NAME, b"secret"))


def test_every_changed_character_is_found() -> None:
    """The unused bits of the last character of base64 too."""
    sealer = Sealer(SEED, APP)
    text = sealer.seal(NAME, b"secret")
    for at, old in enumerate(text):
        for new in (chr(ord(old) ^ 1), "A", "=", "\n"):
            if new != old:
                with pytest.raises(SealedError):
                    sealer.open(NAME, text[:at] + new + text[at + 1 :])
    for cut in range(len(text)):
        with pytest.raises(SealedError):
            sealer.open(NAME, text[:cut])


def test_lengths_are_hidden_by_blocks() -> None:
    sealer = Sealer(SEED, APP)
    lengths = [len(base64.b64decode(sealer.seal(NAME, bytes(size)))) for size in range(200)]
    assert sorted(set(lengths)) == [80, 144, 208, 272]
