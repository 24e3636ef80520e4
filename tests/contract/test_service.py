"""The warm service: the same result as without it, and nothing left behind whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from applications import TOOLS, write
from services import CHART, Sidecar, children, children_of, gone, is_running

KUBECTL = TOOLS / "kubectl-1.34.5" / "kubectl"
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"
CHANGED = {"name": "values", "string": "a: changed\n"}


@pytest.fixture
def sidecar(tmp_path):
    return Sidecar(tmp_path)


def same(one: subprocess.CompletedProcess, other: subprocess.CompletedProcess) -> None:
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)


def test_the_result_is_that_of_a_render_without_it(sidecar):
    broken = {"name": "values", "string": "a: ["}
    given = [
        (),
        (CHANGED,),
        (broken,),
        ({"name": "nope", "string": ""},),
        ({"name": "values", "string": "a: é"},),
    ]
    off = {"BECALM_SOCKET": "off", "BECALM_CACHE_DIR": "off"}
    alone = [sidecar.generate(*parameters, **off) for parameters in given]
    with sidecar.serving():
        for expected, parameters in zip(alone, given, strict=True):
            same(sidecar.generate(*parameters, BECALM_CACHE_DIR="off"), expected)
            same(sidecar.generate(*parameters), expected)
        outcomes = [one["outcome"] for one in sidecar.renders(2 * len(given))]
    assert [done.returncode for done in alone] == [0, 0, 5, 2, 0]
    assert outcomes == ["rendered", "rendered"] * 2 + ["failed"] * 4 + ["rendered"] * 2
    assert sidecar.leftovers() == []


def test_a_second_render_runs_no_helm(sidecar):
    with sidecar.serving():
        first = sidecar.generate()
        sidecar.renders(1)  # what is kept is kept after the answer
        second = sidecar.generate()
        same(first, second)
        runs = [(one["outcome"], one["runs"]) for one in sidecar.renders(2)]
    assert runs == [("rendered", 2), ("cached", 0)]


def test_many_at_once_are_all_right(sidecar):
    alone = {
        n: sidecar.generate({"name": "values", "string": f"a: {n}\n"}, BECALM_SOCKET="off").stdout
        for n in range(4)
    }
    with sidecar.serving(BECALM_CONCURRENCY="3") as service:
        running = []
        for number in range(24):
            parameters = {"name": "values", "string": f"a: {number % 4}\n"}
            cache = {"BECALM_CACHE_DIR": "off"} if number % 2 else {}
            running.append((number % 4, sidecar.popen(parameters, ARGOCD_APP_NAME="my-app", **cache)))
        for number, one in running:
            out, err = one.communicate(timeout=60)
            assert (one.returncode, err, out) == (0, "", alone[number])
        sidecar.renders(24)
        readers = children(service)
        files = len(list(Path(f"/proc/{service.pid}/fd").iterdir()))
    assert 1 <= len(readers) <= 3
    assert gone(readers)
    assert files < 20
    assert sidecar.leftovers() == []


def test_a_client_that_is_killed_takes_its_render_along(sidecar):
    with sidecar.serving() as service:
        client = sidecar.popen(BECALM_HELM=sidecar.slow_helm(60))
        (helm,) = sidecar.begun()
        client.kill()
        assert gone([helm], 8)
        (record,) = sidecar.renders()
        client.communicate()
        assert service.poll() is None
        assert sidecar.generate().returncode == 0
    assert (record["outcome"], record["app"]) == ("cancelled", "my-app")
    assert sidecar.leftovers() == []


def test_a_client_that_waits_can_go_away(sidecar):
    with sidecar.serving(BECALM_CONCURRENCY="1") as service:
        first = sidecar.popen(BECALM_HELM=sidecar.held_helm())
        sidecar.begun()
        before = len(list(Path(f"/proc/{service.pid}/fd").iterdir()))
        waiting = sidecar.popen(ARGOCD_APP_NAME="other")
        until = time.monotonic() + 20
        while len(list(Path(f"/proc/{service.pid}/fd").iterdir())) < before + 4:
            assert time.monotonic() < until
            time.sleep(0.02)
        waiting.kill()
        waiting.communicate()
        sidecar.renders(1)
        sidecar.release()
        records = sidecar.renders(2)
        first.communicate(timeout=30)
    assert {one["app"]: one["outcome"] for one in records} == {"my-app": "rendered", "other": "cancelled"}


def test_a_service_that_is_killed_leaves_the_render_to_the_client(sidecar):
    expected = sidecar.generate(BECALM_SOCKET="off", BECALM_CACHE_DIR="off")
    service = sidecar.start()
    client = sidecar.popen(BECALM_HELM=sidecar.slow_helm(1.5))
    helms = sidecar.begun()
    service.kill()
    service.wait()
    out, err = client.communicate(timeout=60)
    assert (client.returncode, out, err) == (0, expected.stdout, "")
    assert gone(helms, 10)
    # Its socket is still there; the next service takes its place.
    with sidecar.serving():
        same(sidecar.generate(), expected)


def test_a_render_whose_process_is_killed_is_done_by_the_client(sidecar):
    expected = sidecar.generate(BECALM_SOCKET="off", BECALM_CACHE_DIR="off")
    with sidecar.serving() as service:
        client = sidecar.popen(BECALM_HELM=sidecar.slow_helm(1.5))
        helms = sidecar.begun()
        (child,) = [one for one in children(service) if children_of(one)]
        os.kill(child, signal.SIGKILL)
        assert gone(helms, 5)
        out, err = client.communicate(timeout=60)
        assert (client.returncode, out, err) == (0, expected.stdout, "")
        assert "signal 9" in sidecar.renders()[0]["error"]


def test_helm_that_is_killed_is_an_error(sidecar):
    with sidecar.serving():
        client = sidecar.popen(BECALM_HELM=sidecar.slow_helm(60))
        (helm,) = sidecar.begun()
        os.kill(helm, signal.SIGKILL)
        out, err = client.communicate(timeout=30)
        assert (client.returncode, out) == (5, "")
        assert "helm was ended by signal 9; render it again" in err
        assert len(sidecar.begun()) == 1
        assert sidecar.generate().returncode == 0


def test_a_render_that_is_late_is_given_up(sidecar):
    with sidecar.serving(BECALM_DEADLINE="4", BECALM_CONCURRENCY="1"):
        started = time.monotonic()
        clients = [
            sidecar.popen(BECALM_HELM=sidecar.slow_helm(60), ARGOCD_APP_NAME=name) for name in ("a", "b")
        ]
        outcomes = [one.communicate(timeout=30) for one in clients]
        assert time.monotonic() - started < 30
        helms = sidecar.begun()
        assert [one.returncode for one in clients] == [6, 6]
        texts = sorted(err for _, err in outcomes)
        assert "did not end within 4 s" in texts[0] + texts[1]
        assert "waited 4 s for its turn; raise BECALM_CONCURRENCY" in texts[0] + texts[1]
        assert [out for out, _ in outcomes] == ["", ""]
        assert gone(helms, 8)
        assert {one["outcome"] for one in sidecar.renders(2)} == {"timeout"}


@pytest.mark.parametrize("places", [0, 1])
def test_too_many_are_turned_away_at_once(sidecar, places):
    with sidecar.serving(BECALM_CONCURRENCY="1", BECALM_QUEUE=str(places)) as service:
        first = sidecar.popen(BECALM_HELM=sidecar.held_helm())
        sidecar.begun()

        def files() -> int:
            return len(list(Path(f"/proc/{service.pid}/fd").iterdir()))

        before = files()
        waiting = [sidecar.popen(ARGOCD_APP_NAME="b") for _ in range(places)]
        until = time.monotonic() + 20
        while files() < before + 4 * places:  # a connection, and three files that it brought
            assert time.monotonic() < until
            time.sleep(0.02)
        more = sidecar.generate(ARGOCD_APP_NAME="c")
        assert (more.returncode, more.stdout) == (11, ""), sidecar.log.read_text()
        assert f"{places} renders wait already; try again, or raise BECALM_CONCURRENCY" in more.stderr
        sidecar.release()
        for one in (first, *waiting):
            one.communicate(timeout=30)
            assert one.returncode == 0


def test_sigterm_finishes_what_was_taken(sidecar):
    service = sidecar.start()
    client = sidecar.popen(BECALM_HELM=sidecar.held_helm())
    sidecar.begun()
    service.send_signal(signal.SIGTERM)
    until = time.monotonic() + 10
    while Path(sidecar.env["BECALM_SOCKET"]).exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    late = sidecar.generate()
    assert late.returncode == 0
    sidecar.release()
    out, err = client.communicate(timeout=30)
    assert (client.returncode, err, out) == (0, "", late.stdout)
    assert service.wait(10) == 0


def test_what_killed_renders_left_is_removed_after_a_while(sidecar):
    temporary = sidecar.top / "tmp"
    for name, age in (("becalm-old", 10_000), ("becalm-new", 0), ("other-old", 10_000)):
        (temporary / name / "chart").mkdir(parents=True)
        os.utime(temporary / name, (time.time() - age,) * 2)
    with sidecar.serving():
        assert sidecar.leftovers() == ["becalm-new", "other-old"]


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_a_socket_in_a_directory_of_others_is_not_used(sidecar, mode):
    directory = Path(sidecar.env["BECALM_SOCKET"]).parent
    directory.mkdir()
    directory.chmod(mode)
    done = sidecar.refusal()
    assert done.returncode == 2
    assert "the directory is open to others; give the socket a directory of its own" in done.stderr
    if mode & 0o022:
        with socket.socket(socket.AF_UNIX) as fake:
            fake.bind(sidecar.env["BECALM_SOCKET"])
            fake.listen(1)
            assert sidecar.generate(timeout=30).returncode == 0


def test_a_second_service_is_refused(sidecar):
    with sidecar.serving():
        done = sidecar.refusal()
        assert done.returncode == 2
        assert "another service listens there" in done.stderr
        assert sidecar.generate().returncode == 0


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0\x01", b"\xff\xff\xff\xff", b"\0\0\0\x05A=B\0C", b"GET / HTTP/1.1\r\n\r\n" * 1000]
)
def test_nonsense_on_the_socket_hurts_nobody(sidecar, data):
    with sidecar.serving() as service:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(sidecar.env["BECALM_SOCKET"])
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""
        assert sidecar.generate().returncode == 0
        assert service.poll() is None


def test_memory_and_files_stay_as_they_are(sidecar):
    big = "".join(
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\ndata: {{k: {'x' * 500}}}\n"
        for n in range(4000)
    )
    write(sidecar.app, {"templates/big.yaml": big})
    with sidecar.serving() as service:

        def resident() -> int:
            status = Path(f"/proc/{service.pid}/status").read_text()
            return int(status.partition("VmRSS:")[2].split()[0])

        first = resident()
        for number in range(4):
            values = {"name": "values", "string": f"a: {number}\n"}
            assert sidecar.generate(values, BECALM_RULES="-all").returncode == 0
        assert resident() < first + 4096
        assert resident() < 150 * 1024


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("BECALM_CONCURRENCY", "0", "BECALM_CONCURRENCY: '0' is no number from 1"),
        ("BECALM_DEADLINE", "soon", "BECALM_DEADLINE: 'soon' is no number from 1; for example 55"),
        ("BECALM_SOCKET", "run/x", "BECALM_SOCKET: the socket is no absolute path"),
        ("BECALM_LOG", "xml", "BECALM_LOG: 'xml' is not allowed; write json or text"),
    ],
)
def test_settings_that_are_wrong_are_said(sidecar, name, value, words):
    done = sidecar.refusal(**{name: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_the_log_can_be_text_and_holds_no_secret(sidecar):
    with sidecar.serving(BECALM_LOG="text", BECALM_CONCURRENCY="1") as service:
        password = sidecar.generate().stdout.partition("pw: ")[2].split()[-1].strip('"')
        sidecar.generate({"name": "values", "string": "a: planted-secret\n"})
        sidecar.generate({"name": "values", "string": "a: [planted-secret"})
        until = time.monotonic() + 20
        while sidecar.log.read_text().count("outcome=") < 3 and time.monotonic() < until:
            time.sleep(0.02)
        assert service.poll() is None
    text = sidecar.log.read_text()
    assert "app=my-app" in text
    assert "outcome=failed" in text
    assert "planted" not in text
    assert password not in text


def test_the_sidecar_lives_and_ends_with_both(sidecar):
    server = sidecar.top / "argocd-cmp-server"
    server.write_text(
        f"#!/bin/sh\necho $$ > {sidecar.top}/server\ntrap 'exit 0' TERM\nwhile :; do sleep 0.05; done\n"
    )
    server.chmod(0o755)
    argv = sidecar.argv("sidecar")
    env = {**sidecar.env, "BECALM_CMP_SERVER": str(server)}

    def started():
        with sidecar.log.open("wb") as log:
            running = subprocess.Popen(argv, env=env, stderr=log)
        until = time.monotonic() + 30
        while not any(one.get("service") == "ready" for one in sidecar.records()):
            assert time.monotonic() < until
            time.sleep(0.02)
        return running, int((sidecar.top / "server").read_text())

    running, pid = started()
    assert sidecar.generate().returncode == 0
    running.send_signal(signal.SIGTERM)
    assert running.wait(20) == 0
    assert not is_running(pid)
    running, pid = started()
    os.kill(pid, signal.SIGKILL)
    assert running.wait(20) == 5
    assert not Path(env["BECALM_SOCKET"]).exists()
    done = subprocess.run(
        argv,
        env={**env, "BECALM_CMP_SERVER": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 4
    assert "/nowhere: argocd-cmp-server is not there; mount Argo CD's volume var-files" in done.stderr


@pytest.mark.parametrize("how", ["signal", "crash"])
def test_a_cmp_server_that_never_ends_by_itself_holds_nothing_up(sidecar, how):
    """argocd-cmp-server removes its socket on SIGTERM and runs on, so until it is started again nothing is rendered."""
    server = sidecar.top / "argocd-cmp-server"
    server.write_text(
        f"#!{sys.executable}\nimport signal, time\nsignal.signal(signal.SIGTERM, lambda *_: None)\n"
        f"open({str(sidecar.top / 'server')!r}, 'w').close()\nwhile True: time.sleep(0.2)\n"
    )
    server.chmod(0o755)
    with sidecar.log.open("wb") as log:
        env = {**sidecar.env, "BECALM_CMP_SERVER": str(server)}
        running = subprocess.Popen(sidecar.argv("sidecar"), env=env, stderr=log)
    until = time.monotonic() + 30
    while not (
        (sidecar.top / "server").exists() and any("ready" in one.values() for one in sidecar.records())
    ):
        assert time.monotonic() < until
        time.sleep(0.02)
    children = [
        int(pid) for pid in Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    ]
    started = time.monotonic()
    if how == "signal":
        running.send_signal(signal.SIGTERM)
    else:
        (service,) = [pid for pid in children if b"serve\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(service, signal.SIGKILL)
    assert running.wait(40) == (0 if how == "signal" else 5)
    assert time.monotonic() - started < 15
    assert gone(children, 1)


OPEN = {
    "the directory": ("cache", "is open to others (mode 0755)"),
    "what is in it": ("cache/renders", "is open to others (mode 0755)"),
    "a file": ("file", "cannot be made or opened: File exists"),
}


@pytest.mark.parametrize("place", OPEN)
def test_a_cache_that_is_not_becalms_alone_is_told_at_the_start_and_by_each_render(sidecar, place):
    name, why = OPEN[place]
    path = sidecar.top / name
    if place == "a file":
        path.touch()
    else:
        (sidecar.top / "cache" / "renders").mkdir(mode=0o700, parents=True)
        (sidecar.top / "cache").chmod(0o700)
        path.chmod(0o755)
    told = (
        f"BECALM_CACHE_DIR: {path} {why}, so nothing is kept there; "
        "name a directory that is becalm's alone (mode 0700), or set it to off"
    )
    directory = str(sidecar.top / name.partition("/")[0])
    with sidecar.serving(BECALM_CACHE_DIR=directory):
        for number in range(2):
            done = sidecar.generate(BECALM_CACHE_DIR=directory)
            assert (done.returncode, done.stderr) == (0, f"Warning: {told}\n")
            assert [one["warnings"] for one in sidecar.renders(number + 1)] == [1] * (number + 1)
        starts = [one["error"] for one in sidecar.records() if one.get("service") == "the cache is not used"]
    assert starts == [told]


def test_a_cache_of_becalms_alone_is_not_spoken_of(sidecar):
    with sidecar.serving():
        assert sidecar.generate().stderr == ""
    with sidecar.serving(BECALM_CACHE_DIR="off"):
        assert sidecar.generate(BECALM_CACHE_DIR="off").stderr == ""
    assert "the cache is not used" not in sidecar.log.read_text()


def test_the_record_tells_seconds_of_each_stage(sidecar):
    write(sidecar.root / "apps/plain", {"Chart.yaml": CHART["Chart.yaml"], "templates/a.yaml": PLAIN})
    write(sidecar.root / "apps/overlay", {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": PLAIN})
    write(sidecar.root / "apps/wrong", {"Chart.yaml": CHART["Chart.yaml"], "templates/a.yaml": '{{ fail "no" }}'})  # fmt: skip
    with sidecar.serving(BECALM_KUSTOMIZE=str(KUBECTL)):
        for number, name in enumerate(("web", "web", "plain", "overlay", "wrong")):
            sidecar.app = sidecar.root / "apps" / name
            done = sidecar.generate(ARGOCD_APP_SOURCE_PATH=f"apps/{name}")
            assert done.returncode == (5 if name == "wrong" else 0), done.stderr
            found = sidecar.renders(number + 1)
    around, after = ["queue", "cache"], ["normalise", "report", "render"]
    assert [list(one["stages"]) for one in found] == [
        [*around, "source", "survey", "settle", "replay", *after],
        [*around, "render"],
        [*around, "source", "helm", *after],
        [*around, "kustomize", *after],
        [*around, "source", "helm", "render"],
    ]
    for one in found:
        stages = one["stages"]
        inner = sum(seconds for name, seconds in stages.items() if name not in ("queue", "report", "render"))
        assert 0 < inner <= stages["render"] + 0.01
    assert found[0]["stages"]["survey"] > 0.01  # helm ran
    # What failed tells what it was.
    assert [one["source"] for one in found] == ["helm", "helm", "helm", "kustomize", "helm"]
