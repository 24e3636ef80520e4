"""Recorded answers: `becalm.lookups.yaml` in the application's directory, which may be committed.

Secrets are sealed. Everything else can be read and reviewed, beside a sealed digest, so that only `becalm lookup record`
with the seed writes a file that is accepted. Equal answers give equal bytes, and other bytes than those are refused.
Several applications may share a directory, so each has a section of its own; what is sealed opens only for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from becalm.derive.labels import Application
from becalm.derive.pins import application_name
from becalm.derive.sealing import Name, SealedError, Sealer
from becalm.derive.seed import Seed
from becalm.errors import ManifestError, SeedMissingError, SourceError
from becalm.manifests import yamlio
from becalm.manifests.objects import Object
from becalm.manifests.scalars import Value
from becalm.stabilise.looking import Asked, Lookups, Ran
from becalm.templates.runtime import Unknown

NAME = "becalm.lookups.yaml"
_HEAD = "# Written by `becalm lookup record`, which writes it anew. Only that seals it; see docs/lookup.md.\n"
_TOP = {"apiVersion": "becalm.dev/v1", "kind": "Lookups"}
_FIELDS = ("apiVersion", "kind", "namespace", "name")
#: The entries of one application, in the order of what was looked up.
Section = list[Value]
_MOST = 16 * 1024 * 1024
_AGAIN = "run `becalm lookup record` again"
#: Recording keeps the sections of other applications, so it does not begin with a file that it cannot trust.
_RESTORE = "restore it from Git, or remove it and run `becalm lookup record` for each application in it"


class Recorded(Lookups):
    """Answers from the file. What it does not hold is an error.

    Args:
        directory: the application's.
        application: whose answers they are.
        seed: that seals them; needed as soon as something is looked up.
    """

    policy: ClassVar[str] = "recorded"
    unknown: ClassVar[Unknown] = "ask"

    def __init__(self, directory: Path, *, application: Application, seed: Seed | None) -> None:
        super().__init__()
        self._path = directory / NAME
        self._application = application
        self._seed = seed
        self._is_read = False

    def table(self) -> dict[str, Object]:
        """The answers, which are read when they are needed first.

        Raises:
            SourceError: the file is damaged, or was recorded for another application.
            SeedMissingError: there is a file, and no seed.
        """
        if not self._is_read:
            self._is_read = True
            section = load(self._path).get(application_name(self._application))
            if section is not None:
                self.answers = opened(section, sealer(self._seed, self._application), where=NAME)
        return super().table()

    def learn(self, missing: Sequence[Ran]) -> bool:
        """Refuse what is not recorded.

        Raises:
            SourceError: always.
        """
        shown = [f"{one.asked} ({one.place})" for one in sorted(missing, key=lambda one: one.asked)]
        raise SourceError(
            f"no answer is recorded for {', '.join(shown[:5])}",
            where=NAME,
            hint="record it with `becalm lookup record`",
        )


class Recording(Lookups):
    """Answers to be recorded: everything that is looked up, in whichever round.

    Args:
        find: finds an object, or an empty mapping.
    """

    policy: ClassVar[str] = "recorded"
    unknown: ClassVar[Unknown] = "ask"
    rounds: ClassVar[int] = 8

    def __init__(self, find: Callable[[Asked], Object]) -> None:
        super().__init__()
        self._find = find
        self.places: dict[Asked, list[str]] = {}

    def learn(self, missing: Sequence[Ran]) -> bool:
        """Find what is looked up.

        Raises:
            PluginError: as `find`.
        """
        fresh = sorted({one.asked for one in missing})
        for asked in fresh:
            self.answers[asked] = trimmed(self._find(asked))
        for one in missing:
            self.places.setdefault(one.asked, []).append(one.place)
        return any(self.answers[asked] for asked in fresh)


def sealer(seed: Seed | None, application: Application) -> Sealer:
    """What seals the file.

    Raises:
        SeedMissingError: there is no seed.
    """
    if seed is None:
        raise SeedMissingError(
            "recorded lookups need a seed",
            where=NAME,
            hint="give the one that they were recorded with, with --seed FILE",
        )
    return Sealer(seed, application)


def trimmed(obj: Object) -> Object:
    """An object, or a list, without what tells who wrote it: kubectl's annotation can hold a whole Secret."""
    items = obj.get("items")
    if isinstance(items, list) and "metadata" in obj:
        values: list[Value] = [trimmed(item) if isinstance(item, dict) else item for item in items]
        return {**obj, "metadata": {"resourceVersion": ""}, "items": values}
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return obj
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    annotations = kept.get("annotations")
    if isinstance(annotations, dict):
        last = "kubectl.kubernetes.io/last-applied-configuration"
        kept["annotations"] = {key: value for key, value in annotations.items() if key != last}
    return {**obj, "metadata": kept}


def sealed(answers: Mapping[Asked, Object], sealing: Sealer) -> Section:
    """The section of these answers."""
    return [_entry(asked, answers[asked], sealing) for asked in sorted(answers)]


def opened(section: Section, sealing: Sealer, *, where: str) -> dict[Asked, Object]:
    """The answers of a section.

    Raises:
        SourceError: it is not what `sealed` gave for this application.
    """
    answers = dict(_opened(number, entry, sealing, where) for number, entry in enumerate(section))
    if sealed(answers, sealing) != section:
        raise SourceError("the file was changed since it was recorded", where=where, hint=_AGAIN)
    return answers


def write(sections: Mapping[str, Section]) -> str:
    """The file of these sections."""
    applications: dict[str, Value] = {name: list(sections[name]) for name in sorted(sections)}
    return _HEAD + yamlio.dump({**_TOP, "applications": applications})


def load(path: Path) -> dict[str, Section]:
    """The sections of a file by the names of applications; none where there is no file.

    Raises:
        SourceError: it cannot be read, or is not, byte for byte, what `write` wrote.
    """
    text = _text(path)
    return {} if text is None else read(text, where=NAME)


def read(text: str, *, where: str) -> dict[str, Section]:
    """The same of a text.

    Raises:
        SourceError: it is not, byte for byte, what `write` wrote.
    """
    try:
        value: Any = yamlio.load(text, where=where, strict=True)
    except ManifestError as error:
        raise SourceError(error.what, where=error.where, hint=_RESTORE) from error
    sections = value.get("applications") if isinstance(value, dict) else None
    if not isinstance(sections, dict) or not all(isinstance(one, list) for one in sections.values()):
        raise SourceError("the file is none of recorded lookups", where=where, hint=_RESTORE)
    if write(sections) != text:
        raise SourceError("the file was changed since it was recorded", where=where, hint=_RESTORE)
    return sections


def is_secret(asked: Asked) -> bool:
    """Whether its answer is sealed."""
    return (asked.api_version, asked.kind) == ("v1", "Secret")


def _text(path: Path) -> str | None:
    """The file's text; None where there is no file."""
    try:
        if path.is_symlink() or path.stat().st_size > _MOST:
            raise SourceError("the file is a link, or too long", where=NAME, hint=_RESTORE)
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError("the file cannot be read", where=NAME, hint=_RESTORE) from error


def _entry(asked: Asked, answer: Object, sealing: Sealer) -> dict[str, Value]:
    entry: dict[str, Value] = {field: text for field, text in _named(asked) if text}
    if is_secret(asked) and answer:
        return {**entry, "sealed": sealing.seal(_name("lookup", asked), _json(answer))}
    return {**entry, "object": answer, "seal": sealing.seal(_name("lookup digest", asked), _digest(answer))}


def _opened(number: int, entry: object, sealing: Sealer, where: str) -> tuple[Asked, Object]:
    if not isinstance(entry, dict) or not all(
        isinstance(entry.get(field, ""), str) for field in (*_FIELDS, "sealed", "seal")
    ):
        raise SourceError(f"entry {number + 1} is none of a recorded lookup", where=where, hint=_AGAIN)
    api_version, kind, namespace, name = (str(entry.get(field, "")) for field in _FIELDS)
    asked = Asked(api_version=api_version, kind=kind, namespace=namespace, name=name)
    try:
        if "sealed" in entry:
            return asked, json.loads(sealing.open(_name("lookup", asked), entry["sealed"]))
        answer = entry.get("object")
        is_right = sealing.open(_name("lookup digest", asked), entry.get("seal", "")) == _digest(answer)
    except (SealedError, ValueError):
        is_right = False
    if not is_right or not isinstance(answer, dict):
        raise SourceError(
            f"the answer for {asked} was changed, or was recorded for another application or with another seed",
            where=where,
            hint=_AGAIN,
        )
    return asked, answer


def _named(asked: Asked) -> Iterator[tuple[str, str]]:
    return zip(_FIELDS, (asked.api_version, asked.kind, asked.namespace, asked.name), strict=True)


def _name(what: str, asked: Asked) -> Name:
    return (what, asked.api_version, asked.kind, asked.namespace, asked.name)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def _digest(value: object) -> bytes:
    return hashlib.sha256(_json(value)).digest()
