"""Asking the API server of the cluster that this pod is in, with the ServiceAccount of the pod.

No answer's text is ever shown, since it may repeat what was asked.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from becalm.errors import ConfigError

#: Where Kubernetes mounts the token and the certificates of a pod's ServiceAccount.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The API server of the cluster that this pod is in.

    Attributes:
        host: a name or an address, without brackets.
        port: its TCP port.
        authorities: a PEM file of the certificates that it is trusted by.
        token: of the pod's ServiceAccount.
    """

    host: str
    port: int
    authorities: Path
    token: str = field(repr=False)


def in_cluster(variables: Mapping[str, str], account: Path | None = None, *, elsewhere: str) -> Cluster:
    """The API server, as Kubernetes tells it to every pod.

    Args:
        variables: the environment.
        account: where the ServiceAccount is mounted, if not at the usual place.
        elsewhere: what to do outside of a cluster.

    Raises:
        ConfigError: this is no pod, or it has no token.
    """
    account = ACCOUNT if account is None else account
    host = variables.get("KUBERNETES_SERVICE_HOST", "")
    port = variables.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("this is no pod of a cluster", where="KUBERNETES_SERVICE_HOST", hint=elsewhere)
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ConfigError("this is no port", where="KUBERNETES_SERVICE_PORT")
    path = account / "token"
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        token = ""
    if not re.fullmatch(r"[!-~]+", token):
        raise ConfigError(
            "there is no token", where=str(path), hint="set automountServiceAccountToken of the pod to true"
        )
    return Cluster(host=host, port=int(port), authorities=account / "ca.crt", token=token)


def ask(  # noqa: PLR0913  # one request of HTTP
    cluster: Cluster, method: str, path: str, body: bytes | None = None, *, seconds: float, most: int
) -> tuple[int, bytes]:
    """Ask once; the status and the body.

    Args:
        cluster: the API server.
        method: of HTTP.
        path: escaped.
        body: JSON.
        seconds: until no answer is one.
        most: bytes of the answer; one byte more is read, so that a longer one is seen.

    Raises:
        ConfigError: it cannot be reached or trusted.
    """
    where = f"https://{f'[{cluster.host}]' if ':' in cluster.host else cluster.host}:{cluster.port}"
    try:
        context = ssl.create_default_context(cafile=str(cluster.authorities))
    except (OSError, ssl.SSLError):
        raise ConfigError(
            "the cluster's certificates cannot be read", where=str(cluster.authorities)
        ) from None
    connection = http.client.HTTPSConnection(cluster.host, cluster.port, context=context, timeout=seconds)
    headers = {
        "Authorization": f"Bearer {cluster.token}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "becalm",
    }
    try:
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(most + 1)
    except ssl.SSLError as error:
        raise ConfigError(
            f"the API server cannot be trusted: {error.reason or 'TLS fails'}", where=where
        ) from None
    except socket.gaierror:
        raise ConfigError("the API server's name is not known", where=where) from None
    except TimeoutError:
        raise ConfigError(
            f"the API server did not answer within {seconds:g} seconds",
            where=where,
            hint="check that a NetworkPolicy lets this pod reach it",
        ) from None
    except (OSError, http.client.HTTPException) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise ConfigError(
            f"the API server cannot be reached: {what}", where=where, hint="check the pod's network"
        ) from None
    finally:
        connection.close()
