"""A Helm chart as the other parts use it: load it, look at it, write it with files replaced."""

from becalm.sources.layout import chart_prefix, is_template, template_path
from becalm.sources.tree import ChartTree, Location, label, load_chart
from becalm.sources.write import no_copy, pack_chart, write_chart

__all__ = [
    "ChartTree",
    "Location",
    "chart_prefix",
    "is_template",
    "label",
    "load_chart",
    "no_copy",
    "pack_chart",
    "template_path",
    "write_chart",
]
