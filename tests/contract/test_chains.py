"""A chart and a kustomization in one directory: the chart's output is one of the Kustomization's resources."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from applications import array, pairs, text, write
from test_kustomize_charts import CHART, DRAWS, HELM, KUBECTL, below, by_hand, objects, seed  # noqa: F401
from test_kustomize_parameters import fingerprint, generate

KUSTOMIZATION = "resources: [all.yaml, extra.yaml]\nnamePrefix: k-\n"
EXTRA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"


def chain(root: Path, kustomization: str = KUSTOMIZATION, **more: str) -> Path:
    return write(
        root, below("apps/web", {**CHART, "kustomization.yaml": kustomization, "extra.yaml": EXTRA, **more})
    )


def stock(root: Path, name: str, *flags: str) -> str:
    """What people do by hand: helm template into a file, then kustomize."""
    app = root / "apps" / "web"
    argv = [HELM, "template", app, "--name-template=my-app", "--namespace=space", "--include-crds", *flags]
    (app / name).write_text(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    return subprocess.run([KUBECTL, "kustomize", app], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["all.yaml", "helm.yaml", "rendered/manifests.yml"])
def test_the_resource_that_is_not_there_is_the_charts_output(tmp_path, name):
    root = chain(tmp_path / "repository", KUSTOMIZATION.replace("all.yaml", name))
    before = fingerprint(root)
    done = generate(root)
    assert fingerprint(root) == before
    (root / "apps" / "web" / name).parent.mkdir(exist_ok=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", stock(root, name))


def test_without_one_the_output_comes_first(tmp_path):
    root = chain(tmp_path / "repository", "resources: [extra.yaml]\nnameSuffix: -k\n")
    done = generate(root)
    (root / "apps" / "web" / "kustomization.yaml").write_text(
        "resources: [all.yaml, extra.yaml]\nnameSuffix: -k\n"
    )
    assert (done.returncode, done.stdout) == (0, stock(root, "all.yaml"))


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    root = chain(tmp_path / "repository", "resources: [all.yaml, becalm-chart.yaml]\n", **{
        "all.yaml": EXTRA.replace("extra", "mine"), "becalm-chart.yaml": EXTRA.replace("extra", "too"),
    })  # fmt: skip
    assert set(objects(generate(root))) == {"mine", "too", "my-app-config"}


def test_two_resources_that_are_not_there_are_an_error(tmp_path):
    done = generate(chain(tmp_path / "repository", "resources: [all.yaml, helm.yaml, extra.yaml]\n"))
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        "apps/web: the chart's output can be only one of the resources that are not there: all.yaml, helm.yaml"
        in done.stderr
    )


def test_parameters_of_both_apply_each_to_its_step(tmp_path):
    root = chain(tmp_path / "repository")
    given = [
        pairs("parameters", size="7"),
        text("releaseName", "rel"),
        text("namePrefix", "new-"),
        pairs("commonLabels", a="b"),
    ]
    found = objects(generate(root, *given))
    assert set(found) == {"new-extra", "new-rel-config"}
    assert found["new-rel-config"]["data"]["size"] == "7"
    assert found["new-extra"]["metadata"]["labels"] == {"a": "b"}
    assert found["new-rel-config"]["metadata"]["namespace"] == "space"
    assert "namespace" not in found["new-extra"]["metadata"]


def test_the_namespace_goes_to_kustomize_only_when_it_is_set(tmp_path):
    found = objects(generate(chain(tmp_path / "repository"), text("namespace", "set")))
    assert {one["metadata"]["namespace"] for one in found.values()} == {"set"}


def test_random_values_are_stable_and_kustomize_sees_them(tmp_path, seed):  # noqa: F811
    root = chain(tmp_path / "repository", **{"templates/b.yaml": DRAWS})
    first, second = (objects(generate(root, BECALM_SEED_FILE=seed)) for _ in range(2))
    assert first == second
    assert len(first["k-my-app-pw"]["stringData"]["pw"]) == 20
    alone = objects(generate(root, text("becalm.source", "helm"), BECALM_SEED_FILE=seed))
    assert alone["my-app-pw"]["stringData"] == first["k-my-app-pw"]["stringData"]


def test_the_source_can_be_chosen(tmp_path):
    root = chain(tmp_path / "repository", "resources: [extra.yaml]\n")
    assert set(objects(generate(root, text("becalm.source", "helm")))) == {"my-app-config"}
    assert set(objects(generate(root, text("becalm.source", "kustomize")))) == {"extra"}
    assert set(objects(generate(root, text("becalm.source", "chain")))) == {"extra", "my-app-config"}
    assert set(objects(generate(root, text("becalm.source", "directory")))) == {"extra"}


@pytest.mark.parametrize(
    ("source", "parameter", "words"),
    [
        (
            "helm",
            text("namePrefix", "a"),
            "namePrefix: the parameter is for Kustomizations, and this is a chart",
        ),
        (
            "kustomize",
            text("releaseName", "a"),
            "releaseName: the parameter is for charts, and this is a Kustomization",
        ),
        (
            "directory",
            array("images", "a:b"),
            "images: the parameter is for Kustomizations, and these are plain manifests",
        ),
    ],
)
def test_parameters_that_would_do_nothing_are_errors(tmp_path, source, parameter, words):
    done = generate(chain(tmp_path / "repository"), text("becalm.source", source), parameter)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


@pytest.mark.parametrize("resource", ["../all.yaml", "/all.yaml", "link/all.yaml", "../../../outside.yaml"])
def test_the_output_is_written_nowhere_else(tmp_path, resource):
    root = chain(tmp_path / "repository", f"resources: ['{resource}', extra.yaml]\n")
    (root / "apps" / "web" / "link").symlink_to(tmp_path)
    before = fingerprint(root)
    done = generate(root)
    assert done.returncode in {3, 5}
    assert done.stdout == ""
    assert fingerprint(root) == before
    assert not (tmp_path / "all.yaml").exists()


@pytest.mark.parametrize("source", ["chain", "kustomize"])
def test_verify_and_explain_work(tmp_path, seed, source):  # noqa: F811
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: ''}\n"
    files = {"extra.yaml": service, "templates/b.yaml": DRAWS}
    kustomization = "resources: [extra.yaml]\n"
    if source == "kustomize":
        files |= below("charts/db", {**CHART, "templates/b.yaml": DRAWS})
        kustomization += "helmCharts:\n- {name: db, releaseName: shop}\n"
    root = chain(tmp_path / "repository", kustomization, **files)
    app = root / "apps" / "web"
    options = [f"--root={root}", f"--source={source}", f"--seed={seed}", "--build-options=--enable-helm"]
    verified = by_hand("verify", app, *options)
    assert verified.returncode == 0, verified.stderr
    assert "becalm's renders are identical" in verified.stdout
    explained = by_hand("explain", app, *options)
    assert "core/service-empty-addresses" in explained.stdout, explained.stderr
    assert by_hand("ignore", app, *options).returncode == 0
    derived = by_hand("derive", app, *options)
    if source == "chain":
        assert "Secret/my-app-pw/stringData" in derived.stdout, derived.stderr
    else:
        assert derived.returncode == 2
        assert "what is derived for the charts of a Kustomization cannot be listed" in derived.stderr


def test_an_applications_own_rules_are_read_from_its_directory(tmp_path):
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: ''}\n"
    root = chain(tmp_path / "repository", "resources: [extra.yaml]\n", **{"extra.yaml": service})
    for switches, wanted in (("[]", {}), ("[-core/service-empty-addresses]", {"clusterIP": ""})):
        write(root, {"apps/web/.becalm.yaml": f"switches: {switches}\n"})
        assert objects(generate(root, BECALM_RULES=""))["s"]["spec"] == wanted
