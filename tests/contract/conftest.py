"""What tests with servers share: charts packed by the real helm, and servers that end with the test."""

from __future__ import annotations

import os

import pytest
import servers
from applications import App, chart_files, run_helm, write


@pytest.fixture(scope="session", autouse=True)
def helm_home(tmp_path_factory):
    os.environ["BECALM_TEST_HELM_HOME"] = str(tmp_path_factory.mktemp("helm-home"))


@pytest.fixture(scope="session")
def packed(tmp_path_factory) -> dict[str, bytes]:
    """Packed charts by file name."""
    top = tmp_path_factory.mktemp("packed")
    for name, version in (("db", "1.2.3"), ("db", "1.3.0"), ("db", "2.0.0-rc.1"), ("web", "0.1.0")):
        source = write(top / f"{name}-{version}" / name, chart_files(name, version))
        run_helm("package", source, "-d", top / "out")
    return {path.name: path.read_bytes() for path in sorted((top / "out").iterdir())}


@pytest.fixture(scope="session")
def repository_files(packed, tmp_path_factory) -> dict[str, bytes]:
    """An HTTP repository, by path, with an index that the real helm wrote."""
    top = tmp_path_factory.mktemp("repository")
    for name, data in packed.items():
        (top / name).write_bytes(data)
    run_helm("repo", "index", top)
    return {f"/{path.name}": path.read_bytes() for path in top.iterdir()}


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> servers.Authority:
    return servers.Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve():
    """Starts servers that end with the test."""
    running = []

    def start(answer, authority=None):
        running.append(servers.Site(answer, authority))
        return running[-1]

    yield start
    for site in running:
        site.close()


@pytest.fixture
def app(tmp_path) -> App:
    return App(tmp_path)
