"""Who decides on a field that several rules would change: the last one in the order of rules.

Rules act in turns until none changes anything, since one may make room for another. Where one takes away what
another fills in, that would go on for ever; so what a rule has decided of a path is final for all rules before it.
"""

from __future__ import annotations

from collections.abc import Callable

from becalm.manifests.paths import Path

May = Callable[[Path], bool]
"""Whether a path may be changed."""


def anything(_: Path) -> bool:
    """Any path may be changed."""
    return True


class Decisions:
    """The decisions on the paths of one object, by the places of rules in their order (from 0)."""

    def __init__(self) -> None:
        self._places: dict[Path, int] = {}
        #: Whether some rule was kept from a path.
        self.is_contested = False

    def may(self, place: int) -> May:
        """What the rule at a place may change."""

        def may_change(path: Path) -> bool:
            if self._places.get(path, place) <= place:
                return True
            self.is_contested = True
            return False

        return may_change

    def note(self, place: int, path: Path) -> None:
        """Remember that the rule at a place decided on a path."""
        if isinstance(path[-1], int):
            # The elements behind one that was taken away have other places now.
            self._places = {
                other: by for other, by in self._places.items() if other[: len(path) - 1] != path[:-1]
            }
            return
        self._places[path] = max(place, self._places.get(path, place))
