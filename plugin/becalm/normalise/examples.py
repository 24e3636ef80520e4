"""Runs the examples that rules carry: what a rule changes, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from becalm.manifests import yamlio
from becalm.normalise.engine import normalise
from becalm.normalise.policy import always
from becalm.normalise.rendered import Cluster
from becalm.normalise.rules import Example, Pack, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one example; `problem` is empty where it held."""

    rule: str
    title: str
    problem: str


def run(packs: Iterable[Pack]) -> Iterator[Outcome]:
    """Every example of the packs. A rule without one that it changes and one that it leaves alone is a problem."""
    for pack in packs:
        for rule in pack.rules:
            kinds = {example.after is None for example in rule.examples}
            for missing, what in ((False, "it changes"), (True, "it leaves alone")):
                if missing not in kinds:
                    yield Outcome(rule=rule.id, title="-", problem=f"it has no example that {what}")
            for example in rule.examples:
                yield Outcome(rule=rule.id, title=example.title, problem=_problem(rule, example))


def _problem(rule: Rule, example: Example) -> str:
    stream = "".join(f"---\n{yamlio.dump(dict(obj))}" for obj in (example.before, *example.others))
    cluster = Cluster(namespace="default", kube_version=example.kube_version)
    done = normalise(stream, always([rule]), cluster)
    first = yamlio.load(done.output.split("\n---\n")[0], where="example")
    if example.after is None:
        return "" if done.output == stream else "it is changed"
    if first != example.after:
        return "it becomes something else"
    if normalise(done.output, always([rule]), cluster).output != done.output:
        return "a second run changes it again"
    return ""
