"""Fetch Debian's docker-registry for tests into `.tools/`, where apt can.

A real registry beside the small one of the tests' own. The package is downloaded and unpacked, never installed, and
its binary is checked against its SHA-256. Where that cannot be had (no apt, another Debian, no network) a line says so
and the tests with it are skipped: helm and kubectl are needed, this is not. Only the standard library is needed.

Exit codes: 0 it is there or cannot be had here, 1 what came is not what is pinned.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DESTINATION = Path(__file__).resolve().parent.parent / ".tools"
PACKAGE, VERSION = "docker-registry", "2.8.2+ds1-1"
SHA256 = "6ef17abe17337366675271b24591684c5dbe7514adfe9e95f57290c5c4eb9149"
SECONDS = 60


def sum_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack(directory: Path) -> Path:
    """Download and unpack the package; the path of its binary.

    Raises:
        OSError: apt or dpkg is not there.
        subprocess.SubprocessError: one of them failed.
    """
    for argv in (["apt-get", "download", f"{PACKAGE}={VERSION}"], ["sh", "-c", "dpkg -x ./*.deb root"]):
        subprocess.run(
            argv, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True
        )
    return directory / "root" / "usr" / "bin" / PACKAGE


def main(destination: Path = DESTINATION) -> int:
    """Bring the binary into place, unless it is there; the exit code."""
    path = destination / f"{PACKAGE}-2.8.2" / PACKAGE
    if path.is_file() and sum_of(path) == SHA256:
        print(f"{PACKAGE} {VERSION}: already there")
        return 0
    with tempfile.TemporaryDirectory(prefix="becalm-registry-") as name:
        try:
            found = unpack(Path(name))
        except (OSError, subprocess.SubprocessError) as error:
            print(
                f"{PACKAGE} {VERSION}: cannot be had here ({type(error).__name__}); tests with it are skipped"
            )
            return 0
        if not found.is_file() or sum_of(found) != SHA256:
            print(f"{PACKAGE} {VERSION}: has the wrong SHA-256; nothing was installed", file=sys.stderr)
            return 1
        path.parent.mkdir(parents=True, exist_ok=True)
        # Beside its place first, so that nobody ever sees half a file.
        beside = path.with_name(f".{path.name}")
        shutil.copyfile(found, beside)
        beside.chmod(0o755)
        beside.replace(path)
    print(f"{PACKAGE} {VERSION}: installed {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
