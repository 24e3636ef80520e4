"""Answers as expressions of Go templates; that helm reads them with these types is in the contract tests."""

from __future__ import annotations

import pytest

from becalm.templates.answers import expression


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "nil"),
        (True, "true"),
        (3, "(int64 3)"),
        (-(2**63), "(int64 -9223372036854775808)"),
        (2**63, "9.223372036854776e+18"),
        (1.0, "1.0"),
        (1e22, "1e+22"),
        ([], "(list)"),
        ({}, "(dict)"),
        ({"a": [1, {"b": None}]}, '(dict "a" (list (int64 1) (dict "b" nil)))'),
        ('}}{{ fail "x" }}', '"\\x7d\\x7d\\x7b\\x7b fail \\"x\\" \\x7d\\x7d"'),
        ("a\nb\r\t\\\0\x7f\ufeff", '"a\\nb\\r\\t\\\\\\u0000\\u007f\\ufeff"'),
        ("\ud800", '"\ufffd"'),
    ],
)
def test_a_value_is_an_operand(value, written) -> None:
    assert expression(value) == written


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_number_that_json_does_not_know_is_none(number) -> None:
    with pytest.raises(ValueError):
        expression(number)
