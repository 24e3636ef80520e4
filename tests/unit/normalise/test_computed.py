"""Laws of the sets of fields that are computed, over objects drawn from the types of Kubernetes themselves."""

from __future__ import annotations

import copy
from random import Random

import argocd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from becalm.normalise import builtin, computed, engine, packs, policy, rendered
from becalm.normalise.builtin import Types
from becalm.normalise.decisions import anything
from becalm.normalise.definitions import Definitions

TYPES = builtin.types("1.34")
KINDS = (
    "v1/Pod", "v1/Service", "v1/Secret", "v1/ConfigMap", "v1/PersistentVolumeClaim", "v1/ServiceAccount",
    "apps/v1/Deployment", "apps/v1/StatefulSet", "batch/v1/CronJob", "networking.k8s.io/v1/Ingress",
    "networking.k8s.io/v1/NetworkPolicy", "autoscaling/v2/HorizontalPodAutoscaler",
    "rbac.authorization.k8s.io/v1/ClusterRole", "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration",
)  # fmt: skip
SCALARS = {
    "string": ["", "a", "b", "$(a)"], "bool": [False, True], "int": [0, 1, 80], "float": [0.0, 1.5],
    "bytes": ["", "YQ=="], "time": ["2024-01-01T00:00:00Z"], "duration": ["1h", "1h0m0s"],
    "quantity": ["1000m", "1", 1, 0.5, "1024Mi", "0", "1Gi"], "int-or-string": [0, 80, "80", "25%"],
    "any": [None, {}, {"a": None}, "x"],
}  # fmt: skip
#: Where most of what charts write is.
OFTEN = (
    "spec",
    "template",
    "containers",
    "env",
    "ports",
    "resources",
    "limits",
    "volumes",
    "metadata",
    "name",
    "value",
)


def value(choose: Random, written: str, depth: int) -> object:
    """A value of a type, with nulls where Go takes them, many empty ones, and elements that are there twice."""
    written = written.removeprefix("*")
    if written.startswith("[]"):
        found = [
            value(choose, written[2:], depth - 1) for _ in range(choose.randint(0, 3) if depth > 0 else 0)
        ]
        return found + copy.deepcopy(found[:1]) if choose.random() < 0.3 else found
    if written.startswith("{}"):
        keys = choose.sample(["cpu", "memory", "b.c/d"], choose.randint(0, 2) if depth > 0 else 0)
        return {key: value(choose, written[2:], depth - 1) for key in keys}
    struct = TYPES.struct(written)
    if struct is None:
        return choose.choice(SCALARS[written])
    if depth <= 0:
        return {}
    names = sorted(struct)
    keys = [key for key in OFTEN if key in struct and choose.random() < 0.8]
    keys += [key for key in choose.sample(names, min(len(names), 3)) if key not in keys]
    choose.shuffle(keys)
    return {
        key: None if choose.random() < 0.1 else value(choose, struct[key].type, depth - 1) for key in keys
    }


@st.composite
def objects(draw: st.DrawFn) -> dict:
    """An object of a built-in kind that fits its type."""
    version, _, kind = draw(st.sampled_from(KINDS)).rpartition("/")
    obj = {"apiVersion": version, "kind": kind}
    body = value(Random(draw(st.integers(0, 2**32))), TYPES.of(obj), 9)
    body = {key: value for key, value in body.items() if key not in obj and key != "metadata"}
    return {
        **obj,
        "metadata": {
            "name": "x",
            **draw(st.sampled_from([{}, {"labels": {"a": None}}, {"annotations": {}}])),
        },
        **body,
    }


def facts() -> computed.Facts:
    return computed.Facts(kube_version="1.26", types=TYPES, definitions=Definitions([]))


@settings(max_examples=400, deadline=None)
@given(objects())
def test_objects_of_the_types_fit_them(obj: dict) -> None:
    assert list(builtin.misfits(obj, TYPES)) == []


@settings(max_examples=400, deadline=None)
@given(objects(), st.sampled_from(sorted(computed.SETS)))
def test_a_second_time_changes_nothing(obj: dict, name: str) -> None:
    computed.SETS[name].apply(obj, facts(), anything)
    once = copy.deepcopy(obj)
    assert computed.SETS[name].apply(obj, facts(), anything) == []
    assert obj == once


def without_null_entries(value: object) -> object:
    """Keys of maps that have no value: Go reads "" there, and the API server never gets to see them."""
    if isinstance(value, dict):
        return {key: without_null_entries(one) for key, one in value.items() if one is not None}
    return [without_null_entries(one) for one in value] if isinstance(value, list) else value


@settings(max_examples=400, deadline=None)
@given(objects(), st.sampled_from(["nulls", "empty-fields", "raw-forms"]))
def test_go_reads_the_same_before_and_after(obj: dict, name: str) -> None:
    before = argocd._encode(without_null_entries(obj), TYPES.of(obj), TYPES)
    obj.setdefault("newer", 1) if name == "raw-forms" else None
    computed.SETS[name].apply(obj, facts(), anything)
    obj.pop("newer", None)
    after = argocd._encode(without_null_entries(obj), TYPES.of(obj), TYPES)
    for one in (before, after):
        # An emptied map of these is taken away, which the API server does as well.
        one["metadata"] = {key: value for key, value in one["metadata"].items() if value}
    assert after == before


RULES = [rule for pack in packs.built_in() for rule in pack.rules if rule.computed]


@settings(max_examples=400, deadline=None)
@given(
    objects(),
    st.sampled_from([{}, {"default_flow_style": None}, {"default_flow_style": True}, {"default_style": '"'}]),
)
def test_the_text_never_hides_what_would_change(obj: dict, style: dict) -> None:
    obj["newer"] = 1
    text = yaml.safe_dump(obj, **style)
    cluster = rendered.Cluster(namespace="n", kube_version="1.26")
    quick = engine.normalise(text, policy.always(RULES), cluster)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._Index, "of", lambda self, look, render: self._rules)
        patch.setattr(engine._Index, "wanted", lambda self, look, render: self._rules)
        thorough = engine.normalise(text, policy.always(RULES), cluster)
    assert [(one.rule.id, one.path) for one in quick.changes] == [
        (one.rule.id, one.path) for one in thorough.changes
    ]
    assert quick.output == thorough.output


def test_kinds_that_are_left_out_by_name_hold_nothing_for_the_sets() -> None:
    """No keyed list but that of owners, and no quantity."""
    for key in builtin._table()["kinds"]:
        version, _, kind = key.rpartition("/")
        if kind not in computed._PLAIN:
            continue
        for release in ("1.29", "1.37"):
            table = builtin.types(release)
            name = table.of({"apiVersion": version, "kind": kind})
            fields = list(reachable(name, table)) if name else []
            assert not [one for one in fields if one.type.endswith("quantity")]
            assert {one.type for one in fields if one.merge_key} <= {"[]meta/v1.OwnerReference"}


def test_all_merge_keys_are_looked_for() -> None:
    found = {
        field.merge_key
        for release in ("1.29", "1.37")
        for name in builtin._table()["types"]
        for field in (builtin.types(release).struct(name) or {}).values()
    }
    assert found - {""} == set(computed._MERGE_KEYS)


def reachable(name: str, table: Types) -> object:
    seen, todo = set(), [name]
    while todo:
        one = todo.pop()
        struct = None if one in seen else table.struct(one)
        seen.add(one)
        for field in (struct or {}).values():
            yield field
            todo.append(field.type.lstrip("*[]{}"))


@pytest.mark.parametrize(
    ("version", "kind", "release", "is_known"),
    [
        ("apps/v1", "Deployment", "v1.31.4+k3s1", True),
        ("apps/v1", "Deployment", "", True),
        ("apps/v1", "Deployment", "1.12", True),
        ("resource.k8s.io/v1", "ResourceClaim", "1.33", False),
        ("resource.k8s.io/v1", "ResourceClaim", "1.34", True),
        ("resource.k8s.io/v1", "ResourceClaim", "1.99", True),
        ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "1.31", True),
        ("example.com/v1", "Deployment", "1.34", False),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "1.34", False),
    ],
)
def test_types_are_those_of_the_release(version: str, kind: str, release: str, is_known: bool) -> None:
    assert bool(builtin.types(release).of({"apiVersion": version, "kind": kind})) is is_known


def test_fields_come_and_stay_with_releases() -> None:
    pod = "core/v1.PodSpec"
    assert "hostnameOverride" not in builtin.types("1.29").struct(pod)
    assert "hostnameOverride" in builtin.types("1.34").struct(pod)
    assert builtin.types("1.29").struct("core/v1.Container")["env"] == builtin.Field(
        "[]core/v1.EnvVar", True, "name"
    )
