"""`.helmignore`: the patterns as Go matches them, the rules as Helm applies them.

`tests/vectors/helmignore.json` was written by a Go 1.26 program that called
`path/filepath.Match` on Linux: rows of pattern, name and result, where null stands for a syntax
error and a lone surrogate `\\udcXX` for the invalid byte XX. Some rows are chosen for each rule
of the syntax, the rest are random texts over its characters.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becalm.errors import SourceError
from becalm.sources.helmignore import PatternError, Rules, matches

VECTORS = Path(__file__).parents[2] / "vectors" / "helmignore.json"


def _ignored(text: str, *paths: str) -> list[str]:
    """Those of the paths that are ignored; a trailing slash says that it is a directory."""
    rules = Rules.parse(text, where=".helmignore")
    return [path for path in paths if rules.ignores(path.rstrip("/"), path.endswith("/"))]


def _match(pattern: str, name: str) -> bool | None:
    try:
        return matches(pattern, name)
    except PatternError:
        return None


def test_patterns_match_as_in_go():
    """Every row of the table comes out as Go's own function had it, errors included."""
    rows = json.loads(VECTORS.read_text())
    wrong = [(p, n, expected) for p, n, expected in rows if _match(p, n) is not expected]
    assert wrong == []
    assert len(rows) > 3000


@given(st.text("ab*?[]^-\\/é\udc82", max_size=12), st.text("ab/-é\udc82", max_size=8))
def test_every_pattern_has_an_answer(pattern, name):
    """No pattern crashes: it matches, does not match, or is malformed."""
    assert _match(pattern, name) in (True, False, None)


@given(st.text("ab/-é *?[\\", max_size=8))
def test_an_escaped_name_matches_itself_only(name):
    """With a backslash before each character a pattern is a literal."""
    pattern = "".join("\\" + character for character in name)
    assert matches(pattern, name)
    assert not matches(pattern, name + "a")


@pytest.mark.parametrize(
    ("rule", "ignored"),
    [
        pytest.param("*.md", ["a.md", "docs/b.md"], id="without a slash: the last name, everywhere"),
        pytest.param("/a.md", ["a.md"], id="leading slash: from the top"),
        pytest.param("docs/*.md", ["docs/b.md"], id="slash in the middle: the whole path"),
        pytest.param("docs/", ["docs/"], id="trailing slash: directories"),
        pytest.param("x/", [], id="trailing slash: no file"),
        pytest.param("/docs/", ["docs/"], id="both slashes"),
        pytest.param("docs", ["docs/"], id="a name may be a directory, too"),
        pytest.param("  *.md\t\r", ["a.md", "docs/b.md"], id="white space around"),
        pytest.param("# *.md\n\n", [], id="comments and blank lines"),
        pytest.param("\ufeff*.md", ["a.md", "docs/b.md"], id="byte order mark"),
        pytest.param("x\n*.md", ["a.md", "docs/b.md", "x"], id="several rules"),
        pytest.param("!*.md", ["docs/", "x"], id="negation ignores all that does not match"),
        pytest.param("!docs/", ["a.md", "docs/b.md", "x"], id="negated directory: all files"),
        pytest.param("x\n!*.md", ["docs/", "x"], id="after a rule that did not match"),
        pytest.param("!x\n*.md", ["a.md", "docs/", "docs/b.md"], id="a match of a negation goes on"),
        pytest.param("a\\/", [], id="an error that shows only later matches nothing"),
        pytest.param("!a\\/", ["a.md", "docs/", "docs/b.md", "x"], id="negated, it ignores everything"),
        pytest.param("/", [], id="only a slash"),
        pytest.param("x*[", [], id="an error behind a mismatch is not found"),
    ],
)
def test_rules(rule, ignored):
    """The meaning of each kind of rule, on the same four paths."""
    assert _ignored(rule, "a.md", "docs/", "docs/b.md", "x") == ignored


def test_hidden_templates_are_always_ignored():
    """Helm's own rule applies without and with a file, at the top only, to files and directories."""
    paths = ("templates/.x", "templates/.d/", "templates/x", "templates/a/.x", "charts/c/templates/.x", ".x")
    assert _ignored("", *paths) == ["templates/.x", "templates/.d/"]
    assert _ignored("nothing", *paths) == ["templates/.x", "templates/.d/"]
    assert Rules.default().ignores("templates/.x", is_dir=False)


def test_the_chart_itself_is_never_ignored():
    """Not even a rule for everything ignores the directory of the chart."""
    assert _ignored("!none", "", ".", "./") == []


def test_python_white_space_is_not_trimmed():
    """A unit separator is white space for Python and not for Go."""
    assert _ignored("\x1fx", "x", "\x1fx") == ["\x1fx"]


@pytest.mark.parametrize("rule", ["**", "a/**/b", "[", "a[b", "[]a]", "[a-]", "[-a]", "*\\", "x" * 70_000])
def test_rules_that_helm_refuses(rule):
    """A rule that stops Helm is an error that names file and line."""
    with pytest.raises(SourceError, match=r"^mychart/\.helmignore:3: Helm cannot read this rule"):
        Rules.parse(f"# one\n\n{rule}\n", where="mychart/.helmignore")
