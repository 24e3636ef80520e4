"""becalm as Argo CD runs it: through a stand-in for argocd-cmp-server, with and without the service."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from applications import write
from cmp_server import CallError, CmpServer, pack
from services import CHART, Sidecar, gone

VARIABLES = {
    "ARGOCD_APP_NAME": "my-app", "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "space", "ARGOCD_APP_REVISION": "abc",
    "ARGOCD_APP_SOURCE_PATH": "apps/web", "KUBE_VERSION": "1.34.1", "KUBE_API_VERSIONS": "apps/v1,v1", "ARGOCD_APP_PARAMETERS": "null",
    "PARAM_X": "ignored",
}  # fmt: skip


@pytest.fixture(params=["service", "alone"])
def served(tmp_path, request):
    """A sidecar and a server for it."""
    sidecar = Sidecar(tmp_path)
    (sidecar.root / ".git").mkdir()
    (sidecar.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    work = tmp_path / "_cmp_server"
    work.mkdir(mode=0o700)
    environment = {
        name: value for name, value in sidecar.env.items() if not name.startswith(("ARGOCD_", "KUBE_"))
    }
    server = CmpServer(work=work, command=sidecar.argv("x")[:-1], environment=environment)
    if request.param == "alone":
        server.environment = {**environment, "BECALM_SOCKET": "off"}
        yield sidecar, server
    else:
        with sidecar.serving():
            yield sidecar, server
    assert list(work.iterdir()) == []
    assert sidecar.leftovers() == []


@pytest.mark.parametrize("git", [True, False])
def test_a_source_is_discovered_announced_and_generated(served, git):
    sidecar, server = served
    archive = pack(sidecar.root, git=git)
    assert server.discover(archive, "apps/web")
    assert not server.discover(archive, "apps")
    ((announced,)) = server.parameters(archive, "apps/web", VARIABLES)
    assert announced["map"] == {"a": "usual"}
    first, second = (server.generate(archive, "apps/web", VARIABLES) for _ in range(2))
    assert first == second
    (secret,) = first
    assert len(secret["stringData"]["pw"]) == 20


def test_failures_come_as_one_error_and_no_manifest(served):
    sidecar, server = served
    archive = pack(sidecar.root)
    with pytest.raises(
        CallError, match=r"failed exit status 2: Error: source.plugin.parameters: 'nope' is no parameter"
    ):
        server.generate(
            archive, "apps/web", {**VARIABLES, "ARGOCD_APP_PARAMETERS": '[{"name": "nope", "string": ""}]'}
        )
    with pytest.raises(CallError, match=r"failed exit status 3: Error: apps: there is no Chart\.yaml"):
        server.generate(archive, "apps", {**VARIABLES, "ARGOCD_APP_SOURCE_PATH": "apps"})


def test_at_the_deadline_nothing_is_left(served):
    sidecar, server = served
    server.environment = {
        **server.environment,
        "BECALM_HELM": sidecar.slow_helm(60),
        "BECALM_CACHE_DIR": "off",
    }
    server.deadline = 6
    started = time.monotonic()
    with pytest.raises(CallError, match="failed timeout"):
        server.generate(pack(sidecar.root), "apps/web", VARIABLES)
    assert time.monotonic() - started < 20
    assert gone(sidecar.begun(), 10)
    # Without the service Python is killed at once, and what it had in its directory stays; with it, the child tidies up.
    if server.environment.get("BECALM_SOCKET") == "off":
        for name in sidecar.leftovers():
            assert name.startswith("becalm-")
            shutil.rmtree(sidecar.top / "tmp" / name)


def soak(sidecar: Sidecar, server: CmpServer, seconds: float, workers: int) -> tuple[int, list[str]]:
    """Calls of many kinds at once, for a time: how many, and what was wrong."""
    for number in range(6):
        write(sidecar.root, {f"apps/app-{number}/{name}": text for name, text in CHART.items()})
    archives = [pack(sidecar.root, git=git) for git in (True, False)]
    server.environment = {**server.environment, "BECALM_CONCURRENCY": "2"}
    until = time.monotonic() + seconds
    expected: dict[tuple[str, str], list] = {}
    lock, wrong, number = threading.Lock(), [], [0]

    def one(worker: int) -> None:
        turn = worker
        while time.monotonic() < until:
            turn += 7
            app = f"app-{turn % 6}"
            values = f"a: v{turn % 5}\n"
            parameters = (
                f'[{{"name": "values", "string": "a: v{turn % 5}\\n"}}]'
                if turn % 11
                else '[{"name": "nope", "string": ""}]'
            )
            variables = {
                **VARIABLES, "ARGOCD_APP_NAME": app, "ARGOCD_APP_SOURCE_PATH": f"apps/{app}", "ARGOCD_APP_PARAMETERS": parameters,
                **({} if turn % 3 else {"BECALM_CACHE_DIR": "off"}),
            }  # fmt: skip
            try:
                found = server.generate(archives[turn % 2], f"apps/{app}", variables)
                problem = (
                    ""
                    if turn % 11 and expected.setdefault((app, values), found) == found
                    else f"{app} differs"
                )
            except CallError as error:
                problem = "" if turn % 11 == 0 and "'nope' is no parameter" in str(error) else str(error)
            with lock:
                number[0] += 1
                wrong.extend([problem] if problem else [])

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, range(workers)))
    return number[0], wrong


def resident(pid: int) -> int:
    """KiB."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0])


def test_many_calls_at_once(tmp_path, request):
    """Six seconds here; `make soak` gives it 600 and 40 workers."""
    seconds = request.config.getoption("--soak") or 6.0
    workers = 40 if seconds > 60 else 8
    sidecar = Sidecar(tmp_path)
    work = tmp_path / "_cmp_server"
    work.mkdir()
    environment = {
        name: value for name, value in sidecar.env.items() if not name.startswith(("ARGOCD_", "KUBE_"))
    }
    server = CmpServer(work=work, command=sidecar.argv("x")[:-1], environment=environment)
    with sidecar.serving(BECALM_CONCURRENCY="2") as service:
        before = resident(service.pid)
        number, wrong = soak(sidecar, server, seconds, workers)
        after = resident(service.pid)
        children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
        files = len(list(Path(f"/proc/{service.pid}/fd").iterdir()))
    print(
        f"\n{number} calls by {workers} workers in {seconds:g} s; the service: {before} KiB before, {after} KiB after, {files} files"
    )
    assert wrong == []
    assert number > workers
    assert (children, list(work.iterdir()), sidecar.leftovers()) == ([], [], [])
    assert files < 20
    assert after < before + 8192
