"""Charts in Kustomizations, charts before Kustomizations, and bases on other servers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import children
import pytest
import yaml
from applications import array, pairs, text, write
from test_kustomize_parameters import KUBECTLS, TOOLS, fingerprint, generate

HELM = TOOLS / "helm-4.1.4" / "helm"
KUBECTL = TOOLS / KUBECTLS[-1] / "kubectl"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
    "values.yaml": "size: 1\n",
    "templates/a.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-config, namespace: {{ .Release.Namespace }}}\n"
        "data:\n  kube: {{ .Capabilities.KubeVersion }}\n  size: {{ .Values.size | quote }}\n"
        '  has: {{ .Capabilities.APIVersions.Has "example.com/v9" | quote }}\n'
    ),
}
DRAWS = "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-pw}\nstringData: {pw: {{ randAlphaNum 20 }}}\n"
INFLATED = "helmCharts:\n- {name: db, releaseName: shop, namespace: there, valuesInline: {size: 3}}\n"


@pytest.fixture
def seed(tmp_path):
    path = tmp_path / "seed"
    path.touch(mode=0o600)
    path.write_bytes(bytes(range(32)))
    return str(path)


def below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": content for name, content in files.items()}


def inflated(root: Path, kustomization: str = INFLATED, **more: str) -> Path:
    files = {"kustomization.yaml": kustomization, **below("charts/db", {**CHART, **more})}
    return write(root, below("apps/web", files))


def objects(done: subprocess.CompletedProcess) -> dict[str, dict]:
    assert (done.returncode, done.stderr) == (0, "")
    return {obj["metadata"]["name"]: obj for obj in yaml.safe_load_all(done.stdout)}


ENABLE = {"BECALM_KUSTOMIZE_BUILD_OPTIONS": "--enable-helm"}


def test_inflated_charts_are_those_of_stock_kustomize(tmp_path):
    root = inflated(tmp_path / "repository")
    before = fingerprint(root)
    parameters = [text("kubeVersion", "1.29.3"), array("apiVersions", "example.com/v9")]
    done = generate(root, *parameters, **ENABLE)
    argv = [KUBECTL, "kustomize", "apps/web", "--enable-helm", f"--helm-command={HELM}", "--helm-kube-version=1.29.3",
            "--helm-api-versions=example.com/v9"]  # fmt: skip
    assert fingerprint(root) == before
    stock = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=True).stdout
    assert (done.returncode, done.stderr, done.stdout) == (0, "", stock)
    assert "v1.29.3" in stock


def test_inflated_charts_are_stable_and_have_the_applications_values(tmp_path, seed):
    root = inflated(tmp_path / "repository", **{"templates/b.yaml": DRAWS})
    before = fingerprint(root)
    first, second = (generate(root, BECALM_SEED_FILE=seed, **ENABLE) for _ in range(2))
    assert objects(first) == objects(second)
    other = generate(root, BECALM_SEED_FILE=seed, ARGOCD_APP_NAME="other", **ENABLE)
    epoch = generate(root, text("becalm.epoch", "2"), BECALM_SEED_FILE=seed, **ENABLE)
    passwords = {objects(done)["shop-pw"]["stringData"]["pw"] for done in (first, other, epoch)}
    assert len(passwords) == 3
    assert fingerprint(root) == before


LOOKS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data: {found: {{ lookup "v1" "ConfigMap" "there" "shop-config" | len | quote }}}
"""


def test_what_inflated_charts_look_up_is_told_and_answered_as_the_operator_says(tmp_path, seed):
    root = inflated(tmp_path / "repository", **{"templates/b.yaml": LOOKS})
    done = generate(root, BECALM_SEED_FILE=seed, **ENABLE)
    assert done.returncode == 0
    assert done.stderr.startswith(
        "Warning: lookup: the chart looks up 1 object, which Argo CD answers with nothing:"
    )
    assert "ConfigMap there/shop-config (templates/b.yaml:4)" in done.stderr
    assert "found: '0'" in done.stdout or 'found: "0"' in done.stdout
    found = objects(generate(root, BECALM_SEED_FILE=seed, BECALM_LOOKUP="rendered", **ENABLE))
    assert int(found["seen"]["data"]["found"]) > 0
    done = generate(root, BECALM_SEED_FILE=seed, BECALM_LOOKUP="recorded", **ENABLE)
    assert (done.returncode, done.stdout) == (5, "")
    assert "no answer is recorded for ConfigMap there/shop-config" in done.stderr
    done = generate(root, BECALM_SEED_FILE=seed, BECALM_LOOKUP="live", **ENABLE)
    assert (done.returncode, done.stdout) == (5, "")
    assert "the project 'default' may not read the cluster" in done.stderr


def test_charts_need_the_operators_word(tmp_path):
    done = generate(inflated(tmp_path / "repository"))
    assert (done.returncode, done.stdout) == (5, "")
    assert (
        "the operator switches charts on with --enable-helm in BECALM_KUSTOMIZE_BUILD_OPTIONS" in done.stderr
    )


def test_a_chart_that_draws_needs_a_seed(tmp_path):
    root = inflated(tmp_path / "repository", **{"templates/b.yaml": DRAWS})
    done = generate(root, **ENABLE)
    assert (done.returncode, done.stdout) == (5, "")
    assert "BECALM_SEED_FILE" in done.stderr


@pytest.fixture
def fake(tmp_path):
    """A program in the place of becalm-helm that writes down its environment and its line."""
    path = tmp_path / "fake-helm"
    path.write_text(
        f'#!/bin/sh\nenv -0 > {tmp_path}/env-$1\necho "$@" >> {tmp_path}/lines\n'
        f'[ "$1" = version ] && exec {HELM} "$@"\necho "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}"\n'
    )
    path.chmod(0o755)
    return path


def seen(tmp_path: Path) -> dict[str, str]:
    items = (tmp_path / "env-template").read_text().split("\0")
    return dict(item.split("=", 1) for item in items if item)


def test_becalm_helm_gets_the_variables_of_generate_and_no_others(tmp_path, fake):
    root = inflated(tmp_path / "repository")
    done = generate(
        root, text("becalm.epoch", "9"), BECALM_HELM_COMMAND=str(fake), BECALM_CLUSTER="c", KUBE_VERSION="1.34.1",
        ARGOCD_ENV_X="y", AWS_SECRET_ACCESS_KEY="never", GIT_SSH_COMMAND="touch ran", HELM_PLUGINS="/x", **ENABLE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = seen(tmp_path)
    assert found["ARGOCD_APP_NAME"] == "my-app"
    assert json.loads(found["ARGOCD_APP_PARAMETERS"]) == [{"name": "becalm.epoch", "string": "9"}]
    assert (found["BECALM_CLUSTER"], found["KUBE_VERSION"], found["ARGOCD_ENV_X"]) == ("c", "1.34.1", "y")
    assert found["BECALM_HELM"] == str(HELM)
    assert not {
        "SECRET",
        "AWS_SECRET_ACCESS_KEY",
        "GIT_SSH_COMMAND",
        "BECALM_HELM_COMMAND",
        "BECALM_HELM_ROOT",
    } & set(found)
    assert found["HELM_PLUGINS"] != "/x"
    ours = {name for name in found if name.startswith(("ARGOCD_", "BECALM_", "KUBE_"))}
    assert set(found) - ours <= {
        "PATH", "HOME", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "KUSTOMIZE_PLUGIN_HOME",
        "KUBECONFIG", "HELM_PLUGINS", "HELM_NO_PLUGINS", "HELM_REGISTRY_CONFIG", "HELM_REPOSITORY_CONFIG", "HELM_REPOSITORY_CACHE", "HELM_CONTENT_CACHE", "HELM_CONFIG_HOME", "HELM_CACHE_HOME",
        "HELM_DATA_HOME", "GIT_TERMINAL_PROMPT", "GIT_CONFIG_NOSYSTEM", "GIT_ALLOW_PROTOCOL", "LC_CTYPE", "PWD", "SHLVL", "_", "OLDPWD",
    }  # fmt: skip


def by_hand(command: str, path: Path, *options: str, **variables: str) -> subprocess.CompletedProcess:
    words = [
        command,
        path,
        "--app=my-app",
        "--namespace=space",
        f"--helm={HELM}",
        f"--kustomize={KUBECTL}",
        *options,
    ]
    return children.run(words, env={"PATH": os.environ["PATH"], **variables}, timeout=200)


def test_by_hand_becalm_helm_gets_what_the_options_say(tmp_path, fake, seed):
    root = inflated(tmp_path / "repository")
    done = by_hand(
        "render", root / "apps" / "web", f"--root={root}", "--build-options=--enable-helm", f"--seed={seed}", "--cluster=c",
        "--epoch=4", "--item-epoch=Secret/a/b=2", "--instant=2025-01-01T00:00:00Z", BECALM_HELM_COMMAND=str(fake),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = seen(tmp_path)
    assert json.loads(found["ARGOCD_APP_PARAMETERS"]) == [
        {"name": "becalm.epoch", "string": "4"}, {"name": "becalm.epochs", "map": {"Secret/a/b": "2"}}
    ]  # fmt: skip
    assert (found["ARGOCD_APP_NAMESPACE"], found["BECALM_CLUSTER"]) == ("space", "c")
    assert found["BECALM_INSTANT"] == "2025-01-01T00:00:00Z"
    assert not Path(found["BECALM_SEED_FILE"]).exists()


def test_by_hand_and_in_argo_cd_values_are_the_same(tmp_path, seed):
    root = inflated(tmp_path / "repository", **{"templates/b.yaml": DRAWS})
    done = by_hand(
        "render",
        root / "apps" / "web",
        f"--root={root}",
        "--build-options=--enable-helm",
        f"--seed={seed}",
        "--rule=-all",
    )
    assert objects(done) == objects(generate(root, BECALM_SEED_FILE=seed, **ENABLE))


HOSTILE = [
    "{name: db, releaseName: '--post-renderer=./run.sh'}",
    "{name: db, releaseName: '--output-dir=/tmp'}",
    "{name: db, releaseName: '-f/etc/passwd'}",
    "{name: db, releaseName: '--kubeconfig=x'}",
    "{name: db, releaseName: '--set-file=a=/etc/passwd'}",
    "{name: ../../../../outside, releaseName: a}",
    "{name: db, releaseName: a, nameTemplate: '{{ env \"BECALM_CLUSTER\" }}'}",
    "{name: db, releaseName: a, nameTemplate: '{{ expandenv \"$HOME\" }}'}",
    "{name: db, releaseName: a, valuesFile: /etc/passwd}",
    "{name: db, releaseName: a, valuesFile: ../../../outside/values.yaml}",
    "{name: db, releaseName: a, additionalValuesFiles: [../../../outside/values.yaml]}",
    "{name: '--post-renderer=./run.sh', repo: 'https://127.0.0.1:1', version: 1.0.0}",
    "{name: '../x', repo: 'oci://127.0.0.1:1/a', version: 1.0.0}",
    "{name: db, repo: 'https://127.0.0.1:1', version: '../../../../../1'}",
    "{name: db, repo: 'https://127.0.0.1:1', version: '../../../../../../home/helm-plugins/a'}",
    "{name: linked, releaseName: a}",
]


@pytest.mark.parametrize(
    "kustomization",
    [
        *(f"helmCharts: [{chart}]\n" for chart in HOSTILE),
        *(f"generators: [generator.yaml]\n#{chart}" for chart in HOSTILE[:8]),
        "helmGlobals: {chartHome: ../../../outside}\nhelmCharts: [{name: db, releaseName: a}]\n",
        "helmGlobals: {chartHome: /outside}\nhelmCharts: [{name: db, releaseName: a}]\n",
        "helmGlobals: {configHome: ../../../outside}\nhelmCharts: [{name: db, releaseName: a}]\n",
        "helmChartInflationGenerator: [{chartName: db, chartHome: ../../../outside}]\n",
    ],
)
@pytest.mark.parametrize("restrictor", ["", " --load-restrictor=LoadRestrictionsNone"])
def test_no_chart_gives_helm_an_option_or_leads_out(tmp_path, kustomization, restrictor):
    write(tmp_path / "outside", {**CHART, **below("db", CHART), "values.yaml": "size: stolen\n"})
    root = inflated(tmp_path / "repository", kustomization)
    app = root / "apps" / "web"
    (app / "charts" / "linked").symlink_to(tmp_path / "outside")
    (app / "run.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    (app / "run.sh").chmod(0o755)
    chart = kustomization.partition("#")[2]
    if chart:
        fields = yaml.safe_load(chart)
        kind = {"apiVersion": "builtin", "kind": "HelmChartInflationGenerator", "metadata": {"name": "x"}}
        (app / "generator.yaml").write_text(yaml.safe_dump({**kind, **fields}))
    before = fingerprint(root)
    done = generate(
        root, BECALM_KUSTOMIZE_BUILD_OPTIONS=f"--enable-helm{restrictor}", BECALM_CLUSTER="stolen"
    )
    assert (done.returncode, done.stdout) in {(3, ""), (5, "")}, done.stderr
    assert "stolen" not in done.stderr
    assert "root:" not in done.stderr
    assert not (tmp_path / "ran").exists()
    assert fingerprint(root) == before


@pytest.mark.parametrize("form", ["list", "application", "sources"])
def test_by_hand_parameters_of_a_file_are_those_of_the_application(tmp_path, seed, form):
    given = [
        text("namePrefix", "x-"),
        pairs("commonLabels", app="$ARGOCD_APP_NAME"),
        text("becalm.epoch", "3"),
        {"name": "becalm.rules", "array": ["-all"]},
    ]
    root = inflated(tmp_path / "repository", **{"templates/b.yaml": DRAWS})
    plugin = {"plugin": {"name": "becalm", "parameters": given}}
    application = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "my-app"},
    }
    contents = {
        "list": given,
        "application": {**application, "spec": {"source": plugin}},
        "sources": {**application, "spec": {"sources": [{"chart": "other"}, plugin]}},
    }
    file = write(tmp_path, {"parameters.yaml": yaml.safe_dump(contents[form])}) / "parameters.yaml"
    options = [f"--root={root}", "--build-options=--enable-helm", f"--seed={seed}", f"--parameters={file}"]
    expected = generate(root, *given, BECALM_SEED_FILE=seed, BECALM_RULES="", **ENABLE)
    assert objects(by_hand("render", root / "apps" / "web", *options)) == objects(expected)
    verified = by_hand("verify", root / "apps" / "web", *options)
    assert verified.returncode == 0, verified.stderr


def test_by_hand_parameters_of_a_chart_and_options_go_together(tmp_path):
    root = write(
        tmp_path / "repository",
        below("apps/web", {**CHART, "env.yaml": "size: 5\n", "more.yaml": "size: 7\n"}),
    )
    given = [array("valueFiles", "env.yaml"), text("releaseName", "rel"), text("kubeVersion", "1.31.2")]
    file = write(tmp_path, {"parameters.yaml": yaml.safe_dump(given)}) / "parameters.yaml"
    app = root / "apps" / "web"
    found = objects(by_hand("render", app, f"--parameters={file}"))["rel-config"]["data"]
    assert (found["size"], found["kube"]) == ("5", "v1.31.2")
    found = objects(by_hand("render", app, f"--parameters={file}", f"--values={app}/more.yaml"))[
        "rel-config"
    ]["data"]
    assert found["size"] == "7"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: 1\n", "the file is neither a list of parameters nor an Application with a plugin"),
        ("kind: Application\nspec: {source: {helm: {}}}\n", "the file is neither a list"),
        ("- {name: nope, string: a}\n", "'nope' is no parameter of becalm"),
        ("a: [\n", "not valid YAML"),
    ],
)
def test_a_file_of_parameters_that_is_wrong_is_said(tmp_path, content, words):
    root = inflated(tmp_path / "repository")
    file = write(tmp_path, {"parameters.yaml": content}) / "parameters.yaml"
    done = by_hand("render", root / "apps" / "web", f"--parameters={file}")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
