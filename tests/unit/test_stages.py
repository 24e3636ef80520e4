"""Seconds of stages: added up, none twice, and told whatever happens."""

from __future__ import annotations

import pytest

from becalm.stages import STAGES, Stopwatch


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock():
    return Clock()


def test_seconds_of_a_stage_are_added_up_in_the_order_of_a_render(clock):
    watch = Stopwatch(clock)
    for stage, seconds in (("report", 1.0), ("survey", 2.0), ("replay", 4.0), ("survey", 8.0)):
        with watch.of(stage):
            clock.at += seconds
        clock.at += 100
    assert list(watch.seconds().items()) == [("survey", 10.0), ("replay", 4.0), ("report", 1.0)]


def test_no_second_counts_for_two_stages(clock):
    watch = Stopwatch(clock)
    with watch.of("kustomize"):
        clock.at += 1
        with watch.of("source"):
            clock.at += 2
            with watch.of("helm"):
                clock.at += 4
        clock.at += 8
    assert watch.seconds() == {"source": 2.0, "helm": 4.0, "kustomize": 9.0}


def test_a_stage_that_fails_is_measured(clock):
    watch = Stopwatch(clock)

    def fails():
        with watch.of("helm"):
            clock.at += 3
            raise ValueError("helm")

    with pytest.raises(ValueError, match="helm"):
        fails()
    assert watch.seconds() == {"helm": 3.0}


def test_what_never_began_is_not_told():
    assert Stopwatch().seconds() == {}
    assert len(STAGES) == len(set(STAGES)) == 9
