"""`template`: the real helm on a rewritten copy of the chart, with the caller's own flags."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from becalm.copies import Copy, Inputs, read_inputs, work_directory
from becalm.dropin import command, flags, launch, told, values
from becalm.dropin.flags import Line, NotReadError
from becalm.dropin.session import Session, relay
from becalm.errors import (
    ConfigError,
    DeterminismError,
    PluginError,
    SeedMissingError,
    SourceError,
    ToolFailedError,
)
from becalm.sources.chart import ChartTree, load_chart
from becalm.sources.helm import HelmOptions
from becalm.sources.process import Command, forward_termination
from becalm.sources.process import run as run_tool
from becalm.templates import functions
from becalm.templates.files import wants

if TYPE_CHECKING:
    from becalm.request import Request
    from becalm.stabilise.stabiliser import Stabilised

_HELP_SECONDS = 50.0


class _StockFailsError(Exception):
    """Helm is expected to refuse the caller's line, and to say why; `fault` is the error if it does not."""

    def __init__(self, fault: PluginError | None = None) -> None:
        super().__init__()
        self.fault = fault


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The chart that is rendered, and whether it is the caller's own, as it is."""

    path: Path
    is_callers: bool
    tree: ChartTree
    inputs: Inputs


def run(helm: str, arguments: Sequence[str], at: int, variables: Mapping[str, str]) -> int:
    """Render as the caller's line says, the same way every time; the exit code, or minus a signal's number.

    Args:
        helm: the path of the real helm.
        arguments: the line without its program.
        at: the place of `template` in it.
        variables: the environment.

    Raises:
        PluginError: the chart cannot be rendered the same way twice, or is refused.
    """
    try:
        line = _line(helm, arguments, at, variables)
    except NotReadError:
        return _refused(helm, arguments, at, variables)
    if line.is_on("help"):
        launch.become(helm, arguments, variables)
    with work_directory() as work:
        stdin = _spooled(line, work)
        session = Session(helm=helm, line=line, environment=variables, work=work, stdin=stdin)
        code = _rendered(session, arguments, at)
        # It stays open when the directory goes.
        kept = None if stdin is None else os.open(stdin, os.O_RDONLY)
    if code is None:
        launch.become(helm, arguments, variables, stdin=kept)
    return code


def _rendered(session: Session, arguments: Sequence[str], at: int) -> int | None:
    """The exit code of the render; None where the caller's line can run as it is."""
    with forward_termination():
        try:
            chart, is_stable = _prepare(session)
        except _StockFailsError as error:
            code = _refused_flags(session.helm, arguments, at, session.environment)
            return _told(session, error.fault) if code is None else code
        except _RefusedError as error:
            return error.code
    return None if chart is None else session.finish(chart, stable=is_stable)


def _line(helm: str, arguments: Sequence[str], at: int, variables: Mapping[str, str]) -> Line:
    line = [*arguments[:at], *arguments[at + 1 :]]
    table = flags.known(command.SWITCHES)
    try:
        return flags.read(line, table)
    except NotReadError:
        done = run_tool(
            Command(argv=(helm, "template", "--help"), cwd=Path.cwd(), env=variables, timeout=_HELP_SECONDS)
        )
        return flags.read(line, flags.from_help(done.stdout.decode("utf-8", "replace"), table))


def _refused(helm: str, arguments: Sequence[str], at: int, variables: Mapping[str, str]) -> int:
    """Let helm say what it does not like of a line. `--help` sees to it that it renders nothing if it does."""
    code = _refused_flags(helm, arguments, at, variables)
    if code is not None:
        return code
    raise ConfigError(
        "the line has a flag that helm knows and becalm-helm does not",
        where="helm template",
        hint="leave it out, or report it with the version of your helm",
    )


def _refused_flags(helm: str, arguments: Sequence[str], at: int, variables: Mapping[str, str]) -> int | None:
    """Helm's exit code, with its words printed, if it refuses a flag or its value; else None."""
    argv = (helm, *arguments[: at + 1], "--help", *arguments[at + 1 :])
    done = run_tool(Command(argv=argv, cwd=Path.cwd(), env=variables, timeout=_HELP_SECONDS))
    return relay(done) if done.returncode != 0 else None


def _spooled(line: Line, work: Path) -> Path | None:
    """Standard input in a file, where helm reads it, since helm runs more than once."""
    if not values.reads_stdin(line):
        return None
    spool = work / "stdin"
    with spool.open("xb") as target:
        shutil.copyfileobj(sys.stdin.buffer, target)
    return spool


def _told(session: Session, fault: PluginError | None) -> int:
    """Helm's own words and exit code for what it refuses; `fault` where it does not."""
    done = session.stock()
    if done.returncode != 0:
        return relay(done)
    raise fault or SourceError(
        "helm renders the chart as it is, but not as becalm-helm looks at it",
        where="helm template",
        hint="please report it",
    )


class _RefusedError(Exception):
    """Helm has refused, and its words are out."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


def _prepare(session: Session) -> tuple[Path | None, bool]:
    """The chart to render at last, and whether it is stabilised; None for the caller's line as it is."""
    if functions.draws(session.line.last("name-template")):
        raise DeterminismError(
            "the name of the release is drawn", where="--name-template", hint="give the release a name"
        )
    found = _found(session)
    if not wants(found.inputs.files, found.inputs.texts):
        return (None if found.is_callers else found.path), False
    return _stabilised(session, found), True


def _found(session: Session) -> _Found:
    chart, is_callers = _chart(session)
    try:
        tree = load_chart(chart, root=_root(chart, session.environment))
        if session.line.is_on("dependency-update") and chart.is_dir():
            from becalm.dropin import neighbours  # noqa: PLC0415  # loads YAML

            chart, ours, theirs = neighbours.copy(tree, chart, session.work)
            is_callers = False
            done = session.render(chart, "--dependency-update")
            if done.returncode != 0:
                raise _RefusedError(relay(done, renamed={str(chart): session.chart, str(ours): str(theirs)}))
            tree = load_chart(chart)
        merged = values.merged(session)
        if merged is None:
            raise _StockFailsError
        inputs = read_inputs(tree, HelmOptions(release="", namespace="", inline=merged))
    except SourceError as fault:
        raise _StockFailsError(fault) from fault
    return _Found(path=chart, is_callers=is_callers, tree=tree, inputs=inputs)


def _chart(session: Session) -> tuple[Path, bool]:
    """The chart at hand, and whether the caller has it (helm's pkg/action/install.go, `LocateChart`)."""
    if len(session.line.arguments) not in {1, 2}:
        raise _StockFailsError
    path = Path(session.chart)
    if not session.chart or not path.exists():
        if not session.chart or path.is_absolute() or session.chart.startswith("."):
            raise _StockFailsError
        try:
            return session.pull(), False
        except SourceError as fault:
            raise _StockFailsError(fault) from fault
    path = Path.cwd() / path
    if session.line.is_on("verify") and session.render(path, "--verify").returncode != 0:
        raise _StockFailsError
    return path, True


def _root(chart: Path, variables: Mapping[str, str]) -> Path | None:
    """The repository, where the chart is in the one that Argo CD handed over; links may not leave it."""
    if not variables.get("ARGOCD_APP_SOURCE_PATH"):
        return None
    from becalm.cmp.environment import repository_root  # noqa: PLC0415  # not outside of Argo CD

    root = repository_root(Path.cwd(), variables)
    return root if chart.resolve().is_relative_to(root.resolve()) else None


def _stabilised(session: Session, found: _Found) -> Path:
    """A copy of the chart that renders the same way every time.

    Raises:
        ConfigError: the seed or the application's identity is missing.
        PluginError: as `Stabiliser.run`.
    """
    from becalm import certs, pipeline, wiring  # noqa: PLC0415  # not for charts that draw nothing
    from becalm.stabilise.epochs import Epochs  # noqa: PLC0415

    namespace = session.line.last("namespace") or session.environment.get("HELM_NAMESPACE", "")
    request: Request = wiring.for_helm(found.path, HelmOptions(release="", namespace=namespace))
    answering = pipeline.lookups_of(request)
    copy = Copy(found.tree, found.inputs, work=session.work, run=session.render)
    deriver = pipeline.deriver_of(request)
    try:
        done = copy.stabilise(
            deriver=deriver,
            namespace=request.options.namespace,
            instant=request.instant,
            # Another chart of the same application may use the others.
            epochs=Epochs(request.item_epochs, where=request.epochs_where, all_used=False),
            lookups=answering,
        )
    except SeedMissingError as error:
        raise ConfigError(
            f"{error.what} and an application to derive values for",
            where=error.where,
            hint=f"set {', '.join(wiring.unset_for_values())}",
        ) from error
    if done.output is None and any(answering.answers.values()):
        raise done.fault or ToolFailedError(
            "helm cannot render the chart with what it looks up",
            where="helm template",
            details=tuple((done.error or "").splitlines()[:20]),
        )
    if done.output is None:
        raise _StockFailsError(done.fault or pipeline.unstable(found.tree, done))
    if deriver is not None:
        told.changes(session.environment, certs.changes(deriver.issued))
    _tell_lookups(session, request, done)
    copy.quieten()
    return copy.path


def _tell_lookups(session: Session, request: Request, done: Stabilised) -> None:
    """Tell what a chart looks up; what the cluster answers may be something else tomorrow, as what is fetched."""
    from becalm import console, lookups  # noqa: PLC0415  # not for charts that draw nothing

    if done.lookups and request.looking.policy == "live":
        told.fetched(session.environment)
    notices = lookups.notices(done.lookups, request.looking)
    if not told.noticed(session.environment, notices):
        for one in notices:
            console.warn(one.line())
