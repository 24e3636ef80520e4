"""Reading and taking away what paths name in an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from becalm.manifests.objects import Object
from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value

#: Maps that are taken away with their last key.
DROPPED = (("metadata", "annotations"), ("metadata", "labels"))


def at(value: Value, path: Path) -> Value:
    """The value at a path that is there."""
    found: Any = value
    for step in path:
        found = found[step]
    return found  # type: ignore[no-any-return]


def remove(obj: Object, paths: Sequence[Path]) -> list[Path]:
    """Take fields and list elements away, in place.

    Args:
        obj: the object.
        paths: all of them are there; none is inside of another.

    Returns:
        The same paths.
    """
    # From the end of lists, so that the places of elements stay what they are.
    for path in sorted(paths, key=_elements_last_first):
        holder: Any = at(obj, path[:-1])
        del holder[path[-1]]
        if not holder and path[-3:-1] in DROPPED:
            # An empty map of these is dropped by the server, which would show as a difference itself.
            outer: Any = at(obj, path[:-2])
            del outer[path[-2]]
    return list(paths)


def _elements_last_first(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple((-step, "") if isinstance(step, int) else (0, step) for step in path)
