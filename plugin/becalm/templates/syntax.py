"""The syntax tree of one action, and the nesting of actions in one template text.

It follows `text/template/parse/parse.go` as far as a rewriter needs: what is a command, what
is an operand, which `end` closes what. Offsets are characters from the start of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from becalm.templates.tokens import KEYWORDS, Action, TemplateSyntaxError, Token, actions, unquote

_OPERANDS = frozenset({"string", "raw", "char", "variable", "field", "number", "word"})
_NEVER_OPERANDS = KEYWORDS - {"nil"}
_DECLARING = ("declare", "assign")

MAX_DEPTH = 100
"""Levels of parentheses, and of blocks; far above what people write, far below Python's own limit."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A term with the fields that follow it directly: `.a.b`, `$x.y`, `(…).Cert`, `now.Unix`."""

    token: Token
    inner: Pipeline | None
    fields: tuple[Token, ...]
    start: int
    end: int

    @property
    def function(self) -> str:
        """The name of the function that this operand calls, or the empty string."""
        is_call = self.token.kind == "word" and self.token.text not in ("true", "false", "nil")
        return self.token.text if is_call else ""

    @property
    def literal(self) -> str | None:
        """The text of a string constant, else None."""
        return unquote(self.token) if self.token.kind in ("string", "raw") else None


@dataclass(frozen=True, slots=True)
class Command:
    """A function or value with its arguments: `randAlphaNum 8`."""

    operands: tuple[Operand, ...]

    @property
    def start(self) -> int:
        """Where the first operand starts."""
        return self.operands[0].start

    @property
    def end(self) -> int:
        """Where the last operand ends."""
        return self.operands[-1].end


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`, with the variables that they are assigned to.

    `start` is where the first command starts, after any `$x :=`.
    """

    variables: tuple[Token, ...]
    operator: str
    commands: tuple[Command, ...]
    start: int
    end: int

    def operands(self) -> Iterator[tuple[Pipeline, int, Operand]]:
        """Every operand below this pipeline, with its pipeline and its command's index."""
        for index, command in enumerate(self.commands):
            for operand in command.operands:
                yield self, index, operand
                if operand.inner is not None:
                    yield from operand.inner.operands()


def _is_plain(token: Token) -> bool:
    """Whether a term is a constant or the dot, which has no fields and takes no arguments."""
    return token.kind in ("string", "raw", "char", "number") or token.text in (".", "true", "false", "nil")


class _Parser:
    """Reads one action's tokens from left to right."""

    def __init__(self, action: Action, skip: int) -> None:
        self.tokens = action.tokens
        self.at = skip
        self.depth = 0
        self.fallback = action.inner

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def fault(self, reason: str) -> TemplateSyntaxError:
        token = self.peek()
        return TemplateSyntaxError(reason, token.start if token else self.fallback)

    def pipeline(self, *, declares: int) -> Pipeline:
        variables, operator = self.declaration(declares)
        commands: list[Command] = []
        while (token := self.peek()) is not None and token.kind != "close":
            commands.append(self.command())
            head = commands[-1].operands[0]
            if len(commands) > 1 and _is_plain(head.token) and not head.fields:
                raise TemplateSyntaxError("non executable command in a pipeline", head.start)
            token = self.peek()
            if token is None or token.kind == "close":
                break
            if token.kind != "pipe":
                raise self.fault("unexpected token in command")
            # Go accepts a trailing pipe: the loop simply ends.
            self.at += 1
        if not commands:
            raise self.fault("missing value")
        return Pipeline(variables, operator, tuple(commands), commands[0].start, commands[-1].end)

    def declaration(self, declares: int) -> tuple[tuple[Token, ...], str]:
        """`$x :=`, `$x =`, and in `range` also `$k, $v :=`."""
        variables: list[Token] = []
        at = self.at
        while at < len(self.tokens) and self.tokens[at].kind == "variable" and len(variables) < declares:
            variables.append(self.tokens[at])
            following = self.tokens[at + 1].kind if at + 1 < len(self.tokens) else ""
            if following in _DECLARING:
                self.at = at + 2
                return tuple(variables), ":=" if following == "declare" else "="
            if following != "other" or self.tokens[at + 1].text != ",":
                break
            at += 2
        return (), ""

    def command(self) -> Command:
        operands: list[Operand] = []
        while (token := self.peek()) is not None and token.kind not in ("pipe", "close"):
            if operands and not token.spaced:
                raise self.fault("unexpected token after operand")
            operands.append(self.operand())
        if not operands:
            raise self.fault("empty command")
        return Command(tuple(operands))

    def operand(self) -> Operand:
        token = self.tokens[self.at]
        self.at += 1
        inner: Pipeline | None = None
        end = token.end
        if token.kind == "open":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise self.fault("parentheses are nested too deeply")
            inner = self.pipeline(declares=1)
            self.depth -= 1
            close = self.peek()
            if close is None or close.kind != "close":
                raise self.fault("unclosed parenthesis")
            self.at += 1
            end = close.end
        elif token.kind not in _OPERANDS or (token.kind == "word" and token.text in _NEVER_OPERANDS):
            self.at -= 1
            raise self.fault("unexpected token")
        fields: list[Token] = []
        following = self.peek()
        if following is not None and following.kind == "field" and not following.spaced and _is_plain(token):
            raise self.fault("unexpected . after term")
        while (following := self.peek()) is not None and following.kind == "field" and not following.spaced:
            if following.text == ".":
                raise self.fault("unexpected . after a field")
            fields.append(following)
            end = following.end
            self.at += 1
        return Operand(token, inner, tuple(fields), token.start, end)


@dataclass(slots=True)
class Statement:
    """One action of a body, with the bodies that it opens.

    `kind` is output, if, range, with, template, block, define, break, continue or comment.
    `branches` are the bodies of if/range/with/block/define in order: the first is the main
    one, each further one starts with its `else`. `end` is the closing action.
    """

    kind: str
    action: Action
    pipeline: Pipeline | None = None
    name: str = ""
    branches: list[Branch] = field(default_factory=list)
    end: Action | None = None


@dataclass(slots=True)
class Branch:
    """A body and the `else` that opens it (None for the main one)."""

    opener: Action | None
    pipeline: Pipeline | None
    body: list[Statement] = field(default_factory=list)


def parse(text: str) -> list[Statement]:
    """The statements of a template text, nested.

    Raises:
        TemplateSyntaxError: Go would refuse the text (not every such text is found), or it is nested
            more than `MAX_DEPTH` levels deep.
    """
    root: list[Statement] = []
    stack: list[Statement] = []
    body = root
    for action in actions(text):
        keyword = action.keyword
        if keyword == "else":
            body = _else(action, stack)
        elif keyword == "end":
            if not stack or len(action.tokens) > 1:
                raise TemplateSyntaxError("unexpected end", action.start)
            stack.pop().end = action
            body = stack[-1].branches[-1].body if stack else root
        else:
            statement = _statement(action)
            if statement.kind == "define" and stack:
                raise TemplateSyntaxError("define inside another block", action.start)
            if statement.kind in ("break", "continue") and not _in_range(stack):
                raise TemplateSyntaxError(f"{statement.kind} outside range", action.start)
            body.append(statement)
            if statement.branches:
                stack.append(statement)
                if len(stack) > MAX_DEPTH:
                    raise TemplateSyntaxError("blocks are nested too deeply", action.start)
                body = statement.branches[0].body
    if stack:
        raise TemplateSyntaxError(f"{stack[-1].kind} without end", stack[-1].action.start)
    return root


def _in_range(stack: list[Statement]) -> bool:
    """Whether a `break` would end a loop: a block is a template of its own, an `else` is no loop."""
    for statement in reversed(stack):
        if statement.kind == "range" and len(statement.branches) == 1:
            return True
        if statement.kind in ("block", "define"):
            return False
    return False


def _statement(action: Action) -> Statement:
    if action.is_comment:
        return Statement("comment", action)
    keyword = action.keyword
    if keyword in ("if", "with", "range"):
        pipeline = _whole(action, 1, declares=2 if keyword == "range" else 1)
        return Statement(keyword, action, pipeline, branches=[Branch(None, pipeline)])
    if keyword in ("define", "block", "template"):
        return _named(action, keyword)
    if keyword in ("break", "continue"):
        if len(action.tokens) > 1:
            raise TemplateSyntaxError(f"unexpected token in {keyword}", action.start)
        return Statement(keyword, action)
    return Statement("output", action, _whole(action, 0, declares=1))


def _named(action: Action, keyword: str) -> Statement:
    name_token = action.tokens[1] if len(action.tokens) > 1 else None
    if name_token is None or name_token.kind not in ("string", "raw"):
        raise TemplateSyntaxError(f"{keyword} needs a name", action.start)
    name = unquote(name_token)
    rest = len(action.tokens) > 2
    if keyword == "define":
        if rest:
            raise TemplateSyntaxError("unexpected token in define", action.start)
        return Statement(keyword, action, None, name, [Branch(None, None)])
    pipeline = _whole(action, 2, declares=1) if rest else None
    if keyword == "block":
        if pipeline is None:
            raise TemplateSyntaxError("block needs a value", action.start)
        return Statement(keyword, action, pipeline, name, [Branch(None, None)])
    return Statement(keyword, action, pipeline, name)


def _whole(action: Action, skip: int, *, declares: int) -> Pipeline:
    parser = _Parser(action, skip)
    pipeline = parser.pipeline(declares=declares)
    if parser.peek() is not None:
        raise parser.fault("unexpected token")
    return pipeline


def _else(action: Action, stack: list[Statement]) -> list[Statement]:
    if not stack or stack[-1].kind not in ("if", "with", "range"):
        raise TemplateSyntaxError("unexpected else", action.start)
    last = stack[-1].branches[-1]
    if last.opener is not None and last.pipeline is None:
        raise TemplateSyntaxError("expected end; found else", action.start)
    pipeline: Pipeline | None = None
    if len(action.tokens) > 1:
        if action.tokens[1].text != stack[-1].kind or stack[-1].kind == "range":
            raise TemplateSyntaxError("unexpected token in else", action.start)
        pipeline = _whole(action, 2, declares=1)
    branch = Branch(action, pipeline)
    stack[-1].branches.append(branch)
    return branch.body


def walk(body: list[Statement]) -> Iterator[Statement]:
    """All statements of a body and, depth first, of the bodies below it, defines included."""
    for statement in body:
        yield statement
        for branch in statement.branches:
            yield from walk(branch.body)


def pipelines(statement: Statement) -> Iterator[Pipeline]:
    """The pipelines that belong to the statement itself, `else if` headers included."""
    if statement.pipeline is not None:
        yield statement.pipeline
    for branch in statement.branches[1:]:
        if branch.pipeline is not None:
            yield branch.pipeline
