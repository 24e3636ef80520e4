"""Which values live objects have where a chart draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from becalm import live
from becalm.live import Live
from becalm.manifests import align
from becalm.manifests.align import Filled, Part, Source
from becalm.manifests.objects import Object, ObjectId
from becalm.manifests.paths import Path, leaves
from becalm.manifests.paths import render as render_path
from becalm.manifests.scalars import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A live value of a source, and where it is. `rank` sorts the place that owns it first."""

    value: str = field(repr=False)
    place: str
    rank: tuple[bool, bool, int]

    @property
    def exact(self) -> bool:
        """Whether it stands there in its own case."""
        return not self.rank[1]


class Evidence:
    """What was found for each source, by its id, and why nothing was found in other places where it stands."""

    def __init__(self) -> None:
        self._found: dict[str, list[Found]] = {}
        self._missed: dict[str, str] = {}
        self.places: dict[tuple[ObjectId, Path], None] = {}
        """Every field that depends on what is drawn; in some of them (a checksum) nothing can be found."""

    def add(self, owner: ObjectId, path: Path, filled: Sequence[Filled]) -> None:
        """Note what fills the holes of a field."""
        place = f"{owner} {render_path(path)}"
        for one in filled:
            places = self._found.setdefault(one.source, [])
            rank = (owner.kind != "Secret", not one.exact, len(places))
            places.append(Found(value=one.value, place=place, rank=rank))

    def miss(self, form: Sequence[Part], reason: str) -> None:
        """Note why nothing fills the holes of a field."""
        for hole in align.holes(form):
            self._missed.setdefault(hole.source.id, reason)

    def of(self, source: str) -> list[Found]:
        """What was found for a source, the best first."""
        return sorted(self._found.get(source, []), key=lambda one: one.rank)

    def reason(self, source: str) -> str:
        """Why nothing was found; "" where the source stands nowhere."""
        return self._missed.get(source, "")

    def stands(self, source: str) -> bool:
        """Whether the source can be seen in what is rendered."""
        return source in self._found or source in self._missed


#: The parts of a text from two renders.
_Read = Callable[[str, str], tuple[Part, ...]]


def gather(outputs: Sequence[str], sources: Sequence[Source], running: Live, namespace: str) -> Evidence:
    """Look for the values of sources.

    Args:
        outputs: of two renders with other values; the sources tell which.
        sources: what can be seen there.
        running: the live objects.
        namespace: of objects that name none.
    """
    evidence = Evidence()

    def read(a: str, b: str) -> tuple[Part, ...]:
        return align.parts(a, b, sources)

    one, other = (live.rendered(output, namespace) for output in outputs)
    for (owner, a), (owner_b, b) in zip(one, other, strict=False):
        if (owner.kind, owner.group, owner.namespace) == (owner_b.kind, owner_b.group, owner_b.namespace):
            _object(evidence, read, (owner, a), (owner_b, b), running)
    return evidence


def _object(
    evidence: Evidence,
    read: _Read,
    one: tuple[ObjectId, Object],
    other: tuple[ObjectId, Object],
    running: Live,
) -> None:
    owner, a = one
    owner_b, b = other
    forms = [(path, read(*texts)) for path, *texts in _differing(a, b)]
    if not forms:
        return
    name = read(owner.name, owner_b.name)
    target, theirs, why = _counterpart(owner, name, running)
    for path, form in forms:
        evidence.places[target, path] = None
        if not align.holes(form):
            continue
        text = None if theirs is None else live.text_of(live.at(theirs, path))
        filled = None if text is None else align.fill(form, text)
        if filled is not None:
            evidence.add(target, path, filled)
        elif text is not None:
            evidence.miss(form, f"the live value of {owner} {render_path(path)} does not fit")
        else:
            evidence.miss(form, why or f"{owner} has no {render_path(path)} in the cluster")


def _counterpart(owner: ObjectId, name: Sequence[Part], running: Live) -> tuple[ObjectId, Object | None, str]:
    """The live object of a rendered one, whose name may be drawn; or why there is none."""
    if not align.holes(name):
        found = running.get(owner)
        return owner, found, "" if found else f"{owner} is not among the live objects"
    kind = f"{owner.kind}.{owner.group}" if owner.group else owner.kind
    alike = [(one, obj) for one, obj in running.like(owner) if align.fits(name, one.name)]
    alike = alike or [(one, obj) for one, obj in running.like(owner) if align.fill(name, one.name)]
    if len(alike) == 1:
        return (*alike[0], "")
    if alike:
        return owner, None, f"the name of a {kind} is drawn, and {len(alike)} live ones could be it"
    return owner, None, f"the name of a {kind} is drawn, and no live one is like it"


def _differing(a: Value, b: Value) -> Iterator[tuple[Path, str, str]]:
    """The fields whose texts differ; where a key is drawn, nothing is told of what is below it."""
    for (path, one), (path_b, other) in zip(leaves(a), leaves(b), strict=False):
        texts = live.text_of(one), live.text_of(other)
        if path == path_b and texts[0] is not None and texts[1] is not None and texts[0] != texts[1]:
            yield path, texts[0], texts[1]
