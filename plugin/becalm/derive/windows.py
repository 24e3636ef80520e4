"""Validity windows: which period of time a certificate is for, so that it stays the same in between.

Time is cut into windows of equal length, a fraction of the certificate's validity. A certificate
begins with the window in which it is rendered and is the same all through it; the next window gives
the next certificate, long before this one ends. Keys do not depend on windows.

    |---- window 0 ----|---- window 1 ----|---- window 2 ----|
    [ the certificate of window 0 is valid here              ]
                       [ the certificate of window 1 is valid here              ]

Where windows begin is shifted for each certificate by a derived amount, so that a fleet does not
rotate in one minute; an operator may fix an anchor instead, and so choose the hour.
All times are whole seconds since 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from becalm.errors import ConfigError

DAY = 86_400
#: The end of time for certificates (RFC 5280, section 4.1.2.5): 9999-12-31T23:59:59Z.
LAST = 253_402_300_799
#: Validities above the first have at least the second left.
_LONG, _LEAST = 8 * DAY, 2 * DAY
#: The longest window. A certificate of a thousand years still begins in a year that can be written.
_LONGEST = 3650 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The period of one certificate: it is valid from `start` to `end` and rendered until `change`."""

    start: int
    end: int
    change: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How an installation cuts time.

    Args:
        fraction: of the validity, that is the length of a window.
        margin: of the validity, that a rendered certificate has left at any time.
        anchor: when a window begins, for all certificates; None shifts each by its own amount.

    Raises:
        ConfigError: fraction or margin are not between 0 and 1, or leave no room for each other.
    """

    fraction: Fraction = Fraction(1, 3)
    margin: Fraction = Fraction(1, 4)
    anchor: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.fraction < 1:
            raise ConfigError(
                "a certificate's window is a fraction between 0 and 1",
                where=str(self.fraction),
                hint="for example 1/3",
            )
        if not 0 <= self.margin < 1 or self.fraction + self.margin > 1:
            raise ConfigError(
                "a certificate's margin is a fraction from 0 that leaves room for the window",
                where=str(self.margin),
                hint="window and margin are at most 1 together",
            )

    def length(self, validity: int) -> int:
        """The length of a window in seconds, from 1 to ten years, for a validity in seconds."""
        longest = min(validity * self.fraction, Fraction(_LONGEST))
        if validity > _LONG:
            longest = min(longest, Fraction(validity - _LEAST))
        return max(1, int(longest))

    def window(self, validity: int, *, at: int, shift: int) -> Window:
        """The window of a certificate.

        Args:
            validity: seconds, at least 1.
            at: the time of the render.
            shift: the certificate's own derived number, at least 0; without an anchor it says where
                in a window's length the border is.
        """
        length = self.length(validity)
        origin = shift % length if self.anchor is None else self.anchor
        start = at - (at - origin) % length
        return Window(start=start, end=min(start + validity, LAST), change=start + length)


def fraction(text: str, *, where: str) -> Fraction:
    """A fraction as an operator writes it: `1/3` or `0.25`.

    Raises:
        ConfigError: it is something else.
    """
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"{text!r} is no fraction", where=where, hint="for example 1/3 or 0.25") from error
