"""New values on purpose: epochs and seeds, as Argo CD hands them over, change exactly what they name."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import children
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
HELM = TOOLS / "helm-4.1.4" / "helm"
TEMPLATE = """\
{{- define "digits" }}{{ range until . }}{{ randInt 0 10 }}{{ end }}{{ end }}
{{- $ca := genCA "ca" 3650 }}{{ $cert := genSignedCert "leaf" nil (list "leaf") 365 $ca }}
{{- $password := randAlphaNum 20 }}
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData:
  password: {{ $password }}
  other: {{ randAlphaNum 20 }}
  auth: {{ htpasswd "u" $password | quote }}
  pieces: {{ include "digits" 20 | quote }}
---
apiVersion: v1
kind: Secret
metadata: {name: tls}
stringData:
  ca: {{ $ca.Cert | quote }}
  crt: {{ $cert.Cert | quote }}
  key: {{ $cert.Key | quote }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: url}
data:
  url: postgres://u:{{ $password }}@db
  password: {{ randAlphaNum 20 }}
"""
ALL = {
    "db/password", "db/other", "db/auth", "db/pieces", "tls/ca", "tls/crt", "tls/key", "url/url", "url/password"
}  # fmt: skip


@pytest.fixture
def app(tmp_path):
    """The app's directory, and beside it a directory of two seeds."""
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: sample\nversion: 1.0.0\n")
    (chart / "templates" / "a.yaml").write_text(TEMPLATE)
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for name, content in (("2025", bytes(range(32))), ("2026", bytes(range(100, 132)))):
        (seeds / name).touch(mode=0o600)
        (seeds / name).write_bytes(content)
    # A mounted Secret looks like this.
    (seeds / "..data").mkdir()
    return chart


def generate(app: Path, parameters: object = None, **variables: str) -> subprocess.CompletedProcess:
    env = {
        "PATH": os.environ["PATH"], "BECALM_CACHE_DIR": os.environ["BECALM_CACHE_DIR"],
        "BECALM_HELM": str(HELM), "BECALM_SEED_FILE": str(app.parent / "seeds"), "BECALM_SEED_ID": "2025",
        "ARGOCD_APP_NAME": "app", "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "space",
        "ARGOCD_APP_PARAMETERS": json.dumps(parameters), **variables,
    }  # fmt: skip
    return children.run(["generate"], cwd=app, env=env)


def values(done: subprocess.CompletedProcess) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    return {
        f"{obj['metadata']['name']}/{key}": str(text)
        for obj in filter(None, yaml.safe_load_all(done.stdout))
        for section in ("stringData", "data")
        for key, text in obj.get(section, {}).items()
    }


def changed(app: Path, parameters: object = None, **variables: str) -> set[str]:
    before, after = values(generate(app)), values(generate(app, parameters, **variables))
    assert set(before) == set(after) == ALL
    return {name for name in ALL if before[name] != after[name]}


def epochs(**items: str) -> list[dict]:
    return [
        {"name": "becalm.epochs", "map": {name.replace("__", "/"): epoch for name, epoch in items.items()}}
    ]


@pytest.mark.parametrize("parameters", [None, [], [{"name": "becalm.epoch", "string": ""}], epochs()])
def test_no_epoch_changes_nothing(app, parameters):
    assert changed(app, parameters) == set()


def test_an_epoch_of_the_app_changes_all(app):
    assert changed(app, [{"name": "becalm.epoch", "string": "2"}]) == ALL
    one, two = (values(generate(app, [{"name": "becalm.epoch", "string": e}])) for e in "23")
    assert all(one[name] != two[name] for name in ALL)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("Secret__db__other", {"db/other"}),
        ("Secret__db__stringData.other", {"db/other"}),
        ("Secret__db__pieces", {"db/pieces"}),
        # What is computed from a value follows it.
        ("Secret__db__password", {"db/password", "db/auth", "url/url"}),
        ("Secret__tls__ca", {"tls/ca", "tls/crt"}),
        ("Secret__tls__key", {"tls/crt", "tls/key"}),
        ("Secret__tls__crt", {"tls/crt", "tls/key"}),
        ("ConfigMap__url__password", {"url/password"}),
        ("ConfigMap__url__url", {"db/password", "db/auth", "url/url"}),
        ("Secret__tls", {"tls/ca", "tls/crt", "tls/key"}),
    ],
)
def test_an_epoch_of_an_item_changes_what_it_names(app, item, expected):
    assert changed(app, epochs(**{item: "2"})) == expected


def test_taking_an_epoch_back_gives_the_old_value(app):
    one = values(generate(app, epochs(Secret__db__other="2")))
    two = values(generate(app, epochs(Secret__db__other="3")))
    assert one["db/other"] != two["db/other"]
    assert values(generate(app, epochs(Secret__db__other="2"))) == one


def test_another_seed_changes_all_and_an_app_can_stay(app):
    assert changed(app, BECALM_SEED_ID="2026") == ALL
    stay = [{"name": "becalm.seed", "string": "2025"}]
    assert changed(app, stay, BECALM_SEED_ID="2026") == set()


def test_a_seed_can_be_named_by_its_fingerprint(app):
    listed = generate(app, BECALM_SEED_ID="")
    assert listed.returncode == 2
    fingerprint = listed.stderr.partition("2025 (")[2].partition(")")[0]
    assert len(fingerprint) == 16
    assert changed(app, BECALM_SEED_ID=fingerprint) == set()


def test_one_seed_needs_no_id(app):
    (app.parent / "seeds" / "2026").unlink()
    assert changed(app, BECALM_SEED_ID="") == set()
    assert changed(app, BECALM_SEED_FILE=str(app.parent / "seeds" / "2025")) == set()


@pytest.mark.parametrize(
    ("parameters", "variables", "words"),
    [
        (epochs(Secret__db__pasword="2"), {}, "becalm.epochs: the epoch of 'Secret/db/pasword' names nothing"),
        (epochs(db="2"), {}, "becalm.epochs: 'db' names no item; write KIND/NAME/KEY"),
        (epochs(Secret__db__password="x" * 65), {}, "becalm.epochs: Secret/db/password: the value does not fit: maxLength 64"),
        ([{"name": "becalm.epoch", "map": {}}], {}, "becalm.epoch: the parameter has the wrong type (map); set its `string`"),
        ([{"name": "becalm.epoch"}], {}, "becalm.epoch: the parameter has the wrong type (no value); set"),
        ([{"name": "becalm.epoch", "string": "1"}] * 2, {}, "becalm.epoch: the parameter is set twice"),
        ([{"name": "becalm.epok", "string": "1"}], {}, "'becalm.epok' is no parameter of becalm; did you mean becalm.epoch?"),
        ({"name": "x"}, {}, "ARGOCD_APP_PARAMETERS: the value is not a list of parameters"),
        ([{"name": "becalm.seed", "string": "2024"}], {}, "there is no seed '2024'; the seeds are 2025 ("),
        (None, {"BECALM_SEED_ID": ""}, "there are several seeds, and none is chosen; choose one with"),
        (None, {"BECALM_SEED_FILE": "/nonexistent"}, "/nonexistent: the seed file cannot be read"),
        (None, {"ARGOCD_APP_PARAMETERS": "{"}, "ARGOCD_APP_PARAMETERS: the value is not JSON"),
        (None, {"BECALM_CERTIFICATE_WINDOW": "third"}, "BECALM_CERTIFICATE_WINDOW: 'third' is no fraction"),
        (None, {"BECALM_CERTIFICATE_MARGIN": "0.9"}, "leaves room for the window; window and margin"),
        (None, {"BECALM_CERTIFICATE_ANCHOR": "noon"}, "BECALM_CERTIFICATE_ANCHOR: 'noon' is not an instant"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(app, parameters, variables, words):
    done = generate(app, parameters, **variables)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_open_seed_in_a_directory_is_refused(app):
    (app.parent / "seeds" / "2026").chmod(0o644)
    done = generate(app)
    assert done.returncode == 2
    assert "2026: the seed file is open to others (mode 0644)" in done.stderr


def test_an_epoch_in_a_chart_that_draws_nothing_is_refused(app):
    (app / "templates" / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    done = generate(app, epochs(Secret__db__password="2"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "names nothing that is derived" in done.stderr


def test_windows_and_anchor_come_from_the_operator(app):
    def start(**variables: str) -> bytes:
        return base64.b64encode(values(generate(app, **variables))["tls/crt"].encode())

    usual = start()
    assert start(BECALM_CERTIFICATE_WINDOW="1/3", BECALM_CERTIFICATE_MARGIN="0.25") == usual
    assert start(BECALM_CERTIFICATE_WINDOW="1/24") != usual
    assert start(BECALM_CERTIFICATE_ANCHOR="2026-01-01T03:00:00Z") != usual
