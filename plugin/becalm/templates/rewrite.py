"""Rewriting template texts so that every call that is not hermetic goes through our own templates.

The rewrite is lexical: text outside of the touched calls keeps its bytes, actions stay on their
lines, and nothing that is inserted prints. `$becalm` is the frame: it knows the path of include
and draw sites that lead to the current call, and the shared state of the render.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from becalm.templates import functions
from becalm.templates.files import TemplateFile
from becalm.templates.syntax import Branch, Command, Operand, Pipeline, Statement, walk
from becalm.templates.taint import Parsed, Taint, is_file_include, uses
from becalm.templates.tokens import Action, Token, quote

FRAME = "$becalm"
RESULT = f"get {FRAME}.r"
#: The site of calls that lead to no draw. Only draws' sites need names of their own.
_LOOKING = quote("lookup")
_LINE_KEY = re.compile(r"^\s*(?:-\s+)*[\"']?([A-Za-z0-9_][\w./-]*)[\"']?\s*[:=]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One call in a template text: where it stands and what it calls."""

    id: int
    function: str
    file: str
    line: int
    scope: str


@dataclass(slots=True)
class Sites:
    """All draw sites of a chart; a site's id is its place in the list. `lookups` are those that look things up."""

    items: list[Site] = field(default_factory=list)
    lookups: list[Site] = field(default_factory=list)

    def add(self, *, function: str, file: str, line: int, scope: str) -> int:
        """Note a call; the id of its site."""
        site = Site(id=len(self.items), function=function, file=file, line=line, scope=scope)
        self.items.append(site)
        return site.id

    def add_lookup(self, *, file: str, line: int, scope: str) -> int:
        """The same for a call of `lookup`."""
        site = Site(id=len(self.lookups), function="lookup", file=file, line=line, scope=scope)
        self.lookups.append(site)
        return site.id


@dataclass(slots=True)
class _Scope:
    """A body while it is rewritten: its name, whether it has a frame, the site names in use."""

    name: str
    framed: bool
    counts: dict[str, int] = field(default_factory=dict)

    def unique(self, name: str) -> str:
        count = self.counts.get(name, 0) + 1
        self.counts[name] = count
        return name if count == 1 else f"{name}({count})"


def rewrite_file(parsed: Parsed, taint: Taint, sites: Sites, *, instant: str) -> str:
    """The new text of a file.

    Args:
        parsed: the file.
        taint: what is framed.
        sites: collects the draw sites.
        instant: the fixed instant that stands for the clock, RFC 3339 in UTC.
    """
    return _FileRewriter(parsed, taint, sites, instant).run()


class _FileRewriter:
    """Collects edits of one file, in reading order, and applies them."""

    def __init__(self, parsed: Parsed, taint: Taint, sites: Sites, instant: str) -> None:
        self.file: TemplateFile = parsed.file
        self.text = parsed.file.text
        self.parsed = parsed
        self.taint = taint
        self.sites = sites
        self.now = f'toDate "2006-01-02T15:04:05Z07:00" {quote(instant)}'
        self.edits: list[tuple[int, int, str]] = []
        self.tail: list[str] = []
        self.scope = _Scope("", framed=False)
        self.index = list(walk(parsed.statements))

    def run(self) -> str:
        framed = self.taint.framed(self.parsed.bodies[0][1])
        self.scope = _Scope("", framed=framed)
        statements = self.parsed.statements
        if self.file.is_text:
            return self._text(statements)
        self.body(statements)
        head = foot = ""
        if framed:
            arguments = f"{FRAME} . {quote(self.file.key)} {quote(self.file.name)}"
            head = f'{{{{{FRAME} := dict}}}}{{{{list {arguments} | include "becalm.root"}}}}'
            foot = f'{{{{list {FRAME} . | include "becalm.flush"}}}}'
        return head + self.apply(0, len(self.text)) + foot + "".join(self.tail)

    def _text(self, statements: list[Statement]) -> str:
        """A text for `tpl` gets its frame as the dot; its defines cannot stand inside a range."""
        defines = [s for s in statements if s.kind == "define"]
        self.body(statements)
        taken: list[str] = []
        for statement in defines:
            assert statement.end is not None
            start, end = statement.action.start, statement.end.end
            taken.append(self.apply(start, end))
            self.drop(start, end)
            trims = "{{- /* */" if statement.action.trim_left else "{{/* */"
            self.edits.append((start, end, trims + (" -}}" if statement.end.trim_right else "}}")))
        inner = self.apply(0, len(self.text))
        opening = f"{{{{{FRAME} := .}}}}{{{{range $ := list .dot}}}}"
        return opening + inner + "{{end}}" + "".join(taken) + "".join(self.tail)

    # Edits

    def edit(self, start: int, end: int, new: str) -> None:
        self.edits.append((start, end, new))

    def apply(self, start: int, end: int) -> str:
        """The text between two offsets with the edits in it applied."""
        out: list[str] = []
        position = start
        # The sort is stable: at one offset, edits stay in the order in which they were made.
        for begin, finish, new in sorted(self.edits, key=lambda edit: edit[0]):
            if begin < start or finish > end:
                continue
            out += (self.text[position:begin], new)
            position = finish
        out.append(self.text[position:end])
        return "".join(out)

    def before(self, action: Action, code: str) -> None:
        """Insert actions before an action; they take over its left trim marker."""
        self.edit(action.start, action.start, ("{{- " if action.trim_left else "{{") + code + "}}")

    def after(self, action: Action, code: str) -> None:
        """Insert actions after an action; the last one takes over its right trim marker."""
        self.edit(action.end, action.end, "{{" + code + (" -}}" if action.trim_right else "}}"))

    # Statements

    def body(self, statements: list[Statement]) -> None:
        for statement in statements:
            getattr(self, f"_{statement.kind}", self._plain)(statement)

    def _plain(self, statement: Statement) -> None:
        """if, with, break, continue, comment: rewrite the headers, then the bodies."""
        self.headers(statement)
        for branch in statement.branches:
            self.body(branch.body)

    def headers(self, statement: Statement) -> None:
        for branch in statement.branches:
            if branch.pipeline is not None:
                self.pipeline(branch.pipeline)

    def _output(self, statement: Statement) -> None:
        pipeline = statement.pipeline
        assert pipeline is not None
        if not self.is_framed(pipeline):
            self.pipeline(pipeline)
            return
        only_call = len(pipeline.commands) == 1 and pipeline.commands[0].operands[0].function in (
            "include",
            "tpl",
        )
        if only_call and not pipeline.variables:
            self.pipeline(pipeline)
            return
        # The text that an action prints or assigns tells where pieces of it land.
        self.edit(pipeline.start, pipeline.start, f'list {FRAME} (include "becalm.open" {FRAME}) (')
        self.pipeline(pipeline)
        close = (
            f') | include "becalm.keep" | {RESULT}' if pipeline.variables else ') | include "becalm.close"'
        )
        self.edit(pipeline.end, pipeline.end, close)

    def _range(self, statement: Statement) -> None:
        pipeline = statement.pipeline
        assert pipeline is not None
        main = statement.branches[0]
        if not (self.scope.framed and self.taint.draws.framed(uses(main.body))):
            self._plain(statement)
            return
        site = self.site(statement.action, "range")
        key = self.range_header(statement.action, pipeline)
        self.after(
            statement.action, f'{FRAME} := list {FRAME} {site} {key} . | include "becalm.loop" | {RESULT}'
        )
        self.body(main.body)
        for branch in statement.branches[1:]:
            self._else_branch(branch)

    def range_header(self, action: Action, pipeline: Pipeline) -> str:
        """Make the loop's key available; the name of the variable that holds it."""
        variables = pipeline.variables
        if len(variables) == 2:
            self.pipeline(pipeline)
            return variables[0].text
        key = f"{FRAME}_key"
        if not variables:
            self.edit(pipeline.start, pipeline.start, f"{key}, {FRAME}_value := ")
        else:
            if pipeline.operator == "=":
                self.before(action, f"{key} := 0")
            self.edit(variables[0].start, variables[0].start, f"{key}, ")
        # Go refuses two variables for a range over a plain number, so that becomes a list.
        self.edit(pipeline.start, pipeline.start, f"list {FRAME} (")
        self.pipeline(pipeline)
        self.edit(pipeline.end, pipeline.end, f') | include "becalm.range" | {RESULT}')
        return key

    def _else_branch(self, branch: Branch) -> None:
        if branch.pipeline is not None:
            self.pipeline(branch.pipeline)
        self.body(branch.body)

    def _template(self, statement: Statement) -> None:
        if statement.name in self.taint.names and self.scope.framed:
            self.edit(statement.action.start, statement.action.end, self.call(statement, statement.action))
        elif statement.pipeline is not None:
            self.pipeline(statement.pipeline)

    def call(self, statement: Statement, closing: Action) -> str:
        """A `template` or `block` action as a call of the framed template."""
        action = statement.action
        is_draw = statement.name in self.taint.draws.names
        site = self.site(action, statement.name) if is_draw else _LOOKING
        dot = "nil"
        if statement.pipeline is not None:
            dot = f"({self.taken(statement.pipeline)})"
        code = f'list {FRAME} {site} {quote(statement.name)} {dot} | include "becalm.call"'
        left = "{{- " if action.trim_left else "{{"
        return left + code + (" -}}" if closing.trim_right else "}}")

    def taken(self, pipeline: Pipeline) -> str:
        """The rewritten text of a pipeline, taken out of the edits."""
        self.pipeline(pipeline)
        text = self.apply(pipeline.start, pipeline.end)
        self.drop(pipeline.start, pipeline.end)
        return text

    def drop(self, start: int, end: int) -> None:
        """Forget the edits between two offsets."""
        self.edits = [edit for edit in self.edits if not (start <= edit[0] and edit[1] <= end)]

    def _define(self, statement: Statement) -> None:
        outer = self.scope
        framed = statement.name in self.taint.names
        self.scope = _Scope(statement.name, framed=framed)
        body = statement.branches[0].body
        if framed and self.is_empty(statement):
            # An empty definition does not replace an earlier one, and neither may ours.
            self.tail.append(f"{{{{define {quote(framed_name(statement.name))}}}}}{{{{end}}}}")
        elif framed:
            name = statement.action.tokens[1]
            assert statement.end is not None
            self.edit(name.start, name.end, quote(framed_name(statement.name)))
            self.after(statement.action, f"{FRAME} := .}}}}{{{{range $ := list .dot")
            self.body(body)
            self.before(statement.end, "end")
            self.orphan(statement.name)
        else:
            self.body(body)
        self.scope = outer

    def _block(self, statement: Statement) -> None:
        body = statement.branches[0].body
        outer = self.scope
        if statement.name not in self.taint.names:
            assert statement.pipeline is not None
            self.pipeline(statement.pipeline)
            self.scope = _Scope(statement.name, framed=False)
            self.body(body)
            self.scope = outer
            return
        action, end = statement.action, statement.end
        assert end is not None
        self.scope = _Scope(statement.name, framed=True)
        self.body(body)
        inner = self.apply(action.end, end.start)
        opening = "{{" + f"{FRAME} := .}}}}{{{{range $ := list .dot" + (" -}}" if action.trim_right else "}}")
        closing = ("{{- " if end.trim_left else "{{") + "end}}{{end}}"
        name = quote(framed_name(statement.name))
        self.tail.append(f"{{{{define {name}}}}}{opening}{inner}{closing}")
        self.scope = outer
        self.drop(action.end, end.start)
        self.edit(action.start, end.end, self.call(statement, end))
        self.orphan(statement.name)

    def orphan(self, name: str) -> None:
        """Keep the old name for callers that have no frame."""
        body = f'{{{{list (dict) . {quote(name)} | include "becalm.orphan"}}}}'
        self.tail.append(f"{{{{define {quote(name)}}}}}{body}{{{{end}}}}")

    def is_empty(self, statement: Statement) -> bool:
        """As Go's `IsEmptyTree`: nothing but white space and comments."""
        assert statement.end is not None
        body = statement.branches[0].body
        if any(inner.kind != "comment" for inner in body):
            return False
        text = self.text[statement.action.end : statement.end.start]
        for inner in body:
            text = text.replace(self.text[inner.action.start : inner.action.end], "")
        return not text.strip()

    # Expressions

    def is_framed(self, pipeline: Pipeline) -> bool:
        """Whether the pipeline calls something that needs the frame, `values` and `keys` apart."""
        if not self.scope.framed:
            return False
        for owner, index, operand in pipeline.operands():
            function = functions.functions().get(operand.function)
            if function is not None and function.treatment == "draw":
                return True
            if operand is owner.commands[index].operands[0] and self.is_call(
                owner.commands[index], self.taint.draws
            ):
                return True
        return False

    def is_call(self, command: Command, taint: Taint) -> bool:
        """Whether the command is an `include` or `tpl` that passes the frame along, for what `taint` frames."""
        if not self.scope.framed:
            return False
        name = command.operands[0].function
        arguments = command.operands[1:]
        if name == "tpl":
            return taint.rewrites_tpl
        if name != "include":
            return False
        literal = arguments[0].literal if arguments else None
        if literal is not None:
            return literal in taint.names
        return bool(taint.names) and not (arguments and is_file_include(arguments[0]))

    def pipeline(self, pipeline: Pipeline) -> None:
        for index, command in enumerate(pipeline.commands):
            self.command(command, piped=index > 0)

    def command(self, command: Command, *, piped: bool) -> None:
        head = command.operands[0]
        opening, closing = "", ""
        if head.function and not head.fields:
            opening, closing = self.replacement(command, piped=piped)
        if opening:
            self.edit(head.token.start, head.token.end, opening)
        elif not head.function or head.fields:
            self.operand(head)
        for operand in command.operands[1:]:
            self.operand(operand)
        if closing:
            self.edit(command.end, command.end, closing)

    def replacement(self, command: Command, *, piped: bool) -> tuple[str, str]:  # noqa: PLR0911
        """What stands for the command's function, and what follows its last argument."""
        head = command.operands[0]
        name = head.function
        if self.is_call(command, self.taint):
            target = command.operands[1].literal if len(command.operands) > 1 else None
            is_draw = self.is_call(command, self.taint.draws)
            site = self.site(head.token, target or name) if is_draw else _LOOKING
            return f"list {FRAME} {site}", f' | include "becalm.{"tpl" if name == "tpl" else "call"}"'
        function = functions.functions().get(name)
        if function is None:
            return "", ""
        total = len(command.operands) - 1 + piped
        match function.treatment:
            case "draw":
                return self.draw(head, command)
            case "lookup" if self.taint.looks:
                return self.lookup(head)
            case "clock":
                return self.now, ""
            case "clock-fallback":
                return "list", f' | include "becalm.{name}"'
            case "order" if name == "values" or total > 1:
                return f"list {FRAME}", f' | include "becalm.{name}" | {RESULT}'
            case "order" if total == 1:
                return name, " | sortAlpha"
        return "", ""

    def draw(self, head: Operand, command: Command | None) -> tuple[str, str]:
        name = head.function
        line = self.text.count("\n", 0, head.start) + 1
        site_id = self.sites.add(function=name, file=self.file.place, line=line, scope=self.scope.name)
        arguments = command.operands[1:] if command else ()
        for operand in arguments:
            self.whole_number(operand)
        site = self.site(head.token, name)
        return f"list {FRAME} {site} {site_id} {quote(name)}", f' | include "becalm.draw" | {RESULT}'

    def lookup(self, head: Operand) -> tuple[str, str]:
        """A call of `lookup`. It has no site of its own, which could change the names of draws beside it."""
        line = self.text.count("\n", 0, head.start) + 1
        site_id = self.sites.add_lookup(file=self.file.place, line=line, scope=self.scope.name)
        return f"list {FRAME} {site_id}", f' | include "becalm.lookup" | {RESULT}'

    def whole_number(self, operand: Operand) -> None:
        """Go takes the constant 8.0 for an integer parameter; a list would keep it a float."""
        if operand.token.kind == "number" and any(c in operand.token.text for c in ".eE"):
            if operand.token.text.lower().startswith(("0x", "-0x", "+0x")):
                return
            number = float(operand.token.text.replace("_", ""))
            if number.is_integer():
                self.edit(operand.start, operand.end, str(int(number)))

    def operand(self, operand: Operand) -> None:
        """An argument, or a head with fields: `(now)`, `now.Unix`, `default uuidv4`."""
        if operand.inner is not None:
            self.pipeline(operand.inner)
            return
        function = functions.functions().get(operand.function)
        if function is None:
            return
        opening = closing = ""
        if function.treatment == "draw":
            opening, closing = self.draw(operand, None)
        elif function.treatment == "clock":
            opening = self.now
        if opening:
            self.edit(operand.token.start, operand.token.end, f"({opening}{closing})")

    def site(self, place: Action | Token, default: str) -> str:
        """The quoted name of a site: its line's YAML key, the variable assigned, or `default`."""
        statement = self.statement_at(place.start)
        name = default
        if statement is not None and statement.pipeline is not None and statement.pipeline.variables:
            variable = statement.pipeline.variables[-1].text
            if statement.kind == "output" and variable != "$_":
                name = variable
        elif statement is not None:
            line_start = self.text.rfind("\n", 0, statement.action.start) + 1
            match = _LINE_KEY.match(self.text[line_start : statement.action.start])
            if match:
                name = match.group(1)
        return quote(self.scope.unique(name))

    def statement_at(self, offset: int) -> Statement | None:
        at = bisect_right(self.index, offset, key=lambda statement: statement.action.start)
        return self.index[at - 1] if at else None


def framed_name(name: str) -> str:
    """The name of the instrumented version of a named template."""
    return f"becalm:{name}"
