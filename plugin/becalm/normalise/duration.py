"""Durations as Go writes them: `8760h` is `8760h0m0s`, `90m` is `1h30m0s`.

The rules are those of Go's time.ParseDuration and Duration.String, through which every metav1.Duration passes.
Fields that are plain strings, such as Prometheus' durations, do not.
"""

from __future__ import annotations

import re

_UNITS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9
}  # fmt: skip
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_LARGEST = 2**63


def canonical(text: str) -> str:
    """The text that Go writes for a duration.

    Raises:
        ValueError: it is no duration.
    """
    return _write(_parse(text))


def _parse(text: str) -> int:
    """Nanoseconds."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError("no duration")
    total, at = 0, 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or not (match.group(1) or match.group(2)) or match.group(3) not in _UNITS:
            raise ValueError("no duration")
        unit = _UNITS[match.group(3)]
        whole = int(match.group(1) or "0") * unit
        if whole > _LARGEST:
            raise ValueError("no duration")
        total += whole + _fraction(match.group(2) or "", unit)
        if total > _LARGEST:
            raise ValueError("no duration")
        at = match.end()
    if total == _LARGEST and not negative:
        raise ValueError("no duration")
    return -total if negative else total


def _fraction(digits: str, unit: int) -> int:
    """A part of a unit, cut to nanoseconds, in the floating point that Go uses (time.leadingFraction)."""
    number, scale = 0, 1.0
    for digit in digits:
        if number > (_LARGEST - 1) // 10 or number * 10 + int(digit) > _LARGEST:
            break
        number = number * 10 + int(digit)
        scale *= 10
    return int(float(number) * (float(unit) / scale)) if number else 0


def _write(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < 10**9:
        for unit, size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)):
            if rest >= size:
                return f"{sign}{_decimal(rest, size)}{unit}"
    seconds, below = divmod(rest, 10**9)
    minutes, seconds = divmod(seconds, 60)
    text = f"{_decimal(seconds * 10**9 + below, 10**9)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _decimal(number: int, size: int) -> str:
    whole, rest = divmod(number, size)
    digits = str(rest).rjust(len(str(size)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
