"""The two clients, in Python and in C, beside each other: whatever the service does, both do the same."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from services import Sidecar, gone

SOURCE = Path(__file__).resolve().parents[2] / "image" / "becalm.c"
STRICT = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
LARGE = b"0123456789abcdef" * (1 << 20)


def compiler() -> list[str]:
    found = shutil.which("cc")
    if found:
        return [found]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    pytest.skip("no compiler for C is here; the image's own build is tested in test_image.py")


@pytest.fixture(scope="session")
def native(tmp_path_factory) -> Path:
    top = tmp_path_factory.mktemp("native")
    python, path = top / "becalm-python", top / "becalm"
    subprocess.run([sys.executable, "-m", "becalm.launcher", str(python)], check=True, timeout=60)
    define = f'-DPYTHON_COMMAND="{python}"'
    subprocess.run([*compiler(), *STRICT, define, str(SOURCE), "-o", str(path)], check=True, timeout=300)
    return path


@pytest.fixture(params=["python", "native"])
def sidecar(tmp_path, request) -> Sidecar:
    found = Sidecar(tmp_path)
    if request.param == "native":
        found.client = [str(request.getfixturevalue("native")), "generate"]
    return found


@contextlib.contextmanager
def pretending(sidecar: Sidecar, answer: Callable[[socket.socket, list[int]], None]) -> Iterator[list[bytes]]:
    """A service that answers one client as a function does; what it was sent."""
    place = Path(sidecar.env["BECALM_SOCKET"])
    place.parent.mkdir(mode=0o700)
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(1)
        listener.settimeout(30)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(30)
                data, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
                while len(data) < 4 + int.from_bytes(data[:4], "big"):
                    data += connection.recv(1 << 20)
                heard.append(data)
                with contextlib.suppress(OSError):
                    answer(connection, files)
                for number in files:
                    os.close(number)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield heard
        finally:
            thread.join(40)


def says(text: bytes, output: bytes = b"", errors: bytes = b"") -> Callable[[socket.socket, list[int]], None]:
    def answer(connection: socket.socket, files: list[int]) -> None:
        for number, data in zip(files[1:], (output, errors), strict=True):
            with open(number, "wb", closefd=False) as file:
                file.write(data)
        connection.sendall(text)

    return answer


def test_output_errors_and_exit_code_are_those_of_the_service(sidecar):
    with sidecar.serving():
        done = sidecar.generate()
        assert (done.returncode, done.stderr) == (0, "")
        assert "kind: Secret" in done.stdout
        failed = sidecar.generate({"name": "values", "string": "a: ["})
        assert (failed.returncode, failed.stdout) == (5, "")
        assert failed.stderr.startswith("Error: ")
        assert len(sidecar.renders(2)) == 2


def test_the_service_gets_the_environment_the_directory_and_two_empty_files(sidecar):
    seen: list[object] = []

    def answer(connection: socket.socket, files: list[int]) -> None:
        seen.append(Path(f"/proc/self/fd/{files[0]}").readlink())
        seen.extend(os.fstat(number).st_size for number in files[1:])
        connection.sendall(b"exit 0\n")

    with pretending(sidecar, answer) as heard:
        assert sidecar.generate(LONG="x" * 100_000, EMPTY="", ODD="a=b\nc").returncode == 0
    (data,) = heard
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    entries = data[4:].rstrip(b"\0").split(b"\0")
    assert {b"LONG=" + b"x" * 100_000, b"EMPTY=", b"ODD=a=b\nc", b"ARGOCD_APP_NAME=my-app"} <= set(entries)
    assert seen == [sidecar.app, 0, 0]


@pytest.mark.parametrize(
    ("answer", "code", "output", "errors"),
    [
        (says(b"exit 0\n", b"out\n", b"Warning: w\n"), 0, "out\n", "Warning: w\n"),
        (says(b"exit 0\n", LARGE), 0, LARGE.decode(), ""),
        (says(b"exit 0\n"), 0, "", ""),
        (says(b"exit 5\n", b"never\n", b"Error: e\n"), 5, "", "Error: e\n"),
        (says(b"exit 141\n", b"never\n"), 141, "", ""),
        (says(b"busy there is no room; try again\n", b"never\n"), 11, "", "Error: there is no room; try again\n"),
        (says(b"late it took too long: \xc3\xa9\n", b"never\n"), 6, "", "Error: it took too long: é\n"),
    ],
)  # fmt: skip
def test_an_answer_is_done_as_it_says(sidecar, answer, code, output, errors):
    with pretending(sidecar, answer):
        done = sidecar.generate()
    assert (done.returncode, done.stderr) == (code, errors)
    assert done.stdout == output


@pytest.mark.parametrize(
    "text",
    [
        b"", b"\n", b"exit 0", b"exit\n", b"exit \n", b"exit -1\n", b"exit 0x0\n", b"exit 0 \nmore", b"busy", b"hello\n",
        b"\0\n", b"exit 0\0\n", b"x" * 10_000,
    ],
)  # fmt: skip
def test_what_is_no_answer_leaves_the_render_to_the_client(sidecar, text):
    expected = sidecar.generate(BECALM_SOCKET="off")
    assert expected.returncode == 0
    with pretending(sidecar, says(text, b"never\n", b"never\n")):
        done = sidecar.generate()
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


def test_a_line_may_come_in_pieces(sidecar):
    def answer(connection: socket.socket, _: list[int]) -> None:
        for one in b"exit 7\n":
            connection.sendall(bytes([one]))
            time.sleep(0.01)

    with pretending(sidecar, answer):
        assert sidecar.generate().returncode == 7


def test_who_has_no_place_need_not_listen(sidecar):
    place = Path(sidecar.env["BECALM_SOCKET"])
    place.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(1)
        listener.settimeout(30)
        client = sidecar.popen(**{f"LONG_{n}": "x" * 100_000 for n in range(12)})
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"busy no room\n")
            connection.shutdown(socket.SHUT_RD)
            out, err = client.communicate(timeout=60)
    assert (client.returncode, out, err) == (11, "", "Error: no room\n")


def test_without_a_service_it_renders_by_itself(sidecar):
    done = sidecar.generate()
    assert (done.returncode, done.stderr) == (0, "")
    assert "kind: Secret" in done.stdout
    assert sidecar.generate({"name": "values", "string": "a: ["}).returncode == 5


def test_a_service_that_is_killed_leaves_the_render_to_the_client(sidecar):
    expected = sidecar.generate(BECALM_SOCKET="off").stdout
    with sidecar.serving() as service:
        client = sidecar.popen(BECALM_HELM=sidecar.held_helm(), BECALM_CACHE_DIR="off")
        first = sidecar.begun()
        service.kill()
        sidecar.release()
        out, err = client.communicate(timeout=60)
        assert (client.returncode, out, err) == (0, expected, "")
        assert gone(first)


def test_a_service_that_stands_still_leaves_the_render_to_the_client(sidecar):
    with sidecar.serving() as service:
        expected = sidecar.generate().stdout
        service.send_signal(signal.SIGSTOP)
        try:
            done = sidecar.generate(timeout=40, BECALM_DEADLINE="1")
        finally:
            service.send_signal(signal.SIGCONT)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", expected)


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_socket_in_a_directory_of_others_is_not_used(sidecar, mode):
    with sidecar.serving():
        Path(sidecar.env["BECALM_SOCKET"]).parent.chmod(mode)
        assert sidecar.generate().returncode == 0
        Path(sidecar.env["BECALM_SOCKET"]).parent.chmod(0o700)
        assert [one for one in sidecar.records() if "outcome" in one] == []


@pytest.mark.parametrize("path", ["off", "relative/socket", "/nowhere/at/all", f"/{'x' * 200}", "/"])
def test_a_socket_that_is_none_is_nobody(sidecar, path):
    assert sidecar.generate(BECALM_SOCKET=path).returncode == 0


def test_an_output_that_nobody_reads_is_a_broken_pipe(sidecar):
    with pretending(sidecar, says(b"exit 0\n", LARGE)):
        client = sidecar.popen()
        assert client.stdout is not None
        client.stdout.close()
        assert client.wait(60) == 141
        assert client.stderr is not None
        assert client.stderr.read() == ""
        client.stderr.close()


def test_an_output_that_cannot_be_written_is_an_error(sidecar):
    with pretending(sidecar, says(b"exit 0\n", b"out\n")), Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            sidecar.client, cwd=sidecar.app, env=sidecar.env, stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the output could not be written: No space left on device")


def test_every_other_command_is_pythons(native, sidecar):
    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(native), *words], env=sidecar.env, capture_output=True, text=True, timeout=60, check=False
        )

    assert run("rules", "list").stdout.count("core/status") == 1
    assert run("generate", "--nonsense").returncode == 2
    assert run().returncode == 2
    assert run("--version").stdout.startswith("becalm ")


def test_where_python_is_not_there_it_says_so(native, tmp_path):
    path = tmp_path / "becalm"
    define = '-DPYTHON_COMMAND="/nowhere/becalm-python"'
    subprocess.run([*compiler(), define, str(SOURCE), "-o", str(path)], check=True, timeout=300)
    done = subprocess.run([str(path), "rules"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 126
    assert (
        done.stderr == "Error: becalm cannot be started: /nowhere/becalm-python: No such file or directory\n"
    )
