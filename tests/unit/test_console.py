"""How a command ends when the machine has too little of something."""

from __future__ import annotations

import errno
import os

import pytest

from becalm import console


def ending(error: Exception, capsys) -> tuple[int, str, list[str]]:
    def run() -> str:
        raise error

    told: list[str] = []
    code = console.guarded(run, told=told.append)
    out, err = capsys.readouterr()
    assert out == ""
    return code, err, told


@pytest.mark.parametrize(
    "number", ["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EMFILE", "ENFILE", "EAGAIN", "ENOMEM"]
)
def test_what_is_short_is_said_in_one_line(number, capsys):
    fault = getattr(errno, number)
    code, err, told = ending(OSError(fault, os.strerror(fault), "/some/place"), capsys)
    assert code == 1
    assert err.startswith(f"Error: the machine has no room: {os.strerror(fault)}; give the sidecar more")
    assert (len(err.splitlines()), told) == (1, [err.removeprefix("Error: ").strip()])


def test_too_little_memory_is_said_in_one_line(capsys):
    code, err, told = ending(MemoryError("secret"), capsys)
    assert code == 1
    assert err.startswith(
        "Error: the render needs more memory than it may take; make the application smaller"
    )
    assert (len(err.splitlines()), told) == (1, [err.removeprefix("Error: ").strip()])
    assert "secret" not in err


@pytest.mark.parametrize("error", [OSError("secret"), OSError(errno.ENOENT, "secret"), ValueError("secret")])
def test_anything_else_is_a_bug_and_shows_no_text(error, capsys):
    code, err, told = ending(error, capsys)
    assert code == 70
    assert told == [f"internal error: {type(error).__name__}"]
    assert "secret" not in err
