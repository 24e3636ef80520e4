"""What the operator says of `lookup`: how it is answered, and what may be read of a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from becalm.errors import ConfigError

Policy = Literal["empty", "recorded", "rendered", "live"]
POLICIES: tuple[str, ...] = get_args(Policy)
VARIABLE = "BECALM_LOOKUP"
ALLOW = "BECALM_LOOKUP_ALLOW"
PROJECTS = "BECALM_LOOKUP_PROJECTS"
#: In a rule, the namespace that the application is deployed to.
DESTINATION = "@destination"
#: Not the operator's: becalm tells it to becalm-helm below Kustomize.
_DIRECTORY = "BECALM_LOOKUP_DIRECTORY"
_SERVER = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
_KIND = re.compile(r"([a-z0-9.-]+/)?v[a-z0-9]+/[A-Z][A-Za-z0-9]*")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What may be read: a kind with its API version (`apps/v1/Deployment`), in one namespace.

    `namespace` is `*` for all, and for kinds that have none; `@destination` for the application's own.
    """

    kind: str
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """The policy; for `live` what may be read, for applications of which projects.

    `server` are the variables that tell a pod where its API server is. `directory` is where recorded answers are, if not
    beside the chart, "" for there.
    """

    policy: Policy = "empty"
    allowed: tuple[Rule, ...] = ()
    projects: tuple[str, ...] = ()
    server: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""


def read(variables: Mapping[str, str], policy: str = "") -> Looking:
    """The settings of the environment.

    Args:
        variables: the environment.
        policy: wins over that of the environment, where a person gives it.

    Raises:
        ConfigError: a variable is wrong.
    """
    chosen = policy or variables.get(VARIABLE, "") or "empty"
    if chosen not in POLICIES:
        raise ConfigError(
            f"{chosen[:60]!r} is no policy for lookup", where=VARIABLE, hint=f"write {' or '.join(POLICIES)}"
        )
    return Looking(
        policy=chosen,  # type: ignore[arg-type]  # as was just seen
        allowed=tuple(_rule(text) for text in variables.get(ALLOW, "").split()),
        projects=tuple(variables.get(PROJECTS, "").replace(",", " ").split()),
        directory=variables.get(_DIRECTORY, ""),
        server={name: variables[name] for name in _SERVER if name in variables},
    )


def written(looking: Looking, directory: str) -> dict[str, str]:
    """The variables of these settings, for a program that renders charts of the application in a directory."""
    return {
        VARIABLE: looking.policy,
        ALLOW: " ".join(f"{rule.kind}:{rule.namespace}" for rule in looking.allowed),
        PROJECTS: " ".join(looking.projects),
        _DIRECTORY: directory,
        **looking.server,
    }


def _rule(text: str) -> Rule:
    kind, colon, namespace = text.partition(":")
    if (
        not colon
        or not _KIND.fullmatch(kind)
        or not (namespace in ("*", DESTINATION) or _NAMESPACE.fullmatch(namespace))
    ):
        raise ConfigError(
            f"{text[:100]!r} is no rule",
            where=ALLOW,
            hint="write VERSION/KIND:NAMESPACE, for example v1/Secret:shop or apps/v1/Deployment:@destination",
        )
    return Rule(kind=kind, namespace=namespace)
