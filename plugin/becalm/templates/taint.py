"""Which template texts need a frame at run time, and which only a local change.

A body (a file's top level, a `define` or a `block`) is *framed* when it draws, orders values, looks things
up, or includes a framed named template. What is framed for draws alone is known apart, since it decides the
paths of draws, which looking things up must never change. Named templates share one global namespace over the chart
and all its subcharts, so a name is framed as soon as one of its definitions is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from becalm.templates import functions
from becalm.templates.files import TemplateFile
from becalm.templates.syntax import Operand, Pipeline, Statement, parse, pipelines
from becalm.templates.tokens import TemplateSyntaxError

_COMPUTED_INCLUDE = re.compile(r"(?<![\w.$])include(?:\s+[^\s\"`]|\s*[|)}])")
_TPL = re.compile(r"(?<![\w.$])tpl(?!\w)")
_MOST_READ = 4096


@dataclass(slots=True)
class Uses:
    """What a body calls itself, without the named templates that it includes."""

    frames: bool = False
    local: bool = False
    computed: bool = False
    files: bool = False
    tpl: bool = False
    looks: bool = False
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Parsed:
    """A parsed file with the uses of each of its bodies; "" stands for its top level."""

    file: TemplateFile
    statements: list[Statement]
    bodies: list[tuple[str, Uses]]


@dataclass(frozen=True, slots=True)
class Taint:
    """The files that must change, parsed, and the names of the framed named templates.

    `unread` are the files that may have to change and do not parse, each with the reason. With `looks` calls of
    `lookup` count as well, and `drawn` is the same without them.
    """

    parsed: dict[str, Parsed]
    names: frozenset[str]
    rewrites_tpl: bool
    unread: dict[str, TemplateSyntaxError] = field(default_factory=dict)
    looks: bool = False
    drawn: Taint | None = None

    @property
    def draws(self) -> Taint:
        """What draws, orders or reads the clock, without what only looks things up."""
        return self if self.drawn is None else self.drawn

    def framed(self, uses: Uses) -> bool:
        """Whether a body with these uses needs a frame."""
        return (
            uses.frames
            or (self.looks and uses.looks)
            or uses.files
            or not self.names.isdisjoint(uses.names)
            or (uses.computed and bool(self.names))
            or (uses.tpl and self.rewrites_tpl)
        )


def own(body: Iterable[Statement]) -> Iterator[Statement]:
    """The statements that run as part of a body: not those inside `define` and `block`."""
    for statement in body:
        yield statement
        if statement.kind not in ("define", "block"):
            for branch in statement.branches:
                yield from own(branch.body)


def is_file_include(operand: Operand) -> bool:
    """Whether the operand is `(print $.Template.BasePath "/x.yaml")` or the printf form of it.

    Such an include runs a file of the chart, which begins its own frame.
    """
    if operand.inner is None or len(operand.inner.commands) != 1:
        return False
    arguments = operand.inner.commands[0].operands
    path = arguments[-1].literal
    base = arguments[-2] if len(arguments) > 2 else arguments[0]
    if arguments[0].function == "printf" and len(arguments) == 3:
        path, base = arguments[1].literal, arguments[2]
    is_base = bool(base.fields or base.token.kind == "field") and (
        (base.fields[-1] if base.fields else base.token).text == ".BasePath"
    )
    return (
        arguments[0].function in ("print", "printf")
        and path is not None
        and is_base
        and not path.rpartition("/")[2].startswith("_")
    )


def _count(pipeline: Pipeline, uses: Uses) -> None:
    table = functions.functions()
    for owner, index, operand in pipeline.operands():
        name = operand.function
        if not name:
            continue
        command = owner.commands[index]
        is_head = operand is command.operands[0]
        arguments = command.operands[1:] if is_head else ()
        if name == "include" and is_head:
            literal = arguments[0].literal if arguments else None
            if literal is not None:
                uses.names.add(literal)
            elif arguments and is_file_include(arguments[0]):
                uses.files = True
            else:
                uses.computed = True
        elif name == "tpl" and is_head:
            uses.tpl = True
        elif name in table:
            treatment = table[name].treatment
            total = len(arguments) + (1 if index and is_head else 0)
            if treatment == "draw" or name == "values" or (name == "keys" and total > 1):
                uses.frames = True
            elif treatment == "lookup":
                uses.looks = uses.looks or is_head
            elif treatment != "empty":
                uses.local = True


def uses(body: Iterable[Statement]) -> Uses:
    """What a body calls."""
    found = Uses()
    for statement in own(body):
        if statement.kind in ("template", "block"):
            found.names.add(statement.name)
        for pipeline in pipelines(statement):
            _count(pipeline, found)
    return found


def bodies(statements: list[Statement]) -> Iterator[tuple[str, list[Statement]]]:
    """The top level ("") and every `define` and `block` of a text, by name."""
    yield "", statements
    pending = list(statements)
    while pending:
        statement = pending.pop(0)
        if statement.kind in ("define", "block"):
            yield statement.name, statement.branches[0].body
        for branch in statement.branches:
            pending.extend(branch.body)


def read(file: TemplateFile) -> Parsed:
    """Parse a file.

    Raises:
        TemplateSyntaxError: Go would refuse it.
    """
    statements, found = _read(file.text)
    return Parsed(file, statements, found)


@lru_cache(maxsize=_MOST_READ)
def _read(text: str) -> tuple[list[Statement], list[tuple[str, Uses]]]:
    """The same of a text. A library lies in many subcharts, and all files are looked at again with each text for `tpl`."""
    statements = parse(text)
    return statements, [(name, uses(body)) for name, body in bodies(statements)]


def taint_all(files: list[TemplateFile], texts: list[TemplateFile], *, looks: bool) -> Taint:
    """Find what must change in files and in texts for `tpl`, with `looks` calls of `lookup` too."""
    if not looks:
        return taint(files + texts, rewrites_tpl=bool(texts))
    drawing = [text for text in texts if functions.draws(text.text)]
    while True:
        drawn = taint(files + drawing, rewrites_tpl=bool(drawing))
        more = [text for text in texts if text in drawing or any(name in text.text for name in drawn.names)]
        if len(more) == len(drawing):
            return taint(files + texts, rewrites_tpl=bool(texts), drawn=drawn)
        drawing = more


def taint(files: list[TemplateFile], *, rewrites_tpl: bool, drawn: Taint | None = None) -> Taint:
    """Find what must change. Only texts that can matter are parsed.

    A text that does not parse is left out, since the renderer should refuse it in its own words.

    Args:
        files: all files, texts for `tpl` among them.
        rewrites_tpl: whether there are such texts.
        drawn: the same of draws alone, where what looks things up is wanted too.
    """
    looks = drawn is not None
    mentions = functions.mentions if looks else functions.draws
    known = {} if drawn is None else drawn.parsed
    parsed: dict[str, Parsed] = {}
    unread: dict[str, TemplateSyntaxError] = {}
    pending = {file.key: file for file in files if "{{" in file.text}
    names: set[str] = set()

    def take(keys: Iterable[str]) -> None:
        for key in list(keys):
            file = pending.pop(key)
            try:
                parsed[key] = known[key] if key in known else read(file)
            except TemplateSyntaxError as error:
                unread[key] = error

    take(
        key
        for key, file in list(pending.items())
        if mentions(file.text) or key in known or (rewrites_tpl and _TPL.search(file.text))
    )
    if rewrites_tpl:
        take(key for key, file in list(pending.items()) if file.is_text)
    if any(body_uses.frames for file in parsed.values() for _, body_uses in file.bodies):
        # Whoever includes a file by its path may have to print what that file records.
        take(key for key, file in list(pending.items()) if includes_computed(file.text))
    while True:
        fresh = _spread(parsed, names, rewrites_tpl=rewrites_tpl, looks=looks) - names
        if not fresh:
            break
        names |= fresh
        take(key for key, file in list(pending.items()) if any(name in file.text for name in fresh))
    return Taint(parsed, frozenset(names), rewrites_tpl, unread, looks=looks, drawn=drawn)


def includes_computed(text: str) -> bool:
    """Whether a text may include what it does not name literally, such as a file by its path."""
    return _COMPUTED_INCLUDE.search(text) is not None


def _spread(parsed: dict[str, Parsed], names: set[str], *, rewrites_tpl: bool, looks: bool) -> set[str]:
    """The framed names, given those that are known to be framed."""
    known = set(names)
    while True:
        state = Taint(parsed, frozenset(known), rewrites_tpl, looks=looks)
        fresh = {
            name
            for file in parsed.values()
            for name, body_uses in file.bodies
            if name and name not in known and state.framed(body_uses)
        }
        if not fresh:
            return known
        known |= fresh
