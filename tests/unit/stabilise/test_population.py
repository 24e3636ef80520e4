"""Objects as an API server would give them to `lookup`."""

from __future__ import annotations

import pytest

from becalm.stabilise.looking import Asked
from becalm.stabilise.population import Population

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "db"},
    "data": {"a": "YQ==", "b": "old"},
    "stringData": {"b": "text"},
}


def made(kind: str, name: str, api_version: str = "v1", **metadata: str) -> dict:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}}


def find(objects: list[dict], kind: str, namespace: str, name: str, api_version: str = "v1") -> dict:
    asked = Asked(api_version=api_version, kind=kind, namespace=namespace, name=name)
    return Population(objects, namespace="shop").find(asked)


def test_a_secret_has_its_texts_in_base64_and_its_namespace() -> None:
    assert find([SECRET], "Secret", "shop", "db") == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "db", "namespace": "shop"},
        "data": {"a": "YQ==", "b": "dGV4dA=="},
    }
    assert SECRET["stringData"] == {"b": "text"}


@pytest.mark.parametrize(
    ("obj", "kind", "api_version", "namespace", "is_found"),
    [
        (made("ConfigMap", "x"), "ConfigMap", "v1", "shop", True),
        (made("ConfigMap", "x"), "ConfigMap", "v1", "other", False),
        (made("ConfigMap", "x"), "ConfigMap", "v1", "", False),
        (made("ConfigMap", "x", namespace="other"), "ConfigMap", "v1", "other", True),
        (made("ConfigMap", "x"), "Secret", "v1", "shop", False),
        (made("Namespace", "x"), "Namespace", "v1", "", True),
        # Helm does not look at the namespace of a kind that has none.
        (made("Namespace", "x"), "Namespace", "v1", "shop", True),
        (made("Deployment", "x", "apps/v1"), "Deployment", "apps/v1", "shop", True),
        (made("Deployment", "x", "apps/v1"), "Deployment", "other/v1", "shop", False),
        # Whether a custom kind has namespaces, only the cluster knows.
        (made("Wide", "x", "example.com/v1"), "Wide", "example.com/v1", "", True),
        (made("Wide", "x", "example.com/v1", namespace="shop"), "Wide", "example.com/v1", "", False),
        (made("Wide", "x", "example.com/v1"), "Wide", "example.com/v1", "other", False),
        (
            made("Role", "x", "rbac.authorization.k8s.io/v1"),
            "Role",
            "rbac.authorization.k8s.io/v1",
            "",
            False,
        ),
    ],
)
def test_an_object_is_found_where_helm_finds_it(obj, kind, api_version, namespace, is_found) -> None:
    assert bool(find([obj], kind, namespace, "x", api_version)) is is_found


def test_a_list_is_sorted_and_of_one_namespace_or_all() -> None:
    objects = [
        made("ConfigMap", "b"),
        made("ConfigMap", "a"),
        made("ConfigMap", "c", namespace="other"),
        SECRET,
    ]
    one, every = find(objects, "ConfigMap", "shop", ""), find(objects, "ConfigMap", "", "")
    assert one["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in one["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in every["items"]] == ["c", "a", "b"]
    assert find([], "ConfigMap", "shop", "")["items"] == []
