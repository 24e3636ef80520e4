"""Everything a render needs, on this machine: the chart with its dependencies, and the values files.

What needs the network is loaded only where something does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from becalm.config.network import Network
from becalm.errors import SourceError, Warned
from becalm.sources import globs, requirements
from becalm.sources.helm import Helm
from becalm.sources.remote_values import RemoteFile
from becalm.sources.tree import ChartTree, load_chart


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
    project: str = ""
    cache: Path | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """A chart that lacks nothing, where it is, its values files, and what may be another one tomorrow."""

    chart: Path
    tree: ChartTree
    values: tuple[Path, ...]
    warnings: tuple[Warned, ...] = ()


def obtain(chart: Path, root: Path | None, values: tuple[Path, ...], remote: Remote, helm: Helm) -> Sources:
    """Bring what is not here; a chart that lacks nothing comes back as it is, without a look at the network.

    Args:
        chart: the chart, or the app's directory where `remote.chart` is another.
        root: the repository's root, which nothing may leave; None means the chart itself.
        values: the values files that are here.
        remote: what is not.
        helm: its `work` holds what is brought, for as long as the render lasts.

    Raises:
        PluginError: something cannot be had, is not allowed, or (with `strict`) may be another one tomorrow.
    """
    chart = remote.path or chart
    if remote.chart is None and not remote.values:
        tree = load_chart(chart, root=root)
        if not requirements.read(tree).missing:
            return Sources(chart=chart, tree=tree, values=values)
    return _obtain(chart, root, values, remote, helm)


def _obtain(chart: Path, root: Path | None, values: tuple[Path, ...], remote: Remote, helm: Helm) -> Sources:
    from becalm.sources import remote_fetch  # noqa: PLC0415  # as the module says
    from becalm.sources.chart_cache import ChartCache  # noqa: PLC0415
    from becalm.sources.credentials import Credentials  # noqa: PLC0415
    from becalm.sources.dependencies import Provider  # noqa: PLC0415
    from becalm.sources.download import Downloads  # noqa: PLC0415

    warnings: list[Warned] = []

    def warn(warned: Warned) -> None:
        if remote.strict:
            raise warned.error()
        warnings.append(warned)

    credentials = Credentials(remote.network, remote.project)
    downloads = Downloads(helm=helm, network=remote.network, cache=ChartCache(remote.cache))
    provider = Provider(downloads=downloads, network=remote.network, credentials=credentials, warn=warn)
    if remote.chart is not None:
        one = remote.chart
        name, data = provider.chart(one.repository, one.name, one.version, where=one.where)
        chart, root = helm.work / name, None
        chart.write_bytes(data)
    tree = load_chart(chart, root=root)
    complete = provider.complete(tree, chart, root, helm.work)
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
        tree=tree if complete == chart else load_chart(complete, root=None),
        values=tuple(all_values),
        warnings=tuple(warnings),
    )


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
