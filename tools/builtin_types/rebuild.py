"""Writes plugin/becalm/normalise/builtin_types.json from Kubernetes' own Go types, one release after another.

Needs Go and its module proxy: python3 tools/builtin_types/rebuild.py
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUTPUT = HERE.parents[1] / "plugin" / "becalm" / "normalise" / "builtin_types.json"
#: One patch release of each minor release of Kubernetes, oldest first: 1.29 is k8s.io/api v0.29.
RELEASES = (
    "v0.29.15", "v0.30.14", "v0.31.14", "v0.32.9", "v0.33.5", "v0.34.1", "v0.35.0", "v0.36.2", "v0.37.2",
)  # fmt: skip
Entries = dict[str, Any]


def ask(release: str) -> dict[str, Entries]:
    """The kinds and types of one release."""
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(HERE / "main.go", work)
        for command in (["mod", "init", "types"], ["get", f"k8s.io/client-go/kubernetes/scheme@{release}"]):
            subprocess.run(["go", *command], cwd=work, check=True, capture_output=True)  # noqa: S607
        done = subprocess.run(["go", "run", "."], cwd=work, check=True, capture_output=True)  # noqa: S607
    found: dict[str, Entries] = json.loads(done.stdout)
    return found


def merge(asked: dict[int, Entries]) -> Entries:
    """One entry for each name: its text, or, where it is not in all releases, `[text, first, last]` and more.

    Args:
        asked: by minor release, what was found for each name.
    """
    names = sorted({name for found in asked.values() for name in found})
    first, last = min(asked), max(asked)
    merged: Entries = {}
    for name in names:
        spans: list[list[Any]] = []
        for minor, found in asked.items():
            if name not in found:
                continue
            if spans and spans[-1][0] == found[name] and spans[-1][2] == minor - 1:
                spans[-1][2] = minor
            else:
                spans.append([found[name], minor, minor])
        whole = len(spans) == 1 and spans[0][1:] == [first, last]
        merged[name] = spans[0][0] if whole else [step for span in spans for step in span]
    return merged


def main() -> None:
    """Ask every release and write the table."""
    asked = {int(release.split(".")[1]): ask(release) for release in RELEASES}
    names = sorted({name for one in asked.values() for name in one["types"]})
    types = {
        name: merge({minor: one["types"].get(name, {}) for minor, one in asked.items()}) for name in names
    }
    table = {
        "releases": [min(asked), max(asked)],
        "kinds": merge({minor: one["kinds"] for minor, one in asked.items()}),
        "types": types,
    }
    OUTPUT.write_text(json.dumps(table, indent=0, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
