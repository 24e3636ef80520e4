"""Everything a render needs, on this machine: the chart with its dependencies, and the values files.

What needs the network is loaded only where something does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from becalm.config.network import Network
from becalm.errors import SourceError, Warned
from becalm.sources import globs, requirements
from becalm.sources.helm import Helm
from becalm.sources.remote_values import RemoteFile
from becalm.sources.requirements import Requirements
from becalm.sources.tree import ChartTree, load_chart

if TYPE_CHECKING:
    from becalm.sources.dependencies import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryChart:
    """A chart that parameters name instead of a directory; `where` is who names it, for messages."""

    repository: str
    name: str
    version: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteValues:
    """A values file from an address, and its place among all values files, from 0."""

    at: int
    file: RemoteFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """What an app asks for that is not in its directory, besides dependencies, and under which settings.

    `path` is a chart in another directory of the repository, `chart` one of a registry.
    """

    chart: RegistryChart | None = None
    path: Path | None = None
    values: tuple[RemoteValues, ...] = ()
    network: Network = field(default_factory=Network)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """A chart that lacks nothing, where it is, its values files, and what may be another one tomorrow."""

    chart: Path
    tree: ChartTree
    values: tuple[Path, ...]
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """A chart that is on this machine, and what it lacks."""

    chart: Path
    root: Path | None
    tree: ChartTree
    lacks: Requirements


def obtain(  # noqa: PLR0913  # what is asked for, and under which of the render's settings
    chart: Path,
    root: Path | None,
    values: tuple[Path, ...],
    remote: Remote,
    helm: Helm,
    *,
    project: str,
    cache: Path | None,
    strict: bool,
) -> Sources:
    """Bring what is not here; a chart that lacks nothing comes back as it is, without a look at the network.

    Args:
        chart: the chart, or the app's directory where `remote.chart` is another.
        root: the repository's root, which nothing may leave; None means the chart itself.
        values: the values files that are here.
        remote: what is not.
        helm: its `work` holds what is brought, for as long as the render lasts.
        project: the app's, which says whose credentials serve it.
        cache: where charts are kept for the next render; None keeps none.
        strict: refuse what may be another one tomorrow.

    Raises:
        PluginError: something cannot be had, is not allowed, or (with `strict`) may be another one tomorrow.
    """
    here = _loaded(remote.path or chart, root) if remote.chart is None else None
    if here is not None and not (here.lacks.missing or remote.values):
        return Sources(chart=here.chart, tree=here.tree, values=values)
    from becalm.sources import remote_fetch  # noqa: PLC0415  # as the module says
    from becalm.sources.chart_cache import ChartCache  # noqa: PLC0415
    from becalm.sources.credentials import Credentials  # noqa: PLC0415
    from becalm.sources.dependencies import Provider  # noqa: PLC0415
    from becalm.sources.download import Downloads  # noqa: PLC0415

    warnings: list[Warned] = []

    def warn(warned: Warned) -> None:
        if strict:
            raise warned.error()
        warnings.append(warned)

    credentials = Credentials(remote.network, project)
    downloads = Downloads(helm=helm, network=remote.network, cache=ChartCache(cache))
    provider = Provider(downloads=downloads, network=remote.network, credentials=credentials, warn=warn)
    if here is None:
        here = _loaded(_registry_chart(remote, provider, helm.work), None)
    complete = provider.complete(here.tree, here.lacks, here.chart, here.root, helm.work)
    all_values = list(values)
    for entry in remote.values:
        if entry.file.warned is not None:
            warn(entry.file.warned)
        path = remote_fetch.fetch(
            entry.file, network=remote.network, credentials=credentials, timeout=helm.timeout, work=helm.work
        )
        all_values.insert(entry.at, path)
    return Sources(
        chart=complete,
        tree=here.tree if complete == here.chart else load_chart(complete, root=None),
        values=tuple(all_values),
        warnings=tuple(warnings),
    )


def _loaded(chart: Path, root: Path | None) -> _Loaded:
    tree = load_chart(chart, root=root)
    return _Loaded(chart=chart, root=root, tree=tree, lacks=requirements.read(tree))


def _registry_chart(remote: Remote, provider: Provider, work: Path) -> Path:
    """The chart that parameters name, as an archive below `work`."""
    one = remote.chart
    assert one is not None
    name, data = provider.chart(one.repository, one.name, one.version, where=one.where)
    path = work / name
    path.write_bytes(data)
    return path


def directory(path: str, *, app: Path, root: Path, where: str) -> Path:
    """One of several charts of an app, relative to the app's directory.

    Raises:
        SourceError: it is not there, or not in the repository.
    """
    if not globs.is_path(path):
        raise SourceError(f"{path[:60]!r} is no path", where=where, hint="correct it")
    found = Path(os.path.realpath(app / path))
    if path.startswith("/") or not found.is_relative_to(os.path.realpath(root)):
        raise SourceError(
            f"{path[:200]!r} leads out of the repository, or is absolute",
            where=where,
            hint="write a path relative to the application's directory",
        )
    if not found.is_dir():
        raise SourceError(f"{path[:200]!r} is no directory", where=where, hint="correct the path")
    return found
