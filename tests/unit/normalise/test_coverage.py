"""How much of what people tell Argo CD to ignore is covered by something here, counted from the list of it.

`ignored-fields.tsv` holds each kind and field that public configurations ignore or report, with the number of
independent sources. A field is covered by a rule that changes it in one of the rule's own examples, by a default
of a definition, by what stabilising does, or by an entry of `becalm ignore`.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from becalm.manifests import yamlio
from becalm.manifests.objects import ObjectId
from becalm.normalise import known, packs
from becalm.normalise.engine import normalise
from becalm.normalise.ignores import Case, entries, jq
from becalm.normalise.policy import always
from becalm.normalise.rendered import Cluster
from becalm.normalise.rules import Match
from becalm.normalise.selectors import AnyKey, Key, Selector

TABLE = Path(__file__).parents[2] / "vectors" / "normalise" / "ignored-fields.tsv"
STEP = re.compile(r"\.?\[\"(?P<quoted>[^\"]+)\"\]|\.(?P<name>[^.\[\]\"|]+)|(?P<each>\[\])")
Steps = tuple[str, ...]

#: What golden charts show to be stable: data of Secrets and ConfigMaps, and digests of it in annotations.
STABLE = (
    ("", "Secret", ("data",)),
    ("", "Secret", ("stringData",)),
    ("apps", "*", ("spec", "template", "metadata", "annotations", "checksum/*")),
)


def steps(path: str) -> Steps | None:
    """The keys of a path, `[]` for elements; None for a path that chooses elements or goes to any depth."""
    found, at = [], 0
    while at < len(path):
        match = STEP.match(path, at)
        if match is None:
            return None
        found.append(match["quoted"] or match["name"] or "[]")
        at = match.end()
    return tuple(found)


def of(selector: Selector) -> Steps:
    return tuple(
        "*" if isinstance(step, AnyKey) else step.name if isinstance(step, Key) else "[]"
        for step in selector.steps
    )


def meet(one: Steps, other: Steps) -> bool:
    """Whether one path is the other or above it; `*` is any key, and ends like `checksum/*` any such key."""
    return all(
        a == b or "*" in (a, b) or (a.endswith("/*") and b.startswith(a[:-1]))
        for a, b in zip(one, other, strict=False)
    )  # fmt: skip


def reaches(target: Steps, path: Steps, *, is_empty: bool) -> bool:
    """Whether a rule that changes something above a field changes the field; an empty map has no fields."""
    return len(target) >= len(path) or not is_empty


def stands(match: Match, group: str, kind: str) -> bool:
    return Match(group=match.group, kind=match.kind).fits(
        ObjectId(kind=kind, namespace="", name="", group=group)
    )


def changed() -> list[tuple[Match, Steps, bool]]:
    """What rules change: the fields that they name, of the kinds that they name, and those of computed sets of the
    kinds of their examples; and whether the rule takes away what is empty only."""
    found = []
    for rule in (rule for pack in packs.built_in(examples=True) for rule in pack.rules):
        is_empty = rule.when.value is not None
        found += [(match, of(selector), is_empty) for selector, _ in rule.targets for match in rule.match]
        for example in rule.examples if rule.computed else ():
            text = "".join(f"---\n{yamlio.dump(dict(obj))}" for obj in (example.before, *example.others))
            cluster = Cluster(namespace="n", kube_version=example.kube_version)
            found += [
                (
                    Match(group=change.object.group, kind=change.object.kind),
                    tuple("[]" if isinstance(step, int) else step for step in change.path),
                    False,
                )
                for change in normalise(text, always([rule]), cluster).changes
            ]
    return found


def defaults(tree: dict, path: Steps = ()) -> list[Steps]:
    found = [path] if "=" in tree else []
    for key, child in tree.items():
        if key != "=":
            found += defaults(child, (*path, key))
    return found


def test_most_of_what_people_ignore_is_covered() -> None:
    by_rules = changed()
    by_definitions = {}
    for key, tree in known._table().items():
        group, _, kind = key.split("/")
        by_definitions.setdefault((group, kind), []).extend(defaults(tree))
    cases = [case for entry in entries() for case in entry.cases]
    weights = {"rule": 0, "definition": 0, "stable": 0, "ignore": 0, "": 0}
    uncovered = []
    for row in csv.DictReader(TABLE.read_text("utf-8").splitlines(), delimiter="\t"):
        group, kind, sources = row["group"], row["kind"], int(row["sources"])
        path = steps(row["path"])
        here = [case for case in cases if any(stands(match, group, kind) for match in case.match)]
        covered = ""
        if path is None:
            covered = "ignore" if any(chosen(row["path"], case) for case in here) else ""
        elif any(
            stands(Match(group=g, kind=k), group, kind) and meet(target, path) for g, k, target in STABLE
        ):
            covered = "stable"
        elif any(
            stands(match, group, kind) and meet(path, target) and reaches(target, path, is_empty=is_empty)
            for match, target, is_empty in by_rules
        ):
            covered = "rule"
        elif any(meet(path, target) for target in by_definitions.get((group, kind.lower()), ())):
            covered = "definition"
        elif any(
            meet(of(field), path) and (len(of(field)) <= len(path) or case.when is not None)
            for case in here
            for field in case.fields
        ):
            covered = "ignore"
        weights[covered] += sources
        if not covered:
            uncovered.append(f"{group}/{kind} {row['path']} ({sources})")
    share = 1 - weights[""] / sum(weights.values())
    assert all(weights[name] > 0 for name in ("rule", "stable", "ignore"))
    print(f"covered: {share:.1%} {weights}", *uncovered, sep="\n")
    assert share >= 0.95, uncovered


def chosen(path: str, case: Case) -> bool:
    """Whether a case ignores the elements that a path chooses by value, or the list that they are in."""
    texts = [*case.jq, *map(jq, case.fields)]
    if any(plain(path) == plain(text) or ("autogen" in path and "autogen" in text) for text in texts):
        return True
    above = steps(path.partition("[]|")[0])
    return above is not None and any(of(field) == above for field in case.fields)


def plain(expression: str) -> str:
    return re.sub(r"[\s?()]", "", expression)
