"""What a chart looked up in a render, and the policies that say how that is answered.

Answers are part of the runtime that is rendered with the chart. Which lookups ran is told by a document of its own at
the end of helm's output, a hook, since those leave the bytes of the manifests before them as they are.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from becalm.errors import SourceError
from becalm.manifests.landing import decoded
from becalm.manifests.objects import Object
from becalm.manifests.scalars import Value
from becalm.stabilise.finals import digest
from becalm.templates import functions
from becalm.templates.files import TemplateFile
from becalm.templates.rewrite import Site
from becalm.templates.runtime import Unknown

#: Characters of all answers of a render; helm reads files of a chart up to 5 MiB.
MOST_CHARACTERS = 4 * 1024 * 1024
#: Shorter values are in many words of an error by chance.
_SHORTEST = 4


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Asked:
    """The arguments of `lookup`: an empty `name` asks for a list, an empty `namespace` for all or for none."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`Secret shop/db`, `every Secret in shop`, `Deployment.apps shop/web`."""
        group, slash, _ = self.api_version.rpartition("/")
        kind = f"{self.kind}.{group}" if slash else self.kind
        if self.name:
            return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"
        return f"every {kind} in {self.namespace}" if self.namespace else f"every {kind}"

    @property
    def digest(self) -> str:
        """What the runtime finds the answer by."""
        return digest((self.api_version, self.kind, self.namespace, self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A lookup that ran: where it stands (`file:line`), and whether the runtime had its answer."""

    asked: Asked
    place: str
    is_known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A lookup of the last render, for reports.

    `answer` says how it was answered: `nothing`, or the policy that found the object. Where a template could not be
    read, only the place is known and `asked` is None.
    """

    asked: Asked | None
    place: str
    answer: str


class Lookups:
    """How lookups are answered; as it is, with nothing, by helm itself.

    Attributes:
        policy: its name, for reports.
        unknown: what the runtime does without an answer.
        rounds: how many more renders it may take than draws do.
    """

    policy: ClassVar[str] = "empty"
    unknown: ClassVar[Unknown] = "stock"
    rounds: ClassVar[int] = 0

    def __init__(self) -> None:
        self.answers: dict[Asked, Object] = {}

    @property
    def is_optional(self) -> bool:
        """Whether a chart is better rendered without than not at all."""
        return self.unknown == "stock"

    def learn(self, missing: Sequence[Ran]) -> bool:
        """Find answers for lookups that the runtime answered with nothing, for want of one.

        Returns:
            Whether some are answered otherwise now, so that the chart must be rendered again.

        Raises:
            PluginError: there is none, or it may not be had.
        """
        raise AssertionError(f"{self.policy} leaves nothing unanswered: {missing}")

    def is_settled(self, output: str, ran: Sequence[Ran]) -> bool:  # noqa: ARG002  # others look at them
        """Whether the answers fit to what was rendered with them; if not, they are other ones now.

        Raises:
            DeterminismError: they never will.
        """
        return True

    def table(self) -> dict[str, Object]:
        """The answers for the runtime.

        Raises:
            SourceError: they are too long.
        """
        if sum(len(str(answer)) for answer in self.answers.values()) > MOST_CHARACTERS:
            raise SourceError(
                f"the objects that are looked up have more than {MOST_CHARACTERS} characters",
                where="lookup",
                hint="look up single objects, or give what is needed in the values",
            )
        return {asked.digest: answer for asked, answer in self.answers.items()}

    def secrets(self) -> list[str]:
        """The values of Secrets among the answers, as they stand there and decoded."""
        found: list[str] = []
        for answer in self.answers.values():
            items = answer.get("items")
            for one in items if isinstance(items, list) else [answer]:
                if (
                    isinstance(one, dict)
                    and one.get("kind") == "Secret"
                    and isinstance(one.get("data"), dict)
                ):
                    data: dict[str, Value] = one["data"]  # type: ignore[assignment]  # as was just seen
                    found += [
                        text
                        for value in data.values()
                        for text in decoded(str(value))
                        if len(text) >= _SHORTEST
                    ]
        return found

    def told(self, ran: Sequence[Ran], redacted: Callable[[str], str]) -> tuple[Looked, ...]:
        """What ran, for reports, in order.

        Args:
            ran: the lookups of the last render.
            redacted: a text without what is derived.
        """
        found = {
            (one.asked, one.place): Looked(
                asked=replace(one.asked, name=redacted(one.asked.name)),
                place=one.place,
                answer=self.policy if self.answers.get(one.asked) else "nothing",
            )
            for one in ran
        }
        return tuple(found[key] for key in sorted(found))


def unseen(place: str) -> Looked:
    """A lookup of which only the place is known."""
    return Looked(asked=None, place=place, answer="nothing")


def mentions(file: TemplateFile) -> list[str]:
    """The places of a file that may look things up, where it cannot be read."""
    lines = file.text.split("\n")
    return [f"{file.place}:{number}" for number, line in enumerate(lines, 1) if functions.looks("{{" + line)]


def take(output: str, marker: str, sites: Sequence[Site]) -> tuple[str, list[Ran]]:
    """The output without its document of lookups, and these."""
    pattern = re.compile(
        rf"^---\n# Source: [^\n]*\napiVersion: becalm\.dev/v1\nkind: Lookups\nmetadata:\n  name: {marker}\n"
        r"  annotations:\n    helm\.sh/hook: post-install\nrecords: ([A-Za-z0-9+/=]*)\n",
        re.MULTILINE,
    )
    match = pattern.search(output)
    if match is None:
        return output, []
    files: list[Mapping[str, list[object]]] = json.loads(base64.b64decode(match.group(1)))
    found = [ran(event, sites) for records in files for event in records.values()]
    return output[: match.start()] + output[match.end() :], found


def ran(fields: Sequence[object], sites: Sequence[Site]) -> Ran:
    """A lookup from its record, or from a request, which has no last field."""
    number, api_version, kind, namespace, name, *known = fields
    site = sites[int(str(number))]
    asked = Asked(api_version=str(api_version), kind=str(kind), namespace=str(namespace), name=str(name))
    return Ran(asked=asked, place=f"{site.file}:{site.line}", is_known=bool(known and known[0]))
