"""The environment that argocd-cmp-server gives to `generate` (reposerver/repository)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from becalm.cmp import parameters, variables
from becalm.cmp.parameters import Parameters
from becalm.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationEnvironment:
    """What Argo CD says of the application: what it sets itself, and what the app team asks for.

    `name` is the instance name (`<namespace>_<app>` outside of the control plane's namespace),
    `release` the name without that prefix, `namespace` the destination namespace. `instant` is what
    the app team set as `BECALM_INSTANT` in `source.plugin.env`, else ""; `parameters` are those of
    `source.plugin.parameters`.
    """

    name: str
    release: str
    project: str
    namespace: str
    kube_version: str
    api_versions: tuple[str, ...]
    instant: str
    parameters: Parameters


#: What Argo CD always sets, and values are bound to.
IDENTITY = ("ARGOCD_APP_NAME", "ARGOCD_APP_PROJECT_NAME")


def missing(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The variables of an application's identity that are not set."""
    return tuple(name for name in IDENTITY if not environment.get(name))


def read(environment: Mapping[str, str]) -> ApplicationEnvironment:
    """Read the environment.

    Raises:
        ConfigError: the application's name or project is missing, or a parameter is wrong.
    """
    for variable in missing(environment):
        raise ConfigError(
            "the environment variable is not set",
            where=variable,
            hint="`becalm generate` is run by Argo CD; use `becalm render` by hand",
        )
    return read_partly(environment)


def read_partly(environment: Mapping[str, str]) -> ApplicationEnvironment:
    """Read the environment, of which the identity may be missing ("").

    Raises:
        ConfigError: a parameter is wrong.
    """
    name = environment.get("ARGOCD_APP_NAME", "")
    project = environment.get("ARGOCD_APP_PROJECT_NAME", "")
    versions = environment.get("KUBE_API_VERSIONS", "")
    given = parameters.read(environment.get("ARGOCD_APP_PARAMETERS", ""))
    return ApplicationEnvironment(
        name=name,
        release=name.partition("_")[2] or name,
        project=project,
        namespace=environment.get("ARGOCD_APP_NAMESPACE", ""),
        kube_version=environment.get("KUBE_VERSION", ""),
        api_versions=tuple(item for item in versions.split(",") if item),
        instant=environment.get("ARGOCD_ENV_BECALM_INSTANT", ""),
        parameters=replace(given, helm=variables.applied(given.helm, environment)),
    )


def repository_root(directory: Path, environment: Mapping[str, str]) -> Path:
    """The root of the tree that Argo CD handed over: the app's directory without the source's path.

    Where the path does not end as the directory does (Argo CD may hand over a part of the repository only), the
    app's directory is the root.
    """
    parts = PurePosixPath(environment.get("ARGOCD_APP_SOURCE_PATH", "")).parts
    parts = tuple(part for part in parts if part not in (".", "/"))
    if not parts or ".." in parts or directory.parts[-len(parts) :] != parts:
        return directory
    return directory.parents[len(parts) - 1]
