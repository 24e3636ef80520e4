"""Runs the examples that rules carry: what a rule changes, and what it must leave alone."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from becalm.manifests import yamlio
from becalm.normalise.engine import normalise
from becalm.normalise.policy import always
from becalm.normalise.rendered import Cluster
from becalm.normalise.rules import Example, Pack, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one example; `problem` is empty where it held, `difference` what is wrong, line by line."""

    rule: str
    title: str
    problem: str
    difference: tuple[str, ...] = ()


def run(packs: Iterable[Pack]) -> Iterator[Outcome]:
    """Every example of the packs. A rule without one that it changes and one that it leaves alone is a problem."""
    for pack in packs:
        for rule in pack.rules:
            kinds = {example.after is None for example in rule.examples}
            for missing, what in ((False, "it changes"), (True, "it leaves alone")):
                if missing not in kinds:
                    yield Outcome(rule=rule.id, title="-", problem=f"it has no example that {what}")
            for example in rule.examples:
                problem, difference = _problem(rule, example)
                yield Outcome(
                    rule=rule.id, title=example.title, problem=problem, difference=tuple(difference)
                )


def _problem(rule: Rule, example: Example) -> tuple[str, Iterable[str]]:
    stream = "".join(f"---\n{yamlio.dump(dict(obj))}" for obj in (example.before, *example.others))
    cluster = Cluster(namespace="default", kube_version=example.kube_version)
    done = normalise(stream, always([rule]), cluster)
    first = yamlio.load(done.output.split("\n---\n")[0], where="example")
    if example.after is None:
        if done.output == stream:
            return "", ()
        return "it is changed", _difference(dict(example.before), first)
    if first != example.after:
        return "it becomes something else", _difference(dict(example.after), first)
    again = normalise(done.output, always([rule]), cluster).output
    if again != done.output:
        return "a second run changes it again", ()
    return "", ()


def _difference(wanted: Any, found: Any) -> Iterator[str]:
    """Lines that are wanted, and those that are found instead."""
    before, after = (yamlio.dump(value).splitlines() for value in (wanted, found))
    lines = difflib.unified_diff(before, after, "wanted", "found", lineterm="", n=2)
    yield from (line for line in lines if not line.startswith("@@"))
