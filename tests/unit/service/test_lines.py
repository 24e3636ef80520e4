"""Lines for a reader that may be slow: whole or not at all, and nobody waits."""

from __future__ import annotations

import contextlib
import os

import pytest

from becalm.service.lines import Lines


class Pipe:
    def __init__(self, most: int) -> None:
        self.reading, writing = os.pipe()
        self.flush = None
        self.lines = Lines(writing, watch=self.watch, forget=self.forget, most=most)

    def watch(self, _number, flush) -> None:
        assert self.flush is None
        self.flush = flush

    def forget(self, _number) -> None:
        assert self.flush is not None
        self.flush = None

    def read(self) -> bytes:
        found = b""
        while True:
            if self.flush is not None:
                self.flush()
            os.set_blocking(self.reading, False)
            try:
                found += os.read(self.reading, 1 << 20)
            except BlockingIOError:
                return found


@pytest.fixture
def pipe():
    one = Pipe(1_000_000)
    yield one
    one.lines.close()
    with contextlib.suppress(OSError):
        os.close(one.reading)


def test_what_the_pipe_does_not_take_comes_later(pipe):
    sent = [bytes([65 + number]) * 100_000 for number in range(5)]
    for one in sent:
        pipe.lines.send(one)
    assert pipe.flush is not None
    assert pipe.read() == b"\n".join(sent) + b"\n"
    assert pipe.flush is None
    pipe.lines.send(b"next")
    assert pipe.read() == b"next\n"


def test_lines_above_the_limit_are_lost_whole(pipe):
    for number in range(20):
        pipe.lines.send(bytes([65 + number]) * 300_000)
    pipe.lines.send(b"small")
    found = pipe.read().splitlines()
    assert [(line[:1], len(line)) for line in found] == [
        (b"A", 300_000), (b"B", 300_000), (b"C", 300_000), (b"s", 5),
    ]  # fmt: skip


def test_a_reader_that_is_gone_costs_nothing(pipe):
    pipe.lines.send(b"x" * 200_000)
    os.close(pipe.reading)
    pipe.flush()
    assert pipe.flush is None
    pipe.lines.send(b"x" * 200_000)
    assert pipe.flush is None
