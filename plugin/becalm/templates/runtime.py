"""The templates file that is added to a rewritten chart: fixed templates and this render's data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal

from becalm.manifests.scalars import Value
from becalm.templates.answers import expression
from becalm.templates.tokens import quote

Mode = Literal["survey", "replay"]
#: What answers a lookup for which there is no answer: helm itself; or an empty map, and in a replay a request.
Unknown = Literal["stock", "ask", "demand"]

#: Settled draws: file key -> root path -> draw key -> arguments -> entry. An entry holds the value as
#: `v` (a string, a mapping with Cert and Key, or the order of a shuffle as a list of positions), and as
#: `g`, where the value depends on more than the arguments, the digest of the texts that were given. Under the
#: key `PINNED` are texts that take the place of what actions and named templates return, by their paths; there `g`
#: is the SHA-256 of the text that is replaced.
Table = Mapping[str, Mapping[str, Mapping[str, Mapping[str, Mapping[str, object]]]]]

#: Where a table holds pinned texts.
PINNED = "="
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
        salt: another one gives other provisional values.
        records_all: a survey tells also of files in which every draw is settled.
        unknown: what answers a lookup that is not in `answers`.
        answers: what lookups give, by `digest` of API version, kind, namespace and name.
    """

    mode: Mode
    marker: str
    instant: str
    names: frozenset[str]
    files: tuple[str, ...]
    table: Table = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    interesting: str = "^$"
    salt: str = ""
    records_all: bool = False
    unknown: Unknown = "stock"
    answers: Mapping[str, Value] = field(default_factory=dict)

    def text(self) -> str:
        """The file's text. It prints nothing."""
        setup = {
            "m": self.mode,
            "k": self.marker,
            "names": dict.fromkeys(sorted(self.names), True),
            "w": self.interesting,
            "salt": self.salt,
            "all": self.records_all,
            "l": self.unknown,
        }
        answers = dict.fromkeys(sorted(self.answers), True)
        data = {"becalm.setup": setup, "becalm.texts": dict(self.texts), "becalm.answers": answers}
        for key in (*self.files, ORPHAN):
            data[f"becalm.table:{key}"] = self.table.get(key, {})
        defines = [f"{{{{define {quote(name)}}}}}{_json(value)}{{{{end}}}}\n" for name, value in data.items()]
        instant = f'{{{{define "becalm.instant"}}}}{self.instant}{{{{end}}}}\n'
        defines += [
            f'{{{{define "becalm.answer:{key}"}}}}{{{{$_ := set . "v" {expression(value)}}}}}{{{{end}}}}\n'
            for key, value in sorted(self.answers.items())
        ]
        return _templates() + "{{- /* data */ -}}\n" + "".join(defines) + instant


def text_key(text: str) -> str:
    """The key of a text for `tpl`: its SHA-256 in hexadecimal, as sprig's sha256sum gives it."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@cache
def _templates() -> str:
    folder = resources.files("becalm.templates")
    return "".join(folder.joinpath(name).read_text("utf-8") for name in ("runtime.tpl", "lookup.tpl"))


def _json(value: object) -> str:
    # "{{" can only stand inside a JSON string, where an escape means the same.
    return json.dumps(value, separators=(",", ":"), sort_keys=True).replace("{{", "\\u007b\\u007b")
