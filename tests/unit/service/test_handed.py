"""What a reader leaves for the render that takes its place."""

from __future__ import annotations

import os
from unittest.mock import patch

import pytest

from becalm.answers import Key, Missed
from becalm.service import forked, handed
from becalm.stages import Stopwatch

KEY = Key(digest=bytes(range(32)), operators=bytes(32), may_change=True)


@pytest.fixture
def record():
    number = os.memfd_create("record")
    yield number
    os.close(number)


@pytest.mark.parametrize(
    "missed", [Missed(key=KEY), Missed(key=None), Missed(key=KEY, complaints=("an entry was damaged: é",))]
)
def test_it_is_taken_as_it_was_left_and_is_gone(record, missed):
    handed.leave(record, missed, Stopwatch(begun={"cache": 0.25}))
    found, stopwatch = handed.taken(record)
    assert found == missed
    assert stopwatch.seconds() == {"cache": 0.25}
    assert forked.content(record) == b""
    forked.put(record, b"{}")
    assert forked.content(record) == b"{}"


def test_where_nobody_has_looked_there_is_nothing(record):
    assert handed.taken(record)[0] is None


def test_after_a_while_it_is_old(record):
    handed.leave(record, Missed(key=KEY), Stopwatch())
    now = handed.time.monotonic()
    with patch.object(handed.time, "monotonic", lambda: now + 1.5):
        found, _ = handed.taken(record)
    assert found == Missed(key=KEY, is_old=True)
