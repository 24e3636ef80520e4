"""A seed for a cluster that has none: one Secret, created once and never changed.

`becalm seed create` runs as a Job with a ServiceAccount that may create Secrets and nothing else. It asks the API
server by one POST. That cannot overwrite: of two who create the same name one wins, and the other is
answered with 409 (https://kubernetes.io/docs/reference/using-api/api-concepts/). So it may run as often as it likes.

The seed is made here and sent to the API server only. No answer's text is shown, since it may repeat what was asked.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from becalm.derive import seed
from becalm.errors import ConfigError
from becalm.sources import api_server
from becalm.sources.api_server import ACCOUNT, Cluster

SECONDS = 30
_MOST = 1024 * 1024
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_ELSEWHERE = "outside a cluster, use `becalm seed new FILE` and `kubectl create secret generic`"
_REMEDIES = {
    401: "the token of the ServiceAccount is not accepted",
    403: "its ServiceAccount needs a Role that may create Secrets there (manifests/seed)",
    404: "the namespace is not there",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Whether the Secret was created, and the fingerprint of its seed: "" where it was there already."""

    created: bool
    fingerprint: str


def in_cluster(variables: Mapping[str, str], account: Path = ACCOUNT) -> Cluster:
    """The API server, as Kubernetes tells it to every pod.

    Raises:
        ConfigError: this is no pod, or it has no token.
    """
    return api_server.in_cluster(variables, account, elsewhere=_ELSEWHERE)


def create(cluster: Cluster, *, namespace: str, name: str, key: str = "seed") -> Outcome:
    """Create a Secret with a fresh seed, unless there is one of that name.

    Args:
        cluster: the API server.
        namespace: of the Secret.
        name: of the Secret.
        key: of the seed in the Secret.

    Raises:
        ConfigError: a name is not valid, or the API server cannot be reached or refuses.
    """
    parts = name.split(".")
    if not _LABEL.fullmatch(namespace):
        raise ConfigError(f"{namespace!r} is no name of a namespace", where="--namespace")
    if len(name) > 253 or not all(map(_LABEL.fullmatch, parts)):
        raise ConfigError(f"{name!r} is no name of a Secret", where="--name")
    if not _KEY.fullmatch(key) or key.startswith("."):
        # Names that begin with a dot are not read as seeds, see config/load.py.
        raise ConfigError(f"{key!r} is no key for a seed", where="--key")
    content = seed.new()
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/part-of": "becalm"}},
        "type": "Opaque",
        "data": {key: base64.b64encode(content).decode()},
    }
    status, reason = _post(cluster, f"/api/v1/namespaces/{namespace}/secrets", json.dumps(body).encode())
    if status == http.client.CREATED:
        return Outcome(created=True, fingerprint=seed.parse(content, where=name).id)
    # 409 has other reasons as well, such as a conflict with a webhook's change.
    if status == http.client.CONFLICT and reason == "AlreadyExists":
        return Outcome(created=False, fingerprint="")
    raise ConfigError(
        f"the API server did not create the Secret (status {status})",
        where=f"{namespace}/{name}",
        hint=_REMEDIES.get(status, "look at the API server's events, and try again"),
    )


def _post(cluster: Cluster, path: str, body: bytes) -> tuple[int, str]:
    """Ask once; the status, and the reason of a Kubernetes Status (or "")."""
    status, answer = api_server.ask(cluster, "POST", path, body, seconds=SECONDS, most=_MOST)
    return status, _reason(answer[:_MOST])


def _reason(text: bytes) -> str:
    """The reason that a Status names, which is one of Kubernetes' own words."""
    try:
        status = json.loads(text)
    except ValueError:
        return ""
    reason = status.get("reason", "") if isinstance(status, dict) else ""
    return reason if isinstance(reason, str) else ""
