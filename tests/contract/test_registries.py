"""Dependencies from a real registry (Debian's docker-registry), with TLS and a password."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import bcrypt
import pytest
import yaml
from test_dependencies import SUB, TOOLS, authority, place, write

HELM = TOOLS / "helm-4.3.1" / "helm"
__all__ = ["authority", "place"]  # fixtures


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The registry: installed, or taken out of its package."""
    found = shutil.which("docker-registry")
    if found:
        return Path(found)
    folder = tmp_path_factory.mktemp("package")
    try:
        subprocess.run(
            ["apt-get", "download", "docker-registry"],
            cwd=folder,
            capture_output=True,
            timeout=60,
            check=True,
        )
        package = next(folder.glob("*.deb"))
        subprocess.run(["dpkg", "-x", package, folder], capture_output=True, timeout=60, check=True)
    except (OSError, StopIteration, subprocess.SubprocessError):
        pytest.skip("there is no docker-registry, and its Debian package cannot be fetched")
    return folder / "usr" / "bin" / "docker-registry"


@pytest.fixture
def registry(program, authority, tmp_path):
    """A running registry with the chart `sub`; its address without the scheme, and its Docker config.json."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    hashed = bcrypt.hashpw(b"hidden", bcrypt.gensalt(4)).decode()
    write(tmp_path / "registry", {"htpasswd": f"user:{hashed}\n"})
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry" / "data")}},
        "http": {"addr": address, "tls": {"certificate": str(authority[1]), "key": str(authority[1])}},
        "auth": {"htpasswd": {"realm": "test", "path": str(tmp_path / "registry" / "htpasswd")}},
    }
    write(tmp_path / "registry", {"config.yaml": yaml.safe_dump(config)})
    login = {"auths": {address: {"auth": base64.b64encode(b"user:hidden").decode()}}}
    write(tmp_path / "registry", {"login.json": json.dumps(login)})
    argv = ["timeout", "300", str(program), "serve", str(tmp_path / "registry" / "config.yaml")]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _await(address, authority[0])
            source = write(tmp_path / "charts" / "sub", SUB)
            for version in ("0.1.0", "0.2.0"):
                write(source, {"Chart.yaml": f"apiVersion: v2\nname: sub\nversion: {version}\n"})
                env = {
                    "PATH": os.environ["PATH"], "HOME": str(tmp_path), "SSL_CERT_FILE": str(authority[0]),
                    "HELM_REGISTRY_CONFIG": str(tmp_path / "registry" / "login.json"),
                }  # fmt: skip
                for argv in (
                    ["package", str(source)],
                    ["push", f"sub-{version}.tgz", f"oci://{address}/charts"],
                ):
                    subprocess.run(
                        [HELM, *argv], cwd=tmp_path, env=env, capture_output=True, timeout=60, check=True
                    )
            yield address, tmp_path / "registry" / "login.json"
        finally:
            server.terminate()


def _await(address: str, trusted: Path) -> None:
    host, _, port = address.partition(":")
    context = ssl.create_default_context(cafile=str(trusted))
    for _ in range(100):
        try:
            with (
                socket.create_connection((host, int(port)), 1) as raw,
                context.wrap_socket(raw, server_hostname=host),
            ):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the registry does not answer")


# Helm 3.17 speaks plain HTTP with any registry on the loopback interface.
@pytest.mark.parametrize("helm", ["4.1.4", "4.3.1"])
def test_charts_of_a_registry_are_fetched_with_the_operators_credentials(place, registry, helm):
    address, login = registry
    place.depends("0.1.0", f"oci://{address}/charts")
    assert place.rendered(helm=helm, BECALM_REGISTRY_CONFIG=str(login))["version"] == "0.1.0"
    done = place.generate(helm=helm)
    assert (done.returncode, done.stdout) == (5, "")
    assert address in done.stderr
    login.write_text(login.read_text().replace(base64.b64encode(b"user:hidden").decode(), "dXNlcjp3cm9uZw=="))
    done = place.generate(helm=helm, BECALM_REGISTRY_CONFIG=str(login))
    assert (done.returncode, done.stdout) == (5, "")
    assert "wrong" not in done.stderr
    assert "401" in done.stderr or "nauthorized" in done.stderr


def test_a_range_of_versions_in_a_registry_is_told(place, registry):
    address, login = registry
    place.depends("^0.1.0", f"oci://{address}/charts")
    done = place.generate(BECALM_REGISTRY_CONFIG=str(login))
    assert done.returncode == 0, done.stderr
    assert "is a range and there is no Chart.lock" in done.stderr
    assert yaml.safe_load(done.stdout)["stringData"]["version"] == "0.1.0"
