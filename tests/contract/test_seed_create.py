"""`becalm seed create` against an API server on the loopback, with TLS of its own authority and a bearer token."""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from servers import Authority

from becalm import bootstrap
from becalm.derive import seed
from becalm.errors import ConfigError

TOKEN = "eyJ0ZXN0IjoxfQ.planted-token.c2ln"


class ApiServer:
    """As much of Kubernetes' API as creates Secrets: names are taken once, by whom the token lets."""

    def __init__(self, authority: Authority, *, rights: bool = True) -> None:
        self.secrets: dict[str, dict] = {}
        self.asked: list[str] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def do_POST(self):
                api.asked.append(f"{self.command} {self.path}")
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.status(*api.answer(self.path, self.headers.get("Authorization"), sent, rights=rights))

            def refuse(self):
                api.asked.append(f"{self.command} {self.path}")
                self.status(405, "MethodNotAllowed", "")

            do_GET = do_PUT = do_PATCH = do_DELETE = refuse  # noqa: N815  # as http.server calls them

            def status(self, code: int, reason: str, message: str) -> None:
                body = json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_):
                pass  # a client that does not trust the certificate goes away

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.certificate, authority.key)
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, path, authorization, sent, *, rights):
        if authorization != f"Bearer {TOKEN}":
            return 401, "Unauthorized", ""
        if not rights:
            return 403, "Forbidden", f"cannot create {json.dumps(sent)}"
        name = f"{path.split('/')[4]}/{sent['metadata']['name']}"
        if name in self.secrets:
            return 409, "AlreadyExists", ""
        if name.startswith("gone/"):
            return 404, "NotFound", ""
        if name.startswith("webhook/"):
            return 409, "Conflict", f"try again {json.dumps(sent)}"
        self.secrets[name] = sent
        return 201, "", ""

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "tls")


@pytest.fixture
def account(tmp_path, authority):
    """What Kubernetes mounts into a pod."""
    directory = tmp_path / "account"
    directory.mkdir()
    (directory / "token").write_text(f"{TOKEN}\n")
    (directory / "ca.crt").write_bytes(authority.ca.read_bytes())
    return directory


@contextmanager
def serving(authority, **options):
    server = ApiServer(authority, **options)
    try:
        yield server
    finally:
        server.close()


def cluster(account, port):
    variables = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
    return bootstrap.in_cluster(variables, account)


def test_a_secret_is_created_with_a_seed_that_becalm_reads(authority, account):
    with serving(authority) as api:
        outcome = bootstrap.create(cluster(account, api.port), namespace="argocd", name="becalm-seed")
        sent = api.secrets["argocd/becalm-seed"]
    assert outcome.created
    assert sent["kind"] == "Secret"
    assert list(sent["data"]) == ["seed"]
    assert seed.parse(base64.b64decode(sent["data"]["seed"]), where="").id == outcome.fingerprint
    assert api.asked == ["POST /api/v1/namespaces/argocd/secrets"]


def test_a_secret_that_is_there_is_not_touched(authority, account):
    with serving(authority) as api:
        first = bootstrap.create(cluster(account, api.port), namespace="argocd", name="becalm-seed")
        before = json.dumps(api.secrets)
        second = bootstrap.create(cluster(account, api.port), namespace="argocd", name="becalm-seed")
        assert json.dumps(api.secrets) == before
    assert first.created
    assert second == bootstrap.Outcome(created=False, fingerprint="")
    assert {line.split()[0] for line in api.asked} == {"POST"}


def test_two_at_once_make_one_seed(authority, account):
    outcomes = []
    with serving(authority) as api:
        where = cluster(account, api.port)

        def run():
            outcomes.append(bootstrap.create(where, namespace="argocd", name="becalm-seed"))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        stored = api.secrets["argocd/becalm-seed"]["data"]["seed"]
    created = [outcome for outcome in outcomes if outcome.created]
    assert len(outcomes) == 4
    assert [one.fingerprint for one in created] == [seed.parse(base64.b64decode(stored), where="").id]


@pytest.mark.parametrize(
    ("namespace", "options", "said"),
    [
        ("argocd", {"rights": False}, ("argocd/becalm-seed: the API server did not create the Secret (status 403); "
         "its ServiceAccount needs a Role that may create Secrets there (manifests/seed)")),
        ("gone", {}, ("gone/becalm-seed: the API server did not create the Secret (status 404); "
         "the namespace is not there")),
        ("webhook", {}, ("webhook/becalm-seed: the API server did not create the Secret (status 409); "
         "look at the API server's events, and try again")),
    ],
)  # fmt: skip
def test_a_refusal_is_an_error_that_shows_neither_seed_nor_token(
    authority, account, namespace, options, said
):
    with serving(authority, **options) as api, pytest.raises(ConfigError) as caught:
        bootstrap.create(cluster(account, api.port), namespace=namespace, name="becalm-seed")
    assert str(caught.value) == said


def test_another_token_is_refused(authority, account):
    (account / "token").write_text("another")
    with serving(authority) as api, pytest.raises(ConfigError, match=r"\(status 401\)") as caught:
        bootstrap.create(cluster(account, api.port), namespace="argocd", name="becalm-seed")
    assert "another" not in str(caught.value)


def test_a_server_of_another_authority_is_not_told_the_token(tmp_path, account):
    with (
        serving(Authority(tmp_path / "other")) as api,
        pytest.raises(ConfigError, match="the API server cannot be trusted"),
    ):
        bootstrap.create(cluster(account, api.port), namespace="argocd", name="becalm-seed")
    assert api.asked == []


def test_a_server_that_is_not_there_is_an_error(account):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        with pytest.raises(ConfigError, match="the API server cannot be reached: Connection refused"):
            bootstrap.create(cluster(account, unused.getsockname()[1]), namespace="argocd", name="s")


def test_a_server_that_does_not_answer_is_an_error_in_time(account, monkeypatch):
    monkeypatch.setattr(bootstrap, "SECONDS", 0.3)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ConfigError, match="did not answer within"),
    ):
        bootstrap.create(cluster(account, silent.getsockname()[1]), namespace="argocd", name="s")


def test_an_answer_that_is_not_of_kubernetes_is_an_error(account, authority, monkeypatch):
    monkeypatch.setattr(ApiServer, "answer", lambda *_, **__: (409, 7, ""))
    with serving(authority) as api, pytest.raises(ConfigError, match="status 409"):
        bootstrap.create(cluster(account, api.port), namespace="argocd", name="s")


@pytest.mark.parametrize(
    ("names", "where"),
    [
        ({"namespace": "a/../kube-system"}, "--namespace"),
        ({"namespace": ""}, "--namespace"),
        ({"name": "../x"}, "--name"),
        ({"name": "UPPER"}, "--name"),
        ({"name": "a" * 254}, "--name"),
        ({"key": "a/b"}, "--key"),
        ({"key": ".hidden"}, "--key"),
    ],
)
def test_names_that_kubernetes_does_not_have_are_refused_before_anything_is_asked(account, names, where):
    with pytest.raises(ConfigError) as caught:
        bootstrap.create(cluster(account, 1), **{"namespace": "argocd", "name": "becalm-seed", **names})
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("variables", "token", "said"),
    [
        ({}, "t", "this is no pod of a cluster"),
        ({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "x"}, "t", "this is no port"),
        ({"KUBERNETES_SERVICE_HOST": "h"}, "", "there is no token"),
        ({"KUBERNETES_SERVICE_HOST": "h"}, "a\nHost: b", "there is no token"),
        ({"KUBERNETES_SERVICE_HOST": "h"}, "ü", "there is no token"),
    ],
)
def test_what_is_not_a_pod_is_an_error(tmp_path, variables, token, said):
    (tmp_path / "token").write_text(token)
    with pytest.raises(ConfigError, match=said):
        bootstrap.in_cluster(variables, tmp_path)


def test_certificates_that_are_missing_are_an_error(account):
    (account / "ca.crt").unlink()
    with pytest.raises(ConfigError, match="certificates cannot be read"):
        bootstrap.create(cluster(account, 1), namespace="argocd", name="s")


def test_a_clusters_representation_shows_no_token(account):
    assert TOKEN not in repr(cluster(account, 6443))


def becalm(account: Path, port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a pod runs it, but for where the account is mounted."""
    code = (
        "import pathlib, sys; from becalm import bootstrap, cli; read = bootstrap.in_cluster; "
        f"bootstrap.in_cluster = lambda variables: read(variables, pathlib.Path({str(account)!r})); "
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    variables = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
    return subprocess.run(
        [sys.executable, "-c", code, "seed", "create", *arguments],
        env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_the_command_says_in_one_line_what_it_did(authority, account):
    with serving(authority) as api:
        first = becalm(account, api.port)
        again = becalm(account, api.port)
        other = becalm(account, api.port, "--namespace", "team", "--name", "s", "--key", "2026")
        stored = api.secrets["argocd/becalm-seed"]["data"]["seed"]
    fingerprint = seed.parse(base64.b64decode(stored), where="").id
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == (
        f"argocd/becalm-seed: a fresh seed, fingerprint {fingerprint}; keep a backup of it\n"
    )
    assert (again.returncode, again.stdout, again.stderr) == (
        0, "argocd/becalm-seed: is there already; nothing was changed\n", "",
    )  # fmt: skip
    assert list(api.secrets["team/s"]["data"]) == ["2026"]
    assert other.returncode == 0
    for run in (first, again, other):
        assert stored not in run.stdout + run.stderr
        assert TOKEN not in run.stdout + run.stderr


def test_the_command_fails_where_it_has_no_rights(authority, account):
    with serving(authority, rights=False) as api:
        run = becalm(account, api.port)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("Error: argocd/becalm-seed: the API server did not create the Secret")
