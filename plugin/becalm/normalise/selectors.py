"""Which fields of an object a rule means: paths in which lists are gone through or searched by key.

Grammar: as for field paths (`manifests.paths`), and after a list's field

    []            every element
    [key=value]   the elements whose `key` is the text `value`

and after a map's field

    [*]           every key

Examples: `spec.replicas`, `webhooks[].clientConfig.caBundle`, `spec.template.spec.containers[name=app].image`,
`metadata.annotations[checksum/config]`, `spec.selector.matchLabels[*]`. A number is refused: the place of an
element in a list says nothing of what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from becalm.errors import ManifestError, RuleError
from becalm.manifests import paths
from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value

_SPECIAL = re.compile(r"\[(?:(?P<any>\*)?|(?P<key>[A-Za-z_][A-Za-z0-9_.-]*)=(?P<value>[^\]\"=]+))\]")


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a map."""

    name: str


@dataclass(frozen=True, slots=True)
class AnyKey:
    """Every key of a map."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a list: all, or those whose `key` is `value`."""

    key: str = ""
    value: str = ""


Step = Key | AnyKey | Elements


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed selector; its text is `str()` of it, `keys` are the names of the keys in it."""

    text: str
    steps: tuple[Step, ...]
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def find(self, value: Value) -> list[Path]:
        """The paths in a value that are there, in document order."""
        return [path for path, _ in _walk(value, self.steps, ())]

    def holders(self, value: Value) -> list[Path]:
        """The paths of the maps in a value that have or could have the last key.

        Raises:
            ValueError: the selector does not end with one key.
        """
        if not self.steps or not isinstance(self.steps[-1], Key):
            raise ValueError("the selector does not end with a key")
        return [path for path, found in _walk(value, self.steps[:-1], ()) if isinstance(found, dict)]

    @property
    def last(self) -> str:
        """The last key, "" where the selector ends with something else."""
        step = self.steps[-1] if self.steps else None
        return step.name if isinstance(step, Key) else ""


def parse(text: str, *, where: str) -> Selector:
    """The selector that a text stands for.

    Raises:
        RuleError: the text does not follow the grammar; the message names the column (from 1).
    """
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _SPECIAL.match(text, at)
        if match is None:
            end = _SPECIAL.search(text, at)
            plain = text[at : end.start() if end else len(text)]
            steps += _plain(plain, text, at, where)
            at += len(plain)
            continue
        if not steps:
            raise _bad(text, at, where)
        if match["any"]:
            steps.append(AnyKey())
        else:
            steps.append(Elements(match["key"] or "", match["value"] or ""))
        at = match.end()
    if not steps:
        raise _bad(text, 0, where)
    return Selector(text, tuple(steps), tuple(step.name for step in steps if isinstance(step, Key)))


def _plain(plain: str, text: str, at: int, where: str) -> list[Step]:
    """The steps of a part without any of the signs that only selectors have."""
    if at and not plain.startswith((".", "[")):
        raise _bad(text, at, where)
    try:
        found = paths.parse(plain.removeprefix(".") if at and not plain.startswith("[") else plain)
    except ManifestError as error:
        raise _bad(text, at, where) from error
    if not found or any(isinstance(step, int) for step in found):
        raise _bad(text, at, where)
    return [Key(str(step)) for step in found]


def _bad(text: str, at: int, where: str) -> RuleError:
    return RuleError(
        f"{text[:100]!r} is no selector, at column {at + 1}",
        where=where,
        hint="write paths like spec.replicas, webhooks[].name, containers[name=app].image or annotations[a/b]",
    )


def _walk(value: Value, steps: tuple[Step, ...], path: Path) -> Iterator[tuple[Path, Value]]:
    if not steps:
        yield path, value
        return
    for key, child in _children(value, steps[0]):
        yield from _walk(child, steps[1:], (*path, key))


def _children(value: Value, step: Step) -> Iterator[tuple[str | int, Value]]:
    match step:
        case Key(name):
            if isinstance(value, dict) and name in value:
                yield name, value[name]
        case AnyKey():
            if isinstance(value, dict):
                yield from list(value.items())
        case Elements(key, wanted):
            if isinstance(value, list):
                for index, element in enumerate(value):
                    if not key or (isinstance(element, dict) and element.get(key) == wanted):
                        yield index, element
