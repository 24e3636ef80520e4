"""Whatever is wrong: one clear message, the right exit code, nothing in part, nothing left behind.

The messages are kept in `tests/golden/faults`, one file for each case: the exit code, and stderr with
the places of this run replaced by words. After a change that is meant: UPDATE_GOLDEN=1 make test.
"""

from __future__ import annotations

import base64
import gzip
import io
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import children
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
HELM = TOOLS / "helm-4.1.4" / "helm"
GOLDEN = ROOT / "tests" / "golden" / "faults"
SEED = b"becalm-seed-v1:" + base64.urlsafe_b64encode(bytes(range(32))) + b"\n"
CHART = "apiVersion: v2\nname: demo\nversion: 1.0.0\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: {{ randAlphaNum 16 }}}\n"
BASE = ("--app=a", "--namespace=n")


class World:
    """A directory with a chart that draws, a seed and a place for temporary files."""

    def __init__(self, directory: Path) -> None:
        self.top = directory
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        self.chart = directory / "chart"
        self.template(SECRET)
        self.write("chart/Chart.yaml", CHART)
        self.seed = self.write("seed", SEED)
        self.seed.chmod(0o600)
        self.arguments: list[str | Path] = []
        self.target: str | Path = self.chart
        self.helm: str | Path = HELM
        self.with_seed = True

    def write(self, name: str, content: str | bytes, *, mode: int = 0o644) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)
        return path

    def template(self, text: str | bytes) -> None:
        self.write("chart/templates/a.yaml", text)

    def tool(self, script: str) -> None:
        """A program in the place of helm."""
        self.helm = self.write("bin/helm", f"#!/bin/sh\n{script}\n", mode=0o755)

    def argv(self) -> list[str]:
        seed = [f"--seed={self.seed}"] if self.with_seed else []
        argv = [sys.executable, "-m", "becalm", "render", self.target, *BASE, *seed, f"--helm={self.helm}"]
        return [str(part) for part in (*argv, *self.arguments)]

    def env(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.temporary)}

    def run(self) -> subprocess.CompletedProcess[bytes]:
        return children.run(self.argv()[3:], env=self.env(), text=False)


def no_seed(world: World) -> None:
    world.with_seed = False


def short_seed(world: World) -> None:
    world.seed.write_bytes(bytes(range(31)))


def empty_seed(world: World) -> None:
    world.seed.write_bytes(b"")


def constant_seed(world: World) -> None:
    world.seed.write_bytes(b"a" * 64)


def damaged_seed(world: World) -> None:
    world.seed.write_bytes(SEED[:-9] + b"!\n")


def missing_seed(world: World) -> None:
    world.seed.unlink()


def open_seed(world: World) -> None:
    world.seed.chmod(0o644)


def missing_chart(world: World) -> None:
    world.target = world.top / "nowhere"


def chart_without_chart_yaml(world: World) -> None:
    (world.chart / "Chart.yaml").unlink()


def chart_of_text(world: World) -> None:
    world.target = world.write("chart.tgz", "this is no archive")


def missing_values(world: World) -> None:
    world.arguments = [f"--values={world.top / 'nowhere.yaml'}"]


def values_that_are_a_directory(world: World) -> None:
    world.arguments = [f"--values={world.chart}"]


def values_that_are_no_yaml(world: World) -> None:
    world.arguments = [f"--values={world.write('bad.yaml', 'a: [1')}"]


def bad_set(world: World) -> None:
    world.arguments = ["--set=a={b"]


def bad_kube_version(world: World) -> None:
    world.arguments = ["--kube-version=new"]


def bad_window(world: World) -> None:
    world.arguments = ["--certificate-window=2"]


def parameters_that_are_text(world: World) -> None:
    world.arguments = [f"--parameters={world.write('text.yaml', 'hello')}"]


def a_parameter_that_is_a_number(world: World) -> None:
    text = "- {name: parameters, map: {replicas: 3}}"
    world.arguments = [f"--parameters={world.write('parameters.yaml', text)}"]


def helm_that_prints_nothing(world: World) -> None:
    world.tool("exit 0")


def helm_that_prints_nothing_for_a_chart_without_draws(world: World) -> None:
    world.template("kind: A\n")
    world.tool("exit 0")


def bad_instant(world: World) -> None:
    world.arguments = ["--instant=yesterday"]


def broken_template(world: World) -> None:
    world.template("a: {{ randAlphaNum 16 }\n")


def unknown_function(world: World) -> None:
    world.template("a: {{ randAlphaNumeric (randAlphaNum 5) }}\n")


def failing_template(world: World) -> None:
    world.template('a: {{ randAlphaNum 9 }}{{ required "give a.b" .Values.a }}\n')


def endless_recursion(world: World) -> None:
    world.template('{{ define "x" }}{{ randAlphaNum 9 }}{{ include "x" . }}{{ end }}a: {{ include "x" . }}\n')


def a_certificate_of_no_days(world: World) -> None:
    world.template('kind: A\na: {{ (genCA "a" 0).Cert | quote }}\n')


def a_certificate_of_a_bad_address(world: World) -> None:
    world.template('kind: A\na: {{ (genSelfSignedCert "a" (list "1.2.3") nil 9).Cert | quote }}\n')


def a_certificate_of_a_key_that_is_none(world: World) -> None:
    world.template('kind: A\na: {{ (genCAWithKey "a" 9 "secret-words").Cert | quote }}\n')


def a_certificate_of_a_key_that_cannot_sign(world: World) -> None:
    world.template('kind: A\na: {{ (genCAWithKey "a" 9 (genPrivateKey "dsa")).Cert | quote }}\n')


def an_issuer_that_is_no_certificate(world: World) -> None:
    world.template(
        'kind: A\na: {{ (genSignedCert "a" nil nil 9 (dict "Cert" "c" "Key" "k")).Cert | quote }}\n'
    )


def randint_without_a_range(world: World) -> None:
    world.template("kind: A\na: {{ randInt 5 5 }}\n")


def rand_of_a_negative_length(world: World) -> None:
    world.template("kind: A\na: {{ randBytes -1 }}\n")


def rand_of_text(world: World) -> None:
    world.template('kind: A\na: {{ randAlphaNum "x" }}\n')


def rand_of_a_huge_length(world: World) -> None:
    world.template("kind: A\na: {{ randAlphaNum 100000000 }}\n")


def deep_template(world: World) -> None:
    world.template(f"kind: A\na: {{{{ {'(' * 2000}randAlphaNum 9{')' * 2000} }}}}\n")


def template_that_never_settles(world: World) -> None:
    """The length of each value is decided by the one before."""
    length = 'add 9 (mod (trunc 9 $n | trimAll "0" | default "1" | atoi) 7) | int'
    world.template(
        f'kind: A\na: {{{{ $n := "1" }}}}{{{{ range until 40 }}}}{{{{ $n = randNumeric ({length}) }}}}{{{{ end }}}}{{{{ $n }}}}\n'
    )


def output_that_is_no_yaml(world: World) -> None:
    world.template("apiVersion: v1\nkind: A\na: [{{ randAlphaNum 9 }}\n")


def output_without_kind(world: World) -> None:
    world.template("a: {{ randAlphaNum 9 }}\n")


def output_that_expands(world: World) -> None:
    lines = ["kind: A", "z: {{ randAlphaNum 9 }}", "a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    world.template("\n".join(lines))


def output_that_nests(world: World) -> None:
    world.template(f"kind: A\nz: {{{{ randAlphaNum 9 }}}}\na: {'[' * 20000}{']' * 20000}\n")


def values_that_expand(world: World) -> None:
    lines = ["a0: &a0 ['{{ now }}', x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    world.write("chart/values.yaml", "\n".join(lines))


def helm_that_is_missing(world: World) -> None:
    world.helm = world.top / "nowhere" / "helm"


def helm_that_is_not_in_the_path(world: World) -> None:
    world.helm = "helm-that-is-not-there"


def helm_that_is_no_program(world: World) -> None:
    world.helm = world.write("bin/helm", "text")


def helm_that_is_too_old(world: World) -> None:
    world.tool('[ "$1" = version ] && { printf v3.12.3; exit; }\necho "Error: unknown flag" >&2; exit 1')


def helm_that_is_no_helm(world: World) -> None:
    world.tool("echo nonsense >&2; exit 3")


def helm_that_crashes(world: World) -> None:
    world.tool('[ "$1" = version ] && { printf v4.1.4; exit; }\nkill -SEGV $$')


def helm_that_hangs(world: World) -> None:
    world.tool(f"sleep 100 & echo $! > {world.top}/child\nwait")
    world.arguments = ["--timeout=1"]


def helm_that_prints_too_much(world: World) -> None:
    world.tool("head -c 200000000 /dev/zero")


def helm_that_prints_no_utf8(world: World) -> None:
    world.tool("printf 'kind: \\377'")


def archive(*entries: tuple[str, bytes]) -> Callable[[World], None]:
    """A packed chart with entries (name, type) that nobody wants."""

    def make(world: World) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name, kind in (("demo/Chart.yaml", tarfile.REGTYPE), *entries):
                entry = tarfile.TarInfo(name)
                entry.type = kind
                entry.linkname = "/etc/passwd"
                entry.size = len(CHART) if kind == tarfile.REGTYPE else 0
                tar.addfile(entry, io.BytesIO(CHART.encode()))
        world.target = world.write("demo.tgz", packed.getvalue())

    return make


def archive_with_a_bomb(world: World) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("demo/big")
        entry.size = 1 << 30
        tar.addfile(entry, Zeros())
    world.target = world.write("demo.tgz", packed.getvalue())


class Zeros(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        return bytes(size)


def archive_with_a_million_entries(world: World) -> None:
    thousand = gzip.compress(tarfile.TarInfo("demo/x").tobuf() * 1000)
    world.target = world.write("demo.tgz", thousand * 1000)


def archive_that_is_cut(world: World) -> None:
    archive()(world)
    assert isinstance(world.target, Path)
    world.target.write_bytes(world.target.read_bytes()[:60])


def link_out_of_the_chart(world: World) -> None:
    (world.chart / "templates" / "b.yaml").symlink_to("/etc/hostname")


def subchart_that_is_no_archive(world: World) -> None:
    world.write("chart/charts/sub-1.0.0.tgz", "text")


def template_that_is_a_fifo(world: World) -> None:
    os.mkfifo(world.chart / "templates" / "pipe.yaml")


CASES: dict[str, Callable[[World], None]] = {
    case.__name__: case
    for case in (
        no_seed, short_seed, empty_seed, constant_seed, damaged_seed, missing_seed, open_seed,
        missing_chart, chart_without_chart_yaml, chart_of_text,
        missing_values, values_that_are_a_directory, values_that_are_no_yaml, bad_set, bad_kube_version, bad_instant,
        bad_window, parameters_that_are_text, a_parameter_that_is_a_number,
        helm_that_prints_nothing, helm_that_prints_nothing_for_a_chart_without_draws,
        broken_template, unknown_function, failing_template, endless_recursion, deep_template,
        a_certificate_of_no_days, a_certificate_of_a_bad_address, a_certificate_of_a_key_that_is_none,
        a_certificate_of_a_key_that_cannot_sign, an_issuer_that_is_no_certificate, randint_without_a_range, rand_of_a_negative_length, rand_of_text,
        rand_of_a_huge_length, template_that_never_settles,
        output_that_is_no_yaml, output_without_kind, output_that_expands, output_that_nests, values_that_expand,
        helm_that_is_missing, helm_that_is_not_in_the_path, helm_that_is_no_program, helm_that_is_too_old,
        helm_that_is_no_helm, helm_that_crashes, helm_that_hangs, helm_that_prints_too_much, helm_that_prints_no_utf8,
        archive_with_a_bomb, archive_with_a_million_entries, archive_that_is_cut,
        link_out_of_the_chart, subchart_that_is_no_archive, template_that_is_a_fifo,
    )
}  # fmt: skip
CASES |= {
    "archive_that_leads_out": archive(("demo/../../x", tarfile.REGTYPE)),
    "archive_with_an_absolute_name": archive(("/demo/x", tarfile.REGTYPE)),
    "archive_with_a_symbolic_link": archive(("demo/x", tarfile.SYMTYPE)),
    "archive_with_a_hard_link": archive(("demo/x", tarfile.LNKTYPE)),
    "archive_with_a_device": archive(("demo/x", tarfile.CHRTYPE)),
    "archive_with_a_fifo": archive(("demo/x", tarfile.FIFOTYPE)),
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_clear_message_and_nothing_else(case: str, world: World) -> None:
    CASES[case](world)
    done = world.run()
    message = done.stderr.decode().replace(str(world.top), "TOP").replace(str(TOOLS), "TOOLS")
    told = f"exit {done.returncode}\n{message}"
    path = GOLDEN / f"{case}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(told)
    assert told == path.read_text()
    assert re.match(r"exit [1-9]\nError: \S.{10,}\n", told)
    assert done.stdout == b""
    assert list(world.temporary.iterdir()) == []
    if (world.top / "child").exists():
        assert is_gone(int((world.top / "child").read_text()))


def test_every_golden_message_has_its_case() -> None:
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(CASES)


def is_gone(pid: int) -> bool:
    until = time.monotonic() + 3
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_helm_and_leaves_nothing(number: signal.Signals, world: World) -> None:
    world.tool(f"sleep 100 & echo $! > {world.top}/child\nwait")
    with subprocess.Popen(
        world.argv(), env=world.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        until = time.monotonic() + 20
        while not (world.top / "child").exists() or not (world.top / "child").read_text().strip():
            assert time.monotonic() < until
            time.sleep(0.02)
        child.send_signal(number)
        out, err = child.communicate(timeout=20)
    assert child.returncode == 128 + number
    assert (out, err) == (b"", b"")
    assert is_gone(int((world.top / "child").read_text()))
    assert list(world.temporary.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error_message(world: World) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        world.argv(), env=world.env(), stdout=write, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_a_full_disk_is_an_error(world: World) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            world.argv(), env=world.env(), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (
        1,
        b"Error: the output could not be written: No space left on device\n",
    )


def test_output_is_utf8_in_every_locale(world: World) -> None:
    world.template("apiVersion: v1\nkind: A\nmetadata: {name: é}\n")
    done = subprocess.run(
        world.argv(),
        env={**world.env(), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert "name: é".encode() in done.stdout
