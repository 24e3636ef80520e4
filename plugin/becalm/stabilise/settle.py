"""Settling: each draw gets the label of the place where it lands, and so its final value.

A draw's identity is, in this order: where its own text lands; where the text of the innermost
enclosing action or named template lands (a piece); the draw of an equal evaluation that does land
(a join); the landing of a draw that it is an argument of (an input); its site.

A certificate without its key is of use only beside the one that was made with the key. So among equal
evaluations those whose keys land nowhere join the one whose key does: the `caBundle` of a webhook is
the authority of the Secret, though the chart asked for both apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from becalm.derive.labels import Label
from becalm.manifests import landing, paths
from becalm.manifests.landing import Landing, Leaf, Part
from becalm.manifests.objects import identify, objects
from becalm.manifests.stream import Document, split
from becalm.stabilise.epochs import Epochs
from becalm.stabilise.records import SHORTEST, Draw, Enclosing, Records, around

_MASKED = 4
_MASK = "*"
_PEM_LINE = re.compile(r"-----BEGIN [A-Z ]+-----(?:\n|\\n)([A-Za-z0-9+/]{64})")
_CRD_SOURCE = re.compile(r"[^/]+/(?:charts/[^/]+/)*crds/")

Parts = tuple[str | int, ...]
#: The label of each draw that is settled, by key and arguments.
Settled = Mapping[tuple[str, str], Label]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A draw with its label, and the places where it can be seen, the one that owns it first.

    `piece` is what returned the text that lands, where the draw's own does not.
    """

    draw: Draw
    label: Label
    places: list[Landing]
    piece: Enclosing | None = None


class Settler:
    """Gives labels to the draws of one survey.

    Args:
        output: what was rendered, without records.
        records: the draws and what encloses them.
        namespace: of objects that name none.
        epochs: of items.
    """

    def __init__(self, output: str, records: Records, namespace: str, epochs: Epochs) -> None:
        self._epochs = epochs
        self.draws = list(records.draws.values())
        self._order = {id(draw): number for number, draw in enumerate(self.draws)}
        self._index = landing.Parts(_parts(output, namespace))
        self._secrets = _secrets(self.draws)
        self._masked: dict[tuple[str, bool], str] = {}
        self._landings: dict[str, list[Landing]] = {}
        self._twins: dict[Parts, list[Enclosing]] = {}
        for call in records.calls:
            if call.name and call.draws and self._has_landed(call):
                self._twins.setdefault(_shape(call), []).append(call)

    def labels(self, settled: Settled) -> list[Named]:
        """A label for every draw that is not settled, all different but for joins.

        Args:
            settled: the labels that are taken already; they are kept.
        """
        final: dict[int, Named] = {}
        taken = self._taken(settled)
        joined: list[tuple[Draw, Draw]] = []
        for draw in self.draws:
            known = settled.get((draw.key, draw.arguments))
            twin = None if known else self._twin(draw)
            if twin is not None:
                joined.append((draw, twin))
                continue
            place, places, piece = self._place(draw)
            label = known
            if label is None:
                arguments = self._mask(draw.arguments, numbers=False)
                label = unused(Label((*place, draw.function, arguments, *self._epochs.of(places))), taken)
                taken.add(label)
            final[id(draw)] = Named(draw=draw, label=label, places=places, piece=piece)
        for draw, twin in joined:
            found = final[id(twin)]
            piece = None if found.piece is None else _beside(draw, twin, found.piece)
            final[id(draw)] = Named(draw=draw, label=found.label, places=found.places, piece=piece)
        return [final[id(draw)] for draw in self.draws if not draw.known]

    def _taken(self, settled: Settled) -> set[Label]:
        """The labels that nobody else gets.

        A draw that now has other arguments (they were drawn, and are final only now) left its label.
        """
        present = {(draw.key, draw.arguments) for draw in self.draws}
        keys = {draw.key for draw in self.draws}
        return {label for entry, label in settled.items() if entry in present or entry[0] not in keys}

    def _mask(self, text: str, *, numbers: bool = True) -> str:
        """A text without the values that are drawn, so that it can be part of an identity.

        Args:
            text: a name, a path, or arguments.
            numbers: whether to take short numbers out as well, which are in arguments by chance.
        """
        if (text, numbers) not in self._masked:
            masked = text
            for secret in self._secrets:
                if numbers or len(secret) >= SHORTEST or not secret.isdigit():
                    masked = masked.replace(secret, _MASK)
            self._masked[text, numbers] = masked
        return self._masked[text, numbers]

    def _lands(self, *texts: str) -> list[Landing]:
        """The places where one of these texts lands, if it is long enough, the one that owns it first."""
        found = [landing for text in texts for landing in self._places(text)]
        return found if len(texts) == 1 else sorted(found, key=Landing.rank)

    def _places(self, text: str) -> list[Landing]:
        text = text.strip().strip("\"'")
        if len(text) < SHORTEST:
            return []
        if text not in self._landings:
            places = self._index.find(text)
            line = None if places else _PEM_LINE.match(text)
            if line is not None:
                # Indented, say, or without its first and last line: one line of it is enough.
                places = self._index.find(line.group(1))
            self._landings[text] = places
        return self._landings[text]

    def _identity(self, place: Landing) -> Parts:
        """A place as parts of a label; the API version and drawn parts of names are left out."""
        owner = place.object
        path = paths.render(tuple(self._mask(s) if isinstance(s, str) else s for s in place.path))
        return (
            "landing",
            owner.group,
            owner.kind,
            owner.namespace,
            self._mask(owner.name),
            path,
            place.inner,
        )

    def _place(self, draw: Draw) -> tuple[Parts, list[Landing], Enclosing | None]:
        """The identity of a draw that does not join another, without function and arguments.

        With it come all places where it can be seen, and what returned the text that can be seen there.
        """
        own = self._lands(*draw.texts)
        if own:
            # What is shuffled can be pinned only in the text that it is part of.
            piece = self._landed(draw) if draw.function == "shuffle" else None
            return (*self._identity(own[0]), "value"), own, piece
        enclosing = self._landed(draw)
        if enclosing is not None:
            outer = self._lands(enclosing.text)
            return (*self._identity(outer[0]), "piece"), outer, enclosing
        for other in self.draws[self._order[id(draw)] + 1 :]:
            if other.takes(draw):
                place, landings, _ = self._place(other)
                return (*place, "input"), landings, None
        return ("site", self._mask(draw.name)), [], None

    def _landed(self, draw: Draw) -> Enclosing | None:
        """The innermost that encloses a draw and whose text lands."""
        return next((one for one in around(draw) if self._lands(one.text)), None)

    def _has_landed(self, call: Enclosing) -> bool:
        return bool(self._lands(call.text)) or any(self._is_anchored(draw) for draw in call.draws)

    def _is_anchored(self, draw: Draw) -> bool:
        """Whether a draw lands for good: a certificate, with its own key."""
        return not draw.function.endswith("WithKey") and bool(self._lands(draw.texts[-1]))

    def _twin(self, draw: Draw) -> Draw | None:
        """The draw that this one repeats: of the one equal evaluation that lands, when its own does not.

        Of several equal evaluations, the only one of the same chart counts (a subchart may be
        rendered under several names).
        """
        if self._is_anchored(draw):
            return None
        for call in around(draw):
            if self._lands(call.text):
                return None
            if not call.name or self._has_landed(call):
                continue
            twins = self._twins.get(_shape(call), [])
            if len(twins) > 1:
                twins = [twin for twin in twins if _chart(twin) == _chart(call)]
            if len(twins) == 1:
                return twins[0].draws[call.draws.index(draw)]
        return None


def unused(label: Label, taken: set[Label]) -> Label:
    """The label, with the first number that no other label has."""
    number = 0
    while label.numbered(number) in taken:
        number += 1
    return label.numbered(number)


def _parts(output: str, namespace: str) -> Iterator[Part]:
    return (Part(document.text, partial(_leaves, document, namespace)) for document in _templated(output))


def _leaves(document: Document, namespace: str) -> Iterator[Leaf]:
    for _, obj in objects([document]):
        identity = identify(obj, namespace)
        if identity is not None:
            yield from landing.strings(obj, identity)


def _templated(output: str) -> Iterator[Document]:
    """The documents that come from templates; what stands in crds/ is none, and often most of a render."""
    is_crd = False
    for document in split(output):
        # Helm names the source once for a file in crds/, and for each document of a template.
        if document.source is not None:
            is_crd = _CRD_SOURCE.match(document.source) is not None
        if not is_crd:
            yield document


def _secrets(draws: list[Draw]) -> list[str]:
    """What must not be part of an identity, the longest first, in the spellings that charts use."""
    found: dict[str, None] = {}
    for draw in draws:
        texts = list(draw.texts)
        for enclosing in around(draw):
            if enclosing.name:
                break
            texts.append(enclosing.text.strip().strip("\"'"))
        for text in texts:
            if len(text) >= _MASKED and "\n" not in text:
                found |= dict.fromkeys((text, text.lower(), text.upper()))
    return sorted(found, key=lambda text: (-len(text), text))


def _beside(draw: Draw, twin: Draw, piece: Enclosing) -> Enclosing | None:
    """What encloses a draw as this encloses its twin."""
    return next((own for own, other in zip(around(draw), around(twin), strict=False) if other is piece), None)


def _shape(call: Enclosing) -> Parts:
    """What makes two evaluations equal: the named template, scalars of its dot, and its draws."""
    return (
        call.name,
        call.scalars,
        *(part for draw in call.draws for part in (draw.function, draw.arguments)),
    )


def _chart(call: Enclosing) -> str:
    """The path of the chart that renders a call."""
    return call.draws[0].root.rpartition("/templates/")[0]
