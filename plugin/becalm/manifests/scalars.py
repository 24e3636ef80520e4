"""What a plain scalar means to Argo CD, and which strings must be quoted.

Argo CD reads every document with sigs.k8s.io/yaml 1.6.0 on go.yaml.in/yaml/v2 2.4.3, whose `resolve.go`
differs from YAML 1.1 and 1.2 alike (`y` is a bool, `0o17` and `0b-1` are ints, `1:30` is a string).
`plain` is that function; `must_quote` is wider: it covers what *any* YAML reader would misread.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Final, Union

Scalar = None | bool | int | float | str
"""What has no parts. Ints have at most 64 bits, signed or not; floats are finite in a loaded document."""

Value = Union[Scalar, "list[Value]", "dict[str, Value]"]
"""What a document can be once it is loaded: JSON's types."""

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
UINT64_MAX: Final = 2**64 - 1

_TRUE = ("y", "yes", "true", "on")
_FALSE = ("n", "no", "false", "off")


def _cases(words: tuple[str, ...]) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


BOOLS: Final[dict[str, bool]] = {**dict.fromkeys(_cases(_TRUE), True), **dict.fromkeys(_cases(_FALSE), False)}
NULLS: Final[frozenset[str]] = frozenset(("", "~", "null", "Null", "NULL"))
_SPECIAL_FLOATS = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
WORDS: Final[dict[str, Scalar]] = {**BOOLS, **dict.fromkeys(NULLS), **_SPECIAL_FLOATS}

# A string whose first character is not one of these is always a string.
HINTS: Final[frozenset[str]] = frozenset(("", *"+-0123456789.~yYnNtTfFoO"))

_INT = re.compile(r"[-+]?(?:0[bB][01]+|0[oO][0-7]+|0[xX][0-9a-fA-F]+|[0-9]+)").fullmatch
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
# Go's own ParseFloat, reached when the scalar starts with a dot; unlike the line above it wants a digit on
# both sides of an underscore.
_DOT_FLOAT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?").fullmatch
# `strconv.ParseInt(plain[2:], 2, 64)` accepts a sign behind the prefix.
_SIGNED_BINARY = re.compile(r"0b[-+][01]+").fullmatch
_BASES = {"b": 2, "o": 8, "x": 16}
# Longest digits of a 64-bit number are 64 binary ones; anything much longer need not be tried as an int.
_LONGEST_INT = 80


def plain(text: str) -> Scalar:
    """The value of an untagged plain scalar: None, bool, int (64 bits, signed or not), float or str.

    Floats stay floats even when integral, since a float key is written differently from an int key.
    """
    if text in WORDS:
        return WORDS[text]
    first = text[0]
    if first == ".":
        return _float(text) if _DOT_FLOAT(text) else text
    if first not in "+-0123456789":
        return text
    digits = text.replace("_", "")
    number = _int(digits)
    if number is not None:
        return number
    if _FLOAT(digits):
        value = _float(digits)
        return text if isinstance(value, str) else value
    return text


def _float(text: str) -> Scalar:
    value = float(text.replace("_", ""))
    # Go's ParseFloat reports a range error, and then the scalar stays a string.
    return text if math.isinf(value) else value


def _int(digits: str) -> int | None:
    if len(digits) > _LONGEST_INT or not _INT(digits):
        short = len(digits) <= _LONGEST_INT
        return int(digits.removeprefix("0b"), base=2) if short and _SIGNED_BINARY(digits) else None
    unsigned = digits.lstrip("+-").lower()
    if unsigned[:1] != "0" or unsigned == "0":
        value = int(unsigned)
    elif unsigned[1] in _BASES:
        value = int(unsigned[2:], _BASES[unsigned[1]])
    elif unsigned.strip("01234567"):
        return None
    else:
        value = int(unsigned, 8)
    if digits[0] == "-":
        value = -value
    # ParseUint takes no sign, so a signed number beyond 63 bits is not an int.
    highest = INT64_MAX if digits[0] in "+-" else UINT64_MAX
    return value if INT64_MIN <= value <= highest else None


def narrow(value: float) -> float | int:
    """An integral float below 2**64 as an int, because JSON, and so Kubernetes, sees no difference."""
    if value.is_integer() and INT64_MIN <= value <= UINT64_MAX:
        return int(value)
    return value


def key_text(key: bool | float) -> str | None:
    """The string that sigs.k8s.io/yaml makes of a non-string key, or None where it refuses the key.

    Floats go through `strconv.FormatFloat(key, 'g', -1, 32)`: single precision, and an exponent from 1e6 on.
    """
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key) if key <= INT64_MAX else None
    return _float32_text(key)


def _float32_text(value: float) -> str:
    try:
        single: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        single = float("inf") if value > 0 else float("-inf")
    if math.isnan(single):
        return ".nan"
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    digits, exponent = _shortest(single)
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    if exponent < -4 or exponent >= 6:
        mark = "-" if exponent < 0 else "+"
        return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{mark}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, rest = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}{'.' if rest else ''}{rest}"


def _shortest(single: float) -> tuple[str, int]:
    """The fewest signed decimal digits that give back this single-precision number, and its exponent."""
    for precision in range(9):
        mantissa, exponent = f"{single:.{precision}e}".split("e")
        if struct.pack("f", float(f"{mantissa}e{exponent}")) == struct.pack("f", single):
            break
    digits = mantissa.replace(".", "")
    stripped = digits.rstrip("0")
    return (stripped if stripped.strip("-") else digits), int(exponent)


_NUMBER_OR_TIME: Callable[[str], re.Match[str] | None] = re.compile(
    r"[-+]?(?:0[bB][-+]?[01]*|0[oO][0-7]*|0[xX][0-9a-fA-F]*"
    r"|[0-9]+(?::[0-5]?[0-9])*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]*)?"
    r"|\.[0-9]+(?:[eE][-+]?[0-9]*)?|\.(?:[iI][nN][fF]))"
    r"|\.[nN][aA][nN]"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9:. \t+\-Z]*)?"
).fullmatch
_QUOTE_HINTS = HINTS | frozenset("<=")


def must_quote(text: str) -> bool:
    """Whether Go's reader, a YAML 1.1 reader or a YAML 1.2 reader takes this string, plain, for another type.

    The words are compared without regard to case and numbers without underscores, which quotes a few strings
    too many and none too few. Syntax (`: `, leading `*` and so on) is the emitter's business.
    """
    if text[:1] not in _QUOTE_HINTS:
        return False
    return (
        text in ("<<", "=")
        or text.lower() in _LOWER_WORDS
        or _NUMBER_OR_TIME(text.replace("_", "")) is not None
    )


_LOWER_WORDS = frozenset(word.lower() for word in WORDS)
