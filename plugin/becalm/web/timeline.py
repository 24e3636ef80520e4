"""Certificates on one scale of time: when each is valid, when it changes, and where now is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from becalm.web import times
from becalm.web.records import Certificate

_DAY: Final = 86_400
#: How long the scale may be; a quarter of it lies before now.
_SPANS: Final = tuple(days * _DAY for days in (40, 120, 365, 730, 1_826, 3_652, 11_000, 40_000))
_TICKS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on the scale in per cent, and its date."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One certificate: where its validity begins and how wide it is, and its change, in per cent of the scale.

    `is_earlier` and `is_later` tell that the bar goes on beyond the scale; `change` is None where there is
    none, or none on the scale. `text` says the same in words.
    """

    begin: float
    width: float
    change: float | None
    is_earlier: bool
    is_later: bool
    is_expired: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A span of time, in seconds since 1970."""

    start: float
    end: float

    def per_cent(self, at: float) -> float:
        """Where a time is, 0 to 100."""
        share = (at - self.start) / (self.end - self.start)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def ticks(self) -> list[Tick]:
        """Dates along the scale."""
        step = (self.end - self.start) / _TICKS
        moments = [self.start + step * (number + 0.5) for number in range(_TICKS)]
        return [Tick(at=self.per_cent(at), text=times.date(at)) for at in moments]

    def bar(self, one: Certificate, now: float) -> Bar:
        """A certificate on the scale."""
        begin, end = self.per_cent(one.start), self.per_cent(one.until)
        is_shown = one.changes and self.start <= one.changes <= self.end
        changes = f", changes {times.date(one.changes)}" if one.changes else ", not derived"
        expired = one.until < now
        return Bar(
            begin=begin,
            width=round(max(0.4, end - begin), 2),
            change=self.per_cent(one.changes) if is_shown else None,
            is_earlier=one.start < self.start,
            is_later=one.until > self.end,
            is_expired=expired,
            text=f"Valid from {times.date(one.start)} to {times.date(one.until)}{changes}{'; it has expired' if expired else ''}",
        )


def scale(certificates: Sequence[Certificate], now: float) -> Scale:
    """A span that shows now and what happens next to most certificates.

    The last tenth of them does not count, so that one authority of ten years does not squeeze all others.
    """
    coming = sorted(event(one) - now for one in certificates)
    wanted = coming[(len(coming) - 1) * 9 // 10] if coming else 0.0
    span = next((span for span in _SPANS if span * 0.72 >= wanted), _SPANS[-1])
    return Scale(start=now - span / 4, end=now + span * 3 / 4)


def event(one: Certificate) -> float:
    """When something happens to a certificate next: its change, or its end where it is not derived."""
    return one.changes or one.until
