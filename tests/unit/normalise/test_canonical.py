"""Quantities and durations against what Kubernetes' own libraries make of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becalm.normalise import duration, quantity

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "normalise" / "canonical.json").read_text())
NUMBERS = st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,12})?", fullmatch=True)
SUFFIXES = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"])
UNITS = st.sampled_from(["ns", "us", "ms", "s", "m", "h"])


def told(canonical: Callable[[str], str], text: str) -> str | None:
    try:
        return canonical(text)
    except ValueError:
        return None


def test_quantities_are_those_of_kubernetes() -> None:
    """Every vector at once, so that a difference shows all texts that it concerns."""
    ours = {text: told(quantity.canonical, text) for text in VECTORS}
    assert {text: ours[text] for text in VECTORS if ours[text] != VECTORS[text][0]} == {}


def test_durations_are_those_of_go() -> None:
    ours = {text: told(duration.canonical, text) for text in VECTORS}
    assert {text: ours[text] for text in VECTORS if ours[text] != VECTORS[text][1]} == {}


def test_the_vectors_are_worth_it() -> None:
    for answers in zip(*VECTORS.values(), strict=True):
        assert len({answer for answer in answers if answer is not None}) > 300
        assert answers.count(None) > 100


@given(NUMBERS, SUFFIXES)
def test_a_canonical_quantity_is_its_own(number: str, suffix: str) -> None:
    text = told(quantity.canonical, number + suffix)
    if text is not None:
        assert quantity.canonical(text) == text


@given(NUMBERS, UNITS)
def test_a_canonical_duration_is_its_own(number: str, unit: str) -> None:
    text = told(duration.canonical, number + unit)
    if text is not None:
        assert duration.canonical(text) == text


@pytest.mark.parametrize("text", ["1" * 2000, "1e" + "9" * 500, "1e2147483647", "a" * 5000, "1" * 2000 + "h"])
def test_long_texts_take_no_time(text: str) -> None:
    told(quantity.canonical, text)
    told(duration.canonical, text)
