"""Another seed: pins that hold under it, and what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from becalm.adopt.rounds import Pinned, drawn, pieces, settle
from becalm.derive import pins as pinning
from becalm.derive.deriver import GIVEN
from becalm.derive.labels import Label
from becalm.derive.pins import Pin, text_label
from becalm.derive.seed import Seed
from becalm.request import Request
from becalm.stabilise.stabiliser import Settled
from becalm.study import Study, study


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A value that is another one under the new seed."""

    place: str
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The pins under the new seed, how many of them were made to keep values, and what changes all the same."""

    pins: Mapping[Label, Pin] = field(repr=False)
    kept: int
    changes: list[Changed]


def rotate(request: Request, new: Seed, old: Pinned, *, keep: bool) -> Rotation:
    """Prepare an application for another seed.

    Args:
        request: what to render, with the seed that it has now.
        new: the seed that it will have.
        old: its pins.
        keep: whether everything that would change is pinned.

    Raises:
        PluginError: as `pipeline.render`.
    """
    before = None if request.kind in ("kustomize", "directory") else study(replace(request, pins=old))
    if before is None:
        return Rotation(pins=old, kept=0, changes=[])
    start = {**(_all(before) if keep else {}), **old}
    under = replace(request, seed=new)
    pins, after = settle(under, start, lambda found: _fitting(found, start, renew=keep), is_loose=keep)
    shown = _shown(after)
    changes = [
        Changed(place=label.place, function=settled.draw.function)
        for label, (settled, value) in _shown(before).items()
        if label not in shown or shown[label][1] != value
    ]
    return Rotation(pins=pins, kept=len(set(pins) - set(old)), changes=changes)


def _all(found: Study) -> dict[Label, Pin]:
    """A pin for everything that is derived."""
    draws = drawn(found)
    calls = {call.key: call.text for call in found.settled.calls}
    pins = {
        text_label(label): Pin(texts=(calls[path],)) for path, label in pieces(draws).items() if path in calls
    }
    for label, settled in draws.items():
        if not settled.piece and settled.draw.function != "shuffle":
            value = settled.value
            texts = tuple(map(str, value.values())) if isinstance(value, dict) else (str(value),)
            pins[label] = Pin(texts=texts)
    return pins


def _fitting(found: Study, start: Pinned, *, renew: bool) -> dict[Label, Pin]:
    """The pins with the digests of what their values are made from under the new seed.

    With `renew` that holds for every value. Without it a hash of a password that changes does not fit any more.
    """
    draws = drawn(found)
    made = {call.key: call.made for call in found.settled.calls}
    fresh = dict(start)
    for path, label in pieces(draws).items():
        pin = start.get(text_label(label))
        if pin is not None and path in made:
            fresh[text_label(label)] = replace(pin, given=pinning.made_from(made[path]))
    for label, settled in draws.items() if renew else ():
        if label in start and settled.draw.function in GIVEN:
            given = found.pins.given(settled.draw.function, settled.given)
            fresh[label] = replace(start[label], given=given)
    return fresh


def _shown(found: Study) -> dict[Label, tuple[Settled, object]]:
    """Every value that can be seen, by its label; of a text that is made of several, that text."""
    draws = drawn(found)
    calls = {call.key: call.text for call in found.settled.calls}
    shown: dict[Label, tuple[Settled, object]] = {
        text_label(label): (draws[label], calls.get(path)) for path, label in pieces(draws).items()
    }
    for label, settled in draws.items():
        if not settled.piece and settled.places:
            shown[label] = (settled, _seen(settled.value, found))
    return shown


def _seen(value: object, found: Study) -> object:
    """A value without the key that nobody sees, which is derived."""
    if isinstance(value, dict) and found.pins.is_without_key(str(value["Cert"])):
        return value["Cert"]
    return value
