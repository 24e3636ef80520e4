"""Differences are right line by line, and cost little."""

from __future__ import annotations

import difflib
import random
import time

from becalm.web import times
from becalm.web.differences import compare
from becalm.web.records import Certificate
from becalm.web.timeline import scale


def patched(before: str, rows) -> list[str]:
    """What the rows make of a text, with the lines that they leave out."""
    old, out, at = before.splitlines(), [], 0
    for row in rows:
        if row.sign in " -":
            out += old[at : row.old - 1]
            at = row.old
        if row.sign in " +":
            out.append(row.text)
    return out + old[at:]


def test_rows_turn_one_text_into_the_other():
    chooser = random.Random(7)
    for _ in range(200):
        before = [chooser.choice("abcd") * 3 for _ in range(chooser.randrange(40))]
        after = [line for line in before if chooser.random() > 0.1]
        for _ in range(chooser.randrange(3)):
            after.insert(chooser.randrange(len(after) + 1), "new")
        done = compare("\n".join(before), "\n".join(after))
        if before == after:
            assert done.rows == ()
            continue
        assert patched("\n".join(before), done.rows) == after
        for row in done.rows:
            assert row.sign not in " -" or before[row.old - 1] == row.text
            assert row.sign not in " +" or after[row.new - 1] == row.text
        assert (done.added, done.removed) == (
            sum(r.sign == "+" for r in done.rows),
            sum(r.sign == "-" for r in done.rows),
        )


def test_rows_are_those_of_difflib_for_a_small_change():
    before = "".join(f"line {number}\n" for number in range(100))
    after = before.replace("line 50\n", "line fifty\n")
    rows = [f"{row.sign}{row.text}" for row in compare(before, after).rows if row.sign != "@"]
    assert rows == list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=3, lineterm=""))[3:]
    assert [row.text for row in compare(before, after).rows if row.sign == "@"] == [
        "47 equal lines",
        "46 equal lines",
    ]


def test_a_small_change_of_a_long_text_is_quick_and_a_long_change_is_not_compared():
    before = "".join(f"line {number}\n" for number in range(50_000))
    start = time.monotonic()
    assert compare(before, before.replace("line 25000\n", "")).removed == 1
    assert compare(before, before.upper()).is_too_long
    assert time.monotonic() - start < 5


def test_times_are_said_as_people_say_them():
    now = 1_790_000_000.0
    said = {
        0: "just now",
        -42: "42 s ago",
        -90: "1 min ago",
        -7200: "2 h ago",
        86_400 * 12: "in 12 days",
        86_400 * 3652: "in 9 years",
    }
    assert {at: times.relative(now + at, now) for at in said} == said
    assert [times.duration(one) for one in (0.0421, 1.25, 125.0)] == ["42 ms", "1.25 s", "2 min 5 s"]
    assert [times.size(one) for one in (12, 3_400, 5_600_000)] == ["12 B", "3.4 kB", "5.6 MB"]
    assert times.iso(now) == "2026-09-21T14:13:20Z"


def test_the_scale_keeps_the_order_of_times_and_holds_all():
    now, day = 1_790_000_000.0, 86_400
    one = Certificate(start=now - 800 * day, until=now + 3_650 * day, changes=now + 20 * day)
    chosen = scale([one, Certificate(start=now - day, until=now + 10 * day)], now)
    moments = [now + days * day for days in (-800, -30, -1, 0, 1, 10, 20, 300, 3_650)]
    places = [chosen.per_cent(at) for at in moments]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    assert places[0] == 0
    assert places[-1] < 100
    bar = chosen.bar(one)
    assert bar.begin + bar.passed == chosen.per_cent(now)
    assert bar.change == chosen.per_cent(one.changes)
    ticks = [tick.at for tick in chosen.ticks()]
    assert ticks == sorted(ticks)
    assert chosen.ticks()[0].text == "now"
