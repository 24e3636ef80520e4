"""`becalm sidecar`: the service and argocd-cmp-server, which live and end together."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from becalm.errors import ToolMissingError
from becalm.sources import process

CMP_SERVER = "/var/run/argocd/argocd-cmp-server"
#: Kubernetes kills 30 seconds after SIGTERM, unless it is told otherwise.
_GRACE = 27.0


def run(variables: Mapping[str, str]) -> int:
    """Start both, pass signals on, and end with the first of them; its exit code.

    As process 1 of a container this also reaps whatever else ends.

    Raises:
        ToolMissingError: argocd-cmp-server is not there.
    """
    server = variables.get("BECALM_CMP_SERVER", "") or CMP_SERVER
    if not os.access(server, os.X_OK):
        raise ToolMissingError(
            "argocd-cmp-server is not there",
            where=server,
            hint="mount Argo CD's volume var-files at /var/run/argocd",
        )
    own = [sys.executable, "-m", "becalm", "serve"]
    return process.together((own, [server]), env=variables, grace=_GRACE)
