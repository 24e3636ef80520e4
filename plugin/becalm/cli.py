"""The command line: arguments to a request, errors to an exit code, output in one piece."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from becalm import __version__
from becalm.errors import EXIT_BUG, ConfigError, PluginError

if TYPE_CHECKING:
    from becalm.derive.seed import Seed
    from becalm.pipeline import Request

_SEED_FILE = "/etc/becalm/seed/seed"

_EXAMPLES = """\
to see what a chart does, before anything is installed:
  becalm audit ./chart
  becalm verify ./chart --app shop --namespace shop --throwaway-seed

to render it as Argo CD would, with a seed of your own:
  becalm seed new ./seed
  becalm render ./chart --app shop --namespace shop --seed ./seed

Manifests go to stdout, complete or not at all. Errors go to stderr: the first line says what is
wrong, where, and what to do. `becalm COMMAND --help` explains each command.
"""
_GENERATE = """\
Renders the chart in the current directory. Argo CD runs this, from plugin.yaml; it sets the
ARGOCD_APP_... and KUBE_... variables. The operator sets, on the sidecar:

  BECALM_SEED_FILE  the seed (default: /etc/becalm/seed/seed)
  BECALM_CLUSTER    an id of the cluster that becomes part of every value (default: empty)
  BECALM_INSTANT    stands for the clock, RFC 3339 (default: 2024-01-01T00:00:00Z);
                    an app can set its own in source.plugin.env
  BECALM_HELM       the helm binary (default: helm in the PATH)
"""
_RENDER = """\
Renders a chart as `becalm generate` would in Argo CD, and prints the manifests. The application's
name, project, namespace and cluster id are part of every derived value: give the same as in Argo CD
to get the same.
"""
_VERIFY = """\
Renders a chart in three separate processes with becalm, and twice with stock helm. Fails unless
becalm's outputs are byte for byte the same and differ from stock helm's only in fields in which stock
helm differs from itself. Lists what was stabilised: function, place in the chart, where it lands.
No value is ever shown.
"""
_AUDIT = """\
Lists, without rendering, every call in the chart and its subcharts whose result depends on more than
its arguments, with how it is treated:

  draw            derived from the seed and from where the value lands
  clock           answered with the fixed instant
  clock-fallback  the fixed instant, where the function would read the clock
  order           a map's keys or values, in the order of the keys
  empty           helm itself answers with nothing, every time
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        output: str = arguments.run(arguments)
    except PluginError as error:
        sys.stderr.write(f"Error: {error}\n")
        return error.exit_code
    except Exception as error:  # noqa: BLE001  # whatever it is, its text may hold a value and must not be shown
        sys.stderr.write(_bug(error))
        return EXIT_BUG
    return _write(output)


def _write(output: str) -> int:
    """Everything to stdout, as UTF-8 whatever the locale is."""
    stream = sys.stdout.buffer  # noqa: TID251
    try:
        stream.write(output.encode())
        stream.flush()
    except OSError as error:
        # Python would try again when it ends, and complain on stderr.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            return 128 + signal.SIGPIPE
        sys.stderr.write(f"Error: the output could not be written: {error.strerror}\n")
        return 1
    return 0


def _bug(error: Exception) -> str:
    """What to report: the kind of error and the places, without its text and without any value."""
    frames = [
        f"  {Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return "\n".join(
        (
            f"Error: internal error ({type(error).__name__}); please report it with these lines",
            *frames[-30:],
            "",
        )
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="becalm",
        description="Renders Helm charts the same way every time, for Argo CD.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"becalm {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    generate = commands.add_parser(
        "generate",
        help="render the chart in the current directory (Argo CD runs this)",
        description=_GENERATE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    generate.set_defaults(run=_generate)
    render = commands.add_parser(
        "render",
        help="render a chart by hand, as `generate` would",
        description=_RENDER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_request(render)
    render.set_defaults(run=_render)
    verify = commands.add_parser(
        "verify",
        help="prove that a chart renders the same, and nothing else changes",
        description=_VERIFY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_request(verify)
    verify.set_defaults(run=_verify)
    audit = commands.add_parser(
        "audit",
        help="list every call whose result changes, and how it is treated",
        description=_AUDIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    audit.add_argument("chart", type=Path, metavar="PATH", help="a chart directory or .tgz file")
    audit.set_defaults(run=_audit)
    seed = commands.add_parser("seed", help="make a seed").add_subparsers(required=True, metavar="COMMAND")
    new = seed.add_parser(
        "new",
        help="write a fresh seed to a new file with mode 0600",
        description="Writes a fresh seed to a new file with mode 0600 and prints its fingerprint. Keep a backup:\n"
        "losing or replacing the seed changes every derived value.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    new.add_argument("file", type=Path, metavar="FILE")
    new.set_defaults(run=_seed_new)
    return parser


def _add_request(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("chart", type=Path, metavar="PATH", help="a chart directory or .tgz file")
    add("--app", required=True, metavar="NAME", help="the Application's name, and the release's")
    add("--namespace", required=True, metavar="NS", help="the destination namespace")
    add("--project", default="default", metavar="P", help="the Application's project (default: default)")
    add("--cluster", default="", metavar="ID", help="the cluster's id, as the operator configured it")
    add("-f", "--values", action="append", default=[], type=Path, metavar="FILE", help="a values file")
    add("--set", action="append", default=[], dest="sets", metavar="K=V", help="a value, as helm's --set")
    add("--kube-version", default="", metavar="V", help="the Kubernetes version to render for")
    add("--api-versions", action="append", default=[], metavar="A", help="an API version the cluster has")
    add(
        "--instant",
        default="",
        metavar="T",
        help="stands for the clock, RFC 3339 (default: 2024-01-01T00:00:00Z)",
    )
    add("--at", default="", metavar="T", help="when certificates are looked at, RFC 3339 (default: now)")
    add(
        "--timeout",
        type=_seconds,
        default=50.0,
        metavar="S",
        help="seconds for one run of helm (default: 50)",
    )
    add("--helm", default="helm", metavar="FILE", help="the helm binary (default: helm in the PATH)")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--seed", type=Path, metavar="FILE", help="the seed file")
    group.add_argument("--throwaway-seed", action="store_true", help="a seed for this run only, for previews")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise ValueError
    return seconds


def _instant(text: str, where: str) -> str:
    from becalm.derive import instant  # noqa: PLC0415

    return instant.parse(text, where=where) if text else instant.DEFAULT


def _at(text: str) -> int:
    from becalm.derive import clock, instant  # noqa: PLC0415

    return instant.seconds(instant.parse(text, where="--at")) if text else clock.now()


def _progress(text: str) -> None:
    """Tell a person what a long command does; a log needs none of it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text} ...\n")


def _seed(path: Path | None, *, throwaway: bool = False) -> Seed | None:
    from becalm.config import load  # noqa: PLC0415  # keeps --help and --version fast
    from becalm.derive import seed  # noqa: PLC0415

    if throwaway:
        return seed.parse(seed.new(), where="--throwaway-seed")
    return None if path is None else seed.parse(load.seed_bytes(path), where=str(path))


def _request(arguments: argparse.Namespace, seed_content: bytes | None = None) -> Request:
    from becalm.config import load  # noqa: PLC0415
    from becalm.derive import seed  # noqa: PLC0415
    from becalm.derive.labels import Application  # noqa: PLC0415
    from becalm.pipeline import Request  # noqa: PLC0415
    from becalm.sources.helm import HelmOptions  # noqa: PLC0415

    return Request(
        chart=arguments.chart,
        root=None,
        options=HelmOptions(
            release=arguments.app,
            namespace=arguments.namespace,
            values=tuple(path.resolve() for path in arguments.values),
            sets=tuple(arguments.sets),
            kube_version=arguments.kube_version,
            api_versions=tuple(arguments.api_versions),
        ),
        application=Application(
            name=arguments.app,
            project=arguments.project,
            namespace=arguments.namespace,
            cluster=arguments.cluster,
        ),
        seed=seed.parse(seed_content, where="seed")
        if seed_content is not None
        else _seed(arguments.seed, throwaway=arguments.throwaway_seed),
        helm=str(Path(arguments.helm).resolve()) if "/" in arguments.helm else arguments.helm,
        path=load.environment().get("PATH", ""),
        timeout=arguments.timeout,
        instant=_instant(arguments.instant, "--instant"),
        at=_at(arguments.at),
        cache=load.cache_directory(load.environment()),
    )


def _run(request: Request) -> str:
    from becalm.pipeline import render  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415

    with forward_termination():
        return render(request).output


def _render(arguments: argparse.Namespace) -> str:
    return _run(_request(arguments))


def _verify(arguments: argparse.Namespace) -> str:
    from becalm.config import load  # noqa: PLC0415
    from becalm.derive import seed  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415
    from becalm.verify import verify  # noqa: PLC0415

    content = load.seed_bytes(arguments.seed) if arguments.seed else None
    if arguments.throwaway_seed:
        content = seed.new()
    request = _request(arguments, content)
    with forward_termination():
        verdict = verify(request, _as_arguments(request), content, _progress)
    counts = Counter((row.function, row.place, row.lands) for row in verdict.rows)
    rows = [(a, b, f"{c} ({count} times)" if count > 1 else c) for (a, b, c), count in counts.items()]
    if rows:
        rows.insert(0, ("FUNCTION", "PLACE", "LANDS"))
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    table = "".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}\n" for a, b, c in rows)
    return f"{table}Verified: becalm's renders are identical; stock helm's differ in {verdict.drifting} fields.\n"


def _as_arguments(request: Request) -> list[str]:
    """A request as arguments of `render`, without its seed."""
    from becalm.derive import instant  # noqa: PLC0415

    options, app = request.options, request.application
    return [
        str(request.chart.resolve()),
        f"--app={app.name}",
        f"--namespace={app.namespace}",
        f"--project={app.project}",
        f"--cluster={app.cluster}",
        *(f"--values={path}" for path in options.values),
        *(f"--set={item}" for item in options.sets),
        f"--kube-version={options.kube_version}",
        *(f"--api-versions={item}" for item in options.api_versions),
        f"--instant={request.instant}",
        f"--at={instant.written(request.at)}",
        f"--timeout={request.timeout:g}",
        f"--helm={request.helm}",
    ]


def _generate(_: argparse.Namespace) -> str:
    from becalm.cmp import environment  # noqa: PLC0415
    from becalm.config import load  # noqa: PLC0415
    from becalm.derive import clock  # noqa: PLC0415
    from becalm.derive.labels import Application  # noqa: PLC0415
    from becalm.pipeline import Request  # noqa: PLC0415
    from becalm.sources.helm import HelmOptions  # noqa: PLC0415

    variables = load.environment()
    app = environment.read(variables)
    seed_file = Path(variables.get("BECALM_SEED_FILE") or _SEED_FILE)
    output = _run(
        Request(
            chart=Path.cwd(),
            root=None,
            options=HelmOptions(
                release=app.release,
                namespace=app.namespace,
                kube_version=app.kube_version,
                api_versions=app.api_versions,
            ),
            application=Application(
                name=app.name,
                project=app.project,
                namespace=app.namespace,
                cluster=variables.get("BECALM_CLUSTER", ""),
            ),
            seed=_seed(seed_file) if seed_file.exists() or "BECALM_SEED_FILE" in variables else None,
            helm=variables.get("BECALM_HELM") or "helm",
            path=variables.get("PATH", ""),
            at=clock.now(),
            cache=load.cache_directory(variables),
            instant=_instant(app.instant, "BECALM_INSTANT in source.plugin.env")
            if app.instant
            else _instant(variables.get("BECALM_INSTANT", ""), "BECALM_INSTANT"),
        )
    )
    if not output.strip():
        raise ConfigError(
            "the chart renders to nothing, and Argo CD would delete everything",
            where=app.name,
            hint="check the values, or remove the Application",
        )
    return output


def _audit(arguments: argparse.Namespace) -> str:
    from becalm.pipeline import audit  # noqa: PLC0415

    calls = audit(arguments.chart)
    if not calls:
        return "No call whose result changes.\n"
    rows = [(f"{call.file}:{call.line}", call.function, call.treatment) for call in calls]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}\n" for a, b, c in rows)


def _seed_new(arguments: argparse.Namespace) -> str:
    from becalm.derive import seed  # noqa: PLC0415

    path: Path = arguments.file
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(seed.new())
    except OSError as error:
        raise ConfigError(f"the seed cannot be written: {error.strerror}", where=str(path)) from error
    return f"{path}: a fresh seed, fingerprint {seed.parse(path.read_bytes(), where=str(path)).id}\n"
