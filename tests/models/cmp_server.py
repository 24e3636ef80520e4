"""A stand-in for argocd-cmp-server: how Argo CD hands a source to a plugin, runs its commands, and reads what they print.

After cmpserver/plugin/plugin.go and config.go, util/cmp/stream.go, util/io/files/tar.go. gRPC is left out: a call is a
method. What the repo-server does before (`pack`) and after (`go_output`) is here as well.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import go_output
import yaml

GRACE = 5.0
#: The command's time ends before the call's.
HEADROOM = 0.1


class CallError(Exception):
    """What the UI shows."""


class CmpServer:
    """One plugin's server.

    Args:
        config: the directory with plugin.yaml, which is read once.
        temporary: TMPDIR; the directory of calls in it is made anew.
        environment: of the container, which commands get with the application's variables after it.
        command: stands for `becalm` in plugin.yaml.
        deadline: of a call, in seconds.
    """

    def __init__(
        self,
        config: Path,
        temporary: Path,
        environment: Mapping[str, str],
        command: Sequence[str],
        deadline: float = 60.0,
    ) -> None:
        found = yaml.safe_load((config / "plugin.yaml").read_text())
        if found.get("kind") != "ConfigManagementPlugin" or not found["metadata"].get("name"):
            raise CallError("invalid plugin configuration file")
        self.spec = found["spec"]
        if not self.spec["generate"].get("command"):
            raise CallError("invalid plugin configuration file. spec.generate command should be non-empty")
        version = self.spec.get("version")
        self.name = f"{found['metadata']['name']}-{version}" if version else found["metadata"]["name"]
        self.environment, self.command, self.deadline = dict(environment), list(command), deadline
        self.groups: list[int] = []
        self.logged: list[bytes] = []
        self.work = temporary / "_cmp_server"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(mode=0o700)

    def discover(self, archive: bytes, path: str, variables: Mapping[str, str] | None = None) -> bool:
        """Whether the plugin takes the source: the first kind of discovery that is there decides alone."""
        given = self.spec.get("discover") or {}
        with self._call(archive, path) as directory:
            if given.get("fileName"):
                return any(directory.glob(given["fileName"]))
            find = given.get("find") or {}
            if find.get("glob"):
                return any(directory.glob(find["glob"]))
            if find.get("command"):
                return bool(self._run(find, directory, variables or {}))
        raise CallError("no discovery is configured")

    def parameters(self, archive: bytes, path: str, variables: Mapping[str, str]) -> list[dict]:
        given = self.spec.get("parameters") or {}
        found: list[dict] = []
        with self._call(archive, path) as directory:
            if (given.get("dynamic") or {}).get("command"):
                found = json.loads(self._run(given["dynamic"], directory, variables))
                assert isinstance(found, list)
        return [*found, *given.get("static", ())]

    def generate(self, archive: bytes, path: str, variables: Mapping[str, str]) -> list[dict[str, Any]]:
        with self._call(archive, path) as directory:
            if (self.spec.get("init") or {}).get("command"):
                self._run(self.spec["init"], directory, variables)
            output = self._run(self.spec["generate"], directory, variables)
        try:
            return go_output.objects(output)
        except go_output.OutputError as error:
            raise CallError(f"failed to unmarshal manifest: {error}") from error

    @contextlib.contextmanager
    def _call(self, archive: bytes, path: str):
        """The application's directory in a fresh one of a random name, which is gone afterwards."""
        metadata = {"checksum": hashlib.sha256(archive).hexdigest(), "size": len(archive)}
        directory = self.work / str(uuid.uuid4())
        directory.mkdir(mode=0o755)
        try:
            tgz = directory / f"{uuid.uuid4()}.tar.gz"
            tgz.write_bytes(archive)
            if hashlib.sha256(tgz.read_bytes()).hexdigest() != metadata["checksum"]:
                raise CallError("mismatched checksum")
            extract(tgz.read_bytes(), directory, keep_modes=bool(self.spec.get("preserveFileMode")))
            tgz.unlink()
            app = Path(os.path.normpath(directory / path))
            if not str(app).startswith(str(directory)):
                raise CallError("illegal appPath: out of workDir bound")
            yield app
        finally:
            shutil.rmtree(directory)

    def _run(self, given: Mapping[str, Any], cwd: Path, variables: Mapping[str, str]) -> bytes:
        words = [*given["command"], *given.get("args", ())]
        argv = [*(self.command if words[0] == "becalm" else words[:1]), *words[1:]]
        environment = {**self.environment, **{name: value for name, value in variables.items() if name}}
        child = subprocess.Popen(
            argv, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            process_group=0,
        )  # fmt: skip
        self.groups.append(child.pid)
        shown = " ".join(words)
        try:
            out, err = child.communicate(timeout=self.deadline - HEADROOM)
        except subprocess.TimeoutExpired:
            # CommandContext kills the direct child; then the group is told to end, and killed five seconds later.
            child.kill()
            _signal(child.pid, signal.SIGTERM)
            try:
                _, err = child.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                _signal(child.pid, signal.SIGKILL)
                _, err = child.communicate()
            raise CallError(f"`{shown}` failed timeout after {self.deadline:g}s: {_text(err)}") from None
        if child.returncode != 0:
            raise CallError(f"`{shown}` failed exit status {child.returncode}: {_text(err)}")
        self.logged.append(err)
        return out


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def pack(root: Path, exclusions: Sequence[str] = ()) -> bytes:
    """A repository as the repo-server sends it.

    Args:
        root: its directory.
        exclusions: Go's globs against paths from the root (`reposerver.plugin.tar.exclusions`); a directory that fits is
            left out with all in it. `.git` is sent where none says otherwise.
    """
    out, files = io.BytesIO(), 0
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for directory, below, names in os.walk(root):
            here = Path(directory).relative_to(root)
            links = [name for name in below if (root / here / name).is_symlink()]
            below[:] = sorted(
                name for name in below if name not in links and not _excluded(here / name, exclusions)
            )
            for name in below:
                archive.add(root / here / name, arcname=str(here / name), recursive=False)
            for name in sorted([*links, *names]):
                path = here / name
                if _excluded(path, exclusions):
                    continue
                if (root / path).is_symlink():
                    _stays(path, (root / path).readlink())
                elif (root / path).is_file():
                    files += 1
                else:
                    continue  # sockets, devices and the like are not sent
                archive.add(root / path, arcname=str(path), recursive=False)
    if not files:
        raise CallError("no files to send")
    return out.getvalue()


def _excluded(path: Path, patterns: Sequence[str]) -> bool:
    """filepath.Match: a star does not go over a slash."""
    return any(
        len(path.parts) == len(PurePosixPath(pattern).parts)
        and all(map(fnmatch.fnmatchcase, path.parts, PurePosixPath(pattern).parts))
        for pattern in patterns
    )


def _stays(path: Path, target: Path) -> None:
    """Links that are absolute or lead out of what is sent are refused."""
    if target.is_absolute() or os.path.normpath(path.parent / target).startswith(".."):
        raise CallError(f"illegal filepath in symlink: {path}")


def extract(archive: bytes, directory: Path, *, keep_modes: bool = False) -> None:
    """As Untgz: modes 0644 and 0755 unless they are to be kept, and the time is now."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as found:
        for entry in found:
            target = directory / entry.name
            target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            if entry.isdir():
                target.mkdir(mode=0o755, exist_ok=True)
            elif entry.issym():
                _stays(Path(entry.name), Path(entry.linkname))
                target.symlink_to(entry.linkname)
            else:
                content = found.extractfile(entry)
                assert content is not None
                target.write_bytes(content.read())
                target.chmod(entry.mode & 0o777 if keep_modes else 0o644)
