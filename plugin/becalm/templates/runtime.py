"""The templates file that is added to a rewritten chart: fixed templates and this render's data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal

from becalm.templates import functions
from becalm.templates.tokens import quote

Mode = Literal["survey", "replay"]

#: Settled values: file key -> root path -> draw key -> arguments -> value (a string, or the
#: order of a shuffle as a list of positions).
Table = Mapping[str, Mapping[str, Mapping[str, Mapping[str, object]]]]

#: The table of draws in named templates that run without a frame.
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What the templates of one render need to know.

    Args:
        mode: survey (answer unknown draws provisionally, and record them) or replay (an
            unknown draw ends the render with a request).
        marker: the word that marks records and requests; no input may hold it.
        instant: the instant that stands for the clock, RFC 3339 in UTC.
        names: the framed named templates.
        files: the keys of all framed files.
        table: settled values.
        texts: rewritten texts for `tpl` by the SHA-256 of the original, in hexadecimal.
        interesting: a Go regular expression; a text for `tpl` that it finds must be rewritten.
    """

    mode: Mode
    marker: str
    instant: str
    names: frozenset[str]
    files: tuple[str, ...]
    table: Table = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    interesting: str = "^$"

    def text(self) -> str:
        """The file's text. It prints nothing."""
        refused = sorted(n for n, f in functions.functions().items() if f.treatment == "refused")
        setup = {
            "m": self.mode,
            "k": self.marker,
            "names": dict.fromkeys(sorted(self.names), True),
            "refused": refused,
            "w": self.interesting,
        }
        data = {"becalm.setup": setup, "becalm.texts": dict(self.texts)}
        for key in (*self.files, ORPHAN):
            entries = {
                root: {
                    draw: {arguments: {"v": value} for arguments, value in by_arguments.items()}
                    for draw, by_arguments in draws.items()
                }
                for root, draws in self.table.get(key, {}).items()
            }
            data[f"becalm.table:{key}"] = entries
        defines = [f"{{{{define {quote(name)}}}}}{_json(value)}{{{{end}}}}\n" for name, value in data.items()]
        instant = f'{{{{define "becalm.instant"}}}}{self.instant}{{{{end}}}}\n'
        return _templates() + "{{- /* data */ -}}\n" + "".join(defines) + instant


def text_key(text: str) -> str:
    """The key of a text for `tpl`: its SHA-256 in hexadecimal, as sprig's sha256sum gives it."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@cache
def _templates() -> str:
    return resources.files("becalm.templates").joinpath("runtime.tpl").read_text("utf-8")


def _json(value: object) -> str:
    # "{{" can only stand inside a JSON string, where an escape means the same.
    return json.dumps(value, separators=(",", ":"), sort_keys=True).replace("{{", "\\u007b\\u007b")
