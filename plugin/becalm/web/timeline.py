"""Certificates on one scale of time: when each is valid, when it changes, and where now is.

The scale is logarithmic from now to both sides, so that a change next week and an authority of ten years can both be
read off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from becalm.web import times
from becalm.web.records import Certificate

_DAY: Final = 86_400
#: What lies before now takes this many per cent.
_NOW: Final = 24.0
#: Up to about this distance, in seconds, the scale is linear.
_NEAR: Final = 7 * _DAY
_LEAST: Final = 90 * _DAY
_MARKS: Final = (
    ("1 week", 7), ("1 month", 30), ("3 months", 91), ("1 year", 365), ("3 years", 1_096), ("10 years", 3_652),
    ("30 years", 10_957), ("100 years", 36_525),
)  # fmt: skip
_APART: Final = 13.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on the scale in per cent, and how far from now it is."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One certificate: where its validity begins, how wide it is and how much has passed, in per cent of the scale.

    `change` is where becalm replaces it, None where it does not. `text` says the same in words.
    """

    begin: float
    width: float
    passed: float
    change: float | None
    is_expired: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A span of time around now; `before` and `after` are how far it reaches, in seconds."""

    now: float
    before: float
    after: float

    def per_cent(self, at: float) -> float:
        """Where a time is, 0 to 100."""
        distance = at - self.now
        if distance < 0:
            return round(_NOW * (1 - _share(-distance, self.before)), 2)
        return round(_NOW + (100 - _NOW) * _share(distance, self.after), 2)

    def ticks(self) -> list[Tick]:
        """Now, and distances after it that have room."""
        ticks = [Tick(at=_NOW, text="now")]
        for text, days in _MARKS:
            at = self.per_cent(self.now + days * _DAY)
            if days * _DAY <= self.after and ticks[-1].at + _APART <= at <= 100 - _APART / 2:
                ticks.append(Tick(at=at, text=text))
        return ticks

    def bar(self, one: Certificate) -> Bar:
        """A certificate on the scale."""
        begin, end = self.per_cent(one.start), self.per_cent(one.until)
        width = round(max(0.6, end - begin), 2)
        expired = one.until < self.now
        changes = f", changes {times.date(one.changes)}" if one.changes else ", not derived"
        return Bar(
            begin=begin,
            width=width,
            passed=round(min(width, max(0.0, _NOW - begin)), 2),
            change=self.per_cent(one.changes) if one.changes else None,
            is_expired=expired,
            text=f"Valid from {times.date(one.start)} to {times.date(one.until)}{changes}{'; it has expired' if expired else ''}",
        )


def _share(distance: float, reach: float) -> float:
    return min(1.0, math.log1p(distance / _NEAR) / math.log1p(reach / _NEAR))


def scale(certificates: Sequence[Certificate], now: float) -> Scale:
    """A scale that holds all of them."""
    return Scale(
        now=now,
        before=max(_LEAST, *(now - one.start for one in certificates)) if certificates else _LEAST,
        after=max(_LEAST, *(one.until - now for one in certificates)) * 1.1 if certificates else _LEAST,
    )


def event(one: Certificate) -> float:
    """When something happens to a certificate next: its change, or its end where it is not derived."""
    return one.changes or one.until
