"""From options of the command line, or from what Argo CD and the operator set, to one request."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from becalm import asked, remotes
from becalm.cmp import environment, helm_environment, parameters
from becalm.cmp.environment import ApplicationEnvironment
from becalm.cmp.parameters import Parameters
from becalm.config import keeping, load, looking
from becalm.derive import clock, instant, seed, windows
from becalm.derive.labels import Application
from becalm.derive.seed import Seed
from becalm.derive.windows import Windows
from becalm.errors import ConfigError
from becalm.normalise.policy import Say, Scope
from becalm.normalise.rules import Match
from becalm.request import Request
from becalm.sources import detect, kustomize
from becalm.sources.chart import label
from becalm.sources.directory import DirectoryOptions
from becalm.sources.edits import KustomizeOptions
from becalm.sources.helm import HelmOptions
from becalm.sources.kustomize import KustomizeTool

_KIND = re.compile(r"(?:[a-z0-9.-]+/)?[A-Za-z0-9]+")
_SEED_FILE = "/etc/becalm/seed"
_KUSTOMIZE_VERSIONS = "BECALM_KUSTOMIZE_VERSIONS"
_WINDOW_OPTIONS = ("--certificate-window", "--certificate-margin", "--certificate-anchor")
_WINDOW_VARIABLES = ("BECALM_CERTIFICATE_WINDOW", "BECALM_CERTIFICATE_MARGIN", "BECALM_CERTIFICATE_ANCHOR")


def from_arguments(arguments: argparse.Namespace) -> Request:
    """The request of `render`, `verify` and their like.

    Raises:
        ConfigError: an option or the seed is wrong.
    """
    variables = load.environment()
    window, margin, anchor = (
        arguments.certificate_window,
        arguments.certificate_margin,
        arguments.certificate_anchor,
    )
    request = Request(
        chart=arguments.chart,
        root=arguments.root.resolve() if arguments.root else None,
        options=HelmOptions(
            release=arguments.app,
            namespace=arguments.namespace,
            values=tuple(path.resolve() for path in arguments.values),
            sets=tuple(arguments.sets),
            kube_version=arguments.kube_version,
            api_versions=tuple(arguments.api_versions),
            is_upgrade=arguments.is_upgrade or arguments.revision > 1,
            revision=arguments.revision,
        ),
        application=Application(
            name=arguments.app,
            project=arguments.project,
            namespace=arguments.namespace,
            cluster=arguments.cluster,
        ),
        seed=_throwaway() if arguments.throwaway_seed else _seed(arguments.seed, arguments.seed_id),
        epoch=arguments.epoch,
        item_epochs=_item_epochs(arguments.item_epoch),
        epochs_where="--item-epoch",
        rule_files=tuple(path.resolve() for path in arguments.rules),
        by_hand=Say(where="--rule", switches=tuple(arguments.rule)),
        app_scope=scope(arguments.app_rules, where="--app-rules"),
        definitions=_definitions(arguments.definitions),
        helm=_helm(arguments.helm or variables.get("BECALM_HELM", "")),
        path=variables.get("PATH", ""),
        timeout=arguments.timeout,
        instant=_instant(arguments.instant, "--instant"),
        at=instant.seconds(_instant(arguments.at, "--at")) if arguments.at else clock.now(),
        windows=_windows((window, margin, anchor), _WINDOW_OPTIONS),
        cache=load.cache_directory(variables),
        strict=arguments.strict,
        remote=remotes.from_arguments(arguments, variables),
        directory=DirectoryOptions(
            recurse=arguments.recurse, include=arguments.include, exclude=arguments.exclude
        ),
        source=arguments.source,
        kustomize=KustomizeOptions(
            kube_version=arguments.kube_version, api_versions=tuple(arguments.api_versions)
        ),
        tool=_tool(variables, binary=arguments.kustomize, build_options=arguments.build_options),
        looking=looking.read(variables, arguments.lookup),
    )
    if arguments.parameters is not None:
        request = _with_parameters(request, arguments, variables)
    return replace(request, variables=_written(request))


def _with_parameters(
    request: Request, arguments: argparse.Namespace, variables: Mapping[str, str]
) -> Request:
    """A request with the parameters of a file, as Argo CD would pass them; options win."""
    given = parameters.from_file(arguments.parameters)
    app = ApplicationEnvironment(
        name=arguments.app,
        release=arguments.app.partition("_")[2] or arguments.app,
        project=arguments.project,
        namespace=arguments.namespace,
        kube_version=arguments.kube_version,
        api_versions=tuple(arguments.api_versions),
        instant="",
        parameters=given,
    )
    identity = {
        "ARGOCD_APP_NAME": app.name, "ARGOCD_APP_PROJECT_NAME": app.project, "ARGOCD_APP_NAMESPACE": app.namespace
    }  # fmt: skip
    directory = arguments.chart.resolve()
    root = request.repository
    done = _as_asked(request, app, {**variables, **identity}, directory, root)
    by_hand, network = request.options, request.remote.network
    return replace(
        done,
        options=replace(
            done.options,
            values=(*done.options.values, *by_hand.values),
            sets=(*done.options.sets, *by_hand.sets),
            is_upgrade=done.options.is_upgrade or by_hand.is_upgrade,
            revision=by_hand.revision if by_hand.revision > 1 else done.options.revision,
        ),
        remote=replace(
            done.remote,
            chart=request.remote.chart or done.remote.chart,
            network=replace(
                network, pass_credentials=network.pass_credentials or given.helm.pass_credentials
            ),
        ),
        source=request.source or done.source,
        tool=_tool(
            variables,
            binary=arguments.kustomize,
            build_options=arguments.build_options,
            version=given.version,
        ),
        seed=request.seed
        if arguments.throwaway_seed
        else _seed(arguments.seed, arguments.seed_id or given.seed),
        epoch=request.epoch or given.epoch,
        item_epochs={**given.epochs, **request.item_epochs},
        parameters=arguments.parameters.resolve(),
    )


def _written(request: Request) -> dict[str, str]:
    """What `generate` would find in its environment for a request."""
    app, chosen = request.application, request.windows
    anchor = "" if chosen.anchor is None else instant.written(chosen.anchor)
    return helm_environment.written(
        name=app.name,
        project=app.project,
        namespace=app.namespace,
        cluster=app.cluster,
        instant=request.instant,
        windows=(str(chosen.fraction), str(chosen.margin), anchor),
        epoch=request.epoch,
        item_epochs=request.item_epochs,
        cache="" if request.cache is None else str(request.cache),
        helm=request.helm,
    )


def _definitions(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files that --definitions names; a person who names a place without any has made a mistake."""
    found: list[Path] = []
    for path in paths:
        files = load.definition_files(path)
        if not files:
            raise ConfigError(
                "the directory has no .yaml, .yml or .json file",
                where=f"--definitions {path}",
                hint="write one with kubectl get crd -o yaml",
            )
        found += files
    return tuple(found)


def as_arguments(request: Request) -> list[str]:
    """A request as arguments of `render`, without its seed."""
    options, app, anchor = request.options, request.application, request.windows.anchor
    return [
        str(request.chart.resolve()),
        f"--app={app.name}",
        f"--namespace={app.namespace}",
        f"--project={app.project}",
        f"--cluster={app.cluster}",
        *([f"--parameters={request.parameters}"] if request.parameters else []),
        *(f"--values={path}" for path in options.values),
        *(f"--set={item}" for item in options.sets),
        f"--kube-version={options.kube_version}",
        *(f"--api-versions={item}" for item in options.api_versions),
        f"--instant={request.instant}",
        f"--at={instant.written(request.at)}",
        f"--certificate-window={request.windows.fraction}",
        f"--certificate-margin={request.windows.margin}",
        f"--certificate-anchor={'' if anchor is None else instant.written(anchor)}",
        f"--epoch={request.epoch}",
        *(f"--item-epoch={item}={epoch}" for item, epoch in request.item_epochs.items()),
        *(f"--rules={path}" for path in request.rule_files),
        *(f"--rule={switch}" for switch in request.by_hand.switches),
        f"--app-rules={written_scope(request.app_scope)}",
        *(f"--definitions={path}" for path in request.definitions),
        f"--timeout={request.timeout:g}",
        f"--helm={request.helm}",
        *(["--strict"] if request.strict else []),
        f"--lookup={request.looking.policy}",
        *(["--is-upgrade"] if options.is_upgrade else []),
        f"--revision={options.revision}",
        *remotes.as_arguments(request.remote),
        *(["--recurse"] if request.directory.recurse else []),
        f"--include={request.directory.include}",
        f"--exclude={request.directory.exclude}",
        *([f"--root={request.root}"] if request.root else []),
        *([f"--source={request.source}"] if request.source else []),
        f"--kustomize={request.tool.binary}",
        f"--build-options={request.tool.written}",
    ]


def from_environment() -> Request:
    """The request of `generate`, in the app's directory.

    Raises:
        ConfigError: a variable, a parameter or the seed is missing or wrong.
    """
    variables = load.environment()
    app = environment.read(variables)
    directory = Path.cwd()
    root = environment.repository_root(directory, variables)
    definitions = variables.get("BECALM_DEFINITIONS_DIR", "")
    nothing = HelmOptions(release="", namespace="")
    request = replace(
        _identified(app, variables, chart=directory, root=root, options=nothing),
        rule_files=load.rule_files(variables.get("BECALM_RULES_DIR", "")),
        operator=(Say(where="BECALM_RULES", switches=load.words(variables.get("BECALM_RULES", ""))),),
        app_scope=scope(variables.get("BECALM_APP_RULES", ""), where="BECALM_APP_RULES"),
        definitions=load.definition_files(Path(definitions)) if definitions else (),
        keeping=keeping.read(variables),
        variables=helm_environment.passed(variables),
        git=helm_environment.git(variables),
    )
    return _as_asked(request, app, variables, directory, root)


def _as_asked(
    request: Request, app: ApplicationEnvironment, variables: Mapping[str, str], directory: Path, root: Path
) -> Request:
    """A request with what the application's parameters say of its source."""
    given = app.parameters
    _refuse_what_does_nothing(given, directory, root)
    options, values = asked.helm(app, variables, directory, root)
    return replace(
        request,
        root=root,
        options=options,
        app=(Say(where=f"the parameter {parameters.RULES}", switches=given.rules),),
        remote=remotes.from_environment(given, variables, values, directory=directory, root=root),
        source=given.source,
        tool=_tool(variables, version=given.version),
        kustomize=asked.kustomize(
            given, variables, kube_version=options.kube_version, api_versions=options.api_versions
        ),
        directory=DirectoryOptions(recurse=given.recurse, include=given.include, exclude=given.exclude),
    )


def _refuse_what_does_nothing(given: Parameters, directory: Path, root: Path) -> None:
    kind = detect.require(
        directory,
        label(directory, root),
        wanted=given.source,
        recurse=given.recurse,
        has_chart=given.chart.is_elsewhere,
    )
    asked.refuse_foreign(given, kind)
    asked.require_version(given, kind)


def announced_chart() -> Path:
    """The chart that Argo CD asks about: that of the current directory, or the one that `chart.path` names.

    Raises:
        ConfigError: a parameter is wrong.
        SourceError: the chart leads out of the repository, or is not there.
    """
    variables = load.environment()
    directory = Path.cwd()
    given = environment.read_partly(variables).parameters
    root = environment.repository_root(directory, variables)
    remote = remotes.from_environment(given, variables, (), directory=directory, root=root)
    return remote.path or directory


def for_helm(chart: Path, options: HelmOptions) -> Request:
    """The request of `becalm-helm`: a chart as helm's command line says, values as `generate` derives them.

    Without an application's identity there is no seed either, since values are bound to both. There is no
    normalising. Without `options.namespace` the destination's takes its place.

    Raises:
        ConfigError: a variable, a parameter or the seed is wrong.
    """
    variables = load.environment()
    app = environment.read_partly(variables)
    options = replace(options, namespace=options.namespace or app.namespace)
    request = _identified(app, variables, chart=chart, root=None, options=options)
    return replace(request, seed=None) if environment.missing(variables) else request


def unset_for_values() -> tuple[str, ...]:
    """The variables that values are derived from and that are not set."""
    variables = load.environment()
    names = environment.missing(variables)
    has_seed = variables.get("BECALM_SEED_FILE") or Path(_SEED_FILE).exists()
    return names if has_seed else (*names, "BECALM_SEED_FILE")


def _identified(
    app: ApplicationEnvironment,
    variables: Mapping[str, str],
    *,
    chart: Path,
    root: Path | None,
    options: HelmOptions,
) -> Request:
    """A request with all that values are derived from."""
    return Request(
        chart=chart,
        root=root,
        options=options,
        application=Application(
            name=app.name,
            project=app.project,
            namespace=app.namespace,
            cluster=variables.get("BECALM_CLUSTER", ""),
        ),
        seed=_mounted_seed(
            variables.get("BECALM_SEED_FILE", ""), app.parameters.seed or variables.get("BECALM_SEED_ID", "")
        ),
        epoch=app.parameters.epoch,
        item_epochs=app.parameters.epochs,
        epochs_where=parameters.EPOCHS,
        helm=variables.get("BECALM_HELM") or "helm",
        path=variables.get("PATH", ""),
        instant=_instant(app.instant, "BECALM_INSTANT in source.plugin.env")
        if app.instant
        else _instant(variables.get("BECALM_INSTANT", ""), "BECALM_INSTANT"),
        at=clock.now(),
        windows=_windows([variables.get(name, "") for name in _WINDOW_VARIABLES], _WINDOW_VARIABLES),
        cache=load.cache_directory(variables),
        looking=looking.read(variables),
        strict=load.flag(variables, "BECALM_STRICT"),
    )


def _instant(text: str, where: str) -> str:
    return instant.parse(text, where=where) if text else instant.DEFAULT


def scope(text: str, *, where: str) -> Scope:
    """Where an app has a say: `all`, `none`, or kinds as `apps/Deployment Service`; "" is `all`.

    Raises:
        ConfigError: a word is no kind.
    """
    words = load.words(text)
    if words in ((), ("all",)):
        return Scope()
    if words == ("none",):
        return Scope(kinds=())
    for word in words:
        if not _KIND.fullmatch(word):
            raise ConfigError(f"{word!r} is no kind", where=where, hint="write all, none, or apps/Deployment")
    pairs = (word.rpartition("/") for word in words)
    return Scope(kinds=tuple(Match(group=group, kind=kind) for group, _, kind in pairs))


def written_scope(one: Scope) -> str:
    """The text that `scope` reads."""
    if one.kinds is None or one.is_nothing:
        return "all" if one.kinds is None else "none"
    return " ".join(f"{kind.group}/{kind.kind}" if kind.group else kind.kind for kind in one.kinds)


def _helm(name: str) -> str:
    """The helm of a person, whose relative paths mean their own directory; "" is the one in the PATH."""
    return str(Path(name).resolve()) if "/" in name else name or "helm"


def _throwaway() -> Seed:
    return seed.parse(seed.new(), where="--throwaway-seed")


def _seed(path: Path | None, wanted: str) -> Seed | None:
    return None if path is None else seed.choose(load.seed_files(path), wanted, where=str(path))


def _mounted_seed(path: str, wanted: str) -> Seed | None:
    """The operator's seed; none where neither the variable is set nor the usual place exists."""
    if not path and not Path(_SEED_FILE).exists():
        return None
    return _seed(Path(path or _SEED_FILE), wanted)


def _windows(texts: Sequence[str], names: Sequence[str]) -> Windows:
    """How certificates' validity is cut, from window, margin and anchor, "" for the usual."""
    window, margin, anchor = texts
    usual = Windows()
    fraction = windows.fraction(window, where=names[0]) if window else usual.fraction
    part = windows.fraction(margin, where=names[1]) if margin else usual.margin
    begin = instant.seconds(instant.parse(anchor, where=names[2])) if anchor else None
    try:
        return Windows(fraction=fraction, margin=part, anchor=begin)
    except ConfigError as error:
        where = f"{names[0]} {fraction}, {names[1]} {part}"
        raise ConfigError(error.what, where=where, hint=error.hint) from error


def _item_epochs(items: Sequence[str]) -> dict[str, str]:
    found = {}
    for item in items:
        name, equals, epoch = item.rpartition("=")
        if not equals:
            raise ConfigError(
                f"{item!r} is no epoch of an item", where="--item-epoch", hint="write Secret/db/password=2"
            )
        found[name] = epoch
    return found


def _tool(
    variables: Mapping[str, str], *, binary: str = "", build_options: str = "", version: str = ""
) -> KustomizeTool:
    """What the operator says of Kustomize; options of a person's win. `version` is one that the operator offers.

    Raises:
        ConfigError: a variable is wrong.
    """
    return kustomize.tool(
        binary or _offered(variables, version) or variables.get("BECALM_KUSTOMIZE", ""),
        build_options or variables.get("BECALM_KUSTOMIZE_BUILD_OPTIONS", ""),
        variables.get(kustomize.HELM_COMMAND, ""),
        variables.get("BECALM_GIT_PROTOCOLS", ""),
    )


def _offered(variables: Mapping[str, str], version: str) -> str:
    """The program of a version of Kustomize (Argo CD's kustomize.path.VERSION of argocd-cm); "" for the usual one."""
    offers = {}
    for word in load.words(variables.get(_KUSTOMIZE_VERSIONS, "")):
        name, equals, path = word.partition("=")
        if not equals or not path.startswith("/"):
            raise ConfigError(
                f"{word!r} is no version", where=_KUSTOMIZE_VERSIONS, hint="write v5.8.1=/path/of/kustomize"
            )
        offers[name] = path
    # Helm's versions, which a chain may name, say nothing of Kustomize.
    if version in ("", "v3", "v4") and version not in offers:
        return ""
    if version not in offers:
        raise ConfigError(
            f"the operator does not offer Kustomize {version!r}",
            where=f"{parameters.WHERE}: version",
            hint=f"write one of: {', '.join(sorted(offers))}"
            if offers
            else f"remove it, or ask the operator for {_KUSTOMIZE_VERSIONS}",
        )
    return offers[version]
