"""Proof for one chart: becalm renders it the same in every process, and changes nothing else."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from becalm.audits import audit_of
from becalm.derive import instant
from becalm.errors import DeterminismError, ToolFailedError, counted
from becalm.manifests.compare import Difference, differences
from becalm.manifests.objects import ObjectId
from becalm.manifests.paths import Path
from becalm.manifests.paths import render as render_path
from becalm.pipeline import render, render_stock
from becalm.request import Request, Result
from becalm.sources.process import Command, run

PROCESSES = 3
MORE_STOCK = 20
_SHOWN = 10

#: What answers the calls that need no seed; they are listed whether they run or not.
ANSWERS = {
    "clock": "answered with the fixed instant",
    "clock-fallback": "the fixed instant instead of the clock",
    "order": "in the order of the keys",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One call: its function, its place in the chart, and where it lands or what answers it; never a value."""

    function: str
    place: str
    lands: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found: the calls, and how many fields stock helm renders differently, show the time, were normalised.

    `timed` are those that show the time too coarsely for stock helm to differ, such as a date.
    """

    rows: list[Row]
    drifting: int
    timed: int
    normalised: int


def verify(
    request: Request, arguments: Sequence[str], seed: bytes | None, progress: Callable[[str], None]
) -> Verdict:
    """Render three times in separate processes and twice with stock helm, and compare.

    Args:
        request: what to render.
        arguments: the same as arguments of `becalm render`, without a seed.
        seed: the content of a seed file, or None.
        progress: is told what is done next.

    Raises:
        DeterminismError: becalm's outputs differ, or differ from stock helm's where stock helm
            does not differ from itself and the field does not show the time.
    """
    progress("rendering with becalm")
    result = render(request)  # first, since what is wrong with the chart is said best by this process
    rows = _rows(request, result)
    progress("rendering with stock helm, twice")
    first = render_stock(request)
    # A clock that is shown in seconds has moved on by then.
    time.sleep(1.1)
    second = render_stock(request)
    outputs = []
    for number in range(PROCESSES):
        progress(f"rendering with becalm, process {number + 1} of {PROCESSES}")
        outputs.append(_separate(number, request, arguments, seed))
    progress("comparing")
    if any(output != outputs[0] for output in outputs):
        raise DeterminismError(
            "becalm's own renders differ between processes", hint="please report this chart"
        )
    output = outputs[0]
    if request.looking.policy != "empty":
        # Stock helm finds nothing, so that is what becalm must find for a comparison.
        progress("rendering with becalm, with nothing looked up")
        request = replace(request, looking=replace(request.looking, policy="empty"))
        result = render(request)
        output = result.output
    namespace = request.options.namespace
    drifts = {_field(difference) for difference in differences(first, second, namespace)}
    normalised = [(change.object, change.path) for change in result.changes]
    changed = {
        _field(difference)
        for difference in differences(first, output, namespace)
        if not any(_touches(difference, *one) for one in normalised)
    }
    timed = set() if changed <= drifts else _timed(request, result)
    timed &= changed - drifts
    # What has few outcomes (the order of two keys, a small number) may come out alike by chance.
    for _ in range(MORE_STOCK):
        if changed <= drifts | timed:
            break
        progress("rendering with stock helm once more")
        drifts |= {_field(d) for d in differences(first, render_stock(request), namespace)}
    extra = sorted(changed - drifts - timed)
    if extra:
        raise DeterminismError(
            f"becalm changes {counted(len(extra), 'field')} that stock helm renders alike each time",
            hint="please report this chart",
            details=tuple(extra[:_SHOWN]),
        )
    return Verdict(rows=rows, drifting=len(drifts), timed=len(timed), normalised=len(normalised))


def _timed(request: Request, result: Result) -> set[str]:
    """The fields that show the time: they are others when now is the instant. Stock helm shows two equal dates."""
    now = instant.written(request.at)
    other = render(replace(request, instant=now, variables={**request.variables, "BECALM_INSTANT": now}))
    return {_field(one) for one in differences(result.output, other.output, request.options.namespace)}


def _touches(difference: Difference, owner: ObjectId, path: Path) -> bool:
    """Whether a difference is at, in or around a field that a rule changed."""
    length = min(len(difference.path), len(path))
    return difference.object == owner and difference.path[:length] == path[:length]


def _field(difference: Difference) -> str:
    owner = str(difference.object) if difference.object else difference.where
    return f"{owner} {render_path(difference.path)}" if difference.path else f"{owner} ({difference.kind})"


def _separate(number: int, request: Request, arguments: Sequence[str], seed: bytes | None) -> str:
    with tempfile.TemporaryDirectory(prefix="becalm-verify-") as directory:
        argv = [sys.executable, "-m", "becalm", "render", *arguments]
        if seed is not None:
            path = FilePath(directory) / "seed"
            path.touch(mode=0o600)
            path.write_bytes(seed)
            argv.append(f"--seed={path}")
        env = {
            **request.remote.network.variables(),
            "BECALM_GIT_PROTOCOLS": request.tool.protocols,
            "PATH": request.path,
            "PYTHONHASHSEED": str(number + 1),
            "TMPDIR": directory,
            "HOME": directory,
        }
        done = run(Command(argv=tuple(argv), cwd=FilePath(directory), env=env, timeout=request.timeout * 2))
    if done.returncode != 0:
        raise ToolFailedError(
            "a render in a separate process failed",
            details=tuple(done.stderr.decode("utf-8", "replace").splitlines()[:_SHOWN]),
        )
    return done.stdout.decode("utf-8")


def _rows(request: Request, result: Result) -> list[Row]:
    rows = [
        Row(function=call.function, place=f"{call.file}:{call.line}", lands=ANSWERS[call.treatment])
        for call in audit_of(request)
        if call.treatment in ANSWERS
    ]
    stabilised = result.stabilised
    if stabilised is None:
        return rows
    for settled in stabilised.draws.values():
        site = stabilised.sites.items[settled.draw.site]
        lands = settled.label.place if settled.label.parts[0] == "landing" else "nowhere"
        rows.append(Row(function=site.function, place=f"{site.file}:{site.line}", lands=lands))
    return rows
