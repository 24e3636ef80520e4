"""Texts that are pinned in the place of what actions and named templates return."""

from __future__ import annotations

from becalm.derive.labels import Label
from becalm.derive.pins import Pins
from becalm.stabilise.records import Enclosing, Records
from becalm.templates.runtime import PINNED

#: File, root and draw or `PINNED`, then arguments or the path of what returns a text (`templates.runtime.Table`).
Entries = dict[str, dict[str, dict[str, dict[str, dict[str, object]]]]]


class PinnedTexts:
    """The pinned texts of one render, in the table of its runtime.

    Args:
        table: that the templates are given.
    """

    def __init__(self, table: Entries) -> None:
        self._table = table
        self._labels: dict[tuple[str, str, str], tuple[Label, Pins]] = {}

    def pin(self, piece: Enclosing, label: Label, pins: Pins) -> str | None:
        """Put the text that is pinned for a draw, if one is, in the place of what encloses it; the text."""
        pin = pins.text_of(label)
        if pin is None:
            return None
        self._labels[piece.file, piece.root, piece.key] = (label, pins)
        draws = self._table.setdefault(piece.file, {}).setdefault(piece.root, {})
        draws.setdefault(PINNED, {})[piece.key] = {"v": pin.texts[0], "g": pin.given}
        return pin.texts[0]

    def look(self, records: Records) -> None:
        """Notice texts that are made from something else now, where a survey went on without their pins."""
        for call in records.calls:
            place = (call.file, call.root, call.key)
            if place in self._labels and all(draw.known for draw in call.draws):
                entry = self._table[call.file][call.root][PINNED][call.key]
                if entry["v"] != call.text:
                    self.drop(*place)

    def drop(self, file: str, root: str, key: str) -> None:
        """Leave a text as it is made, since its pin took the place of another."""
        label, pins = self._labels.pop((file, root, key))
        pins.outdate(label)
        del self._table[file][root][PINNED][key]
