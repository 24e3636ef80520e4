"""What becomes a pin, and what does not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from becalm import live
from becalm.adopt import chains, shapes
from becalm.adopt.derived import Unpinned
from becalm.adopt.evidence import Evidence, Found, gather
from becalm.adopt.rounds import Pinned, drawn, pieces, settle
from becalm.derive import pins as pinning
from becalm.derive.deriver import GIVEN
from becalm.derive.labels import Label, app_key
from becalm.derive.pins import Pin, Pins, text_label
from becalm.errors import ConfigError
from becalm.live import Field, Live
from becalm.manifests.align import Source
from becalm.manifests.objects import ObjectId
from becalm.manifests.paths import Path
from becalm.pipeline import render
from becalm.request import Request
from becalm.stabilise.records import Draw, around
from becalm.stabilise.stabiliser import Settled
from becalm.study import Study, study

State = Literal[
    "taken over",
    "pinned already",
    "derived as it is",
    "not taken over",
    "nowhere to be seen",
    "matches nothing",
]

_SALTS = ("one", "other")
_HASHES = ("bcrypt", "htpasswd", "encryptAES")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one draw, or of a pin that matches none; `why` is for those that are not taken over."""

    place: str
    function: str
    state: State
    why: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The pins of an application, how each draw fares, and what the next sync does to its fields."""

    pins: Mapping[Label, Pin] = field(repr=False)
    rows: list[Row]
    fields: list[Field]

    @property
    def changes(self) -> list[Field]:
        """What the next sync changes."""
        return [one for one in self.fields if one.changes]


def adopt(request: Request, running: Live, old: Mapping[Label, Pin], *, prune: bool) -> Adoption:
    """Find for every draw of an application the value that it has in the cluster.

    Args:
        request: what to render; the pins of its file do not count.
        running: the live objects.
        old: pins that are there already; they stay unless another value was found.
        prune: whether those that match nothing any more are left out.

    Raises:
        ConfigError: there is no seed, or the charts of a Kustomization are not rendered here.
        PluginError: as `pipeline.render`.
    """
    if request.kind == "kustomize":
        raise ConfigError(
            "the charts of a Kustomization are taken over one by one",
            where=request.path_name,
            hint="name one of its charts",
        )
    if request.seed is None:
        raise ConfigError(
            "pins are sealed with the seed", where="--seed", hint="give the same as the sidecar has"
        )
    first = study(replace(request, pins={}), _SALTS)
    if first is None:
        return _finished(request, running, dict(old) if not prune else {}, [], Pins(old), {})
    draws = drawn(first)
    evidence = gather(first.outputs, list(_sources(first)), running, request.options.namespace)
    refused: dict[Label, str] = {}
    derived: set[Label] = set()
    alike = Unpinned(first).gives

    def wanted(found: Study) -> Pinned:
        fresh, why = _wanted({**draws, **drawn(found)}, evidence, found)
        derived.clear()
        derived.update(
            label
            for label, pin in fresh.items()
            if not (label in old and old[label].texts == pin.texts)
            and alike(label, pin, found, is_exact=evidence.of(_id(label))[0].exact)
        )
        pins = {label: pin for label, pin in {**old, **fresh}.items() if label not in derived}
        parts = chains.incomplete(
            drawn(found), pins, stays=lambda label: label in derived or not evidence.stands(_id(label))
        )
        refused.clear()
        refused.update({**why, **parts})
        return {label: pin for label, pin in pins.items() if label not in parts}

    pins, last = settle(request, old, wanted, is_loose=True)
    left_over = (*last.pins.unused, *last.pins.outdated)
    kept = {label: pin for label, pin in pins.items() if not (prune and label in left_over)}
    rows = list(_rows(draws, evidence, (old, pins, derived), refused))
    return _finished(request, running, kept, rows, last.pins, evidence.places)


def depending(request: Request, running: Live) -> Mapping[tuple[ObjectId, Path], None]:
    """The fields that depend on what is drawn, those too in which it cannot be seen: a checksum, a port.

    Raises:
        PluginError: as `pipeline.render`.
    """
    found = study(request, _SALTS)
    if found is None:
        return {}
    return gather(found.outputs, list(_sources(found)), running, request.options.namespace).places


def _finished(  # noqa: PLR0913, PLR0917  # all that the report tells of
    request: Request,
    running: Live,
    pins: dict[Label, Pin],
    rows: list[Row],
    used: Pins,
    places: Mapping[tuple[ObjectId, Path], None],
) -> Adoption:
    assert request.seed is not None
    output = live.rendered(render(replace(request, pins=pins)).output, request.options.namespace)
    key = app_key(request.seed.secret, request.seed.id, request.application)
    for labels, why in (
        (used.unused, "the chart draws nothing there any more, or its epoch was raised"),
        (used.outdated, "what it was made from has changed"),
    ):
        rows += [
            _row(label, "", "matches nothing", why if label in pins else f"{why}; removed")
            for label in labels
        ]
    return Adoption(pins=pins, rows=rows, fields=live.fields(output, running, places, key))


def _id(label: Label, index: int = 0) -> str:
    return f"{label}{index}"


def _sources(found: Study) -> Iterator[Source]:
    """What can be seen of the draws in two renders: their own texts, or those that are made of them."""
    one, other = (
        {(draw.key, draw.function): draw for draw in records.draws.values()} for records in found.records
    )
    calls = [{call.key: call for call in records.calls} for records in found.records]
    seen: set[str] = set()
    for settled in found.done.draws.values():
        key = (settled.draw.key, settled.draw.function)
        if settled.piece:
            a, b = (by_key.get(settled.piece) for by_key in calls)
            # The text belongs to the first draw in it.
            if a is not None and b is not None and settled.piece not in seen:
                seen.add(settled.piece)
                texts = _core(a.text), _core(b.text)
                shape, loose = shapes.text_shape(texts[0])
                yield Source(
                    id=_id(text_label(settled.label)), a=texts[0], b=texts[1], shape=shape, loose=loose
                )
        elif key in one and key in other:
            yield from _own(settled.label, one[key], other[key])


def _own(label: Label, a: Draw, b: Draw) -> Iterator[Source]:
    for index, texts in enumerate(zip(a.texts, b.texts, strict=False)):
        shape, loose = shapes.shape(a.function, a.arguments, index, texts[0])
        yield Source(id=_id(label, index), a=texts[0], b=texts[1], shape=shape, loose=loose)


def _core(text: str) -> str:
    """A text as it is looked for in fields (`stabilise.settle`)."""
    return text.strip().strip("\"'")


def _wanted(
    draws: Mapping[Label, Settled], evidence: Evidence, last: Study
) -> tuple[dict[Label, Pin], dict[Label, str]]:
    made = {call.key: call.made for call in last.settled.calls}
    pins: dict[Label, Pin] = {}
    refused: dict[Label, str] = {}
    for label, settled in draws.items():
        text = evidence.of(_id(text_label(label)))
        if text and settled.piece in made:
            old = made[settled.piece]
            core = _core(old)
            pins[text_label(label)] = Pin(
                texts=(old.replace(core, text[0].value, 1),), given=pinning.made_from(old)
            )
        pin, why = _pin(label, settled, draws, evidence, last.pins)
        if pin is not None:
            pins[label] = pin
        elif why:
            refused[label] = why
    return pins, refused


def _pin(
    label: Label, settled: Settled, draws: Mapping[Label, Settled], evidence: Evidence, used: Pins
) -> tuple[Pin | None, str]:
    """The pin of a draw, or why there is none; neither where nothing was found.

    `used` are the pins of the render that gave the draw what it was given.
    """
    function = settled.draw.function
    own = evidence.of(_id(label))
    if not own:
        return None, ""
    texts: tuple[str, ...] = (own[0].value,)
    if shapes.is_certificate(function):
        key = evidence.of(_id(label, 1))
        if not key and evidence.stands(_id(label, 1)):
            return None, f"its key was not found: {evidence.reason(_id(label, 1))}"
        texts = (_pem(own[0].value), _pem(key[0].value) if key else "")
    elif function == "genPrivateKey":
        texts = (_pem(own[0].value),)
    why = shapes.refusal(function, texts)
    arguments = settled.draw.arguments
    # Names that are themselves drawn are not in the label, and need not be those of this render.
    if not why and shapes.is_certificate(function) and arguments in label.parts:
        why = shapes.names_refusal(texts[0], arguments)
    if not why and function in _HASHES:
        why = shapes.hash_refusal(
            function, texts[0], settled.given, is_known=_is_known(settled, draws, evidence)
        )
    if why:
        return None, why
    return Pin(texts=texts, given=used.given(function, settled.given if function in GIVEN else ())), ""


def _pem(text: str) -> str:
    """A PEM text with the newline that sprig's end with; a template that takes it off takes off this one as well."""
    return text if text.endswith("\n") else f"{text}\n"


def _is_known(settled: Settled, draws: Mapping[Label, Settled], evidence: Evidence) -> bool:
    """Whether anybody can see what a hash was made from: it is not drawn, or it stands somewhere itself."""
    sources = [
        label for label, other in draws.items() if other is not settled and settled.draw.takes(other.draw)
    ]
    return not sources or any(
        evidence.stands(_id(label)) or evidence.stands(_id(text_label(label))) for label in sources
    )


def _rows(
    draws: Mapping[Label, Settled],
    evidence: Evidence,
    pins: tuple[Mapping[Label, Pin], Mapping[Label, Pin], Collection[Label]],
    refused: Mapping[Label, str],
) -> Iterator[Row]:
    old, new, derived = pins
    texts = {path: text_label(label) for path, label in pieces(draws).items()}
    for label, settled in draws.items():
        function = settled.draw.function
        key = label if label in new else _enclosed(settled, texts, new)
        if key in new:
            state: State = "pinned already" if old.get(key) == new[key] else "taken over"
            others = _others(evidence.of(_id(key)))
            yield _row(
                key if key == text_label(label) else label,
                function,
                state,
                f"other values are in {others}" if others else "",
            )
            continue
        if key in derived:
            yield _row(label, function, "derived as it is", "")
            continue
        why = refused.get(label, "") or evidence.reason(_id(key)) or evidence.reason(_id(label, 1))
        if why or settled.places:
            yield _row(label, function, "not taken over", why or _unseen(settled))
        else:
            yield _row(label, function, "nowhere to be seen", "it lands in no field, or too short to be told")


def _enclosed(settled: Settled, texts: Mapping[str, Label], new: Mapping[Label, Pin]) -> Label:
    """The label of the innermost text around a draw that is pinned; else of the one that lands, or the draw's own."""
    found = [texts[one.key] for one in around(settled.draw) if one.key in texts]
    pinned = next((label for label in found if label in new), None)
    return pinned or texts.get(settled.piece, settled.label)


def _unseen(settled: Settled) -> str:
    if settled.label.parts[-1] == "input" or "input" in settled.label.parts:
        return "only what is made from it can be seen"
    return "it does not stand there as it was drawn"


def _others(found: list[Found]) -> str:
    """The places with another value than the one that is taken."""
    return ", ".join(dict.fromkeys(one.place for one in found if one.value.lower() != found[0].value.lower()))


def _row(label: Label, function: str, state: State, why: str) -> Row:
    return Row(place=label.place, function=function, state=state, why=why, label=str(label))
