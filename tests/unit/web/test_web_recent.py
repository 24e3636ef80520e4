"""What is kept is the latest, bounded in number and in bytes."""

from __future__ import annotations

import json
import threading
import tracemalloc

from web_records import DAY, NOW, line, told

from becalm.web.recent import Recent, next_change
from becalm.web.records import State, read


def kept(*lines: bytes, **limits) -> Recent:
    recent = Recent(**limits)
    for one in lines:
        recent.add(read(one))
    return recent


def test_the_last_render_comes_first_and_the_oldest_goes():
    recent = kept(*(line(f"app-{number}") for number in range(5)), renders=3)
    assert [one.app for one in recent.renders()] == ["app-4", "app-3", "app-2"]


def test_the_app_that_was_not_seen_for_longest_goes():
    recent = kept(line("a"), line("b"), line("a"), line("c"), apps=2)
    assert [app.latest.app for app in recent.apps()] == ["c", "a"]
    assert recent.app("b") is None


def test_a_failure_or_a_bare_hit_leaves_the_details_of_the_render_before():
    nothing = {"stabilised": [], "changes": [], "unknown": [], "diffs": [], "certificates": []}
    recent = kept(line(), line(outcome="cached", **nothing), line(outcome="failed", error="no", **nothing))
    app = recent.app("shop")
    assert (app.latest.outcome, app.latest.error) == ("failed", "no")
    assert app.details.summary.outcome == "rendered"
    assert app.details.diffs
    recent.add(read(line(outcome="cached", warnings=["new"])))
    assert recent.app("shop").details.warnings == ("new",)


def test_differences_go_first_then_all_details_of_the_oldest():
    big = [{"object": "o", "before": "b" * 10_000, "after": "a" * 10_000}]
    lines = [line(f"app-{number}", diffs=big) for number in range(5)]
    size = read(lines[0]).size
    recent = kept(*lines, limit=size * 3)
    assert recent.used <= size * 3
    assert [bool(app.details.diffs) for app in recent.apps()] == [True, True, False, False, False]
    assert all(app.details.changes for app in recent.apps())
    recent = kept(*lines, limit=2_000)
    assert recent.used <= 2_000
    assert [app.details is not None for app in recent.apps()].count(True) < 5
    assert len(recent.apps()) == 5


def test_memory_stays_bounded_whatever_is_told():
    many = [{"object": f"Deployment.apps/space/{number}", "path": "spec.x", "why": "w", "verb": "strip", "rule": "a/b"} for number in range(1_000)]  # fmt: skip
    texts = [{"object": f"o{number}", "before": "ü" * 5_000, "after": "b" * 5_000} for number in range(20)]
    tracemalloc.start()
    recent = Recent(limit=1024 * 1024)
    for number in range(15):
        recent.add(read(json.dumps(told(f"app-{number}", changes=many, diffs=texts)).encode()))
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert recent.used <= 1024 * 1024
    assert used < 2 * 1024 * 1024


def test_what_is_counted():
    outcomes = ("rendered", "cached", "cached", "failed", "timeout", "cancelled", "overloaded")
    totals = kept(*(line(outcome=outcome) for outcome in outcomes)).totals
    assert (totals.renders, totals.failures, totals.hits, totals.misses) == (7, 3, 2, 1)
    assert totals.hit_rate == 2 / 3
    assert Recent().totals.hit_rate is None


def test_certificates_of_apps_that_are_gone_do_not_count():
    recent = kept(line("old", at=NOW - 3 * DAY), line("new"))
    found = list(recent.certificates(NOW))
    assert [app.latest.app for app, _ in found] == ["new"]
    assert next_change(found, NOW) == NOW + 50 * DAY
    assert next_change(found, NOW + 51 * DAY) is None


def test_many_threads_may_add_and_read():
    recent = Recent(apps=5, limit=20_000)

    def work(name: str) -> None:
        for number in range(200):
            recent.add(read(line(f"{name}{number % 7}")))
            recent.tell(State(queue=number))
            recent.apps(), recent.renders(), list(recent.certificates(NOW))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert recent.totals.renders == 600
    assert len(recent.apps()) == 5
    assert 0 <= recent.used <= 20_000
