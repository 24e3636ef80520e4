"""The repo-server patch, rendered by real kustomize over a stand-in for Argo CD's Deployment.

Names and paths that must agree stand in three files (manifests, plugin.yaml, Dockerfile); a
mistake in one of them shows only in a running cluster, so it is caught here.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from becalm.cmp import parameters

ROOT = Path(__file__).resolve().parents[2]
KUBECTLS = {version: ROOT / ".tools" / f"kubectl-{version}" / "kubectl" for version in ("1.31.9", "1.37.1")}

# Argo CD mounts these two at fixed paths: its init container copies argocd-cmp-server to the
# first, and the repo-server looks for plugins' sockets in the second.
VAR_FILES = "/var/run/argocd"
SOCKETS = "/home/argocd/cmp-server/plugins"
CONFIG = "/home/argocd/cmp-server/config/plugin.yaml"

# What the patch relies on in Argo CD's own Deployment, and no more.
STAND_IN = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: argocd-repo-server
spec:
  selector:
    matchLabels: {app.kubernetes.io/name: argocd-repo-server}
  template:
    metadata:
      labels: {app.kubernetes.io/name: argocd-repo-server}
    spec:
      initContainers:
        - name: copyutil
          image: example/argocd
          volumeMounts:
            - {name: var-files, mountPath: /var/run/argocd}
      containers:
        - name: argocd-repo-server
          image: example/argocd
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            - {name: plugins, mountPath: /home/argocd/cmp-server/plugins}
      volumes:
        - {name: tmp, emptyDir: {}}
        - {name: var-files, emptyDir: {}}
        - {name: plugins, emptyDir: {}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: argocd-server
spec:
  selector:
    matchLabels: {app.kubernetes.io/name: argocd-server}
  template:
    metadata:
      labels: {app.kubernetes.io/name: argocd-server}
    spec:
      containers:
        - name: argocd-server
          image: example/argocd
"""


def kustomize(version: str, directory: Path) -> list[dict[str, Any]]:
    kubectl = KUBECTLS[version]
    if not kubectl.exists():
        message = f"{kubectl} is absent: run `make tools`"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    run = subprocess.run(
        [str(kubectl), "kustomize", str(directory)], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    return [document for document in yaml.safe_load_all(run.stdout) if document is not None]


def overlay(directory: Path) -> Path:
    """An installation's kustomization, made from the example that users copy."""
    example = yaml.safe_load((ROOT / "manifests/overlays/example/kustomization.yaml").read_text())
    base = os.path.relpath(ROOT / "manifests/base", directory)
    example |= {"components": [base], "resources": ["argocd.yaml"]}
    (directory / "argocd.yaml").write_text(STAND_IN)
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(example))
    return directory


@pytest.fixture(params=sorted(KUBECTLS))
def deployments(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    rendered = kustomize(request.param, overlay(tmp_path.resolve()))
    return {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in rendered}


@pytest.fixture
def pod(deployments: dict[str, Any]) -> dict[str, Any]:
    return deployments["argocd-repo-server"]


@pytest.fixture
def sidecar(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = [container for container in pod["containers"] if container["name"] == "becalm"]
    return found


def mounts(container: dict[str, Any]) -> dict[str, str]:
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


def test_only_the_repo_server_gets_the_sidecar_and_keeps_its_own_container(
    deployments: dict[str, Any],
) -> None:
    names = {name: [item["name"] for item in pod["containers"]] for name, pod in deployments.items()}
    assert {name: sorted(containers) for name, containers in names.items()} == {
        "argocd-repo-server": ["argocd-repo-server", "becalm"],
        "argocd-server": ["argocd-server"],
    }
    original = next(yaml.safe_load_all(STAND_IN))["spec"]["template"]["spec"]
    patched = deployments["argocd-repo-server"]
    assert patched["initContainers"] == original["initContainers"]
    assert [item for item in patched["containers"] if item["name"] != "becalm"] == original["containers"]


def test_every_mount_has_its_volume_and_no_volume_is_there_twice(
    pod: dict[str, Any], sidecar: dict[str, Any]
) -> None:
    volumes = [volume["name"] for volume in pod["volumes"]]
    assert sorted(volumes) == sorted(set(volumes))
    assert set(mounts(sidecar)) <= set(volumes)


def test_argo_cds_own_volumes_are_mounted_where_argo_cd_expects_them(sidecar: dict[str, Any]) -> None:
    assert mounts(sidecar)["var-files"] == VAR_FILES
    assert mounts(sidecar)["plugins"] == SOCKETS


def test_the_sidecar_has_a_tmp_of_its_own(pod: dict[str, Any], sidecar: dict[str, Any]) -> None:
    (name,) = [name for name, path in mounts(sidecar).items() if path == "/tmp"]
    assert name != "tmp"
    others = [item for item in pod["containers"] if item["name"] != "becalm"]
    assert all(name not in mounts(other) for other in others)


def test_the_seed_is_where_the_environment_says_and_only_the_sidecar_sees_it(
    pod: dict[str, Any], sidecar: dict[str, Any]
) -> None:
    (volume,) = [item for item in pod["volumes"] if "secret" in item]
    (mount,) = [item for item in sidecar["volumeMounts"] if item["name"] == volume["name"]]
    environment = {item["name"]: item["value"] for item in sidecar["env"]}
    assert mount["readOnly"] is True
    assert volume["secret"]["defaultMode"] == 0o440
    # All keys of the Secret are seeds, so that a new one can be put beside the old one.
    assert "items" not in volume["secret"]
    assert mount["mountPath"] == environment["BECALM_SEED_FILE"]
    assert environment["BECALM_CLUSTER"] == "production"
    # The files belong to root: without this group the process could not read them.
    assert pod["securityContext"]["fsGroup"] == sidecar["securityContext"]["runAsGroup"]
    others = [item for item in pod["containers"] + pod["initContainers"] if item["name"] != "becalm"]
    assert all(volume["name"] not in mounts(other) for other in others)


def test_the_sidecar_runs_with_no_more_rights_than_it_needs(sidecar: dict[str, Any]) -> None:
    context = sidecar["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 999
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_the_component_alone_renders_nothing() -> None:
    assert kustomize("1.37.1", ROOT / "manifests/base") == []


def instructions(name: str) -> list[str]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    return [line.split(None, 1)[1] for line in text.splitlines() if line.startswith(f"{name} ")]


def test_the_image_agrees_with_the_pod(sidecar: dict[str, Any]) -> None:
    user, group = instructions("USER")[-1].split(":")
    assert int(user) == sidecar["securityContext"]["runAsUser"]
    assert int(group) == sidecar["securityContext"]["runAsGroup"]
    assert instructions("ENTRYPOINT")[-1] == f'["{sidecar["command"][0]}"]'
    assert sidecar["command"] == [f"{VAR_FILES}/argocd-cmp-server"]
    assert instructions("COPY")[-1].endswith(f" plugin.yaml {CONFIG}")


def test_the_image_writes_only_below_the_pods_tmp(sidecar: dict[str, Any]) -> None:
    variables = dict(pair.split("=", 1) for pair in instructions("ENV")[-1].split())
    writable = {name: variables[name] for name in variables if name.startswith("HELM_")}
    writable |= {name: variables[name] for name in ("HOME", "TMPDIR")}
    assert {"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} <= set(writable)
    assert all(Path(path).is_relative_to("/tmp") for path in writable.values())
    assert "/tmp" in mounts(sidecar).values()


def test_helm_is_never_taken_without_a_checksum_that_the_builder_gave() -> None:
    arguments = instructions("ARG")
    assert "HELM_VERSION" in arguments  # no default
    assert "HELM_SHA256" in arguments  # no default
    assert any("${HELM_SHA256}" in run and "sha256sum --check" in run for run in instructions("RUN"))


def test_plugin_yaml_is_what_cmp_server_accepts() -> None:
    """cmp-server ignores unknown keys, so a misspelt field would be silent: none may be there."""
    plugin = yaml.safe_load((ROOT / "plugin.yaml").read_text())
    announced = plugin["spec"].pop("parameters")
    assert announced["static"] == parameters.announcement()
    assert announced["dynamic"] == {"command": ["becalm", "parameters", "--dynamic"]}
    assert plugin == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ConfigManagementPlugin",
        "metadata": {"name": "becalm"},
        "spec": {"generate": {"command": ["becalm", "generate"]}},
    }


def test_rules_and_definitions_are_read_from_where_they_are_mounted(
    pod: dict[str, Any], sidecar: dict[str, Any]
) -> None:
    environment = {entry["name"]: entry["value"] for entry in sidecar["env"]}
    assert environment["BECALM_RULES_DIR"] == mounts(sidecar)["becalm-rules"]
    assert environment["BECALM_DEFINITIONS_DIR"] == mounts(sidecar)["becalm-definitions"]
    for name in ("becalm-rules", "becalm-definitions"):
        (volume,) = [volume for volume in pod["volumes"] if volume["name"] == name]
        assert volume["configMap"]["optional"] is True
