"""The model of Argo CD's comparison says what was observed of Argo CD itself, edit by edit.

Each row: what differs, then for the usual comparison of a built-in kind and of a custom resource, and for the
structured merge of both: `.` in sync, `x` out of sync, `E` the comparison fails, `-` not expressed.
"""

from __future__ import annotations

import argocd
import pytest


def deployment(**spec: object) -> dict:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def pod(**spec: object) -> dict:
    return deployment(template={"spec": spec})


def container(**fields: object) -> dict:
    return pod(containers=[{"name": "c", **fields}])


def custom(**spec: object) -> dict:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


def service(**spec: object) -> dict:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}


def kind(version: str, name: str, **fields: object) -> dict:
    return {"apiVersion": version, "kind": name, "metadata": {"name": "a"}, **fields}


def claims(*templates: dict) -> dict:
    return kind("apps/v1", "StatefulSet", spec={"volumeClaimTemplates": list(templates)})


RBAC, ADMISSION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
CONFIG = ("v1", "ConfigMap")
SHORT_CLAIM = {"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
LIVE_CLAIM = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "d"},
    "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}, "status": {"phase": "Pending"},
}  # fmt: skip
TYPED_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    **SHORT_CLAIM,
    "status": {"phase": "Pending"},
}

# row: (title, built-in desired, live, legacy with last-applied, merged), and the same for a custom resource
BUILT_IN = [
    ("live-only map field", deployment(paused=True), deployment(paused=True, minReadySeconds=5), ".", "."),
    ("live-only item in a merge list", container(), pod(containers=[{"name": "x"}, {"name": "c"}, {"name": "y"}]), ".", "."),
    ("live-only item in an atomic list", container(args=["a"]), container(args=["a", "b"]), "x", "x"),
    ("order of an atomic list", container(args=["a", "b"]), container(args=["b", "a"]), "x", "x"),
    ("order of a merge list", container(env=[{"name": "A"}, {"name": "B"}]), container(env=[{"name": "B"}, {"name": "A"}]), "x", "x"),
    ("atomic list that is not desired", container(), container(args=["a"]), ".", "."),
    ("value changed by a controller", deployment(paused=True), deployment(paused=False), "x", "x"),
    ("unknown field", deployment(unknown=1), deployment(), "x", "E"),
    ("mistyped field", deployment(replicas="2"), deployment(replicas=2), "x", "E"),
    ("quantity", container(resources={"limits": {"cpu": "1000m"}}), container(resources={"limits": {"cpu": "1"}}), ".", "."),
    ("quantity as a number", container(resources={"limits": {"cpu": 1}}), container(resources={"limits": {"cpu": "1"}}), ".", "."),
    ("quantity and an unknown field", container(newer=1, resources={"limits": {"cpu": "1000m"}}), container(newer=1, resources={"limits": {"cpu": "1"}}), "x", "E"),
    ("null, live absent", pod(nodeSelector=None, dnsPolicy="Default"), pod(dnsPolicy="Default"), ".", "."),
    ("null, live has a value", pod(tolerations=None), pod(tolerations=[{"key": "k"}]), "x", "."),
    ("empty list, live has a value", pod(tolerations=[]), pod(tolerations=[{"key": "k"}]), "x", "."),
    ("empty list, live absent", pod(tolerations=[], dnsPolicy="Default"), pod(dnsPolicy="Default"), ".", "."),
    ("empty struct behind a pointer, live absent", pod(affinity={}), pod(), "x", "x"),
    ("empty struct, live richer", pod(affinity={}), pod(affinity={"nodeAffinity": {}}), ".", "."),
    ("number or text", service(ports=[{"port": 80, "targetPort": "80"}]), service(ports=[{"port": 80, "targetPort": 80}]), "x", "x"),
    ("empty variable", container(env=[{"name": "A", "value": ""}]), container(env=[{"name": "A"}]), ".", "."),
    ("variable that is there twice, live kept the last", container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]), container(env=[{"name": "A", "value": "2"}]), "-", "E"),
    ("empty caBundle, live injected", kind(ADMISSION, "MutatingWebhookConfiguration", webhooks=[{"name": "w", "clientConfig": {"caBundle": ""}}]), kind(ADMISSION, "MutatingWebhookConfiguration", webhooks=[{"name": "w", "clientConfig": {"caBundle": "LS0t"}}]), "x", "."),
    ("empty clusterIP", service(clusterIP=""), service(clusterIP="10.0.0.1"), "x", "."),
    ("null replicas under a scaler", deployment(replicas=None, paused=True), deployment(replicas=5, paused=True), "x", "."),
    ("empty storage class", kind("v1", "PersistentVolumeClaim", spec={"storageClassName": ""}), kind("v1", "PersistentVolumeClaim", spec={"storageClassName": "s"}), "x", "x"),
    ("aggregated role with empty rules", kind(RBAC, "ClusterRole", aggregationRule={}, rules=[]), kind(RBAC, "ClusterRole", aggregationRule={}, rules=[{"verbs": ["get"]}]), "x", "x"),
    ("own null time", kind(*CONFIG) | {"metadata": {"name": "a", "creationTimestamp": None}}, kind(*CONFIG) | {"metadata": {"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z"}}, ".", "."),
    ("null time of a template", deployment(template={"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}}), deployment(template={"metadata": {"labels": {"a": "b"}}}), ".", "."),
    ("stringData", kind("v1", "Secret", stringData={"a": "b"}), kind("v1", "Secret", data={"a": "Yg=="}), ".", "."),
    ("null in a Secret", kind("v1", "Secret", data={"a": None}), kind("v1", "Secret"), "x", "x"),
    ("null in a ConfigMap", kind(*CONFIG, data={"a": None}), kind(*CONFIG), "x", "x"),
    ("value of a ConfigMap that is no text", kind(*CONFIG, data={"a": 1}), kind(*CONFIG, data={"a": "1"}), "x", "E"),
    ("metrics in another order", kind("autoscaling/v2", "HorizontalPodAutoscaler", spec={"metrics": [{"type": "A"}, {"type": "B"}]}), kind("autoscaling/v2", "HorizontalPodAutoscaler", spec={"metrics": [{"type": "B"}, {"type": "A"}]}), "x", "x"),
    ("default inside an atomic list", kind(RBAC, "RoleBinding", subjects=[{"kind": "User", "name": "u"}]), kind(RBAC, "RoleBinding", subjects=[{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]), ".", "."),
    ("default of a probe", container(livenessProbe={"httpGet": {"path": "/"}}), container(livenessProbe={"httpGet": {"path": "/", "scheme": "HTTP"}, "periodSeconds": 10}), ".", "."),
    ("claim template without its type", claims(SHORT_CLAIM), claims(LIVE_CLAIM), ".", "x"),
    ("claim template with its type and status", claims(TYPED_CLAIM), claims(LIVE_CLAIM), ".", "."),
    ("divisor of a reference", container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]), container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}]), ".", "x"),
    ("status", deployment(paused=True) | {"status": {"replicas": 1}}, deployment(paused=True) | {"status": {"replicas": 2}}, ".", "."),
]  # fmt: skip
CUSTOM = [
    ("live-only map field", custom(a=1), custom(a=1, b=2), ".", "."),
    ("live-only item in a list", custom(a=[{"x": 1}]), custom(a=[{"x": 1}, {"x": 2}]), "x", "x"),
    ("live-only field in a list", custom(a=[{"x": 1}]), custom(a=[{"x": 1, "y": 2}]), ".", "x"),
    ("order of a list", custom(a=[1, 2]), custom(a=[2, 1]), "x", "x"),
    ("value changed by a controller", custom(a=1), custom(a=2), "x", "x"),
    ("field dropped by the server", custom(a=1, b=2), custom(a=1), "x", "x"),
    ("quantity", custom(cpu="1000m"), custom(cpu="1"), "x", "x"),
    ("null, live absent", custom(a=None, b=1), custom(b=1), ".", "x"),
    ("null, live has a value", custom(a=None, b=1), custom(a=1, b=1), ".", "x"),
    ("null in a list", custom(a=[{"x": 1, "y": None}]), custom(a=[{"x": 1}]), ".", "x"),
    ("null in a list with defaults", custom(a=[{"x": 1, "y": None}]), custom(a=[{"x": 1, "z": 3}]), "x", "x"),
    ("empty map, live absent", custom(a={}, b=1), custom(b=1), "x", "x"),
    ("empty map, live richer", custom(a={}), custom(a={"b": 1}), ".", "."),
    ("empty list, live filled", custom(a=[]), custom(a=[1]), "x", "x"),
    ("false, live absent", custom(a=False, b=1), custom(b=1), "x", "x"),
    ("empty labels", custom() | {"metadata": {"name": "a", "labels": {}}}, custom(), "x", "x"),
    ("null time of a template", custom(template={"metadata": {"creationTimestamp": None, "a": 1}}), custom(template={"metadata": {"a": 1}}), ".", "x"),
    ("preserveUnknownFields of a definition", kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec={"preserveUnknownFields": False, "group": "g"}), kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec={"group": "g"}), "x", "x"),
]  # fmt: skip


def says(compare: object, *arguments: object) -> str:
    try:
        return "x" if compare(*arguments) else "."
    except argocd.ComparisonError:
        return "E"


@pytest.mark.parametrize(
    ("title", "desired", "live", "usual", "merge"),
    BUILT_IN,
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_built_in_kinds(title: str, desired: dict, live: dict, usual: str, merge: str) -> None:
    if usual != "-":
        assert says(argocd.legacy, desired, live, desired) == usual
    assert says(argocd.merged, desired, live) == merge


@pytest.mark.parametrize(
    ("title", "desired", "live", "usual", "merge"),
    CUSTOM,
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_custom_resources(title: str, desired: dict, live: dict, usual: str, merge: str) -> None:
    assert says(argocd.legacy, desired, live, desired) == usual
    assert says(argocd.merged, desired, live) == merge


def test_without_last_applied_nothing_is_taken_away() -> None:
    for desired, live in (
        (pod(tolerations=[]), pod(tolerations=[{"key": "k"}])),
        (service(clusterIP=""), service(clusterIP="10.0.0.1")),
    ):
        assert argocd.legacy(desired, live, desired)
        assert not argocd.legacy(desired, live)


def test_a_field_that_was_applied_and_left_out_shows_until_it_is_gone() -> None:
    applied, desired = deployment(replicas=2, paused=True), deployment(paused=True)
    assert argocd.legacy(desired, deployment(replicas=5, paused=True), applied)
    assert not argocd.legacy(desired, deployment(replicas=1, paused=True), desired)
    live = deployment(replicas=5, paused=True)
    assert argocd.merged(desired, live, [("spec", "replicas")])
    assert not argocd.merged(desired, live)


def test_what_is_not_in_the_cluster_is_out_of_sync() -> None:
    assert argocd.legacy(custom(), None)
    assert argocd.merged(custom(), None)


def test_the_strategy_keeps_no_other_keys() -> None:
    desired = deployment(strategy={"type": "Recreate"})
    live = deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})
    assert argocd.legacy(desired, live, desired)
    assert not argocd.legacy(deployment(paused=True), live | {"spec": {**live["spec"], "paused": True}})
