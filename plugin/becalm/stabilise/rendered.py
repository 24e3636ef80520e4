"""Lookups of what the same render produces: "take the password that is there, else draw one" settles on the drawn one.

The first render is answered with nothing, so that values are derived as ever. Its objects answer the next one, until a
render gives the very objects that it was answered with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from becalm.errors import DeterminismError
from becalm.manifests.objects import Object, objects
from becalm.manifests.stream import split
from becalm.stabilise.looking import Asked, Lookups, Ran
from becalm.stabilise.population import Population
from becalm.templates.runtime import Unknown

MOST_RENDERS = 8


class Rendered(Lookups):
    """Answers with the objects of the last render.

    Args:
        namespace: of the release.
    """

    policy: ClassVar[str] = "rendered"
    unknown: ClassVar[Unknown] = "ask"
    rounds: ClassVar[int] = 2 * MOST_RENDERS

    def __init__(self, namespace: str) -> None:
        super().__init__()
        self._namespace = namespace
        self._seen: list[dict[Asked, Object]] = []

    def learn(self, missing: Sequence[Ran]) -> bool:
        """What was not looked up before is not there yet, as the runtime says too."""
        for one in missing:
            self.answers.setdefault(one.asked, {})
        return False

    def is_settled(self, output: str, ran: Sequence[Ran]) -> bool:
        """Whether the objects of the output are those that were looked up; if not, they are from now on.

        Raises:
            DeterminismError: they are those of an earlier render, or there have been too many.
        """
        there = Population((obj for _, obj in objects(split(output))), namespace=self._namespace)
        found = {one.asked: there.find(one.asked) for one in ran}
        changed = sorted(asked for asked, obj in found.items() if self.answers.get(asked, {}) != obj)
        if not changed:
            return True
        answers = {**self.answers, **found}
        self._seen.append(self.answers)
        if answers in self._seen or len(self._seen) >= MOST_RENDERS:
            raise DeterminismError(
                f"the chart does not settle on what it looks up: {', '.join(map(str, changed[:5]))}",
                where=", ".join(sorted({one.place for one in ran if one.asked in changed})[:5]),
                hint="what it renders depends on whether that is there; use another policy than rendered for it",
            )
        self.answers = answers
        return False
