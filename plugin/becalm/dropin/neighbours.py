"""A private copy of a chart beside which its `file://` dependencies are found, for helm to fetch dependencies into."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from becalm.errors import SourceError
from becalm.sources import requirements
from becalm.sources.chart import ChartTree, write_chart

_FILE = "file://"
_MOST_LEVELS = 32


def copy(tree: ChartTree, chart: Path, work: Path) -> tuple[Path, Path, Path]:
    """Copy a chart, with its neighbours within reach of its `file://` dependencies.

    Args:
        tree: the chart.
        chart: its directory.
        work: an existing private directory, where the copy goes.

    Returns:
        The copy, in a directory of the same name; the private directory around it and its neighbours; and the
        caller's directory that this one stands for.

    Raises:
        SourceError: it cannot be copied.
    """
    real = chart.resolve()
    levels = min(_levels(tree), len(real.parents) - 1)
    place = work / "updated"
    place.mkdir(mode=0o700)
    for number in range(levels, 0, -1):
        original, ours = real.parents[number - 1], real.parts[-number]
        for neighbour in sorted(original.iterdir()):
            if neighbour.name != ours:
                (place / neighbour.name).symlink_to(neighbour)
        place /= ours
        if number > 1:
            place.mkdir(mode=0o700)
    copied = write_chart(tree, {}, place if levels else place / real.name)
    return copied, work / "updated", real.parents[max(levels, 1) - 1]


def _levels(tree: ChartTree) -> int:
    """How far up the dependencies lead that are other directories; not at all where helm will say what is wrong."""
    try:
        _, entries = requirements.declared(tree)
    except SourceError:
        return 0
    addresses = (str(entry.get("repository")) for entry in entries)
    levels = (
        PurePosixPath(address.removeprefix(_FILE)).parts.count("..")
        for address in addresses
        if address.startswith(_FILE)
    )
    return min(max(levels, default=0), _MOST_LEVELS)
