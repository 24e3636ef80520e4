"""Calls of `lookup` wherever a template can have them: seen, and answered with nothing as helm itself does."""

from __future__ import annotations

import json

import pytest
import yaml
from adoption import KUBECTL, Running
from applications import TOOLS, write

HELMS = [TOOLS / f"helm-{version}" / "helm" for version in ("3.17.3", "4.1.4", "4.3.1")]
#: Each call looks up a name of its own.
POSITIONS = """\
{{- define "by-dict" }}{{ with (lookup "v1" "Secret" "a" .name).data }}{{ . }}{{ else }}none{{ end }}{{ end }}
{{- define "not-reached" }}{{ lookup "v1" "Secret" "a" "never" }}{{ end }}
{{- $root := . }}{{ $before := lookup "v1" "Secret" "a" "assigned" }}{{ $before = lookup "v1" "Secret" "a" "assigned-again" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: positions}
data:
  printed: {{ lookup "v1" "Secret" "a" "printed" | toJson | quote }}
  piped: {{ "piped" | lookup "v1" "Secret" "a" | len | quote }}
  parentheses: {{ (lookup "v1" "Secret" "a" "parentheses") | kindOf }}
  field: {{ (lookup "v1" "Secret" "a" "field").data | default "none" }}
  argument: {{ default (dict "data" "x") (lookup "v1" "Secret" "a" "argument") | toJson | quote }}
  deep: {{ get (get (lookup "v1" "Secret" "a" "deep") "data" | default dict) "password" | default "none" | quote }}
  if: {{ if lookup "v1" "Secret" "a" "if" }}yes{{ else if (lookup "v1" "Secret" "a" "else-if") }}maybe{{ else }}no{{ end }}
  not: {{ if not (lookup "v1" "Secret" "a" "not") }}yes{{ end }}
  with: {{ with lookup "v1" "Secret" "a" "with" }}{{ .data }}{{ else with $found := lookup "v1" "Secret" "a" "else-with" }}{{ $found }}{{ else }}none{{ end }}
  {{- range $index, $item := (lookup "v1" "Secret" "a" "").items }}
  r{{ $index }}: {{ $item.metadata.name }}
  {{- else }}
  range: none
  {{- end }}
  {{- range $name := list "x" "y" }}
  in-range-{{ $name }}: {{ lookup "v1" "Secret" "a" (printf "range-%s" $name) | len | quote }}
  {{- end }}
  define: {{ include "by-dict" (dict "context" $ "name" "define") }}
  template: {{ template "by-dict" (dict "context" $ "name" "template") }}
  computed: {{ include (printf "by-%s" "dict") (dict "context" $ "name" "computed") }}
  block: {{ block "own-block" $ }}{{ lookup "v1" "Secret" "a" "block" | len }}{{ end }}
  tpl: {{ tpl .Values.text $ | quote }}
  composed: {{ tpl (printf "{{ lookup %q %q %q %q | len }}" "v1" "Secret" "a" "composed") $ | quote }}
  file: {{ include (print $.Template.BasePath "/included.yaml") . | sha256sum }}
"""
FILES = {
    "values.yaml": 'text: \'{{ lookup "v1" "Secret" "a" "tpl" | len }}\'\n',
    "templates/a.yaml": POSITIONS,
    "templates/included.yaml": 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: included}\ndata: {a: {{ lookup "v1" "Secret" "a" "included" | len | quote }}}\n',
    "templates/hook.yaml": 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {"helm.sh/hook": pre-install}}\n'
    'data: {a: {{ lookup "v1" "Secret" "a" "hook" | len | quote }}}\n\n\n',
    "templates/tail.yaml": 'apiVersion: v1\nkind: Zed\nmetadata: {name: {{ lookup "v1" "Secret" "a" "tail" | len }}-z}\ntext: |+\n  x\n\n\n',
    "templates/nothing.yaml": '{{ if lookup "v1" "Secret" "a" "nothing" }}a: b{{ end }}\n',
    "templates/NOTES.txt": '{{ if lookup "v1" "Secret" "a" "notes" }}hello{{ end }}\n',
    "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    "charts/sub/templates/a.yaml": 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sub}\ndata: {a: {{ lookup "v1" "Secret" "a" "subchart" | len | quote }}}\n',
}
NAMES = {
    *[
        "assigned",
        "assigned-again",
        "printed",
        "piped",
        "parentheses",
        "field",
        "argument",
        "deep",
        "if",
        "else-if",
        "not",
        "with",
        "else-with",
        "range-x",
        "range-y",
        "define",
        "template",
        "computed",
        "block",
        "tpl",
        "composed",
        "included",
        "hook",
        "tail",
        "nothing",
        "notes",
        "subchart",
    ]
}


#: Of an object with four fields, one of which is `data`.
WANTED = {
    "piped": "4", "parentheses": "map", "deep": "eA==", "if": True, "in-range-x": "4", "block": 4, "tpl": "4", "composed": "4",
}  # fmt: skip


@pytest.mark.parametrize("helm", HELMS, ids=lambda helm: helm.parent.name)
def test_every_call_is_seen_and_the_bytes_are_stock_helms(tmp_path, helm):
    app = Running(tmp_path, FILES, helm=helm).install()
    assert app.render("--rule=-all") == app.stock
    done = app.becalm("explain", "--output=json")
    assert done.returncode == 0, done.stderr
    seen = {one["object"] for one in json.loads(done.stdout)["lookups"]}
    assert seen == {f"Secret a/{name}" for name in NAMES} | {"every Secret in a"}
    assert app.render("--rule=-all", "--lookup=rendered") == app.stock
    (tmp_path / "none.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    recorded = app.becalm("lookup", "record", f"--live={tmp_path / 'none.yaml'}")
    assert len(recorded.stdout.splitlines()) == len(NAMES) + 2
    assert app.render("--rule=-all", "--lookup=recorded") == app.stock


def test_what_is_recorded_is_found_in_every_position(tmp_path):
    app = Running(tmp_path, FILES, helm=HELMS[1])
    live = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": "a"},
            "data": {"password": "eA=="},
        }
        for name in sorted(NAMES)
    ]
    app.write_live(live)
    assert app.becalm("lookup", "record", f"--live={tmp_path / 'live.yaml'}").returncode == 0
    output = app.render("--rule=-all", "--lookup=recorded")
    assert 'data: {a: "4"}' in output.partition("name: included")[2]
    found = next(
        one["data"]
        for one in yaml.safe_load_all(output)
        if one.get("metadata", {}).get("name") == "positions"
    )
    assert json.loads(found["printed"]) == live[sorted(NAMES).index("printed")]
    data = "map[password:eA==]"
    assert {name: found[name] for name in WANTED} == WANTED
    assert [found[name] for name in ("field", "with", "define", "template", "computed")] == [data] * 5
    assert found["r0"] == min(NAMES)


NOTHING = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {there: {{ if lookup "v1" "ConfigMap" .Release.Namespace "a" }}yes{{ else }}no{{ end }}}
"""
SITES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: db}
data:
  password: {{ %(lookup)s | len | quote }}{{ $unused := randAlphaNum 8 }}{{ if eq (randAlphaNum 9) "x" }}y{{ end }}
  key: {{ include "looks" $ }}{{ if eq (randAlphaNum 9) "x" }}y{{ end }}
  {{- range $i := until 2 }}
  a{{ $i }}: {{ %(lookup)s | len }}{{ include "looks" $ }}{{ if eq (include "draws" $) "x" }}y{{ end }}{{ include "looks" $ }}
  {{- end }}
"""
HELPERS = (
    '{{ define "draws" }}{{ randAlphaNum 7 }}{{ end }}{{ define "looks" }}{{ %(lookup)s | len }}{{ end }}'
)


def test_looking_things_up_changes_no_name_of_a_draw(tmp_path):
    labels = []
    for number, text in enumerate(('lookup "v1" "Secret" "a" "b"', "dict")):
        files = {"templates/a.yaml": SITES % {"lookup": text}, "templates/_a.tpl": HELPERS % {"lookup": text}}
        done = (
            Running(tmp_path / str(number), files).becalm("derive")
            if write(tmp_path / str(number), {})
            else None
        )
        assert done is not None
        assert done.returncode == 0, done.stderr
        labels.append(done.stdout)
    assert labels[0] == labels[1]
    assert labels[0].count("randAlphaNum") > 2


def test_a_template_that_only_helm_can_read_is_left_to_helm_where_nothing_is_found(tmp_path):
    deep = "(" * 101 + 'lookup "v1" "Secret" "a" "b"' + ")" * 101
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ DEEP | len }}}\n".replace(
        "DEEP", deep
    )
    app = Running(tmp_path, {"templates/a.yaml": text}).install()
    assert app.render("--rule=-all") == app.stock
    assert (
        "Warning: lookup: the chart looks up objects, which Argo CD answers with nothing: templates/a.yaml:4;"
        in app.warned
    )
    refused = app.becalm("render", "--lookup=rendered")
    assert (refused.returncode, refused.stdout) == (8, "")
    assert "templates/a.yaml:4" in refused.stderr


def test_arguments_that_helm_refuses_are_refused_in_its_words(tmp_path):
    text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ lookup "v1" "Secret" .Values.none "b" | len }}}\n'
    app = Running(tmp_path, {"templates/a.yaml": text})
    for policy in ("empty", "rendered"):
        refused = app.becalm("render", f"--lookup={policy}")
        assert (refused.returncode, refused.stdout) == (5, "")
        assert "helm template failed" in refused.stderr
        assert "becalm" not in refused.stderr


def test_a_chart_that_kustomize_inflates_tells_what_it_looks_up(tmp_path):
    chart = {
        "Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
        "values.yaml": "{}\n",
        "templates/a.yaml": 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ lookup "v1" "Secret" "a" "b" | len | quote }}}\n',
    }
    app = Running(tmp_path, {f"charts/sub/{name}": text for name, text in chart.items()}, helm=HELMS[0])
    (app.directory / "Chart.yaml").unlink()
    write(app.directory, {"kustomization.yaml": "helmCharts:\n- {name: sub, releaseName: sub}\n"})
    options = (f"--root={app.directory}", "--build-options=--enable-helm", f"--kustomize={KUBECTL}")
    assert 'a: "0"' in app.render(*options)
    assert (
        app.warned.count(
            "the chart looks up 1 object, which Argo CD answers with nothing: Secret a/b (templates/a.yaml:4)"
        )
        == 1
    )
    refused = app.becalm("render", *options, "--lookup=recorded")
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "no answer is recorded for Secret a/b" in refused.stderr


def test_a_file_that_cannot_be_trusted_is_not_recorded_over(tmp_path):
    app = Running(tmp_path, {"templates/a.yaml": NOTHING, "becalm.lookups.yaml": "lookups: []\n"})
    live = app.write_live([])
    refused = app.becalm("lookup", "record", f"--live={live}")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert (
        "becalm.lookups.yaml: the file is none of recorded lookups; restore it from Git, or remove it"
        in refused.stderr
    )
    (app.directory / "becalm.lookups.yaml").unlink()
    assert app.becalm("lookup", "record", f"--live={live}").returncode == 0


@pytest.mark.parametrize("policy", ["empty", "recorded", "rendered"])
def test_verify_compares_with_stock_helm_what_finds_nothing(tmp_path, policy):
    app = Running(tmp_path, {"templates/a.yaml": NOTHING})
    there = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "space"}}
    assert app.becalm("lookup", "record", f"--live={app.write_live([there])}").returncode == 0
    assert ("there: yes" in app.render(f"--lookup={policy}")) is (policy != "empty")
    done = app.becalm("verify", f"--lookup={policy}")
    assert done.returncode == 0, done.stderr
    assert "Verified: becalm's renders are identical" in done.stdout
