"""Templates made at random, each in two spellings: with draws, and with constants in their place.

What is generated is well typed, so that both spellings render. The constant of a draw is made by
the same expression in the second spelling and in `CONSTANTS`, which takes the place of the runtime's
own `becalm.draw`; it depends on the arguments, so a swapped or lost argument shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

#: The function that stands for a draw, by the name of what draws; it takes the same arguments.
STANDS_FOR = {
    "randAlphaNum": 'printf "K%v"',
    "randAlpha": 'printf "L%v"',
    "randNumeric": 'printf "N%v"',
    "randAscii": 'printf "A%v"',
    "randBytes": 'printf "B%v"',
    "shuffle": "upper",
    "randInt": "default",
    "genCA": "dict",
    "htpasswd": 'printf "%s:%s"',
}
BY_NUMBER = ("randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randBytes")
INSTANT = "2024-02-03T04:05:06Z"
NOW = f'(toDate "2006-01-02T15:04:05Z07:00" "{INSTANT}")'

CONSTANTS = '{{define "becalm.draw"}}{{$a := slice . 4}}{{$n := index . 3}}{{$v := "U"}}' + "".join(
    f'{{{{if eq $n "{name}"}}}}{{{{$v = {stand} (index $a 0)'
    f"{'' if name in (*BY_NUMBER, 'shuffle') else ' (index $a 1)'}}}}}{{{{end}}}}"
    for name, stand in STANDS_FOR.items()
)
CONSTANTS += '{{$_ := set (index . 0).r "v" $v}}v{{end}}\n'


class Pair(NamedTuple):
    """A piece of template text: with draws, and with constants."""

    drawing: str
    constant: str


def same(text: str) -> Pair:
    return Pair(text, text)


def join(*parts: Pair | str) -> Pair:
    pairs = [same(part) if isinstance(part, str) else part for part in parts]
    return Pair("".join(p.drawing for p in pairs), "".join(p.constant for p in pairs))


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a piece of text stands."""

    dot: str  # root, map or str
    dollar: str
    depth: int
    variables: dict[str, str] = field(default_factory=dict)  # name -> type
    loops: bool = False
    templates: dict[str, str] = field(default_factory=dict)  # name without prefix -> type of its dot

    @property
    def callable(self) -> list[str]:
        """The named templates that can be given the dot that they take."""
        return [name for name, dot in self.templates.items() if dot != "root" or self.dollar == "root"]

    def inner(self, **changes: Any) -> Scope:
        return replace(self, depth=self.depth - 1, variables=dict(self.variables), **changes)


WORDS = (
    "a",
    "now",
    "{ { ",
    "}}",
    "randAlphaNum 5",
    "x: y",
    "- z",
    "$becalm",
    "é",
    "'",
    '"',
    " ",
    "\n  ",
    "\n  \n  ",
)
LITERALS = ('"a"', '"{{ uuidv4 }}"', "`b}}`", '"é\\t\\""', '"now"', '"d,e"', "`$.x`")


class Generator:
    """Makes texts from choices, which hypothesis makes and shrinks.

    Args:
        choose: picks a number below its argument.
        number: of the text in its chart; named templates are unique in a chart.
        drawing: whether there are draws at all.
    """

    def __init__(self, choose: Callable[[int], int], number: int = 0, *, drawing: bool = True) -> None:
        self.choose = choose
        self.number = number
        self.drawing = drawing
        self.names = 0
        self.texts: list[Pair] = []

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.choose(len(options))]

    def fresh(self) -> str:
        self.names += 1
        return f"{self.names}"

    # Expressions; each is one operand

    def operand(self, kind: str, scope: Scope) -> Pair:
        found = [name for name, type_ in scope.variables.items() if type_ == kind]
        if found and self.choose(3) == 0:
            return same(self.pick(found))
        return getattr(self, f"_{kind}")(scope)

    def _leaf(self, scope: Scope) -> Pair:
        options = list(LITERALS)
        if scope.dot == "str":
            options += [".", "."]
        if scope.dot == "map":
            options += [".a", ".a"]
        if scope.dollar == "root":
            options += ["$.Values.word", "$.Release.Name"]
        if scope.dollar == "map":
            options.append("$.b")
        return same(self.pick(options))

    def _str(self, scope: Scope) -> Pair:
        if scope.depth <= 0:
            return self._leaf(scope)
        s = scope.inner()
        if self.drawing and self.choose(3) == 0:
            return self.draw(s)
        forms: list[Callable[[], Pair]] = [
            lambda: join("(", self.pick(("upper ", "print ", "quote ")), self.operand("str", s), ")"),
            lambda: join('(printf "%s-%v" ', self.operand("str", s), " ", self.operand("int", s), ")"),
            lambda: join(
                "(",
                self.operand("str", s),
                self.pick((" | upper)", "|lower | quote)", " | len | toString)")),
            ),
            lambda: join(
                "(ternary ",
                self.operand("str", s),
                " ",
                self.operand("str", s),
                " ",
                self.operand("bool", s),
                ")",
            ),
            lambda: join("(join `+` ", self.operand("list", s), ")"),
            lambda: join("(", self.operand("map", s), ").a"),
            lambda: join("(default ", self.operand("str", s), " ", self.operand("str", s), ")"),
            lambda: self._leaf(scope),
            lambda: self._leaf(scope),
        ]
        if scope.callable:
            forms.append(lambda: join("(", self.include(s), ")"))
        if self.drawing:
            forms.append(self.clock)
        if scope.dollar == "root":
            forms.append(lambda: join("(", self.tpl(s), ")"))
        return self.pick(forms)()

    def draw(self, scope: Scope) -> Pair:
        """A draw as an operand."""
        form = self.choose(7)
        if form == 0:
            return Pair("uuidv4", '"U"')
        if form == 1:
            return self.call("shuffle", self.operand("str", scope))
        if form == 2:
            return join(self.call("genCA", same('"Cert"'), self.operand("str", scope)), ".Cert")
        if form == 3:
            return self.call("htpasswd", self.operand("str", scope), self.operand("str", scope))
        return self.call(self.pick(BY_NUMBER), self.operand("int", scope))

    def call(self, name: str, *arguments: Pair) -> Pair:
        """A call of what draws, the last argument now and then through a pipe."""
        head = Pair(name, STANDS_FOR[name])
        spaced = [join(self.pick((" ", "  ", "\n ")), argument) for argument in arguments]
        if self.choose(3) == 0:
            return join("(", arguments[-1], " | ", head, *spaced[:-1], ")")
        return join("(", head, *spaced, ")")

    def clock(self) -> Pair:
        return self.pick(
            (
                Pair('(now | date "2006-01-02")', f'({NOW} | date "2006-01-02")'),
                Pair("(toString now.Unix)", f"(toString {NOW}.Unix)"),
                Pair('(now.Format "2006")', f'({NOW}.Format "2006")'),
                Pair('(date "2006" (now))', f'(date "2006" ({NOW}))'),
                Pair("(htmlDate now)", f"(htmlDate {NOW})"),
                Pair('(dateInZone "15:04" now "UTC")', f'(dateInZone "15:04" {NOW} "UTC")'),
                Pair("(ago now)", '"0s"'),
                Pair("(date `2006` `no date`)", f"(date `2006` {NOW})"),
            )
        )

    def _int(self, scope: Scope) -> Pair:
        if scope.depth <= 0:
            return same(self.pick(("1", "9", "0x0a")))
        s = scope.inner()
        if self.drawing and self.choose(5) == 0:
            return self.call("randInt", self.operand("int", s), self.operand("int", s))
        match self.choose(4):
            case 0:
                return join("(len ", self.operand("str", s), ")")
            case 1:
                return join("(int (add ", self.operand("int", s), " 1))")
        return same(self.pick(("3", "8", "-1")))

    def _list(self, scope: Scope) -> Pair:
        s = scope.inner()
        first, second = self.operand("str", s), self.operand("str", s)
        form = self.choose(6)
        if form == 0:
            return join('(splitList "," "x,y")')
        if form == 1 and self.drawing:
            return Pair(f'(keys (dict "b" {first.drawing} "a" {second.drawing}))', '(list "a" "b")')
        if form == 2 and self.drawing:
            return Pair(
                f'(values (dict "b" {first.drawing} "a" {second.drawing}))',
                f"(list {second.constant} {first.constant})",
            )
        return join(self.pick(("(list ", "(tuple ")), first, " ", second, ")")

    def _map(self, scope: Scope) -> Pair:
        s = scope.inner()
        if scope.dot == "map" and self.choose(3) == 0:
            return same(".")
        return join('(dict "a" ', self.operand("str", s), ' "b" ', self.operand("str", s), ")")

    def _bool(self, scope: Scope) -> Pair:
        if scope.depth <= 0:
            return same(self.pick(("true", "false")))
        s = scope.inner()
        match self.choose(5):
            case 0:
                return join("(eq ", self.operand("str", s), " ", self.operand("str", s), ")")
            case 1:
                return join(
                    "(",
                    self.pick(("and ", "or ")),
                    self.operand("bool", s),
                    " ",
                    self.operand("bool", s),
                    ")",
                )
            case 2:
                return join("(not ", self.operand("bool", s), ")")
            case 3:
                return join("(lt ", self.operand("int", s), " ", self.operand("int", s), ")")
        return same(self.pick(("true", "false")))

    def include(self, scope: Scope) -> Pair:
        name = self.pick(scope.callable)
        literal = self.named(name)
        if self.choose(4) == 0:
            literal = join("(print ", literal, ")")
        dot = self.argument(scope.templates[name], scope)
        if self.choose(4) == 0:
            return join(dot, " | include ", literal)
        return join("include ", literal, " ", dot)

    def argument(self, kind: str, scope: Scope) -> Pair:
        if kind != "root":
            return self.operand(kind, scope)
        return same("$" if scope.dot != "root" else self.pick((".", "$")))

    def named(self, name: str) -> Pair:
        return Pair(f'"d{self.number}.{name}"', f'"c{self.number}.{name}"')

    def tpl(self, scope: Scope) -> Pair:
        """A text for `tpl`, written as a literal; both spellings are texts of their own."""
        body = self.body(Scope("root", "root", min(scope.depth, 2), templates=scope.templates), 2)
        text = Pair(f"{body.drawing}", f"{body.constant}")
        self.texts.append(text)
        return join(Pair(f"tpl {literal(text.drawing)}", f"tpl {literal(text.constant)}"), " $")

    # Statements

    def body(self, scope: Scope, most: int) -> Pair:
        """A body; what it declares stays in it."""
        scope = replace(scope, variables=dict(scope.variables))
        return join(*(self.statement(scope) for _ in range(self.choose(most) + 1)))

    def action(self, inner: Pair) -> Pair:
        """Braces, with or without trim markers and space."""
        left = self.pick(("{{ ", "{{", "{{- ", "{{\n "))
        right = self.pick((" }}", "}}", " -}}", "\n}}"))
        if inner.drawing.startswith(("-", "/*")):
            left = self.pick(("{{- ", "{{ ")) if inner.drawing.startswith("-") else self.pick(("{{- ", "{{"))
            right = " }}" if inner.drawing.startswith("-") else self.pick((" -}}", "}}"))
        return join(left, inner, right)

    def statement(self, scope: Scope) -> Pair:  # noqa: PLR0911
        form = self.choose(16)
        inner = scope.inner()
        if form <= 2 or scope.depth <= 0:
            return same(self.pick(WORDS))
        if form <= 6:
            return self.output(scope)
        if form == 7:
            return self.action(same("/* {{ uuidv4 }} now */"))
        if form == 8:
            return self.assignment(scope)
        if form in (9, 10):
            return self.conditional(scope, inner)
        if form == 11:
            return self.with_(scope, inner)
        if form in (12, 13):
            return self.range_(scope, inner)
        if form == 14 and scope.loops:
            word = self.action(same(self.pick(("break", "continue"))))
            return join(self.action(join("if ", self.operand("bool", inner))), word, self.action(same("end")))
        if scope.callable:
            name = self.pick(scope.callable)
            dot = self.argument(scope.templates[name], inner)
            return self.action(join("template ", self.named(name), " ", dot))
        return self.block(scope, inner)

    def output(self, scope: Scope) -> Pair:
        operand = self.operand(self.pick(("str", "str", "str", "int", "bool")), scope)
        drawing, constant = operand
        bare = drawing.startswith("(") and drawing.endswith(")") and _is_one(drawing) and _is_one(constant)
        if bare and self.choose(2):
            operand = Pair(drawing[1:-1], constant[1:-1])
        return self.action(join(operand, self.pick(("", "", " | toString", " | print | upper"))))

    def assignment(self, scope: Scope) -> Pair:
        kind = self.pick(("str", "int", "list", "map", "bool"))
        known = [name for name, type_ in scope.variables.items() if type_ == kind]
        value = self.operand(kind, scope.inner())
        if known and self.choose(2):
            return self.action(join(f"{self.pick(known)} = ", value))
        maps = [name for name, type_ in scope.variables.items() if type_ == "map"]
        if maps and self.choose(3) == 0:
            return self.action(join(f'$_ := set {self.pick(maps)} "a" ', self.operand("str", scope.inner())))
        name = f"$v{self.fresh()}"
        scope.variables[name] = kind
        return self.action(join(name, self.pick((" := ", ":=")), value))

    def conditional(self, scope: Scope, inner: Scope) -> Pair:
        parts = [self.action(join("if ", self.operand("bool", inner))), self.body(inner, 3)]
        if self.choose(3) == 0:
            parts += [self.action(join("else if ", self.operand("str", inner))), self.body(inner, 2)]
        if self.choose(2):
            parts += [self.action(same("else")), self.body(inner, 2)]
        return join(*parts, self.action(same("end")))

    def with_(self, scope: Scope, inner: Scope) -> Pair:
        kind = self.pick(("str", "map"))
        value = self.operand(kind, inner)
        body = replace(inner, dot=kind, variables=dict(scope.variables))
        if self.choose(3) == 0:
            name = f"$w{self.fresh()}"
            body.variables[name] = kind
            value = join(f"{name} := ", value)
        parts = [self.action(join("with ", value)), self.body(body, 3)]
        if self.choose(2):
            parts += [self.action(same("else")), self.body(inner, 2)]
        return join(*parts, self.action(same("end")))

    def range_(self, scope: Scope, inner: Scope) -> Pair:
        over = self.operand("list", inner) if self.choose(3) else self.operand("map", inner)
        body = replace(inner, dot="str", loops=True, variables=dict(scope.variables))
        head: Pair = over
        form = self.choose(5)
        strings = [name for name, type_ in scope.variables.items() if type_ == "str"]
        if form == 1:
            name = f"$e{self.fresh()}"
            body.variables[name] = "str"
            head = join(f"{name} := ", over)
        elif form == 2:
            key, name = f"$k{self.fresh()}", f"$e{self.fresh()}"
            body.variables[name] = "str"
            head = join(f"{key}, {name} := ", over)
        elif form == 3 and strings:
            head = join(f"{self.pick(strings)} = ", over)
        elif form == 4:
            body = replace(body, dot="int")
            head = same(self.pick(("until 3", "seq 1 2 | splitList ` `", "list 4 5")))
        parts = [self.action(join("range ", head)), self.body(body, 3)]
        if self.choose(4) == 0:
            parts += [self.action(same("else")), self.body(inner, 2)]
        return join(*parts, self.action(same("end")))

    def block(self, scope: Scope, inner: Scope) -> Pair:
        name = f"b{self.fresh()}"
        kind = self.pick(("str", "map"))
        head = self.action(join("block ", self.named(name), " ", self.operand(kind, inner)))
        body = self.body(Scope(kind, kind, inner.depth, templates=scope.templates), 3)
        return join(head, body, self.action(same("end")))

    def file(self) -> Pair:
        """A template file whose output is one object with all that is printed in a block of text."""
        templates: dict[str, str] = {}
        defines: list[Pair] = []
        for _ in range(self.choose(3)):
            kind = self.pick(("str", "map", "root"))
            body = self.body(Scope(kind, kind, 3, templates=dict(templates)), 4)
            name = self.fresh()
            templates[name] = kind
            head = self.action(join("define ", self.named(name)))
            defines.append(join(head, body, self.action(same("end")), "\n"))
        body = self.body(Scope("root", "root", 4, templates=templates), 7)
        head = Pair(f"d{self.number}", f"c{self.number}")
        before, after = (defines, []) if self.choose(2) else ([], defines)
        return join(
            *before,
            "\napiVersion: v1\nkind: Text\nmetadata: {name: ",
            head,
            "}\ntext: |2\n  |",
            body,
            "|\n",
            *after,
        )


def literal(text: str) -> str:
    """A text as a literal of a template; a raw one where it can be."""
    if "`" not in text:
        return f"`{text}`"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _is_one(text: str) -> bool:
    """Whether the first parenthesis closes at the end (quotes may hold more, then False)."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
