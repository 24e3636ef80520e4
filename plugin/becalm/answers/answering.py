"""One render, from the cache or anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from becalm.answers import key as keys
from becalm.answers import quoting
from becalm.answers.key import Key
from becalm.answers.store import Entry, Store
from becalm.errors import ToolFailedError
from becalm.pipeline import render
from becalm.report import report
from becalm.request import Request, Result
from becalm.stages import Stopwatch

_DAY = 86_400
#: Entries of charts without certificates end as well, so that nothing lies about for ever.
_LONGEST = 30 * _DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Manifests, and warnings in one line each.

    `finish` does what can wait until they are on their way: it keeps the answer, and gives what can be told of the render
    without a secret.
    """

    output: str = field(repr=False)
    warnings: tuple[str, ...]
    finish: Callable[[], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """What a look at what is kept gave, where the answer was not there.

    `key` is the answer's, None where it is not to be kept; `complaints` is what was wrong with the cache. After a while
    (`is_old`) files that the operator mounts may be others.
    """

    key: Key | None
    complaints: tuple[str, ...] = ()
    is_old: bool = False


def look(request: Request, watch: Stopwatch) -> Answer | Missed:
    """The answer that was kept of the same inputs; nothing is rendered.

    Raises:
        ConfigError: a Redis is named that is none.
    """
    with watch.of("cache"):
        store = Store(request.keeping, request.seed)
        key = keys.of(request) if store.keeps else None
        found = None if key is None else store.get(key.digest, at=request.at)
    return Missed(key=key, complaints=store.complaints) if found is None else _kept(found, store.complaints)


def answer(request: Request, stopwatch: Stopwatch | None = None, missed: Missed | None = None) -> Answer:
    """Render, or find what was rendered from the same inputs.

    Args:
        request: what to render.
        stopwatch: measures the stages, that of `finish` as well.
        missed: somebody has looked already.

    Raises:
        PluginError: as `pipeline.render`. Errors are never kept.
    """
    watch = stopwatch or Stopwatch()
    looked: Answer | Missed = look(request, watch) if missed is None or missed.is_old else missed
    if isinstance(looked, Answer):
        return looked
    if missed is not None and missed.is_old:
        looked = replace(looked, complaints=(*missed.complaints, *looked.complaints))
    return _rendered(request, watch, looked)


def _rendered(request: Request, watch: Stopwatch, missed: Missed) -> Answer:
    key = missed.key
    try:
        result = render(request, watch)
    except ToolFailedError as error:
        error.guarded_line = quoting.without_values(error.first_line(), request)
        raise
    own = tuple(warned.line() for warned in (*result.warnings, *result.notices))

    def finish() -> dict[str, Any]:
        with watch.of("report"):
            return finished()

    def finished() -> dict[str, Any]:
        told = {**report(request, result), "outcome": "rendered", "warnings": list(own)}
        seconds = 0 if key is None else _seconds(request, result, key)
        if key is not None and seconds > 0 and _is_unchanged(request, key):
            content = json.dumps([result.output, told], ensure_ascii=False)
            Store(request.keeping, request.seed).put(
                key.digest, Entry(made=request.at, until=request.at + seconds, content=content)
            )
        # What was wrong with the cache is told once, and not kept.
        return {**told, "warnings": [*own, *missed.complaints]}

    return Answer(output=result.output, warnings=(*own, *missed.complaints), finish=finish)


def _is_unchanged(request: Request, key: Key) -> bool:
    """Whether what was rendered is of the inputs that the key was made of; a ConfigMap can be replaced in between."""
    try:
        return keys.operators(request) == key.operators
    except OSError:
        return False


def _kept(entry: Entry, complaints: tuple[str, ...]) -> Answer:
    output, record = json.loads(entry.content)
    warnings = [*record["warnings"], *complaints]
    # Nothing ran for it.
    told = {**record, "outcome": "cached", "runs": 0, "warnings": warnings}
    return Answer(output=output, warnings=tuple(warnings), finish=lambda: told)


def _seconds(request: Request, result: Result, key: Key) -> int:
    """How long an answer is right from now on."""
    is_live = request.looking.policy == "live" and bool(result.lookups)
    is_unpinned = bool(result.warnings) or key.may_change or result.charts.fetched or is_live
    changes = [issued.window.change - request.at for issued in result.issued.values()]
    if result.charts.change is not None:
        changes.append(result.charts.change - request.at)
    return min([*changes, request.keeping.unpinned if is_unpinned else _LONGEST, _LONGEST])
