"""Applications that stock helm installed with its random values, as the cluster shows them, and becalm to take them over."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import yaml
from applications import HELM, TOOLS, write
from children import MEASURE, inside

KUBECTL = TOOLS / "kubectl-1.34.5" / "kubectl"
SEED = bytes(range(32))
NEW_SEED = bytes(range(100, 132))
NAME = "becalm.pins.yaml"


class Running:
    """An application, the directory that it is rendered from, and what becalm says of it.

    `stock` is what was installed, `live` are the objects as the cluster shows them.
    """

    def __init__(
        self, top: Path, files: dict[str, str], *, helm: Path = HELM, app: str = "shop", seed: bytes = SEED
    ) -> None:
        self.top = top
        self.directory = top / "chart"
        chart = "apiVersion: v2\nname: sample\nversion: 1.0.0\n"
        write(self.directory, {"Chart.yaml": chart, **files})
        self.path = self.directory
        self.pins = self.directory / NAME
        self.helm = helm
        self.app = app
        self.seed = self.write_seed("seed", seed)
        self.stock = ""
        self.live: list[dict] = []

    def write_seed(self, name: str, content: bytes) -> Path:
        path = self.top / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path

    def install(self, *options: str) -> Running:
        """Render with stock helm, and where there is a Kustomization with kubectl, and keep what the cluster makes of it."""
        argv = [self.helm, "template", self.app, self.path, "--namespace=space", *options]
        self.stock = run(argv)
        if (self.directory / "kustomization.yaml").exists():
            (self.directory / "all.yaml").write_text(self.stock)
            self.stock = run([KUBECTL, "kustomize", self.directory])
            (self.directory / "all.yaml").unlink()
        self.live = [stored(obj) for obj in objects(self.stock)]
        self.write_live(self.live)
        return self

    def write_live(self, among: list[dict]) -> Path:
        path = self.top / "live.yaml"
        path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": among}))
        return path

    def becalm(self, *words: str, **variables: str) -> subprocess.CompletedProcess:
        """Run a command on the application, in this process."""
        command, rest = (words[:2], words[2:]) if words[0] in ("seed", "lookup") else (words[:1], words[1:])
        env = {
            **MEASURE, "PATH": os.environ["PATH"], "HOME": str(self.top),
            "BECALM_CACHE_DIR": os.environ["BECALM_CACHE_DIR"], **variables,
        }  # fmt: skip
        argv = [
            *command, self.path, f"--app={self.app}", "--namespace=space", f"--helm={self.helm}",
            f"--kustomize={KUBECTL}", f"--seed={self.seed}", *rest,
        ]  # fmt: skip
        return inside(argv, cwd=self.top, env=env)

    def adopt(self, *words: str) -> subprocess.CompletedProcess:
        return self.becalm("adopt", f"--live={self.top / 'live.yaml'}", *words)

    def rows(self, *words: str) -> dict[str, tuple[str, str]]:
        """State and reason of what is drawn, by the last step of its place and the function."""
        done = self.adopt("--output=json", *words)
        assert done.returncode in (0, 1), done.stderr
        return {
            f"{row['place'].rpartition(' ')[2]} {row['function']}".strip(): (row["state"], row["why"])
            for row in json.loads(done.stdout)["draws"]
        }

    def render(self, *words: str) -> str:
        done = self.becalm("render", "--rule=-all", *words)
        assert done.returncode == 0, done.stderr
        self.warned = done.stderr
        return done.stdout

    def differences(self, *words: str) -> tuple[int, dict[str, str]]:
        """The exit code of `diff-live`, and the state of each field."""
        done = self.becalm("diff-live", f"--live={self.top / 'live.yaml'}", "--output=json", *words)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, {
            f"{one['object']} {one['field']}": one["state"] for one in json.loads(done.stdout)
        }

    def without(self, *words: str) -> None:
        """Remove the entries of the file whose labels have all these words."""
        lines = self.pins.read_text().splitlines(keepends=True)
        at = [n for n, line in enumerate(lines) if "label:" in line and all(word in line for word in words)]
        assert at, words
        self.pins.write_text("".join(line for n, line in enumerate(lines) if n not in at and n - 1 not in at))


def run(argv: list) -> str:
    return subprocess.run(
        list(map(str, argv)), capture_output=True, text=True, timeout=60, check=True,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["BECALM_TEST_HELM_HOME"]},
    ).stdout  # fmt: skip


def objects(text: str) -> list[dict]:
    return [obj for obj in yaml.safe_load_all(text) if obj]


def stored(obj: dict) -> dict:
    """An object as the server stores it: with what it adds, and a Secret's values in `data` only."""
    metadata = {
        **obj["metadata"], "creationTimestamp": "2024-01-01T00:00:00Z", "resourceVersion": "4711",
        "uid": "0b5e6b0e-6f0c-4b0e-9d6e-3d1f0a2b3c4d",
        "managedFields": [{"manager": "helm", "operation": "Update", "fieldsV1": {"f:data": {"f:password": {}}}}],
    }  # fmt: skip
    if obj["kind"] not in ("ClusterRole", "MutatingWebhookConfiguration"):
        metadata.setdefault("namespace", "space")
    done = {**obj, "metadata": metadata}
    if obj["kind"] == "Secret":
        plain = {key: encoded(text) for key, text in obj.get("stringData", {}).items()}
        done = {**done, "data": {**obj.get("data", {}), **plain}, "type": obj.get("type", "Opaque")}
        done.pop("stringData", None)
    if obj["kind"] == "Service":
        done["spec"] = {
            "clusterIP": "10.0.0.1",
            "sessionAffinity": "None",
            "type": "ClusterIP",
            **obj["spec"],
        }
        done["status"] = {"loadBalancer": {}}
    return done


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def fields(text: str) -> dict[str, str]:
    """Every scalar of a render by `name/path`, Secrets' values as the program reads them; `/` and a number for an item."""
    found: dict[str, str] = {}
    for obj in objects(text):
        folded = stored(obj)
        if obj["kind"] == "Secret":
            folded["data"] = {
                key: base64.b64decode(one).decode("latin-1") for key, one in folded["data"].items()
            }
        name = folded["metadata"]["name"]
        walk(obj["kind"], folded.get("metadata", {}).get("annotations", {}), f"{name}/annotations", found)
        for part in ("data", "spec", "webhooks"):
            walk(obj["kind"], folded.get(part, {}), name if part == "data" else f"{name}/{part}", found)
    return found


def walk(kind: str, value: object, path: str, found: dict[str, str]) -> None:
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            walk(kind, one, f"{path}/{key}", found)
    else:
        found[path] = str(value)


def changed(before: str, after: str) -> set[str]:
    """The fields that differ."""
    one, other = fields(before), fields(after)
    return {path for path in {**one, **other} if one.get(path) != other.get(path)}
