"""Hides secret texts in objects that are shown to people.

What is secret is told (values of Secrets, derived values) or guessed from a field's name; where in doubt it is hidden.
A text counts wherever it is in a string, letter case ignored, through base64 too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from becalm.manifests.landing import Index, decoded, strings
from becalm.manifests.objects import Object, ObjectId
from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value

MASK: Final = "***"
LONGEST: Final = 200
"""Characters of a value that are shown."""

#: Shorter texts are hidden where they are a whole value; within others they may be by chance.
_SHORTEST = 4
#: Shorter values of Secrets are not looked for in names and paths.
_SHORTEST_NAME = 6
#: Shorter lines of longer values are in many files.
_SHORTEST_LINE = 8
_DATA = ("data", "stringData")
#: Parts of a longer text that may be a password of their own, as in an address with a user.
_WORD = re.compile(r"[^\s:@/&?;,\"'=<>{}()\[\]|]{6,}")
_NAME = re.compile(
    r"passw|passphrase|\bpwd\b|secret|token|credential|api[-_.]?key|private[-_.]?key|access[-_.]?key|salt\b|\bauth",
    re.IGNORECASE,
)
#: Names of what only names a secret.
_NAMING = re.compile(
    r"(?:name|names|ref|refs|path|mount|file|class|policy|type|kind|method|mode|url|enabled|seconds)$",
    re.IGNORECASE,
)
#: `password=x`, `token: x`, `--api-key x`, an address with a password, PEM, and credentials of HTTP.
_INLINE = re.compile(
    r"(?:passw|pwd|passphrase)[\w.-]*[\"']?\s*[=:]\s*\S"
    r"|(?:secret|token|credential|api[-_.]?key|private[-_.]?key|access[-_.]?key)[\w.-]*[\"']?\s*(?:=|:\s)\s*\S"
    r"|--?[\w-]*(?:passw|token|secret|key)[\w-]*\s+\S|://[^\s/:@]*:[^\s/@]+@|-----BEGIN |\b(?:bearer|basic)\s+\S",
    re.IGNORECASE,
)


class Secrets:
    """Texts that must not be shown."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._derived: dict[str, None] = {}
        self._public: set[str] = set()
        self._shown: dict[str, str] = {}

    def add_derived(self, texts: Iterable[str]) -> None:
        """Add what was derived or given to a function that hides it; by lines too, since one may stand alone."""
        for text in texts:
            for one in _parts(text):
                self._derived[one] = None
                self._texts[one] = None

    def add_object(self, obj: Object, owner: ObjectId) -> None:
        """Add the values of a Secret; of any object its name, which Argo CD shows anyway."""
        self._public.update((owner.kind, owner.namespace, owner.name, owner.group))
        if owner.kind != "Secret" or owner.group:
            return
        for key in _DATA:
            for text in _scalars(obj.get(key)):
                for one in (part for hidden in decoded(text) for part in _parts(hidden)):
                    self._texts[one] = None
                    for word in _WORD.findall(one):
                        if any(map(str.isdigit, word)) and any(map(str.isalpha, word)):
                            self._texts[word] = None

    def name(self, text: str) -> str:
        """A name or path without them; a Secret's value that is an object's whole name or kind is none."""
        if text not in self._shown:
            shown = text
            for one in sorted(self._texts, key=len, reverse=True):
                least = _SHORTEST if one in self._derived else _SHORTEST_NAME
                is_secret = one in self._derived or one not in self._public
                if len(one) >= least and is_secret and one.lower() in shown.lower():
                    shown = re.sub(re.escape(one), MASK, shown, flags=re.IGNORECASE)
            self._shown[text] = shown
        return self._shown[text]

    def masked(self, objects: Sequence[tuple[ObjectId, Object]]) -> list[Object]:
        """The objects as they can be shown; a field of an object is hidden in all that have its identity."""
        index = Index(leaf for owner, obj in objects for leaf in strings(obj, owner))
        hidden = {
            (landing.object, landing.path)
            for text in self._texts
            if len(text) >= _SHORTEST
            for landing in index.find(text)
        }
        return [self._object(obj, owner, hidden) for owner, obj in objects]

    def _object(self, obj: Object, owner: ObjectId, hidden: set[tuple[ObjectId, Path]]) -> Object:
        is_secret = owner.kind == "Secret" and not owner.group

        def shown(value: Value, path: Path, name: str) -> Value:
            if isinstance(value, dict):
                return mapping(value, path)
            if isinstance(value, list):
                return [
                    shown(one, (*path, number), _flag(value[number - 1]) if number else name)
                    for number, one in enumerate(value)
                ]
            if value is None or isinstance(value, bool):
                return value
            if (is_secret and path[0] in _DATA) or (owner, path) in hidden or str(value) in self._texts:
                return MASK
            if isinstance(value, str):
                return _guessed(value, name)
            return MASK if _is_secret_name(name) else value

        def mapping(value: Object, path: Path) -> Object:
            # An entry of a list of variables says its name beside it.
            named = value.get("name")
            own = named if isinstance(named, str) else ""
            result: Object = {}
            for key, one in value.items():
                new = self.name(key) if (owner, (*path, key)) in hidden else key
                while new in result:
                    new += "*"
                result[new] = shown(one, (*path, key), own if key == "value" and own else key)
            return result

        return mapping(obj, ())


def _flag(before: Value) -> str:
    """The name of an option whose value is the next element of a list; "" for anything else."""
    return before if isinstance(before, str) and before.startswith("-") and "=" not in before else ""


def _parts(text: str) -> Iterator[str]:
    """A text, and the lines of a longer one, without what many texts have."""
    whole = text.strip()
    if whole:
        yield whole
    lines = whole.splitlines()
    for line in map(str.strip, lines if len(lines) > 1 else ()):
        if len(line) >= _SHORTEST_LINE and not line.startswith("-----"):
            yield line


def _scalars(value: Any) -> Iterator[str]:
    """Every scalar of what stands below `data`, as text; usually a mapping of strings."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list):
            todo += one
        elif one is not None and not isinstance(one, bool):
            yield str(one)


def _is_secret_name(name: str) -> bool:
    return _NAME.search(name) is not None and _NAMING.search(name) is None


def _guessed(value: str, name: str) -> str:
    """A string without what its name or its form say is secret, and not longer than is shown."""
    # Nothing after what is shown has to be looked at, but for the end of an address's user.
    if value and (_is_secret_name(name) or _INLINE.search(value[: 3 * LONGEST])):
        return MASK
    return value if len(value) <= LONGEST else f"{value[:LONGEST]}… ({len(value)} characters)"
