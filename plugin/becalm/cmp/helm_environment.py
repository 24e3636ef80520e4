"""The environment of the program that renders charts for Kustomize, which reads what `becalm generate` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from becalm.cmp import parameters

SEED_FILE = "BECALM_SEED_FILE"
#: util/git/creds.go, `Environ` of each kind of credentials, as far as Git needs them for other repositories of the server.
_GIT = (
    "GIT_ASKPASS", "ARGOCD_GIT_ASKPASS_NONCE", "ARGOCD_BINARY_NAME", "ARGOCD_ASK_PASS_SOCK", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO",
    "ARGOCD_APP_SOURCE_REPO_URL",
)  # fmt: skip
_PREFIXES = ("ARGOCD_APP_", "ARGOCD_ENV_", "KUBE_", "BECALM_")
#: Of a cache that what renders charts for Kustomize does not ask, with its password.
_NOT_NEEDED = ("BECALM_REDIS_",)


def passed(variables: Mapping[str, str]) -> dict[str, str]:
    """Of all variables, those that `generate` reads: Argo CD's of the application, and becalm's own."""
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(_PREFIXES) and not name.startswith(_NOT_NEEDED)
    }


def git(variables: Mapping[str, str]) -> dict[str, str]:
    """Of all variables, Argo CD's credentials of the application's repository (`provideGitCreds`), and its address."""
    return {name: variables[name] for name in _GIT if variables.get(name)}


def written(  # noqa: PLR0913  # all that values are derived from
    *,
    name: str,
    project: str,
    namespace: str,
    cluster: str,
    instant: str,
    windows: Sequence[str],
    epoch: str,
    item_epochs: Mapping[str, str],
    cache: str,
    helm: str,
) -> dict[str, str]:
    """The same where there are no variables, since a person gave options.

    Args:
        name: the application's.
        project: the application's.
        namespace: the destination.
        cluster: the cluster's id.
        instant: RFC 3339.
        windows: of certificates: window, margin and anchor, "" for the usual.
        epoch: the application's.
        item_epochs: by item.
        cache: a directory, "" for none.
        helm: the real helm.
    """
    epochs: list[dict[str, object]] = [{"name": parameters.EPOCH, "string": epoch}] if epoch else []
    if item_epochs:
        epochs.append({"name": parameters.EPOCHS, "map": dict(item_epochs)})
    window, margin, anchor = windows
    return {
        "ARGOCD_APP_NAME": name,
        "ARGOCD_APP_PROJECT_NAME": project,
        "ARGOCD_APP_NAMESPACE": namespace,
        "ARGOCD_APP_PARAMETERS": json.dumps(epochs),
        "BECALM_CLUSTER": cluster,
        "BECALM_INSTANT": instant,
        "BECALM_CERTIFICATE_WINDOW": window,
        "BECALM_CERTIFICATE_MARGIN": margin,
        "BECALM_CERTIFICATE_ANCHOR": anchor,
        "BECALM_CACHE_DIR": cache or "off",
        "BECALM_HELM": helm,
    }
