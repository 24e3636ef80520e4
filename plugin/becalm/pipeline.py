"""The stages of a render, in their order: load, look, stage, survey and replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from becalm import lookups, overlays, pinned
from becalm.cmp.helm_environment import SEED_FILE
from becalm.config import looking
from becalm.config.keeping import Keeping
from becalm.config.looking import Looking
from becalm.copies import Copy, Inputs, decoded, read_inputs, release, work_directory
from becalm.derive import instant
from becalm.derive.cache import Cache
from becalm.derive.deriver import Deriver, Issued
from becalm.derive.labels import Application, Label, app_key
from becalm.derive.pins import NAME as PINS
from becalm.derive.pins import Pin, Pins, pins_of
from becalm.derive.seed import Seed
from becalm.derive.seed import write as seed_file
from becalm.derive.windows import Windows
from becalm.errors import ConfigError, SourceError, Warned
from becalm.manifests import yamlio
from becalm.manifests.scalars import Value
from becalm.normalise import application, packs, policy
from becalm.normalise.engine import normalise
from becalm.normalise.policy import Say, Scope, Selection
from becalm.normalise.rendered import Cluster
from becalm.sources import detect, directory, sourcing
from becalm.sources.chart import ChartTree, label, load_chart, write_chart
from becalm.sources.detect import Kind
from becalm.sources.directory import DirectoryOptions
from becalm.sources.edits import KustomizeOptions
from becalm.sources.helm import Helm, HelmOptions
from becalm.sources.kustomize import KustomizeTool, Told
from becalm.sources.sourcing import Remote, Sources
from becalm.stages import Stopwatch
from becalm.templates import functions
from becalm.templates.files import wants

if TYPE_CHECKING:
    from becalm.normalise.engine import Change
    from becalm.stabilise.looking import Looked, Lookups
    from becalm.stabilise.records import Records
    from becalm.stabilise.stabiliser import Stabilised


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One render: the chart, what helm is told, and whose values are derived.

    `root` is the repository's root, which nothing may leave; None means the chart itself. `at` is the time
    of the render in seconds since 1970, on which the windows of certificates depend, and nothing else.
    `epoch` is the app's, `item_epochs` are by item (`Secret/db/password`); raising one gives new values.
    `epochs_where` is the parameter or option that gave the latter. `rule_files` are the operator's packs of
    normalisation rules, `operator`, `app` and `by_hand` say which rules act, `app_scope` is where the app has a say, and
    `keeping` says what `generate` keeps of renders, `definitions` are files of the CustomResourceDefinitions that the cluster has. With `strict` an input that may
    change between two renders is an error, not a warning. `remote` is what is not in the directory: a chart from
    elsewhere, values files, and under which settings they are brought. `source` says what is rendered where that is not to be found out; `directory` is for plain directories, `kustomize` for Kustomizations,
    `looking` says how `lookup` is answered, unless `lookups` does it.
    `tool` says what builds them, and `variables` are those of the program that renders charts for it, `git` are those with
    credentials for the repository's server, and `parameters` is the file that a person gave for
    what an application sets. `pins` take the place of those of the application's file.
    """

    chart: Path
    root: Path | None
    options: HelmOptions
    application: Application
    seed: Seed | None = field(repr=False)
    helm: str = "helm"
    path: str = ""
    timeout: float = 50.0
    instant: str = instant.DEFAULT
    at: int
    windows: Windows = field(default_factory=Windows)
    cache: Path | None = None
    epoch: str = ""
    item_epochs: Mapping[str, str] = field(default_factory=dict)
    epochs_where: str = ""
    rule_files: tuple[Path, ...] = ()
    operator: tuple[Say, ...] = ()
    app: tuple[Say, ...] = ()
    by_hand: Say = field(default_factory=lambda: Say(where="--rule"))
    app_scope: Scope = field(default_factory=Scope)
    definitions: tuple[Path, ...] = ()
    strict: bool = False
    keeping: Keeping = field(default_factory=Keeping)
    remote: Remote = field(default_factory=Remote)
    directory: DirectoryOptions = field(default_factory=DirectoryOptions)
    source: Kind = ""
    kustomize: KustomizeOptions = field(default_factory=KustomizeOptions)
    tool: KustomizeTool = field(default_factory=KustomizeTool)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    git: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Path | None = None
    pins: Mapping[Label, Pin] | None = field(default=None, repr=False)
    looking: Looking = field(default_factory=Looking)
    lookups: Lookups | None = field(default=None, repr=False)

    @property
    def pins_file(self) -> Path:
        """Where the application's pins are, if it has any."""
        return self.chart / PINS if self.chart.is_dir() else self.chart.with_name(PINS)

    @property
    def kind(self) -> Kind:
        """What is rendered.

        Raises:
            SourceError: there is nothing of that sort.
        """
        return detect.require(
            self.chart,
            self.path_name,
            wanted=self.source,
            recurse=self.directory.recurse,
            has_chart=self.remote.chart is not None or self.remote.path is not None,
        )

    @property
    def repository(self) -> Path:
        """The repository's root; where none is given, the Git checkout around the source, else the source itself."""
        return self.root or detect.repository(self.chart)

    @property
    def path_name(self) -> str:
        """The source for messages: its place in the repository, or its name."""
        return label(self.chart.absolute(), self.root)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was rendered, how often helm ran, and what was stabilised (None: nothing to do).

    `before` is the output before it was normalised. `issued` are the certificates that were derived, by their PEM text; `changes` what was normalised, by rules
    of `selection`. `warnings` tell what may make the next render another one, and `charts` is what was told of those that
    Kustomize inflated. `lookups` are those of the last render, and `notices` tell what is deterministic, and all the same
    not what `helm install` would do, or not what was pinned.
    """

    output: str = field(repr=False)
    before: str = field(default="", repr=False)
    runs: int
    stabilised: Stabilised | None
    issued: Mapping[str, Issued] = field(default_factory=dict, repr=False)
    changes: tuple[Change, ...] = ()
    selection: Selection
    warnings: tuple[Warned, ...] = ()
    charts: Told = field(default_factory=Told)
    lookups: tuple[Looked, ...] = ()
    notices: tuple[Warned, ...] = ()


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
        return _Stable(built.output, 0, None, {}, built.warnings, built.told)
    chart = _chart(request, watch)
    if kind == "helm":
        return chart
    with watch.of("kustomize"):
        built = _built(request, chart.output)
    return replace(chart, output=built.output, warnings=(*chart.warnings, *built.warnings), charts=built.told)


def _chart(request: Request, watch: Stopwatch) -> _Stable:
    with _sourced(request, watch) as (helm, request, sources):  # noqa: PLR1704  # the same with its values files
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
        copy = _copy(helm, request, tree, inputs)
        answering = lookups_of(request)
        done = _stabilise(copy, request, deriver, answering, watch)
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


def _copy(helm: Helm, request: Request, tree: ChartTree, inputs: Inputs) -> Copy:
    return Copy(
        tree, inputs, work=helm.work, run=lambda chart: helm.template(chart, request.options),
        revision=request.options.revision,
    )  # fmt: skip


def _pin_notices(deriver: Deriver | None, request: Request) -> tuple[Warned, ...]:
    return () if deriver is None else tuple(pinned.notices(deriver.pins, at=request.at))


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A chart that draws, looked at closely: as it is rendered, and with two other values for each draw.

    `outputs` are what the two give to Argo CD, after Kustomize in a chain; `records` what they and the settled render
    recorded. `output` is the settled render's, not normalised. `pins` tells which pins were used.
    """

    done: Stabilised
    pins: Pins
    output: str = field(repr=False)
    settled: Records = field(repr=False)
    outputs: tuple[str, ...] = field(default=(), repr=False)
    records: tuple[Records, ...] = field(default=(), repr=False)


def study(request: Request, salts: Sequence[str] = (), *, is_loose: bool = False) -> Study | None:
    """Look at a chart; None where it draws nothing.

    Args:
        request: what to render.
        salts: for each, all draws get other values.
        is_loose: whether `request.pins` hold whatever their values are made from.

    Raises:
        PluginError: as `render`.
    """
    with _sourced(request) as (helm, request, sources):  # noqa: PLR1704  # the same with its values files
        inputs = read_inputs(sources.tree, request.options)
        if not wants(inputs.files, inputs.texts):
            return None
        copy = _copy(helm, request, sources.tree, inputs)
        deriver = deriver_of(request, is_loose=is_loose)
        # What a render answers itself is what was drawn for it.
        answering = None if request.looking.policy == "rendered" else lookups_of(request)
        done = _stabilise(copy, request, deriver, answering)
        if done.output is None:
            stock(helm, sources.chart, request)
            raise done.fault or unstable(sources.tree, done)
        settled = copy.observe()
        observed = [copy.observe(salt) for salt in salts]
    return Study(
        done=done,
        pins=Pins() if deriver is None else deriver.pins,
        output=_overlaid(request, done.output),
        settled=settled.records,
        outputs=tuple(_overlaid(request, one.output) for one in observed),
        records=tuple(one.records for one in observed),
    )


def _stabilise(
    copy: Copy,
    request: Request,
    deriver: Deriver | None,
    answering: Lookups | None,
    watch: Stopwatch | None = None,
) -> Stabilised:
    from becalm.stabilise.epochs import Epochs  # noqa: PLC0415  # not for charts that draw nothing

    return copy.stabilise(
        deriver=deriver, namespace=request.options.namespace, instant=request.instant,
        epochs=Epochs(request.item_epochs, where=request.epochs_where), lookups=answering, stopwatch=watch,
    )  # fmt: skip


def _overlaid(request: Request, output: str) -> str:
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
def _sourced(request: Request, watch: Stopwatch | None = None) -> Iterator[tuple[Helm, Request, Sources]]:
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
    with _sourced(request) as (helm, complete, sources):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that is not hermetic, and how it is treated."""

    file: str
    line: int
    function: str
    treatment: str


def audit(chart: Path) -> list[Call]:
    """Every call in a chart and its subcharts whose result depends on more than its arguments; none in manifests.

    Raises:
        ConfigError: it is a Kustomization.
        SourceError: there is no chart that can be read.
    """
    kind = detect.kind(chart)
    if kind == "directory":
        return []
    if kind == "kustomize":
        raise ConfigError(
            "a Kustomization has no calls of its own",
            where=chart.name,
            hint="audit the charts that it inflates",
        )
    return _audit(load_chart(chart, root=None))


def audit_of(request: Request) -> list[Call]:
    """The same for what a request renders, with everything that its chart lacks; none without a chart."""
    if request.kind not in ("helm", "chain"):
        return []
    with _sourced(request) as (_, _, sources):
        return _audit(sources.tree)


def _audit(tree: ChartTree) -> list[Call]:
    from becalm.templates.audit import calls  # noqa: PLC0415  # only this command needs it

    inputs = read_inputs(tree, HelmOptions(release="audit", namespace=""))
    return [
        Call(file=file.key, line=line, function=name, treatment=functions.functions()[name].treatment)
        for file in inputs.files
        for line, name in calls(file.text)
    ]


def default_values(chart: Path) -> dict[str, Value]:
    """The values of a chart's own values.yaml; none where it has none, or where there is no chart.

    Raises:
        SourceError: there is no chart that can be read.
        ManifestError: the file is no YAML.
    """
    if detect.kind(chart) not in ("helm", "chain"):
        return {}
    tree = load_chart(chart, root=None)
    if not tree.has("values.yaml"):
        return {}
    value = yamlio.load(tree.read("values.yaml").decode("utf-8", "replace"), where="values.yaml")
    return value if isinstance(value, dict) else {}
