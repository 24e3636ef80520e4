"""What a person should know of the pins that a render used, or did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from becalm.derive.labels import Label
from becalm.derive.pins import NAME, Pins
from becalm.errors import Warned, counted

_DAY = 86_400
_SOON = 60 * _DAY
"""A render may be kept for 30 days, and what it warns of with it."""
_SHOWN = 5


def notices(pins: Pins, *, at: int) -> Iterator[Warned]:
    """Notices, one for each kind of trouble.

    Args:
        pins: after the render.
        at: the time of the render, seconds since 1970.
    """
    if pins.left:
        yield Warned(
            f"{counted(pins.left, 'pin')} of another epoch of the application {_does(pins.left)} not hold; the values are derived",
            where=NAME,
            hint="`becalm adopt` writes the file for this one",
        )
    if pins.unused:
        yield Warned(
            f"{counted(len(pins.unused), 'pin')} {_does(len(pins.unused))} not match what is drawn: {_places(pins.unused)}",
            where=NAME,
            hint="the chart or an epoch has changed; `becalm adopt --prune` removes them",
        )
    if pins.outdated:
        yield Warned(
            f"what was pinned would now be made from something else, so it is derived: {_places(pins.outdated)}",
            where=NAME,
            hint="`becalm adopt --prune` removes the pins",
        )
    ending = [label for label, until in _ends(pins) if until - at < _SOON]
    if ending:
        yield Warned(
            f"certificates that were taken over end soon, and are not replaced by themselves: {_places(ending)}",
            where=NAME,
            hint="raise their epochs, or remove their pins, to get new ones",
        )


def _does(number: int) -> str:
    return "does" if number == 1 else "do"


def _places(labels: Iterable[Label]) -> str:
    places = list(dict.fromkeys(label.place for label in labels))
    more = len(places) - _SHOWN
    return ", ".join(places[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _ends(pins: Pins) -> Iterator[tuple[Label, float]]:
    """When the certificates among the pins that were used end, in seconds since 1970."""
    certificates = [
        (label, pin.texts[0])
        for label, pin in pins.items.items()
        if len(pin.texts) == 2 and label not in (*pins.unused, *pins.outdated)  # with its key
    ]
    if certificates:
        from cryptography import x509  # noqa: PLC0415  # takes long to load

        for label, text in certificates:
            yield label, x509.load_pem_x509_certificate(text.encode()).not_valid_after_utc.timestamp()
