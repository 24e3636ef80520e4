"""The image, as far as it can be checked without a container engine.

The Dockerfile is parsed and linted; its steps that build becalm and that unpack the tools are run as they stand, in a
temporary directory and with the directories of the image replaced by such of the test's own.
"""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
CONFIG = "/home/argocd/cmp-server/config/plugin.yaml"


@dataclass
class Stage:
    base: str
    name: str
    steps: list[tuple[str, str]]

    def all(self, instruction: str) -> list[str]:
        return [text for name, text in self.steps if name == instruction]


def stages() -> list[Stage]:
    """The Dockerfile by stages; what stands before the first FROM is a stage without a base."""
    text = "\n".join(line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#"))
    found = [Stage("", "", [])]
    for line in re.sub(r"\\\n", "", text).splitlines():
        if not line.strip():
            continue
        name, rest = line.split(None, 1)
        if name == "FROM":
            base, _, alias = rest.partition(" AS ")
            found.append(Stage(base, alias, []))
        else:
            found[-1].steps.append((name, rest))
    return found


def stage(name: str) -> Stage:
    (found,) = [one for one in stages() if one.name == name and one.base]
    return found


def arguments(one: Stage) -> dict[str, str]:
    pairs = (text.partition("=") for text in one.all("ARG"))
    return {name: value for name, _, value in pairs}


def environment() -> dict[str, str]:
    (text,) = stages()[-1].all("ENV")
    return dict(pair.split("=", 1) for pair in shlex.split(text))


def absent(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def test_the_linter_finds_nothing():
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        absent("hadolint is absent: run `make venv`")
    run = subprocess.run(
        [str(hadolint), "--no-color", "--failure-threshold", "style", str(DOCKERFILE)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_every_stage_is_from_the_one_base_that_is_pinned_by_digest():
    head, *rest = stages()
    assert re.fullmatch(r"python:3\.11-slim@sha256:[0-9a-f]{64}", arguments(head)["PYTHON_IMAGE"])
    assert {one.base for one in rest} == {"${PYTHON_IMAGE}"}


def ignored(path: str) -> bool:
    """Whether the builder would not see a file: the last pattern that fits decides, as Docker reads .dockerignore.

    A pattern fits a path or a directory above it; with `**/` in front it fits at any depth.
    """
    verdict = False
    above = [Path(path), *Path(path).parents][:-1]
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        names = [one.name for one in above] if pattern.startswith("**/") else [str(one) for one in above]
        if any(fnmatch.fnmatchcase(name, pattern.removeprefix("**/")) for name in names):
            verdict = not line.startswith("!")
    return verdict


def copies() -> list[tuple[Stage, list[str], str]]:
    found = []
    for one in stages():
        for text in one.all("COPY"):
            words = [word for word in text.split() if not word.startswith("--chmod")]
            if not words[0].startswith("--from"):
                found.append((one, words[:-1], words[-1]))
    return found


def test_what_is_copied_is_there_and_is_seen_by_the_builder():
    sources = [source for _, names, _ in copies() for source in names]
    assert sources
    for source in sources:
        path = ROOT / source
        assert path.exists(), source
        assert not ignored(source), source
    assert not ignored("plugin/becalm/normalise/catalogue/core.yaml")


@pytest.mark.parametrize(
    "path", ["seed", "README.md.orig", ".git/config", ".venv/bin/python", "docs/limits.md", "image/seed",
             "plugin/becalm/__pycache__/cli.cpython-311.pyc", "tests/conftest.py", "manifests/base/seed"],
)  # fmt: skip
def test_nothing_else_is_seen_by_the_builder(path):
    assert ignored(path)


def test_stages_copy_only_from_stages_that_are_there():
    names = {one.name for one in stages() if one.name}
    taken = {
        match for one in stages() for text in one.all("COPY") for match in re.findall(r"--from=(\S+)", text)
    }
    assert taken == names


def test_a_release_is_never_taken_without_a_sum():
    tools = stage("tools")
    assert arguments(tools) == {
        "TARGETARCH": "",  # a default would win over what the builder sets
        "HELM_VERSION": "4.1.4",
        "HELM3_VERSION": "3.17.3",
        "KUSTOMIZE_VERSION": "5.8.1",
    }
    sums = [line.split("  ") for line in (ROOT / "image/tools.sha256").read_text().splitlines()]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest, _ in sums)
    assert len({digest for digest, _ in sums}) == len(sums)
    files = {name for _, name in sums}
    for added in tools.all("ADD"):
        address, destination = added.split()
        assert address.startswith(("https://get.helm.sh/", "https://github.com/kubernetes-sigs/kustomize/"))
        assert destination == "./"
        for architecture in ("amd64", "arm64"):
            variables = arguments(tools) | {"TARGETARCH": architecture}
            name = re.sub(r"\$\{(\w+)\}", lambda found, known=variables: known[found[1]], address)
            assert name.rpartition("/")[2] in files


def test_the_tools_are_those_that_the_tests_run():
    versions = arguments(stage("tools"))
    for name in ("HELM_VERSION", "HELM3_VERSION"):
        assert f'"{versions[name]}"' in (ROOT / "tools/get_tools.py").read_text()
    assert f"@v{versions['KUSTOMIZE_VERSION']}" in (ROOT / "Makefile").read_text()


def packed(path: Path, member: str, content: bytes) -> str:
    """A release as it is published, and its SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".content")
    source.write_bytes(content)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(source, member)
    source.unlink()
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def releases(tmp_path):
    """The directory of the stage `tools` before its step, with small releases and their sums."""
    directory = tmp_path / "tools"
    sums = {
        f"{name}.tar.gz": packed(directory / f"{name}.tar.gz", member, content)
        for name, member, content in (
            ("helm-v4.1.4-linux-arm64", "linux-arm64/helm", b"four"),
            ("helm-v3.17.3-linux-arm64", "linux-arm64/helm", b"three"),
            ("kustomize_v5.8.1_linux_arm64", "kustomize", b"kustomize"),
        )
    }
    (directory / "tools.sha256").write_text("".join(f"{one}  {name}\n" for name, one in sums.items()))
    return directory


def unpack(directory: Path) -> subprocess.CompletedProcess[str]:
    tools = stage("tools")
    (step,) = tools.all("RUN")
    variables = arguments(tools) | {"TARGETARCH": "arm64", "PATH": os.environ["PATH"]}
    return subprocess.run(
        ["/bin/sh", "-c", step], cwd=directory, env=variables, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip


def test_the_step_that_unpacks_the_tools_works(releases):
    run = unpack(releases)
    assert run.returncode == 0, run.stderr
    found = {path.name: path.read_bytes() for path in (releases / "bin").iterdir()}
    assert found == {"helm": b"four", "helm3": b"three", "kustomize": b"kustomize"}
    assert all(path.stat().st_mode & 0o777 == 0o755 for path in (releases / "bin").iterdir())


@pytest.mark.parametrize("name", ["helm-v4.1.4", "helm-v3.17.3", "kustomize_v5.8.1"])
def test_a_release_that_was_changed_ends_the_build(releases, name):
    (path,) = releases.glob(f"{name}*")
    path.write_bytes(path.read_bytes() + b"\0")
    run = unpack(releases)
    assert run.returncode != 0
    assert f"{path.name}: FAILED" in run.stdout
    assert not list((releases / "bin").iterdir())


@pytest.mark.parametrize("name", ["helm-v4.1.4", "helm-v3.17.3", "kustomize_v5.8.1"])
def test_a_release_that_has_no_sum_ends_the_build(releases, name):
    sums = (releases / "tools.sha256").read_text().splitlines()
    (releases / "tools.sha256").write_text("".join(f"{line}\n" for line in sums if name not in line))
    run = unpack(releases)
    assert run.returncode != 0
    assert "image/tools.sha256 has no sum of" in run.stderr
    assert not list((releases / "bin").iterdir())


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(name: str) -> dict[str, Version]:
    """What a lock pins, by name; every pin has a hash."""
    pins: dict[str, Version] = {}
    for block in re.split(r"\n(?=\S)", (ROOT / name).read_text()):
        if block.startswith("#"):
            continue
        pin, *hashes = block.replace("\\\n", "").split()
        package, _, version = pin.partition("==")
        assert hashes, pin
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes), pin
        pins[normal(package)] = Version(version)
    return pins


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def image_dependencies() -> list[str]:
    """What the image installs: becalm[redis]."""
    found = project()["project"]
    return [*found["dependencies"], *found["optional-dependencies"]["redis"]]


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.lock", image_dependencies),
        ("requirements-build.lock", lambda: project()["build-system"]["requires"]),
    ],
)
def test_the_locks_fit_the_project(lock, wanted):
    """Stale where a dependency was added or moved: run `make lock`."""
    pins = locked(lock)
    for text in wanted():
        requirement = Requirement(text)
        assert normal(requirement.name) in pins, f"run `make lock`: {text}"
        assert pins[normal(requirement.name)] in requirement.specifier, f"run `make lock`: {text}"


def test_the_lock_holds_nothing_that_no_dependency_needs():
    """Walks the packages that are installed here, which may be other versions but need the same."""
    pins = locked("requirements.lock")
    python = {"python_version": "3.11", "python_full_version": "3.11.0", "extra": ""}
    reached: set[str] = set()
    ahead = [Requirement(text) for text in image_dependencies()]
    while ahead:
        requirement = ahead.pop()
        name = normal(requirement.name)
        if name in reached or (requirement.marker and not requirement.marker.evaluate(python)):
            continue
        reached.add(name)
        try:
            ahead += [Requirement(text) for text in importlib.metadata.requires(name) or ()]
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{name} is needed on Python 3.11 and is not installed here")
    assert set(pins) == reached


def built(step: str, places: dict[str, Path], path: Path) -> None:
    """Run a step of the stage `becalm` with directories of the test's own."""
    for name, directory in places.items():
        step = re.sub(rf"(?<![\w/.-]){re.escape(name)}(?=[/\s]|$)", str(directory), step)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    run = subprocess.run(
        ["/bin/sh", "-c", step], cwd=places["/src"], capture_output=True, text=True, check=False, timeout=600,
        env=variables | {"PATH": f"{path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]


def test_the_steps_that_build_becalm_work(tmp_path):
    """They need the network for the pinned packages, so they run only where CI is set."""
    if not os.environ.get("CI"):
        pytest.skip("downloads the packages of the image: set CI=true")
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the lock is for Python 3.11")
    places = {name: tmp_path / name.strip("/").replace("/", "-")
              for name in ("/src", "/wheels", "/opt/becalm", "/opt/build")}  # fmt: skip
    source, path = places["/src"], tmp_path / "bin"
    source.mkdir()
    path.mkdir()
    (path / "python").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    for instruction, text in stage("becalm").steps:
        if instruction == "RUN":
            built(text, places, path)
        for name in text.split()[:-1] if instruction == "COPY" else ():
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("*.egg-info"))
            else:
                shutil.copy(ROOT / name, source)
    commands = places["/opt/becalm"] / "bin"
    assert {"becalm", "becalm-helm", "becalm-helm-guard"} <= {one.name for one in commands.iterdir()}
    assert not list(commands.glob("pip*"))
    assert (commands / "becalm").read_bytes().startswith(b"\x7fELF")
    assert (commands / "becalm-python").read_text().startswith(f"#!{commands}/python -IS\n")
    run = subprocess.run(
        [str(commands / "becalm"), "rules", "list"], env={"PATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "core/status" in run.stdout
    library = places["/opt/becalm"] / "lib/python3.11/site-packages/becalm"
    assert list(library.glob("__pycache__/cli.*.pyc"))


def test_becalm_in_the_image_is_the_one_that_starts_fast():
    (step,) = (text for text in stage("becalm").all("RUN") if "becalm.launcher" in text)
    commands = [command.strip() for command in step.split("&&")]
    installed = next(number for number, command in enumerate(commands) if "/wheels/becalm-" in command)
    written = commands.index("/opt/becalm/bin/python -m becalm.launcher /opt/becalm/bin/becalm-python")
    (built,) = (number for number, command in enumerate(commands) if "becalm.c" in command)
    assert installed < written < built
    assert '-DPYTHON_COMMAND="/opt/becalm/bin/becalm-python"' in commands[built]
    assert commands[built].endswith("-o /opt/becalm/bin/becalm")


def test_the_image_writes_only_below_the_pods_tmp():
    variables = environment()
    written = {name: variables[name] for name in variables if name.startswith("HELM_")}
    written |= {name: variables[name] for name in ("HOME", "TMPDIR")}
    assert {"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} <= set(written)
    assert all(Path(path).is_relative_to("/tmp") for path in written.values())
    assert variables["PYTHONDONTWRITEBYTECODE"] == "1"


def test_the_image_runs_as_argo_cds_user_without_a_shell():
    final = stages()[-1]
    assert final.all("USER") == ["999:999"]
    assert final.all("ENTRYPOINT") == ['["becalm", "sidecar"]']
    assert final.all("CMD") == []
    assert final.all("HEALTHCHECK") == ["NONE"]
    assert final.steps[-1][0] == "ENTRYPOINT"
    (step,) = final.all("RUN")
    assert "groupadd --gid 999" in step
    assert "useradd --uid 999 --gid 999" in step
    assert re.search(r"apt-get install .*\bgit\b", step)


def test_becalms_commands_and_the_tools_are_in_the_path():
    path = environment()["PATH"].split(":")
    assert "/opt/becalm/bin" in path
    assert "/usr/local/bin" in path
    taken = stages()[-1].all("COPY")
    assert "--from=becalm /opt/becalm /opt/becalm" in taken
    assert "--from=tools /tools/bin/ /usr/local/bin/" in taken
    wanted = {"becalm", "becalm-helm", "becalm-helm-guard", "becalm-askpass"}
    assert set(project()["project"]["scripts"]) == wanted


def test_plugin_yaml_is_where_cmp_server_looks():
    assert f"--chmod=0644 plugin.yaml {CONFIG}" in stages()[-1].all("COPY")
