"""Who decides on a field that several rules would change: the last one in the order of rules.

Rules act in turns until none changes anything, since one may make room for another. Where one takes away what
another fills in, that would go on for ever; so what a rule has decided of a path is final for all rules before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value

May = Callable[[Path], bool]
"""Whether a path may be changed."""


def anything(_: Path) -> bool:
    """Any path may be changed."""
    return True


class Decisions:
    """The decisions on the paths of one object, by the places of rules in their order (from 0)."""

    def __init__(self) -> None:
        self._places: dict[Path, int] = {}
        self._reserved: dict[Path, int] = {}
        #: Whether some rule was kept from a path.
        self.is_contested = False

    def may(self, place: int, *, fills: bool) -> May:
        """What the rule at a place may change; `fills` tells whether it fills in."""

        def may_change(path: Path) -> bool:
            by = self._places.get(path, place)
            if fills:
                by = max(by, self._reserved.get(path, place))
            if by <= place:
                return True
            self.is_contested = True
            return False

        return may_change

    def reserve(self, place: int, path: Path) -> None:
        """Keep the rules before a place from filling in a path."""
        self._reserved[path] = place

    def decide(self, place: int, path: Path, value: Value = None) -> None:
        """Remember that the rule at a place decided on a path, and on all that its new value holds."""
        todo = [(path, value)]
        while todo:
            here, one = todo.pop()
            self._places[here] = max(place, self._places.get(here, place))
            if isinstance(one, dict):
                todo += [((*here, key), child) for key, child in one.items()]

    def forget_elements(self, lists: Collection[Path]) -> None:
        """Forget what is below some lists: the elements behind one that was taken away have other places now."""
        if lists:
            self._places = {path: by for path, by in self._places.items() if not _is_below(path, lists)}


def _is_below(path: Path, lists: Collection[Path]) -> bool:
    return any(path[:length] in lists for length in range(1, len(path)))
