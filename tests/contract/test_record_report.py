"""What a record tells of a render: what was done, and no secret of it."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from applications import HELM, write

from becalm import pipeline
from becalm.derive import seed
from becalm.derive.labels import Application
from becalm.derive.pins import Pin, made_from, text_label
from becalm.report import report
from becalm.request import Request, Result
from becalm.sources.helm import HelmOptions
from becalm.study import study
from becalm.web.records import Record, read

AT = 1_790_000_000
RULES = """
pack: ours
title: Ours
rules:
  - id: note
    reason: A webhook of ours writes it.
    match: [{group: "*", kind: "*"}]
    strip: ["metadata.labels.note"]
"""
VALUES_SECRET = "planted-values-5ecret"
TEMPLATE_SECRET = "planted-template-5ecret"
FILES = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "values.yaml": "password: unset\nreplicas: 2\n",
    "templates/secret.yaml": f"""\
apiVersion: v1
kind: Secret
metadata: {{name: db, labels: {{note: a}}}}
data:
  given: {{{{ .Values.password | b64enc }}}}
  fixed: {base64.b64encode(TEMPLATE_SECRET.encode()).decode()}
  made: {{{{ randAlphaNum 20 | b64enc }}}}
  url: {{{{ printf "postgres://shop:%s@db:5432" .Values.password | b64enc }}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: tls, labels: {{note: a}}}}
type: kubernetes.io/tls
data:
{{{{- $ca := genCA "shop-ca" 3650 }}}}
{{{{- $cert := genSignedCert "shop.example" nil (list "shop.example") 365 $ca }}}}
  ca.crt: {{{{ $ca.Cert | b64enc }}}}
  tls.crt: {{{{ $cert.Cert | b64enc }}}}
  tls.key: {{{{ $cert.Key | b64enc }}}}
""",
    "templates/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  creationTimestamp: null
  annotations:
    own: {{ .Values.password }}
    id: {{ uuidv4 }}
    ticket-{{ randAlphaNum 9 | lower }}: "1"
    long: {{ repeat 300 "q" }}
spec:
  replcas: 3
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {creationTimestamp: null, labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry.example/web:1
          command: [run, "--password={{ .Values.password }}", "--token", {{ randAlphaNum 12 | b64enc }}]
          env:
            - {name: A, value: {{ .Values.password | b64enc }}}
            - {name: B, value: "x-{{ randAlphaNum 16 }}-y"}
            - {name: PIN_PASSWORD, value: "0"}
          resources: {limits: {cpu: 1000m}}
status: {}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job-{{ randAlphaNum 6 | lower }}, labels: {note: a}}
spec: {template: {spec: {containers: [{name: a, image: b}], restartPolicy: Never}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook, labels: {note: a}}
webhooks:
  - name: a.example.com
    clientConfig: {url: "https://a", caBundle: {{ (genCA "hook" 365).Cert | b64enc }}}
    sideEffects: None
    admissionReviewVersions: [v1]
""",
}


@pytest.fixture(scope="module")
def chart(tmp_path_factory) -> Path:
    top = write(tmp_path_factory.mktemp("chart"), {"ours.yaml": RULES}) / "shop"
    return write(top, {**FILES, "prod.yaml": f"password: {VALUES_SECRET}\n"})


def request(chart: Path, **fields) -> Request:
    return Request(
        chart=chart,
        root=chart,
        options=HelmOptions(
            release="shop",
            namespace="space",
            values=tuple(path for path in [chart / "prod.yaml"] if path.exists()),
            kube_version="1.34.1",
        ),
        application=Application(name="shop", project="default", namespace="space", cluster=""),
        seed=seed.parse(bytes(range(32)), where="seed"),
        helm=str(HELM),
        path=os.environ["PATH"],
        at=AT,
        rule_files=(chart.parent / "ours.yaml",) if (chart.parent / "ours.yaml").exists() else (),
        **fields,
    )


@pytest.fixture(scope="module")
def rendered(chart) -> tuple[Request, Result]:
    asked = request(chart)
    return asked, pipeline.render(asked)


@pytest.fixture(scope="module")
def told(rendered) -> dict:
    return report(*rendered)


def derived(result: Result) -> list[str]:
    texts = []
    for settled in result.stabilised.draws.values():
        value = settled.value
        texts += map(str, value.values()) if isinstance(value, dict) else [str(value)]
    return texts


def test_no_secret_is_in_it_in_any_form(rendered, told):
    _, result = rendered
    text = json.dumps(told, ensure_ascii=False)
    objects = [one for one in yaml.safe_load_all(result.output) if one]
    planted = [VALUES_SECRET, TEMPLATE_SECRET, *derived(result)]
    assert len(planted) > 10
    for one in objects:
        if one["kind"] == "Secret":
            planted += [base64.b64decode(value).decode() for value in one["data"].values()]
    for secret in planted:
        forms = [
            secret,
            secret.lower(),
            secret.upper(),
            json.dumps(secret)[1:-1],
            *(line for line in secret.splitlines() if not line.startswith("-----")),
        ]
        forms += [base64.b64encode(form.encode()).decode() for form in forms]
        # What is encoded within a longer text, at each of three offsets, has these characters in its middle.
        forms += [
            base64.b64encode(b"x" * pad + secret.encode())[4 : -4 or None].decode()
            for pad in range(3)
            if len(secret) > 8
        ]
        for form in forms:
            assert len(form) < 5 or form not in text, form[:4]


def test_the_plants_are_where_they_would_be_seen(rendered, told):
    """The objects that hold them are shown, so that the test above can fail."""
    _, result = rendered
    shown = {one["object"]: one for one in told["diffs"]}
    assert "Deployment.apps/space/web" in shown
    assert "Secret/space/db" in shown
    before = shown["Deployment.apps/space/web"]["before"]
    assert result.output.count(VALUES_SECRET) >= 2
    assert before.count("***") >= 7
    assert "own: '***'" in before
    assert "name: PIN_PASSWORD value: '***'" in " ".join(before.split())
    assert "q" * 200 + "… (300 characters)" in before
    assert "q" * 201 not in before
    assert "image: registry.example/web:1" in before
    assert "Job.batch/space/job-***" in shown
    assert "ticket-***" in before
    assert (
        "caBundle: '***'"
        in shown["ValidatingWebhookConfiguration.admissionregistration.k8s.io/hook"]["after"]
    )


def test_it_tells_what_was_done(rendered, told):
    asked, result = rendered
    assert (told["source"], told["runs"], told["objects"]) == ("helm", result.runs, 5)
    assert (told["bytes"], told["seed"]) == (len(result.output.encode()), asked.seed.id)
    functions = {(one["object"], one["path"]): one["function"] for one in told["stabilised"]}
    assert functions["Secret/space/db", "data.made"] == "randAlphaNum"
    assert {one["place"].partition(":")[0] for one in told["stabilised"]} == {
        "templates/secret.yaml",
        "templates/web.yaml",
    }
    assert len(told["changes"]) == len(result.changes)
    assert all(one["why"] and one["verb"] and "/" in one["rule"] for one in told["changes"])
    assert {"object": "Deployment.apps/space/web", "path": "spec.replcas", "nearest": "replicas"} in told[
        "unknown"
    ]
    assert functions["Deployment.apps/space/web", "metadata.annotations.ticket-***"] == "randAlphaNum"
    assert ("", "") in functions
    assert "Job.batch/space/job-***" in {one["object"] for one in told["changes"]}


def test_differences_are_of_the_objects_that_changed_and_apply_to_them(told):
    changed = list(dict.fromkeys(one["object"] for one in told["changes"]))
    assert [one["object"] for one in told["diffs"]] == changed
    for one in told["diffs"]:
        assert one["before"] != one["after"]
        assert yaml.safe_load(one["before"])["kind"] == yaml.safe_load(one["after"])["kind"]
    web = next(one for one in told["diffs"] if one["object"].endswith("/web"))
    assert "status: {}" in web["before"]
    assert "status" not in web["after"]


def test_certificates_are_told_with_their_times(told):
    subjects = {(one["object"], one["path"]): one for one in told["certificates"]}
    leaf = subjects["Secret/space/tls", "data[tls.crt]"]
    assert leaf["subject"] == "CN=shop.example"
    assert leaf["from"] <= AT < leaf["changes"] < leaf["until"]


def test_the_web_process_reads_it(told):
    record = read(
        json.dumps({"at": AT, "app": "shop", "outcome": "rendered", "seconds": 1.0, **told}).encode()
    )
    assert isinstance(record, Record)
    assert not record.truncated
    assert (len(record.changes), len(record.diffs), len(record.certificates)) == tuple(
        len(told[name]) for name in ("changes", "diffs", "certificates")
    )


def test_it_is_the_same_each_time(rendered, told):
    asked, _ = rendered
    assert report(asked, pipeline.render(asked)) == told


def test_warnings_are_told(rendered):
    from becalm.errors import Warned

    asked, result = rendered
    warned = Warned(what="the dependency is not pinned", where="Chart.yaml", hint=f"see {VALUES_SECRET}")
    assert report(asked, replace(result, warnings=(warned,)))["warnings"] == [
        "Chart.yaml: the dependency is not pinned; see ***"
    ]


def test_a_chart_that_draws_nothing_and_a_plain_directory_are_told(tmp_path):
    plain = write(tmp_path / "plain", {"a.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"})
    asked = request(plain)
    told = report(asked, pipeline.render(asked))
    assert (told["source"], told["runs"], told["stabilised"], told["diffs"], told["objects"]) == (
        "directory",
        0,
        [],
        [],
        1,
    )
    chart = write(
        tmp_path / "chart",
        {
            "Chart.yaml": FILES["Chart.yaml"],
            "templates/a.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n",
        },
    )
    asked = request(chart)
    assert report(asked, pipeline.render(asked))["source"] == "helm"


def test_what_kustomize_inflates_has_no_differences(rendered):
    from becalm.sources.kustomize import KustomizeTool

    asked, result = rendered
    inflating = replace(asked, source="kustomize", tool=KustomizeTool(build_options=("--enable-helm",)))
    (inflating.chart / "kustomization.yaml").write_text("resources: []\n")
    try:
        told = report(inflating, result)
    finally:
        (inflating.chart / "kustomization.yaml").unlink()
    assert (told["source"], told["diffs"], told["truncated"]) == ("kustomize", [], True)


def test_a_document_that_cannot_be_read_is_left_out(rendered):
    asked, result = rendered
    broken = result.output + "---\nkind: Secret\nkind: [\n"
    assert report(asked, replace(result, output=broken, before=broken))["objects"] == 6


def test_very_many_differences_are_cut_and_it_is_said(rendered):
    asked, result = rendered
    one = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{0}}}\ndata: {{a: '{1}'}}\n"
    before = "".join(one.format(number, "b") for number in range(150))
    after = "".join(one.format(number, "c") for number in range(150))
    told = report(asked, replace(result, before=before, output=after))
    assert (len(told["diffs"]), told["truncated"]) == (100, True)


def test_a_text_that_was_taken_over_is_masked(tmp_path):
    """None of the draws that it was made of is in it any more."""
    web = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  labels: {note: a}
data:
  ticket: {{ printf "%s-%s" (randAlpha 5) (randNumeric 6) }}
"""
    files = {"ours.yaml": RULES, "shop/Chart.yaml": FILES["Chart.yaml"], "shop/templates/web.yaml": web}
    asked = request(write(tmp_path, files) / "shop")
    (first, *_) = pipeline.render(asked).stabilised.draws.values()
    seen = study(asked)
    made = next(call.made for call in seen.settled.calls if call.key == first.piece)
    planted = "Xq7-live-ticket"
    pins = {text_label(first.label): Pin(texts=(planted,), given=made_from(made))}
    asked = replace(asked, pins=pins)
    result = pipeline.render(asked)
    assert planted in result.output
    told = report(asked, result)
    assert "ticket" in json.dumps(told["diffs"])
    assert planted not in json.dumps(told)
