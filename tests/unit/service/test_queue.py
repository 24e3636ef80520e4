"""The queue is fair: no application waits for all of another's renders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becalm.service.queue import FairQueue


def test_applications_take_turns():
    queue: FairQueue[str] = FairQueue()
    for item in ("a1", "a2", "a3", "b1", "c1", "b2"):
        queue.put(item[0], item)
    assert [queue.get() for _ in range(len(queue))] == ["a1", "b1", "c1", "a2", "b2", "a3"]
    with pytest.raises(IndexError):
        queue.get()


def test_what_is_removed_is_not_given():
    queue: FairQueue[str] = FairQueue()
    for item in ("a1", "b1", "a2"):
        queue.put(item[0], item)
    queue.remove("a", "a1")
    queue.remove("b", "b1")
    queue.remove("z", "z1")
    assert (len(queue), queue.get(), len(queue)) == (1, "a2", 0)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=40))
def test_everything_comes_once_in_order_and_nobody_waits_long(steps):
    """Before an application's next item, each other application comes at most once."""
    queue: FairQueue[tuple[str, int]] = FairQueue()
    put: list[tuple[str, int]] = []
    got: list[tuple[str, int]] = []
    for number, (app, take) in enumerate(steps):
        queue.put(app, (app, number))
        put.append((app, number))
        got += [queue.get() for _ in range(min(take, len(queue)))]
    rest = [queue.get() for _ in range(len(queue))]
    assert sorted(got + rest) == sorted(put)
    for app in "abcd":
        numbers = [number for one, number in got + rest if one == app]
        assert numbers == sorted(numbers)
    for place, (app, _) in enumerate(rest):
        following = rest[place + 1 :]
        again = next((n for n, (one, _) in enumerate(following) if one == app), len(following))
        between = [one for one, _ in following[:again]]
        assert len(between) == len(set(between)) or again == len(following)
