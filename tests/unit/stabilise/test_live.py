"""Live answers: what the operator allows is read, each object once; what is refused is never an empty answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_server import ApiServer

from becalm.config import looking
from becalm.derive.labels import Application
from becalm.errors import ConfigError, SourceError
from becalm.sources.cluster import Objects
from becalm.stabilise.live import Live
from becalm.stabilise.looking import Asked, Ran

APPLICATION = Application(name="shop", project="default", namespace="space", cluster="")
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "space", "managedFields": [{}]}, "data": {"a": "eA=="}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "far", "namespace": "other"}, "data": {}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
]  # fmt: skip


def ran(kind: str, namespace: str, name: str, api_version: str = "v1") -> Ran:
    asked = Asked(api_version=api_version, kind=kind, namespace=namespace, name=name)
    return Ran(asked=asked, place="templates/a.yaml:1", is_known=False)


def live(allowed: str, *, projects: str = "default") -> tuple[Live, ApiServer]:
    server = ApiServer(OBJECTS)

    def get(path: str) -> bytes | None:
        found = server.answer(path)
        return None if found is None else json.dumps(found).encode()

    chosen = looking.read(
        {"BECALM_LOOKUP": "live", "BECALM_LOOKUP_ALLOW": allowed, "BECALM_LOOKUP_PROJECTS": projects}
    )
    return Live(chosen, application=APPLICATION, objects=Objects(get)), server


@pytest.mark.parametrize("allowed", ["v1/Secret:space", "v1/Secret:*", "v1/Secret:@destination"])
def test_what_is_allowed_is_read_once(allowed: str) -> None:
    answers, server = live(allowed)
    there = ran("Secret", "space", "db")
    assert answers.learn([there])
    assert answers.answers[there.asked]["data"] == {"a": "eA=="}
    assert answers.answers[there.asked]["metadata"] == {"name": "db", "namespace": "space"}
    assert not answers.learn([there])
    assert server.asked == ["/api/v1", "/api/v1/namespaces/space/secrets/db"]
    missing = ran("Secret", "space", "none")
    assert not answers.learn([missing])
    assert answers.answers[missing.asked] == {}
    every = ran("Secret", "space", "")
    assert answers.learn([every])
    items: Any = answers.answers[every.asked]["items"]
    assert [one["metadata"]["name"] for one in items] == ["db"]


def test_kinds_without_namespaces_need_the_star() -> None:
    answers, _ = live("v1/Node:*")
    assert answers.learn([ran("Node", "", "n")])
    answers, server = live("v1/Node:space")
    with pytest.raises(ConfigError, match="is looked up, which is not allowed"):
        answers.learn([ran("Node", "space", "n")])
    assert all("nodes" not in path for path in server.asked)


@pytest.mark.parametrize(
    ("allowed", "asked"),
    [
        ("v1/Secret:space", ran("Secret", "other", "far")),
        ("v1/Secret:space", ran("Secret", "", "")),
        ("v1/Secret:@destination", ran("Secret", "other", "far")),
        ("v1/ConfigMap:space", ran("Secret", "space", "db")),
        ("apps/v1/Secret:space", ran("Secret", "space", "db")),
        ("", ran("Secret", "space", "db")),
    ],
    ids=("namespace", "all", "destination", "kind", "version", "nothing"),
)
def test_what_is_not_allowed_is_an_error_and_is_not_asked_for(allowed: str, asked: Ran) -> None:
    answers, server = live(allowed)
    with pytest.raises(ConfigError, match="which is not allowed"):
        answers.learn([asked])
    assert server.asked == []


@pytest.mark.parametrize("projects", ["", "other"])
def test_a_project_that_is_not_named_reads_nothing(projects: str) -> None:
    answers, server = live("v1/Secret:*", projects=projects)
    with pytest.raises(ConfigError, match="the project 'default' may not read the cluster"):
        answers.learn([ran("Secret", "space", "db")])
    assert server.asked == []


@pytest.mark.parametrize("name", ["..", "a/b", "a%2fb"])
def test_a_name_leads_nowhere_else(name: str) -> None:
    answers, _ = live("v1/Secret:*")
    with pytest.raises(SourceError, match="is no name of an object"):
        answers.learn([ran("Secret", "space", name)])


def test_an_api_version_that_is_not_there_is_an_error_as_with_helm() -> None:
    answers, _ = live("example.com/v1/Thing:*")
    with pytest.raises(SourceError, match=r"the cluster has no API version example\.com/v1"):
        answers.learn([ran("Thing", "space", "x", "example.com/v1")])
