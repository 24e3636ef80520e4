"""Bases on other servers: fetched by Git, and reported where they may be something else tomorrow."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from applications import array, text, write
from test_kustomize_charts import ENABLE, by_hand, inflated
from test_kustomize_charts import HELM as ENABLED_HELM
from test_kustomize_parameters import fingerprint, generate

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far}\n"


def git(directory: Path, *arguments: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    argv = [
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.com",
        "-c",
        "commit.gpgsign=false",
        *arguments,
    ]
    return subprocess.run(
        argv, cwd=directory, env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def far(tmp_path):
    """A repository with one commit, a tag and a branch; its address and the commit."""
    path = write(
        tmp_path / "far", {"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": CONFIG}
    )
    git(path, "init", "-q", "-b", "main")
    git(path, "add", "base")
    git(path, "commit", "-qm", "one")
    git(path, "tag", "v1.2.3")
    git(path, "branch", "release-1.30")
    return f"file://{path}//base", git(path, "rev-parse", "HEAD")


def app(tmp_path: Path, kustomization: str) -> Path:
    return write(tmp_path / "repository", {"apps/web/kustomization.yaml": kustomization})


FILE = {"BECALM_GIT_PROTOCOLS": "file"}


@pytest.mark.parametrize("ref", ["v1.2.3", "COMMIT", "refs/tags/v1.2.3"])
@pytest.mark.parametrize("field", ["resources", "components"])
def test_a_pinned_base_is_fetched_without_a_warning(tmp_path, far, ref, field):
    address, commit = far
    if field == "components":
        file = tmp_path / "far" / "base" / "kustomization.yaml"
        file.write_text(
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\n"
        )
        git(tmp_path / "far", "commit", "-qam", "two")
        git(tmp_path / "far", "tag", "-f", "v1.2.3")
        commit = git(tmp_path / "far", "rev-parse", "HEAD")
    root = app(tmp_path, f"{field}: ['{address}?ref={ref.replace('COMMIT', commit)}']\n")
    before = fingerprint(root)
    done = generate(root, BECALM_STRICT="true", **FILE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "name: far" in done.stdout
    assert fingerprint(root) == before


@pytest.mark.parametrize(
    "ref", ["", "?ref=main", "?ref=release-1.30", "?ref=HEAD", "?version=main", "?submodules=false"]
)
def test_an_unpinned_base_is_a_warning_and_an_error_when_strict(tmp_path, far, ref):
    root = app(tmp_path, f"resources: ['{far[0]}{ref}']\n")
    done = generate(root, **FILE)
    assert done.returncode == 0, done.stderr
    assert "name: far" in done.stdout
    assert done.stderr.startswith("Warning: apps/web: resources: 'file://")
    assert "names no commit and no version, so it may be something else tomorrow; add ?ref=" in done.stderr
    strict = generate(root, BECALM_STRICT="true", **FILE)
    assert (strict.returncode, strict.stdout) == (8, "")


def test_a_remote_base_below_another_directory_is_found(tmp_path, far):
    root = app(tmp_path, "resources: [../../base]\n")
    write(
        root,
        {
            "base/kustomization.yml": "resources: [deeper]\n",
            "base/deeper/Kustomization": f"bases: ['{far[0]}']\n",
        },
    )
    done = generate(root, **FILE)
    assert done.returncode == 0, done.stderr
    assert "Warning: base/deeper: bases: " in done.stderr


def test_a_component_of_the_parameters_is_looked_at_too(tmp_path, far):
    root = app(tmp_path, "namePrefix: a\n")
    done = generate(root, array("components", far[0]), BECALM_STRICT="true", **FILE)
    assert (done.returncode, done.stdout) == (8, "")


def test_git_uses_only_what_the_operator_allows(tmp_path, far):
    root = app(tmp_path, f"resources: ['{far[0]}?ref=v1.2.3']\n")
    done = generate(root)
    assert (done.returncode, done.stdout) == (5, "")
    assert "transport 'file' not allowed" in done.stderr
    done = generate(root, BECALM_GIT_PROTOCOLS="https:ext")
    assert (done.returncode, done.stdout) == (2, "")
    assert "BECALM_GIT_PROTOCOLS: 'ext' is no protocol that Git may use" in done.stderr


def test_settings_of_the_users_git_do_not_count(tmp_path, far):
    root = app(tmp_path, f"resources: ['{far[0]}?ref=v1.2.3']\n")
    home = write(
        tmp_path / "home",
        {".gitconfig": f'[core]\n\tfsmonitor = "touch {tmp_path}/ran"\n[url "x"]\n\tinsteadOf = file\n'},
    )
    done = generate(root, HOME=str(home), GIT_CONFIG_GLOBAL=str(home / ".gitconfig"), **FILE)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_clone_gives_helm_no_option_either(tmp_path, far):
    """What Kustomize fetches, nobody else sees: the guard does."""
    base = tmp_path / "far" / "base"
    chart = inflated(tmp_path / "other") / "apps" / "web" / "charts"
    chart.rename(base / "charts")
    (base / "kustomization.yaml").write_text(
        "helmCharts: [{name: db, releaseName: '--post-renderer=./run.sh'}]\n"
    )
    git(tmp_path / "far", "add", "base")
    git(tmp_path / "far", "commit", "-qm", "two")
    root = app(tmp_path, f"resources: ['{far[0]}']\n")
    done = generate(root, **FILE, **ENABLE)
    assert (done.returncode, done.stdout) == (5, "")
    assert "'--post-renderer=./run.sh' would become an option of helm" in done.stderr
    (base / "kustomization.yaml").write_text("helmCharts: [{name: db, releaseName: fine}]\n")
    git(tmp_path / "far", "commit", "-qam", "three")
    done = generate(root, **FILE, **ENABLE)
    assert done.returncode == 0, done.stderr
    assert "fine-config" in done.stdout


@pytest.mark.parametrize("version", ["", "^1.0.0", "1.x", ">1"])
def test_a_chart_without_an_exact_version_is_a_warning(tmp_path, version):
    chart = f"helmCharts: [{{name: db, releaseName: a, repo: 'https://127.0.0.1:1', version: '{version}'}}]\n"
    root = inflated(tmp_path / "repository", chart)
    done = generate(root, BECALM_STRICT="true", **ENABLE)
    assert (done.returncode, done.stdout) == (8, "")
    assert "apps/web: helmCharts: the chart 'db' has no exact version" in done.stderr


def test_a_dead_server_is_named_in_time(tmp_path):
    root = app(tmp_path, "resources: ['https://127.0.0.1:1/a/b?ref=v1.0.0']\n")
    done = generate(root, text("namePrefix", "x"))
    assert (done.returncode, done.stdout) == (5, "")
    assert "https://127.0.0.1:1/a/b" in done.stderr


def test_by_hand_the_checkout_is_the_root(tmp_path):
    root = write(tmp_path / "repository", {
        "apps/web/kustomization.yaml": "resources: [../../base]\n", "base/kustomization.yaml": "resources: [a.yaml]\n",
        "base/a.yaml": CONFIG,
    })  # fmt: skip
    done = by_hand("render", root / "apps" / "web")
    assert done.returncode == 3
    assert "'../../base' leads out of the repository" in done.stderr
    git(root, "init", "-q")
    assert by_hand("render", root / "apps" / "web").returncode == 0


@pytest.fixture
def asked(tmp_path):
    """A Git that asks for credentials as the real one does, and Argo CD's askpass that answers everybody."""
    git_ = tmp_path / "bin" / "git"
    git_.parent.mkdir()
    git_.write_text(
        f"#!/bin/sh\nenv > {tmp_path}/env\nfor host in own.example evil.example own.example.evil.example; do\n"
        f"  for what in \"Username for 'https://$host': \" \"Password for 'https://ann@$host': \"; do\n"
        f'    echo "$host $("$GIT_ASKPASS" "$what" 2>/dev/null)" >> {tmp_path}/answers\n  done\ndone\n'
        f'"$GIT_ASKPASS" "Password for \'http://own.example\': " >> {tmp_path}/answers 2>/dev/null\nexit 1\n'
    )
    answers = tmp_path / "bin" / "argocd"
    answers.write_text(
        '#!/bin/sh\n[ "$ARGOCD_BINARY_NAME" = argocd-git-ask-pass ] && [ -n "$ARGOCD_GIT_ASKPASS_NONCE" ] && echo secret-of-argo\n'
    )
    for path in (git_, answers):
        path.chmod(0o755)
    return {
        "PATH": f"{git_.parent}:{os.environ['PATH']}", "GIT_ASKPASS": "argocd", "ARGOCD_GIT_ASKPASS_NONCE": "once",
        "ARGOCD_BINARY_NAME": "argocd-git-ask-pass", "ARGOCD_ASK_PASS_SOCK": "/x.sock", "GIT_SSL_NO_VERIFY": "true",
        "ARGOCD_APP_SOURCE_REPO_URL": "https://own.example/team/app.git",
    }  # fmt: skip


def test_credentials_of_the_repository_go_to_its_own_server_only(tmp_path, asked):
    root = app(tmp_path, "resources: ['https://own.example/team/base?ref=v1.0.0']\n")
    done = generate(root, **asked)
    assert (done.returncode, done.stdout) == (5, "")
    assert "secret-of-argo" not in done.stderr
    lines = (tmp_path / "answers").read_text().splitlines()
    assert [line for line in lines if line.startswith("own.example ")] == ["own.example secret-of-argo"] * 2
    assert sum("secret" in line for line in lines) == 2
    seen = (tmp_path / "env").read_text()
    assert "GIT_SSL_NO_VERIFY" not in seen
    assert "ARGOCD_ASK_PASS_SOCK=/x.sock" in seen


def test_without_a_remote_base_nobody_gets_them(tmp_path, asked):
    helm = tmp_path / "bin" / "helm"
    helm.write_text(f'#!/bin/sh\nenv >> {tmp_path}/helm-env\nexec {ENABLED_HELM} "$@"\n')
    helm.chmod(0o755)
    root = inflated(tmp_path / "repository")
    done = generate(root, **asked, **ENABLE, BECALM_HELM_COMMAND=str(helm))
    assert done.returncode == 0, done.stderr
    assert "ASKPASS" not in (tmp_path / "helm-env").read_text()


def test_helm_gets_none_of_them_beside_a_remote_base(tmp_path, asked, far):
    helm = tmp_path / "bin" / "helm"
    helm.write_text(f'#!/bin/sh\nenv >> {tmp_path}/helm-env\nexec {ENABLED_HELM} "$@"\n')
    helm.chmod(0o755)
    (tmp_path / "bin" / "git").unlink()
    root = inflated(
        tmp_path / "repository",
        f"resources: ['{far[0]}?ref=v1.2.3']\nhelmCharts: [{{name: db, releaseName: a}}]\n",
    )
    done = generate(root, **asked, **FILE, **ENABLE, BECALM_HELM_COMMAND=str(helm))
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "helm-env").read_text()
    assert "PATH=" in seen
    for name in ("ASKPASS", "ARGOCD_BINARY_NAME", "ARGOCD_ASK_PASS", "GIT_SSH"):
        assert name not in seen
