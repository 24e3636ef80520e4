"""A running service for tests, and a stand-in for argocd-cmp-server's way of starting plugins."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from applications import HELM, write
from children import MEASURE

DRAWS = "apiVersion: v1\nkind: Secret\nmetadata: {name: pw}\nstringData: {pw: {{ randAlphaNum 20 | quote }}, a: {{ .Values.a | quote }}}\n"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "values.yaml": "a: usual\n",
    "templates/a.yaml": DRAWS,
}


class Sidecar:
    """An operator's settings, an application in a repository, and a service if it is started."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "repository"
        self.app = self.root / "apps" / "web"
        write(self.app, CHART)
        seed = top / "seed"
        seed.touch(mode=0o600)
        seed.write_bytes(bytes(range(32)))
        self.env = {
            **MEASURE, "PATH": os.environ["PATH"], "HOME": str(top), "TMPDIR": str(top / "tmp"), "BECALM_HELM": str(HELM),
            "BECALM_SEED_FILE": str(seed), "BECALM_SOCKET": str(top / "run" / "render.sock"), "BECALM_WEB_ADDRESS": "off",
            "BECALM_CACHE_DIR": str(top / "cache"), "ARGOCD_APP_NAME": "my-app", "ARGOCD_APP_PROJECT_NAME": "default",
            "ARGOCD_APP_NAMESPACE": "space", "ARGOCD_APP_SOURCE_PATH": "apps/web", "KUBE_VERSION": "1.34.1",
        }  # fmt: skip
        (top / "tmp").mkdir()
        self.log = top / "log"
        self.client = self.argv("generate")

    def start(self, **variables: str) -> subprocess.Popen:
        """Start `becalm serve` and wait until it is ready."""
        with self.log.open("ab") as log:
            service = subprocess.Popen(
                self.argv("serve"),
                env={**self.env, **variables},
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        until = time.monotonic() + 30
        while "ready" not in self.log.read_text():
            assert service.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.02)
        return service

    @contextlib.contextmanager
    def serving(self, **variables: str) -> Iterator[subprocess.Popen]:
        """A service that has ended, with all its children, when the block ends."""
        service = self.start(**variables)
        try:
            yield service
        finally:
            if service.poll() is None:
                service.send_signal(signal.SIGTERM)
            try:
                service.wait(40)
            finally:
                service.kill()

    def records(self) -> list[dict]:
        """The lines of the service's log."""
        if not self.log.exists():
            return []
        found = []
        for line in self.log.read_text().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def renders(self, number: int = 1, seconds: float = 20) -> list[dict]:
        """The records of renders, as soon as there are so many."""
        until = time.monotonic() + seconds
        while len(found := [one for one in self.records() if "outcome" in one]) < number:
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.02)
        return found

    @staticmethod
    def argv(command: str) -> list[str]:
        return [sys.executable, "-m", "becalm", command]

    def refusal(self, **variables: str) -> subprocess.CompletedProcess:
        """What `becalm serve` says that ends by itself."""
        return subprocess.run(
            self.argv("serve"), env={**self.env, **variables}, capture_output=True, text=True, timeout=60, check=False
        )  # fmt: skip

    def popen(self, *parameters: dict, **variables: str) -> subprocess.Popen:
        """Start `becalm generate` as argocd-cmp-server does: a group of its own, no input, output in pipes."""
        env = {**self.env, "ARGOCD_APP_PARAMETERS": json.dumps(parameters), **variables}
        return subprocess.Popen(
            self.client, cwd=self.app, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0, text=True,
        )  # fmt: skip

    def generate(
        self, *parameters: dict, timeout: float = 60, **variables: str
    ) -> subprocess.CompletedProcess:
        started = self.popen(*parameters, **variables)
        out, err = started.communicate(timeout=timeout)
        return subprocess.CompletedProcess(started.args, started.returncode, out, err)

    def slow_helm(self, seconds: float) -> str:
        """A helm that takes its time, and writes down that it has begun."""
        path = self.top / "slow-helm"
        path.write_text(
            f'#!/bin/sh\n[ "$1" = template ] && {{ echo $$ >> {self.top}/begun; sleep {seconds}; }}\nexec {HELM} "$@"\n'
        )
        path.chmod(0o755)
        return str(path)

    def held_helm(self) -> str:
        """A helm that writes down that it has begun, and waits for `release`."""
        path, gate = self.top / "held-helm", self.top / "gate"
        path.write_text(
            f'#!/bin/sh\n[ "$1" = template ] && {{ echo $$ >> {self.top}/begun; n=0\n'
            f'while [ ! -e {gate} ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n+1)); done; }}\nexec {HELM} "$@"\n'
        )
        path.chmod(0o755)
        return str(path)

    def release(self) -> None:
        """Let helms go on that are held."""
        (self.top / "gate").touch()

    def begun(self, number: int = 1) -> list[int]:
        """The process ids of slow helms, as soon as there are so many."""
        until = time.monotonic() + 20
        path = self.top / "begun"
        while not path.exists() or len(path.read_text().split()) < number:
            assert time.monotonic() < until
            time.sleep(0.01)
        return [int(word) for word in path.read_text().split()]

    def leftovers(self) -> list[str]:
        return sorted(path.name for path in (self.top / "tmp").iterdir())


def children(service: subprocess.Popen) -> list[int]:
    """The processes that a service has forked: readers, and those of renders."""
    return children_of(service.pid)


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def gone(pids: list[int], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while any(map(is_running, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
