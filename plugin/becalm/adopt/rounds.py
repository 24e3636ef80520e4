"""Rendering with pins until they fit each other: what a value is made from is known only when that is pinned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from becalm.derive.labels import Label
from becalm.derive.pins import Pin
from becalm.errors import DeterminismError
from becalm.request import Request
from becalm.stabilise.stabiliser import Settled
from becalm.study import Study, study

Pinned = Mapping[Label, Pin]
_MAX_ROUNDS = 6


def settle(
    request: Request, start: Pinned, wanted: Callable[[Study], Pinned], *, is_loose: bool
) -> tuple[dict[Label, Pin], Study]:
    """The pins that are still wanted after a render with them, and that render.

    Args:
        request: what to render.
        start: pins to begin with.
        wanted: the pins that fit what a render with other pins shows.
        is_loose: whether each pin is meant to hold, so that what its value is made from is only found out.

    Raises:
        DeterminismError: they do not settle.
    """
    pins = dict(start)
    for _ in range(_MAX_ROUNDS):
        last = study(replace(request, pins=pins), is_loose=is_loose)
        assert last is not None
        fresh = dict(wanted(last))
        if fresh == pins:
            return pins, last
        pins = fresh
    raise DeterminismError(
        f"the pins do not settle after {_MAX_ROUNDS} renders",
        where=request.path_name,
        hint="what is drawn decides what else is drawn; please report this chart",
    )


def drawn(found: Study) -> dict[Label, Settled]:
    """The draws by their labels; of those that join others, one."""
    by_label: dict[Label, Settled] = {}
    for settled in found.done.draws.values():
        by_label.setdefault(settled.label, settled)
    return by_label


def pieces(draws: Mapping[Label, Settled]) -> dict[str, Label]:
    """The texts that are made of what is drawn and land, by their paths, each with the label of its first draw."""
    first: dict[str, Label] = {}
    for label, settled in draws.items():
        if settled.piece:
            first.setdefault(settled.piece, label)
    return first
