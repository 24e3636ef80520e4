"""Values of a live text are found by two renders of the same text with other values."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becalm.manifests.align import Anything, Filled, Nested, Source, fill, holes, parts

ONE = Source(id="one", a="Aq3xY7pL", b="Zr8mK2wQ", shape="[A-Za-z0-9]{8}", loose=r"[\s\S]*?")
TWO = Source(id="two", a="hhJ1k4Pd", b="PPd0s8Ea", shape="[A-Za-z0-9]{8}", loose=r"[\s\S]*?")
SHORT = Source(id="short", a="x7", b="k2", shape="[A-Za-z0-9]{2}")
PEM = Source(
    id="pem",
    a="-----BEGIN X-----\nAAAA\nBBBB\n-----END X-----\n",
    b="-----BEGIN X-----\nCCCC\nDDDD\n-----END X-----\n",
    shape=r"-----BEGIN X-----[\s\S]+?-----END X-----\n?",
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def found(template: str, live: str, *sources: Source) -> dict[str, str] | None:
    """What is found in a live text of this template; `{one}` is a source, `<...>` is in base64."""
    texts = [template, template]
    for source in sources:
        for number, value in enumerate((source.a, source.b)):
            texts[number] = texts[number].replace("{" + source.id + "}", value)
    filled = fill(parts(texts[0], texts[1], sources), live)
    return None if filled is None else {one.source: one.value for one in filled}


def test_a_whole_text() -> None:
    assert found("{one}", "abcdefgh", ONE) == {"one": "abcdefgh"}


def test_a_value_of_another_shape_is_taken_where_nothing_else_is_unsure() -> None:
    """The chart asks for eight letters now, and what is running was chosen by a person."""
    assert found("{one}", "correct horse", ONE) == {"one": "correct horse"}
    assert found("postgres://u:{one}@db", "postgres://u:s3cr3t!@db", ONE) == {"one": "s3cr3t!"}
    assert found("{one}{two}", "short", ONE, TWO) is None


def test_places_in_a_longer_text() -> None:
    live = "postgres://user11:password2@db/user11"
    sources = (
        Source(id="one", a="aaaa11", b="bbbb22", shape=r"\w{6}"),
        Source(id="two", a="cccccccc3", b="dddddddd4", shape=r"\w{9}"),
    )
    assert found("postgres://{one}:{two}@db/{one}", live, *sources) == {"one": "user11", "two": "password2"}


def test_a_value_that_stands_twice_must_be_one() -> None:
    assert found("{one} {one}", "abcdefgh abcdefgh", ONE) == {"one": "abcdefgh"}
    assert found("{one} {one}", "abcdefgh ABCDEFGH", ONE) is None


def test_base_64_a_few_levels_deep() -> None:
    def level(value: str) -> str:
        return encoded('{"auths":{"r":{"auth":"' + encoded(f"user:{value}") + '"}}}')

    form = parts(level(ONE.a), level(ONE.b), [ONE])
    assert isinstance(form[0], Nested)
    assert fill(form, level("abcdefgh")) == [Filled(source="one", value="abcdefgh", exact=True)]
    assert fill(form, level("another")) == [Filled(source="one", value="another", exact=True)]


def test_a_value_beside_letters_of_base_64_is_no_token() -> None:
    assert found("prefix{one}suffix", "prefixabcdefghsuffix", ONE) == {"one": "abcdefgh"}


def test_checksums_may_be_anything() -> None:
    one, two = ("sha: " + letter * 64 + "\npassword: " for letter in "ab")
    form = parts(one + ONE.a, two + ONE.b, [ONE])
    assert any(isinstance(part, Anything) for part in form)
    filled = fill(form, "sha: " + "c" * 64 + "\npassword: abcdefgh")
    assert filled == [Filled(source="one", value="abcdefgh", exact=True)]


def test_letter_case_is_told() -> None:
    form = parts(f"app-{ONE.a.lower()}", f"app-{ONE.b.lower()}", [ONE])
    assert [hole.case for hole in holes(form)] == ["lower"]
    assert fill(form, "app-abcd1234") == [Filled(source="one", value="abcd1234", exact=False)]


def test_a_short_value_is_told_from_what_looks_like_it() -> None:
    assert found("x7 is not {short}, x7", "x7 is not q9, x7", SHORT) == {"short": "q9"}


def test_indented_lines_are_one_value() -> None:
    template = "tls:\n    " + "{pem}".rstrip("\n")
    a, b = (template.replace("{pem}", text.rstrip("\n").replace("\n", "\n    ")) for text in (PEM.a, PEM.b))
    live = template.replace("{pem}", "-----BEGIN X-----\n    EEEE\n    -----END X-----")
    filled = fill(parts(a, b, [PEM]), live)
    assert filled == [Filled(source="pem", value="-----BEGIN X-----\nEEEE\n-----END X-----", exact=True)]


def test_line_breaks_in_json() -> None:
    a, b = ('{"pem": "' + text.replace("\n", "\\n") + '"}' for text in (PEM.a, PEM.b))
    live = '{"pem": "-----BEGIN X-----\\nEEEE\\n-----END X-----\\n"}'
    assert fill(parts(a, b, [PEM]), live) == [
        Filled(source="pem", value="-----BEGIN X-----\nEEEE\n-----END X-----\n", exact=True)
    ]


def test_another_version_of_a_chart_says_other_things_in_the_rest() -> None:
    template = "[db]\nuser = app\npassword = {one}\ntimeout = 5\n"
    live = "[db]\npassword = abcdefgh\n# older\n"
    assert found(template, live, ONE) == {"one": "abcdefgh"}
    assert found(template, "[db]\npassword = s3cr3t!\n", ONE) == {"one": "s3cr3t!"}
    assert found(template, "password = abcdefgh\npassword = ijklmnop\n", ONE) is None


@pytest.mark.parametrize("live", ["", "postgres://u", "mysql://u:abcdefgh@db", "postgres://u:abcdefgh@db2"])
def test_another_text_has_no_value(live: str) -> None:
    assert found("postgres://u:{one}@db", live, ONE) is None


WORDS = st.text(alphabet="abcXYZ019 :/=@\n\"'{}", max_size=12)
VALUES = st.text(alphabet="ABCDEFGHabcdefgh01234567", min_size=8, max_size=8)


@given(
    st.lists(WORDS, min_size=3, max_size=3),
    st.lists(VALUES, min_size=6, max_size=6, unique=True),
    st.booleans(),
)
def test_what_was_put_in_is_found_or_nothing_is(
    words: list[str], values: list[str], is_encoded: bool
) -> None:
    sources = (
        Source(id="one", a=values[0], b=values[1], shape="[A-Za-z0-9]{8}"),
        Source(id="two", a=values[2], b=values[3], shape="[A-Za-z0-9]{8}"),
    )

    def text(one: str, two: str) -> str:
        plain = f"{words[0]}{one}{words[1]}{two}{words[2]}"
        return f"data: {encoded(plain)}" if is_encoded else plain

    form = parts(text(values[0], values[2]), text(values[1], values[3]), sources)
    filled = fill(form, text(values[4], values[5]))
    expected = {"one": values[4], "two": values[5]}
    assert filled is not None
    assert {one.source: one.value for one in filled}.items() <= expected.items()
