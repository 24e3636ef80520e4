"""Writes plugin/becalm/normalise/known_defaults.json from a list of defaults inside lists.

python3 tools/known_defaults.py LIST, where each line of LIST is a JSON object with `group`, `version`, `kind`,
`path` (`.spec.rules[].backendRefs[].weight`, `[*]` for any key) and `default`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).resolve().parents[1] / "plugin" / "becalm" / "normalise" / "known_defaults.json"
STEP = re.compile(r"\.?\[\"(?P<quoted>[^\"]+)\"\]|\.(?P<name>[^.\[\]\"]+)|(?P<each>\[\])|(?P<any>\[\*\])")
#: Came with one release of External Secrets and went with another.
LEFT_OUT = ".nullBytePolicy"


def steps(path: str) -> list[str]:
    """The keys of a path, `[]` for every element and `*` for every key."""
    found = []
    at = 0
    while at < len(path):
        match = STEP.match(path, at)
        if match is None:
            raise ValueError(path)
        found.append(match["quoted"] or match["name"] or ("[]" if match["each"] else "*"))
        at = match.end()
    return found


def main() -> None:
    """Read the list and write the table, one kind to a line."""
    table: dict[str, Any] = {}
    for line in Path(sys.argv[1]).read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["path"].endswith(LEFT_OUT):
            continue
        node = table.setdefault(f"{row['group']}/{row['version']}/{row['kind'].lower()}", {})
        for step in steps(row["path"]):
            node = node.setdefault(step, {})
        node["="] = row["default"]
    compact = {"sort_keys": True, "separators": (",", ":")}
    lines = (f"{json.dumps(key)}:{json.dumps(table[key], **compact)}" for key in sorted(table))  # type: ignore[arg-type]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
