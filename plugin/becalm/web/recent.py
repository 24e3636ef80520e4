"""What the page shows: the latest renders, and of each application its latest, within bounds of memory."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from becalm.web.records import Certificate, Record, State, Summary

RENDERS: Final = 200
"""Latest renders that are kept, of all applications."""

APPS: Final = 2_000
"""Applications that are kept; the one that was not rendered for longest goes first."""

BYTES: Final = 32 * 1024 * 1024
"""What details of all applications may take in memory; differences go first, those of the oldest before others."""

CURRENT_SECONDS: Final = 48 * 3600
"""How long an application counts after its last render. Argo CD renders each at least once in 24 hours (the
usual life of its manifest cache), so what is older than two of them was probably removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """One application: its latest render, and the latest one that told what its output is like.

    They differ after a failure, or after a hit of the cache, which tells less. `details` is None where none
    was seen, or where there was no room. `stages` are the seconds of the latest one's stages.
    """

    latest: Summary
    stages: Mapping[str, float]
    details: Record | None

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Of the latest output that is known."""
        return () if self.details is None else self.details.certificates


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts since the process started: renders, failures (cancelled ones left out), hits, and misses."""

    renders: int = 0
    failures: int = 0
    hits: int = 0
    misses: int = 0

    @property
    def hit_rate(self) -> float | None:
        """Hits among lookups, 0 to 1; None before the first."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else None


class Recent:
    """A bounded store, for several threads.

    Args:
        renders: how many of the latest renders are kept.
        apps: how many applications are kept.
        limit: bytes that details may take.
    """

    def __init__(self, *, renders: int = RENDERS, apps: int = APPS, limit: int = BYTES) -> None:
        self._lock = threading.Lock()
        self._renders: deque[Summary] = deque(maxlen=renders)
        self._apps: OrderedDict[str, App] = OrderedDict()
        self._most_apps = apps
        self._limit = limit
        self._used = 0
        self._totals = Totals()
        self._state = State()

    def add(self, record: Record) -> None:
        """Keep a render."""
        summary = record.summary
        if record.size > self._limit:
            record = _without_diffs(record)
        with self._lock:
            self._renders.append(summary)
            self._totals = _counted(self._totals, summary)
            old = self._apps.pop(summary.app, None)
            details = record if record.has_details else old.details if old else None
            self._used -= _size(old)
            self._apps[summary.app] = App(latest=summary, stages=record.stages, details=details)
            self._used += _size(self._apps[summary.app])
            while len(self._apps) > self._most_apps:
                self._used -= _size(self._apps.popitem(last=False)[1])
            self._shrink()

    def _shrink(self) -> None:
        """Take differences, then all other details, from applications in the order of their age."""
        for reduce in (_without_diffs, None):
            for name in list(self._apps) if self._used > self._limit else ():
                app = self._apps[name]
                if app.details is None or (reduce and not app.details.diffs):
                    continue
                self._used -= _size(app)
                self._apps[name] = replace(app, details=reduce(app.details) if reduce else None)
                self._used += _size(self._apps[name])
                if self._used <= self._limit:
                    return

    def tell(self, state: State) -> None:
        """Keep how busy the service is."""
        with self._lock:
            self._state = state

    @property
    def state(self) -> State:
        """How busy the service said it is."""
        with self._lock:
            return self._state

    @property
    def totals(self) -> Totals:
        """Counts since the start."""
        with self._lock:
            return self._totals

    @property
    def used(self) -> int:
        """About what details take, in bytes."""
        with self._lock:
            return self._used

    def renders(self) -> list[Summary]:
        """The latest renders, the last one first."""
        with self._lock:
            return list(reversed(self._renders))

    def apps(self) -> list[App]:
        """Every application that is kept, the one that was rendered last first."""
        with self._lock:
            return list(reversed(self._apps.values()))

    def app(self, name: str) -> App | None:
        """One application, if it is kept."""
        with self._lock:
            return self._apps.get(name)

    def certificates(self, now: float) -> Iterator[tuple[App, Certificate]]:
        """Every certificate of the applications that were rendered lately."""
        for app in self.apps():
            if app.latest.at >= now - CURRENT_SECONDS:
                for one in app.certificates:
                    yield app, one


def next_change(certificates: list[tuple[App, Certificate]], now: float) -> float | None:
    """When the next certificate is replaced, in seconds since 1970; None where none is."""
    return min((one.changes for _, one in certificates if one.changes > now), default=None)


def _size(app: App | None) -> int:
    return app.details.size if app is not None and app.details is not None else 0


def _without_diffs(record: Record) -> Record:
    """The same with room for others."""
    return replace(record, diffs=(), truncated=True, size=record.size - record.diffs_size, diffs_size=0)


def _counted(totals: Totals, summary: Summary) -> Totals:
    """The totals with one more; a look-up that failed later is told from no look-up by nothing, so it is left out."""
    return replace(
        totals,
        renders=totals.renders + 1,
        failures=totals.failures + summary.is_failure,
        hits=totals.hits + (summary.outcome == "cached"),
        misses=totals.misses + (summary.outcome == "rendered"),
    )
