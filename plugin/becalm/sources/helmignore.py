"""`.helmignore` exactly as Helm reads it (its pkg/ignore/rules.go), oddities included.

It looks like .gitignore and is not: the first rule that matches decides, a `!` rule *ignores*
whatever it does not match, `**` is an error, a pattern without a slash is compared with the
last name only, and one with a slash with the whole path. Patterns follow Go's
`path/filepath.Match`, which works on bytes and finds a syntax error only where it gets to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from becalm.errors import SourceError

_BOM = "\ufeff"
# Go's strings.TrimSpace; Python's str.strip would also take U+001C to U+001F.
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
# The most that Go's bufio.Scanner takes as one line.
_MAX_LINE = 64 * 1024 - 1
_DEFAULT = "templates/.?*"
_BAD_RUNE = 0xFFFD

# One position of a pattern: takes the rest of the name and returns how many bytes it matches,
# or None.
_Step = Callable[[bytes], "int | None"]


class PatternError(ValueError):
    """A pattern that Go's filepath.Match calls malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    """What stands between two stars. `steps` is None for text that is no valid pattern."""

    star: bool
    steps: tuple[_Step, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    negate: bool
    directories_only: bool
    whole_path: bool
    pattern: tuple[_Segment, ...]

    def matches(self, path: bytes) -> bool:
        try:
            return _match(self.pattern, path if self.whole_path else path.rpartition(b"/")[2])
        except PatternError:
            return False  # Helm logs it and goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a chart directory. They never apply to what comes out of an archive."""

    rules: tuple[_Rule, ...]

    @classmethod
    def parse(cls, text: str, *, where: str) -> Rules:
        """Read the text of a `.helmignore` and add Helm's own rule, `templates/.?*`.

        Args:
            text: decoded as UTF-8 with `surrogateescape`, so that no byte is lost.
            where: the file, for messages.

        Raises:
            SourceError: a rule that Helm refuses; names the line.
        """
        rules = []
        for number, line in enumerate(text.removeprefix(_BOM).split("\n"), start=1):
            try:
                rule = _parse_rule(line)
            except PatternError as error:
                raise SourceError(
                    f"Helm cannot read this rule: {error}",
                    where=f"{where}:{number}",
                    hint="write a pattern without `**` and with every `[` closed",
                ) from None
            if rule is not None:
                rules.append(rule)
        return cls(rules=(*rules, *cls.default().rules))

    @classmethod
    def default(cls) -> Rules:
        """What applies to a chart directory without a `.helmignore`."""
        rule = _parse_rule(_DEFAULT)
        assert rule is not None
        return cls(rules=(rule,))

    def ignores(self, path: str, is_dir: bool) -> bool:
        """Whether Helm leaves out this path (POSIX, relative to the chart).

        Only the path itself is judged; of an ignored directory, Helm leaves out all content.
        """
        if path in ("", ".", "./"):
            return False
        name = _encode(path)
        for rule in self.rules:
            wrong_kind = rule.directories_only and not is_dir
            if rule.negate:
                if wrong_kind or not rule.matches(name):
                    return True
            elif not wrong_kind and rule.matches(name):
                return True
        return False


def matches(pattern: str, name: str) -> bool:
    """Go's `filepath.Match` on Unix.

    Raises:
        PatternError: malformed, as far as Go would notice with this name.
    """
    return _match(_compile(_encode(pattern)), _encode(name))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _parse_rule(line: str) -> _Rule | None:
    if len(_encode(line)) > _MAX_LINE:
        raise PatternError("the line is longer than 64 KiB")
    text = line.strip(_SPACE)
    if not text or text.startswith("#"):
        return None
    if "**" in text:
        raise PatternError("`**` is not supported")
    # Helm's own check: an error that Match does not reach with this name goes unseen.
    _match(_compile(_encode(text)), b"abc")
    negate = text.startswith("!")
    text = text.removeprefix("!")
    directories_only = text.endswith("/")
    text = text.removesuffix("/")
    return _Rule(
        negate=negate,
        directories_only=directories_only,
        whole_path="/" in text,
        pattern=_compile(_encode(text.removeprefix("/"))),
    )


def _match(pattern: tuple[_Segment, ...], name: bytes) -> bool:
    for number, segment in enumerate(pattern):
        last = number == len(pattern) - 1
        if segment.star and segment.steps == ():
            return b"/" not in name
        if segment.steps is None:
            raise PatternError("the pattern is malformed")
        rest = _match_segment(segment, name, last=last)
        if rest is None:
            return False
        name = rest
    return not name


def _match_segment(segment: _Segment, name: bytes, *, last: bool) -> bytes | None:
    """Match one segment, after skipping as little as possible if it begins with a star.

    Returns what is left of the name, or None. The last segment has to use up the name.
    """
    assert segment.steps is not None
    # A star goes forward byte by byte, also into the middle of a character, as Go does.
    for skipped in range(len(name) + 1 if segment.star else 1):
        if skipped and name[skipped - 1 : skipped] == b"/":
            break
        rest = _match_steps(segment.steps, name[skipped:])
        if rest is not None and not (last and rest):
            return rest
    return None


def _match_steps(steps: tuple[_Step, ...], name: bytes) -> bytes | None:
    for step in steps:
        width = step(name) if name else None
        if width is None:
            return None
        name = name[width:]
    return name


def _compile(pattern: bytes) -> tuple[_Segment, ...]:
    segments = []
    while pattern:
        body = pattern.lstrip(b"*")
        end = _end_of_segment(body)
        segments.append(_Segment(star=body != pattern, steps=_compile_steps(body[:end])))
        pattern = body[end:]
    return tuple(segments)


def _end_of_segment(pattern: bytes) -> int:
    """The index of the next star that is neither escaped nor between brackets."""
    in_class = False
    index = 0
    while index < len(pattern):
        character = pattern[index : index + 1]
        if character == b"\\":
            index += 1
        elif character in (b"[", b"]"):
            in_class = character == b"["
        elif character == b"*" and not in_class:
            return index
        index += 1
    return len(pattern)


def _compile_steps(text: bytes) -> tuple[_Step, ...] | None:
    steps: list[_Step] = []
    while text:
        head, text = text[:1], text[1:]
        if head == b"[":
            try:
                step, text = _compile_class(text)
            except PatternError:
                return None
            steps.append(step)
        elif head == b"?":
            steps.append(_any_but_slash)
        else:
            if head == b"\\":
                head, text = text[:1], text[1:]
                if not head:
                    return None
            steps.append(_literal(head))
    return tuple(steps)


def _literal(byte: bytes) -> _Step:
    return lambda name: 1 if name[:1] == byte else None


def _any_but_slash(name: bytes) -> int | None:
    return None if name[:1] == b"/" else _decode(name)[1]


def _compile_class(text: bytes) -> tuple[_Step, bytes]:
    """Compile what follows a `[`; returns the step and the text behind the `]`."""
    negated = text.startswith(b"^")
    text = text.removeprefix(b"^")
    ranges: list[tuple[int, int]] = []
    while not (ranges and text.startswith(b"]")):
        low, text = _class_character(text)
        high = low
        if text.startswith(b"-"):
            high, text = _class_character(text[1:])
        ranges.append((low, high))

    def step(name: bytes) -> int | None:
        # A class may match a slash, unlike `?` and `*`: Go does not look.
        rune, width = _decode(name)
        return width if any(low <= rune <= high for low, high in ranges) != negated else None

    return step, text[1:]


def _class_character(text: bytes) -> tuple[int, bytes]:
    if text[:1] in (b"", b"-", b"]"):
        raise PatternError
    text = text.removeprefix(b"\\")
    if not text:
        raise PatternError
    rune, width = _decode(text)
    if (rune == _BAD_RUNE and width == 1) or len(text) == width:
        raise PatternError
    return rune, text[width:]


def _decode(text: bytes) -> tuple[int, int]:
    """The first character of a non-empty text and its width; an invalid byte is U+FFFD, 1."""
    for width in range(1, 5):
        try:
            return ord(text[:width].decode("utf-8")), width
        except (UnicodeDecodeError, TypeError):
            continue
    return _BAD_RUNE, 1
