"""Records as the service writes them, for tests of the web process."""

from __future__ import annotations

import json

NOW = 1_790_000_000.0
DAY = 86_400


def told(app: str = "shop", **fields) -> dict:
    """A record with something in each field."""
    return {
        "at": NOW - 60, "app": app, "project": "default", "namespace": "space", "path": "apps/shop",
        "source": "helm", "outcome": "rendered", "code": 0, "error": "", "seconds": 1.25,
        "stages": {"queue": 0.5, "render": 0.75}, "runs": 2, "objects": 12, "bytes": 34_567, "seed": "76b2faea",
        "warnings": ["Chart.yaml: the dependency db is not pinned"],
        "stabilised": [{"object": "Secret/space/db", "path": "data.password", "function": "randAlphaNum", "place": "templates/secret.yaml:7"}],
        "changes": [{"object": "Deployment.apps/space/web", "path": "spec.replicas", "rule": "core/replicas", "why": "The autoscaler owns it.", "verb": "strip"}],
        "unknown": [{"object": "Deployment.apps/space/web", "path": "spec.replica", "nearest": "replicas"}],
        "diffs": [{"object": "Deployment.apps/space/web", "before": "kind: Deployment\nspec:\n  replicas: 1\n", "after": "kind: Deployment\nspec: {}\n"}],
        "certificates": [{"object": "Secret/space/tls", "path": "data[tls.crt]", "subject": "CN=shop", "from": NOW - 10 * DAY, "until": NOW + 80 * DAY, "changes": NOW + 50 * DAY}],
        "killed": 0, **fields,
    }  # fmt: skip


def line(app: str = "shop", **fields) -> bytes:
    return json.dumps(told(app, **fields)).encode()
