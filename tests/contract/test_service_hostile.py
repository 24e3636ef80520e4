"""The service beside neighbours that mean no good, and on machines that run out of something."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from applications import write
from services import Sidecar, gone, is_running


@pytest.fixture
def sidecar(tmp_path):
    return Sidecar(tmp_path)


def impatient(sidecar: Sidecar, kind: int, number: int) -> None:
    """Make the service start with a limit, and give clients two seconds to ask."""
    python = sidecar.argv("serve")[0]

    def argv(command: str) -> list[str]:
        if command != "serve":
            return Sidecar.argv(command)
        code = (
            f"import resource, sys; resource.setrlimit({kind}, ({number}, {number}))\n"
            "from becalm.service import zygote\nzygote._SECONDS_TO_ASK = 2.0\n"
            "from becalm import cli\nsys.exit(cli.main(['serve']))"
        )
        return [python, "-c", code]

    sidecar.argv = argv  # type: ignore[method-assign]


def connected(sidecar: Sidecar) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(20)
    try:
        one.connect(sidecar.env["BECALM_SOCKET"])
    except OSError:
        one.close()
        raise
    return one


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_connections_that_say_nothing_use_up_no_files_and_are_ended(sidecar):
    impatient(sidecar, resource.RLIMIT_NOFILE, 128)
    with sidecar.serving() as service, contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(sidecar)) for _ in range(150)]
        busy = held[-1].recv(200)
        assert busy == b"busy becalm may open no more files; try again, or raise the limit (ulimit -n)\n"
        done = sidecar.generate()
        assert (done.returncode, done.stdout) == (11, "")
        before = processor_seconds(service.pid)
        assert held[0].recv(200) == b""
        assert processor_seconds(service.pid) - before < 2
        assert sidecar.generate().returncode == 0
        assert service.poll() is None


def test_the_service_may_open_as_many_files_as_its_user_allows(sidecar):
    code = f"import os, resource; resource.setrlimit(7, (64, 4096)); os.execv({sidecar.argv('serve')[0]!r}, {sidecar.argv('serve')!r})"
    argv = [sidecar.argv("serve")[0], "-c", code]
    sidecar.argv = lambda command: argv if command == "serve" else Sidecar.argv(command)  # type: ignore[method-assign]
    with sidecar.serving() as service:
        limits = Path(f"/proc/{service.pid}/limits").read_text().splitlines()
        (line,) = (one for one in limits if one.startswith("Max open files"))
        assert line.split()[3:5] == ["4096", "4096"]


def test_where_no_process_can_be_started_it_is_said_and_the_service_lives(sidecar, tmp_path):
    # Only a user that is not root has a limit of processes, so the call itself is made to fail.
    write(tmp_path, {
        "patched/sitecustomize.py": "import os, errno\nfork = os.fork\ndef failing():\n"
        f"    if os.path.exists({str(tmp_path / 'full')!r}):\n        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))\n"
        "    return fork()\nos.fork = failing\n"
    })  # fmt: skip
    sidecar.env["PYTHONPATH"] = f"{tmp_path / 'patched'}:{os.environ.get('PYTHONPATH', '')}"
    with sidecar.serving() as service:
        (tmp_path / "full").touch()
        files = len(list(Path(f"/proc/{service.pid}/fd").iterdir()))
        for _ in range(3):
            done = sidecar.generate()
            assert (done.returncode, done.stdout) == (11, "")
            assert "no process can be started: Resource temporarily unavailable; try again" in done.stderr
        (tmp_path / "full").unlink()
        assert sidecar.generate().returncode == 0
        assert {one["outcome"] for one in sidecar.renders(4)} == {"overloaded", "rendered"}
        assert len(list(Path(f"/proc/{service.pid}/fd").iterdir())) <= files + 1


def test_a_sidecar_whose_server_cannot_be_run_leaves_nothing(sidecar):
    server = sidecar.top / "argocd-cmp-server"
    server.write_bytes(b"\x7fELF no program")
    server.chmod(0o755)
    env = {**sidecar.env, "BECALM_CMP_SERVER": str(server)}
    done = subprocess.run(
        sidecar.argv("sidecar"), env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 4
    assert "argocd-cmp-server cannot be run: Exec format error" in done.stderr
    with pytest.raises(OSError, match=r"refused|No such file"):
        connected(sidecar)


def test_a_line_of_the_log_cannot_be_forged(sidecar):
    forged = 'x\noutcome=rendered app=other error="'
    with sidecar.serving(BECALM_LOG="text"):
        sidecar.generate({"name": forged, "string": ""}, ARGOCD_APP_SOURCE_PATH=forged)
        until = time.monotonic() + 20
        while "outcome=" not in sidecar.log.read_text() and time.monotonic() < until:
            time.sleep(0.02)
    lines = sidecar.log.read_text().splitlines()
    (line,) = (one for one in lines if "app=my-app" in one)
    assert f"path={json.dumps(forged)}" in line
    assert line.split().count("outcome=failed") == 1
    assert not any(one.startswith("outcome=") for one in lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_lives_on_after_the_service_whatever_it_was_doing(sidecar, number):
    slow = sidecar.slow_helm(30)
    with sidecar.serving(BECALM_CONCURRENCY="1") as service:
        running = sidecar.popen(BECALM_HELM=slow, BECALM_CACHE_DIR="off")
        (helm,) = sidecar.begun()
        waiting = sidecar.popen(BECALM_HELM=slow, BECALM_CACHE_DIR="off", ARGOCD_APP_NAME="waits")
        half = connected(sidecar)
        half.sendall(b"\0\0")
        time.sleep(0.5)
        children = [
            int(pid) for pid in Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
        ]
        service.send_signal(number)
        if number == signal.SIGTERM:
            # What was taken is being finished; a second signal changes nothing, and the clients give up.
            time.sleep(0.2)
            service.send_signal(number)
        for one in (running, waiting):
            os.killpg(one.pid, signal.SIGKILL)
            one.communicate(timeout=20)
        # Before the ten seconds are over that the half client has to ask.
        assert service.wait(8) == (0 if number == signal.SIGTERM else -number)
        half.close()
        assert gone([helm, *children])
    assert not is_running(helm)


LOTS = '{{- $l := dict }}{{- range $i := until 100000 }}{{- $_ := set $l (printf "k%d" $i) (repeat 20000 "x") }}{{- end }}'


@pytest.mark.parametrize("is_served", [True, False])
def test_a_render_that_needs_too_much_memory_ends_with_words(sidecar, is_served):
    bound = {"BECALM_CHILD_BYTES": str(256 * 1024 * 1024), "BECALM_CACHE_DIR": "off"}
    if not is_served:
        bound["BECALM_SOCKET"] = "off"
    with sidecar.serving() if is_served else contextlib.nullcontext() as service:
        assert sidecar.generate(**bound).returncode == 0
        write(sidecar.app, {"templates/b.yaml": LOTS})
        done = sidecar.generate(**bound)
        assert (done.returncode, done.stdout) == (5, "")
        assert done.stderr.startswith(
            "Error: helm needs more memory than it may take; make the application smaller"
        )
        assert "goroutine" not in done.stderr
        assert service is None or service.poll() is None


def test_a_limit_of_memory_below_what_becalm_needs_is_refused(sidecar):
    done = sidecar.generate(BECALM_CHILD_BYTES="1000", BECALM_SOCKET="off")
    assert (done.returncode, done.stdout) == (2, "")
    assert "BECALM_CHILD_BYTES: '1000' is no number from 134217728" in done.stderr


FULL = {
    "for the directory": (
        "TMPDIR: no temporary directory can be made: No space left on device",
        2,
    ),
    "for the copy": ("apps/web: the chart cannot be copied to the working directory: File too large", 3),
    "for the values": ("the machine has no room: File too large; give the sidecar more", 1),
}


@pytest.mark.parametrize("place", FULL)
def test_a_full_disk_is_said_and_leaves_nothing(sidecar, place):
    # A limit of the size of files stands for the disk.
    code = (
        "import resource, sys; from becalm import cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "sys.exit(cli.main(['generate']))"
    )
    given = []
    if place == "for the directory":
        code = f"import tempfile\ndef no(**_): raise OSError(28, 'No space left on device')\ntempfile.mkdtemp = no\n{code}"
    elif place == "for the copy":
        write(sidecar.app, {"templates/b.yaml": "{{/* " + "x" * 20_000 + " */}}\n"})
    else:
        write(sidecar.app, {"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"})
        given = [{"name": "values", "string": f"a: {'x' * 20_000}\n"}]
    env = {**sidecar.env, "BECALM_SOCKET": "off", "ARGOCD_APP_PARAMETERS": json.dumps(given)}
    argv = [sidecar.argv("")[0], "-c", code]
    done = subprocess.run(
        argv, cwd=sidecar.app, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    words, exit_code = FULL[place]
    assert (done.returncode, done.stdout) == (exit_code, "")
    assert done.stderr.startswith(f"Error: {words}")
    assert sidecar.leftovers() == []


def test_a_service_that_takes_no_more_connections_is_another_service(sidecar):
    place = Path(sidecar.env["BECALM_SOCKET"])
    place.parent.mkdir(mode=0o700)
    with contextlib.ExitStack() as stack:
        stuck = stack.enter_context(socket.socket(socket.AF_UNIX))
        stuck.bind(str(place))
        stuck.listen(0)
        stack.enter_context(connected(sidecar))
        done = subprocess.run(
            sidecar.argv("serve"), env=sidecar.env, capture_output=True, text=True, timeout=20, check=False
        )
    assert done.returncode == 2
    assert "another service listens there" in done.stderr


def test_what_renders_charts_for_kustomize_gets_no_password_of_the_cache():
    from becalm.cmp import helm_environment

    given = {
        "BECALM_REDIS_PASSWORD": "x",
        "BECALM_REDIS_URL": "redis://:x@host",
        "BECALM_SEED_FILE": "/seed",
        "OTHER": "x",
    }
    assert helm_environment.passed(given) == {"BECALM_SEED_FILE": "/seed"}


def test_a_service_that_stands_still_leaves_the_render_to_the_client(sidecar):
    with sidecar.serving() as service:
        expected = sidecar.generate().stdout
        service.send_signal(signal.SIGSTOP)
        try:
            done = sidecar.generate(timeout=40, BECALM_DEADLINE="1", BECALM_CACHE_DIR="off")
        finally:
            service.send_signal(signal.SIGCONT)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", expected)
        assert sidecar.generate().stdout == expected
