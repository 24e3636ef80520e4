"""Template text is read as Go reads it."""

from __future__ import annotations

import pytest

from becalm.templates.audit import calls
from becalm.templates.files import TemplateFile
from becalm.templates.syntax import parse
from becalm.templates.taint import taint
from becalm.templates.tokens import TemplateSyntaxError, actions, quote, unquote


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a{{- now | date `x` -}}b", ["now", "|", "date", "`x`"]),
        ("{{1 -2}}", ["1", "-2"]),
        ('{{ "}}" }}', ['"}}"']),
        ("{{ `}}` }}", ["`}}`"]),
        ("{{- /* {{ randAlpha 1 }} */ -}}", []),
        ("{{ a\r\n  .b }}", ["a", ".b"]),
        ("{{now.Unix}}", ["now", ".Unix"]),
        ("{{ $ }}", ["$"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    """Actions give the tokens of Go's lexer."""
    (action,) = actions(text)
    assert [token.text for token in action.tokens] == tokens
    assert text[action.start : action.end].startswith("{{")
    assert text[action.start : action.end].endswith("}}")


@pytest.mark.parametrize(
    "text",
    ["{{", '{{ "a }}', "{{ ` }}", "{{ (a }}", "{{ a) }}", "{{ if }}", "{{ end }}", "{{ if a }}", "{{ | a }}",
     "{{ else }}", "{{ a b:= }}", "{{ define x }}{{ end }}", "{{/* a }}", "{{ - }}", "{{ 0x1F+3i }}", "{{ 0b1+2i }}", "{{ 0x1i }}", "{{ 1__0+1i }}"],
)  # fmt: skip
def test_what_go_refuses_is_refused(text: str) -> None:
    """Text that Go's parser would refuse is a syntax error."""
    with pytest.raises(TemplateSyntaxError):
        parse(text)


@pytest.mark.parametrize(
    "text", ["0x1p3+3i", "017+2i", "08+1i", "1_0+2i", "-1.5e2-.5i", "1i", "0o17", "0b1_0"]
)
def test_numbers_that_go_takes_are_taken(text: str) -> None:
    (action,) = actions(f"{{{{ {text} }}}}")
    assert [token.text for token in action.tokens] == [text]


def test_a_trailing_pipe_is_accepted() -> None:
    """Go accepts a pipe right before the closing braces."""
    assert len(parse("{{ a | b | }}")) == 1


@pytest.mark.parametrize("text", ["a", '"', "\\", "{{ }}", "a\nb\t", "ü"])
def test_quoting_is_undone_by_unquoting(text: str) -> None:
    """A quoted literal means the text and holds no delimiter."""
    literal = quote(text)
    (action,) = actions(f"{{{{ {literal} }}}}")
    assert unquote(action.tokens[0]) == text
    assert "{{" not in literal


def test_names_in_comments_strings_and_fields_are_no_calls() -> None:
    """Only real calls are found, wherever they stand."""
    text = '{{/* now */}}{{ .now }}{{ "now" }}{{ $now := 1 }}\n{{ default (uuidv4) 1 }}{{ now.Unix }}{{ 5 | randAlpha }}'
    assert calls(text) == [(2, "now"), (2, "randAlpha"), (2, "uuidv4")]


def test_taint_spreads_over_includes_and_files() -> None:
    """A named template that includes a drawing one is framed, whatever file it is in."""
    files = [
        TemplateFile(key="a", name="_a.tpl", text='{{ define "one" }}{{ uuidv4 }}{{ end }}'),
        TemplateFile(key="b", name="_b.tpl", text='{{ define "two" }}{{ template "one" . }}{{ end }}'),
        TemplateFile(key="c", name="c.yaml", text='{{ include "two" . }}'),
        TemplateFile(key="d", name="d.yaml", text='{{ include "other" . }}'),
    ]
    found = taint(files, rewrites_tpl=False)
    assert found.names == {"one", "two"}
    assert set(found.parsed) == {"a", "b", "c"}
