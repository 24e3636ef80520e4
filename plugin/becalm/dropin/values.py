"""The values that a caller's flags give, put together by helm itself, since they may be templates for `tpl`."""

from __future__ import annotations

import base64
import csv
import re
from pathlib import Path

from becalm.dropin.flags import Line
from becalm.dropin.session import Session
from becalm.templates import functions

_STDIN = "-"
_PROBE = {
    "Chart.yaml": "apiVersion: v2\nname: values\nversion: 0.0.0\n",
    "templates/values.yaml": "values: {{ .Values | toJson | b64enc }}\n",
}


def reads_stdin(line: Line) -> bool:
    """Whether helm reads a values file, or a value, from standard input."""
    names = [name.strip() for name in _files(line)]
    return _STDIN in names or any(f"={_STDIN}" in item.replace(" ", "") for item in line.values("set-file"))


def merged(session: Session) -> str | None:
    """The values of all flags as JSON, "" where none of them can call what is rewritten.

    None: helm could not read them, which it says best itself.
    """
    if not _may_draw(session):
        return ""
    probe = session.work / "values"
    for name, text in _PROBE.items():
        path = probe / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    done = session.render(probe)
    found = re.search(rb"^values: ([A-Za-z0-9+/=]+)\s*$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or found is None:
        return None
    return base64.b64decode(found[1]).decode("utf-8", "replace")


def _files(line: Line) -> list[str]:
    """The values files: each flag holds a line of comma-separated values (pflag's string_slice.go)."""
    return [name for value in line.values("values") for name in next(csv.reader([value], strict=False), [])]


def _may_draw(session: Session) -> bool:
    line = session.line
    if line.values("set-file"):
        return True
    given = line.values("set", "set-string", "set-json", "set-literal")
    # A comma or a brace may be written with a backslash.
    if any(functions.mentions(text.replace("\\", "")) for text in given):
        return True
    return any(_file_may_draw(name, session) for name in _files(line))


def _file_may_draw(name: str, session: Session) -> bool:
    path = Path(name)
    if name.strip() == _STDIN and session.stdin is not None:
        path = session.stdin
    try:
        return functions.mentions(path.read_text("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        return True  # an address, which helm fetches, or an error, which helm tells
