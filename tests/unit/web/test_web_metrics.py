"""Metrics count what is told, with few labels, and the documentation lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from web_records import DAY, NOW, line

from becalm import __version__
from becalm.stages import STAGES
from becalm.web.metrics import MOST_RULES, Metrics
from becalm.web.recent import Recent
from becalm.web.records import State, read

DOCS = Path(__file__).resolve().parents[3] / "docs" / "observability.md"


@pytest.fixture
def recent():
    return Recent()


@pytest.fixture
def metrics(recent):
    return Metrics(recent, now=lambda: NOW)


@pytest.fixture
def add(recent, metrics):
    def add(app: str = "shop", **fields) -> None:
        record = read(line(app, **fields))
        recent.add(record)
        metrics.add(record)

    return add


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_renders_are_counted(add, metrics):
    add()
    add(outcome="cached", source="kustomize", runs=0)
    add(outcome="failed", killed=2)
    assert value(metrics, "becalm_renders_total", outcome="rendered", source="helm") == 1
    assert value(metrics, "becalm_renders_total", outcome="cached", source="kustomize") == 1
    assert value(metrics, "becalm_cache_total", result="hit") == 1
    assert value(metrics, "becalm_cache_total", result="miss") == 1
    assert value(metrics, "becalm_helm_runs_total") == 4
    assert value(metrics, "becalm_children_killed_total") == 2
    assert value(metrics, "becalm_render_seconds_count", stage="total") == 3
    assert value(metrics, "becalm_render_seconds_sum", stage="queue") == 1.5
    assert value(metrics, "becalm_build_info", version=__version__) == 1


def test_what_the_cache_answers_draws_and_changes_nothing(add, metrics):
    add()
    add(outcome="cached")
    assert value(metrics, "becalm_draws_total", function="randAlphaNum") == 1
    assert value(metrics, "becalm_rule_changes_total", rule="core/replicas") == 1


def test_both_results_of_the_cache_are_there_from_the_start(metrics):
    assert value(metrics, "becalm_cache_total", result="hit") == 0
    assert value(metrics, "becalm_cache_total", result="miss") == 0


def test_each_stage_of_a_render_has_seconds_of_its_own(add, metrics):
    add(stages=dict.fromkeys(STAGES, 0.25))
    for stage in STAGES:
        assert value(metrics, "becalm_render_seconds_sum", stage=stage) == 0.25
    assert value(metrics, "becalm_render_seconds_count", stage="other") is None


def test_labels_are_few(add, metrics):
    for number in range(MOST_RULES + 50):
        add(f"app-{number}", changes=[{"rule": f"own/rule-{number}"}], stabilised=[{"function": f"f{number}"}], stages={f"s{number}": 1})  # fmt: skip
    assert value(metrics, "becalm_rule_changes_total", rule="other") == 50
    assert value(metrics, "becalm_draws_total", function="other") == MOST_RULES + 50
    assert value(metrics, "becalm_render_seconds_count", stage="other") == MOST_RULES + 50


def test_rules_of_applications_use_up_no_labels_of_others(add, metrics):
    for number in range(MOST_RULES + 50):
        add(f"app-{number}", changes=[{"rule": f"app/rule-{number}"}])
    add("other", changes=[{"rule": "core/status"}])
    assert value(metrics, "becalm_rule_changes_total", rule="app/") == MOST_RULES + 50
    assert value(metrics, "becalm_rule_changes_total", rule="core/status") == 1


def test_no_label_has_an_apps_name_or_a_secret(add, metrics):
    add(
        "planted-name",
        error="planted-error",
        namespace="planted-space",
        project="planted-project",
        path="planted-path",
    )
    text = metrics.written("")[0].decode()
    assert "planted" not in text


def test_the_service_tells_how_busy_it_is(metrics):
    metrics.tell(State(queue=3, rendering=2))
    assert (value(metrics, "becalm_queue_length"), value(metrics, "becalm_rendering")) == (3, 2)


def test_the_nearest_certificate_of_all_apps_counts(add, metrics):
    names = (
        "becalm_certificate_next_change_timestamp_seconds",
        "becalm_certificate_expiry_timestamp_seconds",
    )
    assert [value(metrics, name) for name in names] == [None, None]
    add("a")
    near = {
        "object": "o",
        "path": "p",
        "subject": "",
        "from": NOW - DAY,
        "until": NOW + 9 * DAY,
        "changes": NOW + 8 * DAY,
    }
    add("b", certificates=[near, {**near, "changes": 0, "until": NOW + DAY}])
    assert [value(metrics, name) for name in names] == [NOW + 8 * DAY, NOW + DAY]


@pytest.mark.parametrize("accept", ["", "text/plain", "application/openmetrics-text; version=1.0.0"])
def test_scrapers_get_their_format(add, metrics, accept):
    add()
    body, content_type = metrics.written(accept)
    assert ("openmetrics" in content_type) == ("openmetrics" in accept)
    assert b"becalm_renders_total{" in body
    assert b"_created" not in body


def test_the_text_can_be_parsed(add, metrics):
    add()
    families = {family.name for family in text_string_to_metric_families(metrics.written("")[0].decode())}
    assert {"becalm_renders", "becalm_render_seconds", "becalm_build_info"} <= families


def test_the_documentation_lists_every_metric_with_its_labels(add, metrics):
    add()
    documented = dict(
        re.findall(r"^\| `(becalm_\w+)(?:\{[^}]*\})?` \|[^|]*\| ([^|]*) \|$", DOCS.read_text(), re.MULTILINE)
    )
    assert documented == metrics.names()
    labels = dict(re.findall(r"^\| `(becalm_\w+)\{([^}]*)\}` ", DOCS.read_text(), re.MULTILINE))
    scraped: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            scraped.setdefault(name, set()).update(set(sample.labels) - {"le"})
    assert {name: set(text.split(", ")) for name, text in labels.items()} == {
        k: v for k, v in scraped.items() if v
    }
