"""Health, metrics and pages of a running service, and that no secret is in any of them."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import http.client
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import servers
import yaml
from applications import write
from services import Sidecar

from becalm.service.health import Health
from becalm.service.tidy import Tidy

PLANTED = "planted-value-4711"


class Observed(Sidecar):
    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.port = servers.free_port()
        self.env["BECALM_WEB_ADDRESS"] = f"127.0.0.1:{self.port}"

    def get(self, path: str, timeout: float = 10) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def until(self, path: str, status: int, words: str = "", seconds: float = 30) -> str:
        end = time.monotonic() + seconds
        found = (0, "")
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                found = self.get(path)
                if found[0] == status and words in found[1]:
                    return found[1]
            time.sleep(0.05)
        raise AssertionError(f"{path}: {found}")

    def revived(self, **variables: str) -> None:
        """Render until the web process, which has ended, is there again: it is started again by a render, but not at once."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            assert self.generate(**variables).returncode == 0
            with contextlib.suppress(OSError, http.client.HTTPException):
                # The service holds the port, so who asks while nobody answers waits.
                assert self.get("/", timeout=0.5)[0] == 200
                return
        raise AssertionError(self.log.read_text())

    def narrow(self, service: subprocess.Popen, web: int) -> None:
        """Have the pipe between the two hold one page only."""
        ends = [
            {str(path.readlink()): path for path in Path(f"/proc/{pid}/fd").iterdir() if int(path.name) > 2}
            for pid in (service.pid, web)
        ]
        (pipe,) = (path for name, path in ends[1].items() if name.startswith("pipe:") and name in ends[0])
        number = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, 4096) == 4096
        finally:
            os.close(number)

    def web(self, service: subprocess.Popen) -> int:
        children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
        (pid,) = (pid for pid in children if _listens(pid, self.port))
        return int(pid)


@pytest.fixture
def observed(tmp_path):
    return Observed(tmp_path)


def test_it_is_ready_when_its_own_sample_is_rendered_and_tells_of_renders(observed):
    with observed.serving() as service:
        assert observed.until("/readyz", 200) == "ok\n"
        assert observed.get("/healthz") == (200, "ok\n")
        for number in range(2):
            assert observed.generate().returncode == 0
            observed.renders(number + 1)
        assert observed.generate({"name": "nope", "string": ""}).returncode == 2
        metrics = observed.until(
            "/metrics", 200, 'becalm_renders_total{outcome="failed",source="unknown"} 1.0'
        )
        assert 'becalm_renders_total{outcome="rendered",source="helm"} 1.0' in metrics
        assert 'becalm_renders_total{outcome="cached",source="helm"} 1.0' in metrics
        assert 'becalm_cache_total{result="hit"} 1.0' in metrics
        assert "my-app" not in metrics
        assert "becalm-sample" not in metrics
        page = observed.get("/")[1]
        assert "my-app" in page
        assert "becalm-sample" not in page
        details = observed.get("/apps/my-app")[1]
        assert "Secret" in details
        assert "randAlphaNum" in details
        assert "&#39;nope&#39; is no parameter of becalm" in details
        assert observed.get("/nowhere")[0] == 404
        # The page's process can end; the next render brings it back.
        os.kill(observed.web(service), signal.SIGKILL)
        observed.revived()
        assert service.poll() is None


def test_a_service_that_cannot_render_is_not_ready_and_says_why(observed):
    with observed.serving(BECALM_HELM="/nowhere/helm"):
        told = observed.until("/readyz", 503, "the sample cannot be rendered")
        assert "/nowhere/helm cannot be run" in told
        # Not at once: a sidecar that is started again renders no better.
        assert observed.get("/healthz")[0] == 200


def test_the_page_can_be_switched_off(observed):
    with observed.serving(BECALM_WEB_PAGE="off"):
        observed.until("/readyz", 200)
        assert observed.get("/metrics")[0] == 200
        assert [observed.get(path)[0] for path in ("/", "/apps/my-app", "/certificates")] == [404, 404, 404]


def test_a_web_process_that_hangs_holds_no_render_up(observed):
    secrets = "".join(
        f"---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s{n}}}\nstringData: {{pw: {{{{ randAlphaNum 8 }}}}}}\n"
        for n in range(60)
    )
    write(observed.app, {"templates/many.yaml": secrets})
    with observed.serving() as service:
        web = observed.web(service)
        observed.narrow(service, web)
        os.kill(web, signal.SIGSTOP)
        try:
            # A record of these is more than the pipe holds.
            for number in range(4):
                done = observed.generate({"name": "values", "string": f"a: {number}\n"}, timeout=20)
                assert (done.returncode, done.stderr) == (0, "")
            observed.renders(4)
        finally:
            os.kill(web, signal.SIGCONT)
        assert observed.generate().returncode == 0
        # Half a line would be no record.
        metrics = observed.until("/metrics", 200, "becalm_renders_total{")
        assert "becalm_records_refused_total 0.0" in metrics


def test_a_port_that_is_taken_is_said_at_the_start(observed):
    with socket.create_server(("127.0.0.1", observed.port)):
        done = observed.refusal()
    assert done.returncode == 2
    assert f"127.0.0.1:{observed.port}: nothing can listen there: Address already in use" in done.stderr
    assert not Path(observed.env["BECALM_SOCKET"]).exists()


def test_a_planted_secret_is_found_nowhere(observed):
    write(observed.app, {
        "templates/b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: fixed}\nstringData: {k: {{ .Values.planted }}}\n"
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {}}\ndata: {k: {{ .Values.planted | b64enc }}, clear: 'x'}\n"
        "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: ''}\n",
        "env.yaml": f"planted: {PLANTED}\n",
    })  # fmt: skip
    given = {"name": "valueFiles", "array": ["env.yaml"]}
    broken = {"name": "values", "string": f"planted: [{PLANTED}"}
    schema = {"name": "parameters", "map": {"a[": PLANTED, "b": f"{{{PLANTED}"}}
    with observed.serving():
        observed.until("/readyz", 200)
        output = observed.generate(given).stdout
        errors = "".join(
            observed.generate(given, *more).stderr
            for more in ([broken], [schema], [{"name": "nope", "string": PLANTED}])
        )
        observed.renders(4)
        observed.until("/metrics", 200, 'outcome="failed"')
        pages = "".join(
            observed.get(path)[1] for path in ("/", "/apps/my-app", "/certificates", "/metrics", "/?q=my")
        )
    passwords = [
        obj["stringData"]["pw"]
        for obj in yaml.safe_load_all(output)
        if obj and obj["metadata"]["name"] == "pw"
    ]
    (password,) = passwords
    assert PLANTED in output
    assert len(password) == 20
    seed = Path(observed.env["BECALM_SEED_FILE"]).read_bytes()
    kept = b"".join(path.read_bytes() for path in (observed.top / "cache").rglob("*") if path.is_file())
    assert "core/service-empty-addresses" in pages
    everywhere = {
        "log": observed.log.read_bytes(),
        "errors": errors.encode(),
        "pages": pages.encode(),
        "cache": kept,
    }
    secrets = [PLANTED.encode(), password.encode(), seed, seed.hex().encode()]
    for secret in [*secrets, *map(base64.b64encode, secrets)]:
        for place, data in everywhere.items():
            assert secret not in data, (place, secret)


def test_the_sample_is_rendered_after_leftovers_were_removed(observed, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(observed.top / "tmp"))
    observed.env["BECALM_WEB_ADDRESS"] = "off"
    with observed.serving():
        health = Health(Path(observed.env["BECALM_SOCKET"]), observed.env)
        health.look()
        assert health._problem == ""
        # As if somebody had given up a render some minutes from now.
        Tidy(observed.top / "tmp", 220).up(time.time() + 300)
        health.look()
        assert health._problem == ""


def test_a_web_process_that_stands_still_stops_nothing(observed):
    big = "".join(
        f"---\napiVersion: v1\nkind: Service\nmetadata: {{name: s{n}}}\nspec: {{clusterIP: '', x: {'y' * 500}}}\n"
        for n in range(150)
    )
    write(observed.app, {"templates/big.yaml": big})
    with observed.serving() as service:
        observed.until("/readyz", 200)
        web = observed.web(service)
        os.kill(web, signal.SIGSTOP)
        try:
            for number in range(6):
                done = observed.generate({"name": "values", "string": f"a: {number}\n"}, timeout=20)
                assert done.returncode == 0
                observed.renders(number + 1)
            assert observed.generate(timeout=10).returncode == 0
        finally:
            os.kill(web, signal.SIGCONT)
        observed.until("/metrics", 200, 'becalm_renders_total{outcome="rendered",source="helm"} 7.0')
        assert "becalm_records_refused_total 0.0" in observed.get("/metrics")[1]


def test_a_web_process_that_is_started_during_renders_holds_nothing_of_them(observed):
    with observed.serving(BECALM_CONCURRENCY="2") as service:
        observed.until("/readyz", 200)
        os.kill(observed.web(service), signal.SIGKILL)
        running = observed.popen(BECALM_HELM=observed.held_helm(), BECALM_CACHE_DIR="off")
        observed.begun()
        observed.revived(BECALM_CACHE_DIR="off")
        children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
        (web,) = (pid for pid in children if _listens(pid, observed.port))
        held = [str(one.readlink()) for one in Path(f"/proc/{web}/fd").iterdir()]
        assert not [one for one in held if "memfd" in one or str(observed.root) in one]
        observed.release()
        assert running.communicate(timeout=30)[1] == ""


def _listens(pid: str, port: int) -> bool:
    """Whether a process has the listening socket and keeps it, which a render does not."""
    inodes = {
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()
        if f":{port:04X} 00000000:0000" in line
    }
    links = []
    with contextlib.suppress(OSError):
        links = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
    return any(f"socket:[{inode}]" in links for inode in inodes)


QUOTING = {
    "fail": '{{ fail (printf "bad %s" .Values.planted) }}',
    "fail in base64": "{{ fail (.Values.planted | b64enc) }}",
    "no template": "{{ include .Values.planted . }}",
    "no function": '{{ tpl (printf "{{ %s }}" .Values.planted) . }}',
    "many lines": "{{ fail .Values.lines }}",
}
GIVEN = {
    "a values file": [{"name": "valueFiles", "array": ["env.yaml"]}],
    "values": [{"name": "values", "string": f"planted: {PLANTED}\nlines: |\n  one {PLANTED}\n  two\n"}],
    "parameters": [{"name": "parameters", "map": {"planted": PLANTED, "lines": PLANTED}}],
    "texts": [{"name": "stringParameters", "map": {"planted": PLANTED, "lines": PLANTED}}],
    "a file": [{"name": "fileParameters", "map": {"planted": "secret.txt", "lines": "secret.txt"}}],
}


def test_what_helm_quotes_of_values_is_told_to_argo_cd_only(observed):
    write(observed.app, {
        "env.yaml": f"planted: {PLANTED}\nlines: |\n  one {PLANTED}\n  two\n", "secret.txt": f"{PLANTED}\n",
    })  # fmt: skip
    number = 0
    with observed.serving():
        observed.until("/readyz", 200)
        for template in QUOTING.values():
            write(observed.app, {"templates/b.yaml": template})
            for given in GIVEN.values():
                number += 1
                done = observed.generate(*given)
                assert done.returncode == 5
                assert "helm template failed" in done.stderr
                observed.renders(number)
                page = observed.until("/apps/my-app", 200, "helm template failed")
                assert PLANTED not in page
        told = observed.log.read_text() + observed.until("/", 200)
    assert told.count("********") >= number
    for secret in (PLANTED.encode(), base64.b64encode(PLANTED.encode())):
        assert secret not in told.encode()
