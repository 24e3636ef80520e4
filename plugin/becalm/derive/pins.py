"""Pins: values that were taken over from a running app, and take the place of those that would be derived.

A pin is the settled value of a draw, by the draw's label; or, where a template makes something else of what it draws, the
text that an action or a named template returns, by the label of its first draw and `text`. What is made from other
values (a hash of a password, a certificate that an authority signed) is pinned together with a digest of them: when they
change, the pin no longer fits, and the value is derived.

`becalm.pins.yaml` holds pins of one or more applications, sealed (`derive/sealing.py`). It is read only as it is written,
byte for byte; lines may be removed in whole entries, which gives that place a new value.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from becalm.derive.labels import Application, Label, encode
from becalm.derive.sealing import Name, SealedError, Sealer
from becalm.derive.seed import Seed
from becalm.errors import ConfigError, ManifestError
from becalm.manifests import yamlio

NAME = "becalm.pins.yaml"
TEXT = "text"
"""Ends the label of a pinned text."""
_KIND = "Pins"
_API_VERSION = "becalm.dev/v1"
_HEAD = f"""\
# Values that becalm took over from a cluster. They are sealed: only a sidecar with the seed opens them, each for its own
# application and place. `becalm adopt` writes this file. To rotate a value on purpose, remove its entry, or raise its epoch.
apiVersion: {_API_VERSION}
kind: {_KIND}
applications:
"""
_ISSUED = ("genSignedCert", "genSignedCertWithKey")
_REMEDY = "restore the file, or write it anew with `becalm adopt`"
_REMEDY_SECTION = "restore the file, or remove the section"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A value that was taken over.

    Args:
        texts: the value; a certificate and its key are two texts, the second empty where the key was not found.
        given: the digest of what the value was made from, "" where it was made from nothing.
    """

    texts: tuple[str, ...] = field(repr=False)
    given: str = field(default="", repr=False)


def digest(texts: Sequence[str]) -> str:
    """The digest of texts, in hexadecimal; it is sealed wherever it is kept."""
    return hashlib.sha256(encode(texts)).hexdigest()


def made_from(text: str) -> str:
    """The digest of the text that a pinned text takes the place of, as the templates compute it."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class Pins:
    """The pins of one application, and which of them were used in a render.

    Args:
        pins: by label.
        left: how many pins do not hold, since they are for another epoch of the application.
        is_loose: whether a pin holds whatever its value was made from; for finding that out.
    """

    def __init__(
        self, pins: Mapping[Label, Pin] | None = None, *, left: int = 0, is_loose: bool = False
    ) -> None:
        self._pins = dict(pins or {})
        self.left = left
        self.is_loose = is_loose
        self._keyless = {pin.texts[0] for pin in self._pins.values() if pin.texts[1:] == ("",)}
        self._used: dict[Label, None] = {}
        self._stale: dict[Label, None] = {}

    def __bool__(self) -> bool:
        return bool(self._pins)

    def is_without_key(self, certificate: str) -> bool:
        """Whether this is a certificate that was taken over without its key."""
        return certificate in self._keyless

    def given(self, function: str, texts: Sequence[str]) -> str:
        """The digest of what a draw was given, "" where that is nothing.

        Of an issuer only the key counts, since its certificate is renewed in time and its key stays. Where the key is not
        known, only the certificate does.
        """
        if not texts:
            return ""
        if function in _ISSUED:
            certificate, key, *own = texts
            return digest([certificate, "", *own] if self.is_without_key(certificate) else [key, *own])
        return digest(texts)

    def of(self, label: Label, given_digest: str) -> Pin | None:
        """The pin of a draw that was given this."""
        pin = self._pins.get(label)
        if pin is None:
            return None
        if pin.given != given_digest and not self.is_loose:
            self._stale[label] = None
            return None
        self._used[label] = None
        self._stale.pop(label, None)
        return pin

    def text_of(self, label: Label) -> Pin | None:
        """The pin of the text that holds the draw with this label; what it was made from, the caller has to compare."""
        pin = self._pins.get(text_label(label))
        if pin is not None:
            self._used[text_label(label)] = None
        return pin

    def outdate(self, label: Label) -> None:
        """The pinned text that holds this draw would now be made from something else."""
        self._used.pop(text_label(label), None)
        self._stale[text_label(label)] = None

    @property
    def unused(self) -> tuple[Label, ...]:
        """The labels of pins that match nothing that is drawn."""
        return tuple(label for label in self._pins if label not in self._used and label not in self._stale)

    @property
    def outdated(self) -> tuple[Label, ...]:
        """The labels of pins whose value was made from what has changed since."""
        return tuple(label for label in self._pins if label in self._stale)

    @property
    def items(self) -> Mapping[Label, Pin]:
        """All of them."""
        return self._pins


def text_label(label: Label) -> Label:
    """The label of the text that holds the draw with this label, and perhaps others."""
    return Label((*label.parts, TEXT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The pins of one application as they are kept: sealed texts by label, under a seed and an epoch of the application."""

    seed: str
    epoch: str
    sealed: Mapping[Label, str]


#: Sections by the names of applications.
File = dict[str, Section]


def pins_of(path: Path, seed: Seed | None, application: Application, epoch: str) -> Pins:
    """The pins of an application; none where there is no file, it names another, or there is no seed.

    Raises:
        ConfigError: the file is damaged, or a pin is not of this application.
    """
    section = None if seed is None else own(load(path), seed, application, where=path.name)
    if section is None or seed is None:
        return Pins()
    pins = unseal(section, Sealer(seed, application), seed=seed.id, where=path.name)
    return Pins(pins) if section.epoch == epoch else Pins(left=len(pins))


def load(path: Path) -> File:
    """The sections of a file; none where there is no file.

    Raises:
        ConfigError: it cannot be read, or is damaged.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"the pins cannot be read: {error.strerror}", where=path.name) from error
    try:
        return read(data.decode("utf-8"), where=path.name)
    except UnicodeDecodeError:
        raise ConfigError("not a file of pins as becalm writes it", where=path.name, hint=_REMEDY) from None


def own(file: File, seed: Seed, application: Application, *, where: str) -> Section | None:
    """The section of an application; None where it has none.

    Then the others are looked at, since one of them may be its own under a damaged name, and all of its values would change.

    Raises:
        ConfigError: a section is not of the application that it names.
    """
    section = file.get(application_name(application))
    for name, other in file.items() if section is None else ():
        if other.seed == seed.id:  # what another seed has sealed, nobody can tell here
            try:
                unseal(other, Sealer(seed, _named(name)), seed=seed.id, where=where)
            except (ConfigError, ValueError):
                raise ConfigError(
                    f"the pins of {name!r} are not of this application", where=where, hint=_REMEDY_SECTION
                ) from None
    return section


def _named(name: str) -> Application:
    """The application that a section names; names and namespaces of Kubernetes hold neither `/` nor `@`."""
    project, own_name, rest = name.split("/", 2)
    namespace, _, cluster = rest.partition("@")
    return Application(name=own_name, project=project, namespace=namespace, cluster=cluster)


def application_name(application: Application) -> str:
    """An application in the file, for people and to find it; the sealing key binds it."""
    name = f"{application.project}/{application.name}/{application.namespace}"
    return f"{name}@{application.cluster}" if application.cluster else name


def seal(pins: Mapping[Label, Pin], sealer: Sealer, *, seed: str, epoch: str) -> Section:
    """The section of an application.

    Args:
        pins: by label.
        sealer: of this application.
        seed: the fingerprint of the sealer's seed.
        epoch: of the application; pins do not hold for another one.
    """
    sealed = {
        label: sealer.seal(_name(label, epoch), json.dumps([pin.texts, pin.given]).encode())
        for label, pin in pins.items()
    }
    return Section(seed=seed, epoch=epoch, sealed=dict(sorted(sealed.items(), key=lambda item: str(item[0]))))


def unseal(section: Section, sealer: Sealer, *, seed: str, where: str) -> dict[Label, Pin]:
    """The pins of a section.

    Raises:
        ConfigError: one was sealed with another seed, for another place or application, or is damaged.
    """
    if section.seed != seed:
        raise ConfigError(
            f"the pins are sealed with the seed {section.seed}, and this one is {seed}",
            where=where,
            hint="`becalm seed rotate` seals them anew",
        )
    found: dict[Label, Pin] = {}
    for label, text in section.sealed.items():
        try:
            texts, given_digest = json.loads(sealer.open(_name(label, section.epoch), text))
        except (SealedError, ValueError):
            raise ConfigError(
                f"the pin {label} is damaged, or is not of this application and place",
                where=where,
                hint=f"{_REMEDY}; without the entry the value is derived",
            ) from None
        found[label] = Pin(texts=tuple(texts), given=given_digest)
    return found


def _name(label: Label, epoch: str) -> Name:
    return ("pin", "epoch", epoch, *label.parts)


def write(file: File) -> str:
    """The text of a file; the same for the same sections."""
    lines = [_HEAD]
    for name, section in sorted(file.items()):
        lines.append(
            f"  {_quoted(name)}:\n    seed: {_quoted(section.seed)}\n    epoch: {_quoted(section.epoch)}\n"
        )
        lines.append("    pins:\n" if section.sealed else "    pins: []\n")
        for label, text in sorted(section.sealed.items(), key=lambda item: str(item[0])):
            lines.append(f"    - label: {_quoted(_text(label))}\n      sealed: {text}\n")
    return "".join(lines)


def read(text: str, *, where: str) -> File:
    """The sections of a file.

    Raises:
        ConfigError: it is not what `write` gives.
    """
    text = text.replace("\r\n", "\n")  # as Git may check it out
    try:
        file = {
            str(name): Section(
                seed=str(section["seed"]),
                epoch=str(section["epoch"]),
                sealed={_label(str(pin["label"])): str(pin["sealed"]) for pin in section["pins"]},
            )
            for name, section in _applications(yamlio.load(text, where=where)).items()
        }
    except (ManifestError, KeyError, TypeError, ValueError, AttributeError):
        raise ConfigError("not a file of pins as becalm writes it", where=where, hint=_REMEDY) from None
    written = write(file)
    if written != text:
        line = next(n for n, (a, b) in enumerate(_lines(text, written), 1) if a != b)
        raise ConfigError("not as becalm writes it", where=f"{where}:{line}", hint=_REMEDY)
    return file


def _applications(value: Any) -> dict[str, Any]:  # whatever a file holds
    applications: dict[str, Any] = value["applications"]
    return applications


def _lines(*texts: str) -> Iterable[tuple[str | None, str | None]]:
    a, b = (text.split("\n") for text in texts)
    length = max(len(a), len(b))
    return zip((*a, *[None] * (length - len(a))), (*b, *[None] * (length - len(b))), strict=True)


def _text(label: Label) -> str:
    return json.dumps(label.parts, separators=(",", ":"))


def _label(text: str) -> Label:
    parts = json.loads(text)
    if not isinstance(parts, list) or not all(isinstance(part, str | int) for part in parts):
        raise TypeError
    return Label(tuple(parts))


def _quoted(text: str) -> str:
    """A YAML scalar in single quotes; other control characters cannot stand in it, and none are in JSON."""
    if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]", text):
        return json.dumps(text)
    return "'" + text.replace("'", "''") + "'"
