"""What a chart says of itself: the files that name it and what it depends on."""

from __future__ import annotations

from typing import Any

from becalm.errors import ManifestError
from becalm.manifests import yamlio
from becalm.sources.chart import ChartTree


def read(tree: ChartTree, path: str) -> dict[str, Any]:
    """A file's map; an empty one where helm will say what is wrong."""
    if not tree.has(path):
        return {}
    try:
        value = yamlio.load(tree.read(path).decode("utf-8", "replace"), where=f"{tree.where}/{path}")
    except ManifestError:
        return {}
    return value if isinstance(value, dict) else {}


def dependencies(tree: ChartTree) -> list[dict[str, Any]]:
    """The entries of Chart.yaml, or of requirements.yaml for charts of apiVersion v1 (helm's pkg/chart/loader)."""
    meta = read(tree, "Chart.yaml")
    entries = meta.get("dependencies")
    if meta.get("apiVersion") == "v1" and tree.has("requirements.yaml"):
        entries = read(tree, "requirements.yaml").get("dependencies")
    return [one for one in (entries if isinstance(entries, list) else ()) if isinstance(one, dict)]
