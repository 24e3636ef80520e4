"""The function table says of each supported helm which functions it has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from becalm.templates import functions

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))


def _is_parsed(version: str, names: list[str], chart: Path) -> tuple[bool, str]:
    """Whether this helm knows all the functions; a definition that nothing includes is only parsed."""
    (chart / "templates").mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 0.1.0\n")
    text = "".join(f'{{{{ define "{name}" }}}}{{{{ {name} }}}}{{{{ end }}}}' for name in names)
    (chart / "templates" / "_all.tpl").write_text(text)
    argv = [TOOLS / f"helm-{version}" / "helm", "template", chart]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def _has(version: str, since: str) -> bool:
    return tuple(map(int, since.split("."))) <= tuple(map(int, version.split(".")[:2]))


@pytest.mark.parametrize("version", ["3.17.3", "4.1.4", "4.3.1"])
def test_every_function_is_there_from_its_version_on(version: str, tmp_path: Path) -> None:
    table = functions.hermetic()
    there = [name for name, since in table.items() if not since or _has(version, since)]
    there += list(functions.functions())
    assert _is_parsed(version, sorted(there), tmp_path) == (True, "")
    for name in sorted(set(table) - set(there)):
        known, words = _is_parsed(version, [name], tmp_path)
        assert not known
        assert f'function "{name}" not defined' in words


def test_a_function_that_helm_lacks_is_seen_as_lacking(tmp_path: Path) -> None:
    assert not _is_parsed("4.1.4", ["no_such_function"], tmp_path)[0]


def test_functions_are_in_one_table_only() -> None:
    assert set(functions.functions()).isdisjoint(functions.hermetic())


@pytest.mark.parametrize("name", sorted(functions.functions()))
def test_a_call_of_a_function_that_is_not_hermetic_is_noticed(name: str) -> None:
    treatment = functions.functions()[name].treatment
    assert functions.mentions(f"a {{{{ 1 | {name} }}}}") is (treatment != "empty")
