"""Paths to fields: `spec.template.metadata.annotations[checksum/config]`, `containers[0].name`.

Grammar: a step is `.name` (the dot is left out at the start) for a key of letters, digits, `_` and `-` that
begins with a letter or `_`; `[12]` for an index; `[key]` for a key without quotes, brackets or spaces that
is not a number; `["..."]` with a JSON string for any other key. The empty path is the empty string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from becalm.errors import ManifestError
from becalm.manifests.scalars import Scalar, Value

Path = tuple[str | int, ...]
"""Steps from the root: a string is a mapping's key, an int a list's index (from 0)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_BARE = re.compile(r"(?![0-9]+\])[A-Za-z0-9_./:@+~-]+(?=\])")
_INDEX = re.compile(r"0|[1-9][0-9]*")
_JSON = json.JSONDecoder()


def render(path: Path) -> str:
    """The text of a path; `parse` gives the path back."""
    out: list[str] = []
    for step in path:
        if isinstance(step, int):
            out.append(f"[{step}]")
        elif _NAME.fullmatch(step):
            out.append(f".{step}" if out else step)
        elif _BARE.match(step + "]") and "]" not in step:
            out.append(f"[{step}]")
        else:
            out.append(f"[{json.dumps(step)}]")
    return "".join(out)


def parse(text: str) -> Path:
    """The path that a text stands for.

    Raises:
        ManifestError: the text does not follow the grammar; the message names the column (from 1).
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "[":
            step, at = _bracket(text, at + 1)
        else:
            if at and text[at] != ".":
                raise _bad(text, at)
            at += 1 if at else 0
            match = _NAME.match(text, at)
            if not match:
                raise _bad(text, at)
            step, at = match.group(), match.end()
        steps.append(step)
    return tuple(steps)


def _bracket(text: str, at: int) -> tuple[str | int, int]:
    step: str | int
    if text[at : at + 1] == '"':
        try:
            step, end = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            raise _bad(text, at) from None
    elif match := _BARE.match(text, at):
        step, end = match.group(), match.end()
    elif match := _INDEX.match(text, at):
        step, end = int(match.group()), match.end()
    else:
        raise _bad(text, at)
    if text[end : end + 1] != "]":
        raise _bad(text, end)
    return step, end + 1


def _bad(text: str, at: int) -> ManifestError:
    return ManifestError(
        f"not a field path, at column {at + 1}",
        where=json.dumps(text[:100]),
        hint='write paths like data.password, containers[0].name or annotations["a b"]',
    )


def leaves(value: Value, *, keys: bool = False) -> Iterator[tuple[Path, Scalar]]:
    """Every scalar below a value with its path, in document order.

    Args:
        value: any tree of dicts and lists without cycles, however deep.
        keys: also yield each mapping key, as the scalar of its own entry's path, before that entry's leaves.
    """
    todo: list[tuple[Path, Iterator[tuple[Any, Any]]]] = []
    path: Path = ()
    if not isinstance(value, dict | list):
        yield (), value
        return
    todo.append((path, _children(value)))
    while todo:
        path, children = todo[-1]
        for step, child in children:
            if keys and isinstance(step, str):
                yield (*path, step), step
            if isinstance(child, dict | list):
                todo.append(((*path, step), _children(child)))
                break
            yield (*path, step), child
        else:
            todo.pop()


def _children(node: dict[str, Value] | list[Value]) -> Iterator[tuple[Any, Any]]:
    return iter(node.items()) if isinstance(node, dict) else iter(enumerate(node))
