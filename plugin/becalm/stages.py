"""How long the stages of a render take. Whoever renders is handed a stopwatch; nothing in the output depends on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, get_args

Stage = Literal["cache", "source", "helm", "survey", "settle", "replay", "kustomize", "normalise", "report"]
"""What a render does, in its order.

`cache` is making the key and looking for what was kept, `source` bringing and reading the chart and what it depends on, or plain
manifests. `helm` is helm on a chart that draws nothing; on others `survey` sees where values land, `settle` derives them,
and `replay` renders with them. `report` is looking at the output for the page and keeping it; that is after the answer.
"""

STAGES: Final[tuple[Stage, ...]] = get_args(Stage)


class Stopwatch:
    """Adds up the seconds of stages. A stage within another counts for itself only, so that no second counts twice.

    Args:
        now: a clock that never goes back, in seconds.
        begun: what another one has measured of the same render.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, begun: Mapping[Stage, float] | None = None
    ) -> None:
        self._now = now
        self._seconds: dict[Stage, float] = dict(begun or {})
        self._within: list[float] = []

    @contextmanager
    def of(self, stage: Stage) -> Iterator[None]:
        """Measure what is done in the block, however it ends."""
        self._within.append(0.0)
        begin = self._now()
        try:
            yield
        finally:
            took = self._now() - begin
            own = took - self._within.pop()
            self._seconds[stage] = self._seconds.get(stage, 0.0) + own
            if self._within:
                self._within[-1] += took

    def seconds(self) -> dict[str, float]:
        """What has been measured so far, in the order of the stages; none of those that never began."""
        return {stage: round(self._seconds[stage], 4) for stage in STAGES if stage in self._seconds}
