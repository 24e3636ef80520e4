"""A stand-in for argocd-cmp-server: how Argo CD hands a source to a plugin, runs its commands, and reads what they print.

After cmpserver/plugin/plugin.go, util/cmp/stream.go, util/io/files/tar.go and util/kube: a tar of the repository, a
directory of a random name for each call, files of mode 0644, the process environment and the application's after it, no
input, a process group, and at the deadline SIGKILL for the process, SIGTERM for the group and SIGKILL five seconds later.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

GRACE = 5.0


class CallError(Exception):
    """What the UI shows."""


@dataclass
class CmpServer:
    """`command` begins a plugin's commands; `environment` is that of the container."""

    work: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    deadline: float = 60.0
    groups: list[int] = field(default_factory=list)

    def discover(self, archive: bytes, path: str, variables: Mapping[str, str] | None = None) -> bool:
        """Whether the plugin takes the source: it prints something."""
        return bool(self._call(archive, path, ["discover"], variables or {}))

    def parameters(self, archive: bytes, path: str, variables: Mapping[str, str]) -> list[dict]:
        return json.loads(self._call(archive, path, ["parameters", "--dynamic"], variables))

    def generate(self, archive: bytes, path: str, variables: Mapping[str, str]) -> list[dict[str, Any]]:
        return manifests(self._call(archive, path, ["generate"], variables))

    def _call(self, archive: bytes, path: str, words: Sequence[str], variables: Mapping[str, str]) -> str:
        directory = self.work / str(uuid.uuid4())
        directory.mkdir(mode=0o755)
        try:
            extract(archive, directory)
            return self._run([*self.command, *words], directory / path, {**self.environment, **variables})
        finally:
            shutil.rmtree(directory)

    def _run(self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> str:
        child = subprocess.Popen(
            argv, cwd=cwd, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            process_group=0, text=True,
        )  # fmt: skip
        self.groups.append(child.pid)
        try:
            out, err = child.communicate(timeout=self.deadline)
        except subprocess.TimeoutExpired:
            child.kill()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            try:
                out, err = child.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                out, err = child.communicate()
            raise CallError(f"`{argv[0]}` failed timeout after {self.deadline:g}s: {err}") from None
        if child.returncode != 0:
            raise CallError(f"`{argv[0]}` failed exit status {child.returncode}: {err}")
        return out.removesuffix("\n")


def pack(root: Path, *, git: bool = True) -> bytes:
    """A repository as the repo-server sends it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root)
            if name.parts[0] == ".git" and not git:
                continue
            if path.is_symlink() or path.is_file() or path.is_dir():
                archive.add(path, arcname=str(name), recursive=False)
    return out.getvalue()


def extract(archive: bytes, directory: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as found:
        for entry in found:
            target = directory / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if entry.isdir():
                target.mkdir(mode=0o755, exist_ok=True)
            elif entry.issym():
                target.symlink_to(entry.linkname)
            else:
                target.write_bytes(found.extractfile(entry).read())
                target.chmod(0o644)
                os.utime(target, (time.time(), time.time()))


def manifests(text: str) -> list[dict[str, Any]]:
    """The objects of a plugin's output; what Argo CD refuses is an error here as well."""
    found = []
    for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
        if document is None:
            continue
        if not isinstance(document, dict) or not document.get("kind"):
            raise CallError("Object 'Kind' is missing")
        items = document.get("items")
        found += items if isinstance(items, list) else [document]
    return found
