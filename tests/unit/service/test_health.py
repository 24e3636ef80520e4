"""Whether the service can render: what fails is told at once, and load is no fault."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from becalm.service import health
from becalm.service.health import Health


@pytest.fixture
def answers(monkeypatch):
    """What the service answers from now on, in place of one."""
    found = ["exit 0"]
    monkeypatch.setattr(health.client, "ask", lambda *_: found[-1])
    return found


@pytest.fixture
def checked(answers):
    found = Health(Path("/nowhere"), {})
    found._thread = threading.current_thread()  # none of its own, so that each look is the test's
    return found


BUSY = [None, "busy 200 renders wait already", "late the render waited 55 s"]


@pytest.mark.parametrize("answer", BUSY)
def test_a_service_that_is_busy_stays_ready_until_it_has_been_so_for_long(
    answers, checked, monkeypatch, answer
):
    checked.look()
    answers.append(answer)
    checked.look()
    assert (checked.unready(), checked.unhealthy()) == (None, None)
    monkeypatch.setattr(health, "_PATIENCE", 0.0)
    checked.look()
    assert checked.unready()
    assert checked.unhealthy()
    answers.append("exit 0")
    checked.look()
    assert (checked.unready(), checked.unhealthy()) == (None, None)


def test_a_sample_that_fails_makes_it_unready_at_once_and_load_does_not_hide_that(answers, checked):
    checked.look()
    answers.append("exit 4")
    checked.look()
    assert "exit 4" in checked.unready()
    assert checked.unhealthy() is None
    answers.append("busy 200 renders wait already")
    checked.look()
    assert "exit 4" in checked.unready()


@pytest.mark.parametrize("answer", BUSY)
def test_it_is_not_ready_before_the_first_sample_is_rendered(answers, checked, answer):
    assert checked.unready() == "it has rendered nothing yet"
    answers.append(answer)
    checked.look()
    assert checked.unready()
