"""Times for people: in UTC, and beside it how far from now."""

from __future__ import annotations

from becalm.derive import instant

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 31_557_600


def iso(at: float) -> str:
    """Seconds since 1970 as `2026-01-31T12:00:00Z`."""
    return instant.written(int(at))


def date(at: float) -> str:
    """Seconds since 1970 as `2026-01-31`."""
    return iso(at)[:10]


def relative(at: float, now: float) -> str:
    """How far a time is from now: `3 min ago`, `in 12 days`."""
    distance = at - now
    if abs(distance) < 5:
        return "just now"
    text = _distance(abs(distance))
    return f"in {text}" if distance > 0 else f"{text} ago"


def _distance(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE:.0f} min"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR:.0f} h"
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY:,.0f} days"
    return f"{seconds // _YEAR:.0f} years"


def duration(seconds: float) -> str:
    """What something took: `42 ms`, `1.25 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.2f} s"
    return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"


def size(count: int) -> str:
    """Bytes for people: `12 B`, `3.4 kB`, `5.6 MB`."""
    for unit, factor in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"
