"""Charts with what rules are there for, with the manifests, the explanation and the ignore entries they must give.

After a change that is meant: UPDATE_GOLDEN=1 make test, and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import children
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
GOLDEN = ROOT / "tests" / "golden" / "normalising"
CASES = sorted(path.name for path in GOLDEN.iterdir())
REPORTS = {
    "render": "expected.yaml", "explain": "explain.txt", "explain --output=json": "explain.json",
    "ignore": "ignore.yaml", "ignore --format=argocd-cm --entry=updated-images": "ignore-argocd-cm.yaml",
}  # fmt: skip


def run(case: str, command: str, version: str = "4.1.4") -> str:
    name, *more = command.split()
    argv = [name, GOLDEN / case, "--app=app", "--namespace=space"]
    argv += ["--kube-version=v1.34.1", f"--helm={TOOLS / f'helm-{version}' / 'helm'}", *more]
    done = children.run(argv)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", REPORTS)
def test_a_chart_gives_what_is_expected(case, command):
    output = run(case, command)
    expected = GOLDEN / case / REPORTS[command]
    if os.environ.get("UPDATE_GOLDEN"):
        expected.write_text(output)
    assert output == expected.read_text()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", ["3.17.3", "4.3.1"])
def test_other_versions_of_helm_give_the_same_objects(case, version):
    def objects(text: str) -> list:
        found = [one for one in yaml.safe_load_all(text) if one]
        return sorted(found, key=lambda one: (one["kind"], one["metadata"]["name"]))

    assert objects(run(case, "render", version)) == objects((GOLDEN / case / "expected.yaml").read_text())
