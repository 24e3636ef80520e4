"""The model of Argo CD's comparison is pinned to what was observed of Argo CD, edit by edit.

Cells are those of the table, in its order: L built-in, L custom, M built-in, M custom. `.` is silent, `x` drifts,
`E` fails, `-` is not expressed. `la` and `no` limit a row to an object with or without last-applied, which then
is what is desired; any other row holds for both.
"""

from __future__ import annotations

import argocd
import pytest

RBAC, ADMISSION, CORE = "rbac.authorization.k8s.io", "admissionregistration.k8s.io/v1", "v1"


def thing(version: str, kind: str, **fields: object) -> dict:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **fields}


def deployment(**spec: object) -> dict:
    return thing("apps/v1", "Deployment", spec=spec)


def pods(**spec: object) -> dict:
    return deployment(template={"spec": spec})


def box(**fields: object) -> dict:
    return pods(containers=[{"name": "c", "image": "i:1", **fields}])


def cr(**spec: object) -> dict:
    return thing("example.com/v1", "Thing", spec=spec)


def crd(**spec: object) -> dict:
    return thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec=spec)


def service(**spec: object) -> dict:
    return thing(CORE, "Service", spec=spec)


def meta(obj: dict, **metadata: object) -> dict:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def hook(**client: object) -> dict:
    return thing(ADMISSION, "MutatingWebhookConfiguration", webhooks=[{"name": "w", "clientConfig": client}])


def role(**fields: object) -> dict:
    return thing(f"{RBAC}/v1", "ClusterRole", **fields)


def claim(**spec: object) -> dict:
    return thing(CORE, "PersistentVolumeClaim", spec=spec)


def hpa(*metrics: str) -> dict:
    spec = {"metrics": [{"type": one} for one in metrics]}
    return thing("autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)


def cpu(text: object) -> dict:
    return {"limits": {"cpu": text}}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
ITEM = {"type": "object", "properties": {"name": TEXT, "value": TEXT}}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "x": TEXT,
                "n": NUMBER,
                "b": {"type": "boolean"},
                "plain": {"type": "array", "items": ITEM},
                "keyed": {
                    "type": "array",
                    "items": ITEM,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
                "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                "open": {"type": "object", "additionalProperties": TEXT},
                "whole": {
                    "type": "object",
                    "additionalProperties": TEXT,
                    "x-kubernetes-map-type": "atomic",
                },
            },
        }
    },
}
A, B = {"name": "A"}, {"name": "B"}
A1, A2 = {"name": "A", "value": "1"}, {"name": "A", "value": "2"}
ONLY = (None, None)
EMPTY = {"null": None, "map": {}, "list": [], "text": "", "zero": 0, "false": False}
SIDECAR, MAIN = {"name": "x", "image": "j:1"}, {"name": "c", "image": "i:1"}
INJECTED = pods(containers=[SIDECAR, MAIN, {**SIDECAR, "name": "y"}])

# Row of the table, (desired, live) built-in, the same custom, cells.
ROWS = [
    ("live-only map field", (deployment(paused=True), deployment(paused=True, minReadySeconds=5)), (cr(x="1"), cr(x="1", n=2)), "...."),
    ("live-only map field/in an atomic map", (pods(nodeSelector={"a": "1"}), pods(nodeSelector={"a": "1", "b": "2"})), (cr(whole={"a": "1"}), cr(whole={"a": "1", "b": "2"})), "..xx"),
    ("live-only map field/in an atomic list", ONLY, (cr(plain=[A]), cr(plain=[A1])), "-.-x"),
    ("live-only item in merge list", (box(), INJECTED), (cr(keyed=[A]), cr(keyed=[B, A])), ".x.."),
    ("live-only item in merge list/set", (meta(box(), finalizers=["b"]), meta(box(), finalizers=["a", "b", "c"])), (cr(set=["b"]), cr(set=["a", "b"])), ".x.."),
    ("live-only item in atomic list", (box(args=["a"]), box(args=["a", "b"])), (cr(plain=[A]), cr(plain=[A, B])), "xxxx"),
    ("live-only field in atomic list", (pods(tolerations=[{"key": "k"}]), pods(tolerations=[{"key": "k", "effect": "NoSchedule"}])), (cr(plain=[A]), cr(plain=[A1])), "x.xx"),
    ("live-only field in atomic list/a default", (thing("networking.k8s.io/v1", "NetworkPolicy", spec={"ingress": [{"ports": [{"port": 80}]}]}), thing("networking.k8s.io/v1", "NetworkPolicy", spec={"ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]})), ONLY, ".-.-"),
    ("order of a list differs/merge list", (box(env=[A, B]), box(env=[B, A])), (cr(keyed=[A, B]), cr(keyed=[B, A])), "xxxx"),
    ("order of a list differs/atomic list", (box(args=["a", "b"]), box(args=["b", "a"])), (cr(plain=[A, B]), cr(plain=[B, A])), "xxxx"),
    ("order of a list differs/set", (meta(box(), finalizers=["b", "a"]), meta(box(), finalizers=["a", "b"])), (cr(set=["b", "a"]), cr(set=["a", "b"])), "xxxx"),
    ("value changed", (deployment(replicas=1), deployment(replicas=2)), (cr(x="1"), cr(x="2")), "xxxx"),
    ("field dropped by server", (pods(hostname="a"), pods()), (cr(x="1", n=2), cr(x="1")), "xxxx"),
    ("unknown field", (deployment(unknown=1), deployment()), (cr(unknown=1), cr()), "xxEE"),
    ("quantity spelling", (box(resources=cpu("1000m")), box(resources=cpu("1"))), (cr(x="1000m"), cr(x="1")), ".x.x"),
    ("quantity spelling/number", (box(resources=cpu(1)), box(resources=cpu("1"))), ONLY, ".-.-"),
    ("quantity spelling with an unknown field", (box(newer=1, resources=cpu("1000m")), box(newer=1, resources=cpu("1"))), (cr(newer=1, x="1000m"), cr(newer=1, x="1")), "xxEE"),
    *((f"{word} on an omitempty field, live absent", (pods(**{field: EMPTY[word], "hostname": "h"}), pods(hostname="h")), (cr(**{name: EMPTY[word]}, n=1), cr(n=1)), cells)
      for word, field, name, cells in (("null", "nodeSelector", "x", "...x"), ("map", "nodeSelector", "open", ".x.x"), ("list", "tolerations", "plain", ".x.x"), ("text", "nodeName", "x", ".x.x"), ("false", "hostNetwork", "b", ".x.x"))),
    ("zero on an omitempty field, live absent", (deployment(minReadySeconds=0, paused=True), deployment(paused=True)), (cr(n=0), cr()), ".x.x"),
    *((f"{word} on an omitempty field, live has a value, LA", (pods(**{field: EMPTY[word]}), pods(**{field: value})), (cr(**{name: EMPTY[word]}), cr(**{name: custom})), cells)
      for word, field, value, name, custom, cells in (
          ("null", "nodeName", "n", "x", "1", "x..x"), ("map", "nodeSelector", {"a": "b"}, "open", {"a": "b"}, "x..."), ("list", "tolerations", [{"key": "k"}], "plain", [A], "xx.x"),
          ("text", "nodeName", "n", "x", "1", "xx.x"), ("false", "hostNetwork", True, "b", True, "xx.x"))),
    ("zero on an omitempty field, live has a value, LA", (deployment(minReadySeconds=0), deployment(minReadySeconds=5)), (cr(n=0), cr(n=5)), "xx.x"),
    ("null on an omitempty map, live has a value, LA", (pods(nodeSelector=None), pods(nodeSelector={"a": "b"})), (cr(open=None), cr(open={"a": "b"})), "x..."),
    *((f"{word} on an omitempty field, live has a value, no LA", (pods(**{field: EMPTY[word]}), pods(**{field: value})), (cr(**{name: EMPTY[word]}), cr(**{name: custom})), cells)
      for word, field, value, name, custom, cells in (
          ("null", "nodeName", "n", "x", "1", "...x"), ("map", "nodeSelector", {"a": "b"}, "open", {"a": "b"}, "...."), ("list", "tolerations", [{"key": "k"}], "plain", [A], ".x.x"),
          ("text", "nodeName", "n", "x", "1", ".x.x"), ("false", "hostNetwork", True, "b", True, ".x.x"))),
    ("zero on an omitempty field, live has a value, no LA", (deployment(minReadySeconds=0), deployment(minReadySeconds=5)), (cr(n=0), cr(n=5)), ".x.x"),
    ("pointer set to zero, live absent/struct", (pods(affinity={}, hostname="h"), pods(hostname="h")), (cr(open={}, n=1), cr(n=1)), "xxxx"),
    ("pointer set to zero, live absent/bool", (box(securityContext={"privileged": False, "runAsUser": 1}), box(securityContext={"runAsUser": 1})), ONLY, "x-x-"),
    ("empty struct, live richer", (pods(affinity={}), pods(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}})), (cr(open={}), cr(open={"a": "b"})), "...."),
    ("empty struct, live richer/null instead, LA", (pods(affinity=None), pods(affinity={"nodeAffinity": {}})), ONLY, "x-.-"),
    ("int vs numeric string (IntOrString)", (service(ports=[{"port": 80, "targetPort": "80"}]), service(ports=[{"port": 80, "targetPort": 80}])), ONLY, "x-x-"),
    ("string in an int field", (deployment(replicas="2"), deployment(replicas=2)), (cr(n="2"), cr(n=2)), "xxEE"),
    ("non-string label", (meta(deployment(), labels={"a": 1}), meta(deployment(), labels={"a": "1"})), (meta(cr(), labels={"a": 1}), meta(cr(), labels={"a": "1"})), "xxEE"),
    ("1.0 vs 1", (deployment(replicas=1.0), deployment(replicas=1)), (cr(n=1.0), cr(n=1)), "...."),
    ("empty env value vs absent", (box(env=[{**A, "value": ""}]), box(env=[A])), (cr(plain=[{**A, "value": ""}]), cr(plain=[A])), ".x.x"),
    ("duplicate key/live kept both", (box(env=[A1, A2]), box(env=[A1, A2])), (cr(keyed=[A1, A2]), cr(keyed=[A1, A2])), ".-EE"),
    ("duplicate key/live kept the first", (box(env=[A1, A2]), box(env=[A1])), (cr(keyed=[A1, A2]), cr(keyed=[A1])), ".xEE"),
    ("duplicate key/live kept the last", (box(env=[A1, A2]), box(env=[A2])), (cr(keyed=[A1, A2]), cr(keyed=[A2])), "xxEE"),
    ("duplicate key/set item", (meta(box(), finalizers=["a", "a"]), meta(box(), finalizers=["a", "a"])), (cr(set=["a", "a"]), cr(set=["a", "a"])), "--EE"),
    ("caBundle placeholder, LA", (hook(caBundle=""), hook(caBundle="LS0t")), (crd(ca={"caBundle": ""}), crd(ca={"caBundle": "LS0t"})), "xx.x"),
    ("empty clusterIP, LA", (service(clusterIP=""), service(clusterIP="10.0.0.1")), ONLY, "x-.-"),
    ("empty loadBalancerIP, LA", (service(loadBalancerIP=""), service(loadBalancerIP="10.0.0.1")), ONLY, "x-.-"),
    ("replicas null while HPA scales, LA", (deployment(replicas=None), deployment(replicas=5)), (cr(n=None), cr(n=5)), "x..x"),
    ("storageClassName empty vs defaulted", (claim(storageClassName=""), claim(storageClassName="s")), ONLY, "x-x-"),
    ("aggregated ClusterRole with empty rules", (role(aggregationRule={}, rules=[]), role(aggregationRule={}, rules=[{"verbs": ["get"]}])), ONLY, "x-x-"),
    *((f"CRD {name} dropped by server", ONLY, (crd(group="g", **{name: value}), crd(group="g")), "-x-x") for name, value in (("preserveUnknownFields", False), ("subresources", {}), ("additionalPrinterColumns", []))),
    ("status", (deployment() | {"status": {"replicas": 1}}, deployment()), (crd() | {"status": {"a": 1}}, crd() | {"status": {"a": 2}}), "...."),
    ("metadata.creationTimestamp null", (meta(deployment(), creationTimestamp=None), meta(deployment(), creationTimestamp="2024-01-01T00:00:00Z")), (meta(cr(), creationTimestamp=None), meta(cr(), creationTimestamp="2024-01-01T00:00:00Z")), "...."),
    ("nested creationTimestamp null", (deployment(template={"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}}), deployment(template={"metadata": {"labels": {"a": "b"}}})), (cr(open={"creationTimestamp": None, "a": "b"}), cr(open={"a": "b"})), "...x"),
    ("Secret stringData", (thing(CORE, "Secret", stringData={"a": "b"}), thing(CORE, "Secret", data={"a": "Yg=="})), ONLY, ".-.-"),
    ("Secret base64 line breaks", (thing(CORE, "Secret", data={"a": "Y\nmM=\n"}), thing(CORE, "Secret", data={"a": "YmM="})), ONLY, ".-.-"),
    ("Secret data null", (thing(CORE, "Secret", data={"k": None}), thing(CORE, "Secret")), ONLY, "x-x-"),
    ("ConfigMap data null", (thing(CORE, "ConfigMap", data={"k": None}), thing(CORE, "ConfigMap")), ONLY, "x-x-"),
    ("label null", (meta(deployment(), labels={"k": None, "a": "b"}), meta(deployment(), labels={"a": "b"})), (meta(cr(), labels={"k": None, "a": "b"}), meta(cr(), labels={"a": "b"})), "x.xx"),
    ("annotation null", (meta(deployment(), annotations={"k": None, "a": "b"}), meta(deployment(), annotations={"a": "b"})), (meta(cr(), annotations={"k": None, "a": "b"}), meta(cr(), annotations={"a": "b"})), "x.xx"),
    ("ConfigMap non-string value", (thing(CORE, "ConfigMap", data={"k": 1}), thing(CORE, "ConfigMap", data={"k": "1"})), ONLY, "x-E-"),
    ("HPA metrics reordered", (hpa("Resource", "Pods"), hpa("Pods", "Resource")), ONLY, "x-x-"),
    ("default/RBAC subject", (thing(f"{RBAC}/v1", "RoleBinding", subjects=[{"kind": "User", "name": "u"}]), thing(f"{RBAC}/v1", "RoleBinding", subjects=[{"kind": "User", "name": "u", "apiGroup": RBAC}])), ONLY, ".-.-"),
    ("default/probe", (box(livenessProbe={"httpGet": {"port": 1}}), box(livenessProbe={"httpGet": {"port": 1, "path": "/", "scheme": "HTTP"}, "periodSeconds": 10})), ONLY, ".-.-"),
    ("default/port", (box(ports=[{"containerPort": 80}]), box(ports=[{"containerPort": 80, "protocol": "TCP"}])), ONLY, ".-.-"),
    ("default/volume", (pods(volumes=[{"name": "v", "secret": {"secretName": "s"}}]), pods(volumes=[{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}])), ONLY, ".-.-"),
    ("cron whitespace", (thing("batch/v1", "CronJob", spec={"schedule": "*  * * * *"}), thing("batch/v1", "CronJob", spec={"schedule": "* * * * *"})), (cr(x="a  b"), cr(x="a b")), "xxxx"),
]  # fmt: skip
CELLS = [
    pytest.param(column, row[1 + column % 2], cell, row[0].rpartition(", ")[2], id=f"{row[0]}-{name}")
    for row in ROWS
    for column, (cell, name) in enumerate(
        zip(row[3], ("L built-in", "L custom", "M built-in", "M custom"), strict=True)
    )
    if cell != "-"
]


def says(column: int, desired: dict, live: dict, applied: dict | None) -> str:
    schema = SCHEMA if desired["kind"] == "Thing" else None
    try:
        drifts = (
            argocd.legacy(desired, live, applied)
            if column < 2
            else argocd.merged(desired, live, schema=schema)
        )
    except argocd.ComparisonError:
        return "E"
    return "x" if drifts else "."


@pytest.mark.parametrize(("column", "sides", "cell", "limit"), CELLS)
def test_table_5_5(column: int, sides: tuple, cell: str, limit: str) -> None:
    desired, live = sides
    found = {
        says(column, desired, live, applied)
        for applied, name in ((desired, "LA"), (None, "no LA"))
        if limit not in ("LA", "no LA") or limit == name
    }
    assert found == {cell}


# --- mode L beyond the table


def l(desired: dict, live: dict, *applied: dict) -> bool:  # noqa: E743  # the name of the mode
    return argocd.legacy(desired, live, *applied)


CLAIM = {"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
TYPED = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **CLAIM}
LIVE_CLAIM = {**TYPED, "spec": {**CLAIM["spec"], "volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}


def stateful(claim: dict) -> dict:
    return thing("apps/v1", "StatefulSet", spec={"volumeClaimTemplates": [claim]})


def test_missing_live_is_out_of_sync() -> None:
    assert argocd.legacy(cr(), None)
    assert argocd.merged(cr(), None)


def test_l_namespace_and_empty_annotations_of_desired_do_not_count() -> None:
    assert not l(meta(cr(), namespace="n", annotations={}), cr())
    assert not l(meta(cr(), annotations=None), cr())


@pytest.mark.parametrize(
    "field", [{"labels": {}}, {"finalizers": []}, {"ownerReferences": []}, {"generateName": ""}], ids=str
)
def test_l_empty_metadata_of_custom_resources_drifts(field: dict) -> None:
    assert l(meta(cr(), **field), cr())


def test_l_removal_shows_only_with_last_applied() -> None:
    desired, live = deployment(paused=True), deployment(paused=True, minReadySeconds=5)
    assert l(desired, live, deployment(paused=True, minReadySeconds=3))
    assert not l(desired, live, desired)
    assert not l(desired, live)
    assert l(cr(), cr(x="2"), cr(x="1"))
    assert not l(cr(), cr(x="2"))


def test_l_removed_item_of_a_merge_list_shows() -> None:
    assert l(box(env=[A]), box(env=[A, B]), box(env=[A, B]))
    assert not l(box(env=[A]), box(env=[A, B]), box(env=[A]))
    assert l(
        meta(box(), finalizers=["a"]), meta(box(), finalizers=["a", "b"]), meta(box(), finalizers=["a", "b"])
    )


def test_l_removed_annotation_shows() -> None:
    applied = meta(cr(), annotations={"a": "1"})
    assert l(cr(), meta(cr(), annotations={"a": "1"}), applied)


def test_l_atomic_list_that_is_absent_from_desired_is_ignored() -> None:
    assert not l(box(), box(args=["a"]))


def test_l_selector_of_a_disruption_budget_is_compared_as_a_unit() -> None:
    def budget(**labels: str) -> dict:
        return thing("policy/v1", "PodDisruptionBudget", spec={"selector": {"matchLabels": labels}})

    assert l(budget(a="1"), budget(a="1", b="2"))


def test_l_strategy_given_in_part_resets_the_rest() -> None:
    live = deployment(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%"}})
    assert l(deployment(strategy={"type": "RollingUpdate"}), live)
    assert not l(deployment(), live)


def test_l_volumes_keep_only_the_source_that_is_desired() -> None:
    one = pods(volumes=[{"name": "v", "emptyDir": {}}])
    assert l(one, pods(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]))
    assert not l(one, pods(volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}]))


def test_l_defaults_in_claim_templates_are_cut_and_types_that_only_desired_has_drift() -> None:
    assert not l(stateful(CLAIM), stateful(LIVE_CLAIM))
    assert not l(stateful(TYPED), stateful(LIVE_CLAIM))
    assert l(stateful(TYPED), stateful(CLAIM))


def test_m_claim_templates_need_their_type_and_drift_by_a_storage_class() -> None:
    classy = {**LIVE_CLAIM, "spec": {**LIVE_CLAIM["spec"], "storageClassName": "s"}}
    assert argocd.merged(stateful(CLAIM), stateful(LIVE_CLAIM))
    assert not argocd.merged(stateful(TYPED), stateful(LIVE_CLAIM))
    assert argocd.merged(stateful(TYPED), stateful(classy))


def test_l_null_in_a_list_of_a_custom_resource_drifts_if_live_has_a_default_there() -> None:
    assert not l(cr(list=[{"a": 1, "x": None}]), cr(list=[{"a": 1}]))
    assert l(cr(list=[{"a": 1, "x": None}]), cr(list=[{"a": 1, "d": 2}]))


def test_l_one_difference_in_a_list_exposes_its_defaults() -> None:
    assert not l(cr(list=[{"a": 1}]), cr(list=[{"a": 1, "d": 2}]))
    assert l(cr(list=[{"a": 1}, {"a": 2}]), cr(list=[{"a": 1, "d": 2}]))


def test_l_what_is_new_in_desired_and_there_already_is_silent() -> None:
    assert not l(cr(x="1", n=2), cr(x="1", n=2), cr(x="1"))


# --- mode M beyond the table


def test_m_null_against_a_map_is_silent_and_against_a_list_drifts() -> None:
    assert not argocd.merged(cr(open=None), cr(open={"a": "b"}), schema=SCHEMA)
    assert argocd.merged(cr(plain=None), cr(plain=[A]), schema=SCHEMA)


def test_m_missing_key_of_a_list_map_fails() -> None:
    with pytest.raises(argocd.ComparisonError):
        argocd.merged(cr(keyed=[{"value": "1"}]), cr(), schema=SCHEMA)


def test_m_without_a_schema_lists_are_atomic_and_maps_are_not() -> None:
    assert argocd.merged(cr(keyed=[A]), cr(keyed=[A, B]))
    assert not argocd.merged(cr(open={"a": {"b": 1}}), cr(open={"a": {"b": 1, "c": 2}}))


def test_m_ports_of_one_number_differ_by_protocol() -> None:
    both = [{"port": 53, "name": "t"}, {"port": 53, "name": "u", "protocol": "UDP"}]
    live = [{**both[0], "protocol": "TCP", "targetPort": 53}, {**both[1], "targetPort": 53}]
    assert not argocd.merged(service(ports=both), service(ports=live))


@pytest.mark.parametrize(
    ("desired", "live", "path"),
    [
        (deployment(paused=True), deployment(paused=True, minReadySeconds=5), ("spec", "minReadySeconds")),
        (cr(x="1"), cr(x="1", n=2), ("spec", "n")),
        (cr(keyed=[A]), cr(keyed=[A, B]), ("spec", "keyed", ("B",))),
        (cr(set=["a"]), cr(set=["a", "b"]), ("spec", "set", ("b",))),
        (box(), INJECTED, ("spec", "template", "spec", "containers", ("x",))),
        (
            box(env=[A]),
            box(env=[A1]),
            (*("spec", "template", "spec", "containers"), ("c",), "env", ("A",), "value"),
        ),
    ],
    ids=["field", "custom field", "list-map item", "set item", "container", "field of an item"],
)
def test_m_removal_shows_only_for_what_is_owned(desired: dict, live: dict, path: tuple) -> None:
    schema = SCHEMA if desired["kind"] == "Thing" else None
    assert argocd.merged(desired, live, [path], schema=schema)
    assert not argocd.merged(desired, live, schema=schema)
    assert not argocd.merged(live, live, [path], schema=schema)


@pytest.mark.parametrize(
    ("short", "long", "drifts"),
    [
        ({"fieldRef": {"fieldPath": "a"}}, {"fieldRef": {"fieldPath": "a", "apiVersion": "v1"}}, False),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}, True),
        ({"secretKeyRef": {"name": "a", "key": "b"}}, {"secretKeyRef": {"name": "a", "key": "b", "optional": False}}, True),
    ],
    ids=["default", "divisor", "optional"],
)  # fmt: skip
def test_m_atomic_structs_drift_by_what_no_default_fills(short: dict, long: dict, *, drifts: bool) -> None:
    desired, live = (box(env=[{"name": "A", "valueFrom": one}]) for one in (short, long))
    assert argocd.merged(desired, live) == drifts
    assert not l(desired, live)
