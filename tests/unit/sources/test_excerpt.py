"""Lines of programs in messages: as they are, or without their middle."""

import pytest

from becalm.sources.excerpt import short


@pytest.mark.parametrize("line", ["", "a", "a" * 20])
def test_a_line_of_a_bearable_length_stays(line):
    assert short(line, 20) == line


def test_of_a_longer_one_both_ends_stay():
    assert short("begin" + "-" * 80_000 + "end", 10) == "begin [...] --end"
