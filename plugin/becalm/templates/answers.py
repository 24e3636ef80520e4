"""Values as expressions of Go templates, with the types that an object from an API server has.

Whole numbers are int64 and others float64 (k8s.io/apimachinery, `pkg/util/json`), which sprig's `fromJson` would not
give. Each evaluation makes a new value, as each lookup does, since templates may change what they get.
"""

from __future__ import annotations

import re
from math import isfinite

from becalm.manifests.scalars import INT64_MAX, INT64_MIN, Value
from becalm.templates.tokens import quote

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]")


def expression(value: Value) -> str:
    """An operand that evaluates to the value.

    Args:
        value: as JSON has it. Half of a surrogate pair becomes U+FFFD, as in Go.

    Raises:
        ValueError: a number is infinite or undefined.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        pairs = (f" {_text(key)} {expression(inner)}" for key, inner in value.items())
        return f"(dict{''.join(pairs)})"
    if isinstance(value, list):
        return f"(list{''.join(f' {expression(inner)}' for inner in value)})"
    return _atom(value)


def _atom(value: bool | float | None) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return f"(int64 {value})"
    number = float(value)
    if not isfinite(number):
        raise ValueError("a number that is not finite")
    text = repr(number)
    return text if "." in text or "e" in text else f"{text}.0"


def _text(text: str) -> str:
    quoted = quote(_SURROGATE.sub("\ufffd", text))
    return _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)
