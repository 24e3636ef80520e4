"""A command line that is wrong is told of in one line, with what to do; one without a command shows the help."""

from __future__ import annotations

import pytest

from becalm import cli

BASE = ["render", "chart", "--app=a", "--namespace=n"]


def ended(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        cli.main(argv)
    assert end.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["render"], "becalm render: the following arguments are required: PATH, --app, --namespace; `becalm render --help`"),
        ([*BASE, "--sed", "x"], "becalm render: there is no option --sed; did you mean --seed?"),
        ([*BASE, "--zzz=secret"], "becalm render: there is no option --zzz; `becalm render --help` explains what it takes"),
        ([*BASE, "more"], "becalm render: 'more' is one argument too many"),
        ([*BASE, "--rule", "-core/status"], "--rule: expected one argument; give it a value; one that begins with - as --rule=-VALUE"),
        ([*BASE, "--timeout=abc"], "--timeout: 'abc' is no number of seconds, above 0 and at most 3600"),
        ([*BASE, "--timeout=0"], "--timeout: '0' is no number of seconds"),
        (["rendr"], "becalm: argument COMMAND: invalid choice: 'rendr'"),
        (["rules", "list", "x"], "becalm rules list: 'x' is one argument too many"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(argv, words, capsys):
    told = ended(argv, capsys)
    assert told.startswith("Error: ")
    assert words in told
    assert told.count("\n") == 1
    assert "secret" not in told


@pytest.mark.parametrize("argv", [[], ["rules"], ["seed"]])
def test_without_a_command_the_help_is_shown(argv, capsys):
    told = ended(argv, capsys)
    assert told.startswith("usage: becalm")
    assert "COMMAND" in told


def test_the_usage_of_a_long_command_is_one_line(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["render", "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "usage: becalm render PATH --app NAME --namespace NS [OPTION ...]",
        "",
    ]
