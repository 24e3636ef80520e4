"""Quantities and durations against what Kubernetes' own libraries make of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
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


def amount(text: str) -> Fraction:
    """What a quantity is worth, by Kubernetes' grammar: a signed number and a suffix."""
    match = re.fullmatch(r"([+-]?)(\d*)(?:\.(\d*))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?", text)
    sign, whole, fraction, suffix = match.groups()
    number = Fraction(int((whole or "0") + (fraction or "")), 10 ** len(fraction or ""))
    powers = dict(zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True))
    binary = dict(zip(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), range(10, 70, 10), strict=True))
    if suffix in binary:
        number *= 2 ** binary[suffix]
    elif suffix:
        number *= Fraction(10) ** (powers[suffix] if suffix in powers else int(suffix[1:]))
    return -number if sign == "-" else number


SMALL = st.from_regex(r"[+-]?[0-9]{1,9}(\.[0-9]{0,6})?", fullmatch=True)
BOUNDED = st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E2"])


@given(SMALL, BOUNDED)
def test_a_canonical_quantity_is_worth_the_same(number: str, suffix: str) -> None:
    """So two texts of one canonical form are equal to Kubernetes, unless it rounds what is below a billionth."""
    assert amount(quantity.canonical(number + suffix)) == amount(number + suffix)


@given(SMALL, BOUNDED, SMALL, BOUNDED)
def test_one_canonical_form_means_one_amount(first: str, one: str, second: str, other: str) -> None:
    texts = (first + one, second + other)
    if quantity.canonical(texts[0]) == quantity.canonical(texts[1]):
        assert amount(texts[0]) == amount(texts[1])


@given(st.integers(-(10**9), 10**9), st.sampled_from([("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9)]))
def test_one_amount_has_one_canonical_form(number: int, unit: tuple[str, int]) -> None:
    """Among texts of one family of suffixes that are not kept as they are written (`+1`, `010`, exponents)."""
    suffix, _ = unit
    milli = str(number * 1000) + {"m": "u", "": "m", "k": "", "M": "k", "G": "M"}[suffix]
    assert quantity.canonical(str(number) + suffix) == quantity.canonical(milli)
