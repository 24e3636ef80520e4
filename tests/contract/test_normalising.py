"""Rules through the command line and through Argo CD's contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
HELM = TOOLS / "helm-4.1.4" / "helm"
TEMPLATE = """\
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {clusterIP: "", ports: [{port: 80}]}
---
# Comments stay.
apiVersion: v1
kind: Secret
metadata: {name: b, uid: "1"}
stringData: {password: {{ randAlphaNum 20 }}}
---
apiVersion: v1
kind: ConfigMap
metadata:   {name: c}   # as it is
"""
MINE = """\
pack: mine
rules:
  - id: port
    reason: A controller of ours writes it.
    match: [{group: "", kind: Service}]
    strip: ["spec.ports[]"]
    examples:
      - title: a port
        before: {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}
        after: {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: []}}
      - title: none
        keeps: {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {}}
"""


@pytest.fixture
def chart(tmp_path):
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: sample\nversion: 1.0.0\n")
    (chart / "templates" / "a.yaml").write_text(TEMPLATE)
    seed = tmp_path / "seed"
    seed.touch(mode=0o600)
    seed.write_bytes(bytes(range(32)))
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.yaml").write_text(MINE)
    return chart


def becalm(*arguments: object, **more) -> subprocess.CompletedProcess:
    argv = [sys.executable, "-m", "becalm", *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, **more)


def render(command: str, chart: Path, *more: str) -> subprocess.CompletedProcess:
    seed = chart.parent / "seed"
    return becalm(command, chart, "--app=a", "--namespace=n", f"--seed={seed}", f"--helm={HELM}", *more)


def test_rules_act_when_they_are_asked_for(chart):
    usual = render("render", chart).stdout
    assert 'clusterIP: ""' in usual
    done = render("render", chart, "--rule=+core")
    assert done.returncode == 0, done.stderr
    assert "clusterIP" not in done.stdout
    assert "uid" not in done.stdout
    assert "# Comments stay." in done.stdout
    assert "metadata:   {name: c}   # as it is" in done.stdout
    kept = render("render", chart, "--rule=+all", "--rule=-core/service-empty-addresses").stdout
    assert 'clusterIP: ""' in kept
    assert "uid" not in kept


def test_the_password_is_the_same_with_and_without_rules(chart):
    def password(output: str) -> str:
        return output.partition("password: ")[2].split()[0].strip("}")

    assert password(render("render", chart, "--rule=+all").stdout) == password(render("render", chart).stdout)


def test_verify_knows_what_rules_change(chart):
    done = render("verify", chart, "--rule=+all", f"--rules={chart.parent / 'rules' / 'mine.yaml'}")
    assert done.returncode == 0, done.stderr
    assert "stock helm's differ in 1 fields.\n3 fields are normalised by rules" in done.stdout


def test_explain_says_what_and_why(chart):
    done = render("explain", chart, "--rule=+core")
    assert done.stdout == (
        "Secret/n/b\n"
        "  strip        metadata.uid  (core/server-metadata) *\n"
        "Service/n/a\n"
        "  strip        spec.clusterIP  (core/service-empty-addresses) *\n"
        "\n"
        "core/server-metadata: The API server writes these; a manifest that was copied from a cluster still has them.\n"
        "core/service-empty-addresses: The API server allocates these; an empty or null one asks for nothing and shows"
        " against what was allocated.\n"
        "\n"
        "* The first sync removes the field from the cluster once, if it was applied before.\n"
    )
    (second, first) = json.loads(render("explain", chart, "--rule=+core", "--output=json").stdout)
    assert (first["object"], first["field"], first["rule"]) == (
        "Service/n/a",
        "spec.clusterIP",
        "core/service-empty-addresses",
    )
    assert second["verb"] == "strip"
    assert render("explain", chart).stdout == "No rule changes anything.\n"


def generate(chart: Path, parameters: object = None, **variables: str) -> subprocess.CompletedProcess:
    env = {
        "PATH": os.environ["PATH"], "BECALM_HELM": str(HELM), "BECALM_SEED_FILE": str(chart.parent / "seed"),
        "ARGOCD_APP_NAME": "a", "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "n",
        "ARGOCD_APP_PARAMETERS": json.dumps(parameters), **variables,
    }  # fmt: skip
    return becalm("generate", cwd=chart, env=env)


def test_operators_and_apps_switch_rules(chart):
    assert "clusterIP" in generate(chart).stdout
    assert "clusterIP" not in generate(chart, BECALM_RULES="+core, +admission").stdout
    off = [{"name": "becalm.rules", "array": ["-core/service-empty-addresses"]}]
    assert "clusterIP" in generate(chart, off, BECALM_RULES="+core").stdout
    mine = generate(chart, BECALM_RULES_DIR=str(chart.parent / "rules"))
    assert mine.returncode == 0, mine.stderr
    assert "port: 80" not in mine.stdout


@pytest.mark.parametrize(
    ("parameters", "variables", "code", "words"),
    [
        (
            [{"name": "becalm.rules", "array": ["-cor"]}],
            {},
            9,
            "'-cor' switches no rule; did you mean -core?",
        ),
        (
            [{"name": "becalm.rules", "string": "-core"}],
            {},
            2,
            "becalm.rules: the parameter has the wrong type",
        ),
        (None, {"BECALM_RULES": "core"}, 9, "'core' switches no rule"),
        (None, {"BECALM_RULES_DIR": "/nonexistent"}, 2, "/nonexistent: the rules cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(chart, parameters, variables, code, words):
    done = generate(chart, parameters, **variables)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_rule_files_are_checked_and_tested(chart):
    path = chart.parent / "rules" / "mine.yaml"
    assert becalm("rules", "check", path).stdout == f"{path}: 1 rules of the pack 'mine' are right.\n"
    assert becalm("rules", "test", path).stdout == f"{path}: 2 examples hold.\n"
    path.write_text(
        MINE.replace("after: {apiVersion: v1, ", "after: {apiVersion: v2, ").replace(
            "kind: Service}]", "kind: Service, extra: 1}]"
        )
    )
    done = becalm("rules", "check", path)
    assert (done.returncode, done.stdout) == (9, "")
    assert f"{path}:5: rules/0/match/0: Additional properties are not allowed" in done.stderr
    path.write_text(MINE.replace("ports: []}}", "ports: [1]}}"))
    done = becalm("rules", "test", path)
    assert (done.returncode, done.stdout) == (9, "")
    assert done.stderr.splitlines()[1:] == ["  mine/port: a port: it becomes something else"]
    missing = becalm("rules", "check", chart / "none.yaml")
    assert missing.returncode == 9
    assert "none.yaml: the rule file cannot be read" in missing.stderr


def test_rules_are_listed_and_shown():
    listed = becalm("rules", "list").stdout.splitlines()
    assert len(listed) > 30
    assert listed[0].split() == ["RULE", "VERB", "ON", "REASON"]
    shown = becalm("rules", "show", "cert-manager/durations").stdout
    assert "spec.duration: 'duration'" in shown
    assert "    duration: 2160h0m0s" in shown
    assert becalm("rules", "show", "core/none").returncode == 9
