"""Dependencies that are not in charts/: fetched by helm from repositories with TLS and passwords, or refused."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import http.server
import ipaddress
import json
import os
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from children import MEASURE
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
HELMS = ("3.17.3", "4.1.4", "4.3.1")
ONE = "4.3.1"
SUB = {
    "templates/a.yaml": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: sub}\n"
        'stringData: {version: "{{ .Chart.Version }}", password: "{{ randAlphaNum 12 }}"}\n'
    )
}
USER = "Basic " + base64.b64encode(b"user:hidden").decode()


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def chart(
    folder: Path, version: str = "0.1.0", files: dict[str, str] | None = None, *dependencies: dict
) -> Path:
    meta = {"apiVersion": "v2", "name": folder.name, "version": version, "dependencies": list(dependencies)}
    return write(folder, {"Chart.yaml": yaml.safe_dump(meta), **(files or {})})


def lock(folder: Path, *resolved: dict) -> None:
    """A Chart.lock as helm writes it (pkg/downloader, `HashReq`)."""
    wanted = yaml.safe_load((folder / "Chart.yaml").read_text())["dependencies"]
    ordered = [
        [{key: one[key] for key in ("name", "version", "repository")} for one in many]
        for many in (wanted, resolved)
    ]
    text = json.dumps(ordered, separators=(",", ":")).replace(">", "\\u003e")
    digest = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    (folder / "Chart.lock").write_text(
        yaml.safe_dump(
            {"dependencies": list(resolved), "digest": digest, "generated": "2024-01-01T00:00:00Z"}
        )
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> tuple[Path, Path]:
    """A certificate for the loopback address that vouches for itself, and the same with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("authority")
    public = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.pem").write_bytes(public)
    (folder / "both.pem").write_bytes(public + private)
    return folder / "ca.pem", folder / "both.pem"


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        given = self.headers.get("Authorization", "")
        self.server.asked.append((self.path, given))
        if self.server.authorization and given != self.server.authorization:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
            return
        super().do_GET()


class Served:
    """A folder on the loopback interface, with or without TLS."""

    def __init__(self, folder: Path, pem: Path | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

        def handler(*arguments):
            return _Handler(*arguments, directory=str(folder))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.authorization = ""
        self.server.asked = []
        if pem is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if pem else ''}://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def pack(self, source: Path, *versions: str) -> list[dict]:
        found = []
        for version in versions:
            (source / "Chart.yaml").write_text(f"apiVersion: v2\nname: {source.name}\nversion: {version}\n")
            path = self.folder / f"{source.name}-{version}.tgz"
            with tarfile.open(path, "w:gz") as archive:
                archive.add(source, source.name)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found.append(
                {
                    "apiVersion": "v2",
                    "name": source.name,
                    "version": version,
                    "urls": [path.name],
                    "digest": digest,
                }
            )
        return found

    def index(self, entries: list[dict]) -> None:
        (self.folder / "index.yaml").write_text(
            json.dumps({"apiVersion": "v1", "entries": {entries[0]["name"]: entries}})
        )

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)


class Place:
    """Two repositories with `sub`, and an application's directory that depends on it."""

    def __init__(self, root: Path, authority: tuple[Path, Path]) -> None:
        self.root = root
        self.secure = Served(root / "secure", authority[1])
        self.other = Served(root / "other", authority[1])
        self.plain = Served(root / "plain", None)
        source = write(root / "source" / "sub", SUB)
        for served in (self.secure, self.plain):
            served.index(served.pack(source, "0.2.0", "0.1.0"))
        self.checkout = root / "checkout"
        self.app = self.checkout / "apps" / "web"
        self.depends("0.1.0", self.secure.url)
        seed = root / "seed"
        seed.touch(mode=0o600)
        seed.write_bytes(bytes(range(32)))
        self.authority = authority[0]

    def depends(self, version: str, repository: str) -> None:
        chart(self.app, "1.0.0", {}, {"name": "sub", "version": version, "repository": repository})

    def generate(self, *parameters: dict, helm: str = ONE, **variables: str) -> subprocess.CompletedProcess:
        env = {
            **MEASURE, "PATH": os.environ["PATH"], "BECALM_HELM": str(TOOLS / f"helm-{helm}" / "helm"),
            "ARGOCD_APP_NAME": "a", "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "n",
            "ARGOCD_APP_SOURCE_PATH": "apps/web", "BECALM_SEED_FILE": str(self.root / "seed"),
            "BECALM_CACHE_DIR": "off", "BECALM_CA_FILE": str(self.authority),
            "ARGOCD_APP_PARAMETERS": json.dumps(parameters), **variables,
        }  # fmt: skip
        argv = [sys.executable, "-m", "becalm", "generate"]
        return subprocess.run(
            argv, cwd=self.app, env=env, capture_output=True, text=True, timeout=100, check=False
        )

    def rendered(self, *parameters: dict, helm: str = ONE, **variables: str) -> dict:
        done = self.generate(*parameters, helm=helm, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        return yaml.safe_load(done.stdout)["stringData"]

    def refused(self, *words: str, code: int = 3, **variables: str) -> None:
        done = self.generate(**variables)
        assert (done.returncode, done.stdout) == (code, "")
        for word in words:
            assert word in done.stderr
        assert "hidden" not in done.stderr
        assert str(self.root) not in done.stderr.replace(str(self.root / "config"), "")

    def repositories(self, *entries: dict) -> dict[str, str]:
        path = self.root / "config"
        path.write_text(yaml.safe_dump({"apiVersion": "v1", "repositories": list(entries)}))
        return {"BECALM_REPOSITORY_CONFIG": str(path)}


@pytest.fixture
def place(tmp_path, authority):
    place = Place(tmp_path, authority)
    try:
        yield place
    finally:
        for served in (place.secure, place.other, place.plain):
            served.close()


@pytest.mark.parametrize("helm", HELMS)
def test_a_missing_dependency_is_fetched_and_the_checkout_stays_as_it_is(place, helm):
    before = {path: path.read_bytes() for path in place.checkout.rglob("*") if path.is_file()}
    first, second = place.rendered(helm=helm), place.rendered(helm=helm)
    assert first == second
    assert first["version"] == "0.1.0"
    assert len(first["password"]) == 12
    assert {path: path.read_bytes() for path in place.checkout.rglob("*") if path.is_file()} == before


def test_values_are_those_of_the_same_chart_in_charts(place):
    fetched = place.rendered()
    chart(place.app / "charts" / "sub", files=SUB)
    place.secure.server.asked.clear()
    assert place.rendered() == fetched
    assert place.secure.server.asked == []


@pytest.mark.parametrize("form", ["directory", "archive", "requirements"])
def test_nothing_is_asked_where_nothing_is_missing(place, form):
    if form == "directory":
        chart(place.app / "charts" / "other-name", files=SUB)
        (place.app / "charts" / "other-name" / "Chart.yaml").write_text(
            "apiVersion: v2\nname: sub\nversion: 0.1.0\n"
        )
    else:
        (place.app / "charts").mkdir()
        with tarfile.open(place.app / "charts" / "sub-0.1.0.tgz", "w:gz") as archive:
            archive.add(chart(place.root / "packed" / "sub", files=SUB), "sub")
    if form == "requirements":
        text = (place.app / "Chart.yaml").read_text()
        write(
            place.app,
            {"Chart.yaml": "apiVersion: v1\nname: web\nversion: 1.0.0\n", "requirements.yaml": text},
        )
    assert place.rendered()["version"] == "0.1.0"
    assert place.secure.server.asked == []


@pytest.mark.parametrize("helm", HELMS)
def test_the_lock_is_kept(place, helm):
    place.depends(">=0.1.0", place.secure.url)
    lock(place.app, {"name": "sub", "repository": place.secure.url, "version": "0.1.0"})
    assert place.rendered(helm=helm, BECALM_STRICT="true")["version"] == "0.1.0"
    place.depends(">=0.1.1", place.secure.url)
    done = place.generate(helm=helm)
    assert (done.returncode, done.stdout) == (5, "")
    assert "out of sync with" in done.stderr


def test_a_range_without_a_lock_is_told_and_refused_under_strict(place):
    place.depends(">=0.1.0", place.secure.url)
    done = place.generate()
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout)["stringData"]["version"] == "0.2.0"
    assert done.stderr.startswith(
        "Warning: apps/web/Chart.yaml: the version '>=0.1.0' of the dependency 'sub' is a range"
    )
    assert done.stderr.endswith("run helm dependency update and commit Chart.lock\n")
    place.refused("is a range and there is no Chart.lock", code=8, BECALM_STRICT="true")


def test_the_operators_credentials_are_used_and_sent_nowhere_else(place):
    place.secure.server.authorization = USER
    place.refused("401", place.secure.url, code=5)
    entry = {"name": "mine", "url": place.secure.url + "/", "username": "user", "password": "hidden"}
    variables = place.repositories({"name": "x", "url": "https://x.example"}, entry)
    assert place.rendered(**variables)["version"] == "0.1.0"
    wrong = place.repositories({**entry, "password": "hidden2"})
    place.refused("401", code=5, **wrong)
    # An index that names another host.
    entries = place.secure.pack(place.root / "source" / "sub", "0.1.0")
    (place.secure.folder / "sub-0.1.0.tgz").rename(place.other.folder / "sub-0.1.0.tgz")
    place.secure.index([{**entries[0], "urls": [f"{place.other.url}/sub-0.1.0.tgz"]}])
    variables = place.repositories(entry)
    assert place.rendered(**variables)["version"] == "0.1.0"
    assert [given for _, given in place.other.server.asked] == [""]
    assert place.rendered({"name": "passCredentials", "string": "true"}, **variables)["version"] == "0.1.0"
    assert place.other.server.asked[-1][1] == USER


@pytest.mark.parametrize("form", ["@mine", "alias:mine"])
def test_aliases_are_the_operators_names(place, form):
    place.depends("0.1.0", form)
    place.refused(f"'{form}' names a repository that the operator has not set up", "BECALM_REPOSITORY_CONFIG")
    assert (
        place.rendered(**place.repositories({"name": "mine", "url": place.secure.url}))["version"] == "0.1.0"
    )


def test_a_server_that_nobody_vouches_for_is_refused(place):
    place.refused("certificate", place.secure.url, code=5, BECALM_CA_FILE="")


def test_repositories_without_tls_need_the_operators_word(place):
    place.depends("0.1.0", place.plain.url)
    place.refused("is not encrypted; use https, or ask the operator for BECALM_PLAIN_HTTP")
    assert place.rendered(BECALM_PLAIN_HTTP="true")["version"] == "0.1.0"


def test_a_damaged_archive_is_refused(place):
    (place.secure.folder / "sub-0.1.0.tgz").write_bytes(b"no archive")
    done = place.generate()
    assert (done.returncode, done.stdout) == (3, "")
    assert "sub-0.1.0.tgz" in done.stderr or "is not the chart" in done.stderr


def test_a_dead_repository_is_an_error_with_its_address(place):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{free.getsockname()[1]}"
        place.depends("0.1.0", url)
        place.refused(url, "refused", code=5)


def test_a_repository_that_never_answers_ends_with_the_time_limit(place):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        place.depends("0.1.0", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        begun = time.monotonic()
        argv = [
            sys.executable, "-m", "becalm", "render", str(place.app), "--app=a", "--namespace=n", "--throwaway-seed",
            f"--helm={TOOLS / f'helm-{ONE}' / 'helm'}", "--timeout=2",
        ]  # fmt: skip
        env = {"PATH": os.environ["PATH"], "BECALM_PLAIN_HTTP": "true"}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (6, "")
        assert time.monotonic() - begun < 30


def test_charts_of_the_same_repository_are_dependencies(place):
    chart(place.checkout / "libs" / "sub", files=SUB)
    place.depends(">=0.1.0", "file://../../libs/sub")
    assert place.rendered(BECALM_STRICT="true")["version"] == "0.1.0"


@pytest.mark.parametrize("path", ["../../../outside/sub", "{root}/outside/sub"])
def test_charts_outside_of_the_repository_are_refused(place, path):
    chart(place.root / "outside" / "sub", files=SUB)
    place.depends("0.1.0", "file://" + path.format(root=place.root))
    done = place.generate()
    assert (done.returncode, done.stdout) == (3, "")
    assert "leads out of the repository" in done.stderr


def test_links_out_of_the_repository_are_refused(place):
    (place.root / "private").write_text("stolen")
    sub = chart(place.checkout / "libs" / "sub", files=SUB)
    (sub / "files").symlink_to(place.root)
    place.depends("0.1.0", "file://../../libs/sub")
    done = place.generate()
    assert (done.returncode, done.stdout) == (3, "")
    assert "stolen" not in done.stderr


@pytest.mark.parametrize(
    "repository",
    [
        "", "--repository-config=x", "-h", "ftp://x.example", "x.example", "git@x.example:a.git", "https://user:hidden@x.example",
        "http://169.254.169.254/", "http://user@x.example", "@none", "alias:none", "@", "file:///etc", "file://../../..", "\n",
        "https://user:hidden@127.0.0.1:1/\n", "javascript:x", "data:x", "s3://bucket", "gs://bucket", "oci+http://x", "HTTPS:/x",
    ],
)  # fmt: skip
def test_other_addresses_are_refused(place, repository):
    place.depends("0.1.0", repository)
    place.refused("Error: the dependency 'sub'")


@pytest.mark.parametrize("name", ["--help", "../x", "a/b", "x\ny", "-f", "$(id)", "{{ .x }}"])
def test_names_are_no_options_and_no_paths(place, name):
    write(place.app, {"Chart.yaml": yaml.safe_dump({"apiVersion": "v2", "name": "web", "version": "1.0.0", "dependencies": [
        {"name": name, "version": "0.1.0", "repository": place.secure.url}]})})  # fmt: skip
    done = place.generate()
    assert done.returncode in (3, 5)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")


def test_renders_at_the_same_time_share_nothing(place):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: place.rendered()["password"], range(4)))
    assert len(set(found)) == 1


def test_a_chart_that_is_complete_renders_without_any_network(place):
    """In a network namespace of its own, which has no interface that is up."""
    chart(place.app / "charts" / "sub", files=SUB)
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("the kernel gives no network namespaces to users")
    argv = [
        "unshare", "-rn", sys.executable, "-m", "becalm", "render", str(place.app), "--app=a", "--namespace=n",
        "--throwaway-seed", f"--helm={TOOLS / f'helm-{ONE}' / 'helm'}",
    ]  # fmt: skip
    done = subprocess.run(
        argv, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "kind: Secret" in done.stdout


@pytest.mark.parametrize("text", ["", "repositories: 1", "repositories: [a]", "{", "password: hidden"])
def test_a_file_of_credentials_that_is_none_is_refused(place, text):
    path = place.root / "config"
    path.write_text(text)
    place.refused("BECALM_REPOSITORY_CONFIG", "the file ", code=2, BECALM_REPOSITORY_CONFIG=str(path))
