"""The loop: survey until every draw is settled, then replay."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from becalm.derive.deriver import Deriver
from becalm.derive.labels import Label
from becalm.errors import DerivationError, DeterminismError, SeedMissingError
from becalm.manifests.landing import Landing
from becalm.stabilise import looking, settle
from becalm.stabilise.epochs import Epochs
from becalm.stabilise.finals import Finals
from becalm.stabilise.looking import Looked, Lookups
from becalm.stabilise.pinned_texts import Entries, PinnedTexts
from becalm.stabilise.records import Draw, Records, draw_of, take
from becalm.stabilise.settle import Named
from becalm.stages import Stopwatch
from becalm.templates import functions
from becalm.templates.files import TemplateFile
from becalm.templates.rewrite import Sites, rewrite_file
from becalm.templates.runtime import ORPHAN, Mode, Runtime, Table, text_key
from becalm.templates.taint import includes_computed, taint_all

MAX_ROUNDS = 12
_TEXT = "tpl:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one run of the renderer gave: output, or the text of its error."""

    output: str
    error: str | None


#: Renders the chart with some template texts replaced and one file of templates added.
Render = Callable[[dict[str, str], str], Attempt]


@dataclass(frozen=True, slots=True)
class Settled:
    """A draw with its label, the places where it can be seen, what it was given, and its final value.

    `piece` is the path of what returned the text that lands, "" where the draw's own lands or none does.
    """

    draw: Draw
    label: Label
    places: list[Landing]
    given: tuple[str, ...] = field(repr=False)
    value: object = field(repr=False)
    piece: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A render with its records."""

    output: str = field(repr=False)
    records: Records = field(repr=False)


@dataclass(slots=True, kw_only=True)
class Stabilised:
    """A deterministic render, with what was drawn.

    `output` is None when helm failed by itself, with `error`; or when a function was given what it does
    not take, with `fault`, which helm itself should say better. `texts` are those that stand pinned in the place of
    what templates make of draws.
    """

    output: str | None
    error: str | None = None
    fault: DeterminismError | None = None
    draws: dict[tuple[str, Label], Settled] = field(default_factory=dict)
    texts: dict[str, None] = field(default_factory=dict, repr=False)
    sites: Sites = field(default_factory=Sites)
    lookups: tuple[Looked, ...] = ()
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
    includes_files: bool
    unread: tuple[str, ...]
    """Where template files do not parse, with the reason."""
    unseen: tuple[str, ...]
    """Where template files that need not be read may look things up."""


class Stabiliser:
    """Renders one chart.

    Args:
        files: the templates of the chart and its subcharts.
        texts: texts from values and files that `tpl` may be given, each with the place it is from.
        deriver: answers the draws, or None where there is no seed.
        namespace: of the release.
        instant: stands for the clock, RFC 3339 in UTC.
        epochs: of items.
        lookups: how they are answered; None leaves them to helm, unseen.
        stopwatch: measures the survey and the replay.
    """

    def __init__(  # noqa: PLR0913  # each is one thing that a render depends on
        self,
        files: list[TemplateFile],
        texts: Mapping[str, str],
        *,
        deriver: Deriver | None,
        namespace: str,
        instant: str,
        epochs: Epochs,
        lookups: Lookups | None = None,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self._stopwatch = stopwatch or Stopwatch()
        self.files = files
        self.lookups = lookups
        self.origins = dict(texts)
        mentions = functions.draws if lookups is None else functions.mentions
        self.texts = {text_key(text): text for text in texts if mentions(text)}
        self.deriver = deriver
        self.namespace = namespace
        self.instant = instant
        self.epochs = epochs
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.text.encode("utf-8", "surrogateescape") + b"\0")
        marker = digest.hexdigest() if deriver is None else deriver.mac(digest.digest())
        self.marker = f"becalm-{marker[:40]}"
        self.table: Entries = {}
        self._rewritten: _Rewritten | None = None
        self.settled: dict[tuple[str, str], Label] = {}
        self._requested: set[tuple[str, str, tuple[str, ...]]] = set()
        self._pinned = PinnedTexts(self.table)
        self._demands = False
        self.result = Stabilised(output=None)

    def run(self, render: Render) -> Stabilised:
        """Render until nothing is left to settle.

        Raises:
            DeterminismError: the chart draws without a seed, or does not settle.
        """
        try:
            return self._run(render)
        except _Fault as fault:
            self.result.fault = fault.error
            return self.result

    def _run(self, render: Render) -> Stabilised:
        mode: Mode = "survey"
        for number in range(1, MAX_ROUNDS + 1 + (0 if self.lookups is None else self.lookups.rounds)):
            self.result.rounds = number
            with self._stopwatch.of(mode):
                attempt = self._attempt(render, mode)
            if attempt.error is not None:
                request = self._request(attempt.error)
                if request is None and self._may_demand(mode):
                    self._demands = True
                    continue
                if request is None:
                    self.result.error = self._redacted(attempt.error)
                    return self.result
                mode = self._answer(request)
                continue
            self._refuse_unread()
            output, ran = looking.take(attempt.output, self.marker, self.result.sites.lookups)
            if self._learns(ran):
                mode = "survey"
                continue
            output, records = take(output, self.marker)
            self._pinned.look(records)
            if all(draw.known for draw in records.draws.values()) and not records.texts:
                if mode == "survey" and self._may_lose_records():
                    mode = "replay"  # in which nothing provisional can be
                    continue
                if self.lookups is not None and not self.lookups.is_settled(output, ran):
                    mode = "survey"
                    continue
                self.result.lookups = self._looked(ran)
                self.epochs.require_used()
                self.result.output = output
                return self.result
            with self._stopwatch.of("settle"):
                mode = self._settle(output, records)
        raise DeterminismError(
            f"the chart does not settle after {MAX_ROUNDS} renders",
            where=self._places(),
            hint="a value that is drawn decides which values are drawn next; give it in the values",
        )

    def observe(self, render: Render, *, salt: str | None = None) -> Observed:
        """Render once more, after `run`, and see what draws and what encloses them.

        Args:
            render: as for `run`.
            salt: gives every draw a provisional value, another one for another salt; None gives the settled ones.

        Raises:
            DeterminismError: what is drawn decides so much that the chart does not render with other values.
        """
        table = self.table if salt is None else {}
        attempt = self._attempt(render, "survey", observed=table, salt=salt or "")
        if attempt.error is not None:
            raise DeterminismError(
                "the chart does not render with other values than those that were derived",
                where=self._places(),
            )
        output, _ = looking.take(attempt.output, self.marker, self.result.sites.lookups)
        output, records = take(output, self.marker)
        return Observed(output=output, records=records)

    def _may_demand(self, mode: Mode) -> bool:
        """Whether the render may have failed for want of what it looks up, which is then asked for one by one."""
        asks = self.lookups is not None and self.lookups.unknown == "ask"
        return asks and mode == "survey" and not self._demands

    def _learns(self, ran: list[looking.Ran]) -> bool:
        """Whether something was looked up that must be answered otherwise; the answer is there now."""
        missing = [one for one in ran if not one.is_known]
        if self.lookups is None or self.lookups.unknown == "stock" or not missing:
            return False
        return self.lookups.learn(missing)

    def _looked(self, ran: list[looking.Ran]) -> tuple[Looked, ...]:
        """What was looked up, for reports, without anything that is derived."""
        if self.lookups is None or self._rewritten is None:
            return ()
        return (*self.lookups.told(ran, self._redacted), *map(looking.unseen, self._rewritten.unseen))

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
        """Every text that was derived, by lines, since an error may quote one line of a key."""
        values = [
            entry["v"]
            for roots in self.table.values()
            for draws in roots.values()
            for by_arguments in draws.values()
            for entry in by_arguments.values()
        ]
        texts = [
            text
            for value in values
            for text in (value.values() if isinstance(value, dict) else [value])
            if isinstance(text, str)
        ]
        texts += [] if self.lookups is None else self.lookups.secrets()
        return {line for text in texts for line in text.splitlines() if line and not line.startswith("-----")}

    def _places(self) -> str:
        return ", ".join(sorted({f"{site.file}:{site.line}" for site in self.result.sites.items})[:5])

    def _attempt(
        self, render: Render, mode: Mode, *, observed: Table | None = None, salt: str = ""
    ) -> Attempt:
        # Texts are only ever added, and nothing else decides the rewrite.
        if self._rewritten is None or self._rewritten.text_count != len(self.texts):
            self._rewritten = self._rewrite()
            self.result.sites = self._rewritten.sites
        done = self._rewritten
        words = "|".join(re.escape(name) for name in sorted(done.names))
        mention = "|".join(functions.drawing() if self.lookups is None else functions.rewritten())
        runtime = Runtime(
            mode=mode, marker=self.marker, instant=self.instant, names=done.names, files=done.framed,
            table=self.table if observed is None else observed, texts=done.texts, salt=salt,
            records_all=observed is not None,
            interesting=f"{mention}|{words}" if words else mention,
            unknown="stock" if self.lookups is None else "demand" if self._demands else self.lookups.unknown,
            answers={} if self.lookups is None else self.lookups.table(),
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
        found = taint_all(self.files, text_files, looks=self.lookups is not None)
        sites = Sites()
        changed: dict[str, str] = {}
        texts: dict[str, str] = {}
        for key, parsed in found.parsed.items():
            new = rewrite_file(parsed, found, sites, instant=self.instant)
            if parsed.file.is_text:
                texts[key.removeprefix(_TEXT)] = new
            elif new != parsed.file.text:
                changed[key] = new
        # What only looks things up need not be read, where helm's own answer will do.
        unread = (found.draws if self.lookups is None or self.lookups.is_optional else found).unread
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
            includes_files=any(includes_computed(file.text) for file in self.files),
            unread=tuple(
                f"{file.key}:{file.text.count(chr(10), 0, unread[file.key].offset) + 1}:"
                f" {unread[file.key].reason}"
                for file in self.files
                if file.key in unread
            ),
            unseen=tuple(
                place
                for file in self.files
                if file.key in found.unread and file.key not in unread
                for place in looking.mentions(file)
            ),
        )

    def _settle(self, output: str, records: Records) -> Mode:
        for text in records.texts:
            self.texts[text_key(text)] = text
        if records.texts:
            return "survey"
        settler = settle.Settler(output, records, self.namespace, self.epochs)
        self.put(settler.labels(self.settled))
        return "replay"

    def put(self, named: list[Named]) -> None:
        """Settle draws."""
        if not named:
            return
        if self.deriver is None:
            site = self.result.sites.items[named[0].draw.site]
            raise SeedMissingError(
                f"the chart calls {site.function}, which needs a seed",
                where=f"{site.file}:{site.line}",
                hint="give one with --seed FILE (`becalm seed new FILE` makes it) or, for a look, --throwaway-seed; "
                "in Argo CD, BECALM_SEED_FILE names it",
            )
        finals = Finals(self.deriver, named)
        for one in named:
            draw, label = one.draw, one.label
            try:
                arguments, entry = finals.entry(draw)
            except DerivationError as error:
                raise self._fault(draw.site, str(error)) from error
            roots = self.table.setdefault(draw.file, {})
            roots.setdefault(draw.root, {}).setdefault(draw.key, {})[arguments] = entry
            self.settled[draw.key, draw.arguments] = label
            self.settled[draw.key, arguments] = label
            piece = "" if one.piece is None else one.piece.key
            self.result.draws[draw.key, label] = Settled(
                draw, label, one.places, finals.given[id(draw)], entry["v"], piece
            )
            if one.piece is not None:
                text = self._pinned.pin(one.piece, label, self.deriver.pins)
                if text is not None:
                    self.result.texts[text] = None

    def _fault(self, site_id: int, text: str) -> _Fault:
        site = self.result.sites.items[site_id]
        return _Fault(DeterminismError(f"{site.function}: {text}", where=f"{site.file}:{site.line}"))

    def _request(self, error: str) -> list[object] | None:
        match = re.search(rf"{self.marker}:([A-Za-z0-9+/=]+):{self.marker}", error)
        if match is None:
            return None
        request: list[object] = json.loads(base64.b64decode(match.group(1)))
        return request

    def _answer(self, request: list[object]) -> Mode:
        kind, *rest = str(request[0]), *request[1:]
        if kind == "text":
            self.texts[text_key(str(rest[0]))] = str(rest[0])
            return "survey"
        if kind == "draw":
            return self._answer_draw(draw_of(rest))
        if kind == "pin":
            self._pinned.drop(*map(str, rest))
            return "replay"
        if kind.startswith("lookup"):
            return self._answer_lookup(kind, rest)
        site_id = int(str(rest[0]))
        if kind == "limit":
            site_ = self.result.sites.items[site_id]
            raise DeterminismError(
                f"the result of {site_.function} would be too long", where=f"{site_.file}:{site_.line}"
            )
        raise self._fault(site_id, "it is given arguments that it does not take")

    def _answer_lookup(self, kind: object, fields: list[object]) -> Mode:
        """A lookup that no survey saw, or whose arguments are no texts."""
        assert self.lookups is not None
        sites = self.result.sites.lookups
        if kind == "lookup":
            (event,) = fields
            assert isinstance(event, list)
            is_other = self.lookups.learn([looking.ran(event, sites)])
            return "survey" if is_other or self._demands else "replay"
        site = sites[int(str(fields[0]))]
        raise _Fault(
            DeterminismError(
                "lookup: it is given arguments that it does not take", where=f"{site.file}:{site.line}"
            )
        )

    def _answer_draw(self, draw: Draw) -> Mode:
        """A draw that no survey saw, or that is given other texts than were foreseen."""
        if (draw.key, draw.arguments, draw.given) not in self._requested and draw.file != ORPHAN:
            self._requested.add((draw.key, draw.arguments, draw.given))
            return "survey"
        # No survey can see it; but what it is given in a replay is final.
        label = self.settled.get((draw.key, draw.arguments))
        if label is None:
            parts = ("site", self._redacted(draw.name), draw.function, self._redacted(draw.arguments))
            label = settle.unused(Label(parts), set(self.settled.values()))
        self.put([Named(draw=draw, label=label, places=[])])
        return "replay"

    def _may_lose_records(self) -> bool:
        """Whether there are draws, and some file may be included by another, so that it prints no records."""
        done = self._rewritten
        if done is None or not done.includes_files:
            return False
        asks = self.lookups is not None and self.lookups.unknown == "ask"
        return bool(done.sites.items or (asks and done.sites.lookups))


class _Fault(Exception):  # noqa: N818
    """Ends a run whose chart gives a function what it does not take."""

    def __init__(self, error: DeterminismError) -> None:
        super().__init__(str(error))
        self.error = error
