"""Settling: each draw gets the label of the place where it lands, and so its final value.

A draw's identity is, in this order: where its own text lands; where the text of the innermost
enclosing action or named template lands, with its ordinal among equal draws there (a piece); the
landing of a draw that it is an argument of (an input); its site.
"""

from __future__ import annotations

import json

from becalm.derive import labels, values
from becalm.derive.labels import Label
from becalm.manifests import landing, paths
from becalm.manifests.landing import Landing, Leaf
from becalm.manifests.objects import ObjectId, identify, objects
from becalm.manifests.stream import split
from becalm.stabilise.records import Draw, Enclosing, Records

_SHORTEST = 8
_MASK = "*"


class Settler:
    """Gives labels and values to the draws of one survey."""

    def __init__(self, output: str, records: Records, namespace: str) -> None:
        self.records = records
        self.draws = list(records.draws.values())
        self.secret = [
            t for d in self.draws for t in (d.value, *_texts_around(d)) if len(t) >= 4 and "\n" not in t
        ]
        self.leaves = self._leaves(output, namespace)
        self.landings: dict[str, list[Landing]] = {}
        self.final: dict[int, Label] = {}

    def _leaves(self, output: str, namespace: str) -> list[Leaf]:
        found: list[Leaf] = []
        for _, obj in objects(split(output)):
            identity = identify(obj, namespace)
            if identity is not None:
                found += landing.strings(obj, identity)
        return found

    def mask(self, text: str) -> str:
        """A text without the values that are drawn, so that it can be part of an identity."""
        for secret in self.secret:
            for spelling in (secret, secret.lower(), secret.upper()):
                text = text.replace(spelling, _MASK)
        return text

    def lands(self, text: str) -> Landing | None:
        """The place that owns a text, if it is long enough to be recognised."""
        text = text.strip().strip("\"'")
        if len(text) < _SHORTEST:
            return None
        if text not in self.landings:
            self.landings[text] = landing.find(text, self.leaves)
        places = self.landings[text]
        return places[0] if places else None

    def identity(self, place: Landing) -> tuple[str | int, ...]:
        """A place as parts of a label; the API version and drawn parts of names are left out."""
        owner: ObjectId = place.object
        path = paths.render(tuple(self.mask(s) if isinstance(s, str) else s for s in place.path))
        return ("landing", owner.group, owner.kind, owner.namespace, self.mask(owner.name), path, place.inner)

    def place(self, draw: Draw) -> tuple[str | int, ...]:
        """The identity of a draw, without function and arguments."""
        own = self.lands(draw.value)
        if own is not None:
            return (*self.identity(own), "value")
        enclosing = draw.parent
        while enclosing is not None:
            outer = self.lands(enclosing.text)
            if outer is not None:
                return (*self.identity(outer), "piece")
            twin = self.twin(enclosing, draw)
            if twin is not None:
                return twin
            enclosing = enclosing.parent
        for other in self.draws:
            if len(draw.value) >= _SHORTEST and other is not draw and draw.value in other.given:
                return (*self.place(other), "input")
        return ("site", self.mask(draw.name))

    def twin(self, call: Enclosing, draw: Draw) -> tuple[str | int, ...] | None:
        """A call that lands nowhere joins the one equal call that does land, if there is just one."""
        if not call.name:
            return None
        shape = [(d.function, d.arguments) for d in call.draws]
        twins = [
            other
            for other in self.records.calls
            if other is not call
            and (other.name, other.scalars) == (call.name, call.scalars)
            and [(d.function, d.arguments) for d in other.draws] == shape
            and (self.lands(other.text) or any(self.lands(d.value) for d in other.draws))
        ]
        if len(twins) != 1:
            return None
        label = self.final.get(id(twins[0].draws[call.draws.index(draw)]))
        return ("join", *label.parts) if label else None

    def labels(self) -> list[tuple[Draw, Label]]:
        """A label for every draw, all different but for joined draws."""
        counts: dict[tuple[str | int, ...], int] = {}
        joined: list[Draw] = []
        for draw in self.draws:
            if self._joins(draw):
                joined.append(draw)
                continue
            parts = (*self.place(draw), draw.function, draw.arguments)
            number = counts.get(parts, 0)
            counts[parts] = number + 1
            self.final[id(draw)] = Label(parts).numbered(number)
        for draw in joined:
            place = self.place(draw)
            parts = place[1:] if place[0] == "join" else (*place, draw.function, draw.arguments)
            self.final[id(draw)] = Label(parts)
        return [(draw, self.final[id(draw)]) for draw in self.draws]

    def _joins(self, draw: Draw) -> bool:
        if self.lands(draw.value) is not None:
            return False
        enclosing = draw.parent
        while enclosing is not None:
            if self.lands(enclosing.text) is not None:
                return False
            if enclosing.name and self._has_twin(enclosing):
                return True
            enclosing = enclosing.parent
        return False

    def _has_twin(self, call: Enclosing) -> bool:
        shape = [(d.function, d.arguments) for d in call.draws]
        return (
            sum(
                (other.name, other.scalars) == (call.name, call.scalars)
                and [(d.function, d.arguments) for d in other.draws] == shape
                and (self.lands(other.text) is not None or any(self.lands(d.value) for d in other.draws))
                for other in self.records.calls
                if other is not call
            )
            == 1
        )


def _texts_around(draw: Draw) -> list[str]:
    texts: list[str] = []
    enclosing = draw.parent
    while enclosing is not None and not enclosing.name:
        texts.append(enclosing.text.strip().strip("\"'"))
        enclosing = enclosing.parent
    return texts


def value(label: Label, draw: Draw, app_key: bytes) -> str | list[int]:
    """The final value of a draw."""
    return values.value(draw.function, json.loads(draw.arguments), labels.item_key(app_key, label))
