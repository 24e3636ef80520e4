"""What can be told of a chart without rendering it: calls that are not hermetic, and its own values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from becalm.copies import read_inputs
from becalm.errors import ConfigError
from becalm.manifests import yamlio
from becalm.manifests.scalars import Value
from becalm.pipeline import sourced
from becalm.request import Request
from becalm.sources import detect
from becalm.sources.chart import ChartTree, load_chart
from becalm.sources.helm import HelmOptions
from becalm.templates import functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that is not hermetic, and how it is treated."""

    file: str
    line: int
    function: str
    treatment: str


def audit(chart: Path) -> list[Call]:
    """Every call in a chart and its subcharts whose result depends on more than its arguments; none in manifests.

    Raises:
        ConfigError: it is a Kustomization.
        SourceError: there is no chart that can be read.
    """
    kind = detect.kind(chart)
    if kind == "directory":
        return []
    if kind == "kustomize":
        raise ConfigError(
            "a Kustomization has no calls of its own",
            where=chart.name,
            hint="audit the charts that it inflates",
        )
    return _audit(load_chart(chart, root=None))


def audit_of(request: Request) -> list[Call]:
    """The same for what a request renders, with everything that its chart lacks; none without a chart."""
    if request.kind not in ("helm", "chain"):
        return []
    with sourced(request) as (_, _, sources):
        return _audit(sources.tree)


def _audit(tree: ChartTree) -> list[Call]:
    from becalm.templates.audit import calls  # noqa: PLC0415  # only this command needs it

    inputs = read_inputs(tree, HelmOptions(release="audit", namespace=""))
    return [
        Call(file=file.key, line=line, function=name, treatment=functions.functions()[name].treatment)
        for file in inputs.files
        for line, name in calls(file.text)
    ]


def default_values(chart: Path) -> dict[str, Value]:
    """The values of a chart's own values.yaml; none where it has none, or where there is no chart.

    Raises:
        SourceError: there is no chart that can be read.
        ManifestError: the file is no YAML.
    """
    if detect.kind(chart) not in ("helm", "chain"):
        return {}
    tree = load_chart(chart, root=None)
    if not tree.has("values.yaml"):
        return {}
    value = yamlio.load(tree.read("values.yaml").decode("utf-8", "replace"), where="values.yaml")
    return value if isinstance(value, dict) else {}
