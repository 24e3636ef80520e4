"""Parameters of Argo CD's own Helm source: the same output as its command line gives, and no way out."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import children
import pytest
from applications import HELM, array, pairs, text, write
from children import MEASURE

FILES = {
    "apps/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "apps/web/values.yaml": "a: {b: usual, c: 1}\nlist: []\nflag: true\n",
    "apps/web/values.schema.json": '{"properties": {"never": {"type": "integer"}}}',
    "apps/web/crds/thing.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n",
    "apps/web/templates/a.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n"
        "data:\n  values: {{ .Values | toJson | quote }}\n  kube: {{ .Capabilities.KubeVersion }}\n"
        '  has: {{ .Capabilities.APIVersions.Has "example.com/v9" | quote }}\n'
    ),
    "apps/web/templates/test.yaml": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n"
    ),
    "apps/web/env/one.yaml": "a: {b: one}\nlist: [one]\n",
    "apps/web/env/two.yaml": "a: {b: two}\n",
    "apps/web/env/deep/three.yaml": "a: {d: three}\n",
    "apps/web/my-app.yaml": "a: {b: app}\n",
    "apps/web/text.txt": "a, b\n",
    "common/all.yaml": "common: yes-it-is\n",
}


@pytest.fixture
def repository(tmp_path):
    return write(tmp_path / "repository", FILES)


def generate(root: Path, *parameters: dict, **variables: str) -> subprocess.CompletedProcess:
    env = {
        **MEASURE, "PATH": os.environ["PATH"], "BECALM_HELM": str(HELM), "BECALM_RULES": "-all", "ARGOCD_APP_NAME": "my-app",
        "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "space", "ARGOCD_APP_SOURCE_PATH": "apps/web",
        "KUBE_VERSION": "1.34.1", "KUBE_API_VERSIONS": "v1,apps/v1", "SECRET": "never",
        "ARGOCD_APP_PARAMETERS": json.dumps(parameters), **variables,
    }  # fmt: skip
    return children.run(["generate"], cwd=root / "apps" / "web", env=env)


def stock(root: Path, *flags: str, release: str = "my-app", namespace: str = "space", crds: bool = True,
          kube: str = "1.34.1", apis: tuple[str, ...] = ("v1", "apps/v1")) -> str:  # fmt: skip
    """What Argo CD runs for its own Helm source (util/helm/cmd.go, `template`)."""
    argv = [
        HELM,
        "template",
        ".",
        "--name-template",
        release,
        "--namespace",
        namespace,
        "--kube-version",
        kube,
    ]
    argv += [*(["--include-crds"] if crds else []), *(f"--api-versions={api}" for api in apis), *flags]
    done = subprocess.run(argv, cwd=root / "apps" / "web", capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("parameters", "flags", "more"),
    [
        ([], [], {}),
        ([text("releaseName", "other")], [], {"release": "other"}),
        ([text("namespace", "there")], [], {"namespace": "there"}),
        ([array("valueFiles", "env/one.yaml", "env/two.yaml")], ["-f", "env/one.yaml", "-f", "env/two.yaml"], {}),
        ([array("valueFiles", "env/two.yaml", "env/one.yaml", "env/two.yaml")], ["-f", "env/two.yaml", "-f", "env/one.yaml"], {}),
        ([array("valueFiles", "/common/all.yaml", "../../common/all.yaml")], ["-f", "../../common/all.yaml"], {}),
        ([array("valueFiles", "env/*.yaml")], ["-f", "env/one.yaml", "-f", "env/two.yaml"], {}),
        ([array("valueFiles", "env/*.yaml", "env/one.yaml")], ["-f", "env/two.yaml", "-f", "env/one.yaml"], {}),
        ([array("valueFiles", "env/**/*.yaml")], ["-f", "env/deep/three.yaml", "-f", "env/one.yaml", "-f", "env/two.yaml"], {}),
        ([array("valueFiles", "/common/[a-b]ll.yaml")], ["-f", "../../common/all.yaml"], {}),
        ([array("valueFiles", "$ARGOCD_APP_NAME.yaml", "${ARGOCD_APP_NAME}.yaml")], ["-f", "my-app.yaml"], {}),
        ([array("valueFiles", "none.yaml", "x*.yaml", "env/one.yaml"), text("ignoreMissingValueFiles", "true")], ["-f", "env/one.yaml"], {}),
        ([text("values", "a: {b: inline $ARGOCD_APP_NAME}")], ["--set-json", 'a={"b": "inline $ARGOCD_APP_NAME"}'], {}),
        ([text("values", "a: {b: no}"), text("valuesObject", '{"a": {"b": "yes"}}')], ["--set", "a.b=yes"], {}),
        ([array("valueFiles", "env/one.yaml"), text("values", "a: {b: last}")], ["-f", "env/one.yaml", "--set", "a.b=last"], {}),
        ([text("values", "a: {b: x}"), pairs("parameters", **{"a.b": "set", "a.c": "2"})], ["--set", "a.b=set", "--set", "a.c=2"], {}),
        ([pairs("parameters", **{"a.b": "one,two", "list": "{x,y}"})], ["--set", r"a.b=one\,two", "--set", "list={x,y}"], {}),
        ([pairs("parameters", **{"a.b": "$ARGOCD_APP_NAME-${ARGOCD_APP_NAMESPACE}-$SECRET-$$-$KUBE_VERSION"})], ["--set", "a.b=my-app-space--$-"], {}),
        ([pairs("stringParameters", **{"a.c": "0123", "flag": "true"})], ["--set-string", "a.c=0123", "--set-string", "flag=true"], {}),
        ([pairs("fileParameters", **{"a.b": "text.txt"})], ["--set-file", "a.b=text.txt"], {}),
        ([text("skipCrds", "true")], [], {"crds": False}),
        ([text("skipTests", "true")], ["--skip-tests"], {}),
        ([pairs("parameters", never="x"), text("skipSchemaValidation", "true")], ["--set", "never=x", "--skip-schema-validation"], {}),
        ([text("version", "v3")], [], {}),
        ([text("kubeVersion", "1.29.3")], [], {"kube": "1.29.3"}),
        ([text("kubeVersion", "v1.29.3-eks-1")], [], {"kube": "1.29.3"}),
        ([text("kubeVersion", "1.29")], [], {"kube": "1.29.0"}),
        ([array("apiVersions", "example.com/v9", "v1")], [], {"apis": ("example.com/v9", "v1")}),
        ([text("skipCrds", "false"), text("values", ""), array("valueFiles"), pairs("parameters")], [], {}),
    ],
)  # fmt: skip
def test_the_output_is_that_of_argo_cds_own_source(repository, parameters, flags, more):
    done = generate(repository, *parameters)
    assert done.returncode == 0, done.stderr
    assert done.stdout == stock(repository, *flags, **more)


OUTSIDE = [
    "../../../outside.yaml", "/../outside.yaml", "/", "/..", "../..", "link.yaml", "linked/outside.yaml", "../../../*.yaml",
    "/../*", "linked/*", "$ARGOCD_APP_SOURCE_PATH/../../../outside.yaml",
]  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("parameter", ["valueFiles", "fileParameters"])
def test_no_file_outside_of_the_repository_is_read(repository, parameter, name):
    (repository.parent / "outside.yaml").write_text("stolen: true\n")
    app = repository / "apps" / "web"
    (app / "link.yaml").symlink_to(repository.parent / "outside.yaml")
    (app / "linked").symlink_to(repository.parent)
    given = array(parameter, name) if parameter == "valueFiles" else pairs(parameter, a=name)
    done = generate(repository, given, text("ignoreMissingValueFiles", "true"))
    assert "stolen" not in done.stdout
    assert "stolen" not in done.stderr
    if done.returncode == 0:
        # A pattern that finds nothing, where missing files are ignored.
        assert "*" in name
    else:
        assert done.returncode == 3
        assert "source.plugin.parameters: " in done.stderr or "leads out of the repository" in done.stderr


@pytest.mark.parametrize(
    "value",
    [
        "--post-renderer=/bin/sh", "-f/etc/passwd", "--kubeconfig=/x", "; id", "$(id)", "`id`", "a\nb", "--", "-",
        "{{ .Values }}", "\u0000".replace("\u0000", "%00"), "x --set y=z", "--debug", "--validate", "--dry-run=server",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "kind", ["releaseName", "parameters", "stringParameters", "apiVersions", "kubeVersion"]
)
def test_no_value_becomes_an_option(repository, kind, value):
    """75 values: each is a value or an error of helm or becalm, never an option."""
    given = {
        "releaseName": text(kind, value), "kubeVersion": text(kind, value), "apiVersions": array(kind, value),
        "parameters": pairs(kind, **{"a.b": value}), "stringParameters": pairs(kind, **{"a.b": value}),
    }[kind]  # fmt: skip
    done = generate(repository, given)
    assert done.returncode in (0, 2, 5), done.stderr
    assert "root:" not in done.stdout + done.stderr
    assert "uid=" not in done.stdout + done.stderr
    if done.returncode == 0 and kind == "stringParameters":
        (document,) = [part for part in done.stdout.split("---\n") if "ConfigMap" in part]
        assert json.dumps(value)[1:-1] in json.dumps(document).replace("\\\\\\", "\\") or "\n" in value


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ([text("releaseNam", "x")], "'releaseNam' is no parameter of becalm; did you mean releaseName?"),
        ([text("skipCrds", "yes")], "skipCrds: 'yes' is not allowed; write true or false"),
        ([text("valueFiles", "a.yaml")], "valueFiles: the parameter has the wrong type (string); set its `array`"),
        ([text("namespace", "Big_One")], "namespace: 'Big_One' is not allowed; for example"),
        ([text("version", "v2")], "version: 'v2' is no version of helm; write v3 or v4, or remove it"),
        ([text("images", "a")], "images: the parameter has the wrong type (string); set its `array`"),
        ([array("images", "a:1")], "images: the parameter is for Kustomizations, and this is a chart"),
        ([text("kubeVersion", "new")], "kubeVersion: 'new' is not allowed; for example \"1.34.1\""),
        ([array("valueFiles", "none.yaml")], "valueFiles: 'none.yaml': the file is not there; check its path, or set ignoreMissing"),
        ([array("valueFiles", "x*.yaml")], "valueFiles: 'x*.yaml': no file fits the pattern"),
        ([array("valueFiles", "https://example.com/a.yaml")], "'https://example.com/a.yaml' is an address"),
        ([array("valueFiles", "$values/a.yaml")], "means another source"),
        ([pairs("fileParameters", a="none.txt")], "fileParameters: 'none.txt': the file is not there"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(repository, parameters, words):
    done = generate(repository, *parameters)
    assert done.returncode in (2, 3)
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_random_values_in_values_of_parameters_are_stable(repository):
    (repository / "apps" / "web" / "templates" / "b.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: {{ tpl .Values.t . | quote }}}\n"
    )
    seed = repository.parent / "seed"
    seed.touch(mode=0o600)
    seed.write_bytes(bytes(range(32)))
    for given in (
        text("values", "t: '{{ randAlphaNum 20 }}'"),
        pairs("stringParameters", t="{{ randAlphaNum 20 }}"),
    ):
        outputs = {generate(repository, given, BECALM_SEED_FILE=str(seed)).stdout for _ in range(2)}
        assert len(outputs) == 1
        assert "randAlphaNum 20" not in outputs.pop().partition("kind: Secret")[2].partition("---")[0]


def test_what_can_be_set_is_announced(repository):
    def announced(*more: str) -> list[dict]:
        return json.loads(children.run(["parameters", *more], cwd=repository / "apps" / "web").stdout)

    assert {entry["name"] for entry in announced()} >= {"releaseName", "valueFiles", "becalm.epoch"}
    assert announced("--dynamic") == [
        {"name": "parameters", "title": "Helm parameters", "collectionType": "map",
         "map": {"a.b": "usual", "a.c": "1", "flag": "true"}}
    ]  # fmt: skip
    (repository / "apps" / "web" / "values.yaml").unlink()
    assert announced("--dynamic") == []
