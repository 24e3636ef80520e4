"""The loop: survey until every draw is settled, then replay."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from becalm.derive.labels import Label
from becalm.errors import DeterminismError
from becalm.stabilise import settle
from becalm.stabilise.records import Draw, Records, draw_of, take
from becalm.templates import functions
from becalm.templates.files import TemplateFile
from becalm.templates.rewrite import Sites, rewrite_file
from becalm.templates.runtime import Mode, Runtime, text_key
from becalm.templates.taint import taint

MAX_ROUNDS = 12
_TEXT = "tpl:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one run of the renderer gave: output, or the text of its error."""

    output: str
    error: str | None


#: Renders the chart with some template texts replaced and one file of templates added.
Render = Callable[[dict[str, str], str], Attempt]


@dataclass(slots=True, kw_only=True)
class Stabilised:
    """A deterministic render, with what was drawn. `output` is None when helm failed by itself."""

    output: str | None
    error: str | None = None
    labels: list[tuple[Draw, Label]] = field(default_factory=list)
    sites: Sites = field(default_factory=Sites)
    rounds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewritten:
    """All rewritten templates and texts, and what the runtime needs to know of them."""

    text_count: int
    changed: dict[str, str]
    texts: dict[str, str]
    sites: Sites
    names: frozenset[str]
    framed: tuple[str, ...]
    unread: tuple[str, ...]
    """Where template files do not parse, with the reason."""


class Stabiliser:
    """Renders one chart.

    Args:
        files: the templates of the chart and its subcharts.
        texts: texts from values and files that `tpl` may be given, each with the place it is from.
        key: the app key, or None where there is no seed.
        namespace: of the release.
        instant: stands for the clock, RFC 3339 in UTC.
    """

    def __init__(
        self,
        files: list[TemplateFile],
        texts: Mapping[str, str],
        *,
        key: bytes | None,
        namespace: str,
        instant: str,
    ) -> None:
        self.files = files
        self.origins = dict(texts)
        self.texts = {text_key(text): text for text in texts if functions.mentions(text)}
        self.key = key
        self.namespace = namespace
        self.instant = instant
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.text.encode("utf-8", "surrogateescape") + b"\0")
        marker = hmac.new(key or b"becalm", digest.digest(), hashlib.sha256).hexdigest()
        self.marker = f"becalm-{marker[:40]}"
        self.table: dict[str, dict[str, dict[str, dict[str, object]]]] = {}
        self._rewritten: _Rewritten | None = None
        self.settled: dict[tuple[str, str], Label] = {}
        self.result = Stabilised(output=None)

    def run(self, render: Render) -> Stabilised:
        """Render until nothing is left to settle.

        Raises:
            DeterminismError: the chart calls what has no answer yet, draws without a seed, or does
                not settle.
        """
        mode: Mode = "survey"
        for number in range(1, MAX_ROUNDS + 1):
            self.result.rounds = number
            attempt = self._attempt(render, mode)
            if attempt.error is not None:
                request = self._request(attempt.error)
                if request is None:
                    self.result.error = self._redacted(attempt.error)
                    return self.result
                mode = self._answer(request)
                continue
            self._refuse_unread()
            output, records = take(attempt.output, self.marker)
            if not any(not draw.known for draw in records.draws.values()) and not records.texts:
                self.result.output = output
                return self.result
            mode = self._settle(output, records)
        raise DeterminismError(
            f"the chart does not settle after {MAX_ROUNDS} renders",
            where=self._places(),
            hint="a value that is drawn decides which values are drawn next; give it in the values",
        )

    def _refuse_unread(self) -> None:
        """Helm rendered, so what becalm cannot read may be a template that drew at random."""
        if self._rewritten is not None and self._rewritten.unread:
            raise DeterminismError(
                "a template that helm accepts cannot be read",
                where=self._rewritten.unread[0],
                hint="write it more simply, or leave it out of the chart if nothing uses it",
            )

    def _redacted(self, text: str) -> str:
        """An error of helm without the values that were derived."""
        for value in sorted(self._values(), key=len, reverse=True):
            text = text.replace(value, "***")
        return text

    def _values(self) -> set[str]:
        return {
            value
            for roots in self.table.values()
            for draws in roots.values()
            for by_arguments in draws.values()
            for value in by_arguments.values()
            if isinstance(value, str) and value
        }

    def _places(self) -> str:
        return ", ".join(sorted({f"{site.file}:{site.line}" for site in self.result.sites.items})[:5])

    def _attempt(self, render: Render, mode: Mode) -> Attempt:
        # Texts are only ever added, and nothing else decides the rewrite.
        if self._rewritten is None or self._rewritten.text_count != len(self.texts):
            self._rewritten = self._rewrite()
            self.result.sites = self._rewritten.sites
        done = self._rewritten
        words = "|".join(re.escape(name) for name in sorted(done.names))
        mention = "|".join(functions.rewritten())
        runtime = Runtime(
            mode=mode, marker=self.marker, instant=self.instant, names=done.names, files=done.framed,
            table=self.table, texts=done.texts, interesting=f"{mention}|{words}" if words else mention,
        )  # fmt: skip
        return render(done.changed, runtime.text())

    def _rewrite(self) -> _Rewritten:
        text_files = [
            TemplateFile(
                key=f"{_TEXT}{key}",
                name=f"{_TEXT}{key}",
                text=text,
                is_text=True,
                origin=self.origins.get(text, "a text that is put together"),
            )
            for key, text in self.texts.items()
        ]
        found = taint(self.files + text_files, rewrites_tpl=bool(self.texts))
        sites = Sites()
        changed: dict[str, str] = {}
        texts: dict[str, str] = {}
        for key, parsed in found.parsed.items():
            new = rewrite_file(parsed, found, sites, instant=self.instant)
            if parsed.file.is_text:
                texts[key.removeprefix(_TEXT)] = new
            elif new != parsed.file.text:
                changed[key] = new
        framed = tuple(
            key
            for key, parsed in found.parsed.items()
            if not parsed.file.is_text and found.framed(parsed.bodies[0][1])
        )
        return _Rewritten(
            text_count=len(self.texts),
            changed=changed,
            texts=texts,
            sites=sites,
            names=found.names,
            framed=framed,
            unread=tuple(
                f"{file.key}:{file.text.count(chr(10), 0, found.unread[file.key].offset) + 1}:"
                f" {found.unread[file.key].reason}"
                for file in self.files
                if file.key in found.unread
            ),
        )

    def _settle(self, output: str, records: Records) -> Mode:
        for text in records.texts:
            self.texts[text_key(text)] = text
        if records.texts:
            return "survey"
        settler = settle.Settler(output, records, self.namespace)
        for draw, label in settler.labels(self.settled):
            self.put(draw, label)
        return "replay"

    def put(self, draw: Draw, label: Label) -> None:
        """Settle one draw."""
        if self.key is None:
            site = self.result.sites.items[draw.site]
            raise DeterminismError(
                f"the chart calls {site.function}, which needs a seed",
                where=f"{site.file}:{site.line}",
                hint="give one with --seed FILE (make it with `becalm seed new FILE`)",
            )
        value = settle.value(label, draw, self.key)
        roots = self.table.setdefault(draw.file, {})
        roots.setdefault(draw.root, {}).setdefault(draw.key, {})[draw.arguments] = value
        self.settled[draw.key, draw.arguments] = label
        self.result.labels.append((draw, label))

    def _request(self, error: str) -> list[object] | None:
        match = re.search(rf"{self.marker}:([A-Za-z0-9+/=]+):{self.marker}", error)
        if match is None:
            return None
        request: list[object] = json.loads(base64.b64decode(match.group(1)))
        return request

    def _answer(self, request: list[object]) -> Mode:
        kind, *rest = request
        if kind == "text":
            self.texts[text_key(str(rest[0]))] = str(rest[0])
            return "survey"
        if kind == "draw":
            draw = draw_of(rest)
            label = Label(("site", draw.name, draw.function, draw.arguments))
            self.put(draw, settle.unused(label, set(self.settled.values())))
            return "replay"
        site_ = self.result.sites.items[int(str(rest[0]))]
        where = f"{site_.file}:{site_.line}"
        if kind == "refused":
            raise DeterminismError(
                f"the chart calls {site_.function}, which would give another result each time",
                where=where,
                hint="give its result in the values; keys, certificates and hashes are not derived yet",
            )
        if kind == "limit":
            raise DeterminismError(f"the result of {site_.function} would be too long", where=where)
        raise DeterminismError(f"{site_.function} is given arguments that it does not take", where=where)
