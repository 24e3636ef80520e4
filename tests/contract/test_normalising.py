"""Rules through the command line and through Argo CD's contract."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import children
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
    return children.run(arguments, **more)


def render(command: str, chart: Path, *more: str) -> subprocess.CompletedProcess:
    seed = chart.parent / "seed"
    return becalm(command, chart, "--app=a", "--namespace=n", f"--seed={seed}", f"--helm={HELM}", *more)


def test_rules_act_unless_they_are_switched_off(chart):
    plain = render("render", chart, "--rule=-all").stdout
    assert 'clusterIP: ""' in plain
    done = render("render", chart)
    assert done.returncode == 0, done.stderr
    assert "clusterIP" not in done.stdout
    assert "uid" not in done.stdout
    assert "# Comments stay." in done.stdout
    assert "metadata:   {name: c}   # as it is" in done.stdout
    kept = render("render", chart, "--rule=-core/service-empty-addresses").stdout
    assert 'clusterIP: ""' in kept
    assert "uid" not in kept


def test_the_password_is_the_same_with_and_without_rules(chart):
    def password(output: str) -> str:
        return output.partition("password: ")[2].split()[0].strip("}")

    assert password(render("render", chart, "--rule=-all").stdout) == password(render("render", chart).stdout)


def test_verify_knows_what_rules_change(chart):
    done = render("verify", chart, f"--rules={chart.parent / 'rules' / 'mine.yaml'}")
    assert done.returncode == 0, done.stderr
    assert "stock helm's differ in 1 field.\n3 fields are normalised by rules" in done.stdout


def test_explain_says_what_and_why(chart):
    done = render("explain", chart, "--rule=-core", "--rule=+core/service-empty-addresses")
    assert done.stdout == (
        "Service/n/a\n"
        "  strip        spec.clusterIP  (core/service-empty-addresses) *\n"
        "\n"
        "core/service-empty-addresses: The API server allocates these; an empty or null one asks for nothing and shows"
        " against what was allocated. Switched on by --rule.\n"
        "  * The first sync takes the field away once, if it was applied before.\n"
    )
    found = json.loads(render("explain", chart, "--output=json").stdout)
    assert found["misfits"] == []
    (second, first) = found["changes"]
    assert (first["object"], first["field"], first["rule"], first["switched_by"]) == (
        "Service/n/a",
        "spec.clusterIP",
        "core/service-empty-addresses",
        "built in",
    )
    assert (second["verb"], second["rule"]) == ("strip", "core/server-metadata")
    assert render("explain", chart, "--rule=-all").stdout == "No rule changes anything.\n"


def test_explain_lists_what_does_not_fit_its_kind(chart):
    (chart / "templates" / "b.yaml").write_text(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\n"
        "spec: {strategy: {}, replicas: '2', serviceNames: x, template: {spec: {containers: [{name: c, zzz: 1}]}}}\n"
    )
    done = render("explain", chart, "--rule=-all")
    assert done.stdout == (
        "No rule changes anything.\n"
        "\n"
        "These fields do not fit their kinds, so Argo CD compares the objects as raw text, and fails on them under\n"
        "server-side apply. Mend them in the chart, or drop unknown ones with --rule=+core/unknown-fields:\n"
        "StatefulSet.apps/n/s\n"
        "  unknown      spec.strategy; did you mean updateStrategy?\n"
        "  mistyped     spec.replicas: the value is no int\n"
        "  unknown      spec.serviceNames; did you mean serviceName?\n"
        "  unknown      spec.template.spec.containers[0].zzz\n"
    )
    dropped = render("render", chart, "--rule=+core/unknown-fields").stdout
    assert "strategy" not in dropped
    assert "zzz" not in dropped
    assert "replicas" in dropped


APP = """\
switches: ["-core/service-empty-addresses"]
rules:
  - id: port
    reason: A controller of ours writes it.
    match: [{group: "", kind: Service}]
    strip: ["spec.ports"]
"""


def test_a_file_beside_the_chart_switches_and_writes_rules(chart):
    (chart / ".becalm.yaml").write_text(APP)
    done = render("render", chart)
    assert done.returncode == 0, done.stderr
    assert "clusterIP: ''" in done.stdout
    assert "ports" not in done.stdout
    by_hand = render("render", chart, "--rule=+core/service-empty-addresses").stdout
    assert "clusterIP" not in by_hand
    found = json.loads(render("explain", chart, "--output=json").stdout)["changes"]
    assert [(one["rule"], one["switched_by"]) for one in found if one["object"] == "Service/n/a"] == [
        ("app/port", "the application's rules")
    ]


@pytest.mark.parametrize(
    ("scope", "code", "words"),
    [
        ("none", 9, ".becalm.yaml: the operator has forbidden rules of applications; remove them"),
        ("apps/Deployment", 9, "app/port: the operator allows no rule of an application for Service"),
        ("some thing", 0, ""),
        ("Service!", 2, "--app-rules: 'Service!' is no kind"),
    ],
)
def test_the_operator_limits_rules_of_applications(chart, scope, code, words):
    (chart / ".becalm.yaml").write_text(APP if code else "switches: []\n")
    done = render("render", chart, f"--app-rules={scope}")
    assert done.returncode == code, done.stderr
    assert words in done.stderr


def test_a_limited_application_has_a_say_of_some_kinds_only(chart):
    (chart / ".becalm.yaml").write_text(
        APP.partition("rules:")[0].replace("core/service-empty-addresses", "core")
    )
    everything = render("render", chart).stdout
    assert 'clusterIP: ""' in everything
    assert "uid" in everything
    limited = render("render", chart, "--app-rules=Service").stdout
    assert 'clusterIP: ""' in limited
    assert "uid" not in limited
    (chart / ".becalm.yaml").unlink()
    template = chart / "templates" / "a.yaml"
    template.write_text(
        template.read_text().replace("{name: b,", '{name: b, annotations: {becalm.dev/rules: "-core"},')
    )
    assert "uid" in render("render", chart).stdout
    refused = render("render", chart, "--app-rules=Service")
    assert refused.returncode == 9
    assert "Secret/n/b: the annotation becalm.dev/rules is of no effect" in refused.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("switch: []\n", ".becalm.yaml:1: the file: Additional properties are not allowed"),
        ("switches: [-nothing]\n", ".becalm.yaml: '-nothing' switches no rule"),
        ("rules: [{id: a}]\n", ".becalm.yaml:1: rules/0: 'reason' is a required property"),
        ("a: [", ".becalm.yaml, line 2: not valid YAML"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_with_its_line(chart, text, words):
    (chart / ".becalm.yaml").write_text(text)
    done = render("render", chart)
    assert (done.returncode, done.stdout) == (9, "")
    assert words in done.stderr


def test_the_file_is_no_way_to_read_another(chart):
    (chart / ".becalm.yaml").symlink_to(chart.parent / "seed")
    done = render("render", chart)
    assert (done.returncode, done.stdout) == (9, "")
    assert done.stderr == "Error: .becalm.yaml: the file is no regular file; write the rules into it\n"


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          properties:
            spec: {properties: {outer: {default: 1}, list: {items: {properties: {mode: {default: MODE}}}}}}
"""
THING = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {list: [{name: x}]}\n"


def test_defaults_come_from_the_render_then_from_what_is_mounted(chart):
    (chart / "templates" / "b.yaml").write_text(THING)
    mounted = chart.parent / "definitions"
    mounted.mkdir()
    assert "mode" not in render("render", chart).stdout
    (mounted / "things.yaml").write_text(f"kind: Other\n---\n{CRD.replace('MODE', 'mounted')}")
    (mounted / "readme.txt").write_text("no YAML: [")
    assert "mode: mounted" in render("render", chart, f"--definitions={mounted}").stdout
    assert "mode: mounted" in render("render", chart, f"--definitions={mounted / 'things.yaml'}").stdout
    assert "mode: mounted" in generate(chart, BECALM_DEFINITIONS_DIR=str(mounted)).stdout
    assert "outer" not in render("render", chart, f"--definitions={mounted}").stdout
    everywhere = render("render", chart, f"--definitions={mounted}", "--rule=+definitions/everywhere").stdout
    assert "outer: 1" in everywhere
    (chart / "crds").mkdir()
    (chart / "crds" / "things.yaml").write_text(CRD.replace("MODE", "rendered"))
    assert "mode: rendered" in render("render", chart, f"--definitions={mounted}").stdout
    verified = render("verify", chart, f"--definitions={mounted}")
    assert verified.returncode == 0, verified.stderr
    missing = render("render", chart, f"--definitions={mounted / 'none'}")
    assert missing.returncode == 2
    assert (
        "none: the definitions cannot be read: No such file or directory; check BECALM_DEFINITIONS_DIR"
        in missing.stderr
    )


ROUTED = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec: {rules: [{backendRefs: [{name: web, port: 80, weight: 1}]}]}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec: {strategy: {canary: {stableService: web, trafficRouting: {plugins: {argoproj-labs/gatewayAPI: {httpRoute: web}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {metadata: {annotations: {a/b: c}}, spec: {containers: [{name: c, image: i}]}}}
"""


def test_ignore_writes_what_no_manifest_can_prevent(chart):
    assert render("ignore", chart).stdout.startswith("# Nothing in the output shows drift")
    (chart / "templates" / "a.yaml").write_text(ROUTED)
    done = render("ignore", chart)
    assert done.returncode == 0, done.stderr
    comments = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert [line.split(":")[0] for line in comments] == ["# canary-weights", "#   Risk"]
    assert done.stdout.partition("spec:")[2] == (
        "\n  ignoreDifferences:\n"
        "  - group: gateway.networking.k8s.io\n"
        "    kind: HTTPRoute\n"
        "    name: web\n"
        "    jqPathExpressions:\n"
        "    - .spec.rules[]?.backendRefs[]?.weight\n"
    )
    more = render("ignore", chart, "--entry=updated-images",
                  "--field=Deployment.apps/d spec.template.metadata.annotations[a/b]").stdout  # fmt: skip
    assert "  - .spec.template.spec.containers[]?.image\n" in more
    assert "    - /spec/template/metadata/annotations/a~1b\n" in more
    assert "  syncPolicy:\n    syncOptions:\n    - RespectIgnoreDifferences=true\n" in more
    cm = render("ignore", chart, "--format=argocd-cm", "--entry=updated-images").stdout
    assert "  resource.customizations.ignoreDifferences.apps_Deployment: |\n    jqPathExpressions:\n" in cm


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--entry=updated-image", "--entry: there is no entry 'updated-image'; did you mean updated-images?"),
        (
            "--field=Deployment.apps",
            "--field: 'Deployment.apps' is no field of an object; write 'Deployment.apps/web ",
        ),
        (
            "--field=Secret/b data.none",
            "--field: no object in the output has 'Secret/b data.none'; check kind",
        ),
        (
            "--field=Service/a spec.clusterIP",
            "--field: no object in the output has 'Service/a spec.clusterIP'; core/service-empty-addresses takes it away",
        ),
        ("--field=Secret/b data[0]", "--field: 'data[0]' is no selector"),
    ],
)
def test_ignore_refuses_what_would_do_nothing(chart, option, words):
    done = render("ignore", chart, option)
    assert (done.returncode, done.stdout) == (9, "")
    assert words in done.stderr


def generate(chart: Path, parameters: object = None, **variables: str) -> subprocess.CompletedProcess:
    env = {
        "PATH": os.environ["PATH"], "BECALM_HELM": str(HELM), "BECALM_SEED_FILE": str(chart.parent / "seed"),
        "ARGOCD_APP_NAME": "a", "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "n",
        "ARGOCD_APP_PARAMETERS": json.dumps(parameters), **variables,
    }  # fmt: skip
    return becalm("generate", cwd=chart, env=env)


def test_operators_and_apps_switch_rules(chart):
    assert "clusterIP" not in generate(chart).stdout
    assert "clusterIP" in generate(chart, BECALM_RULES="-core, -admission").stdout
    off = [{"name": "becalm.rules", "array": ["-core/service-empty-addresses"]}]
    assert "clusterIP" in generate(chart, off, BECALM_RULES="+core").stdout
    refused = generate(chart, off, BECALM_APP_RULES="none")
    assert refused.returncode == 9
    assert "the parameter becalm.rules: the operator has forbidden rules of applications" in refused.stderr
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
        (None, {"BECALM_RULES": "core"}, 9, "'core' has no sign"),
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
    assert becalm("rules", "check", path).stdout == f"{path}: 1 rule of the pack 'mine' is right.\n"
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
    assert done.stderr.splitlines()[1] == "  mine/port: a port: it becomes something else"
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
    assert "did you mean core/status?" in becalm("rules", "show", "core/statu").stderr


def test_a_rule_is_shown_with_what_it_depends_on():
    shown = becalm("rules", "show", "core/replicas-under-a-scaler").stdout
    for text in (
        "When:",
        "HorizontalPodAutoscaler.autoscaling, in spec.scaleTargetRef",
        "  beside",
        "The first sync ",
        "It acts by itself",
    ):
        assert text in shown
    assert "openshift/machine-set-replicas" in becalm("rules", "show", "openshift").stdout


APP_FILE = """\
rules:
- id: label
  reason: A webhook writes it all the time.
  match: [{group: "", kind: Service}]
  strip: ["metadata.labels[a/b]"]
  examples:
  - title: a label
    before: {apiVersion: v1, kind: Service, metadata: {name: a, labels: {a/b: c, d: e}}}
    after: {apiVersion: v1, kind: Service, metadata: {name: a, labels: {d: e}}}
  - title: none
    keeps: {apiVersion: v1, kind: Service, metadata: {name: a}}
"""


def test_an_applications_rules_are_checked_and_tested_like_others(tmp_path):
    file = tmp_path / ".becalm.yaml"
    file.write_text(APP_FILE)
    assert becalm("rules", "check", file).stdout == f"{file}: 1 rule of the pack 'app' is right.\n"
    assert becalm("rules", "test", file).stdout == f"{file}: 2 examples hold.\n"
    file.write_text(APP_FILE.replace("labels: {d: e}", "labels: {d: f}"))
    done = becalm("rules", "test", file)
    assert (done.returncode, done.stdout) == (9, "")
    assert "1 example does not hold" in done.stderr
    assert "      -    d: f\n      +    d: e\n" in done.stderr


def test_definitions_that_are_none_are_an_error(chart, tmp_path):
    (tmp_path / "empty").mkdir()
    done = render("explain", chart, f"--definitions={tmp_path / 'empty'}")
    assert done.returncode == 2
    assert "the directory has no .yaml, .yml or .json file" in done.stderr
