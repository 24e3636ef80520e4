"""A Kustomization as Argo CD builds it: edited, with charts inflated, and never in the checkout.

Where nothing is edited, added or inflated, Kustomize reads the checkout, which it does not write to. Otherwise it
builds a private copy of the repository.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from becalm.config.network import Network
from becalm.errors import SourceError, ToolMissingError, Warned
from becalm.manifests import yamlio
from becalm.sources import checkout, components, kustomization, repospec
from becalm.sources.detect import KUSTOMIZATIONS
from becalm.sources.edits import KustomizeOptions, edited
from becalm.sources.kustomize import (
    ASKPASS_PROGRAM,
    ASKPASS_SERVER,
    HELM_COMMAND,
    HELM_ROOT,
    HELM_TOLD,
    Kustomize,
    KustomizeTool,
    Told,
    told,
)

#: The name that a chart's output has where the kustomization has none for it.
CHART_FILE = "becalm-chart.yaml"
_GUARD = "becalm-helm-guard"
_HELM = "becalm-helm"
_ASKPASS = "becalm-askpass"
_MANIFESTS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """What is built, and by whom.

    `app` is the directory in the repository `root`, `where` the same for messages. `variables` are those of the
    program that renders charts, `helm_command` is that program, "" for becalm-helm, and `git` are the variables with
    credentials of the repository. `chart` is the output of the chart beside the kustomization, None where there is no chart.
    """

    app: Path
    root: Path
    where: str
    options: KustomizeOptions
    tool: KustomizeTool
    path: str
    timeout: float
    network: Network
    variables: Mapping[str, str] = field(repr=False)
    git: Mapping[str, str] = field(default_factory=dict, repr=False)
    helm_command: str = ""
    chart: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A Kustomization as it is written, and as its application wants it; `content` is `original` where that is the same.

    Links in `app` and `root` are followed.
    """

    app: Path
    root: Path
    original: Mapping[str, Any]
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What Kustomize printed, what may make the next build another one, and what was told of the charts in it."""

    output: str = field(repr=False)
    warnings: tuple[Warned, ...]
    told: Told


def build(overlay: Overlay, work: Path, *, strict: bool) -> Built:
    """Build a Kustomization below an existing private directory.

    Raises:
        ConfigError: an option is refused.
        SourceError: the kustomization cannot be read, or leads out of the repository.
        DeterminismError: with `strict`, for what may be something else tomorrow.
        ToolMissingError, ToolFailedError, ToolTimeoutError: Kustomize is not there, or could not.
    """
    found = opened(overlay.app, overlay.root, overlay.where, overlay.options)
    root, app, original, content = found.root, found.app, found.original, found.content
    chart_file = ""
    if overlay.chart is not None:
        content, chart_file = _with_chart(content, app, overlay.where)
    seen = kustomization.reachable(
        app, root, content, overlay.where, reads_anything=overlay.tool.reads_anything
    )
    for warned in seen.warnings if strict else ():
        raise warned.error()
    tree = work / "tree"
    tree.mkdir(mode=0o700)
    place, directory = root, app
    if content is not original or overlay.tool.inflates:
        place = checkout.copy(root, tree / "repository", may_link=not overlay.tool.inflates)
        directory = place / app.relative_to(root)
        if content is not original:
            _replace(directory, content, place)
        if overlay.chart is not None:
            checkout.write(directory / chart_file, overlay.chart.encode(), place)
    runner = Kustomize(
        overlay.tool, path=overlay.path, work=tree, home=work / "home", timeout=overlay.timeout,
        network={**_network(overlay.network), **_credentials(overlay.git)} if seen.has_remotes else {},
    )  # fmt: skip
    file = work / "told"
    file.touch(mode=0o600)
    charts = {**_charts(overlay, tree), HELM_TOLD: str(file)} if overlay.tool.inflates else {}
    output = runner.build(directory, cwd=place, more=_flags(overlay), charts=charts)
    return Built(output=output, warnings=seen.warnings, told=told(file.read_text("ascii")))


def opened(app: Path, root: Path, where: str, options: KustomizeOptions) -> Opened:
    """Read a Kustomization, and edit it as its application asks.

    Args:
        app: its directory.
        root: the repository.
        where: the directory for messages.
        options: what the application asks for.

    Raises:
        ConfigError: an option is refused.
        SourceError: the kustomization cannot be read, or it or a component leads out of the repository.
    """
    root, app = Path(os.path.realpath(root)), Path(os.path.realpath(app))
    if not app.is_relative_to(root):
        raise SourceError(
            "the directory lies outside of the repository", where=where, hint="correct the path"
        )
    original = kustomization.read(app, where)
    found = components.found(options, app=app, root=root)
    content = edited(original, options, found) if options.edits else original
    return Opened(app=app, root=root, original=original, content=content)


def _with_chart(content: Mapping[str, Any], app: Path, where: str) -> tuple[dict[str, Any], str]:
    """The kustomization with the chart's output among its resources, and the file's name."""
    resources = content.get("resources") or []
    if not isinstance(resources, list):
        raise SourceError("the resources are no list", where=where, hint="see Kustomize's reference")
    missing = [one for one in resources if isinstance(one, str) and _is_missing(one, app)]
    if len(missing) > 1:
        raise SourceError(
            f"the chart's output can be only one of the resources that are not there: {', '.join(missing)[:200]}",
            where=where,
            hint="remove all of them but one, or add the files",
        )
    if missing:
        return dict(content), missing[0]
    name, number = CHART_FILE, 1
    while (app / name).exists():
        number += 1
        name = f"becalm-chart-{number}.yaml"
    return {**content, "resources": [name, *resources]}, name


def _is_missing(name: str, app: Path) -> bool:
    """Whether a resource is a plain file, in this directory or further below, that is not there."""
    if repospec.is_remote_file(name) or not name.endswith(_MANIFESTS) or "\0" in name:
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and not os.path.lexists(app / name)


def _replace(directory: Path, content: Mapping[str, Any], place: Path) -> None:
    for name in KUSTOMIZATIONS:
        (directory / name).unlink(missing_ok=True)
    checkout.write(directory / KUSTOMIZATIONS[0], yamlio.dump(dict(content)).encode(), place)


def _flags(overlay: Overlay) -> tuple[str, ...]:
    if not overlay.tool.inflates:
        return ()
    options = overlay.options
    version = [f"--helm-kube-version={options.kube_version}"] if options.kube_version else []
    return (
        f"--helm-command={_beside(_GUARD)}",
        *version,
        *(f"--helm-api-versions={one}" for one in options.api_versions),
    )


def _charts(overlay: Overlay, tree: Path) -> dict[str, str]:
    """The environment of the guard, and of the program that it becomes."""
    command = overlay.helm_command or overlay.tool.helm_command or _beside(_HELM)
    return {**overlay.network.variables(), **overlay.variables, HELM_COMMAND: command, HELM_ROOT: str(tree)}


def _beside(name: str) -> str:
    """A program that was installed with becalm.

    Raises:
        ToolMissingError: it is not there.
    """
    for folder in (Path(sys.executable).parent, Path(sys.argv[0]).absolute().parent):
        if (folder / name).is_file():
            return str(folder / name)
    raise ToolMissingError(f"{name} is not beside becalm", hint="install becalm again")


def _credentials(given: Mapping[str, str]) -> dict[str, str]:
    """What Git is told of credentials: Argo CD's, for the server of the application's own repository and for no other."""
    url = urlsplit(given.get("ARGOCD_APP_SOURCE_REPO_URL", ""))
    names = ("ARGOCD_GIT_ASKPASS_NONCE", "ARGOCD_BINARY_NAME", "ARGOCD_ASK_PASS_SOCK", "GIT_SSH_COMMAND")
    found = {name: given[name] for name in names if name in given}
    if "GIT_SSL_CAINFO" in given:
        found["GIT_SSL_CAINFO"] = given["GIT_SSL_CAINFO"]
    if "GIT_ASKPASS" in given and url.scheme == "https":
        server = f"https://{url.netloc.rpartition('@')[2]}"
        found |= {
            "GIT_ASKPASS": _beside(_ASKPASS),
            ASKPASS_SERVER: server,
            ASKPASS_PROGRAM: given["GIT_ASKPASS"],
        }
    return found


def _network(network: Network) -> dict[str, str]:
    found = network.for_programs(network.proxies)
    if network.ca_file is not None:
        found["GIT_SSL_CAINFO"] = str(network.ca_file)
    if network.registry_config is not None:
        found["HELM_REGISTRY_CONFIG"] = str(network.registry_config)
    return found
