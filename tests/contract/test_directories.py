"""Plain directories of manifests: the files that Argo CD's own source of them reads, normalised."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import children
import pytest
import yaml
from children import MEASURE

FILES = {
    "b.yaml": "# First.\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}   # as it is\n",
    "a.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a2}",
    "c.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},\n\t"data": {"k": "1"}}',
    "s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: ''}\n",
    "values.yaml": "a: 1\n",
    "notes.txt": "apiVersion kind metadata\n",
    ".becalm.yaml": "switches: []   # apiVersion kind metadata\n",
    "skipped.yaml": "# +argocd:skip-file-rendering\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: no}\n",
    "sub/d.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n",
    "sub/deep/e.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e}\n",
}


@pytest.fixture
def app(tmp_path) -> Path:
    root = tmp_path / "repository"
    for name, text in FILES.items():
        path = root / "apps" / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "apps" / "web"


def becalm(*arguments: object, cwd: Path, **env: str) -> subprocess.CompletedProcess:
    return children.run(arguments, cwd=cwd, env={**MEASURE, "PATH": os.environ["PATH"], **env})


def generate(app: Path, **options: str) -> subprocess.CompletedProcess:
    parameters = [{"name": f"directory.{name}", "string": value} for name, value in options.items()]
    return becalm(
        "generate", cwd=app, ARGOCD_APP_NAME="a", ARGOCD_APP_PROJECT_NAME="default", ARGOCD_APP_NAMESPACE="n",
        ARGOCD_APP_SOURCE_PATH="apps/web", ARGOCD_APP_PARAMETERS=json.dumps(parameters),
    )  # fmt: skip


def names(app: Path, **options: str) -> list[str]:
    done = generate(app, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return [obj["metadata"]["name"] for obj in yaml.safe_load_all(done.stdout) if obj]


def test_manifests_come_in_the_order_of_their_paths_and_keep_their_bytes(app):
    done = generate(app)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "---\n# Source: a.yml\n" + FILES["a.yml"] + "\n"
        "---\n# Source: b.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}   # as it is\n"
        "---\n# Source: c.json\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  k: '1'\n"
        "---\n# Source: s.yaml\napiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec: {}\n"
    )


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"recurse": "true"}, "a a2 b c s d e"),
        ({"recurse": "false"}, "a a2 b c s"),
        ({"include": "*.yml"}, "a a2"),
        ({"include": "{c.json,s.yaml}"}, "c s"),
        ({"include": "?.yaml"}, "b s"),
        ({"include": "[bs].yaml"}, "b s"),
        ({"include": "[!b].yaml"}, "s"),
        ({"include": "[a-c].*"}, "a a2 b c"),
        ({"recurse": "true", "include": "sub/*"}, "d e"),
        ({"recurse": "true", "include": "*.yaml", "exclude": "sub/*"}, "b s"),
        ({"exclude": "{a,b}.*"}, "c s"),
        ({"include": "{a.yml,{b,s}.{yaml,json}}"}, "a a2 b s"),
        ({"include": "\\b.yaml"}, "b"),
        ({"recurse": "true", "exclude": "*"}, None),
        ({"include": "\\*.yaml"}, None),
        ({"include": "nothing"}, None),
    ],
)
def test_globs_are_argo_cds(app, options, wanted):
    if wanted is not None:
        assert names(app, **options) == wanted.split()
        return
    done = generate(app, **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the source renders to nothing, and Argo CD would delete everything" in done.stderr


@pytest.mark.parametrize(
    ("files", "options", "code", "words"),
    [
        (
            {"x.json": '{"apiVersion": 1, "kind": 2, "metadata": '},
            {},
            3,
            "apps/web/x.json: the file is not JSON",
        ),
        ({"x.jsonnet": "{}"}, {}, 3, "apps/web/x.jsonnet: Jsonnet is not rendered"),
        ({"x.yaml": b"apiVersion \xff"}, {}, 3, "apps/web/x.yaml: the file cannot be read"),
        ({}, {"include": "[a"}, 2, "renders to nothing"),
        ({}, {"include": "{a"}, 2, "directory.include: a brace of the glob is not closed"),
        ({}, {"include": "{" * 3000}, 2, "directory.include: the glob has more than 100 braces"),
        ({}, {"exclude": "{a,b}" * 20}, 2, "directory.exclude: the glob has too many alternatives"),
        ({}, {"include": "[z-a]"}, 2, "renders to nothing"),
        ({"a" * 200 + ".yaml": ""}, {"include": "*a" * 1000 + "b"}, 2, "renders to nothing"),
        (
            {"kustomization.yaml": "resources: []\n"},
            {"recurse": "true"},
            2,
            "directory.recurse: the parameter is for plain manifests, and this is a Kustomization",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error(app, files, options, code, words):
    for name, content in files.items():
        (app / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    done = generate(app, **options)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def test_links_stay_in_the_repository(app, tmp_path):
    (app.parent / "shared.yaml").write_text(FILES["sub/d.yaml"])
    (app / "z.yaml").symlink_to("../shared.yaml")
    assert names(app)[-1] == "d"
    (tmp_path / "private.yaml").write_text(FILES["sub/deep/e.yaml"])
    (app / "z.yaml").unlink()
    (app / "z.yaml").symlink_to(tmp_path / "private.yaml")
    done = generate(app)
    assert (done.returncode, done.stdout) == (3, "")
    assert "apps/web/z.yaml: the link leads out of the repository" in done.stderr


def test_utf_16_is_read_as_argo_cd_reads_it(app):
    (app / "b.yaml").write_bytes(FILES["b.yaml"].encode("utf-16"))
    assert "b" in names(app)


def test_render_verify_and_explain_read_directories(app):
    options = ["--app=a", "--namespace=n", "--recurse", "--exclude=s*/deep/*"]
    done = becalm("render", app, *options, cwd=app)
    assert [obj["metadata"]["name"] for obj in yaml.safe_load_all(done.stdout) if obj] == [
        "a",
        "a2",
        "b",
        "c",
        "s",
        "d",
    ]
    assert becalm("verify", app, *options, cwd=app).returncode == 0
    assert "core/service-empty-addresses" in becalm("explain", app, *options, cwd=app).stdout


def test_what_a_directory_holds_is_discovered(app, tmp_path):
    assert becalm("discover", cwd=app).stdout == "directory\n"
    (app / "kustomization.yml").write_text("")
    assert becalm("discover", cwd=app).stdout == "kustomize\n"
    (app / "Chart.yaml").write_text("")
    assert becalm("discover", cwd=app).stdout == "chain\n"
    (app / "kustomization.yml").unlink()
    assert becalm("discover", cwd=app).stdout == "helm\n"
    (tmp_path / "empty").mkdir()
    done = becalm("discover", tmp_path / "empty", cwd=app)
    assert (done.returncode, done.stdout) == (0, "")
    assert becalm("discover", tmp_path / "none", cwd=app).returncode == 2


def test_an_empty_directory_is_an_error_that_says_what_was_looked_for(app, tmp_path):
    (tmp_path / "empty").mkdir()
    done = becalm("render", tmp_path / "empty", "--app=a", "--namespace=n", cwd=app)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(
        "Error: empty: there is no Chart.yaml, no kustomization.yaml, kustomization.yml, Kustomization, and no .yaml,"
    )
    done = becalm("parameters", "--dynamic", cwd=app)
    assert (done.returncode, done.stdout) == (0, "[]\n")


OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("z.yaml", OBJECT + "---\nfoo: bar\n", "apps/web/z.yaml: a document holds no Kubernetes object; add a kind, or leave the"),
        ("z.yaml", "foo: bar\n---\n" + OBJECT, "apps/web/z.yaml: a document holds no Kubernetes object"),
        ("z.yaml", OBJECT + "---\n- 1\n", "apps/web/z.yaml: a document holds no Kubernetes object"),
        ("z.yaml", OBJECT + "---\na: [\n", "apps/web/z.yaml, line 2: not valid YAML"),
        ("z.yaml", "apiVersion: v1\nkind: X\nmetadata: {{ x }}\n", "apps/web/z.yaml"),
        ("package.json", '{"name": "x"}', "apps/web/package.json: the file holds no Kubernetes object; add a kind, or leave"),
        ("z.json", "[{}]", "apps/web/z.json: the file holds no Kubernetes object"),
    ],
)  # fmt: skip
def test_a_file_that_is_partly_wrong_is_an_error_that_names_it(app, name, text, words):
    """As Argo CD has it: nothing disappears that somebody may have meant."""
    (app / name).write_text(text)
    done = generate(app)
    assert done.returncode in (3, 7)
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "foo: bar\n",
        "# apiVersion kind metadata\nfoo: bar\n",
        "a: [\n",
        "- 1\n- 2\n",
        "text\n",
        "{{ define }}\n",
        "",
    ],
)
def test_a_file_that_is_something_else_is_left_out(app, text):
    (app / "z.yaml").write_text(text)
    assert names(app) == ["a", "a2", "b", "c", "s"]


def test_an_object_without_metadata_is_kept(app):
    """Argo CD will say what is wrong with it; without it, it would be deleted."""
    (app / "z.yaml").write_text("apiVersion: v1\nkind: PersistentVolumeClaim\nmetdata: {name: z}\n")
    done = generate(app)
    assert (done.returncode, done.stderr) == (0, "")
    assert "metdata: {name: z}" in done.stdout


@pytest.mark.parametrize("name", ["namespace", "kubeVersion", "version"])
def test_parameters_of_charts_are_refused(app, name):
    value = {"namespace": "x", "kubeVersion": "1.34.1", "version": "v3"}[name]
    done = becalm(
        "generate", cwd=app, ARGOCD_APP_NAME="a", ARGOCD_APP_PROJECT_NAME="default",
        ARGOCD_APP_PARAMETERS=json.dumps([{"name": name, "string": value}]),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{name}: the parameter is for charts, and these are plain manifests" in done.stderr


@pytest.mark.parametrize(
    "files", [{"main.jsonnet": "{}"}, {"package.json": "{}"}, {".github.yaml": "a: 1\n"}]
)
def test_what_holds_no_manifest_is_not_discovered(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = becalm("discover", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
