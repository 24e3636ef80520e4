"""The warm service beside stock helm on charts of your own: `make bench-charts CHARTS=DIR`.

DIR holds charts as directories, each with its dependencies, and perhaps `NAME.values.yaml` beside a chart NAME. Of each
chart a miss (nothing is cached) is measured in pairs with stock `helm template`; charts that stock helm does not
render are left out, and those that becalm does not render are named.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from service import ROOT, Measured, row, timed


class Chart:
    """A chart with its values, and how stock helm and becalm render it."""

    def __init__(self, measured: Measured, directory: Path) -> None:
        self.measured = measured
        self.directory = directory
        self.values = directory.with_name(f"{directory.name}.values.yaml")

    def stock(self) -> bool:
        """Whether stock helm renders it."""
        argv = [
            self.measured.helm, "template", ".", "--name-template=app", "--namespace=shop", "--include-crds", "--kube-version=1.34.1",
            *([f"--values={self.values}"] if self.values.is_file() else []),
        ]  # fmt: skip
        env = {"PATH": self.measured.env["PATH"], "HOME": str(self.measured.work)}
        done = subprocess.run(argv, cwd=self.directory, env=env, capture_output=True, check=False)
        return done.returncode == 0

    def becalm(self) -> str:
        """The first line of becalm's error, "" for none."""
        has_values = self.values.is_file()
        given = [{"name": "values", "string": self.values.read_text("utf-8")}] if has_values else []
        env = {
            **self.measured.env, "ARGOCD_APP_NAME": "app", "BECALM_CACHE_DIR": "off", "ARGOCD_APP_PARAMETERS": json.dumps(given)
        }  # fmt: skip
        done = subprocess.run(
            [self.measured.becalm, "generate"], cwd=self.directory, env=env, capture_output=True, check=False
        )
        return "" if done.returncode == 0 else done.stderr.decode("utf-8", "replace").partition("\n")[0]

    def medians(self, turns: int) -> tuple[float, float]:
        """Seconds of both, in pairs, one right after the other."""
        pairs = [(timed(self.stock), timed(self.becalm)) for _ in range(turns)]
        return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def main() -> None:
    """Measure and print, the slowest ratios first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("charts", type=Path, metavar="DIR")
    parser.add_argument("--helm", default=str(ROOT / ".tools" / "helm-4.1.4" / "helm"), help="stock helm")
    parser.add_argument("--turns", type=int, default=3, help="pairs for each chart")
    arguments = parser.parse_args()
    found: list[tuple[float, float, str]] = []
    with tempfile.TemporaryDirectory(prefix="becalm-bench-") as work:
        measured = Measured(arguments.helm, Path(work))
        with measured.serving():
            for directory in sorted(one for one in arguments.charts.resolve().iterdir() if one.is_dir()):
                chart = Chart(measured, directory)
                if not chart.stock():
                    continue
                error = chart.becalm()
                if error:
                    print(f"{directory.name}: {error}", flush=True)
                else:
                    found.append((*chart.medians(arguments.turns), directory.name))
    for stock, ours, name in sorted(found, key=lambda one: one[0] / one[1]):
        row(name, stock, ours)
    if found:
        ratio = statistics.median(ours / stock for stock, ours, _ in found)
        print(f"{len(found)} charts; the median of their ratios is {ratio:.2f}")
        row("all of them", sum(one[0] for one in found), sum(one[1] for one in found))


if __name__ == "__main__":
    main()
