"""Parameters of Argo CD's own Kustomize source: what its commands give, from a checkout that stays as it is."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from applications import ROOT, TOOLS, array, pairs, text, write
from children import inside
from kustomize_cases import CASES, FULL, VARIABLES, Case, find_kustomize, repository, stock

KUBECTLS = ["kubectl-1.31.9", "kubectl-1.34.5", "kubectl-1.37.1"]
EXPECTED = ROOT / "tests" / "golden" / "kustomize" / "edits.json"
KUSTOMIZE = find_kustomize(TOOLS)


def generate(
    root: Path, *parameters: dict, tool: str = KUBECTLS[-1], **variables: str
) -> subprocess.CompletedProcess:
    env = {
        "PATH": os.environ["PATH"], "BECALM_KUSTOMIZE": str(TOOLS / tool / "kubectl"), "BECALM_RULES": "-all",
        "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_SOURCE_PATH": "apps/web", "SECRET": "stolen-secret",
        "BECALM_HELM": str(TOOLS / "helm-4.1.4" / "helm"), **VARIABLES,
        "ARGOCD_APP_PARAMETERS": json.dumps(parameters), **variables,
    }  # fmt: skip
    return inside(["generate"], cwd=root / "apps" / "web", env=env)


def fingerprint(root: Path) -> dict[str, tuple]:
    found = {}
    for path in sorted(root.rglob("*")):
        state = path.lstat()
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path)] = (state.st_mode, state.st_mtime_ns, hashlib.sha256(data).hexdigest())
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_output_is_that_of_argo_cds_own_source(tmp_path, case):
    root = repository(tmp_path / "repository", case)
    before = fingerprint(root)
    done = generate(root, *case.parameters)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == json.loads(EXPECTED.read_text())[case.name]
    assert fingerprint(root) == before


@pytest.mark.skipif(KUSTOMIZE is None, reason="kubectl has no `edit`, and there is no kustomize")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_expected_is_what_kustomize_gives(tmp_path, case):
    root = repository(tmp_path / "repository", case)
    assert stock(KUSTOMIZE, root, case) == json.loads(EXPECTED.read_text())[case.name]


@pytest.mark.parametrize("tool", KUBECTLS)
def test_every_tool_gives_the_same(tmp_path, tool):
    case = next(case for case in CASES if case.name == "all-together")
    done = generate(repository(tmp_path / "repository", case), *case.parameters, tool=tool)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == json.loads(EXPECTED.read_text())[case.name]


@pytest.mark.parametrize(
    ("parameters", "code", "words"),
    [
        ([pairs("commonLabels", common="new")], 2, "commonLabels: the label 'common' is in the kustomization already; set forceCommonLabels to true"),
        ([pairs("commonLabels", plain="x"), text("labelWithoutSelector", "true")], 2, "the label 'plain' is in the kustomization already"),
        ([pairs("commonAnnotations", note="x")], 2, "commonAnnotations: the annotation 'note' is in the kustomization already; set forceCommonAnnotations"),
        ([pairs("commonLabels", a="b"), text("labelIncludeTemplates", "true")], 2, "labelIncludeTemplates: labels go to templates only"),
        ([array("images", "web")], 2, "images: 'web' is no image"),
        ([pairs("replicas", web="many")], 2, "replicas: web=many is no number of replicas"),
        ([array("components", "../none")], 3, "components: '../none' is not there; check its path, or set ignoreMissingComponents"),
        ([text("patches", "a: [")], 2, "patches, line 2: not valid YAML"),
        ([text("patches", "- {patch: x, paths: y}")], 2, "patches: 0: 'paths' is no field of it; did you mean path?"),
        ([text("patches", "a: b")], 2, "patches: the value does not fit: type"),
        ([text("namespace", "Not_One")], 2, "namespace: 'Not_One' is not allowed; for example"),
        ([array("valueFiles", "a.yaml")], 2, "valueFiles: the parameter is for charts, and this is a Kustomization"),
        ([text("images", "a:b")], 2, "images: the parameter has the wrong type (string); set its `array`"),
        ([text("version", "v9")], 2, "version: the operator does not offer Kustomize 'v9'; write one of: v5.1, v5.2"),
        ([text("version", "v3"), text("becalm.source", "helm")], 3, "there is no Chart.yaml in this directory"),
        ([text("becalm.source", "jsonnet")], 2, "becalm.source: 'jsonnet' is not allowed; write helm or kustomize or chain or directory"),
        ([text("becalm.source", "helm")], 3, "apps/web: there is no Chart.yaml in this directory"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(tmp_path, parameters, code, words):
    root = repository(tmp_path / "repository", Case(name="", parameters=[], edits=[], kustomization=FULL))
    done = generate(root, *parameters, BECALM_KUSTOMIZE_VERSIONS="v5.2=/two v5.1=/one")
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_version_is_one_of_the_operators(tmp_path):
    root = repository(tmp_path / "repository", CASES[0])
    old, new = (TOOLS / tool / "kubectl" for tool in (KUBECTLS[0], KUBECTLS[-1]))
    offers = {"BECALM_KUSTOMIZE": "/nowhere", "BECALM_KUSTOMIZE_VERSIONS": f"v5.4={old}, v5.8={new}"}
    for version in ("v5.4", "v5.8"):
        assert generate(root, text("version", version), **offers).returncode == 0
    assert generate(root, **offers).returncode == 4
    assert generate(root, text("version", "v4"), **offers).returncode == 4
    done = generate(root, text("version", "v5.4"), BECALM_KUSTOMIZE_VERSIONS="v5.4=kustomize")
    assert "BECALM_KUSTOMIZE_VERSIONS: 'v5.4=kustomize' is no version" in done.stderr


def test_two_kustomization_files_are_an_error(tmp_path):
    root = write(tmp_path / "repository", {
        "apps/web/kustomization.yaml": "resources: []\n", "apps/web/Kustomization": "resources: []\n"
    })  # fmt: skip
    done = generate(root)
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        "apps/web: there is more than one kustomization file: kustomization.yaml and Kustomization"
        in done.stderr
    )


def test_kustomizes_own_error_is_told_without_private_paths(tmp_path):
    root = write(tmp_path / "repository", {"apps/web/kustomization.yaml": "resources: [none.yaml]\n"})
    for parameters in ([], [text("namePrefix", "a-")]):
        done = generate(root, *parameters)
        assert (done.returncode, done.stdout) == (5, "")
        assert "Kustomize failed: accumulating resources" in done.stderr
        assert "becalm-" not in done.stderr


def test_a_kustomize_that_is_not_there_is_named(tmp_path):
    root = write(tmp_path / "repository", {"apps/web/kustomization.yaml": "namePrefix: a\n"})
    done = generate(root, BECALM_KUSTOMIZE="/nowhere/kustomize")
    assert (done.returncode, done.stdout) == (4, "")
    assert (
        "/nowhere/kustomize cannot be found; install Kustomize, or name it in BECALM_KUSTOMIZE" in done.stderr
    )


def test_a_build_that_gives_nothing_is_refused(tmp_path):
    root = write(tmp_path / "repository", {
        "apps/web/kustomization.yaml": "resources: [a.yaml]\n", "apps/web/a.yaml": "# nothing\n"
    })  # fmt: skip
    done = generate(root)
    assert done.returncode != 0
    assert done.stdout == ""


def record() -> None:
    """Write what the real Kustomize gives: python tests/contract/test_kustomize_parameters.py."""
    found = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as directory:
            found[case.name] = stock(KUSTOMIZE, repository(Path(directory) / "r", case), case)
    EXPECTED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    record()
