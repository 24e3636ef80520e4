"""Live answers: the sidecar's own ServiceAccount reads the cluster, as far as the operator allows it.

Whoever can write a chart can ask for anything, so nothing is read that no rule names, for no application whose project
is not named, and what is refused is an error, never an empty answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from becalm.config.looking import ALLOW, DESTINATION, PROJECTS, Looking
from becalm.derive.labels import Application
from becalm.errors import ConfigError
from becalm.sources.cluster import Objects
from becalm.stabilise.looking import Asked, Lookups, Ran
from becalm.stabilise.recorded import trimmed
from becalm.templates.runtime import Unknown


class Live(Lookups):
    """Answers of the cluster, each asked for once in a render.

    Args:
        looking: what may be read, and for whom.
        application: for which it is.
        objects: of the cluster.
    """

    policy: ClassVar[str] = "live"
    unknown: ClassVar[Unknown] = "ask"
    rounds: ClassVar[int] = 8

    def __init__(self, looking: Looking, *, application: Application, objects: Objects) -> None:
        super().__init__()
        self._looking = looking
        self._application = application
        self._objects = objects

    def learn(self, missing: Sequence[Ran]) -> bool:
        """Read what is looked up.

        Raises:
            ConfigError: it is not allowed, or the API server cannot be reached.
            SourceError: the API version is not there.
        """
        fresh: list[Asked] = []
        for one in sorted(missing, key=lambda one: (one.asked, one.place)):
            if one.asked not in self.answers:
                self._require_allowed(one)
                asked = one.asked
                found = self._objects.find(asked.api_version, asked.kind, asked.namespace, asked.name)
                self.answers[asked] = trimmed(found)
                fresh.append(asked)
        return any(self.answers[asked] for asked in fresh)

    def _require_allowed(self, one: Ran) -> None:
        project, asked = self._application.project, one.asked
        if project not in self._looking.projects and "*" not in self._looking.projects:
            raise ConfigError(
                f"{asked} is looked up, and the project {project!r} may not read the cluster",
                where=one.place,
                hint=f"the operator names projects whose applications are in this cluster in {PROJECTS}",
            )
        kind = f"{asked.api_version}/{asked.kind}"
        namespaces = {rule.namespace for rule in self._looking.allowed if rule.kind == kind}
        own = asked.namespace == self._application.namespace and DESTINATION in namespaces
        if "*" in namespaces:
            return
        if asked.namespace and (own or asked.namespace in namespaces):
            resource = self._objects.resource(asked.api_version, asked.kind)
            # Of a kind without namespaces, any object would be found in any of them.
            if resource is None or resource.is_namespaced:
                return
        raise ConfigError(
            f"{asked} is looked up, which is not allowed",
            where=one.place,
            hint=f"the operator allows it with {ALLOW}, for example {kind}:{asked.namespace or '*'}",
        )
