"""What the pages show, made of what is kept; templates only write it down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from becalm.web import times
from becalm.web.differences import Difference, compare
from becalm.web.recent import App, Recent, next_change
from becalm.web.records import OUTCOMES, Certificate, Record, Summary
from becalm.web.timeline import Bar, Scale, Tick, event, scale

MOST_ROWS: Final = 200
MOST_DIFFS: Final = 100
_OPEN_DIFFS: Final = 5
_SOON: Final = 14 * 86_400


class _OfObject(Protocol):
    @property
    def object(self) -> str: ...


_Item = TypeVar("_Item", bound=_OfObject)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One number with its name and what it means."""

    name: str
    value: str
    note: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a list is narrowed to: an outcome ("" for all), and a part of a name."""

    outcome: str
    text: str

    @property
    def is_set(self) -> bool:
        """Whether it narrows at all."""
        return bool(self.outcome or self.text)

    def holds(self, one: Summary) -> bool:
        """Whether a render is shown."""
        if self.outcome and one.outcome != self.outcome:
            return False
        wanted = self.text.casefold()
        return any(wanted in name.casefold() for name in (one.app, one.project, one.namespace, one.path))


def narrowed(outcome: str, text: str) -> Filter:
    """The filter of a query, whose parts may be anything."""
    return Filter(outcome=outcome if outcome in OUTCOMES else "", text=text.strip()[:100])


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The first page. `waiting` and `rendering` are renders."""

    tiles: tuple[Tile, ...]
    rows: tuple[Summary, ...]
    wanted: Filter
    total: int
    waiting: int
    rendering: int


def overview(recent: Recent, wanted: Filter, now: float) -> Overview:
    """The latest renders; with a filter also the latest one of applications that were not rendered lately."""
    rows = recent.renders()
    if wanted.is_set:
        seen = {row.app for row in rows}
        rows += [app.latest for app in recent.apps() if app.latest.app not in seen]
    shown = [row for row in rows if wanted.holds(row)][:MOST_ROWS]
    state = recent.state
    return Overview(
        tiles=_tiles(recent, now),
        rows=tuple(shown),
        wanted=wanted,
        total=len(rows),
        waiting=state.queue,
        rendering=state.rendering,
    )


def _tiles(recent: Recent, now: float) -> tuple[Tile, ...]:
    totals, apps = recent.totals, recent.apps()
    failing = sum(app.latest.is_failure for app in apps)
    change = next_change(list(recent.certificates(now)), now)
    rate = totals.hit_rate
    return (
        Tile(
            name="Apps",
            value=f"{len(apps):,}",
            note=f"{failing:,} of them failing",
            is_bad=failing > 0,
        ),
        Tile(name="Renders", value=f"{totals.renders:,}", note="since the start"),
        Tile(
            name="Cache hits",
            value="not yet" if rate is None else f"{rate:.0%}",
            note=f"{totals.hits:,} of {totals.hits + totals.misses:,}",
        ),
        Tile(
            name="Failures", value=f"{totals.failures:,}", note="since the start", is_bad=totals.failures > 0
        ),
        Tile(
            name="Next certificate change",
            value="none" if change is None else times.relative(change, now),
            note="no derived certificate" if change is None else times.iso(change),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDiff:
    """The difference of one object; the first few are open."""

    object: str
    difference: Difference
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One certificate on the timeline. `is_soon` tells that it changes or ends within two weeks."""

    app: str
    certificate: Certificate
    bar: Bar
    is_soon: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Certificates, the nearest event first, with their scale; `now` is its place in per cent."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    now: float


def timeline(certificates: Sequence[tuple[str, Certificate]], now: float) -> Timeline:
    """Certificates with the names of their applications, on one scale."""
    chosen: Scale = scale([one for _, one in certificates], now)
    ordered = sorted(certificates, key=lambda pair: (event(pair[1]), pair[0], pair[1].object, pair[1].path))
    return Timeline(
        rows=tuple(
            Row(app=app, certificate=one, bar=chosen.bar(one), is_soon=event(one) < now + _SOON)
            for app, one in ordered
        ),
        ticks=tuple(chosen.ticks()),
        now=chosen.per_cent(now),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of an application's page that has something to show: its anchor, its name and how many it shows."""

    anchor: str
    name: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One application. `is_older` tells that the details are of an earlier render than the latest."""

    latest: Summary
    stages: tuple[tuple[str, float], ...]
    details: Record | None
    is_older: bool
    stabilised: tuple[tuple[str, tuple[object, ...]], ...]
    changes: tuple[tuple[str, tuple[object, ...]], ...]
    unknown: tuple[tuple[str, tuple[object, ...]], ...]
    timeline: Timeline
    diffs: tuple[ShownDiff, ...]
    more_diffs: int
    sections: tuple[Section, ...]


def detail(app: App, now: float) -> Detail:
    """All that is known of an application."""
    found = app.details or Record(summary=app.latest)
    return Detail(
        latest=app.latest,
        stages=tuple(app.stages.items()),
        details=app.details,
        is_older=app.details is not None and app.details.summary != app.latest,
        stabilised=_by_object(found.stabilised),
        changes=_by_object(found.changes),
        unknown=_by_object(found.unknown),
        timeline=timeline([("", one) for one in found.certificates], now),
        diffs=tuple(
            ShownDiff(
                object=one.object, difference=compare(one.before, one.after), is_open=number < _OPEN_DIFFS
            )
            for number, one in enumerate(found.diffs[:MOST_DIFFS])
        ),
        more_diffs=max(0, len(found.diffs) - MOST_DIFFS),
        sections=tuple(
            Section(anchor=anchor, name=name, number=len(items))
            for anchor, name, items in (
                ("warnings", "Warnings", found.warnings),
                ("stabilised", "Stabilised", found.stabilised),
                ("normalised", "Normalised", found.changes),
                ("differences", "Before and after", found.diffs),
                ("unknown", "Unknown fields", found.unknown),
                ("certificates", "Certificates", found.certificates),
            )
            if items
        ),
    )


def _by_object(items: Iterable[_Item]) -> tuple[tuple[str, tuple[object, ...]], ...]:
    """Items by their object, in the order in which objects come first."""
    groups: dict[str, list[object]] = {}
    for one in items:
        groups.setdefault(one.object, []).append(one)
    return tuple((name, tuple(group)) for name, group in groups.items())
