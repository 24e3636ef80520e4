"""The command line: arguments to a request, errors to an exit code, output in one piece."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from becalm import console, options
from becalm.errors import ConfigError, ToolFailedError, counted
from becalm.tables import table, times
from becalm.usage import Parser

if TYPE_CHECKING:
    from becalm.normalise.rules import Rule
    from becalm.request import Request


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments, unknown = _parser().parse_known_args(argv)
    if unknown:
        arguments.refuse(unknown)
    return console.guarded(lambda: arguments.run(arguments))


def _parser() -> Parser:
    parser, commands = options.root()
    command, request = options.command, options.add_request
    command(commands, "generate", "render the source in the current directory (Argo CD runs this)", _generate)
    command(commands, "serve", "render for `generate` in a process that has everything loaded", _serve)
    command(commands, "sidecar", "run `serve` and argocd-cmp-server together", _sidecar)
    discover = command(commands, "discover", "print what a directory holds, if becalm renders it", _discover)
    discover.add_argument(
        "path", type=Path, nargs="?", default=Path(), metavar="PATH", help="default: this one"
    )
    request(command(commands, "render", "render a chart by hand, as `generate` would", _render))
    request(
        command(commands, "verify", "prove that a chart renders the same, and nothing else changes", _verify)
    )
    certs = command(
        commands, "certs", "list every certificate in the output, and whether its chain verifies", _certs
    )
    options.add_output(request(certs))
    derive = request(
        command(commands, "derive", "list what is derived, with labels and fingerprints", _derive)
    )
    derive.add_argument("--object", default="", metavar="KIND/NAME", help="only what is in this object")
    derive.add_argument("--key", default="", metavar="KEY", help="only what is under this key of it")
    derive.add_argument("--reveal", action="store_true", help="print the value, on a terminal only")
    adopt = request(
        command(commands, "adopt", "take over the values of a running app, so that nothing rotates", _adopt)
    )
    options.add_check(options.add_live(adopt, is_needed=False))
    adopt.add_argument("--prune", action="store_true", help="leave out pins that match nothing any more")
    options.add_output(adopt)
    difference = command(commands, "diff-live", "compare Secrets with live ones, by fingerprints", _diff_live)
    options.add_output(options.add_live(request(difference)))
    explain = command(commands, "explain", "list what rules change in the output, and why", _explain)
    options.add_output(request(explain))
    ignore = command(commands, "ignore", "write ignoreDifferences for what no manifest can prevent", _ignore)
    options.add_ignore(request(ignore))
    audit = command(commands, "audit", "list every call whose result changes, and how it is treated", _audit)
    audit.add_argument("chart", type=Path, metavar="PATH", help="a chart directory or .tgz file")
    announced = command(
        commands, "parameters", "list what an application can set, as JSON for Argo CD", _parameters
    )
    announced.add_argument("--dynamic", action="store_true", help="the values of the chart in this directory")
    rules = options.family(commands, "rules", "list, show, check and test normalisation rules")
    command(rules, "list", "list the built-in rules", _rules_list)
    command(rules, "ignores", "list the entries of `becalm ignore`", _ignores_list)
    show = command(rules, "show", "show one built-in rule, or list those of a pack", _rules_show)
    show.add_argument("rule", metavar="ID", help="PACK/RULE, as `becalm rules list` names it, or PACK")
    for name, text, run in (
        ("check", "check a rule file, or an application's .becalm.yaml", _rules_check),
        ("test", "run the examples of a rule file, or of a .becalm.yaml", _rules_test),
    ):
        command(rules, name, text, run).add_argument("file", type=Path, metavar="FILE")
    lookup = options.family(commands, "lookup", "record what a chart looks up")
    recording = command(lookup, "record", "write becalm.lookups.yaml beside a chart", _lookup_record)
    options.add_lookup(request(recording))
    seed = options.family(commands, "seed", "make a seed, or replace it")
    new = command(seed, "new", "write a fresh seed to a new file with mode 0600", _seed_new)
    new.add_argument("file", type=Path, metavar="FILE")
    options.add_secret(
        command(seed, "create", "make a Secret with a fresh seed, once (in a pod)", _seed_create)
    )
    rotate = request(
        command(seed, "rotate", "seal pins with a new seed, and pin what it would change", _seed_rotate)
    )
    rotate.add_argument("--to", type=Path, required=True, metavar="FILE", help="the new seed")
    rotate.add_argument("--keep", action="store_true", help="pin what would change")
    options.add_check(rotate)
    return parser


def _adopt(arguments: argparse.Namespace) -> console.Ended:
    from becalm import takeover  # noqa: PLC0415

    return takeover.run_adopt(arguments)


def _diff_live(arguments: argparse.Namespace) -> console.Ended:
    from becalm import takeover  # noqa: PLC0415

    return takeover.run_difference(arguments)


def _seed_rotate(arguments: argparse.Namespace) -> console.Ended:
    from becalm import takeover  # noqa: PLC0415

    return takeover.run_rotate(arguments)


def _progress(text: str) -> None:
    """Tell a person what a long command does; a log needs none of it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text} ...\n")


def _run(request: Request) -> str:
    from becalm.pipeline import render  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415

    with forward_termination():
        result = render(request)
    for warned in (*result.warnings, *result.notices):
        console.warn(warned.line())
    return result.output


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
    rows = [(a, b, times(c, count)) for (a, b, c), count in counts.items()]
    if rows:
        rows.insert(0, ("FUNCTION", "PLACE", "LANDS"))
    differing = counted(verdict.drifting, "field")
    end = f"Verified: becalm's renders are identical; stock helm's differ in {differing}.\n"
    if verdict.timed:
        verb = "shows" if verdict.timed == 1 else "show"
        end += f"{counted(verdict.timed, 'field')} {verb} a time that stock helm moves on later.\n"
    if verdict.normalised:
        verb = "is" if verdict.normalised == 1 else "are"
        end += f"{counted(verdict.normalised, 'field')} {verb} normalised by rules; `becalm explain` says which.\n"
    return table(rows) + end


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
        rows = [
            (one.item or "-", one.function, one.fingerprint, times(one.label, one.number)) for one in found
        ]
        return table([("ITEM", "FUNCTION", "FINGERPRINT", "LABEL"), *rows]) if rows else "Nothing.\n"
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
        return json.dumps(dataclasses.asdict(found), indent=2) + "\n"
    return "".join(f"{line}\n" for line in explain.lines(found))


def _ignore(arguments: argparse.Namespace) -> str:
    from becalm import ignore, wiring  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415

    wanted = ignore.Wanted(entries=tuple(arguments.entry), fields=tuple(arguments.field))
    with forward_termination():
        found = ignore.ignored(wiring.from_arguments(arguments), wanted)
    if not found:
        return "# Nothing in the output shows drift that rendering cannot prevent; --entry asks for more.\n"
    return ignore.written(found, arguments.format)


def _ignores_list(_: argparse.Namespace) -> str:
    from becalm.normalise import ignores  # noqa: PLC0415

    rows = [("ENTRY", "FOUND BY ITSELF", "REASON")]
    rows += [(one.id, "yes" if one.is_found else "no", one.reason) for one in ignores.entries()]
    return table(rows)


def _parameters(arguments: argparse.Namespace) -> str:
    from becalm.cmp import parameters  # noqa: PLC0415

    if not arguments.dynamic:
        return json.dumps(parameters.announcement(), indent=2) + "\n"
    from becalm import audits, wiring  # noqa: PLC0415

    values = dict(parameters.flattened(audits.default_values(wiring.announced_chart())))
    one = {"name": "parameters", "title": "Helm parameters", "collectionType": "map", "map": values}
    return json.dumps([one] if values else [], indent=2) + "\n"


def _lookup_record(arguments: argparse.Namespace) -> str:
    from becalm import recording, wiring  # noqa: PLC0415
    from becalm.config import load  # noqa: PLC0415
    from becalm.sources.process import forward_termination  # noqa: PLC0415

    request = wiring.from_arguments(arguments)
    if arguments.live is None:
        find = recording.from_kubectl(arguments.kubectl, load.environment())
    else:
        find = recording.from_file(arguments.live)
    with forward_termination():
        rows = recording.record(request, find)
    if not rows:
        return "The chart looks nothing up.\n"
    return table([("LOOKED UP", "RECORDED", "PLACE"), *((row.asked, row.answer, row.place) for row in rows)])


def _rules_list(_: argparse.Namespace) -> str:
    from becalm.normalise import packs  # noqa: PLC0415

    return _rules_table([rule for pack in packs.built_in() for rule in pack.rules])


def _rules_table(rules: Sequence[Rule]) -> str:
    rows = [("RULE", "VERB", "ON", "REASON")]
    rows += [(rule.id, rule.verb, "yes" if rule.enabled else "no", rule.reason) for rule in rules]
    return table(rows)


def _rules_show(arguments: argparse.Namespace) -> str:
    from becalm import explain  # noqa: PLC0415
    from becalm.normalise import packs  # noqa: PLC0415

    built_in = packs.built_in(examples=True)
    pack = next((pack for pack in built_in if pack.id == arguments.rule), None)
    if pack is not None:
        return f"{pack.title}\n\n{_rules_table(pack.rules)}"
    return explain.shown(built_in, arguments.rule)


def _rules_check(arguments: argparse.Namespace) -> str:
    from becalm.normalise import packs  # noqa: PLC0415

    pack = packs.read(arguments.file)
    number = len(pack.rules)
    return f"{arguments.file}: {counted(number, 'rule')} of the pack {pack.id!r} {'is' if number == 1 else 'are'} right.\n"


def _rules_test(arguments: argparse.Namespace) -> str:
    from becalm.errors import RuleError  # noqa: PLC0415
    from becalm.normalise import examples, packs  # noqa: PLC0415

    outcomes = list(examples.run([packs.read(arguments.file)]))
    wrong = [one for one in outcomes if one.problem]
    number = len(wrong or outcomes)
    if wrong:
        details: list[str] = []
        for one in wrong:
            details.append(f"  {one.rule}: {one.title}: {one.problem}")
            details += [f"      {line}" for line in one.difference]
        what = f"{counted(number, 'example')} {'does' if number == 1 else 'do'} not hold"
        raise RuleError(what, where=str(arguments.file), details=tuple(details))
    return f"{arguments.file}: {counted(number, 'example')} {'holds' if number == 1 else 'hold'}.\n"


def _discover(arguments: argparse.Namespace) -> str:
    from becalm.sources import detect  # noqa: PLC0415

    if not arguments.path.is_dir():
        raise ConfigError("there is no such directory", where=str(arguments.path))
    found = detect.kind(arguments.path)
    if found == "directory" and not detect.looks_rendered(arguments.path):
        found = ""
    return f"{found}\n" if found else ""


def _generate(_: argparse.Namespace) -> str:
    from becalm.generating import generate  # noqa: PLC0415

    found = generate()
    found.finish()
    return found.output


def _serve(_: argparse.Namespace) -> str:
    from becalm.config import load  # noqa: PLC0415
    from becalm.service.serving import serve  # noqa: PLC0415

    serve(load.environment())
    return ""


def _sidecar(_: argparse.Namespace) -> str:
    from becalm.config import load  # noqa: PLC0415
    from becalm.service import sidecar  # noqa: PLC0415

    code = sidecar.run(load.environment())
    if code != 0:
        raise ToolFailedError(f"a part of the sidecar ended with {code}", hint="see its own lines above")
    return ""


def _audit(arguments: argparse.Namespace) -> str:
    from becalm.audits import audit  # noqa: PLC0415

    calls = audit(arguments.chart)
    if not calls:
        return "No call whose result changes.\n"
    return table([(f"{call.file}:{call.line}", call.function, call.treatment) for call in calls])


def _seed_new(arguments: argparse.Namespace) -> str:
    from becalm.derive import seed  # noqa: PLC0415

    path: Path = arguments.file
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(seed.new())
    except OSError as error:
        raise ConfigError(
            f"the seed cannot be written: {error.strerror}",
            where=str(path),
            hint="name a new file in a directory that is there; no seed is ever overwritten",
        ) from error
    return f"{path}: a fresh seed, fingerprint {seed.parse(path.read_bytes(), where=str(path)).id}\n"


def _seed_create(arguments: argparse.Namespace) -> str:
    from becalm import bootstrap  # noqa: PLC0415
    from becalm.config import load  # noqa: PLC0415

    namespace, name = arguments.namespace, arguments.name
    cluster = bootstrap.in_cluster(load.environment())
    outcome = bootstrap.create(cluster, namespace=namespace, name=name, key=arguments.key)
    if not outcome.created:
        return f"{namespace}/{name}: is there already; nothing was changed\n"
    return f"{namespace}/{name}: a fresh seed, fingerprint {outcome.fingerprint}; keep a backup of it\n"
