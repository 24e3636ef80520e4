"""Chart repositories and registries on the loopback interface, for tests: small, bounded, and they tell what they were asked.

`Registry` speaks as much of the OCI distribution API as `helm pull` uses, with basic authentication or with tokens
(https://distribution.github.io/distribution/spec/auth/token/). Debian's docker-registry is tried beside it, where it is.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import ipaddress
import json
import socket
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A CA of the test's own, and a server certificate of it for 127.0.0.1 and localhost."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self.ca = directory / "ca.pem"
        self.certificate = directory / "server.pem"
        self.key = directory / "server.key"
        now = dt.datetime.now(dt.UTC)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test CA")])
        root = ec.generate_private_key(ec.SECP256R1())
        server = ec.generate_private_key(ec.SECP256R1())

        def builder(subject, public):
            return (
                x509.CertificateBuilder()
                .subject_name(subject)
                .issuer_name(name)
                .public_key(public)
                .serial_number(x509.random_serial_number())
                .not_valid_before(now - dt.timedelta(hours=1))
                .not_valid_after(now + dt.timedelta(days=1))
            )

        constraints = x509.BasicConstraints(ca=True, path_length=None)
        authority = builder(name, root.public_key()).add_extension(constraints, critical=True)
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        leaf = builder(subject, server.public_key()).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        pem = serialization.Encoding.PEM
        self.ca.write_bytes(authority.sign(root, hashes.SHA256()).public_bytes(pem))
        self.certificate.write_bytes(leaf.sign(root, hashes.SHA256()).public_bytes(pem))
        self.key.write_bytes(
            server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )


class Site:
    """One HTTP server. `answer` is given path and headers, and gives status, headers and body."""

    def __init__(self, answer, authority: Authority | None = None) -> None:
        site = self
        self.asked: list[tuple[str, dict[str, str]]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def do_GET(self):
                site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                status, headers, body = answer(self.path, site.asked[-1][1])
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815  # as http.server calls it

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_):
                pass  # a client that does not trust the certificate goes away

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        if authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(authority.certificate, authority.key)
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"http{'s' if authority else ''}://127.0.0.1:{self.port}"
        self.oci = f"oci://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def sent_credentials(self) -> bool:
        return any("authorization" in headers for _, headers in self.asked)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def files(found: dict[str, bytes], user: str = "", password: str = ""):
    """What answers with files by path, with basic authentication if a user is given."""

    def answer(path, headers):
        if user and headers.get("authorization") != basic(user, password):
            return 401, {"WWW-Authenticate": 'Basic realm="charts"'}, b"no"
        body = found.get(path.partition("?")[0])
        if body is not None and body.startswith(b"->"):
            return 302, {"Location": body[2:].decode()}, b""
        return (404, {}, b"none") if body is None else (200, {}, body)

    return answer


def registry(  # noqa: C901  # as small as a registry can be
    charts: dict[str, dict[str, bytes]],
    *,
    user: str = "",
    password: str = "",
    token: str = "",
    realm=lambda: "",
):
    """What answers as an OCI registry: charts by repository and tag; with `token`, tokens are wanted.

    `realm` gives the address of the token server, which is the registry itself.
    """
    blobs: dict[str, bytes] = {}
    manifests: dict[tuple[str, str], bytes] = {}

    def blob(data: bytes) -> str:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return digest

    def describe(kind: str, data: bytes) -> dict:
        return {"mediaType": f"application/vnd.cncf.helm.{kind}", "digest": blob(data), "size": len(data)}

    media = "application/vnd.oci.image.manifest.v1+json"
    for name, tags in charts.items():
        for tag, data in tags.items():
            config = json.dumps(
                {"apiVersion": "v2", "name": name.rpartition("/")[2], "version": tag}
            ).encode()
            body = json.dumps(
                {
                    "schemaVersion": 2,
                    "mediaType": media,
                    "config": describe("config.v1+json", config),
                    "layers": [describe("chart.content.v1.tar+gzip", data)],
                }
            ).encode()
            manifests[name, tag] = manifests[name, blob(body)] = body

    def answer(path, headers):  # noqa: PLR0911  # one answer for each kind of question
        given = headers.get("authorization", "")
        if path.startswith("/token"):
            if given != basic(user, password):
                return 401, {}, b"{}"
            return 200, {"Content-Type": "application/json"}, json.dumps({"token": token}).encode()
        if token and given != f"Bearer {token}":
            challenge = f'Bearer realm="{realm()}/token",service="test",scope="repository:x:pull"'
            return 401, {"WWW-Authenticate": challenge}, b"{}"
        if user and not token and given != basic(user, password):
            return 401, {"WWW-Authenticate": 'Basic realm="test"'}, b"{}"
        name, _, reference = path.removeprefix("/v2/").partition("/manifests/")
        if (body := manifests.get((name, reference))) is not None:
            digest = "sha256:" + hashlib.sha256(body).hexdigest()
            return 200, {"Content-Type": media, "Docker-Content-Digest": digest}, body
        if (body := blobs.get(path.rpartition("/")[2])) is not None:
            return 200, {"Content-Type": "application/octet-stream"}, body
        name, tags, _ = path.removeprefix("/v2/").partition("/tags/list")
        if tags and name in charts:
            return (
                200,
                {"Content-Type": "application/json"},
                json.dumps({"name": name, "tags": list(charts[name])}).encode(),
            )
        if path == "/v2/":
            return 200, {}, b"{}"
        return (
            404,
            {"Content-Type": "application/json"},
            b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "none"}]}',
        )

    return answer


@contextmanager
def silent():
    """A port that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
