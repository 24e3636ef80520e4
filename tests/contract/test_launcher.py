"""The `becalm` of the image: the same answers, from a Python that loads next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from services import Sidecar


@pytest.fixture
def sidecar(tmp_path):
    return Sidecar(tmp_path)


@pytest.fixture
def becalm(tmp_path):
    path = tmp_path / "becalm"
    subprocess.run([sys.executable, "-m", "becalm.launcher", str(path)], check=True, timeout=60)
    return path


def run(argv, sidecar, **variables):
    return subprocess.run(
        [str(word) for word in argv], cwd=sidecar.app, env={**sidecar.env, **variables}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_it_gives_the_same_with_a_service_and_without(sidecar, becalm):
    wanted = sidecar.generate(BECALM_SOCKET="off", BECALM_CACHE_DIR="off")
    assert (wanted.returncode, wanted.stderr) == (0, "")
    alone = run([becalm, "generate"], sidecar, BECALM_CACHE_DIR="off")
    assert (alone.returncode, alone.stdout, alone.stderr) == (0, wanted.stdout, "")
    with sidecar.serving():
        served = run([becalm, "generate"], sidecar)
        assert (served.returncode, served.stdout, served.stderr) == (0, wanted.stdout, "")
        assert len(sidecar.renders()) == 1


def test_an_error_has_its_exit_code_and_no_output(sidecar, becalm):
    (sidecar.app / "templates/a.yaml").write_text('{{ fail "because" }}')
    with sidecar.serving():
        failed = run([becalm, "generate"], sidecar)
    assert (failed.returncode, failed.stdout) == (5, "")
    assert "because" in failed.stderr


def test_with_a_service_neither_site_nor_anything_else_that_takes_long_is_loaded(sidecar, becalm):
    with sidecar.serving():
        served = run([sys.executable, "-IS", "-X", "importtime", becalm, "generate"], sidecar)
    assert served.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in served.stderr.splitlines()}
    assert "becalm.service.client" in loaded
    assert loaded.isdisjoint(("site", "__future__", "re", "json", "pathlib", "socket", "becalm.cli"))


def test_every_other_command_works(sidecar, becalm):
    listed = run([becalm, "rules", "list"], sidecar)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "core/status" in listed.stdout
    wrong = run([becalm, "generate", "--nonsense"], sidecar)
    assert wrong.returncode == 2


def test_modules_that_the_environment_names_are_not_loaded(sidecar, becalm, tmp_path):
    for name in ("becalm", "site", "_socket"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    (sidecar.app / "becalm.py").write_text("raise SystemExit(98)\n")
    found = run([becalm, "generate"], sidecar, PYTHONPATH=str(tmp_path), BECALM_CACHE_DIR="off")
    assert (found.returncode, found.stderr) == (0, "")
