"""The few parameters that people set as variables of the source (`source.plugin.env`, ARGOCD_ENV_...).

Other plugins are told everything like that, so these go on working when an Application moves over. A parameter of the same
meaning wins. Variables that hold options of helm as free text are refused with a reason, since ignoring them
would render something else than was meant: an option could run a program or read a file of the sidecar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from becalm.cmp.parameters import HelmParameters
from becalm.errors import ConfigError

PREFIX = "ARGOCD_ENV_"
WHERE = "source.plugin.env"
RELEASE_NAME, NAMESPACE, VALUE_FILES = "RELEASE_NAME", "NAMESPACE", "VALUE_FILES"
#: What becalm reads, with what it means; docs/dependencies.md has the same table.
NAMES = {
    RELEASE_NAME: "releaseName",
    NAMESPACE: "namespace",
    VALUE_FILES: "valueFiles, separated by commas or lines",
}
_FREE_TEXT = re.compile(r"(helm|kustomize)_(\w+_)?(args|arguments|flags|options|opts|params)", re.IGNORECASE)
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST = 253


def applied(helm: HelmParameters, environment: Mapping[str, str]) -> HelmParameters:
    """The parameters with what the source's variables say, where no parameter says it.

    Raises:
        ConfigError: a variable holds options of a tool, or is not what it may be.
    """
    given = {
        name.removeprefix(PREFIX): value for name, value in environment.items() if name.startswith(PREFIX)
    }
    for name, value in sorted(given.items()):
        if value and _FREE_TEXT.fullmatch(name):
            raise ConfigError(
                "options as free text are not passed on, since they could run programs or read other files",
                where=f"{WHERE}: {name[:60]}",
                hint="set source.plugin.parameters instead (docs/parameters.md)",
            )
    release, namespace = given.get(RELEASE_NAME, ""), given.get(NAMESPACE, "")
    if len(release) > _LONGEST:
        raise ConfigError("the value is longer than 253 characters", where=f"{WHERE}: {RELEASE_NAME}")
    if namespace and not _NAMESPACE.fullmatch(namespace):
        raise ConfigError("the value is no name of a namespace", where=f"{WHERE}: {NAMESPACE}")
    files = tuple(name.strip() for name in re.split(r"[,\n]", given.get(VALUE_FILES, "")) if name.strip())
    return replace(
        helm,
        release_name=helm.release_name or release,
        namespace=helm.namespace or namespace,
        value_files=helm.value_files or files,
    )
