"""`becalm lookup record`: everything that a render looks up, also what is not there, into one file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from becalm.config import private
from becalm.derive.pins import application_name
from becalm.errors import ConfigError, SourceError
from becalm.manifests.gathered import gathered
from becalm.manifests.objects import Object
from becalm.pipeline import render
from becalm.request import Request
from becalm.sources import kubectl
from becalm.sources.cluster import Objects
from becalm.stabilise.looking import Asked
from becalm.stabilise.population import Population
from becalm.stabilise.recorded import NAME, Recording, is_secret, load, sealed, sealer, write

Find = Callable[[Asked], Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One recorded answer: what was looked up, how it is recorded, and where it was looked up first."""

    asked: str
    answer: str
    place: str


def from_file(name: str) -> Find:
    """Finds objects among those of a file, `-` for standard input.

    Raises:
        ConfigError: it cannot be read.
        ManifestError: it holds something else.
    """
    where = f"--live {name}"
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return from_text(data.decode("utf-8"), where=where)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("the file cannot be read", where=where, hint="check its path") from error


def from_text(text: str, *, where: str) -> Find:
    """Finds objects among those of a text.

    Raises:
        ManifestError: the text holds something else.
    """
    objects = gathered(text, where=where)
    # kubectl writes the namespace of all that has one.
    there = Population(objects, namespace="")
    versions = {(str(obj.get("apiVersion", "")), str(obj.get("kind", ""))) for obj in objects}

    def find(asked: Asked) -> Object:
        group = asked.api_version.rpartition("/")[0]
        others = sorted(
            version
            for version, kind in versions
            if kind == asked.kind and version.rpartition("/")[0] == group and version != asked.api_version
        )
        if others:
            raise SourceError(
                f"{asked} is looked up as {asked.api_version}, and there it is {others[0]}",
                where=where,
                hint=f"get it with `kubectl get {asked.kind.lower()}.{asked.api_version.rpartition('/')[2]}.{group}`",
            )
        return there.find(asked)

    return find


def from_kubectl(binary: str, variables: Mapping[str, str]) -> Find:
    """Finds objects by asking the cluster that kubectl is set up for."""
    objects = Objects(lambda path: kubectl.get(binary, path, variables=variables))
    return lambda asked: objects.find(asked.api_version, asked.kind, asked.namespace, asked.name)


def record(request: Request, find: Find) -> tuple[Row, ...]:
    """Render until nothing new is looked up, and write the file beside the chart.

    Args:
        request: what to render.
        find: finds what is looked up.

    Raises:
        ConfigError: the source is not one that becalm itself renders with helm.
        PluginError: as `pipeline.render`, or the file cannot be written.
    """
    if request.kind not in ("helm", "chain"):
        raise ConfigError(
            "only a chart looks things up",
            where=request.path_name,
            hint="of a Kustomization, record each chart that it inflates",
        )
    sealing = sealer(request.seed, request.application)
    path = (request.chart if request.chart.is_dir() else request.chart.parent) / NAME
    others = load(path)
    recording = Recording(find)
    render(replace(request, lookups=recording))
    name = application_name(request.application)
    try:
        private.write(path, write({**others, name: sealed(recording.answers, sealing)}).encode())
        path.chmod(0o644)
    except OSError as error:
        raise ConfigError(f"the file cannot be written: {error.strerror}", where=str(path)) from error
    return tuple(
        Row(asked=str(asked), answer=_answer(asked, recording), place=min(recording.places[asked]))
        for asked in sorted(recording.answers)
    )


def _answer(asked: Asked, recording: Recording) -> str:
    answer = recording.answers[asked]
    items = answer.get("items")
    number = len(items) if isinstance(items, list) and not asked.name else 1
    if not answer or not number:
        return "not there"
    what = "there" if asked.name else f"{number} there"
    return f"{what}, sealed" if is_secret(asked) else what
