"""becalm as Argo CD runs it: through a stand-in for argocd-cmp-server, with and without the service."""

from __future__ import annotations

import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import go_output
import pytest
import yaml
from applications import write
from cmp_server import CallError, CmpServer, pack
from services import CHART, Sidecar, children, gone

VARIABLES = {
    "ARGOCD_APP_NAME": "my-app", "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "space", "ARGOCD_APP_REVISION": "abc",
    "ARGOCD_APP_SOURCE_PATH": "apps/web", "KUBE_VERSION": "1.34.1", "KUBE_API_VERSIONS": "apps/v1,v1", "ARGOCD_APP_PARAMETERS": "null",
    "PARAM_X": "ignored",
}  # fmt: skip


ROOT = Path(__file__).resolve().parents[2]
DISCOVERS = {"discover": {"find": {"command": ["becalm", "discover"]}}}


def server_of(sidecar: Sidecar, **spec: object) -> CmpServer:
    """A server with our plugin.yaml, and what is said here."""
    config = sidecar.top / "config"
    config.mkdir(exist_ok=True)
    plugin = yaml.safe_load((ROOT / "plugin.yaml").read_text())
    plugin["spec"] |= spec
    (config / "plugin.yaml").write_text(yaml.safe_dump(plugin))
    environment = {
        name: value for name, value in sidecar.env.items() if not name.startswith(("ARGOCD_", "KUBE_"))
    }
    return CmpServer(config, sidecar.top, environment, sidecar.argv("x")[:-1])


@pytest.fixture(params=["service", "alone"])
def served(tmp_path, request):
    """A sidecar and a server for it."""
    sidecar = Sidecar(tmp_path)
    write(sidecar.root, {".git/HEAD": "ref: refs/heads/main\n", ".git/objects/aa/bb": "x"})
    server = server_of(sidecar, **DISCOVERS)
    if request.param == "alone":
        server.environment["BECALM_SOCKET"] = "off"
        yield sidecar, server
    else:
        with sidecar.serving():
            yield sidecar, server
    assert list(server.work.iterdir()) == []
    assert sidecar.leftovers() == []


@pytest.mark.parametrize("exclusions", [(), (".git",), (".git/*",)])
def test_a_source_is_discovered_announced_and_generated(served, exclusions):
    sidecar, server = served
    archive = pack(sidecar.root, exclusions)
    assert server.discover(archive, "apps/web")
    assert not server.discover(archive, "apps")
    # The empty name is dropped, the application's variables win over the container's.
    variables = {**VARIABLES, "": "x"}
    server.environment["ARGOCD_APP_NAME"] = "another"
    announced, *static = server.parameters(archive, "apps/web", variables)
    assert announced["map"] == {"a": "usual"}
    assert "releaseName" in {one["name"] for one in static}
    first, second = (server.generate(archive, "apps/web", variables) for _ in range(2))
    assert first == second
    (secret,) = first
    assert len(secret["stringData"]["pw"]) == 20
    assert server.logged[-1] == b""
    other = server.generate(archive, "apps/web", {**variables, "ARGOCD_APP_NAME": "another"})
    assert other != first
    # Neither the name of the plugin's socket nor the random directory is in the output.
    assert server.name == "becalm"
    assert str(server.work) not in str(first)


def test_links_are_sent_and_scripts_lose_their_mode(served):
    sidecar, server = served
    write(sidecar.root, {"shared/values.yaml": "a: linked\n"})
    (sidecar.app / "linked.yaml").symlink_to("../../shared/values.yaml")
    (sidecar.app / "values.yaml").chmod(0o755)
    given = {**VARIABLES, "ARGOCD_APP_PARAMETERS": '[{"name": "valueFiles", "array": ["linked.yaml"]}]'}
    (secret,) = server.generate(pack(sidecar.root), "apps/web", given)
    assert secret["stringData"]["a"] == "linked"
    (sidecar.app / "linked.yaml").unlink()
    (sidecar.app / "linked.yaml").symlink_to("/etc/hostname")
    with pytest.raises(CallError, match="illegal filepath in symlink"):
        pack(sidecar.root)


NASTY = [
    "y",
    "no",
    "1e3",
    "08",
    "0o17",
    "12:30",
    "2001-01-01",
    "=",
    "~",
    "0x1f",
    "1_000",
    ".5",
    "\u00e9\U0001f600",
    "- x",
    "a: b",
    "{}",
]


def test_argo_cd_reads_the_texts_that_were_meant(served):
    """Texts that YAML 1.1 takes for something else come through both of Argo CD's parses."""
    sidecar, server = served
    lines = "".join(
        f"  k{number}: {json.dumps(text, ensure_ascii=False)}\n" for number, text in enumerate(NASTY)
    )
    replicas = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  clusterIP: ''\n  externalName: '1e3'\n"
    )
    items = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: i}, data: {k: 'on'}}\n"
    write(
        sidecar.app,
        {
            "templates/n.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: nasty}}\ndata:\n{lines}---\n{replicas}---\n{items}---\n# nothing\n"
        },
    )
    found = {
        one["metadata"]["name"]: one for one in server.generate(pack(sidecar.root), "apps/web", VARIABLES)
    }
    assert set(found) == {"pw", "nasty", "s", "i"}
    assert list(found["nasty"]["data"].values()) == NASTY
    assert found["s"]["spec"] == {"externalName": "1e3"}
    assert found["i"]["data"] == {"k": "on"}


def test_the_model_reads_as_argo_cds_own_libraries_do():
    vectors = ROOT / "tests/vectors/yaml"
    seen = {one["name"]: one for one in json.loads((vectors / "parse.json").read_text())}
    left_out = (
        "key: ",
        "mixed duplicate: ",
        "depth: ",
        "indicator: <<",
        "lost: BOM behind",
        "stream: lone ...",
        "escape: slash",
        "break: CR CR LF",
    )
    number = 0
    for case in json.loads((vectors / "cases.json").read_text()):
        if {"&", "!"} & set(case["input"]) or case["name"].startswith(left_out):
            continue
        expected = seen[case["name"]]
        try:
            found = go_output.dissolved(go_output.decode(case["input"].encode("utf-8", "surrogatepass")))
        except go_output.OutputError:
            found = None
        wanted = None if "error" in expected else expected.get("objects") or []
        # Numbers beyond 53 bits are written down in fewer digits there.
        assert json.loads(json.dumps(found), parse_int=float) == json.loads(
            json.dumps(wanted), parse_int=float
        ), case["name"]
        number += 1
    assert number > 300
    assert go_output.objects(b'---\n{"kind": "A"}\n{"kind": "B"}\n') == [{"kind": "A"}]
    assert go_output.objects(b'{"kind": "A"}\n{"kind": "B"}\n') == [{"kind": "A"}, {"kind": "B"}]
    with pytest.raises(go_output.OutputError):
        go_output.objects(b"a: b\n")


def test_failures_come_as_one_error_and_no_manifest(served):
    sidecar, server = served
    archive = pack(sidecar.root)
    with pytest.raises(
        CallError,
        match=r"`becalm generate` failed exit status 2: Error: source.plugin.parameters: 'nope' is no parameter",
    ):
        server.generate(
            archive, "apps/web", {**VARIABLES, "ARGOCD_APP_PARAMETERS": '[{"name": "nope", "string": ""}]'}
        )
    with pytest.raises(CallError, match=r"failed exit status 3: Error: apps: there is no Chart\.yaml"):
        server.generate(archive, "apps", {**VARIABLES, "ARGOCD_APP_SOURCE_PATH": "apps"})
    # Nothing rendered would be taken for a wish to delete everything.
    (sidecar.app / "templates" / "a.yaml").write_text("")
    with pytest.raises(CallError, match="the source renders to nothing"):
        server.generate(pack(sidecar.root), "apps/web", VARIABLES)


def test_at_the_deadline_nothing_is_left(served):
    sidecar, server = served
    server.environment |= {"BECALM_HELM": sidecar.slow_helm(60), "BECALM_CACHE_DIR": "off"}
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
    archives = [pack(sidecar.root, exclusions) for exclusions in ((), (".git",))]
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
    server = server_of(sidecar)
    with sidecar.serving(BECALM_CONCURRENCY="2") as service:
        before = resident(service.pid)
        number, wrong = soak(sidecar, server, seconds, workers)
        after = resident(service.pid)
        readers = children(service)
        files = len(list(Path(f"/proc/{service.pid}/fd").iterdir()))
        largest = max(map(resident, readers))
    print(
        f"\n{number} calls by {workers} workers in {seconds:g} s; the service: {before} KiB before, {after} KiB after, {files} files; "
        f"a reader: at most {largest} KiB"
    )
    assert wrong == []
    assert number > workers
    assert len(readers) <= 2
    assert gone(readers)
    assert (list(server.work.iterdir()), sidecar.leftovers()) == ([], [])
    assert files < 20
    assert largest < before + 65536
    assert after < before + 8192
