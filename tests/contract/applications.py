"""An application in a repository, with an operator's settings, for tests with servers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from children import MEASURE, run

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
HELM = TOOLS / "helm-4.1.4" / "helm"
TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {version: {{ .Chart.Version }}, a: {{ .Values.a | quote }}}\n"


def run_helm(*arguments, helm=HELM, cwd=None, check=True, **env):
    home = os.environ["BECALM_TEST_HELM_HOME"]
    env = {"PATH": os.environ["PATH"], "HOME": home, **env}
    return subprocess.run(
        [helm, *map(str, arguments)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=check,
    )


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def text(name: str, value: str) -> dict:
    return {"name": name, "string": value}


def array(name: str, *values: str) -> dict:
    return {"name": name, "array": list(values)}


def pairs(name: str, **values: str) -> dict:
    return {"name": name, "map": values}


def chart_files(name: str, version: str, more: str = "") -> dict[str, str]:
    return {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n{more}",
        "values.yaml": "a: usual\n",
        "templates/a.yaml": TEMPLATE,
    }


class App:
    """A repository with one app in `apps/web`, the operator's settings, and becalm."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "repository"
        self.directory = self.root / "apps" / "web"
        self.directory.mkdir(parents=True)
        self.secrets = top / "secrets"
        self.secrets.mkdir()
        self.env = {
            **MEASURE, "PATH": os.environ["PATH"], "BECALM_HELM": str(HELM), "BECALM_RULES": "-all", "ARGOCD_APP_NAME": "my-app",
            "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "space",
            "ARGOCD_APP_SOURCE_PATH": "apps/web", "KUBE_VERSION": "1.34.1", "TMPDIR": str(top),
            "BECALM_CACHE_DIR": str(top / "cache"), "BECALM_CHART_REPOSITORIES": "http://127.0.0.1:* http://localhost:* https://*:* oci://*:*",
        }  # fmt: skip

    def chart(self, dependencies: list[dict] | None = None, **files: str) -> App:
        text = "apiVersion: v2\nname: app\nversion: 1.0.0\n"
        if dependencies is not None:
            text += f"dependencies: {json.dumps(dependencies)}\n"
        write(
            self.directory,
            {"Chart.yaml": text, "values.yaml": "a: usual\n", "templates/a.yaml": TEMPLATE, **files},
        )
        return self

    def secret(self, folder: str, **keys: str) -> App:
        write(self.secrets, {f"{folder}/{key}": value for key, value in {"type": "helm", **keys}.items()})
        self.env["BECALM_REPOSITORIES_DIR"] = str(self.secrets)
        return self

    def generate(
        self, *parameters: dict, timeout: float = 60, **variables: str
    ) -> subprocess.CompletedProcess:
        env = {**self.env, "ARGOCD_APP_PARAMETERS": json.dumps(parameters), **variables}
        before = snapshot(self.root)
        done = run(["generate"], cwd=self.directory, env=env, timeout=timeout)
        assert snapshot(self.root) == before, "the checkout was written to"
        assert not list(self.top.glob("becalm-*")), "something was left"
        return done

    def render(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return self.command("render", *arguments, "--rule=-all", **variables)

    def command(self, name: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        """Another command, by hand."""
        words = [name, *arguments]
        if name != "parameters":
            words += [str(self.directory), "--app=my-app", "--namespace=space", f"--helm={HELM}"]
        return run(words, cwd=self.directory, env={**self.env, **variables}, timeout=100)


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(root.rglob("*"))}
