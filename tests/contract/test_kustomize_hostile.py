"""Hostile parameters and kustomizations: nothing becomes an option, leaves the repository, runs, or reads our secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from applications import array, pairs, text, write
from kustomize_cases import BASE, PLAIN
from test_kustomize_parameters import fingerprint, generate
from test_kustomize_remotes import git

MARK = "stolen"
OPTIONS = [
    "--enable-helm",
    "--enable-alpha-plugins",
    "--enable-exec",
    "-o/tmp/x",
    "--load-restrictor=LoadRestrictionsNone",
    "--",
    "-",
    "--help",
]
TEXTS = [
    *OPTIONS, "a\nresources: [/etc/passwd]", "a: b\n---\nkind: Secret", "'", '"', "{{ .Values }}", "$(id)", "`id`", "; id",
    "$SECRET", "${SECRET}", "*a", "&a b", "!!python/object:os.system x", "a\tb", "\u2028", "<<: *a", "| id", "%x", "../../..",
]  # fmt: skip


@pytest.fixture
def repository(tmp_path):
    write(tmp_path, {"outside/kustomization.yaml": "resources: [a.yaml]\n", "outside/a.yaml": _config(MARK)})
    return write(tmp_path / "repository", {**BASE, "apps/web/kustomization.yaml": PLAIN})


def _config(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: {MARK}}}\n"


def harmless(repository: Path, *parameters: dict, **variables: str):
    """Render and look: no text from outside, no trace of a program, the checkout as it was; the run itself."""
    before = fingerprint(repository)
    done = generate(repository, *parameters, **variables)
    assert done.returncode in (0, 2, 3, 5), done.stderr
    assert "internal error" not in done.stderr
    assert MARK not in done.stdout + done.stderr
    for trace in ("root:", "uid=", "stolen-secret"):
        assert trace not in done.stdout + done.stderr
    assert not (repository.parent / "ran").exists()
    assert fingerprint(repository) == before
    if done.returncode != 0:
        assert done.stdout == ""
    return done


@pytest.mark.parametrize("value", TEXTS)
@pytest.mark.parametrize("parameter", ["namePrefix", "nameSuffix", "images", "replicas", "commonLabels", "commonAnnotations", "components", "apiVersions"])  # fmt: skip
def test_no_value_becomes_an_option_or_another_field(repository, parameter, value):
    """More than 200 values: each is a value of its field, or an error."""
    given = {
        "images": array(parameter, value), "components": array(parameter, value), "apiVersions": array(parameter, value),
        "replicas": pairs(parameter, **{value: "1"}), "commonLabels": pairs(parameter, **{value: value}),
        "commonAnnotations": pairs(parameter, **{value: value}),
    }.get(parameter, text(parameter, value))  # fmt: skip
    done = harmless(repository, given)
    if done.returncode == 0:
        kinds = [obj["kind"] for obj in yaml.safe_load_all(done.stdout)]
        assert sorted(kinds) == ["ConfigMap", "Deployment", "Service"]


@pytest.mark.parametrize(
    "value",
    [
        "- path: /etc/passwd", "- path: ../../../outside/a.yaml", "- path: link.yaml", "- {path: 'https://127.0.0.1:1/x.yaml'}",
        "- patch: '[{\"op\": \"add\", \"path\": \"/data/x\", \"value\": \"$SECRET\"}]'\n  target: {kind: ConfigMap}\n",
        "- {patch: x, exec: {path: /bin/sh}}", "--- a", "a", "- &a [*a]", "- {options: {x: 1}}", "[[]]",
    ],
)  # fmt: skip
def test_patches_read_nothing_else(repository, value):
    (repository / "apps" / "web" / "link.yaml").symlink_to(repository.parent / "outside" / "a.yaml")
    done = harmless(repository, text("patches", value))
    assert done.returncode != 0 or "$SECRET" in done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "../../../outside", "/outside", "../../../*", "linked", "link*", "/", "..", "../../../../../../../../etc",
        "ext::sh -c touch% ../../../ran", "git@ext::sh", "file:///etc", "../../../outside/", "./../../../outside",
    ],
)  # fmt: skip
@pytest.mark.parametrize("ignore", ["true", "false"])
def test_components_stay_in_the_repository(repository, name, ignore):
    (repository / "apps" / "web" / "linked").symlink_to(repository.parent / "outside")
    done = harmless(repository, array("components", name), text("ignoreMissingComponents", ignore))
    assert done.returncode != 0 or ignore == "true"


KUSTOMIZATIONS = [
    "resources: [../../../outside]",
    "resources: [../../../outside/a.yaml]",
    "resources: [/outside/a.yaml]",
    "resources: [linked]",
    "resources: [linked/a.yaml]",
    "resources: [link.yaml]",
    "resources: [../../escape]",
    "bases: [../../../outside]",
    "BASES: [../../../outside]",
    "components: [../../../outside]",
    "crds: [/etc/passwd]",
    "crds: [../../../outside/a.yaml]",
    "openapi: {path: /etc/passwd}",
    "openapi: {Path: ../../../outside/a.yaml}",
    "configurations: [/etc/passwd]",
    "generators: [../../../outside]",
    "generators: [exec.yaml]",
    "generators: [plugin.yaml]",
    "transformers: [exec.yaml]",
    "transformers: [../../../outside/a.yaml]",
    "validators: [exec.yaml]",
    "validators: [container.yaml]",
    "configMapGenerator: [{name: a, files: [/etc/passwd]}]",
    "configMapGenerator: [{name: a, files: ['k=../../../outside/a.yaml']}]",
    "configMapGenerator: [{name: a, envs: [/proc/self/environ]}]",
    "configMapGenerator: [{name: a, env: ../../../outside/a.yaml}]",
    "secretGenerator: [{name: a, files: [link.yaml]}]",
    "patchesStrategicMerge: [../../../outside/a.yaml]",
    "patchesJson6902: [{path: /etc/passwd, target: {kind: ConfigMap, name: a, version: v1}}]",
    "patches: [{path: linked/a.yaml}]",
    "replacements: [{path: /etc/passwd}]",
    "resources: ['git::ext::sh -c touch% ../../../ran']",
    "resources: ['ext::sh -c touch% ../../../ran']",
    "resources: ['a@ext::sh -c touch% ../ran/x/y']",
    "resources: ['file:///outside//x']",
    "resources: ['https://127.0.0.1:1/a/b?ref=--upload-pack=touch']",
    "resources: ['ssh://-oProxyCommand=touch/a/b']",
    "resources: ['git@-oProxyCommand=touch:a/b']",
    "resources: ['http://127.0.0.1:1/a.git//x?ref=v1.0.0']",
    "resources: ['https://user:stolen@127.0.0.1:1/a/b.yaml']",
    "helmCharts: [{name: web}]",
    "resources: &a [*a]",
    "resources: {a: b}",
    "namePrefix: [1]",
    "? [a]\n: b",
    "resources: [.]",
    "resources: ['a\\0b']",
    "a: 1\n---\nb: 2",
]


@pytest.mark.parametrize("content", KUSTOMIZATIONS)
@pytest.mark.parametrize("restrictor", ["", "--load-restrictor=LoadRestrictionsNone"])
def test_kustomizations_stay_in_the_repository_and_run_nothing(repository, content, restrictor):
    app = repository / "apps" / "web"
    (app / "linked").symlink_to(repository.parent / "outside")
    (app / "link.yaml").symlink_to(repository.parent / "outside" / "a.yaml")
    function = "metadata: {{name: x, annotations: {{config.kubernetes.io/function: '{0}'}}}}\n"
    script = app / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {repository.parent}/ran\n")
    script.chmod(0o755)
    write(repository, {
        "escape/kustomization.yaml": "resources: [../../outside]\n",
        "apps/web/exec.yaml": "apiVersion: x/v1\nkind: X\n" + function.format("{exec: {path: ./run.sh}}"),
        "apps/web/container.yaml": "apiVersion: x/v1\nkind: X\n" + function.format("{container: {image: x}}"),
        "apps/web/plugin.yaml": "apiVersion: someteam.example.com/v1\nkind: Run\nmetadata: {name: x}\n",
        "apps/web/kustomization.yaml": content + "\n",
    })  # fmt: skip
    done = harmless(repository, BECALM_KUSTOMIZE_BUILD_OPTIONS=restrictor, HOME=str(app))
    assert done.returncode != 0


GENERATORS = [
    "generators: [generator.yaml]",
    "generators: [folder]",
    "generators: [list.yaml]",
    "generators: [utf16.yaml]",
    "generators: ['--- {apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: x}, files: [<FILE>]}']",
    "generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: x}, FILES: [<FILE>]}']",
    "generators: ['&a {apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: x}, files: [<FILE>]}']",
    'transformers: ["apiVersion: builtin\\nkind: PatchTransformer\\nmetadata: {name: x}\\npath: <FILE>\\n"]',
    "resources: ['file://FAR//base?ref=v1.0.0']",
]


@pytest.mark.parametrize("content", GENERATORS)
def test_where_kustomize_does_not_guard_files_becalm_does(repository, tmp_path, content):
    """With the operator's LoadRestrictionsNone, Kustomize itself would read the file."""
    secret = tmp_path / "outside" / "a.yaml"
    generator = f"apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: x}}\nfiles: [k={secret}]\n"
    far = write(
        tmp_path / "far",
        {"base/kustomization.yaml": f"configMapGenerator: [{{name: x, files: [{secret}]}}]\n"},
    )
    git(far, "init", "-q", "-b", "main")
    git(far, "add", "base")
    git(far, "commit", "-qm", "one")
    git(far, "tag", "v1.0.0")
    listed = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(generator)]}
    write(repository, {
        "apps/web/generator.yaml": generator, "apps/web/folder/kustomization.yaml": "resources: [generator.yaml]\n",
        "apps/web/folder/generator.yaml": generator, "apps/web/list.yaml": yaml.safe_dump(listed),
        "apps/web/kustomization.yaml": content.replace("<FILE>", str(secret)).replace("FAR", str(far)) + "\n",
    })  # fmt: skip
    (repository / "apps" / "web" / "utf16.yaml").write_bytes(generator.encode("utf-16"))
    done = harmless(
        repository,
        BECALM_KUSTOMIZE_BUILD_OPTIONS="--load-restrictor LoadRestrictionsNone",
        BECALM_GIT_PROTOCOLS="file",
    )
    assert done.returncode == 3
    assert "with LoadRestrictionsNone, " in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_guard_transformers_and_files_of_the_repository_work(repository):
    write(repository, {
        "apps/web/prefix.yaml": (
            "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\nprefix: p-\n"
            "fieldSpecs: [{path: metadata/name}]\n"
        ),
        "apps/web/kustomization.yaml": "resources: [../../base/all.yaml]\ntransformers: [prefix.yaml]\n",
    })  # fmt: skip
    done = harmless(repository, BECALM_KUSTOMIZE_BUILD_OPTIONS="--load-restrictor=LoadRestrictionsNone")
    assert done.returncode == 0, done.stderr
    assert "name: p-web" in done.stdout


def test_the_file_itself_may_not_be_a_link_that_leads_out(repository):
    file = repository / "apps" / "web" / "kustomization.yaml"
    file.unlink()
    file.symlink_to(repository.parent / "outside" / "kustomization.yaml")
    done = harmless(repository)
    assert done.returncode == 3
    assert "leads out of the repository" in done.stderr


def test_a_private_copy_has_no_history_and_no_way_out(repository, tmp_path):
    from becalm.sources import checkout

    write(repository, {".git/config": "x", "a/deep/file.yaml": "1"})
    (repository / "a" / "in").symlink_to("deep/file.yaml")
    (repository / "a" / "absolute").symlink_to(repository / "base")
    (repository / "a" / "out").symlink_to("../../outside")
    os.mkfifo(repository / "pipe")
    copy = checkout.copy(repository, tmp_path / "copy", may_link=True)
    assert not (copy / ".git").exists()
    assert not (copy / "pipe").exists()
    assert (copy / "a" / "in").read_text() == "1"
    assert (copy / "a" / "absolute").resolve() == copy / "base"
    assert not (copy / "a" / "out").exists()
    checkout.write(copy / "a" / "deep" / "file.yaml", b"2", copy)
    assert (repository / "a" / "deep" / "file.yaml").read_text() == "1"
