"""Windows of validity: stable inside, never near the end, and with their authorities at any time."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becalm.derive.windows import DAY, LAST, Windows, fraction
from becalm.errors import ConfigError

NOW = 1_790_000_000
TEN_YEARS = 3653 * DAY
VALIDITIES = st.integers(1, 36500).map(lambda days: days * DAY)
SHIFTS = st.integers(0, 2**128 - 1)
TIMES = st.integers(NOW, NOW + TEN_YEARS)
CUTS = st.builds(
    lambda a, b, anchor: Windows(fraction=a, margin=(1 - a) * b, anchor=anchor),
    st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100),
    st.fractions(0, 1, max_denominator=50).filter(lambda part: part < 1),
    st.none() | st.integers(0, 2 * NOW),
)


@given(CUTS, VALIDITIES, SHIFTS, TIMES)
def test_a_window_holds_its_time_and_is_the_same_all_through(cut, validity, shift, at):
    window = cut.window(validity, at=at, shift=shift)
    assert window.start <= at < window.change
    for other in (window.start, window.change - 1, (window.start + window.change) // 2):
        assert cut.window(validity, at=other, shift=shift) == window
    following = cut.window(validity, at=window.change, shift=shift)
    assert following.start == window.change


@given(CUTS, VALIDITIES, SHIFTS, TIMES)
def test_what_is_left_is_always_more_than_the_margin(cut, validity, shift, at):
    window = cut.window(validity, at=at, shift=shift)
    assert window.end - window.start == validity
    assert window.end - at > validity * cut.margin


@given(VALIDITIES, SHIFTS, TIMES)
def test_by_default_more_than_a_quarter_and_two_days_are_left(validity, shift, at):
    window = Windows().window(validity, at=at, shift=shift)
    assert window.end - at > validity / 4
    if validity > 8 * DAY:
        assert window.end - at >= 2 * DAY


@given(st.integers(9, 36500), SHIFTS, TIMES)
def test_two_days_are_left_whatever_the_window_is(days, shift, at):
    cut = Windows(fraction=Fraction(99, 100), margin=Fraction(0))
    assert cut.window(days * DAY, at=at, shift=shift).end - at >= 2 * DAY


@given(st.integers(1, 3650), SHIFTS, st.integers(1, 3650), SHIFTS, TIMES)
def test_a_leaf_and_its_authority_are_both_valid_whenever_one_of_them_changes(
    days, shift, ca_days, ca_shift, at
):
    """What was rendered at a time is whole at that time, and a day later, when Argo CD may render again."""
    leaf = Windows().window(days * DAY, at=at, shift=shift)
    authority = Windows().window(ca_days * DAY, at=at, shift=ca_shift)
    for moment in (at, at + min(DAY, days * DAY // 2, ca_days * DAY // 2)):
        assert leaf.start <= moment < leaf.end
        assert authority.start <= moment < authority.end


@given(VALIDITIES, SHIFTS, SHIFTS, TIMES, st.integers(0, 2 * NOW))
def test_an_anchor_is_a_border_for_all(validity, shift, other, at, anchor):
    cut = Windows(anchor=anchor)
    window = cut.window(validity, at=at, shift=shift)
    assert window == cut.window(validity, at=at, shift=other)
    assert (window.start - anchor) % cut.length(validity) == 0


def test_a_fleet_does_not_change_in_one_minute():
    borders = {Windows().window(365 * DAY, at=NOW, shift=n * 7919**5).start // 60 for n in range(1000)}
    assert len(borders) > 990


def test_ten_years_of_one_certificate():
    """The clock runs in steps of six hours: each window follows the last, and none is ever near its end."""
    seen = []
    for at in range(NOW, NOW + TEN_YEARS, DAY // 4):
        window = Windows().window(365 * DAY, at=at, shift=12345)
        if window not in seen:
            assert not seen or window.start == seen[-1].change
            seen.append(window)
    assert len(seen) in (30, 31)


@pytest.mark.parametrize("days", [100_000, 4_000_000, 10**18])
def test_no_certificate_begins_before_living_memory(days):
    window = Windows().window(days * DAY, at=NOW, shift=2**128 - 1)
    assert NOW - 3650 * DAY < window.start <= NOW < window.change


def test_the_end_of_time_is_the_last_second_that_a_certificate_can_say():
    assert Windows().window(4_000_000 * DAY, at=NOW, shift=0).end == LAST


@pytest.mark.parametrize(
    ("window", "margin"),
    [(Fraction(0), Fraction(0)), (Fraction(1), Fraction(0)), (Fraction(1, 3), Fraction(-1, 4)),
     (Fraction(1, 2), Fraction(51, 100)), (Fraction(1, 3), Fraction(1))],
)  # fmt: skip
def test_cuts_that_make_no_sense_are_refused(window, margin):
    with pytest.raises(ConfigError):
        Windows(fraction=window, margin=margin)


@pytest.mark.parametrize(("text", "value"), [("1/3", Fraction(1, 3)), ("0.25", Fraction(1, 4))])
def test_fractions_are_read(text, value):
    assert fraction(text, where="x") == value


@pytest.mark.parametrize("text", ["", "a", "1/0", "33%"])
def test_what_is_no_fraction_is_refused(text):
    with pytest.raises(ConfigError, match="no fraction"):
        fraction(text, where="x")
