"""The command line: arguments to a request, errors to an exit code, output in one piece."""

from __future__ import annotations

import argparse
import dataclasses
import json
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
    from becalm.pipeline import Request

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

  BECALM_SEED_FILE           the seed, or a directory of seeds (default: /etc/becalm/seed)
  BECALM_SEED_ID             which of several seeds is used, by file name or fingerprint
  BECALM_CLUSTER             an id of the cluster that becomes part of every value (default: empty)
  BECALM_INSTANT             stands for the clock, RFC 3339 (default: 2024-01-01T00:00:00Z);
                             an app can set its own in source.plugin.env
  BECALM_CERTIFICATE_WINDOW  the part of its validity for which a certificate stays (default: 1/3)
  BECALM_CERTIFICATE_MARGIN  the part of its validity that is always left (default: 1/4)
  BECALM_CERTIFICATE_ANCHOR  when windows begin, RFC 3339 (default: each certificate has its own time)
  BECALM_RULES               switches of rules: "+core +admission -core/status", or "+all"
  BECALM_RULES_DIR           a directory of further rule files
  BECALM_CACHE_DIR           where keys are kept, encrypted; "off" for nowhere (default: the user's cache)
  BECALM_HELM                the helm binary (default: helm in the PATH)

An app team can set, in source.plugin.parameters:

  becalm.epoch   (string) another one gives the whole app new values
  becalm.epochs  (map)    the same by item: {Secret/db/password: "2"}
  becalm.rules   (array)  switches of rules: ["+core", "-core/status"]
  becalm.seed    (string) stay on this seed, by file name or fingerprint, when the operator moves on
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
_CERTS = """\
Renders a chart and lists every certificate in the output, also those inside Secrets and caBundles: subject,
names, issuer, validity, when becalm replaces it, whether a rendered authority signed it, and where in the
same object its private key is. `--at T` looks at another day.
"""
_DERIVE = """\
Renders a chart and lists what becalm derives: the item (the place that owns a value, as --item-epoch
takes it), the function, the label, and a fingerprint. Equal fingerprints mean equal values, within one
application and seed; nothing else can be learnt from them.

  becalm derive ./chart --app shop --namespace shop --seed ./seed --object Secret/db --key password

Prints a value only with --reveal, only one, and only on a terminal.
"""
_EXPLAIN = """\
Renders a chart and lists what normalisation changes: object, field, rule, and why. A field that is taken away
and was applied before is removed from the cluster once, at the first sync; such changes are marked.
"""
_RULES = """\
Rules say which fields of rendered objects are taken away, filled in, or brought to the form that the cluster
stores, so that they never show as a difference. The built-in packs act when they are switched on, with
`--rule +all`, `--rule +core`, or BECALM_RULES on the sidecar; `becalm explain` shows what they do to a chart.

  becalm rules list                 every built-in rule, by pack
  becalm rules show core/status     one rule, with its reason and examples
  becalm rules check my-rules.yaml  whether a file is right
  becalm rules test my-rules.yaml   whether its rules do what its examples say
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
    certs = commands.add_parser(
        "certs",
        help="list every certificate in the output, and whether its chain verifies",
        description=_CERTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_request(certs)
    certs.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    certs.set_defaults(run=_certs)
    derive = commands.add_parser(
        "derive",
        help="list what is derived, with labels and fingerprints",
        description=_DERIVE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_request(derive)
    derive.add_argument("--object", default="", metavar="KIND/NAME", help="only what is in this object")
    derive.add_argument("--key", default="", metavar="KEY", help="only what is under this key of it")
    derive.add_argument("--reveal", action="store_true", help="print the value, on a terminal only")
    derive.set_defaults(run=_derive)
    explain = commands.add_parser(
        "explain",
        help="list what rules change in the output, and why",
        description=_EXPLAIN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_request(explain)
    explain.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    explain.set_defaults(run=_explain)
    _add_rules(commands)
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


def _add_rules(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rules = commands.add_parser(
        "rules",
        help="list, show, check and test normalisation rules",
        description=_RULES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).add_subparsers(required=True, metavar="COMMAND")
    listing = rules.add_parser("list", help="list the built-in rules")
    listing.set_defaults(run=_rules_list)
    show = rules.add_parser("show", help="show one built-in rule")
    show.add_argument("rule", metavar="ID", help="PACK/RULE, as `becalm rules list` names it")
    show.set_defaults(run=_rules_show)
    check = rules.add_parser("check", help="check a rule file")
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=_rules_check)
    test = rules.add_parser("test", help="run the examples of a rule file")
    test.add_argument("file", type=Path, metavar="FILE")
    test.set_defaults(run=_rules_test)


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
    add("--epoch", default="", metavar="E", help="the app's epoch: another one gives other values")
    add(
        "--item-epoch",
        action="append",
        default=[],
        metavar="ITEM=E",
        help="an item's epoch, for example Secret/db/password=2",
    )
    add("--certificate-window", default="", metavar="F", help="part of a validity that stays (default: 1/3)")
    add("--certificate-margin", default="", metavar="F", help="part of a validity always left (default: 1/4)")
    add(
        "--certificate-anchor",
        default="",
        metavar="T",
        help="when windows begin, RFC 3339 (default: each its own time)",
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
    add("--rules", action="append", default=[], type=Path, metavar="FILE", help="a file of further rules")
    add("--rule", action="append", default=[], metavar="SWITCH",
        help="switch rules: +all, +PACK, --rule=-PACK/RULE")  # fmt: skip
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--seed", type=Path, metavar="FILE", help="the seed file, or a directory of them")
    group.add_argument("--throwaway-seed", action="store_true", help="a seed for this run only, for previews")
    add("--seed-id", default="", metavar="ID", help="which of several seeds, by file name or fingerprint")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise ValueError
    return seconds


def _progress(text: str) -> None:
    """Tell a person what a long command does; a log needs none of it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text} ...\n")


def _run(request: Request) -> str:
    from becalm.pipeline import render  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415

    with forward_termination():
        return render(request).output


def _render(arguments: argparse.Namespace) -> str:
    from becalm import wiring  # noqa: PLC0415  # keeps --help and --version fast

    return _run(wiring.from_arguments(arguments))


def _verify(arguments: argparse.Namespace) -> str:
    from becalm import wiring  # noqa: PLC0415
    from becalm.derive import seed  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415
    from becalm.verify import verify  # noqa: PLC0415

    request = wiring.from_arguments(arguments)
    content = None if request.seed is None else seed.write(request.seed)
    with forward_termination():
        verdict = verify(request, wiring.as_arguments(request), content, _progress)
    counts = Counter((row.function, row.place, row.lands) for row in verdict.rows)
    rows = [(a, b, f"{c} ({count} times)" if count > 1 else c) for (a, b, c), count in counts.items()]
    if rows:
        rows.insert(0, ("FUNCTION", "PLACE", "LANDS"))
    end = f"Verified: becalm's renders are identical; stock helm's differ in {verdict.drifting} fields.\n"
    if verdict.normalised:
        end += f"{verdict.normalised} fields are normalised by rules; `becalm explain` says which.\n"
    return _table(rows) + end


def _certs(arguments: argparse.Namespace) -> str:
    from becalm import certs, wiring  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415

    request = wiring.from_arguments(arguments)
    with forward_termination():
        reports = certs.certs(request)
    if arguments.output == "json":
        return json.dumps([dataclasses.asdict(report) for report in reports], indent=2) + "\n"
    if not reports:
        return "No certificate.\n"
    return "\n".join(certs.lines(reports, at=request.at))


def _derive(arguments: argparse.Namespace) -> str:
    from becalm import items, wiring  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415

    if arguments.key and not arguments.object:
        raise ConfigError("--key needs --object", where="--key")
    if arguments.reveal and not sys.stdout.isatty():  # noqa: TID251
        raise ConfigError(
            "a value is shown on a terminal only", where="--reveal", hint="do not send the output elsewhere"
        )
    name = "/".join(part for part in (arguments.object, arguments.key) if part)
    with forward_termination():
        found = items.derived(wiring.from_arguments(arguments), name)
    if not arguments.reveal:
        rows = [(one.item or "-", one.function, one.fingerprint, one.label) for one in found]
        return _table([("ITEM", "FUNCTION", "FINGERPRINT", "LABEL"), *rows]) if rows else "Nothing.\n"
    if len(found) != 1:
        raise ConfigError(
            f"{len(found)} values are meant", where="--reveal", hint="name one with --object and --key"
        )
    return found[0].value.rstrip("\n") + "\n"


def _explain(arguments: argparse.Namespace) -> str:
    from becalm import explain, wiring  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415

    with forward_termination():
        found = explain.explain(wiring.from_arguments(arguments))
    if arguments.output == "json":
        return json.dumps([dataclasses.asdict(one) for one in found], indent=2) + "\n"
    return "".join(f"{line}\n" for line in explain.lines(found))


def _rules_list(_: argparse.Namespace) -> str:
    from becalm.normalise import packs  # noqa: PLC0415

    rows = [("RULE", "VERB", "ON", "REASON")]
    for pack in packs.built_in():
        rows += [(rule.id, rule.verb, "yes" if pack.enabled else "no", rule.reason) for rule in pack.rules]
    return _table(rows)


def _rules_show(arguments: argparse.Namespace) -> str:
    from becalm import explain  # noqa: PLC0415
    from becalm.normalise import packs  # noqa: PLC0415

    return explain.shown(packs.built_in(), arguments.rule)


def _rules_check(arguments: argparse.Namespace) -> str:
    from becalm.normalise import packs  # noqa: PLC0415

    pack = packs.read(arguments.file)
    return f"{arguments.file}: {len(pack.rules)} rules of the pack {pack.id!r} are right.\n"


def _rules_test(arguments: argparse.Namespace) -> str:
    from becalm.errors import RuleError  # noqa: PLC0415
    from becalm.normalise import examples, packs  # noqa: PLC0415

    outcomes = list(examples.run([packs.read(arguments.file)]))
    wrong = tuple(f"  {one.rule}: {one.title}: {one.problem}" for one in outcomes if one.problem)
    if wrong:
        raise RuleError(f"{len(wrong)} examples do not hold", where=str(arguments.file), details=wrong)
    return f"{arguments.file}: {len(outcomes)} examples hold.\n"


def _generate(_: argparse.Namespace) -> str:
    from becalm import wiring  # noqa: PLC0415

    request = wiring.from_environment()
    output = _run(request)
    if not output.strip():
        raise ConfigError(
            "the chart renders to nothing, and Argo CD would delete everything",
            where=request.application.name,
            hint="check the values, or remove the Application",
        )
    return output


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of equally many columns, aligned, as kubectl prints them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _audit(arguments: argparse.Namespace) -> str:
    from becalm.pipeline import audit  # noqa: PLC0415

    calls = audit(arguments.chart)
    if not calls:
        return "No call whose result changes.\n"
    return _table([(f"{call.file}:{call.line}", call.function, call.treatment) for call in calls])


def _seed_new(arguments: argparse.Namespace) -> str:
    from becalm.derive import seed  # noqa: PLC0415

    path: Path = arguments.file
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(seed.new())
    except OSError as error:
        raise ConfigError(f"the seed cannot be written: {error.strerror}", where=str(path)) from error
    return f"{path}: a fresh seed, fingerprint {seed.parse(path.read_bytes(), where=str(path)).id}\n"
