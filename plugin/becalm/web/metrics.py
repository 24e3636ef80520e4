"""Prometheus metrics of what the service tells. No label has an application's name; each has few values.

docs/observability.md lists all of them; a test compares it with `names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from becalm import __version__, stages
from becalm.derive import clock
from becalm.templates import functions
from becalm.web.recent import Recent, next_change
from becalm.web.records import Record, State

OTHER: Final = "other"
MOST_RULES: Final = 200
"""Rules that have a label of their own; operators name theirs as they like."""

#: How the rules of all applications begin, which name them as they like: one label, or they would use up those of others.
_OF_APPS: Final = "app/"

STAGES: Final = ("queue", *stages.STAGES, "render", "total")
"""The stages that have a label of their own. `render` is from the turn to the answer, `total` the wait as well."""

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0)
_NEXT_CHANGE = "becalm_certificate_next_change_timestamp_seconds"
_EXPIRY = "becalm_certificate_expiry_timestamp_seconds"


class Metrics:
    """All metrics, in a registry of their own.

    Args:
        recent: where certificates are.
        now: the clock, in seconds since 1970.
    """

    def __init__(self, recent: Recent, *, now: Callable[[], float] = clock.now) -> None:
        # A series more for each, which nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the package leaves it untyped
        self.registry = registry = CollectorRegistry()
        self._known = frozenset(functions.functions())
        self._rules: set[str] = set()
        self._renders = Counter(
            "becalm_renders", "Renders, by how they ended and by what was rendered.", ["outcome", "source"],
            registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "becalm_render_seconds", "Seconds of a render's stages; total is all of it.", ["stage"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._cache = Counter(
            "becalm_cache", "Renders that the cache answered (hit), and that were made (miss).", ["result"],
            registry=registry,
        )  # fmt: skip
        self._queue = Gauge("becalm_queue_length", "Renders that wait.", registry=registry)
        self._rendering = Gauge("becalm_rendering", "Renders that run.", registry=registry)
        self._runs = Counter("becalm_helm_runs", "Runs of helm.", registry=registry)
        self._draws = Counter(
            "becalm_draws", "Fields with derived values, by function, in renders that the cache did not answer.", ["function"],
            registry=registry,
        )  # fmt: skip
        self._changes = Counter(
            "becalm_rule_changes", "Fields that rules changed in renders that the cache did not answer.",
            ["rule"], registry=registry,
        )  # fmt: skip
        self._killed = Counter(
            "becalm_children_killed", "Child processes that were killed.", registry=registry
        )
        self._refused = Counter(
            "becalm_records_refused",
            "Lines of the service that were no records; each is a bug.",
            registry=registry,
        )
        info = Gauge("becalm_build_info", "1, with the version.", ["version"], registry=registry)
        info.labels(version=__version__).set(1)
        for result in ("hit", "miss"):  # rates need both from the start
            self._cache.labels(result=result)
        registry.register(_Certificates(recent, now))

    def add(self, record: Record) -> None:
        """Count a render."""
        summary = record.summary
        self._renders.labels(outcome=summary.outcome, source=summary.source).inc()
        self._seconds.labels(stage="total").observe(summary.seconds)
        for name, seconds in record.stages.items():
            self._seconds.labels(stage=name if name in STAGES else OTHER).observe(seconds)
        self._runs.inc(summary.runs)
        self._killed.inc(record.killed)
        if summary.outcome == "cached":
            self._cache.labels(result="hit").inc()
            return
        if summary.outcome == "rendered":
            self._cache.labels(result="miss").inc()
        for one in record.stabilised:
            self._draws.labels(function=one.function if one.function in self._known else OTHER).inc()
        for change in record.changes:
            self._changes.labels(rule=self._rule(change.rule)).inc()

    def _rule(self, rule: str) -> str:
        if rule.startswith(_OF_APPS):
            return _OF_APPS
        if rule not in self._rules:
            if len(self._rules) >= MOST_RULES:
                return OTHER
            self._rules.add(rule)
        return rule

    def tell(self, state: State) -> None:
        """Note how busy the service is."""
        self._queue.set(state.queue)
        self._rendering.set(state.rendering)

    def refuse(self) -> None:
        """Count a line that was no record."""
        self._refused.inc()

    def written(self, accept: str) -> tuple[bytes, str]:
        """All metrics as text, and its content type, in the form that a scraper accepts."""
        encoder, content_type = choose_encoder(accept)
        return encoder(self.registry), content_type

    def names(self) -> dict[str, str]:
        """Every metric as it is scraped, with its help."""
        found = {}
        for metric in self.registry.collect():
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            found[name] = metric.documentation
        return found


class _Certificates(Collector):
    """When the next certificate changes, and when the first one ends; no sample where there is none."""

    def __init__(self, recent: Recent, now: Callable[[], float]) -> None:
        self._recent = recent
        self._now = now

    def collect(self) -> Iterator[Metric]:
        now = self._now()
        found = list(self._recent.certificates(now))
        change = next_change(found, now)
        expiry = min((one.until for _, one in found if one.until), default=None)
        for name, text, value in (
            (_NEXT_CHANGE, "When becalm replaces the next certificate, over all applications.", change),
            (_EXPIRY, "When the first certificate expires, over all applications.", expiry),
        ):
            family = GaugeMetricFamily(name, text)
            if value is not None:
                family.add_metric([], value)
            yield family
