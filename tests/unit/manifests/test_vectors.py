"""YAML is read and written as Argo CD's own libraries do; see tests/vectors/yaml/README.md."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from becalm.errors import ManifestError
from becalm.manifests import yamlio
from becalm.manifests.objects import flatten
from becalm.manifests.stream import split

HERE = Path(__file__).parents[2] / "vectors" / "yaml"
CASES = json.loads((HERE / "cases.json").read_text())
SEEN = {entry["name"]: entry for entry in json.loads((HERE / "parse.json").read_text())}
STRINGS = json.loads((HERE / "strings.json").read_text())
VERDICTS = dict(line.split() for line in (HERE / "dumped.txt").read_text().splitlines())


def read(text: str) -> list | None:
    """The objects of a text, or None where it is refused."""
    try:
        found: list = []
        for document in split(text.removesuffix("\n")):
            if document.is_empty:
                continue
            value = yamlio.load(document.text, where="x")
            if value is not None:
                found += flatten(value, where="x") if isinstance(value, dict) else [value]
    except ManifestError:
        return None
    return found


def rounded(value: object) -> object:
    """A value with integers beyond 64 signed bits as the floats that Argo CD makes of them."""
    if isinstance(value, dict):
        return {key: rounded(child) for key, child in value.items()}
    if isinstance(value, list):
        return [rounded(child) for child in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_text_is_read_as_argo_cd_reads_it(case: dict) -> None:
    """Each vector gives Argo CD's objects, or differs in the way that is written down with a reason."""
    seen = SEEN[case["name"]]
    theirs = None if "error" in seen else seen.get("objects") or []
    ours = read(case["input"])
    match case["ours"]:
        case "same":
            assert rounded(ours) == rounded(theirs)
        case "refuse":
            assert ours is None
        case _:
            assert ours is not None
            assert case["why"]


def test_strings_are_written_so_that_argo_cd_reads_them_back() -> None:
    """Every nasty string is written exactly as Argo CD's own reader was asked about it."""
    spec = importlib.util.spec_from_file_location("rebuild", HERE / "rebuild.py")
    rebuild = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rebuild)
    for text in STRINGS:
        shape = rebuild.shapes(text)
        for value in shape.values():
            dumped = yamlio.dump(value)
            assert rebuild.digest(dumped) in VERDICTS
            assert yamlio.load(dumped, where="x") == value


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_documents_join_to_the_stream(case: dict) -> None:
    """Splitting loses nothing."""
    try:
        documents = split(case["input"])
    except ManifestError:
        return
    assert "".join(d.separator + d.text for d in documents) == case["input"]
