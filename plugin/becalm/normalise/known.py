"""Defaults inside lists of well-known custom resources, for when no definition of theirs is at hand.

`known_defaults.json` is read from the schemas that the projects publish, one release of each: a cluster with
another release may lack a field, so nothing of this acts unless it is asked for.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from becalm.config.schema import packaged

Tree = dict[str, Any]


@cache
def schema(version: str, kind: str) -> Tree | None:
    """A schema with nothing but these defaults, for `defaults.fill`.

    Args:
        version: `group/version`, as an object has it.
        kind: in any case.
    """
    found = _table().get(f"{version}/{kind.lower()}")
    return None if found is None else _schema(found)


@cache
def kinds() -> frozenset[str]:
    """The kinds that have an entry, in lower case."""
    return frozenset(key.rpartition("/")[2] for key in _table())


@cache
def _table() -> dict[str, Tree]:
    return packaged("becalm.normalise", "known_defaults.json")


def _schema(node: Tree) -> Tree:
    """A node of the table as a schema: `=` is a default, `[]` the elements, `*` any key, the rest are fields."""
    found: Tree = {}
    if "=" in node:
        found["default"] = node["="]
    if "[]" in node:
        found["items"] = _schema(node["[]"])
    if "*" in node:
        found["additionalProperties"] = _schema(node["*"])
    properties = {key: _schema(child) for key, child in node.items() if key not in ("=", "[]", "*")}
    if properties:
        found["properties"] = properties
    return found
