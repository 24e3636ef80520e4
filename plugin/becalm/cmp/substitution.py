"""Argo CD's substitution of its own variables: `$NAME` and `${NAME}`, as Go's os.Expand reads them.

Argo CD does it in values of Helm parameters, and in paths of values files and of file parameters
(util/helm, reposerver/repository), with the variables ARGOCD_APP_*. An unknown name gives nothing, `$$` a
dollar sign (pkg/apis/application/v1alpha1, `Env.Envsubst`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: What `newEnv` of reposerver/repository sets, and nothing else of the environment.
NAMES = (
    "ARGOCD_APP_NAME", "ARGOCD_APP_NAMESPACE", "ARGOCD_APP_PROJECT_NAME", "ARGOCD_APP_REVISION",
    "ARGOCD_APP_REVISION_SHORT", "ARGOCD_APP_REVISION_SHORT_8", "ARGOCD_APP_SOURCE_PATH",
    "ARGOCD_APP_SOURCE_REPO_URL", "ARGOCD_APP_SOURCE_TARGET_REVISION",
)  # fmt: skip
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>[^}]*)\}|(?P<open>\{)|(?P<name>[*#$@!?\-0-9]|[A-Za-z0-9_]+))?")


def expand(text: str, environment: Mapping[str, str]) -> str:
    """A text with its variables replaced."""
    return _VARIABLE.sub(lambda match: _value(match, environment), text)


def _value(match: re.Match[str], environment: Mapping[str, str]) -> str:
    if match[0] == "$":
        return "$"
    if match["open"]:
        # Go eats a brace that is never closed, with its dollar sign.
        return ""
    name = match["name"] if match["braced"] is None else match["braced"]
    if name == "$":
        return "$"
    return environment.get(name, "") if name in NAMES else ""
