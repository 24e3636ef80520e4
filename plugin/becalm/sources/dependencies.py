"""The charts that a chart depends on and that are missing from its charts/ directory, fetched by helm itself.

Argo CD runs `helm dependency build` when `helm template` complains of a missing chart (util/helm/helm.go,
`DependencyBuild`), after it has made every repository known to helm. The same happens here in a private copy of the
chart, with helm's own code for indexes, registries, archives and locks, and private homes, so that renders that run
at the same time share nothing. Nothing is fetched where nothing is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from becalm.errors import ConfigError, ManifestError, SourceError, Warned
from becalm.manifests import yamlio
from becalm.manifests.scalars import Value
from becalm.sources import declared, neighbours
from becalm.sources.chart import ChartTree, load_chart
from becalm.sources.helm import Helm

_EXACT = re.compile(r"=?\s*v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")
_ADDRESS = re.compile(r"(?P<scheme>https?|oci|file)://(?P<rest>.*)", re.DOTALL)
_ALIAS = re.compile(r"(?:@|alias:)(?P<name>.+)", re.DOTALL)
_USER = re.compile(r"(?<=://)[^/@\s]*@")
#: What of an entry in the operator's repositories.yaml counts (helm.sh/helm, pkg/repo, `Entry`).
_KEPT = (
    "username", "password", "certFile", "keyFile", "caFile", "insecure_skip_tls_verify", "pass_credentials_all",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What the operator says of downloads.

    `repositories` is a repositories.yaml of helm with credentials by address, `registries` a Docker config.json,
    `authorities` a file of certificates that servers are trusted by instead of the system's; `proxies` are the usual
    variables. `plain_http` allows addresses without TLS.
    """

    repositories: Path | None = None
    registries: Path | None = None
    authorities: Path | None = None
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    plain_http: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One that Chart.yaml names (or requirements.yaml, for charts of apiVersion v1)."""

    name: str
    version: str
    repository: str = field(repr=False)

    @property
    def is_local(self) -> bool:
        """Whether it is another directory, or has to be in charts/ already."""
        return not self.repository or self.repository.startswith("file://")

    @property
    def place(self) -> str:
        """Its repository for messages, without a password."""
        return _USER.sub("", self.repository)[:200]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A chart with all that it depends on."""

    chart: Path
    tree: ChartTree
    warnings: tuple[Warned, ...] = ()


def complete(  # noqa: PLR0913  # what the chart is, who fetches, and what is allowed
    tree: ChartTree,
    chart: Path,
    *,
    root: Path | None,
    helm: Helm,
    network: Network,
    pass_credentials: bool,
) -> Completed:
    """Fetch what is missing.

    Args:
        tree: the chart.
        chart: its directory, or an archive, which has to be complete.
        root: the repository, which `file://` may not leave; None for no limit.
        helm: that fetches.
        network: what the operator says.
        pass_credentials: send credentials of a repository also to other hosts that its index names.

    Raises:
        SourceError: a dependency is refused, or cannot be read.
        ToolFailedError: helm could not fetch one.
    """
    wanted = missing(tree)
    if not wanted or not chart.is_dir():
        return Completed(chart=chart, tree=tree)
    for one in wanted:
        _check(one, chart, root, network)
    copy, _, _ = neighbours.copy(tree, chart, helm.work)
    entries = _entries(wanted, network, pass_credentials=pass_credentials)
    repositories: dict[str, Value] = {"apiVersion": "v1", "repositories": list(entries)}
    helm.build_dependencies(copy, yamlio.dump(repositories), _variables(network))
    warnings = [] if _is_locked(tree) else [_unlocked(one, tree) for one in wanted if _may_change(one)]
    completed = load_chart(copy, root=None)
    for one in missing(completed):
        raise SourceError(
            f"what {one.place!r} sent is not the chart",
            where=f"the dependency {one.name[:100]!r}",
            hint="check the repository",
        )
    return Completed(chart=copy, tree=completed, warnings=tuple(warnings))


def missing(tree: ChartTree) -> list[Dependency]:
    """The dependencies of which charts/ has no chart of the name (helm's pkg/action, `CheckDependencies`)."""
    wanted = _declared(tree)
    if not wanted:
        return []
    names = set(_present(tree))
    return [one for one in wanted if one.name not in names]


def _declared(tree: ChartTree) -> list[Dependency]:
    return [
        Dependency(
            name=str(one["name"]),
            version=str(one.get("version", "")),
            repository=str(one.get("repository") or ""),
        )
        for one in declared.dependencies(tree)
        if one.get("name")
    ]


def _present(tree: ChartTree) -> list[str]:
    """The names of the charts in charts/, unpacked and packed."""
    found = [
        declared.read(tree, path).get("name")
        for path in tree.paths()
        if path.startswith("charts/") and path.endswith("/Chart.yaml") and path.count("/") == 2
    ]
    found += [
        declared.read(tree.archives[path], "Chart.yaml").get("name")
        for path in tree.archives
        if path.startswith("charts/") and path.count("/") == 1
    ]
    return [str(name) for name in found if name]


def _is_locked(tree: ChartTree) -> bool:
    return tree.has("Chart.lock") or tree.has("requirements.lock")


def _may_change(one: Dependency) -> bool:
    return not one.is_local and _EXACT.fullmatch(one.version.strip()) is None


def _unlocked(one: Dependency, tree: ChartTree) -> Warned:
    return Warned(
        f"the version {one.version[:100]!r} of the dependency {one.name[:100]!r} is a range and there is no Chart.lock, "
        "so another chart may be fetched tomorrow",
        where=f"{tree.where}/Chart.yaml",
        hint="run helm dependency update and commit Chart.lock",
    )


def _check(one: Dependency, chart: Path, root: Path | None, network: Network) -> None:
    where = f"the dependency {one.name[:100]!r}"
    if not one.repository:
        raise SourceError(
            "the chart is missing from charts/ and has no repository",
            where=where,
            hint="add it, or a repository",
        )
    match = _ADDRESS.fullmatch(one.repository)
    if match is None and _ALIAS.fullmatch(one.repository) is None:
        raise SourceError(
            f"{one.place!r} is no repository",
            where=where,
            hint="write https://..., oci://..., file://... or @name",
        )
    if match is None:
        return
    if _USER.search(one.repository):
        raise SourceError(
            f"{one.place!r} holds a user's name or password",
            where=where,
            hint="the operator gives credentials in BECALM_REPOSITORY_CONFIG",
        )
    if match["scheme"] == "http" and not network.plain_http:
        raise SourceError(
            f"{one.place!r} is not encrypted",
            where=where,
            hint="use https, or ask the operator for BECALM_PLAIN_HTTP",
        )
    if match["scheme"] == "file":
        _check_local(match["rest"], chart, root, where)


def _check_local(rest: str, chart: Path, root: Path | None, where: str) -> None:
    """Refuse a directory outside of the repository, or with links that lead there; helm would follow both."""
    path = Path(rest) if rest.startswith("/") else chart / rest
    if root is None:
        return
    if not path.resolve().is_relative_to(root.resolve()):
        raise SourceError(
            f"'file://{rest[:200]}' leads out of the repository",
            where=where,
            hint="keep the chart in the repository",
        )
    if path.is_dir():
        load_chart(path.resolve(), root=root)


def _entries(
    wanted: Sequence[Dependency], network: Network, *, pass_credentials: bool
) -> list[dict[str, Any]]:
    """What helm has to know of repositories: those that are needed, with the operator's credentials."""
    operators = _operators(network.repositories)
    found: dict[str, dict[str, Any]] = {}
    for one in wanted:
        alias = _ALIAS.fullmatch(one.repository)
        if alias is not None:
            entry = next((entry for entry in operators if entry.get("name") == alias["name"]), None)
            if entry is None:
                raise SourceError(
                    f"{one.place!r} names a repository that the operator has not set up",
                    where=f"the dependency {one.name[:100]!r}",
                    hint="write its address, or ask for an entry in BECALM_REPOSITORY_CONFIG",
                )
            name, url = alias["name"], str(entry.get("url", ""))
        elif one.repository.startswith(("https://", "http://")):
            url = one.repository
            entry = next((entry for entry in operators if _same(str(entry.get("url", "")), url)), {})
            name = f"becalm-{len(found)}"
        else:
            continue
        if url in (known["url"] for known in found.values()):
            continue
        found[name] = {"name": name, "url": url} | {key: entry[key] for key in _KEPT if key in entry}
        if pass_credentials:
            found[name]["pass_credentials_all"] = True
    return list(found.values())


def _same(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def _operators(path: Path | None) -> list[dict[str, Any]]:
    if path is None:
        return []
    where = "BECALM_REPOSITORY_CONFIG"
    try:
        value = yamlio.load(path.read_text("utf-8"), where=where)
    except (OSError, UnicodeError, ManifestError) as error:
        # Its text may hold a password.
        raise ConfigError(
            "the file cannot be read", where=f"{where} {path}", hint="see `helm repo add`"
        ) from error
    entries = value.get("repositories") if isinstance(value, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(
            "the file lists no repositories", where=f"{where} {path}", hint="see `helm repo add`"
        )
    return [dict(entry) for entry in entries if isinstance(entry, dict)]


def _variables(network: Network) -> dict[str, str]:
    found = dict(network.proxies)
    if network.authorities is not None:
        found["SSL_CERT_FILE"] = str(network.authorities)
    if network.registries is not None:
        found["HELM_REGISTRY_CONFIG"] = str(network.registries)
    return found
