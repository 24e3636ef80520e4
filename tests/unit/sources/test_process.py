"""Running a tool: whatever happens, it ends in time, in bounded memory, and leaves nobody behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from becalm.errors import ToolFailedError, ToolMissingError, ToolTimeoutError
from becalm.sources.process import MIB, Command, run

# Starts a background process in its group and writes its pid to the file `pid`.
_BACKGROUND = "sleep 60 & echo $! > pid; "


@pytest.fixture
def shell(tmp_path: Path):
    """Run a shell script in a directory of its own."""

    def start(script: str, *, timeout: float = 20.0, **options: int):
        command = Command(
            argv=("sh", "-c", script), cwd=tmp_path, env={"PATH": os.defpath}, timeout=timeout, **options
        )
        return run(command)

    return start


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"  # a zombie only waits for its new parent to notice


def _assert_gone(pid_file: Path) -> None:
    pid = int(pid_file.read_text())
    until = time.monotonic() + 15  # whoever inherits it may take a while to reap it
    while _is_alive(pid):
        assert time.monotonic() < until, f"process {pid} is still there"
        time.sleep(0.01)


def test_returns_both_streams_and_the_exit_code(shell):
    """Both streams and the exit code come back as they were."""
    done = shell("printf out; printf err >&2; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == (b"out", b"err", 3)
    assert 0 < done.seconds < 20


def test_the_environment_is_exactly_the_given_one(tmp_path, monkeypatch):
    """Nothing of our own environment reaches the tool."""
    monkeypatch.setenv("BECALM_LEAK", "x")
    done = run(Command(argv=("/usr/bin/env",), cwd=tmp_path, env={"A": "b"}, timeout=10))
    assert done.stdout == b"A=b\n"


def test_standard_input_is_empty(shell):
    """A tool that reads standard input sees its end at once."""
    assert shell("cat; echo done").stdout == b"done\n"


def test_a_signal_that_ends_the_tool_is_reported_as_data(shell):
    """Death by a signal is a negative return code, for the caller to judge."""
    assert shell("kill -SEGV $$").returncode == -signal.SIGSEGV


def test_large_output_on_both_streams_does_not_deadlock(shell):
    """Both pipes are read at once, so neither side waits for ever."""
    script = "head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero; head -c 1000000 /dev/zero >&2"
    done = shell(script)
    assert (len(done.stdout), len(done.stderr)) == (3_000_000, 4_000_000)


def test_stderr_is_whole_up_to_its_limit(shell):
    """Exactly `max_stderr` bytes are kept, because requests from templates are parsed from them."""
    done = shell("head -c 4194303 /dev/zero | tr '\\0' x >&2; printf E >&2")
    assert done.stderr == b"x" * (4 * MIB - 1) + b"E"


def test_of_longer_stderr_the_head_and_the_tail_are_kept(shell):
    """Beyond the limit the beginning and the end remain, and the gap is announced."""
    done = shell("printf BEGIN >&2; head -c 9000000 /dev/zero | tr '\\0' x >&2; printf END >&2")
    assert done.stderr.startswith(b"BEGIN")
    assert done.stderr.endswith(b"END")
    assert f"[{9_000_008 - 4 * MIB} bytes left out]".encode() in done.stderr
    assert len(done.stderr) < 4 * MIB + 100


def test_a_time_limit_kills_grandchildren_too(shell, tmp_path):
    """After the limit the whole family is gone, and the message says which tool and how long."""
    started = time.monotonic()
    with pytest.raises(ToolTimeoutError, match=r"sh did not end within 0\.3 s"):
        shell(_BACKGROUND + "wait", timeout=0.3)
    assert time.monotonic() - started < 30
    _assert_gone(tmp_path / "pid")


def test_a_family_that_ignores_sigterm_is_killed(shell, tmp_path):
    """SIGKILL follows one second after a SIGTERM that nobody heeds."""
    started = time.monotonic()
    with pytest.raises(ToolTimeoutError):
        shell("trap '' TERM; " + _BACKGROUND + "while :; do sleep 1; done", timeout=0.3)
    assert 1.2 < time.monotonic() - started < 30
    _assert_gone(tmp_path / "pid")


def test_a_tool_can_tidy_up_within_the_grace(shell, tmp_path):
    """SIGTERM comes before SIGKILL."""
    with pytest.raises(ToolTimeoutError):
        shell("trap 'echo tidy > tidy; exit' TERM; while :; do sleep 0.05; done", timeout=0.3)
    assert (tmp_path / "tidy").read_text() == "tidy\n"


def test_a_closed_output_does_not_end_the_time_limit(shell):
    """A tool that closes both streams and stays is still timed out."""
    with pytest.raises(ToolTimeoutError):
        shell("exec >&- 2>&-; sleep 60", timeout=0.3)


def test_a_background_process_with_our_pipes_does_not_hang_us(shell, tmp_path):
    """After a normal end the rest of the group is killed, and all output of the tool is there."""
    started = time.monotonic()
    done = shell(_BACKGROUND + "echo ready")
    assert (done.stdout, done.returncode) == (b"ready\n", 0)
    assert time.monotonic() - started < 30
    _assert_gone(tmp_path / "pid")


def test_a_process_that_left_the_group_does_not_hang_us(shell, tmp_path):
    """A daemon in a session of its own cannot hold us by its copy of the pipes."""
    started = time.monotonic()
    daemon = "setsid sh -c 'echo $$ > pid; exec sleep 60' & "
    wait = "while ! test -s pid; do sleep 0.01; done; "
    try:
        assert shell(daemon + wait + "echo ready").stdout == b"ready\n"
        assert time.monotonic() - started < 30
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_too_much_output_is_refused_in_bounded_memory(tmp_path):
    """200 MB are refused at the limit: the memory stays near it and the process is gone."""
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from becalm.errors import ToolFailedError\n"
        "from becalm.sources.process import Command, run\n"
        "shell = 'echo $$ > pid; head -c 200000000 /dev/zero; sleep 60'\n"
        "command = Command(argv=('sh', '-c', shell), cwd=Path.cwd(), env={'PATH': sys.argv[1]},\n"
        "                  timeout=30, max_stdout=8 * 1024 * 1024)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n"
        "    run(command)\n"
        "except ToolFailedError as error:\n"
        "    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script, os.defpath], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    message, kilobytes = done.stdout.splitlines()
    assert message.startswith("sh printed more than 8 MiB and was killed")
    assert int(kilobytes) < 40_000
    assert time.monotonic() - started < 20
    _assert_gone(tmp_path / "pid")


def test_output_up_to_the_limit_is_fine(shell):
    """The limit itself is allowed."""
    assert len(shell("head -c 1000 /dev/zero", max_stdout=1000).stdout) == 1000


def test_one_byte_more_than_the_limit_is_refused(shell):
    """The limit is exact."""
    with pytest.raises(ToolFailedError):
        shell("head -c 1001 /dev/zero", max_stdout=1000)


def test_errors_hold_no_output(shell):
    """What a tool printed, possibly a secret, is in no error and in no repr."""
    with pytest.raises(ToolFailedError) as failed:
        shell("while :; do echo hunter2; done", max_stdout=1000)
    with pytest.raises(ToolTimeoutError) as late:
        shell("echo hunter2; echo hunter2 >&2; sleep 60", timeout=0.3)
    done = shell("printf hunter%s 2; printf hunter%s 2 >&2")
    assert done.stdout == b"hunter2"
    assert "hunter2" not in f"{failed.value}{late.value}{done!r}"


@pytest.mark.parametrize("program", ["no-such-program", "/no/such/program"])
def test_a_missing_program_is_named(tmp_path, program):
    """The message of a missing tool names it."""
    with pytest.raises(ToolMissingError, match=f"{program} cannot be run: No such file"):
        run(Command(argv=(program,), cwd=tmp_path, env={"PATH": os.defpath}, timeout=5))


@pytest.mark.parametrize(("mode", "reason"), [(0o644, "Permission denied"), (0o755, "Exec format error")])
def test_a_file_that_cannot_be_executed_is_named(tmp_path, mode, reason):
    """A file without the permission, or of another machine's format, is a missing tool."""
    program = tmp_path / "helm"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(mode)
    with pytest.raises(ToolMissingError, match=f"helm cannot be run: {reason}"):
        run(Command(argv=(str(program),), cwd=tmp_path, env={}, timeout=5))


def test_a_missing_working_directory_is_a_bug(tmp_path):
    """Our own missing directory is not blamed on the tool."""
    with pytest.raises(FileNotFoundError):
        run(Command(argv=("true",), cwd=tmp_path / "none", env={"PATH": os.defpath}, timeout=5))


def test_a_nul_in_an_argument_is_refused_without_showing_it(tmp_path):
    """No argument can be cut short by a NUL, and the message does not repeat it."""
    with pytest.raises(ToolFailedError) as caught:
        run(Command(argv=("true", "hunter2\0x"), cwd=tmp_path, env={"PATH": os.defpath}, timeout=5))
    assert "hunter2" not in str(caught.value)


def test_an_exception_in_the_middle_kills_the_group(shell, tmp_path):
    """KeyboardInterrupt, or whatever a signal handler raises, leaves no process behind."""

    def interrupt() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        shell(_BACKGROUND + "wait")
    thread.join()
    _assert_gone(tmp_path / "pid")


def test_commands_can_run_in_several_threads(shell):
    """Two threads wait for their own child each, and get its own output."""
    results: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=lambda n=n: results.update({n: shell(f"sleep 0.1; echo {n}").stdout}))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: f"{n}\n".encode() for n in range(8)}


def test_no_file_descriptor_is_left_open(shell):
    """Many runs, failed ones included, do not use up descriptors."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        shell("true")
        with pytest.raises(ToolFailedError):
            shell("echo too much", max_stdout=1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


_FORWARDER = """
import sys, threading
from pathlib import Path
from becalm.sources.process import Command, forward_termination, run
command = Command(argv=("sh", "-c", sys.argv[1]), cwd=Path.cwd(), env={"PATH": sys.argv[2]}, timeout=60)
with forward_termination():
    if sys.argv[3] == "thread":
        thread = threading.Thread(target=run, args=(command,), daemon=True)
        thread.start()
        thread.join()
    else:
        run(command)
"""


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "], ids=["ends on TERM", "ignores TERM"])
@pytest.mark.parametrize("thread", ["main", "thread"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_termination_is_forwarded(tmp_path, trap, thread, number, code):
    """A signal to us ends all groups in well under the five seconds that Argo CD waits."""
    script = trap + _BACKGROUND + "while :; do sleep 0.1; done"
    ours = subprocess.Popen(
        [sys.executable, "-c", _FORWARDER, script, os.defpath, thread], cwd=tmp_path, stderr=subprocess.PIPE
    )
    with ours:
        until = time.monotonic() + 10
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < until, "the tool did not start"
            time.sleep(0.01)
        started = time.monotonic()
        ours.send_signal(number)
        assert ours.wait(10) == code
        assert time.monotonic() - started < 30
    _assert_gone(tmp_path / "pid")


def test_a_signal_while_a_thread_starts_a_child_is_not_lost(tmp_path):
    """The child is there, and its thread has not got so far as to enter it."""
    script = (
        "import os, signal, sys, threading, time\n"
        "from pathlib import Path\n"
        "from becalm.sources import process\n"
        "real = process._spawn\n"
        "def slow(command):\n"
        "    child = real(command)\n"
        "    while not Path('pid').exists() or not Path('pid').read_text(): time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(0.3)\n"
        "    return child\n"
        "process._spawn = slow\n"
        "command = process.Command(argv=('sh', '-c', sys.argv[1]), cwd=Path.cwd(), env={'PATH': sys.argv[2]}, timeout=60)\n"
        "with process.forward_termination():\n"
        "    thread = threading.Thread(target=process.run, args=(command,), daemon=True)\n"
        "    thread.start()\n"
        "    thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, _BACKGROUND + "wait", os.defpath],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 143
    _assert_gone(tmp_path / "pid")


def test_a_signal_while_a_child_starts_is_not_lost(tmp_path):
    """Termination during the start of a tool ends the tool that is known a moment later."""
    script = (
        "import os, signal, subprocess, sys\n"
        "from pathlib import Path\n"
        "from becalm.sources import process\n"
        "spawn = process._spawn\n"
        "def slow(command):\n"
        "    child = spawn(command)\n"
        "    Path('pid').write_text(str(child.pid))\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return child\n"
        "process._spawn = slow\n"
        "with process.forward_termination():\n"
        "    process.run(process.Command(argv=('sleep', '60'), cwd=Path.cwd(), env={'PATH': sys.argv[1]},\n"
        "                                timeout=60))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, os.defpath], cwd=tmp_path, timeout=20, check=False)
    assert done.returncode == 143
    _assert_gone(tmp_path / "pid")


def test_handlers_are_put_back():
    """Leaving the context restores what was installed before."""
    from becalm.sources.process import forward_termination

    before = (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    with forward_termination():
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
