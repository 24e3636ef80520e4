"""Installations of becalm for tests: the manifests rendered by real kustomize over a stand-in for Argo CD's Deployment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"
KUBECTLS = {version: ROOT / ".tools" / f"kubectl-{version}" / "kubectl" for version in ("1.31.9", "1.37.1")}
RELEASES = ("1.29", "1.37")
OVERLAYS = ("standard", "ha", "core")
PORT = 9360

# Argo CD mounts these two at fixed paths: its init container copies argocd-cmp-server to the
# first, and the repo-server looks for plugins' sockets in the second.
VAR_FILES = "/var/run/argocd"
SOCKETS = "/home/argocd/cmp-server/plugins"

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
          ports:
            - {containerPort: 8081}
            - {containerPort: 8084}
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

Objects = dict[tuple[str, str], dict[str, Any]]


def kustomize(version: str, directory: Path) -> subprocess.CompletedProcess[str]:
    kubectl = KUBECTLS[version]
    if not kubectl.exists():
        absent(f"{kubectl} is absent: run `make tools`")
    return subprocess.run(
        [str(kubectl), "kustomize", str(directory)], capture_output=True, text=True, check=False, timeout=60
    )


def absent(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def rendered(version: str, directory: Path) -> Objects:
    run = kustomize(version, directory)
    assert run.returncode == 0, run.stderr
    found = [document for document in yaml.safe_load_all(run.stdout) if document is not None]
    return {(item["kind"], item["metadata"]["name"]): item for item in found}


def installation(
    directory: Path, overlay: str, stand_in: str = STAND_IN, *, components: tuple[str, ...] = ()
) -> Path:
    """A copy of the manifests, where the overlay's Argo CD is the stand-in; the overlay's directory."""
    shutil.copytree(MANIFESTS, directory / "manifests")
    path = directory / "manifests/overlays" / overlay
    text = yaml.safe_load((path / "kustomization.yaml").read_text())
    (source,) = text["resources"]
    assert re.fullmatch(
        r"https://raw\.githubusercontent\.com/argoproj/argo-cd/v\d+\.\d+\.\d+/manifests/[a-z/-]+\.yaml",
        source,
    )
    text["resources"] = ["argocd.yaml"]
    text["components"] += [f"../../components/{name}" for name in components]
    (path / "argocd.yaml").write_text(stand_in)
    (path / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return path


def becalm_of(containers: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [container for container in containers if container["name"] == "becalm"]
    return found


def base() -> dict[str, Any]:
    """The pod's part of the patch, as it is written."""
    return yaml.safe_load((MANIFESTS / "base/repo-server-patch.yaml").read_text())["spec"]["template"]["spec"]


def chart_values() -> dict[str, Any]:
    return yaml.safe_load((MANIFESTS / "helm-values.yaml").read_text())


def operator() -> dict[str, Any]:
    return yaml.safe_load((MANIFESTS / "operator/argocd.yaml").read_text())


def mounts(container: dict[str, Any]) -> dict[str, str]:
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


def variables(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def deployment(pod: dict[str, Any]) -> dict[str, Any]:
    """A whole Deployment of a pod that stands in a file of another form, to check it by schema."""
    labels = {"app.kubernetes.io/name": "argocd-repo-server"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "argocd-repo-server"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def valid(item: dict[str, Any]) -> None:
    """Kubernetes' own schemas, strictly, of the oldest and the newest release that becalm knows."""
    try:
        import kubernetes_validate
    except ImportError:
        absent("kubernetes-validate is absent: run `make venv`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of how it opens its own files
        for release in RELEASES:
            kubernetes_validate.validate(item, release, strict=True)
