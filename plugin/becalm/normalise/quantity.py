"""Quantities as Kubernetes stores them: `1000m` is `1`, `1024Mi` is `1Gi`.

The rules are those of k8s.io/apimachinery 0.36, pkg/api/resource/quantity.go: what a quantity becomes when the
API server reads it and writes it again. Its fast path keeps a text that looks canonical, `1E3` and `010`
included; so does this. Vectors from that package are in tests/vectors/normalise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_TEXT = re.compile(r"([+-]?)([0-9]*)(\.[0-9]*)?([eEinumkKMGTP]*[+-]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: "", **{exponent: suffix for suffix, exponent in _BINARY.items()}}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_NANO = -9
_MOST_DIGITS = 18
_LARGEST = 2**63 - 1
_LARGEST_EXPONENT = 2**31 - 1
_LONGEST = 1024
# unicode.IsSpace of Go in ASCII and Latin 1.
_SPACE = "\t\n\v\f\r \x85\xa0"

Form = Literal["decimal", "binary", "exponent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """A quantity's text: digits before and after the point, and what its suffix means."""

    negative: bool
    whole: str
    fraction: str
    has_digits: bool
    exponent: int
    form: Form


def canonical(text: str) -> str:
    """The text that the API server stores for a quantity.

    Raises:
        ValueError: it is no quantity.
    """
    text = text.strip(_SPACE)
    if not text or len(text) > _LONGEST:
        raise ValueError("no quantity")
    if text == "0":
        return text
    parts = _parse(text)
    if _is_fast(parts):
        if _looks_canonical(parts):
            return text
    elif not parts.has_digits:
        raise ValueError("no quantity")
    return _write(*_amount(parts), parts.form)


def _parse(text: str) -> _Parts:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError("no quantity")
    sign, whole, fraction, suffix = match.groups()
    # Without anything after the leading zeros the rest is not looked at.
    exponent, form = _suffix(suffix)
    return _Parts(
        negative=sign == "-",
        whole=whole.lstrip("0") or "0",
        fraction=(fraction or "")[1:],
        has_digits=bool(whole or (fraction or "")[1:]),
        exponent=exponent,
        form=form,
    )


def _suffix(suffix: str) -> tuple[int, Form]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return _BINARY[suffix], "binary"
    match = _EXPONENT.fullmatch(suffix)
    if match is None or abs(int(match.group(1))) > _LARGEST_EXPONENT:
        raise ValueError("no quantity")
    return int(match.group(1)), "exponent"


def _is_fast(parts: _Parts) -> bool:
    """Whether the amount fits the integers of ParseQuantity's fast path."""
    digits = len(parts.whole) + len(parts.fraction)
    if parts.form == "binary":
        room = 14 - len(parts.whole) - parts.exponent * 3 // 10
        fits = int(parts.whole) << parts.exponent <= _LARGEST
        return not parts.fraction and room >= 0 and fits
    return digits <= _MOST_DIGITS and parts.exponent - len(parts.fraction) >= _NANO


def _looks_canonical(parts: _Parts) -> bool:
    digits = parts.whole + parts.fraction
    if parts.form == "binary":
        return int(digits) & 7 != 0
    scale = parts.exponent - len(parts.fraction)
    return scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _amount(parts: _Parts) -> tuple[int, int]:
    """The amount as a number and a power of ten, rounded up to a billionth and capped as the API server does."""
    number, scale = int(parts.whole + parts.fraction), -len(parts.fraction)
    if parts.form == "binary":
        number <<= parts.exponent
    else:
        scale += parts.exponent
    if scale < _NANO:
        lost = _NANO - scale
        number = -(-number // 10**lost) if lost <= _LONGEST else int(number > 0)
        scale = _NANO
    if parts.form == "binary" and number > _LARGEST * 10**-scale:
        number, scale = _LARGEST, 0
    return -number if parts.negative else number, scale


def _write(number: int, scale: int, form: Form) -> str:
    if number == 0:
        return "0"
    if form == "binary":
        one = 10**-scale  # a binary amount has no positive scale
        if abs(number) < 1024 * one or number % one:
            form = "decimal"
        else:
            return _scaled(number // one, 0, 1024, 10, _BINARY_SUFFIX)
    while number % 10 == 0:
        number //= 10
        scale += 1
    while scale % 3:
        number *= 10
        scale -= 1
    if form == "exponent":
        return f"{number}e{scale}" if scale else str(number)
    # A power that has no suffix is written without one, which is Kubernetes' own mistake.
    return f"{number}{_DECIMAL_SUFFIX.get(scale, '')}"


def _scaled(number: int, scale: int, base: int, step: int, suffixes: dict[int, str]) -> str:
    while number % base == 0:
        number //= base
        scale += step
    return f"{number}{suffixes.get(scale, '')}"
