"""`becalm certs` and `becalm derive`: what they say, and what they never show."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import children
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
GOLDEN = ROOT / "tests" / "golden" / "charts"
REPORTS = ROOT / "tests" / "golden" / "reports"
CASES = sorted(path.name for path in GOLDEN.glob("certificates-*"))


@pytest.fixture
def seed(tmp_path):
    path = tmp_path / "seed"
    path.touch(mode=0o600)
    path.write_bytes(bytes(range(32)))
    return path


def argv(command: str, case: str, seed: Path, *more: str) -> list[str]:
    return [
        command, str(GOLDEN / case), "--app=app", "--namespace=space",
        f"--seed={seed}", f"--helm={TOOLS / 'helm-4.1.4' / 'helm'}", "--at=2026-11-30T12:00:00Z", *more,
    ]  # fmt: skip


def run(*arguments: object) -> subprocess.CompletedProcess:
    return children.run(argv(*arguments))


@pytest.mark.parametrize("command", ["certs", "derive"])
@pytest.mark.parametrize("case", [*CASES, "hashes", "orders"])
def test_reports_are_the_expected_ones(command, case, seed):
    done = run(command, case, seed)
    assert (done.returncode, done.stderr) == (0, "")
    expected = REPORTS / f"{command}-{case}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(done.stdout)
    assert done.stdout == expected.read_text()


@pytest.mark.parametrize("case", CASES)
def test_every_certificate_is_reported_with_its_chain(case, seed):
    reports = json.loads(run("certs", case, seed, "--output=json").stdout)
    assert {report["chain"] for report in reports} <= {"verifies", "self-signed"}
    for report in reports:
        assert report["valid_from"] <= "2026-11-30T12:00:00Z" < report["valid_to"]
        if report["changes"]:
            assert "2026-11-30T12:00:00Z" < report["changes"] < report["valid_to"]


def test_a_leaf_without_its_authority_is_seen(seed, tmp_path):
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: a\nversion: 1.0.0\n")
    (chart / "templates" / "a.yaml").write_text(
        'kind: Secret\nmetadata: {name: a}\ndata:\n  c: {{ (genSignedCert "a" nil nil 9 (genCA "b" 9)).Cert | b64enc }}\n'
    )
    done = run("certs", str(chart), seed, "--output=json")
    (report,) = json.loads(done.stdout)
    assert (report["chain"], report["issued_by"], report["key"]) == ("no issuer is rendered", [], "")


def test_no_value_is_shown(seed):
    """Neither by `derive` nor, where there are only certificates to show, by `certs`."""
    output = run("render", "hashes", seed).stdout
    shown = run("derive", "hashes", seed).stdout + run("certs", "hashes", seed).stdout
    users = next(obj for obj in yaml.safe_load_all(output) if obj["metadata"]["name"] == "users")
    for key, value in users["stringData"].items():
        if key != "decrypted":
            assert value not in shown


def test_derive_can_be_asked_for_one_item(seed):
    lines = run("derive", "hashes", seed, "--object=Secret/users", "--key=hash").stdout.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("Secret/users/stringData.hash  bcrypt  ")


def test_pieces_of_one_value_have_one_fingerprint(seed, tmp_path):
    """One for each would show which digits are equal: with 16 digits that leaves 44 bits of any key."""
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: a\nversion: 1.0.0\n")
    digits = '{{ range until 64 }}{{ randInt 0 16 | printf "%x" }}{{ end }}'
    (chart / "templates" / "a.yaml").write_text(
        f'{{{{ define "k" }}}}{digits}{{{{ end }}}}\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{k: "{{{{ include "k" . }}}}"}}\n'
    )
    first, other = (
        run("derive", str(chart), seed, *more).stdout.splitlines() for more in ((), ("--epoch=2",))
    )
    assert len(first) == len(other) == 2
    assert first[1].endswith(" (64 times)")
    assert first[1].split()[2] != other[1].split()[2]


def test_fingerprints_follow_the_value(seed):
    def fingerprint(*more: str) -> str:
        found = run("derive", "hashes", seed, "--object=Secret/users", "--key=password", *more)
        return found.stdout.splitlines()[1].split()[2]

    assert fingerprint() == fingerprint()
    assert fingerprint() != fingerprint("--item-epoch=Secret/users/password=2")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--object=Secret/nobody",), "Secret/nobody holds nothing that is derived"),
        (("--object=users",), "--object: 'users' names no item"),
        (("--key=password",), "--key: --key needs --object"),
        (
            ("--object=Secret/users", "--key=hash", "--reveal"),
            "--reveal: a value is shown on a terminal only",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(seed, more, words):
    done = run("derive", "hashes", seed, *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def on_terminal(arguments: list[str]) -> tuple[int, str]:
    master, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "becalm", *arguments], stdout=terminal, stderr=terminal, stdin=terminal
    ) as child:
        os.close(terminal)
        text = b""
        try:
            while chunk := os.read(master, 4096):
                text += chunk
        except OSError:  # the other end is closed
            pass
        child.wait(30)
    os.close(master)
    return child.returncode, text.decode().replace("\r\n", "\n")


def test_one_value_is_revealed_on_a_terminal(seed):
    output = run("render", "hashes", seed).stdout
    users = next(obj for obj in yaml.safe_load_all(output) if obj["metadata"]["name"] == "users")
    item = ("--object=Secret/users", "--key=hash", "--reveal")
    assert on_terminal(argv("derive", "hashes", seed, *item)) == (0, users["stringData"]["hash"] + "\n")
    code, text = on_terminal(argv("derive", "hashes", seed, "--object=Secret/users", "--reveal"))
    assert code == 2
    assert "values are meant" in text
