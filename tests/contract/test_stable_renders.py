"""Charts of the usual hard shapes render the same in every process, with every supported helm."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
from pathlib import Path

import children
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
HELMS = ("3.17.3", "4.1.4", "4.3.1")
CHART = "apiVersion: v2\nname: sample\nversion: 0.1.0\n"
SEED = b"becalm-seed-v1:" + base64.urlsafe_b64encode(bytes(range(32))) + b"\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: {{ %s | b64enc | quote }}\n"


def helm(version: str) -> Path:
    path = TOOLS / f"helm-{version}" / "helm"
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{path} is missing; run tools/get_tools.py")
        pytest.skip("helm is not there")
    return path


def write(directory: Path, files: dict[str, str]) -> Path:
    chart = directory / "sample"
    for name, text in {"Chart.yaml": CHART, **files}.items():
        path = chart / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return chart


def becalm(
    chart: Path, *arguments: str, version: str = "4.1.4", hash_seed: int | None = None
) -> subprocess.CompletedProcess:
    seed = chart.parent / "seed"
    if not seed.exists():
        seed.touch(mode=0o600)
        seed.write_bytes(SEED)
    words = [
        "render",
        chart,
        "--app=a",
        "--namespace=n",
        f"--seed={seed}",
        f"--helm={helm(version)}",
        *arguments,
    ]
    return children.run(
        words, env=None if hash_seed is None else {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    )


def objects(chart: Path, *arguments: str, version: str = "4.1.4") -> dict[str, dict]:
    done = becalm(chart, *arguments, version=version)
    assert done.returncode == 0, done.stderr
    return {o["kind"] + "/" + o["metadata"]["name"]: o for o in yaml.safe_load_all(done.stdout) if o}


def decoded(secret: dict, key: str) -> str:
    return base64.b64decode(secret["data"][key]).decode()


HEX = '{{ define "hex" }}{{ range $i := until . }}{{ printf "%x" (randInt 0 16) }}{{ end }}{{ end }}'
CHECKSUM = (
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n"
    '    sum: {{ include (print $.Template.BasePath "/s.yaml") . | sha256sum }}\n'
)
CASES: dict[str, dict[str, str]] = {
    "every function": {
        "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"
        "  a: {{ randAlpha 12 }}\n  b: {{ randNumeric 12 | quote }}\n  c: {{ randAscii 20 | b64enc }}\n"
        "  d: {{ randBytes 16 }}\n  e: {{ randInt 100000000 999999999 | quote }}\n  f: {{ uuidv4 }}\n"
        '  g: {{ "abcdefghijkl" | shuffle }}\n  h: {{ now | date "20060102150405" | quote }}\n'
        '  i: {{ dateInZone "2006-01-02" nil "UTC" | quote }}\n  j: {{ ago 0 }}\n'
        '  k: {{ keys (dict "b" 1 "a" 2 "c" 3) | join "," }}\n'
        '  l: {{ values (dict "b" 1 "a" 2 "c" 3) | join "," | quote }}\n  m: {{ now.Unix | quote }}\n'
        '  n: {{ default uuidv4 "" }}\n  o: {{ htmlDate nil | quote }}\n'
    },
    "checksum": {"templates/s.yaml": SECRET % "randAlphaNum 16", "templates/z.yaml": CHECKSUM},
    "hex helper": {
        "templates/_h.tpl": HEX,
        "templates/a.yaml": SECRET % 'include "hex" 32' + '  other: {{ include "hex" 32 | b64enc }}\n',
    },
    "positions": {
        "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"
        '{{- range $i := until 3 }}\n  k{{ $i }}: {{ default (randAlphaNum 9) "" }}\n{{- end }}\n'
        '{{- range (list "x" "y") }}\n  {{ . }}: {{ randAlphaNum 9 }}\n{{- end }}\n'
        "{{- with randAlphaNum 9 }}\n  w: {{ . }}\n{{- end }}\n"
        '{{- block "blk" . }}\n  b: {{ randAlphaNum 9 }}\n{{- end }}\n  p: {{ 9 | randAlphaNum }}\n'
        '  t: {{ template "u" 9 }}\n{{ define "u" }}{{ randAlphaNum . }}{{ end }}'
    },
    "tpl of values": {
        "values.yaml": "text: '{{ randAlphaNum 11 }}{{ if true }}!{{ end }}'\n",
        "templates/a.yaml": SECRET % "tpl .Values.text .",
    },
    "notes": {
        "templates/NOTES.txt": '{{ set . "pw" (randAlphaNum 10) | len }}',
        "templates/A.yaml": SECRET % ".pw",
    },
    "short pieces": {
        "templates/a.yaml": '{{- $p := list (randAlpha 3) (randNumeric 3) (randAlpha 3) | join "" | shuffle }}\n'
        + SECRET % "$p"
    },
    "decided by a draw": {
        "templates/a.yaml": SECRET % "(randInt 0 2 | eq 1 | ternary (randAlphaNum 12) (randAlpha 12))"
        + "{{ if eq (randInt 0 2) 1 }}  x: {{ randAlphaNum 12 | b64enc }}{{ else }}  y: {{ uuidv4 | b64enc }}{{ end }}\n"
    },
}


@pytest.mark.parametrize("name", CASES)
def test_bytes_are_the_same_in_every_process_and_objects_with_every_helm(name: str, tmp_path: Path) -> None:
    """The same seed gives the same bytes in each process, and the same objects with each helm."""
    chart = write(tmp_path, CASES[name])
    seen = []
    for version in HELMS:
        first = becalm(chart, version=version, hash_seed=1)
        second = becalm(chart, version=version, hash_seed=2)
        assert first.returncode == 0, first.stderr
        assert first.stdout == second.stdout
        assert "becalm" not in first.stdout
        seen.append(list(yaml.safe_load_all(first.stdout)))
    assert seen[0] == seen[1] == seen[2]


def test_values_have_the_shapes_of_sprig(tmp_path: Path) -> None:
    """Every function keeps its alphabet, length and type."""
    data = objects(write(tmp_path, CASES["every function"]))["ConfigMap/c"]["data"]
    assert re.fullmatch(r"[A-Za-z]{12}", data["a"])
    assert re.fullmatch(r"[0-9]{12}", data["b"])
    assert len(base64.b64decode(data["c"])) == 20
    assert len(base64.b64decode(data["d"])) == 16
    assert 100000000 <= int(data["e"]) < 999999999
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", data["f"])
    assert sorted(data["g"]) == list("abcdefghijkl")
    assert data["h"] == "20240101000000"
    assert (data["k"], data["l"]) == ("a,b,c", "2,1,3")
    assert data["n"] != data["f"]


def test_the_checksum_is_that_of_the_rendered_secret(tmp_path: Path) -> None:
    """A checksum annotation follows the Secret that is really rendered."""
    found = objects(write(tmp_path, CASES["checksum"]))
    password = found["Secret/db"]["data"]["password"]
    text = (SECRET % "X").replace("{{ X | b64enc | quote }}", f'"{password}"')
    assert found["Pod/p"]["metadata"]["annotations"]["sum"] == hashlib.sha256(text.encode()).hexdigest()


def test_equal_helpers_give_independent_values(tmp_path: Path) -> None:
    """Two includes of one helper draw two values, and a hexadecimal key is not one digit repeated."""
    secret = objects(write(tmp_path, CASES["hex helper"]))["Secret/db"]
    one, other = decoded(secret, "password"), decoded(secret, "other")
    assert one != other
    assert len(set(one)) > 4


def test_a_landed_value_survives_moves_and_other_draws(tmp_path: Path) -> None:
    """What lands in a field depends on the field, not on files, helpers, or other draws."""
    before = objects(write(tmp_path / "x", CASES["checksum"]))["Secret/db"]
    moved = {
        "templates/_p.tpl": '{{ define "p" }}{{ randAlphaNum 16 }}{{ end }}',
        "templates/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {x: {{ uuidv4 }}}\n",
        "templates/sub/q.yaml": SECRET % 'include "p" .' + "  more: {{ randAlphaNum 16 | b64enc }}\n",
    }
    assert (
        objects(write(tmp_path / "y", moved))["Secret/db"]["data"]["password"] == before["data"]["password"]
    )


def test_an_app_cannot_get_the_values_of_another(tmp_path: Path) -> None:
    """Another namespace or project gives other values."""
    chart = write(tmp_path, CASES["checksum"])
    values = {
        str(objects(chart, option)["Secret/db"]["data"])
        for option in ("--project=p", "--project=q", "--cluster=c", "--app=b")
    }
    assert len(values) == 4


def test_a_chart_that_does_not_draw_keeps_stock_bytes(tmp_path: Path) -> None:
    """Without such a call, the output is that of stock helm, with each helm."""
    chart = write(tmp_path, {"templates/a.yaml": "kind: X\nmetadata: {name: a}\na: {{ .Release.Name }}\n"})
    for version in HELMS:
        argv = [helm(version), "template", "a", chart, "-n", "n", "--include-crds"]
        stock = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        assert becalm(chart, version=version).stdout == stock


@pytest.mark.parametrize(
    ("files", "arguments", "code", "words"),
    [
        ({"templates/a.yaml": "{{ genCA 1 }}"}, (), 5, "wrong number of args for genCA"),
        ({"templates/a.yaml": "{{ if }}"}, (), 5, "helm template failed"),
        ({"templates/a.yaml": "a: {{ uuidv4 }}{{ fail `no` }}"}, (), 5, "no"),
        ({}, ("--values=/nonexistent",), 3, "/nonexistent: the values file cannot be read"),
        ({}, ("--helm=/nonexistent",), 4, "/nonexistent"),
    ],
)
def test_faults_are_one_clear_line(
    files: dict[str, str], arguments: tuple[str, ...], code: int, words: str, tmp_path: Path
) -> None:
    """Bad input ends with its exit code, a message on the first line, and no output."""
    done = becalm(write(tmp_path, files), *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr.splitlines()[0]


def test_a_drawing_chart_without_a_seed_is_refused(tmp_path: Path) -> None:
    """There is no default seed."""
    chart = write(tmp_path, CASES["checksum"])
    done = children.run(["render", chart, "--app=a", "--namespace=n", "--helm", helm("4.1.4")])
    assert (done.returncode, done.stdout) == (8, "")
    assert "needs a seed" in done.stderr


def test_generate_works_from_argo_cds_environment(tmp_path: Path) -> None:
    """`generate` renders the current directory for the application that Argo CD names."""
    chart = write(tmp_path, CASES["checksum"])
    becalm(chart)
    env = {
        "PATH": os.environ["PATH"],
        "ARGOCD_APP_NAME": "ns_a",
        "ARGOCD_APP_NAMESPACE": "n",
        "ARGOCD_APP_PROJECT_NAME": "default",
        "ARGOCD_APP_PARAMETERS": "null",
        "BECALM_SEED_FILE": str(tmp_path / "seed"),
        "BECALM_HELM": str(helm("4.1.4")),
    }
    done = children.run(["generate"], cwd=chart, env=env)
    assert done.returncode == 0, done.stderr
    assert "kind: Secret" in done.stdout


def test_verify_and_audit_name_places_and_no_values(tmp_path: Path) -> None:
    """`verify` proves a chart and shows where draws land; `audit` lists the calls."""
    chart = write(tmp_path, CASES["checksum"])
    common = ["--app=a", "--namespace=n", "--throwaway-seed", f"--helm={helm('4.1.4')}"]
    done = children.run(["verify", chart, *common])
    assert done.returncode == 0, done.stderr
    assert "templates/s.yaml:6" in done.stdout
    assert "Secret/n/db data.password" in done.stdout
    done = children.run(["audit", chart])
    assert "templates/s.yaml:6  randAlphaNum  draw" in done.stdout
