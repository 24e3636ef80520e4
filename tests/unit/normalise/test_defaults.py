"""Defaulting against what the API server's own library does, and the laws of filling less than everything."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from becalm.errors import ManifestError
from becalm.normalise import defaults

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "normalise" / "defaults.json").read_text())
NUMBERS = range(len(CASES))


def at(value: object, path: tuple) -> object:
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("number", NUMBERS)
def test_everything_is_filled_as_the_api_server_fills_it(number: int) -> None:
    case = copy.deepcopy(CASES[number])
    defaults.fill(case["object"], case["schema"], everywhere=True)
    defaults.prune_nulls(case["object"], case["schema"])
    assert case["object"] == case["result"]


@pytest.mark.parametrize("number", NUMBERS)
def test_filling_twice_is_filling_once(number: int) -> None:
    for everywhere in (False, True):
        case = copy.deepcopy(CASES[number])
        defaults.fill(case["object"], case["schema"], everywhere=everywhere)
        once = copy.deepcopy(case["object"])
        assert defaults.fill(case["object"], case["schema"], everywhere=everywhere) == []
        assert case["object"] == once


@pytest.mark.parametrize("number", NUMBERS)
def test_by_default_only_lists_and_atomic_maps_are_filled(number: int) -> None:
    case, whole = copy.deepcopy(CASES[number]), copy.deepcopy(CASES[number])
    before = copy.deepcopy(case["object"])
    added = defaults.fill(case["object"], case["schema"])
    defaults.fill(whole["object"], whole["schema"], everywhere=True)
    for path in added:
        parents = [_schema_at(case["schema"], path[:length]) for length in range(len(path))]
        in_atomic = any(parent.get("x-kubernetes-map-type") == "atomic" for parent in parents)
        assert in_atomic or any(isinstance(step, int) for step in path)
        # What is added is what would have been added anyway.
        assert at(case["object"], path) == at(whole["object"], path)
        _remove(case["object"], path, before)
    assert case["object"] == before


def _schema_at(schema: dict, path: tuple) -> dict:
    for step in path:
        if isinstance(step, int):
            schema = schema["items"]
        else:
            schema = schema.get("properties", {}).get(step) or schema["additionalProperties"]
    return schema


def _remove(value: object, path: tuple, before: object) -> None:
    """Take away what was added; where null stood before, put it back."""
    holder = at(value, path[:-1])
    try:
        holder[path[-1]] = at(before, path)
    except (KeyError, IndexError, TypeError):
        del holder[path[-1]]


def test_the_vectors_cover_what_they_should() -> None:
    changed = [case for case in CASES if case["object"] != case["result"]]
    inside = [case for case in CASES if defaults.fill(copy.deepcopy(case["object"]), case["schema"])]
    assert len(CASES) > 200
    assert len(changed) > 100
    assert len(inside) > 25


def test_kind_and_metadata_of_the_object_are_left_alone() -> None:
    schema = {"properties": {name: {"default": {}} for name in ("apiVersion", "kind", "metadata", "spec")}}
    obj: dict = {}
    assert defaults.fill(obj, schema, everywhere=True) == [("spec",)]
    assert obj == {"spec": {}}


def test_defaults_are_copies() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"properties": {"b": {"default": {"c": []}}}}}}}
    obj: dict = {"a": [{}, {}]}
    defaults.fill(obj, schema)
    obj["a"][0]["b"]["c"].append(1)
    assert obj["a"][1] == {"b": {"c": []}}
    assert schema["properties"]["a"]["items"]["properties"]["b"]["default"] == {"c": []}


@pytest.mark.parametrize(
    ("crd", "found"),
    [
        (
            {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"a": 1}}}, {"name": "v2"}]}},
            {"a": 1},
        ),
        ({"spec": {"versions": [{"name": "v2", "schema": {"openAPIV3Schema": {}}}]}}, None),
        ({"spec": {"versions": [{"name": "v1", "schema": None}, 3]}}, None),
        ({"spec": {"versions": "v1"}}, None),
        ({"spec": None}, None),
        ({}, None),
    ],
)
def test_the_schema_of_a_version_is_found(crd: dict, found: dict | None) -> None:
    assert defaults.schema_of(crd, "v1") == found


def test_depth_is_bounded() -> None:
    schema: dict = {"type": "object"}
    schema["additionalProperties"] = schema
    obj: dict = {}
    inner = obj
    for _ in range(300):
        inner["a"] = {}
        inner = inner["a"]
    for work in (defaults.fill, defaults.prune_nulls):
        with pytest.raises(ManifestError, match="nested too deeply"):
            work(obj, schema)
