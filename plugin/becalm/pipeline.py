"""The stages of a render, in their order: load, look, stage, survey and replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from becalm import lookups, overlays, pinned
from becalm.cmp.helm_environment import SEED_FILE
from becalm.config import looking
from becalm.copies import Copy, Inputs, decoded, read_inputs, release, work_directory
from becalm.derive.cache import Cache
from becalm.derive.deriver import Deriver, Issued
from becalm.derive.labels import app_key
from becalm.derive.pins import Pins, pins_of
from becalm.derive.seed import write as seed_file
from becalm.errors import SourceError, Warned
from becalm.normalise import application, packs, policy
from becalm.normalise.engine import normalise
from becalm.normalise.policy import Say, Selection
from becalm.normalise.rendered import Cluster
from becalm.request import Request, Result
from becalm.sources import directory, sourcing
from becalm.sources.chart import ChartTree, write_chart
from becalm.sources.helm import Helm
from becalm.sources.kustomize import Told
from becalm.sources.sourcing import Sources
from becalm.stages import Stopwatch
from becalm.templates.files import wants

if TYPE_CHECKING:
    from becalm.stabilise.looking import Looked, Lookups
    from becalm.stabilise.stabiliser import Stabilised


@dataclass(frozen=True, slots=True)
class _Stable:
    """What was rendered, before it is normalised."""

    output: str
    runs: int
    stabilised: Stabilised | None
    issued: Mapping[str, Issued]
    warnings: tuple[Warned, ...]
    charts: Told = field(default_factory=Told)
    lookups: tuple[Looked, ...] = ()
    notices: tuple[Warned, ...] = ()


def render(request: Request, stopwatch: Stopwatch | None = None) -> Result:
    """Render a chart the same way every time, and bring it to the form that the cluster stores.

    Args:
        request: what to render.
        stopwatch: measures the stages.

    Raises:
        PluginError: the chart, its values, helm, the seed or a rule are at fault.
    """
    selection = select(request)
    watch = stopwatch or Stopwatch()
    stable = _stabilised(request, watch)
    cluster = Cluster(
        namespace=request.options.namespace,
        kube_version=request.options.kube_version,
        definitions=request.definitions,
    )
    with watch.of("normalise"):
        done = normalise(stable.output, selection, cluster)
    return Result(
        output=done.output,
        before=stable.output,
        runs=stable.runs,
        stabilised=stable.stabilised,
        issued=stable.issued,
        changes=done.changes,
        selection=selection,
        warnings=stable.warnings,
        charts=stable.charts,
        lookups=stable.lookups,
        notices=(*stable.notices, *lookups.notices(stable.lookups, request.looking)),
    )


def select(request: Request) -> Selection:
    """The rules that may act on what a chart renders.

    Raises:
        RuleError: a rule file or a switch is wrong, or the app says more than it may.
    """
    own = application.read(request.chart) if request.chart.is_dir() else application.ApplicationFile()
    return policy.select(
        (*packs.built_in(), *map(packs.read, request.rule_files)),
        request.operator,
        app=(Say(where=application.NAME, switches=own.switches), *request.app),
        app_packs=() if own.pack is None else (own.pack,),
        scope=request.app_scope,
        last=request.by_hand,
    )


def _stabilised(request: Request, watch: Stopwatch) -> _Stable:
    kind = request.kind
    if kind == "directory":
        with watch.of("source"):
            return _Stable(_manifests(request), 0, None, {}, ())
    if kind == "kustomize":
        with watch.of("kustomize"):
            built = _built(request, None)
        return _Stable(built.output, 0, None, {}, built.warnings, built.told, notices=built.told.notices)
    chart = _chart(request, watch)
    if kind == "helm":
        return chart
    with watch.of("kustomize"):
        built = _built(request, chart.output)
    return replace(
        chart,
        output=built.output,
        warnings=(*chart.warnings, *built.warnings),
        charts=built.told,
        notices=(*chart.notices, *built.told.notices),
    )


def _chart(request: Request, watch: Stopwatch) -> _Stable:
    with sourced(request, watch) as (helm, request, sources):  # noqa: PLR1704  # the same with its values files
        tree, warnings = sources.tree, sources.warnings
        with watch.of("source"):
            inputs = read_inputs(tree, request.options)
        if not wants(inputs.files, inputs.texts) and not request.item_epochs:
            chart = _with_release(sources, request, helm.work)
            with watch.of("helm"):
                output = stock(helm, chart, request)
            _require_helm(helm, output)
            notices = _pin_notices(deriver_of(request), request)
            return _Stable(output, helm.runs, None, {}, warnings, notices=notices)
        deriver = deriver_of(request)
        copy = copied(helm, request, tree, inputs)
        answering = lookups_of(request)
        done = stabilise(copy, request, deriver, answering, watch)
        if done.output is None and any(answering.answers.values()):
            raise done.fault or helm.failed(done.error or "")
        if done.output is None:
            # helm's own words about the chart as it was written are clearer than about ours.
            with watch.of("helm"):
                stock(helm, sources.chart, request)
            raise done.fault or unstable(tree, done)
        _require_helm(helm, done.output)
        issued = {} if deriver is None else deriver.issued
        return _Stable(
            done.output, helm.runs, done, issued, warnings,
            lookups=done.lookups, notices=_pin_notices(deriver, request),
        )  # fmt: skip


def copied(helm: Helm, request: Request, tree: ChartTree, inputs: Inputs) -> Copy:
    """The private copy of a chart that helm renders for a request."""
    return Copy(
        tree, inputs, work=helm.work, run=lambda chart: helm.template(chart, request.options),
        revision=request.options.revision,
    )  # fmt: skip


def _pin_notices(deriver: Deriver | None, request: Request) -> tuple[Warned, ...]:
    return () if deriver is None else tuple(pinned.notices(deriver.pins, at=request.at))


def stabilise(
    copy: Copy,
    request: Request,
    deriver: Deriver | None,
    answering: Lookups | None,
    watch: Stopwatch | None = None,
) -> Stabilised:
    """Render a copy until nothing is left to settle.

    Raises:
        PluginError: as `Stabiliser.run`.
    """
    from becalm.stabilise.epochs import Epochs  # noqa: PLC0415  # not for charts that draw nothing

    return copy.stabilise(
        deriver=deriver, namespace=request.options.namespace, instant=request.instant,
        epochs=Epochs(request.item_epochs, where=request.epochs_where), lookups=answering, stopwatch=watch,
    )  # fmt: skip


def overlaid(request: Request, output: str) -> str:
    """What a chart gives to Argo CD: its output, in a chain after Kustomize."""
    return output if request.kind == "helm" else _built(request, output).output


def _require_helm(helm: Helm, output: str) -> None:
    """Where nothing was printed, make sure that it was helm: Argo CD would delete everything."""
    if not output.strip():
        helm.require_supported()


def _with_release(sources: Sources, request: Request, work: Path) -> Path:
    """The chart, or a copy of it in which `.Release.Revision` is what was asked for."""
    added = release(sources.tree, request.options.revision)
    return write_chart(sources.tree, added, work / "release" / "chart") if added else sources.chart


@contextmanager
def sourced(request: Request, watch: Stopwatch | None = None) -> Iterator[tuple[Helm, Request, Sources]]:
    """A helm with a private directory, the request with all its values files here, and the chart that lacks nothing."""
    with work_directory() as work:
        helm = Helm(binary=request.helm, path=request.path, work=work, timeout=request.timeout)
        with (watch or Stopwatch()).of("source"):
            found = sourcing.obtain(
                request.chart, request.root, request.options.values, request.remote, helm,
                project=request.application.project, cache=request.cache, strict=request.strict,
            )  # fmt: skip
        yield helm, replace(request, options=replace(request.options, values=found.values)), found


def unstable(tree: ChartTree, done: Stabilised) -> SourceError:
    """The error for a chart that only stock helm renders."""
    return SourceError(
        "the chart renders with stock helm but not when it is stabilised",
        where=tree.where,
        hint="please report this chart",
        details=tuple((done.error or "").splitlines()[:5]),
    )


def deriver_of(request: Request, *, is_loose: bool = False) -> Deriver | None:
    """What answers the draws of a request; None without a seed.

    Raises:
        ConfigError: the file of pins is damaged, or a pin is not of this application.
    """
    if request.seed is None:
        return None
    key = app_key(request.seed.secret, request.seed.id, request.application, request.epoch)
    taken = (
        pins_of(request.pins_file, request.seed, request.application, request.epoch)
        if request.pins is None
        else Pins(request.pins, is_loose=is_loose)
    )
    return Deriver(key, at=request.at, windows=request.windows, cache=Cache(request.cache), pins=taken)


def lookups_of(request: Request) -> Lookups:
    """What answers the lookups of a request."""
    return request.lookups or lookups.answering(
        request.looking,
        directory=Path(request.looking.directory)
        if request.looking.directory
        else (request.chart if request.chart.is_dir() else request.chart.parent),
        application=request.application,
        seed=request.seed,
        namespace=request.options.namespace,
    )


def render_stock(request: Request) -> str:
    """What the stock tools render, for comparison."""
    kind = request.kind
    if kind == "directory":
        return _manifests(request)
    if kind == "kustomize":
        return _built(request, None, is_stock=True).output
    with sourced(request) as (helm, complete, sources):
        output = stock(helm, _with_release(sources, complete, helm.work), complete)
    return output if kind == "helm" else _built(request, output, is_stock=True).output


def _built(request: Request, chart: str | None, *, is_stock: bool = False) -> overlays.Built:
    """A Kustomization with the output of the chart beside it; with `is_stock`, the real helm inflates charts."""
    with work_directory() as work:
        overlay = overlays.Overlay(
            app=request.chart, root=request.repository, where=request.path_name,
            options=request.kustomize, tool=request.tool, path=request.path, timeout=request.timeout,
            network=request.remote.network, git=request.git, variables=_variables(request, work),
            helm_command=request.helm if is_stock else "", chart=chart,
        )  # fmt: skip
        return overlays.build(overlay, work, strict=request.strict)


def _variables(request: Request, work: Path) -> Mapping[str, str]:
    """What becalm-helm reads; a seed that no variable names is put into a file that nothing of the app's reaches."""
    if not request.tool.inflates:
        return request.variables
    variables = {**request.variables, **looking.written(request.looking, str(request.chart.absolute()))}
    if request.seed is None or SEED_FILE in variables:
        return variables
    file = work / "seed"
    file.touch(mode=0o600)
    file.write_bytes(seed_file(request.seed))
    return {**variables, SEED_FILE: str(file)}


def _manifests(request: Request) -> str:
    return directory.read(request.chart, request.directory, root=request.root, where=request.path_name)


def stock(helm: Helm, chart: Path, request: Request) -> str:
    """Run helm on a chart as it is."""
    # Helm runs elsewhere, and takes what it does not find for the name of a chart in a repository.
    done = helm.template(chart.absolute(), request.options)
    if done.returncode != 0:
        raise helm.failure(done)
    return decoded(done.stdout)
