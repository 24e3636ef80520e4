"""Gives a chart the dependencies that it lacks, in a private copy; the checkout is never written to.

Only what helm itself would miss is brought (`requirements`), so a chart whose `charts/` is complete needs no
network and is not copied. With a lock that fits, its exact versions count. Anything else is warned of: a range, or none,
can mean another version tomorrow, and without a lock what the repository calls by an exact version can be another chart.

`file://` dependencies are packed from the repository, as `helm dependency build` does it, which they may not leave.
What *they* lack is brought as well, where helm would leave it out without a word.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from becalm.config.network import Network
from becalm.errors import SourceError, Warned
from becalm.manifests import yamlio
from becalm.manifests.scalars import Value
from becalm.sources import addresses, requirements
from becalm.sources.archive import write_chart_archive
from becalm.sources.credentials import Credential, Credentials
from becalm.sources.download import Downloads, Wanted
from becalm.sources.requirements import Dependency, Requirements
from becalm.sources.tree import ChartTree, load_chart
from becalm.sources.write import write_chart

_FILE = "file://"
_ALIASES = ("@", "alias:")
_DEEPEST = 20
_MOST_CHARTS = 500
VARIABLE = "BECALM_CHART_REPOSITORIES"


@dataclass(kw_only=True)
class Provider:
    """Brings charts from the network and the repository, for one render.

    Attributes:
        downloads: brings them.
        network: which addresses apps may name.
        credentials: those that serve the app's project.
        warn: is told what may be another chart tomorrow, before it is downloaded.
    """

    downloads: Downloads
    network: Network
    credentials: Credentials
    warn: Callable[[Warned], None]
    _brought: int = field(default=0, init=False)

    def chart(self, repository: str, name: str, version: str, *, where: str) -> tuple[str, bytes]:
        """One chart that the app's parameters name: its file's name, and the archive.

        Raises:
            PluginError: it is not there, not allowed, or not what it should be.
        """
        requirements.check_name(name, where=f"{where}: chart.name")
        version = requirements.check_version(version, where=f"{where}: chart.version")
        address = self._allowed(repository, f"{where}: chart.repository")
        if not requirements.is_exact(version):
            self.warn(
                Warned(
                    f"{version} is not exact, so the same commit can render differently tomorrow"
                    if version
                    else "without a version the newest is taken, so the same commit can render differently tomorrow",
                    where=f"{where}: chart.version",
                    hint="write an exact version",
                )
            )
        wanted = Wanted(
            name=name, version=version, address=address, where=f"{where}: chart.name",
            credential=self.credentials.of(address),
        )  # fmt: skip
        found = self.downloads.fetch(wanted)
        return f"{found.name}-{found.version}.tgz", found.data

    def complete(
        self, tree: ChartTree, lacks: Requirements, chart: Path, root: Path | None, work: Path
    ) -> Path:
        """A chart with everything it lacks: itself where that is nothing, else a copy below `work`.

        Args:
            tree: the chart.
            lacks: what it lacks.
            chart: where it is: a directory or archive.
            root: the repository's root, which no `file://` dependency may leave; None means the chart itself.
            work: a private directory.

        Raises:
            PluginError: something cannot be had, or the lock is out of date.
        """
        added = self._missing(tree, lacks, chart, root, ())
        if not added:
            return chart
        copy = Path(tempfile.mkdtemp(prefix="complete-", dir=work)) / Path(tree.where).name
        return write_chart(tree, {(path,): data for path, data in added.items()}, copy)

    def _missing(
        self, tree: ChartTree, lacks: Requirements, chart: Path, root: Path | None, chain: tuple[Path, ...]
    ) -> dict[str, bytes]:
        """What a chart lacks, as archives by path."""
        added: dict[str, bytes] = {}
        for dependency in lacks.missing:
            self._brought += 1
            if self._brought > _MOST_CHARTS:
                raise SourceError(f"the chart lacks more than {_MOST_CHARTS} charts", where=tree.where)
            where = f"{tree.where}/{lacks.file}: {dependency.name}"
            if dependency.repository.startswith(_FILE):
                name, data = self._packed(dependency, chart, root, where, chain)
            else:
                self._warn_unless_locked(dependency, lacks, where)
                name, data = self._downloaded(dependency, where)
            path = f"charts/{name}"
            if tree.has(path):
                raise SourceError(f"{path} is there already, but is another chart", where=where)
            added[path] = data
        return added

    def _warn_unless_locked(self, dependency: Dependency, lacks: Requirements, where: str) -> None:
        version = dependency.version or "no version"
        if not dependency.is_exact:
            what = (
                f"the lock says {version}, which is not exact"
                if lacks.is_locked
                else f"{version} is not exact and no lock says which, so the same commit can render differently tomorrow"
            )
        elif not lacks.is_locked:
            what = f"{version} is not locked, so what the repository calls so can be another chart tomorrow"
        else:
            return
        self.warn(Warned(what, where=where, hint="run `helm dependency update` and commit its lock"))

    def _downloaded(self, dependency: Dependency, where: str) -> tuple[str, bytes]:
        address, credential = self._source(dependency.repository, where)
        found = self.downloads.fetch(
            Wanted(
                name=dependency.name, version=dependency.version, address=address, where=where,
                credential=credential,
            )
        )  # fmt: skip
        return f"{found.name}-{found.version}.tgz", found.data

    def _source(self, repository: str, where: str) -> tuple[addresses.Address, Credential | None]:
        """Where a dependency comes from, and the credentials for it."""
        if not repository:
            raise SourceError(
                "the dependency is not in charts/, and names no repository",
                where=where,
                hint="commit it in charts/, or give it a repository",
            )
        for sign in _ALIASES:
            if repository.startswith(sign):
                name = repository.removeprefix(sign)
                credential = self.credentials.named(name)
                if credential is None:
                    raise SourceError(
                        f"no repository is called {name[:100]!r}",
                        where=where,
                        hint="ask the operator for it (docs/dependencies.md), or write its address",
                    )
                # The operator's own choice needs no permission.
                return credential.address, credential
        address = self._allowed(repository, where)
        return address, self.credentials.of(address)

    def _allowed(self, repository: str, where: str) -> addresses.Address:
        address = addresses.parse(repository, where=where)
        addresses.require_allowed(address, self.network.allowed, variable=VARIABLE, where=where)
        return address

    def _packed(
        self, dependency: Dependency, chart: Path, root: Path | None, where: str, chain: tuple[Path, ...]
    ) -> tuple[str, bytes]:
        """A chart of the repository, packed."""
        directory = _local(dependency.repository, chart, root, where)
        if directory in chain or len(chain) >= _DEEPEST:
            raise SourceError(
                "the chart depends on itself, or too deeply", where=where, hint="take the dependency away"
            )
        tree = load_chart(directory, root=root)
        name, version = requirements.named(tree)
        if name != dependency.name:
            raise SourceError(
                f"{dependency.repository} holds another chart, {name}", where=where, hint="correct the name"
            )
        self._require_fit(dependency, version, where)
        files = {path: tree.read_raw(path) for path in tree.paths()}
        files |= self._missing(tree, requirements.read(tree), directory, root, (*chain, directory))
        return f"{name}-{version}.tgz", write_chart_archive(name, files)

    def _require_fit(self, dependency: Dependency, version: str, where: str) -> None:
        """Refuse a version that a range does not mean; helm itself decides, in `helm dependency list`.

        helm would build such a chart no more than becalm, but it would render it: as one that nobody named.
        """
        if dependency.version in ("", version):
            return
        with tempfile.TemporaryDirectory(prefix="becalm-probe-") as name:
            probe = Path(name)
            one: Value = {"name": dependency.name, "version": dependency.version, "repository": ""}
            chart: Value = {"apiVersion": "v2", "name": "probe", "version": "0.0.0", "dependencies": [one]}
            (probe / "charts").mkdir()
            (probe / "Chart.yaml").write_text(yamlio.dump(chart), "utf-8")
            own = yamlio.dump({"apiVersion": "v2", "name": dependency.name, "version": version})
            packed = write_chart_archive(dependency.name, {"Chart.yaml": own.encode()})
            (probe / "charts" / f"{dependency.name}-{version}.tgz").write_bytes(packed)
            lines = self.downloads.probe(probe).splitlines()
        if not any(line.split()[:1] == [dependency.name] and line.split()[-1] == "ok" for line in lines):
            raise SourceError(
                f"{dependency.repository} has version {version}, which is not {dependency.version}",
                where=where,
                hint="correct one of the two",
            )


def _local(repository: str, chart: Path, root: Path | None, where: str) -> Path:
    """The directory that `file://` means: relative to the chart, and in the repository."""
    if not chart.is_dir():
        raise SourceError("an archive cannot depend on a directory", where=where, hint="package it anew")
    base = Path(os.path.realpath(chart))
    top = base if root is None else Path(os.path.realpath(root))
    path = repository.removeprefix(_FILE)
    if "\0" in path:
        raise SourceError("the path holds a NUL character", where=where)
    found = Path(os.path.realpath(base / path))
    if not found.is_relative_to(top) or found == base:
        raise SourceError(
            f"{repository[:200]!r} leads out of the repository, or to the chart itself",
            where=where,
            hint="keep the dependency in the repository; by hand, --root says where that begins",
        )
    return found
