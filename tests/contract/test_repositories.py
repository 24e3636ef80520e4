"""Credentials, TLS and proxies for chart repositories and registries: what is sent where, and what is said when it fails."""

from __future__ import annotations

import base64
import json
import subprocess
import time

import bcrypt
import pytest
import servers
import yaml
from applications import HELM, TOOLS, run_helm, write
from servers import basic, files, registry

DB = {"name": "db", "version": "1.2.3"}
PASSWORD = "rightly-secret-7"
REGISTRY = TOOLS / "docker-registry-2.8.2" / "docker-registry"


def wanted(app, url: str, **more: str):
    return app.chart([{**DB, "repository": url, **more}])


def manifest(url: str, label: str = "repository", **keys: str) -> dict:
    data = {"type": "helm", "url": url, "username": "ann", "password": PASSWORD, **keys}
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    labels = {"argocd.argoproj.io/secret-type": label}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "labels": labels},
        "data": encoded,
    }


def ok(done) -> bool:
    assert PASSWORD not in done.stdout + done.stderr
    told = [line for line in done.stderr.splitlines() if "is not locked" not in line]
    assert (done.returncode, told) == (0, [])
    return "name: db" in done.stdout


def refused(done, words: str) -> bool:
    assert PASSWORD not in done.stdout + done.stderr
    assert (done.returncode, done.stdout) == (3, "")
    return words in done.stderr.splitlines()[0]


def test_secrets_as_folders(app, serve, repository_files):
    site = serve(files(repository_files, "ann", PASSWORD))
    wanted(app, site.url)
    assert refused(
        app.generate(), f"db 1.2.3: {site.url} wants other credentials (401); check the credentials"
    )
    app.secret("one", url=site.url, name="one", username="ann", password="wrong")
    assert refused(app.generate(), "wants other credentials (401)")
    app.secret("one", url=f"{site.url}/", name="one", username="ann", password=PASSWORD + "\n")
    assert ok(app.generate())


@pytest.mark.parametrize("form", ["list", "documents", "json", "template"])
def test_secrets_as_manifests(app, serve, repository_files, form):
    site = serve(files({f"/charts{path}": data for path, data in repository_files.items()}, "ann", PASSWORD))
    wanted(app, f"{site.url}/charts")
    one = manifest(f"{site.url}/charts", name="one")
    text = {
        "list": yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [one]}),
        "documents": "---\n"
        + yaml.safe_dump({"kind": "ConfigMap", "metadata": {}})
        + "---\n"
        + yaml.safe_dump(one),
        "json": json.dumps(one),
        "template": yaml.safe_dump(manifest(site.url, "repo-creds")),
    }[form]
    write(app.secrets, {"secrets.json" if form == "json" else "secrets.yaml": text})
    assert ok(app.generate(BECALM_REPOSITORIES_DIR=str(app.secrets)))
    assert ok(app.render("--repositories", str(app.secrets)))


@pytest.mark.parametrize("keys", [{"type": "git"}, {"url": "http://127.0.0.1/elsewhere"}])
def test_secrets_for_something_else_are_not_sent(app, serve, repository_files, keys):
    site = serve(files(repository_files, "ann", PASSWORD))
    wanted(app, site.url).secret(
        "one", **{"url": site.url, "name": "one", "username": "ann", "password": PASSWORD, **keys}
    )
    assert refused(app.generate(), "wants other credentials (401)")
    assert not site.sent_credentials()


def test_a_template_serves_only_what_lies_below_it(app, serve, repository_files):
    site = serve(
        files({f"/charts-2{path}": data for path, data in repository_files.items()}, "ann", PASSWORD)
    )
    wanted(app, f"{site.url}/charts-2").secret(
        "one", url=f"{site.url}/charts", username="ann", password=PASSWORD
    )
    assert refused(app.generate(), "wants other credentials (401)")
    assert not site.sent_credentials()


def test_a_secret_of_a_project_serves_that_project_only_also_from_the_cache(app, serve, repository_files):
    site = serve(files(repository_files, "ann", PASSWORD))
    wanted(app, site.url).secret(
        "one", url=site.url, name="one", username="ann", password=PASSWORD, project="shop"
    )
    assert refused(app.generate(), "wants other credentials (401)")
    assert ok(app.generate(ARGOCD_APP_PROJECT_NAME="shop"))
    assert refused(app.generate(), "wants other credentials (401)")
    site.asked.clear()
    assert ok(app.generate(ARGOCD_APP_PROJECT_NAME="shop"))
    assert site.asked == []


def test_a_projects_own_secret_goes_first(app, serve, repository_files):
    site = serve(files(repository_files, "bob", PASSWORD))
    wanted(app, site.url).secret("a", url=site.url, name="a", username="ann", password="other")
    app.secret("b", url=site.url, name="b", username="bob", password=PASSWORD, project="default")
    assert ok(app.generate())


@pytest.mark.parametrize("sign", ["@", "alias:"])
def test_a_repository_by_its_name(app, serve, repository_files, sign):
    site = serve(files(repository_files, "ann", PASSWORD))
    wanted(app, f"{sign}ours").secret("one", url=site.url, name="ours", username="ann", password=PASSWORD)
    assert ok(app.generate())
    assert ok(app.generate(BECALM_CHART_REPOSITORIES="https://elsewhere.example"))
    wanted(app, f"{sign}theirs")
    assert refused(app.generate(), "no repository is called 'theirs'; ask the operator for it")
    wanted(app, f"{sign}ours").secret("one", url=site.url, name="ours", project="other")
    assert refused(app.generate(), "no repository is called 'ours'")


@pytest.mark.parametrize("sign", ["@", ""])
def test_a_repositories_file_of_helm(app, serve, repository_files, authority, sign):
    site = serve(files(repository_files, "ann", PASSWORD), authority)
    path = app.top / "repositories.yaml"
    env = {"HELM_REPOSITORY_CONFIG": str(path), "HELM_REPOSITORY_CACHE": str(app.top / "indexes")}
    run_helm(
        "repo",
        "add",
        "ours",
        site.url,
        "--username=ann",
        "--password",
        PASSWORD,
        "--ca-file",
        authority.ca,
        **env,
    )
    wanted(app, "@ours" if sign else site.url)
    assert ok(app.generate(BECALM_REPOSITORY_CONFIG=str(path)))
    assert ok(app.render("--repository-config", str(path)))


def test_tls_with_an_authority_of_ones_own(app, serve, repository_files, authority, tmp_path):
    site = serve(files(repository_files), authority)
    other = servers.Authority(tmp_path / "other")
    wanted(app, site.url)
    for env in ({}, {"BECALM_CA_FILE": str(other.ca)}):
        done = app.generate(**env)
        assert refused(done, f"db 1.2.3: {site.url} cannot be trusted; give the operator's CA certificates")
        assert "x509: certificate signed by unknown authority" in done.stderr
    write(tmp_path / "certs", {"127.0.0.1": authority.ca.read_text(), "elsewhere": other.ca.read_text()})
    uncached = {"BECALM_CACHE_DIR": "off"}
    assert ok(app.generate(BECALM_CA_FILE=str(authority.ca), **uncached))
    assert ok(app.generate(BECALM_TLS_CERTS_DIR=str(tmp_path / "certs"), **uncached))
    assert ok(app.render("--ca-file", str(authority.ca), **uncached))
    app.secret("one", url=site.url, name="one", insecure="true")
    assert ok(app.generate(**uncached))


def split(repository_files, elsewhere: str) -> dict[str, bytes]:
    """A repository whose index names another host for its archives."""
    index = yaml.safe_load(repository_files["/index.yaml"])
    for entry in index["entries"]["db"]:
        entry["urls"] = [f"{elsewhere}/{entry['urls'][0]}"]
    return {**repository_files, "/index.yaml": yaml.safe_dump(index).encode()}


def elsewhere(site) -> str:
    """The same server under another host's name."""
    return site.url.replace("127.0.0.1", "localhost")


def test_credentials_go_to_another_host_only_if_asked(app, serve, repository_files):
    other = serve(files(repository_files))
    site = serve(files(split(repository_files, elsewhere(other)), "ann", PASSWORD))
    wanted(app, site.url).secret("one", url=site.url, name="one", username="ann", password=PASSWORD)
    for more in ([], [{"name": "passCredentials", "string": "false"}]):
        assert ok(app.generate(*more, BECALM_CACHE_DIR="off"))
        assert "/db-1.2.3.tgz" in other.paths()
        assert not other.sent_credentials()
    assert ok(app.generate({"name": "passCredentials", "string": "true"}, BECALM_CACHE_DIR="off"))
    assert other.asked[-1][1]["authorization"] == basic("ann", PASSWORD)


def test_a_redirect_to_another_host_gets_no_credentials(app, serve, repository_files):
    other = serve(files(repository_files))
    moved = {**repository_files, "/db-1.2.3.tgz": f"->{elsewhere(other)}/db-1.2.3.tgz".encode()}
    site = serve(files(moved, "ann", PASSWORD))
    wanted(app, site.url).secret("one", url=site.url, name="one", username="ann", password=PASSWORD)
    assert ok(app.generate())
    assert other.paths() == ["/db-1.2.3.tgz"]
    assert not other.sent_credentials()


def test_a_proxy_of_the_sidecar_or_of_a_secret(app, serve, repository_files):
    proxy = serve(files({f"http://charts.invalid{path}": data for path, data in repository_files.items()}))
    wanted(app, "http://charts.invalid").env["BECALM_CHART_REPOSITORIES"] = "http://charts.invalid"
    env = {"BECALM_CACHE_DIR": "off"}
    assert refused(app.generate(**env), "http://charts.invalid cannot be reached")
    assert ok(app.generate(HTTP_PROXY=proxy.url, **env))
    assert ok(app.generate(http_proxy=proxy.url, **env))
    assert refused(app.generate(HTTP_PROXY=proxy.url, NO_PROXY="charts.invalid", **env), "cannot be reached")
    app.secret(
        "one", url="http://charts.invalid", name="one", proxy=proxy.url.replace("//", f"//ann:{PASSWORD}@")
    )
    assert ok(app.generate(HTTP_PROXY="http://127.0.0.1:1", **env))
    assert proxy.asked[-1][1]["proxy-authorization"] == basic("ann", PASSWORD)
    proxy.close()
    assert refused(app.generate(**env), "http://charts.invalid cannot be reached")
    proxy.close = lambda: None


@pytest.fixture
def charts(packed):
    return {"charts/db": {"1.2.3": packed["db-1.2.3.tgz"], "1.3.0": packed["db-1.3.0.tgz"]}}


@pytest.mark.parametrize("kind", ["basic", "token"])
@pytest.mark.parametrize("secure", [True, False])
def test_a_registry_with_credentials(app, serve, charts, authority, kind, secure):
    token = "made-by-the-token-server" if kind == "token" else ""
    realm: list[str] = []
    site = serve(registry(charts, user="ann", password=PASSWORD, token=token, realm=lambda: realm[0]), authority if secure else None)  # fmt: skip
    realm.append(site.url)
    wanted(app, f"{site.oci}/charts").env["BECALM_CA_FILE"] = str(authority.ca)
    keys = {"name": "one", "enableOCI": "true", **({} if secure else {"insecureOCIForceHttp": "true"})}
    url = f"127.0.0.1:{site.port}/charts"
    app.secret("one", url=url, username="ann", password="wrong", **keys)
    assert refused(app.generate(), f"{site.oci}/charts wants other credentials (401)")
    app.secret("one", url=url, username="ann", password=PASSWORD, **keys)
    assert ok(app.generate())
    assert any("/blobs/" in path for path in site.paths())


def test_a_registry_with_a_token_of_the_operators(app, serve, charts, authority):
    site = serve(registry(charts, token=PASSWORD, realm=lambda: site.url), authority)
    wanted(app, f"{site.oci}/charts").env["BECALM_CA_FILE"] = str(authority.ca)
    app.secret("one", url=f"127.0.0.1:{site.port}", name="one", type="oci", bearerToken=PASSWORD)
    assert ok(app.generate())


def test_a_registry_is_found_by_its_host_alone(app, serve, charts, authority):
    site = serve(registry(charts, user="ann", password=PASSWORD), authority)
    wanted(app, f"{site.oci}/charts").env["BECALM_CA_FILE"] = str(authority.ca)
    app.secret("one", url=f"127.0.0.1:{site.port}/elsewhere", name="one", enableOCI="true", username="ann", password=PASSWORD)  # fmt: skip
    assert ok(app.generate())


def test_a_docker_config_serves_registries(app, serve, charts, authority):
    site = serve(registry(charts, user="ann", password=PASSWORD), authority)
    path = app.top / "config.json"
    path.write_text(
        json.dumps({"auths": {f"127.0.0.1:{site.port}": {"auth": basic("ann", PASSWORD).split()[1]}}})
    )
    wanted(app, f"{site.oci}/charts").env["BECALM_CA_FILE"] = str(authority.ca)
    assert refused(app.generate(), "wants other credentials (401)")
    assert ok(app.generate(BECALM_REGISTRY_CONFIG=str(path)))
    assert ok(app.render("--registry-config", str(path), BECALM_CACHE_DIR="off"))


def test_a_registry_that_is_not_trusted(app, serve, charts, authority):
    site = serve(registry(charts), authority)
    wanted(app, f"{site.oci}/charts")
    assert refused(app.generate(), f"{site.oci}/charts cannot be trusted")
    app.secret("one", url=f"127.0.0.1:{site.port}/charts", name="one", enableOCI="true", insecure="true")
    assert ok(app.generate())


@pytest.mark.parametrize("name", ["BECALM_REPOSITORIES_DIR", "BECALM_REGISTRY_CONFIG", "BECALM_REPOSITORY_CONFIG", "BECALM_CA_FILE", "BECALM_TLS_CERTS_DIR"])  # fmt: skip
def test_what_the_operator_names_has_to_be_there(app, name):
    done = app.chart().generate(**{name: "/none/here"})
    assert (done.returncode, done.stderr) == (
        2, f"Error: {name}: /none/here is not there; mount it, or take the setting away\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        f"kind: Secret\nx: [{PASSWORD}", f"- {PASSWORD}: a\n  b", "\0",
        yaml.safe_dump({**manifest("x"), "data": {"type": "aGVsbQ==", "password": f"{PASSWORD}!"}}),
        yaml.safe_dump(manifest(f"https://ann:{PASSWORD}@host")),
    ],
)  # fmt: skip
def test_secrets_that_are_wrong_are_never_shown(app, text):
    wanted(app, "https://charts.invalid").env["BECALM_REPOSITORIES_DIR"] = str(app.secrets)
    write(app.secrets, {"a.yaml": text})
    done = app.generate()
    assert (done.returncode, done.stdout) == (2, "")
    assert PASSWORD not in done.stderr
    assert "a.yaml" in done.stderr
    assert "see docs/dependencies.md, Credentials" in done.stderr


def test_no_password_is_on_a_command_line(app, serve, repository_files):
    """A helm that writes down its arguments and environment, before it is helm."""
    site = serve(files(repository_files, "ann", PASSWORD))
    spy = app.top / "spy"
    spy.write_text(f'#!/bin/sh\n{{ echo "$@"; env; }} >> {app.top}/spied\nexec {HELM} "$@"\n')
    spy.chmod(0o755)
    wanted(app, site.url).secret("one", url=site.url, name="one", username="ann", password=PASSWORD)
    assert ok(app.generate(BECALM_HELM=str(spy), SECRET_OF_THE_SIDECAR="other-secret"))
    spied = (app.top / "spied").read_text()
    assert "pull becalm/db --version=1.2.3" in spied
    assert PASSWORD not in spied
    assert "other-secret" not in spied


@pytest.fixture
def docker_registry(tmp_path, authority):
    """Debian's docker-registry with TLS and basic authentication; a chart is pushed to it by the real helm."""
    if not REGISTRY.is_file():
        pytest.skip("docker-registry is not in .tools; `make tools` brings it where apt can")
    port = servers.free_port()
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (tmp_path / "htpasswd").write_text(f"ann:{hashed}\n")
    config = {
        "version": 0.1, "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "blobs")}},
        "http": {"addr": f"127.0.0.1:{port}", "tls": {"certificate": str(authority.certificate), "key": str(authority.key)}},
        "auth": {"htpasswd": {"realm": "charts", "path": str(tmp_path / "htpasswd")}},
    }  # fmt: skip
    (tmp_path / "config.yml").write_text(json.dumps(config))
    child = subprocess.Popen([REGISTRY, "serve", tmp_path / "config.yml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"HOME": str(tmp_path), "OTEL_TRACES_EXPORTER": "none"})  # fmt: skip
    try:
        until = time.monotonic() + 15
        while time.monotonic() < until:
            done = subprocess.run(
                ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"], capture_output=True, check=False
            )
            if done.returncode == 0:
                break
            time.sleep(0.1)
        yield port
    finally:
        child.kill()
        child.wait(10)


def test_debians_registry(app, docker_registry, packed, authority):
    host = f"127.0.0.1:{docker_registry}"
    config = app.top / "config.json"
    config.write_text(json.dumps({"auths": {host: {"auth": basic("ann", PASSWORD).split()[1]}}}))
    for name in ("db-1.2.3.tgz", "db-1.3.0.tgz"):
        (app.top / name).write_bytes(packed[name])
        run_helm(
            "push",
            app.top / name,
            f"oci://{host}/charts",
            "--ca-file",
            authority.ca,
            HELM_REGISTRY_CONFIG=str(config),
        )
    wanted(app, f"oci://{host}/charts").env["BECALM_CA_FILE"] = str(authority.ca)
    assert refused(app.generate(), "wants other credentials (401)")
    app.secret("one", url=f"{host}/charts", name="one", enableOCI="true", username="ann", password="wrong")
    assert refused(app.generate(), "wants other credentials (401)")
    app.secret("one", url=f"{host}/charts", name="one", enableOCI="true", username="ann", password=PASSWORD)
    assert ok(app.generate())
    wanted(app, f"oci://{host}/charts", version="^1.0.0")
    done = app.generate()
    assert "version: 1.3.0" in done.stdout
    assert "is not exact and no lock says which" in done.stderr
    wanted(app, f"oci://{host}/charts", version="7.0.0")
    assert refused(app.generate(), "does not have it")
    wanted(app, f"oci://{host}/charts", version="^7.0.0")
    assert refused(app.generate(), "has no version that fits")
