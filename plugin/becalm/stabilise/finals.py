"""Final values of draws, each after those that it takes: a leaf after its authority, a hash after its password.

In a survey a draw is given provisional texts of other draws. Here they are replaced by the final ones, so
that most draws are right at once. Where a template transformed a text on the way, the replay gives
other texts than were foreseen; the digest in the table shows it, and another survey sees the right ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from becalm.derive.deriver import GIVEN, Deriver
from becalm.stabilise.records import Draw
from becalm.stabilise.settle import Named

if TYPE_CHECKING:
    from becalm.derive.deriver import Value

#: A text that is replaced by mistake costs another survey, and nothing else.
_SHORTEST = 4


class Finals:
    """Computes the final values of the draws of one survey.

    Args:
        deriver: derives them.
        named: the draws that are not final.
    """

    def __init__(self, deriver: Deriver, named: Sequence[Named]) -> None:
        self._deriver = deriver
        self._labels = {id(one.draw): one.label for one in named}
        self._draws = [one.draw for one in named]
        self._taking = {id(draw) for draw in self._draws if draw.given or '"' in draw.arguments}
        self._done: dict[int, tuple[str, dict[str, object]]] = {}
        self.given: dict[int, tuple[str, ...]] = {}
        """What each draw is given in the end, by its id."""
        self._texts: dict[str, str] = {}

    def entry(self, draw: Draw) -> tuple[str, dict[str, object]]:
        """The final arguments of a draw, and its entry for the table of the runtime.

        Raises:
            DerivationError: Helm's own function would refuse the arguments.
        """
        if id(draw) not in self._done:
            # Whoever takes itself over others, by chance, sees its provisional text.
            self._done[id(draw)] = ("", {})
            for other in self._draws if id(draw) in self._taking else ():
                if other is not draw and draw.takes(other, shortest=_SHORTEST):
                    self.entry(other)
            self._done[id(draw)] = self._final(draw)
        return self._done[id(draw)]

    def _final(self, draw: Draw) -> tuple[str, dict[str, object]]:
        arguments = self._replaced(draw.arguments, in_json=True)
        given = tuple(self._replaced(text) for text in draw.given)
        self.given[id(draw)] = given
        value = self._deriver.value(self._labels[id(draw)], draw.function, arguments, given)
        for old, new in zip(draw.texts, _texts(value, given), strict=False):
            if len(old) >= _SHORTEST:
                self._texts |= {old.lower(): new.lower(), old.upper(): new.upper(), old: new}
        entry: dict[str, object] = {"v": as_json(value)}
        if draw.function in GIVEN:
            entry["g"] = digest(given)
        return arguments, entry

    def _replaced(self, text: str, *, in_json: bool = False) -> str:
        """A text with the provisional texts in it replaced by the final ones."""
        found = sorted((old for old in self._texts if old in text), key=lambda old: (-len(old), old))
        if not found:
            return text
        new = {old: _quoted(self._texts[old]) if in_json else self._texts[old] for old in found}
        return re.sub("|".join(map(re.escape, found)), lambda match: new[match.group()], text)


def digest(given: Iterable[str]) -> str:
    """The digest of the texts that a draw was given, as `becalm.digest` of the runtime computes it."""
    total = hashlib.sha256()
    for text in given:
        data = text.encode("utf-8", "surrogateescape")
        total.update(b"%d:%s" % (len(data), data))
    return total.hexdigest()


def as_json(value: Value) -> object:
    """A value as the runtime's table holds it."""
    if isinstance(value, str | list):
        return value
    return {"Cert": value.cert, "Key": value.key}


def _texts(value: Value, given: Sequence[str]) -> Sequence[str]:
    """The texts of a value, in the order of `Draw.texts`."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        characters = list(given[0]) if given else []
        return ("".join(characters[at] for at in value),) if len(characters) == len(value) else ()
    return (value.cert, value.key)


def _quoted(text: str) -> str:
    """A text inside a JSON string as Go's encoding/json writes it."""
    quoted = json.dumps(text, ensure_ascii=False)[1:-1]
    return quoted.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
