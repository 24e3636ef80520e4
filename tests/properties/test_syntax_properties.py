"""The lexer and parser accept what Helm accepts, and refuse what it refuses.

`helm lint` reads many charts in one process and tells for each whether its templates parse.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

from generate import Generator
from hypothesis import given
from hypothesis import strategies as st

from becalm.templates import tokens
from becalm.templates.syntax import parse
from becalm.templates.tokens import TemplateSyntaxError

ROOT = Path(__file__).resolve().parents[2]
HELM = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools")) / "helm-4.1.4" / "helm"
BATCH = 80
PIECES = (
    "{{", "}}", "{{-", "-}}", "{{- ", " -}}", "/*", "*/", " ", "\n", "\t", "|", "(", ")", ",", ":=", "=", ".", ".a", ".Ab_1",
    "$", "$x", "$.a", "$x.y", '"s"', '"\\""', '"\\q"', '"', "`r`", "`", "'c'", "'", "''", "1", "-1", "+2", "0x1F", "1.5", ".5", "1e3", "1e",
    "0b12", "1_000", "08", "1i", "2+3i", "'\\n'", "true", "nil", "now", "quote", "list", "print", "x", "é", "if", "else", "end", "range", "with",
    "define", "template", "block", "break", "continue", '"n"', "{", "}", "-", "[", "#", "\\", "text", "\r\n", "$é", "0x", "else if", "else with",
)  # fmt: skip
# Go resolves names while it parses, which becalm leaves to it.
NAMES = re.compile(r'function "[^"]*" not defined|undefined variable|undefined: ')


def soup(random: Random) -> str:
    """An action or a few made of arbitrary pieces."""
    inner = (random.choice(PIECES) + random.choice(("", " ")) for _ in range(random.randint(1, 9)))
    return "{{" + random.choice(("", " ", "- ")) + "".join(inner) + random.choice(("}}", " }}", " -}}", ""))


def damaged(random: Random) -> str:
    """A valid template with a piece or two taken out or put in."""
    text = Generator(random.randrange).file().drawing
    for _ in range(random.randint(0, 2)):
        at = random.randrange(len(text))
        if random.random() < 0.5:
            text = text[:at] + text[at + random.randint(1, 3) :]
        else:
            text = text[:at] + random.choice(PIECES) + text[at:]
    return text


def lint(texts: list[str]) -> list[str]:
    """What helm says of each text, empty where it parses."""
    with TemporaryDirectory() as directory:
        for number, text in enumerate(texts):
            folder = Path(directory) / f"c{number}" / "templates"
            folder.mkdir(parents=True)
            (folder.parent / "Chart.yaml").write_text(f"apiVersion: v2\nname: c{number}\nversion: 1.0.0\n")
            (folder / "_x.tpl").write_bytes(text.encode())
        argv = [HELM, "lint", *(f"c{number}" for number in range(len(texts)))]
        done = subprocess.run(argv, cwd=directory, capture_output=True, timeout=60, check=False)
    told = done.stdout.decode("utf-8", "replace")
    parts = re.split(r"^==> Linting c\d+$", told, flags=re.MULTILINE)[1:]
    assert len(parts) == len(texts), done.stderr
    return [part if "[ERROR] templates/" in part else "" for part in parts]


@given(seed=st.integers(0, 2**64))
def test_what_parses_is_what_helm_parses(seed: int) -> None:
    random = Random(seed)
    texts = [soup(random) if number % 2 else damaged(random) for number in range(BATCH)]
    for text, told in zip(texts, lint(texts), strict=True):
        if NAMES.search(told):
            continue
        reason = fault(text)
        if told:
            assert reason, f"becalm accepts {text!r}, but helm: {told[-200:]}"
        else:
            assert not reason, f"helm accepts {text!r}, but becalm: {reason}"


def fault(text: str) -> str:
    """Why a text does not parse, empty where it does."""
    try:
        parse(text)
    except TemplateSyntaxError as error:
        return str(error)
    return ""


def lexed(text: str) -> object:
    """The actions of a text, or why it has none."""
    try:
        return tokens.actions(text)
    except TemplateSyntaxError as error:
        return error.reason, error.offset


@given(seed=st.integers(0, 2**64))
def test_what_is_read_quickly_is_what_is_read_token_by_token(seed: int) -> None:
    random = Random(seed)
    texts = [soup(random) if number % 2 else damaged(random) for number in range(5 * BATCH)]
    quick = [lexed(text) for text in texts]
    with patch.object(tokens, "_action", tokens._odd_action):
        assert [lexed(text) for text in texts] == quick
