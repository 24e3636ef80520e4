"""Values of sprig's random functions from an item key, with exactly sprig's alphabets and types."""

from __future__ import annotations

import base64
import string
import uuid  # noqa: TID251  # only to write one down, never to draw one
from collections.abc import Callable

from becalm.derive.stream import Stream

#: Character sets of sprig's functions (goutils CryptoRandom): letters and digits are ASCII,
#: randAscii draws from 32 up to and including 126.
ALPHABETS: dict[str, str] = {
    "randAlphaNum": string.ascii_uppercase + string.ascii_lowercase + string.digits,
    "randAlpha": string.ascii_uppercase + string.ascii_lowercase,
    "randNumeric": string.digits,
    "randAscii": "".join(chr(code) for code in range(32, 127)),
}


def characters(key: bytes, alphabet: str, count: int) -> str:
    """`count` characters, each uniform over `alphabet`; none for a count below 1, as sprig gives."""
    stream = Stream(key)
    return "".join(alphabet[stream.below(len(alphabet))] for _ in range(count))


def base64_bytes(key: bytes, count: int) -> str:
    """`count` bytes in standard base64, as randBytes gives them."""
    return base64.b64encode(Stream(key).read(count)).decode("ascii")


def integer(key: bytes, low: int, high: int) -> int:
    """A uniform integer in [low, high); raises ValueError unless low < high."""
    return low + Stream(key).below(high - low)


def uuid4(key: bytes) -> str:
    """A version 4 UUID (RFC 9562): 122 derived bits, version and variant set."""
    return str(uuid.UUID(bytes=Stream(key).read(16), version=4))


def permutation(key: bytes, length: int) -> list[int]:
    """A uniform permutation of `range(length)` (Fisher-Yates, from the end)."""
    stream = Stream(key)
    order = list(range(length))
    for last in range(length - 1, 0, -1):
        other = stream.below(last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def _string(function: str) -> Callable[[bytes, list[int]], str | list[int]]:
    return lambda key, arguments: characters(key, ALPHABETS[function], arguments[0])


_VALUES: dict[str, Callable[[bytes, list[int]], str | list[int]]] = {
    **{function: _string(function) for function in ALPHABETS},
    "randBytes": lambda key, arguments: base64_bytes(key, arguments[0]),
    "randInt": lambda key, arguments: str(integer(key, arguments[0], arguments[1])),
    "uuidv4": lambda key, _: uuid4(key),
    "shuffle": lambda key, arguments: permutation(key, arguments[0]),
}


def value(function: str, arguments: list[int], key: bytes) -> str | list[int]:
    """The value of a draw.

    Args:
        function: a sprig function that can be derived.
        arguments: its integer arguments; for shuffle the number of characters.
        key: the item key, 32 bytes.

    Returns:
        The text of the value; for shuffle the order of the characters.
    """
    return _VALUES[function](key, arguments)
