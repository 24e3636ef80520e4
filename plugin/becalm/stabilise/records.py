"""What a survey recorded: draws, and the texts that enclose them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Texts shorter than this are not looked for in others, since they may be there by chance.
SHORTEST = 8


@dataclass(slots=True, kw_only=True, eq=False)
class Enclosing:
    """A named template or an action that ran: its name ("" for an action) and what it returned.

    `scalars` is the JSON of the simple fields of its dot; `file`, `root` and `key` say where it ran, as of a draw.
    `made` is what it would have returned without a pin.
    """

    name: str
    scalars: str
    file: str = ""
    root: str = ""
    key: str = ""
    text: str = ""
    made: str = ""
    draws: list[Draw] = field(default_factory=list)
    parent: Enclosing | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Draw:
    """One draw.

    `file` is the key of the template file that began its frame and `root` the path under which that
    file was rendered; `key` is unique in the render, `name` is the same path as a person would say
    it. `site` is the number of its call. `arguments` is the JSON of what may be part of an identity,
    `given` are the texts that may not: passwords, keys, issuers. `texts` are what it gave in this render
    (a certificate and its key, else one text), `known` tells whether that is final.
    """

    file: str
    root: str
    key: str
    name: str
    site: int
    function: str
    arguments: str
    given: tuple[str, ...]
    texts: tuple[str, ...]
    known: bool
    parent: Enclosing | None

    def takes(self, other: Draw, *, shortest: int = SHORTEST) -> bool:
        """Whether what another draw gave, if it is not too short, is part of what this one was given."""
        return any(
            len(text) >= shortest and any(text in given for given in (*self.given, self.arguments))
            for text in other.texts
        )


def around(draw: Draw) -> Iterator[Enclosing]:
    """What encloses a draw, the innermost first."""
    enclosing = draw.parent
    while enclosing is not None:
        yield enclosing
        enclosing = enclosing.parent


@dataclass(slots=True)
class Records:
    """All records of one render."""

    draws: dict[tuple[str, str], Draw] = field(default_factory=dict)
    calls: list[Enclosing] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def take(output: str, marker: str) -> tuple[str, Records]:
    """The output without its record documents, and the records."""
    records = Records()
    if marker not in output:
        return output, records
    pattern = re.compile(
        rf"^---\n(?:# Source: [^\n]*\n)?apiVersion: becalm\.dev/v1\nkind: Survey\nmetadata:\n"
        rf"  name: {marker}\nrecords: ([A-Za-z0-9+/=]*)\n*(?=---|\Z)",
        re.MULTILINE,
    )
    kept: list[str] = []
    position = 0
    for match in pattern.finditer(output):
        _read(json.loads(base64.b64decode(match.group(1))), records)
        kept.append(output[position : match.start()])
        position = match.end()
    return "".join((*kept, output[position:])), records


def _read(events: dict[str, list[object]], records: Records) -> None:
    current: Enclosing | None = None
    for _, event in sorted(events.items(), key=lambda item: int(item[0])):
        kind, *rest = event
        if kind == "open":
            name, scalars, file, root, key = map(str, rest)
            current = Enclosing(name=name, scalars=scalars, file=file, root=root, key=key, parent=current)
            records.calls.append(current)
        elif kind == "close" and current is not None:
            current.text, current.made = str(rest[0]), str(rest[-1])
            current = current.parent
        elif kind == "text":
            records.texts.append(str(rest[0]))
        elif kind == "draw":
            _draw(rest, current, records)


def draw_of(fields: list[object], parent: Enclosing | None = None) -> Draw:
    """A draw from the fields of its event; a request has neither texts nor answer."""
    file, root, key, name, site, function, arguments, given, *answer = fields
    texts, known = answer or ([], False)
    assert isinstance(given, list)
    assert isinstance(texts, list)
    return Draw(
        file=str(file), root=str(root), key=str(key), name=str(name), site=int(str(site)),
        function=str(function), arguments=str(arguments),
        given=tuple(base64.b64decode(text).decode("utf-8", "surrogateescape") for text in given),
        texts=tuple(texts), known=bool(known), parent=parent,
    )  # fmt: skip


def _draw(fields: list[object], current: Enclosing | None, records: Records) -> None:
    draw = draw_of(fields, current)
    if records.draws.setdefault((draw.key, draw.arguments), draw) is draw:
        for enclosing in around(draw):
            enclosing.draws.append(draw)
