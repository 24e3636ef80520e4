"""Records are read with missing fields, refused with wrong ones, and bounded."""

from __future__ import annotations

import json

import pytest
from web_records import line, told

from becalm.web.records import MAX_LINE, Record, RecordError, State, read


def test_a_record_is_read_with_all_its_fields():
    record = read(line())
    assert isinstance(record, Record)
    summary = record.summary
    assert (summary.app, summary.outcome, summary.seconds, summary.warnings) == ("shop", "rendered", 1.25, 1)
    assert (record.stabilised[0].function, record.changes[0].verb, record.unknown[0].nearest) == (
        "randAlphaNum",
        "strip",
        "replicas",
    )
    assert record.diffs[0].after == "kind: Deployment\nspec: {}\n"
    assert record.certificates[0].until > record.certificates[0].changes > record.certificates[0].start > 0
    assert dict(record.stages) == {"queue": 0.5, "render": 0.75}
    assert record.has_details
    assert not record.truncated


def test_every_field_may_be_missing():
    record = read(b"{}")
    assert isinstance(record, Record)
    assert (record.summary.outcome, record.summary.source, record.diffs) == ("failed", "unknown", ())
    for name in told():
        assert isinstance(read(json.dumps({k: v for k, v in told().items() if k != name}).encode()), Record)


@pytest.mark.parametrize("name", sorted(told()))
def test_a_field_of_another_type_is_refused_and_not_repeated(name):
    usual = told()[name]
    wrongs = [
        None,
        True,
        ["hunter2", 1],
        [["hunter2"]],
        {"hunter2": "hunter2"},
        5 if isinstance(usual, str) else "hunter2",
    ]
    for wrong in wrongs:
        with pytest.raises(RecordError) as error:
            read(line(**{name: wrong}))
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"7", b"{", b'"x"', b"\xff\xfe", b'{"at": NaN}', b'{"seconds": Infinity}', b'{"at": 1e400}', b'{"runs": 1.5}',
     b'{"runs": -1}', b'{"bytes": 99999999999999999999}', b'{"at": 1e13}', b"[" * 100_000, b'{"state": []}', b'{"state": {"queue": "x"}}'],
)  # fmt: skip
def test_what_is_no_record_is_refused(text):
    with pytest.raises(RecordError):
        read(text)


def test_a_line_that_is_too_long_is_refused():
    read(b" " * (MAX_LINE - 2) + b"{}")
    with pytest.raises(RecordError):
        read(b" " * (MAX_LINE - 1) + b"{}")


def test_words_that_are_not_known_become_the_usual_ones():
    record = read(line(outcome="exploded", source="jsonnet"))
    assert (record.summary.outcome, record.summary.source) == ("failed", "unknown")


def test_long_texts_and_lists_are_cut_and_it_is_said():
    many = [{"object": f"o{number}", "path": "p" * 5_000} for number in range(6_000)]
    record = read(json.dumps(told(changes=many[:100])).encode())
    assert record.truncated
    assert max(len(one.path) for one in record.changes) <= 1_001
    record = read(json.dumps({"changes": [{"object": "o"}] * 6_000}).encode())
    assert (record.truncated, len(record.changes)) == (True, 5_000)


def test_halves_of_characters_and_controls_are_replaced():
    record = read(b'{"app": "a\\ud800b\\u0000c\\u009fd\\ufffe", "error": "one\\ntwo"}')
    assert record.summary.app == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert record.summary.error == "one two"
    record.summary.app.encode()


def test_a_state_is_read():
    assert read(b'{"state": {"queue": 3, "rendering": 2}}') == State(queue=3, rendering=2)
    assert read(b'{"state": {"unready": "it\\n ends"}}') == State(unready="it ends")


def test_the_size_is_at_least_that_of_the_texts():
    record = read(line(diffs=[{"object": "o", "before": "b" * 1_000, "after": "\U0001f600" * 1_000}]))
    assert record.size >= 1_000 + 4_000
