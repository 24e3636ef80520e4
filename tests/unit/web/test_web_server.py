"""The process: it reads a pipe, serves over TCP, and ends with its service."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

import pytest
from web_records import line

from becalm.errors import ConfigError
from becalm.web.metrics import Metrics
from becalm.web.recent import Recent
from becalm.web.records import MAX_LINE
from becalm.web.server import Address, Reader, address, listen

PROGRAM = """
import sys
from becalm.web import server
server.run(int(sys.argv[1]), server.Address(host="127.0.0.1", port=0), page=sys.argv[2] == "page",
           started=lambda port: print(port, flush=True))
print("ended", flush=True)
"""


class Process:
    """The web process, and the end of the pipe that the service has."""

    def __init__(self, mode: str = "page") -> None:
        reader, self.pipe = os.pipe()
        self.child = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PROGRAM, str(reader), mode],
            pass_fds=[reader], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        os.close(reader)
        assert select.select([self.child.stdout], [], [], 20)[0], "it did not start"
        self.port = int(self.child.stdout.readline())

    def tell(self, data: bytes) -> None:
        os.write(self.pipe, data)

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def until(self, path: str, wanted: str) -> str:
        """Ask until an answer has a text, for a short time."""
        for _ in range(100):
            status, text = self.get(path)
            if wanted in text:
                return text
            time.sleep(0.05)
        raise AssertionError((status, text))

    def hang_up(self) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1

    def end(self) -> tuple[int, str]:
        """Its exit code and what it wrote to stderr, after it has ended by itself."""
        out, error = self.child.communicate(timeout=10)
        assert "ended" in out
        return self.child.returncode, error

    def close(self) -> None:
        self.hang_up()
        if self.child.poll() is None:
            self.child.kill()
        self.child.communicate()


@pytest.fixture
def start():
    running: list[Process] = []

    def start(mode: str = "page") -> Process:
        running.append(Process(mode))
        return running[-1]

    yield start
    for process in running:
        process.close()


def test_it_shows_what_it_is_told_and_ends_when_the_pipe_closes(start):
    web = start()
    assert web.get("/healthz") == (200, "ok\n")
    assert web.get("/readyz") == (200, "ok\n")
    web.tell(line("first-app") + b"\n")
    web.until("/apps/first-app", "templates/secret.yaml:7")
    assert 'becalm_renders_total{outcome="rendered",source="helm"} 1.0' in web.get("/metrics")[1]
    assert web.get("/", method="HEAD") == (200, "")
    assert web.get("/", Host="evil.example")[0] == 400
    web.hang_up()
    assert web.end() == (0, "")


def test_it_ends_on_sigterm_and_lives_through_sigint(start):
    web = start()
    web.child.send_signal(signal.SIGINT)
    assert web.get("/healthz")[0] == 200
    web.child.send_signal(signal.SIGTERM)
    assert web.end() == (0, "")


def test_it_ends_with_connections_open(start):
    web = start()
    with socket.create_connection(("127.0.0.1", web.port), timeout=5) as idle:
        idle.sendall(b"GET / HTTP/1.1\r\n")
        web.hang_up()
        assert web.end() == (0, "")


def test_connections_that_say_nothing_keep_nobody_out(start):
    web = start()
    with contextlib.ExitStack() as stack:
        for number in range(200):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=5))
            if number % 2:
                one.sendall(b"GET / HTTP/1.1\r\n")
        begun = time.monotonic()
        assert web.get("/healthz") == (200, "ok\n")
        assert time.monotonic() - begun < 3
        # They are ended, so that others have their places.
        one.settimeout(25)
        while one.recv(1000):
            pass
    web.hang_up()
    assert web.end() == (0, "")


def test_the_service_says_whether_it_is_well(start):
    web = start()
    web.tell(b'{"state": {"queue": 1, "rendering": 2, "unready": "it ends"}}\n')
    web.until("/readyz", "it ends")
    assert web.get("/readyz")[0] == 503
    assert web.get("/healthz")[0] == 200
    web.tell(b'{"state": {"unhealthy": "the sample does not render"}}\n')
    web.until("/healthz", "the sample does not render")
    assert web.get("/healthz")[0] == web.get("/readyz")[0] == 503
    web.tell(b'{"state": {}}\n')
    web.until("/healthz", "ok")


def test_lines_that_are_no_records_are_counted_and_never_shown(start):
    web = start()
    web.tell(b'{"app": 7, "error": "hunter2"}\nhunter2\n\n' + line("good") + b"\n")
    web.until("/apps/good", "good")
    assert "becalm_records_refused_total 2.0" in web.get("/metrics")[1]
    web.hang_up()
    code, error = web.end()
    assert (code, error.count("Warning: a line of the service is no record")) == (0, 2)
    assert "hunter2" not in error


def test_without_pages_there_are_health_and_metrics(start):
    web = start("none")
    assert [web.get(path)[0] for path in ("/", "/apps/a", "/healthz", "/metrics")] == [404, 404, 200, 200]


def test_requests_with_bodies_or_without_sense_do_not_harm(start):
    web = start()
    for data in (
        b"GET / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n",
        b"\x00\xff\r\n\r\n",
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", web.port), timeout=5) as raw:
            raw.sendall(data)
            assert raw.recv(12)[:9] in (b"HTTP/1.1 ", b"HTTP/1.0 ")
    assert web.get("/healthz")[0] == 200


def reader() -> tuple[Reader, Recent, Metrics]:
    recent = Recent()
    metrics = Metrics(recent)
    return Reader(recent, metrics), recent, metrics


def test_lines_may_come_in_any_pieces():
    data = b"".join(line(f"app-{number}") + b"\n" for number in range(3))
    for size in (1, 7, 1000, len(data)):
        taker, recent, _ = reader()
        for at in range(0, len(data), size):
            taker.feed(data[at : at + size])
        assert [one.app for one in recent.renders()] == ["app-2", "app-1", "app-0"]


def test_a_line_that_never_ends_takes_no_more_memory_than_one():
    taker, recent, metrics = reader()
    for _ in range(100):
        taker.feed(b"x" * 100_000)
        assert len(taker._rest) <= MAX_LINE
    taker.feed(b"\n" + line("next") + b"\n")
    assert [one.app for one in recent.renders()] == ["next"]
    assert metrics.registry.get_sample_value("becalm_records_refused_total") == 1


def test_a_line_without_its_end_is_no_record():
    taker, recent, _ = reader()
    taker.feed(json.dumps({"app": "cut"}).encode())
    assert recent.renders() == []


@pytest.mark.parametrize(
    ("text", "host", "port", "is_loopback"),
    [("127.0.0.1:9360", "127.0.0.1", 9360, True), ("0.0.0.0:80", "0.0.0.0", 80, False), ("[::1]:9360", "::1", 9360, True), ("[::]:1", "::", 1, False),
     ("localhost:0", "localhost", 0, True), ("pod.example:9360", "pod.example", 9360, False)],
)  # fmt: skip
def test_addresses_are_read(text, host, port, is_loopback):
    found = address(text, where="BECALM_WEB_ADDRESS")
    assert found == Address(host=host, port=port)
    assert found.is_loopback is is_loopback


def test_off_is_no_address():
    assert address("off", where="BECALM_WEB_ADDRESS") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9360",
        ":9360",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:70000",
        "::1:9360",
        "[::1]",
        "[::1:80",
        "h:²",
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError) as error:
        address(text, where="BECALM_WEB_ADDRESS")
    assert error.value.first_line().startswith("BECALM_WEB_ADDRESS: ")


def test_a_port_that_is_taken_is_an_error_that_says_so():
    with listen(Address(host="127.0.0.1", port=0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(ConfigError, match="nothing can listen there"):
            listen(Address(host="127.0.0.1", port=port))


@pytest.mark.parametrize("module", ["becalm.cli", "becalm.pipeline", "becalm.report"])
def test_nothing_else_loads_the_web_process_or_its_packages(module):
    code = f"import sys, {module}; print([n for n in ('flask', 'waitress', 'prometheus_client', 'becalm.web') if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "[]\n"


def test_the_web_process_loads_nothing_that_renders():
    code = "import sys, becalm.web.server; print([n for n in sys.modules if n.startswith(('becalm.pipeline', 'becalm.sources', 'becalm.normalise', 'yaml'))])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "[]\n"
