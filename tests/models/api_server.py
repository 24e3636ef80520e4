"""A small API server: discovery, get and list, from a set of objects, as far as helm's `lookup` asks one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: API version, plural, kind, and whether it has a namespace.
RESOURCES = (
    ("v1", "secrets", "Secret", True),
    ("v1", "configmaps", "ConfigMap", True),
    ("v1", "nodes", "Node", False),
    ("apps/v1", "deployments", "Deployment", True),
)


class ApiServer:
    """Answers from its objects; `asked` are the paths that it was asked for."""

    def __init__(self, objects: Sequence[dict[str, Any]]) -> None:
        self.objects = list(objects)
        self.asked: list[str] = []
        self.address = ""

    def answer(self, path: str) -> dict[str, Any] | None:
        """The JSON at a path; None where there is nothing."""
        self.asked.append(path)
        version = {"groupVersion": "apps/v1", "version": "v1"}
        group = {"name": "apps", "versions": [version], "preferredVersion": version}
        fixed = {
            "version": {"major": "1", "minor": "34", "gitVersion": "v1.34.1"},
            "api": {"kind": "APIVersions", "versions": ["v1"]},
            "apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]},
            "api/v1": _list("v1"),
            "apis/apps/v1": _list("apps/v1"),
        }
        path = path.strip("/")
        for prefix, of in (("api/v1/", "v1"), ("apis/apps/v1/", "apps/v1")):
            if path.startswith(prefix):
                return self._found(of, path.removeprefix(prefix).split("/"))
        return fixed.get(path)

    def _found(self, version: str, rest: list[str]) -> dict[str, Any] | None:
        namespace = ""
        if rest[0] == "namespaces":
            _, namespace, *rest = rest
        kinds = {plural: kind for of, plural, kind, _ in RESOURCES if of == version}
        there = [
            obj
            for obj in self.objects
            if (obj["apiVersion"], obj["kind"]) == (version, kinds.get(rest[0]))
            and namespace in ("", obj["metadata"].get("namespace", ""))
        ]
        if len(rest) == 1:
            kind = f"{kinds.get(rest[0], '')}List"
            return {"apiVersion": version, "kind": kind, "metadata": {"resourceVersion": "1"}, "items": there}
        return next((obj for obj in there if obj["metadata"]["name"] == rest[1]), None)


def _list(version: str) -> dict[str, Any]:
    resources = [
        {
            "name": plural,
            "singularName": "",
            "namespaced": has_namespace,
            "kind": kind,
            "verbs": ["get", "list"],
        }
        for of, plural, kind, has_namespace in RESOURCES
        if of == version
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


@contextmanager
def serving(server: ApiServer, directory: Path) -> Iterator[Path]:
    """The server on the loopback interface, while the block runs; a kubeconfig that leads to it."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            found = server.answer(self.path.partition("?")[0])
            body = found or {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": "NotFound",
                "code": 404,
            }
            data = json.dumps(body).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: it is a test."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    server.address = f"http://127.0.0.1:{listening.server_address[1]}"
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": server.address}}],
        "users": [{"name": "it", "user": {}}],
    }  # fmt: skip
    path = directory / "kubeconfig"
    path.write_text(json.dumps(config))
    try:
        yield path
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join(10)
