"""The lexer of Go's text/template, token for token.

It follows `text/template/parse/lex.go`: delimiters are `{{` and `}}`; a trim marker is a
minus with white space between it and the action's content, and that one white-space
character belongs to the marker; a comment must close right before the closing delimiter;
a sign starts a number wherever it stands, so `1 -2` are two numbers.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import NamedTuple

KEYWORDS = frozenset(
    {"block", "break", "continue", "define", "else", "end", "if", "range", "nil", "template", "with"}
)

_SPACE = " \t\r\n"
_NUMBER = r"""
    [+-]? (?: 0[xX] [0-9a-fA-F_]* (?:\.[0-9a-fA-F_]*)? (?:[pP][+-]?[0-9_]*)?
            | 0[oO] [0-7_]* (?:\.[0-7_]*)?
            | 0[bB] [01_]* (?:\.[01_]*)?
            | [0-9_]* (?:\.[0-9_]*)? (?:[eE][+-]?[0-9_]*)?
          ) i?
"""
#: What may stand behind a name.
_TERMINATOR = r"(?= [ \t\r\n.,|:)(] | \}\} | \Z )"
_TOKEN = re.compile(
    rf"""
    (?P<space>   [ \t\r\n]+ )
  | (?P<string>  "(?:[^"\\\n]|\\[^\n])*" )
  | (?P<raw>     `[^`]*` )
  | (?P<char>    '(?:[^'\\\n]|\\[^\n])*' )
  | (?P<variable> \$\w* )
  | (?P<field>   \.(?![0-9])\w* )
  | (?P<number>  (?=[+\-.0-9]) {_NUMBER} (?: [+-] {_NUMBER} )? )
  | (?P<word>    \w+ )
  | (?P<declare> := )
  | (?P<assign>  = )
  | (?P<pipe>    \| )
  | (?P<open>    \( )
  | (?P<close>   \) )
  | (?P<other>   [!-~] )
    """,
    re.VERBOSE,
)
#: What nearly all actions are made of: tokens in ASCII that need no second look, with what Go wants behind them, and the end.
#: Groups are named as kinds are. `trim` begins with the one white-space character that belongs to the marker.
_PLAIN = re.compile(
    rf"""
    [ \t\r\n]* (?:
        (?P<end>      \}}\}} )
      | (?P<trim>     [ \t\r\n]-\}}\}} )
      | (?P<word>     [A-Za-z_][A-Za-z0-9_]*+ {_TERMINATOR} )
      | (?P<field>    \.(?![0-9])[A-Za-z0-9_]*+ {_TERMINATOR} )
      | (?P<variable> \$[A-Za-z0-9_]*+ {_TERMINATOR} )
      | (?P<string>   "[^"\\\n]*" )
      | (?P<open>     \( )
      | (?P<close>    \) )
      | (?P<pipe>     \| )
      | (?P<declare>  := )
      | (?P<number>   (?:0|[1-9][0-9]{{0,17}}) (?=[ \t\r\n|)] | \}}\}}) )
      | (?P<raw>      `[^`]*` )
      | (?P<assign>   = )
      | (?P<other>    , )
    )
    """,
    re.VERBOSE,
)
_ENDS = ("end", "trim")
_NEEDS_TERMINATOR = frozenset({"variable", "field", "word"})
_LEFT = re.compile(r"\{\{(-(?=[ \t\r\n]))?")


class TemplateSyntaxError(ValueError):
    """Text that Go's template parser would refuse.

    Args:
        reason: what is wrong, without any of the template's text.
        offset: where, in characters from the start of the text.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} (offset {offset})")
        self.reason = reason
        self.offset = offset


class Token(NamedTuple):
    """One token inside an action.

    `kind` is one of string, raw, char, variable, field, number, word, declare, assign, pipe,
    open, close, other; keywords and function names are both words. `spaced` tells whether
    white space stands before the token: `a.b` is a chain, `a .b` two operands.
    """

    kind: str
    text: str
    start: int
    end: int
    spaced: bool


_new = tuple.__new__


@dataclass(frozen=True, slots=True)
class Action:
    """One action: `text[start:end]` includes the delimiters, `text[inner:inner_end]` does not.

    `trim_left` and `trim_right` tell whether the delimiters carry trim markers. The tokens
    leave white space out. A comment has no tokens.
    """

    start: int
    end: int
    inner: int
    inner_end: int
    trim_left: bool
    trim_right: bool
    tokens: tuple[Token, ...]
    is_comment: bool = False

    @property
    def keyword(self) -> str:
        """The keyword that the action starts with, or the empty string."""
        if self.tokens and self.tokens[0].kind == "word" and self.tokens[0].text in KEYWORDS:
            return self.tokens[0].text
        return ""


def actions(text: str) -> list[Action]:
    """All actions and comments of a template, in order.

    Raises:
        TemplateSyntaxError: the text does not lex.
    """
    found: list[Action] = []
    position = 0
    while (start := text.find("{{", position)) >= 0:
        left = _LEFT.match(text, start)
        assert left is not None
        trim_left = left.group(1) is not None
        inner = left.end() + (1 if trim_left else 0)
        action = (
            _comment(text, start, inner, trim_left=trim_left)
            if text.startswith("/*", inner)
            else _action(text, start, inner, trim_left=trim_left)
        )
        found.append(action)
        position = action.end
    return found


def _right_delimiter(text: str, at: int) -> tuple[int, bool] | None:
    """The end of the closing delimiter at `at` and whether it trims; None where none stands."""
    if text.startswith("}}", at):
        return at + 2, False
    if text[at : at + 1] in _SPACE and text.startswith("-}}", at + 1) and at < len(text):
        return at + 4, True
    return None


def _comment(text: str, start: int, inner: int, *, trim_left: bool) -> Action:
    close = text.find("*/", inner + 2)
    if close < 0:
        raise TemplateSyntaxError("unclosed comment", start)
    right = _right_delimiter(text, close + 2)
    if right is None:
        raise TemplateSyntaxError("comment ends before closing delimiter", close)
    end, trim_right = right
    return Action(start, end, inner, close + 2, trim_left, trim_right, (), is_comment=True)


def _action(text: str, start: int, inner: int, *, trim_left: bool) -> Action:
    """The action whose content begins at `inner`.

    Whatever is not plain is read once more, token by token, so that there is one place that says what Go refuses.
    """
    tokens: list[Token] = []
    position = inner
    depth = 0
    match_plain = _PLAIN.match
    while (match := match_plain(text, position)) is not None:
        kind = match.lastgroup
        begin, end = match.span(match.lastindex)  # type: ignore[arg-type]  # one group has matched
        if kind in _ENDS:
            if depth:
                break
            return Action(start, end, inner, begin, trim_left, kind == "trim", tuple(tokens))
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth < 0:
                break
        # As Token(...), without a call of Python's for each of a hundred thousand.
        tokens.append(_new(Token, (kind, text[begin:end], begin, end, begin > position)))
        position = end
    return _odd_action(text, start, inner, trim_left=trim_left)


def _odd_action(text: str, start: int, inner: int, *, trim_left: bool) -> Action:
    tokens: list[Token] = []
    position = inner
    depth = 0
    spaced = False
    while True:
        right = _right_delimiter(text, position)
        if right is not None:
            if depth:
                raise TemplateSyntaxError("unclosed left parenthesis", start)
            end, trim_right = right
            return Action(start, end, inner, position, trim_left, trim_right, tuple(tokens))
        match = _TOKEN.match(text, position)
        if match is None:
            raise TemplateSyntaxError(_lex_fault(text, position), position)
        kind, end = match.lastgroup or "", match.end()
        if kind == "space":
            # The last white-space character before "-}}" belongs to the trim marker.
            position = end - 1 if text.startswith("-}}", end) else end
            spaced = True
            continue
        token = Token(kind, match.group(), position, end, spaced)
        _check(token, text)
        depth += {"open": 1, "close": -1}.get(kind, 0)
        if depth < 0:
            raise TemplateSyntaxError("unexpected right parenthesis", position)
        tokens.append(token)
        position = end
        spaced = False


def _lex_fault(text: str, at: int) -> str:
    if at >= len(text):
        return "unclosed action"
    return {
        '"': "unterminated quoted string",
        "`": "unterminated raw quoted string",
        "'": "unterminated character constant",
        ":": "expected :=",
    }.get(text[at], "unrecognized character in action")


def _check(token: Token, text: str) -> None:
    if token.kind in _NEEDS_TERMINATOR:
        following = text[token.end : token.end + 1]
        if following and following not in " \t\r\n.,|:)(" and not text.startswith("}}", token.end):
            raise TemplateSyntaxError("bad character after a name", token.end)
        if not token.text.isascii():
            for character in token.text.lstrip("$."):
                if not (character == "_" or character.isalpha() or character.isdecimal()):
                    raise TemplateSyntaxError("bad character in a name", token.start)
    elif token.kind == "number":
        following = text[token.end : token.end + 1]
        if (following and (following == "_" or following.isalnum())) or not _is_number(token.text):
            raise TemplateSyntaxError("bad number syntax", token.start)
    elif token.kind in ("string", "char") and "\\" in token.text:
        unquote(token)
    elif token.kind == "char" and len(token.text) != len("'c'"):
        raise TemplateSyntaxError("malformed character constant", token.start)
    elif token.kind == "other" and token.text != ",":
        raise TemplateSyntaxError("unexpected character in action", token.start)


_DIGITS = r"[0-9](?:_?[0-9])*"
_INTEGER = re.compile(
    r"0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|0(?:_?[0-7])*|[1-9](?:_?[0-9])*"
)
_FLOAT = re.compile(
    rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
    rf"|0[xX](?:(?:_?[0-9a-fA-F])+\.?[0-9a-fA-F_]*|\.[0-9a-fA-F_]+)[pP][+-]?{_DIGITS}"
)
_PARTS = re.compile(r"(?<=[^+\-eEpP])(?=[+-])")


def _is_number(text: str) -> bool:
    """Whether Go's `strconv` takes a constant that its lexer let through."""
    if text.endswith("i"):
        # Both parts of a complex number are read as floats, which know no octal and no binary digits.
        return all(_FLOAT.fullmatch(part.lstrip("+-").removesuffix("i")) for part in _PARTS.split(text))
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if _INTEGER.fullmatch(digits):
        most = 2**63 if text.startswith("-") else 2**64 - 1
        plain = digits.replace("_", "")
        octal = len(plain) > 1 and plain.isdecimal() and plain.startswith("0")
        return int(plain, 8 if octal else 0) <= most
    return bool(_FLOAT.fullmatch(digits)) and any(character in digits for character in ".eEpP")


_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
}
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\\"'])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))"
)


def unquote(token: Token) -> str:
    """The value of a string, raw-string or character token (`strconv.Unquote`).

    Raises:
        TemplateSyntaxError: an escape that Go does not know, or a character that is none or several.
    """
    if token.kind == "raw":
        # Go drops carriage returns from raw strings.
        return token.text[1:-1].replace("\r", "")
    body = token.text[1:-1]
    out: list[str] = []
    position = 0
    while (slash := body.find("\\", position)) >= 0:
        out.append(body[position:slash])
        match = _ESCAPE.match(body, slash)
        if match is None:
            raise TemplateSyntaxError("invalid escape in string", token.start)
        simple, *codes = match.groups()
        if simple and simple in "\"'" and simple != token.text[0]:
            raise TemplateSyntaxError("invalid escape in string", token.start)
        if simple:
            out.append(_ESCAPES[simple])
        else:
            code = next(c for c in codes if c)
            number = int(code, 8 if codes[3] else 16)
            if number > sys.maxunicode or 0xD800 <= number < 0xE000 or (codes[3] and number > 0xFF):
                raise TemplateSyntaxError("invalid escape in string", token.start)
            byte = codes[0] or codes[3]
            out.append(bytes([number & 0xFF]).decode("utf-8", "surrogateescape") if byte else chr(number))
        position = match.end()
    out.append(body[position:])
    # Adjacent \x escapes may form one UTF-8 character.
    joined = "".join(out)
    if token.kind == "char" and len(joined) != 1:
        raise TemplateSyntaxError("malformed character constant", token.start)
    return joined.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def quote(text: str) -> str:
    """A Go string literal for `text` that no template delimiter can end early."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    # A literal may hold braces, but the text around it may be searched for them.
    escaped = escaped.replace("{{", "\\x7b\\x7b").replace("}}", "\\x7d\\x7d")
    return f'"{escaped}"'
