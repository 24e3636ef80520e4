"""What charts do with `lookup`, under every policy: what is there is kept, what is not there is derived."""

from __future__ import annotations

import base64
import os
import subprocess

import pytest
import yaml
from adoption import KUBECTL, Running
from api_server import ApiServer, serving
from applications import TOOLS

OLD, NEW = (TOOLS / f"helm-{version}" / "helm" for version in ("3.17.3", "4.1.4"))
HELMS = [OLD, NEW, TOOLS / "helm-4.3.1" / "helm"]
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\ndata:\n"
CERTIFICATE = """\
{{- $old := lookup "v1" "Secret" .Release.Namespace "tls" }}
apiVersion: v1
kind: Secret
metadata: {name: tls}
data:
  {{- if $old }}
  crt: {{ index $old.data "crt" }}
  key: {{ index $old.data "key" }}
  {{- else }}
  {{- $made := genSelfSignedCert "web" nil (list "web") 365 }}
  crt: {{ $made.Cert | b64enc }}
  key: {{ $made.Key | b64enc }}
  {{- end }}
"""
MANAGER = """\
{{- define "manage" }}
{{- $secret := lookup "v1" "Secret" .context.Release.Namespace .secret }}
{{- if $secret }}
{{- if hasKey $secret.data .key }}{{ index $secret.data .key }}
{{- else if .failOnNew }}{{ fail (printf "%s has no %s" .secret .key) }}
{{- end }}
{{- else }}{{ randAlphaNum 16 | b64enc }}
{{- end }}
{{- end }}
"""
#: The usual ways in which charts keep a Secret that is there.
IDIOMS = {
    "default": SECRET.replace(
        "apiVersion", '{{- $old := lookup "v1" "Secret" .Release.Namespace "db" }}\napiVersion', 1
    )
    + '  password: {{ get (get $old "data" | default dict) "password" | default (randAlphaNum 16 | b64enc) }}\n',
    "if": SECRET
    + '  {{- with lookup "v1" "Secret" .Release.Namespace "db" }}\n  password: {{ .data.password }}\n  {{- else }}\n'
    "  password: {{ randAlphaNum 16 | b64enc }}\n  {{- end }}\n",
    "index": SECRET + '  {{- $old := "db" | lookup "v1" "Secret" .Release.Namespace }}\n'
    '  password: {{ if $old }}{{ index $old.data "password" }}{{ else }}{{ randAlphaNum 16 | b64enc }}{{ end }}\n',
    "condition": SECRET + '  password: {{ if (lookup "v1" "Secret" .Release.Namespace "db") -}}\n'
    '    {{ (lookup "v1" "Secret" .Release.Namespace "db").data.password }}\n'
    "    {{- else }}{{ randAlphaNum 16 | b64enc }}{{ end }}\n",
    "manager": MANAGER
    + SECRET
    + '  password: {{ include "manage" (dict "secret" "db" "key" "password" "failOnNew" true "context" $) }}\n',
    "list": SECRET
    + '  {{- $found := "" }}\n  {{- range (lookup "v1" "Secret" .Release.Namespace "").items }}\n'
    '  {{- if eq .metadata.name "db" }}{{ $found = .data.password }}{{ end }}\n  {{- end }}\n'
    "  password: {{ $found | default (randAlphaNum 16 | b64enc) }}\n",
    "certificate": CERTIFICATE,
    "text": SECRET + "  password: {{ tpl .Values.text $ }}\n",
}
VALUES = (
    'text: \'{{ $old := lookup "v1" "Secret" .Release.Namespace "db" }}{{ if $old }}{{ $old.data.password }}{{ else }}'
    "{{ randAlphaNum 16 | b64enc }}{{ end }}'\n"
)


def data(output: str) -> dict[str, str]:
    return {
        f"{obj['metadata']['name']}/{key}": value
        for obj in yaml.safe_load_all(output)
        for key, value in obj["data"].items()
    }


@pytest.mark.parametrize("helm", [OLD, NEW], ids=("3.17.3", "4.1.4"))
@pytest.mark.parametrize("idiom", sorted(IDIOMS))
def test_what_is_there_is_kept_and_what_is_not_there_is_derived(tmp_path, idiom, helm):
    app = Running(tmp_path, {"templates/a.yaml": IDIOMS[idiom], "values.yaml": VALUES}, helm=helm).install()
    derived = data(app.render())
    assert "Warning: lookup: the chart looks up 1 object, which Argo CD answers with nothing:" in app.warned
    assert "(templates/a.yaml:" in app.warned or "values" in app.warned
    # Of its own objects it finds the derived ones, again and again.
    settled = app.render("--lookup=rendered")
    assert data(settled) == derived
    assert app.render("--lookup=rendered") == settled
    assert app.warned == ""
    # What is not recorded is no empty answer.
    missing = app.becalm("render", "--lookup=recorded")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "no answer is recorded for " in missing.stderr
    assert "`becalm lookup record`" in missing.stderr
    recorded = app.becalm("lookup", "record", f"--live={tmp_path / 'live.yaml'}")
    assert recorded.returncode == 0, recorded.stderr
    file = app.directory / "becalm.lookups.yaml"
    values = data(app.stock)
    assert data(app.render("--lookup=recorded")) == values
    text = file.read_text()
    for value in values.values():
        for secret in (value, base64.b64decode(value).decode()):
            assert secret not in text + recorded.stdout + recorded.stderr
    app.becalm("lookup", "record", f"--live={tmp_path / 'live.yaml'}")
    assert file.read_text() == text
    # That it is not there is an answer too.
    (tmp_path / "nothing.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    assert app.becalm("lookup", "record", f"--live={tmp_path / 'nothing.yaml'}").returncode == 0
    assert data(app.render("--lookup=recorded")) == derived


def test_a_manager_that_refuses_new_passwords_does_so_under_recorded(tmp_path):
    app = Running(tmp_path, {"templates/a.yaml": IDIOMS["manager"]}).install()
    app.write_live([{**app.live[0], "data": {"other": "eA=="}}])
    done = app.becalm("lookup", "record", f"--live={tmp_path / 'live.yaml'}")
    assert done.returncode != 0
    assert "db has no password" in done.stderr


def test_what_does_not_settle_is_an_error(tmp_path):
    chart = """\
{{- if not (lookup "v1" "ConfigMap" .Release.Namespace "once") }}
apiVersion: v1
kind: ConfigMap
metadata: {name: once}
{{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: always}
"""
    app = Running(tmp_path, {"templates/a.yaml": chart})
    done = app.becalm("render", "--lookup=rendered")
    assert (done.returncode, done.stdout) == (8, "")
    assert "does not settle on what it looks up: ConfigMap space/once" in done.stderr
    assert "templates/a.yaml:1" in done.stderr


def test_answers_have_the_types_that_a_cluster_gives(tmp_path):
    chart = """\
{{- $found := lookup "apps/v1" "Deployment" .Release.Namespace "web" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: types}
data:
  replicas: {{ printf "%d" $found.spec.replicas | quote }}
  kinds: {{ list (kindOf $found.spec.replicas) (kindOf $found.spec.part) (kindOf $found.spec.paused) (kindOf $found.spec.list) | join " " | quote }}
  sum: {{ add $found.spec.replicas 1 | quote }}
  equal: {{ eq (int $found.spec.replicas) 3 | quote }}
  nothing: {{ lookup "apps/v1" "Deployment" .Release.Namespace "other" | toJson | quote }}
  none: {{ (lookup "example.com/v1" "Thing" "" "").items | len | quote }}
"""
    app = Running(tmp_path, {"templates/a.yaml": chart})
    spec = {"replicas": 3, "part": 0.5, "paused": True, "list": ["a"]}
    app.write_live(
        [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "space"},
                "spec": spec,
            }
        ]
    )
    done = app.becalm("lookup", "record", f"--live={tmp_path / 'live.yaml'}")
    assert done.returncode == 0, done.stderr
    assert data(app.render("--lookup=recorded")) == {
        "types/replicas": "3", "types/kinds": "int64 float64 bool slice", "types/sum": "4", "types/equal": "true",
        "types/nothing": "{}", "types/none": "0",
    }  # fmt: skip


@pytest.mark.parametrize(("policy", "most"), [("empty", 1), ("rendered", 2)])
def test_a_chart_that_draws_nothing_takes_few_runs_of_helm(tmp_path, policy, most):
    chart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n" + "".join(
        f'  k{n}: {{{{ lookup "v1" "Secret" "" "s{n}" | len | quote }}}}\n' for n in range(5)
    )
    app = Running(tmp_path, {"templates/a.yaml": chart}).install()
    counting = tmp_path / "helm"
    counting.write_text(f'#!/bin/sh\necho x >> {tmp_path}/runs\nexec {NEW} "$@"\n')
    counting.chmod(0o755)
    app.helm = counting
    assert app.render(f"--lookup={policy}", "--strict") == app.stock
    assert (tmp_path / "runs").read_text().count("x") <= most


@pytest.mark.parametrize("helm", HELMS, ids=("3.17.3", "4.1.4", "4.3.1"))
def test_install_upgrade_and_revision_are_what_is_asked_for(tmp_path, helm):
    chart = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
        '  what: {{ printf "%v %v %v" .Release.IsInstall .Release.IsUpgrade .Release.Revision | quote }}\n'
    )
    app = Running(tmp_path, {"templates/a.yaml": chart, "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
                             "charts/sub/templates/a.yaml": chart.replace("name: a", "name: b")}, helm=helm)  # fmt: skip

    def what(*words: str) -> set[str]:
        return set(data(app.render(*words)).values())

    assert what() == {"true false 1"}
    assert what("--is-upgrade") == {"false true 1"}
    assert what("--revision=7") == {"false true 7"}
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text('[{name: release.revision, string: "3"}]\n')
    assert what(f"--parameters={parameters}") == {"false true 3"}
    parameters.write_text('[{name: release.isUpgrade, string: "true"}]\n')
    assert what(f"--parameters={parameters}") == {"false true 1"}


def test_the_operator_chooses_and_a_chart_cannot(tmp_path):
    app = Running(tmp_path, {"templates/a.yaml": IDIOMS["if"]}).install()
    done = app.becalm("render", BECALM_LOOKUP="recorded")
    assert done.returncode == 3
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text('[{name: lookup, string: "live"}]\n')
    done = app.becalm("render", f"--parameters={parameters}")
    assert done.returncode == 2
    done = app.becalm("render", BECALM_LOOKUP="all")
    assert done.returncode == 2
    assert "write empty or recorded or rendered or live" in done.stderr


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "the project 'default' may not read the cluster"),
        ({"BECALM_LOOKUP_PROJECTS": "default"}, "Secret space/db is looked up, which is not allowed"),
        (
            {"BECALM_LOOKUP_PROJECTS": "default", "BECALM_LOOKUP_ALLOW": "v1/Secret:other"},
            "which is not allowed",
        ),
        (
            {"BECALM_LOOKUP_PROJECTS": "default", "BECALM_LOOKUP_ALLOW": "v1/ConfigMap:*"},
            "which is not allowed",
        ),
        (
            {"BECALM_LOOKUP_PROJECTS": "default", "BECALM_LOOKUP_ALLOW": "v1/Secret:*"},
            "this is no pod of a cluster",
        ),
    ],
)
def test_live_reads_only_what_is_allowed(tmp_path, variables, words):
    app = Running(tmp_path, {"templates/a.yaml": IDIOMS["if"]})
    done = app.becalm("render", BECALM_LOOKUP="live", **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


NODES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: nodes}
data:
  names: {{ range (lookup "v1" "Node" "" "").items }}{{ .metadata.name }}:{{ .status.capacity.pods }},{{ end }}
  one: {{ (lookup "v1" "Node" "" "a").status.capacity.pods | quote }}
  web: {{ with lookup "apps/v1" "Deployment" "space" "web" }}{{ printf "%d" .spec.replicas }}{{ end }}
  all: {{ (lookup "v1" "ConfigMap" "" "").items | len | quote }}
  there: {{ lookup "v1" "Thing" "" "x" | len | quote }}
"""


CLUSTER: list[dict] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": {"pods": pods}},
    }
    for name, pods in (("a", "110"), ("b", "250"))
]
CLUSTER += [
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "space"},
     "spec": {"replicas": 3}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "far"}, "data": {}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "space"},
     "data": {"password": "aGVsbG8gd29ybGQ="}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "namespace": "space"},
     "data": {"crt": "Y3J0", "key": "a2V5"}},
]  # fmt: skip


def under_a_cluster(app: Running, objects: list[dict]) -> str:
    """What stock helm 3 renders with a cluster that has these objects."""
    with serving(ApiServer(objects), app.top) as kubeconfig:
        argv = [
            OLD,
            "template",
            "shop",
            app.path,
            "--namespace=space",
            "--dry-run=server",
            f"--kubeconfig={kubeconfig}",
        ]
        env = {"PATH": os.environ["PATH"], "HOME": str(app.top)}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("idiom", [*sorted(IDIOMS), "nodes"])
def test_recorded_answers_are_those_of_a_cluster(tmp_path, idiom):
    chart = {**IDIOMS, "nodes": NODES}[idiom]
    app = Running(tmp_path, {"templates/a.yaml": chart, "values.yaml": VALUES}, helm=OLD)
    expected = under_a_cluster(app, CLUSTER)
    app.write_live(CLUSTER)
    done = app.becalm("lookup", "record", f"--live={tmp_path / 'live.yaml'}")
    assert done.returncode == 0, done.stderr
    assert app.render("--lookup=recorded") == expected


@pytest.mark.parametrize("idiom", sorted(set(IDIOMS) - {"certificate"}))
def test_rendered_answers_are_those_of_a_cluster_in_which_the_chart_is_installed(tmp_path, idiom):
    app = Running(tmp_path, {"templates/a.yaml": IDIOMS[idiom], "values.yaml": VALUES}, helm=OLD)
    first = app.render("--lookup=rendered")
    objects = [
        {**obj, "metadata": {**obj["metadata"], "namespace": "space"}} for obj in yaml.safe_load_all(first)
    ]
    assert under_a_cluster(app, objects) == first


@pytest.mark.parametrize("idiom", ["if", "list", "nodes"])
def test_kubectl_is_asked_for_exactly_what_is_looked_up(tmp_path, idiom):
    chart = {**IDIOMS, "nodes": NODES}[idiom]
    app = Running(tmp_path, {"templates/a.yaml": chart, "values.yaml": VALUES}, helm=OLD)
    expected = under_a_cluster(app, CLUSTER)
    server = ApiServer(CLUSTER)
    with serving(server, tmp_path) as kubeconfig:
        done = app.becalm("lookup", "record", f"--kubectl={KUBECTL}", KUBECONFIG=str(kubeconfig))
    assert done.returncode == 0, done.stderr
    assert app.render("--lookup=recorded") == expected
    read = {path for path in server.asked if path.count("/") > 2 and path != "/apis/apps/v1"}
    secret = "/api/v1/namespaces/space/secrets"
    assert (
        read
        == {
            "if": {f"{secret}/db"},
            "list": {secret},
            "nodes": {
                "/api/v1/nodes",
                "/api/v1/nodes/a",
                "/api/v1/configmaps",
                "/apis/apps/v1/namespaces/space/deployments/web",
            },
        }[idiom]
    )


def test_a_cluster_that_kubectl_cannot_reach_is_an_error(tmp_path):
    app = Running(tmp_path, {"templates/a.yaml": IDIOMS["if"]})
    (tmp_path / "kubeconfig").write_text("{}")
    done = app.becalm("lookup", "record", f"--kubectl={KUBECTL}", KUBECONFIG=str(tmp_path / "kubeconfig"))
    assert (done.returncode, done.stdout) == (5, "")
    assert "kubectl get /api/v1: " in done.stderr
    assert not (app.directory / "becalm.lookups.yaml").exists()
