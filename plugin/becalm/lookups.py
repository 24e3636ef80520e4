"""From what the operator says of `lookup` to what answers it, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from becalm.config.looking import VARIABLE, Looking
from becalm.derive.labels import Application
from becalm.derive.seed import Seed
from becalm.errors import ConfigError, Warned, counted
from becalm.stabilise.looking import MOST_CHARACTERS, Looked, Lookups

_SHOWN = 5
_SECONDS = 10.0
_OK, _NOT_FOUND = 200, 404
_ELSEWHERE = "outside of a cluster, record what is looked up with `becalm lookup record`"
_REMEDIES = {
    200: "look up single objects",
    401: "the token of the ServiceAccount is not accepted",
    403: "its ServiceAccount needs a Role that may read this (manifests/lookup)",
}


def answering(
    looking: Looking, *, directory: Path, application: Application, seed: Seed | None, namespace: str
) -> Lookups:
    """What answers the lookups of one render.

    Args:
        looking: the operator's settings.
        directory: the application's, where recorded answers are.
        application: whose they are.
        seed: that seals them.
        namespace: of the release.
    """
    match looking.policy:
        case "recorded":
            from becalm.stabilise.recorded import Recorded  # noqa: PLC0415  # only where it is wanted

            return Recorded(directory, application=application, seed=seed)
        case "rendered":
            from becalm.stabilise.rendered import Rendered  # noqa: PLC0415

            return Rendered(namespace)
        case "live":
            from becalm.sources.cluster import Objects  # noqa: PLC0415
            from becalm.stabilise.live import Live  # noqa: PLC0415

            return Live(looking, application=application, objects=Objects(_reader(looking)))
        case _:
            return Lookups()


def _reader(looking: Looking) -> Callable[[str], bytes | None]:
    """Reads the cluster that this pod is in; its ServiceAccount is looked at when something is looked up."""
    from becalm.sources import api_server  # noqa: PLC0415  # loads TLS

    found: list[api_server.Cluster] = []

    def get(path: str) -> bytes | None:
        if not found:
            found.append(api_server.in_cluster(looking.server, elsewhere=_ELSEWHERE))
        status, data = api_server.ask(found[0], "GET", path, seconds=_SECONDS, most=MOST_CHARACTERS)
        if status == _NOT_FOUND:
            return None
        if status != _OK or len(data) > MOST_CHARACTERS:
            what = "is longer than 4 MiB" if status == _OK else f"has status {status}"
            raise ConfigError(
                f"the API server's answer {what}",
                where=f"lookup {path}",
                hint=_REMEDIES.get(status, "look at its log"),
            )
        return data

    return get


def notices(found: Sequence[Looked], looking: Looking) -> tuple[Warned, ...]:
    """What to tell of a chart whose lookups are answered with nothing: one notice, none where there are none."""
    if looking.policy != "empty" or not found:
        return ()
    by_object: dict[str, list[str]] = {}
    for one in found:
        by_object.setdefault("" if one.asked is None else str(one.asked), []).append(one.place)
    places = by_object.pop("", [])
    shown = [f"{name} ({where[0]})" for name, where in by_object.items()] + places
    more = f", and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    what = counted(len(by_object), "object") if by_object else "objects"
    return (
        Warned(
            f"the chart looks up {what}, which Argo CD answers with nothing: {', '.join(shown[:_SHOWN])}{more}",
            where="lookup",
            hint=f"what `helm install` would do may differ; see {VARIABLE} (docs/lookup.md)",
        ),
    )
