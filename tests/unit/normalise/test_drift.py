"""Every rule ends the drift that it is there for, shown on its own examples by the model of Argo CD's comparison."""

from __future__ import annotations

from typing import Any

import argocd
import pytest

from becalm.normalise import packs
from becalm.normalise.rules import Example, Rule

RULES = [rule for pack in packs.built_in(examples=True) for rule in pack.rules]
SHOWN = [
    (rule, example)
    for rule in RULES
    for example in rule.examples
    if example.after is not None and example.live
]
#: Rules that are off, since Argo CD's own comparison does not show what they fill in: it shows in other tools, in
#: objects that Argo CD cannot decode, or where another program compares.
SILENT = {
    "aks/admissions-enforcer", "argo/application-set-template", "crossplane/composition-store",
    "external-secrets/push-defaults", "external-secrets/target-defaults", "gke-autopilot/seccomp-profile",
    "keda/fallback-behaviour", "kubevirt/machine-defaults", "kyverno/policy-defaults", "raw-defaults/csi-drivers",
    "raw-defaults/role-group", "raw-defaults/services", "raw-defaults/stateful-sets", "raw-defaults/volume-claims",
}  # fmt: skip


def outcomes(desired: Any, live: Any, example: Example, *, ignore_status: bool) -> dict[str, str]:
    """By comparison: in sync, out of sync, or failed."""
    more = {"kube_version": example.kube_version, "ignore_status": ignore_status}
    comparisons = {
        "applied": lambda: argocd.legacy(desired, live, desired, **more),
        "not applied": lambda: argocd.legacy(desired, live, **more),
        "merged": lambda: argocd.merged(desired, live, **more),
    }
    found = {}
    for name, compare in comparisons.items():
        try:
            found[name] = "out of sync" if compare() else "in sync"
        except argocd.ComparisonError:
            found[name] = "failed"
    return found


@pytest.mark.parametrize(
    ("rule", "example"), SHOWN, ids=lambda one: getattr(one, "id", getattr(one, "title", ""))
)
def test_there_is_drift_before_and_none_after(rule: Rule, example: Example) -> None:
    is_status = all(selector.text == "status" for selector, _ in rule.targets) and not rule.computed
    live = argocd.patched(example.before, example.live)
    before = outcomes(example.before, live, example, ignore_status=not is_status)
    after = outcomes(example.after, live, example, ignore_status=not is_status)
    # A field that does not fit its type fails the structured merge whatever a rule does elsewhere, and proves nothing.
    assert {name for name in before if before[name] != "in sync" and after[name] == "in sync"}
    assert {name: found for name, found in after.items() if before[name] != "failed"} == {
        name: "in sync" for name in after if before[name] != "failed"
    }


def test_every_rule_is_shown() -> None:
    shown = {rule.id for rule, _ in SHOWN}
    assert {rule.id for rule in RULES} - shown == SILENT
    assert not {rule.id for rule in RULES if rule.enabled} & SILENT
