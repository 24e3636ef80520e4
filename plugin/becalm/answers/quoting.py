"""What may be told of a tool's error: its words without the values that it was given, which a chart may quote in `fail`.

Argo CD shows the whole error to those who may see the application. The log and the web page have other readers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from becalm.errors import PluginError
from becalm.manifests import yamlio
from becalm.manifests.paths import leaves
from becalm.request import Request

_MASK: Final = "********"
#: Shorter texts are words of helm's own, such as `true`; no secret is worth its name with fewer signs.
_SHORTEST: Final = 6
_MOST_BYTES: Final = 4 * 1024 * 1024


def without_values(line: str, request: Request) -> str:
    """A line of an error in which every value of the application is masked, as it is and in base64."""
    found = {text for text in _values(request) if len(text) >= _SHORTEST}
    for text in sorted(found, key=lambda text: (-len(text), text)):
        for form in (text, base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")):
            line = line.replace(" ".join(form.split()), _MASK)
    return line


def _values(request: Request) -> Iterator[str]:
    options = request.options
    chart = request.remote.path or request.chart
    for path in (chart / "values.yaml", *options.values):
        yield from _leaves(_text(path))
    yield from _leaves(options.inline)
    for item in (*options.sets, *options.set_strings):
        yield item.partition("=")[2]
    for item in options.set_files:
        text = _text(Path(item.partition("=")[2]))
        yield from (text.strip(), *text.splitlines())


def _text(path: Path) -> str:
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            return path.read_text("utf-8", "surrogateescape")
    return ""


def _leaves(text: str) -> Iterator[str]:
    """The scalars of a YAML text; where it is none, each of its words."""
    try:
        found = [str(leaf) for _, leaf in leaves(yamlio.load(text, where="values"))]
    except PluginError:
        found = text.split()
    for leaf in found:
        # A message may hold one line of several.
        yield from (leaf.strip(), *leaf.splitlines())
