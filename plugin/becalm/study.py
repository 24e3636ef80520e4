"""Looking closely at what a chart draws: renders with other values, and what they record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from becalm.copies import read_inputs
from becalm.derive.pins import Pins
from becalm.pipeline import copied, deriver_of, lookups_of, overlaid, sourced, stabilise, stock, unstable
from becalm.request import Request
from becalm.templates.files import wants

if TYPE_CHECKING:
    from becalm.stabilise.records import Records
    from becalm.stabilise.stabiliser import Stabilised


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
    with sourced(request) as (helm, request, sources):  # noqa: PLR1704  # the same with its values files
        inputs = read_inputs(sources.tree, request.options)
        if not wants(inputs.files, inputs.texts):
            return None
        copy = copied(helm, request, sources.tree, inputs)
        deriver = deriver_of(request, is_loose=is_loose)
        # What a render answers itself is what was drawn for it.
        answering = None if request.looking.policy == "rendered" else lookups_of(request)
        done = stabilise(copy, request, deriver, answering)
        if done.output is None:
            stock(helm, sources.chart, request)
            raise done.fault or unstable(sources.tree, done)
        settled = copy.observe()
        observed = [copy.observe(salt) for salt in salts]
    return Study(
        done=done,
        pins=Pins() if deriver is None else deriver.pins,
        output=overlaid(request, done.output),
        settled=settled.records,
        outputs=tuple(overlaid(request, one.output) for one in observed),
        records=tuple(one.records for one in observed),
    )
