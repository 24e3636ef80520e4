"""Ask the Go reference again and rewrite `parse.json`, `strings.json` and `dumped.txt`; see README.md."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from becalm.manifests import yamlio

HERE = Path(__file__).parent

# What Argo CD cannot carry, however it is written: its own JSON between two parses holds these raw.
LOST = frozenset(map(chr, [*range(0x7F, 0xA0), 0xFFFE, 0xFFFF]))

WORDS = [
    "y",
    "n",
    "Y",
    "N",
    "yes",
    "no",
    "Yes",
    "No",
    "YES",
    "NO",
    "on",
    "off",
    "On",
    "Off",
    "ON",
    "OFF",
    "true",
    "false",
    "True",
    "False",
    "TRUE",
    "FALSE",
    "yEs",
    "tRUE",
    "null",
    "Null",
    "NULL",
    "nULL",
    "~",
    "=",
    "<<",
    "<",
    "-",
    "--",
    "---",
    "---a",
    "...",
    "...a",
    "?",
    ":",
    ",",
    "[",
    "]",
    "{",
    "}",
    "#",
    "&",
    "*",
    "!",
    "|",
    ">",
    "%",
    "@",
    "`",
    "'",
    '"',
    "\\",
    "!!",
    "!x",
    "&a",
    "*a",
    "|x",
    ">x",
    "%x",
    "@x",
    "`x",
    "'x",
    '"x',
    "?x",
    ":x",
    "-x",
    "#x",
    ",x",
    "[x",
    "]x",
    "{x",
    "}x",
    "=x",
    "~x",
    "<<x",
    "a:",
    "a:b",
    ":a",
    "a#b",
    "a]",
    "a}",
    "a,",
    "{}",
    "[]",
    "{a",
    "[a",
    "a{b}",
    "-",
    ".",
    "..",
    ".a",
    "+a",
    "-a",
    "+.",
    "-.",
    "0",
    "00",
    "1",
    "-1",
    "+1",
    "007",
    "08",
    "09",
    "0755",
    "0o17",
    "0O17",
    "0o8",
    "-0o17",
    "0b1",
    "0b2",
    "0B1",
    "-0b1",
    "0b-1",
    "0b+1",
    "0x1f",
    "0X1F",
    "0xg",
    "-0x1F",
    "1_000",
    "_1",
    "1_",
    "1__0",
    "0x_1",
    "0_7",
    "+_1",
    "-_1",
    "1e3",
    "1E3",
    "12e03",
    "1e+3",
    "1e-3",
    "1e",
    "1e+",
    "e3",
    "6e5",
    "0e0",
    "1.5e3",
    ".1e2",
    "+.5",
    "-.5",
    ".5",
    "5.",
    "1.0",
    "1.5",
    "-0.0",
    "1_0.5",
    ".1_0",
    "._5",
    ".5_",
    "1e400",
    "1e-400",
    "1.2.3",
    "1.2.3.4",
    "10.0.0.1",
    "10.0.0.0/8",
    "1e1_0",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    ".inf",
    "-.inf",
    "+.inf",
    ".Inf",
    ".INF",
    ".iNf",
    ".nan",
    ".NaN",
    ".NAN",
    "+.nan",
    "inf",
    "nan",
    "NaN",
    "Infinity",
    "1:30",
    "190:20:30",
    "12:30:45.5",
    "1:3",
    "1:99",
    "01:30",
    "-1:30",
    "+1:30",
    "2024-01-01",
    "2024-1-1",
    "2024-01-01T00:00:00Z",
    "2001-12-14t21:59:43.10-05:00",
    "2024-13-99",
    "20240101",
    "2024",
    "0x",
    "0b",
    "0o",
    "1k",
    "1Gi",
    "500m",
    "5s",
    "12e03f",
    "3e8",
    "7e12345",
    "deadbeef",
    "1d2e3",
    "0e1",
    "00e2",
    "0x1p3",
    "1/2",
    "50%",
    "$HOME",
    "${x}",
    "{{x}}",
    "{{.x}}",
    "http://x",
    "https://x/?a=b#c",
    "a@b.c",
    "c:\\x",
    "../x",
    "./x",
    "/x",
    "~/x",
    "*.x",
    "k8s.io/x",
    "é",
    "日本",
    "😀",
    "\u200b",
    "\ufeff",
]
PIECES = [
    "\n", "\n\n", "\n\n\n", " ", "  ", "\t", "\r", "\r\n", "a", "y", "1", "- ", "# ", " #", ": ", ":", "? ", "'",
    '"', "\\", "---", "...", "{", "]", ",", "&", "*", "!", "|", ">", "%", "@", "`", "=", "<<", "~", "null", "\0",
    "\x07", "\x1b", "\x7f", "\x80", "\x85", "\x9f", "\xa0", "\xad", "\u2028", "\u2029", "\ufeff", "\ufffd",
    "\ufffe", "\uffff", "\ue000", "é", "日", "😀", "\U0010ffff", "x" * 130,
]  # fmt: skip
LINES = [
    "a",
    "",
    " ",
    "  a",
    "\ta",
    "a ",
    "a\t",
    "- a",
    "# a",
    "a: b",
    "---",
    "...",
    "--- a",
    "|",
    "'",
    '"',
    "é",
]


def strings() -> list[str]:
    """Strings that some reader, writer or splitter of YAML has got wrong, in a fixed order."""
    out = ["", *WORDS, *PIECES]
    out += [a + b for a in PIECES for b in PIECES]
    out += [f"a{p}b" for p in PIECES] + [f"{p}a{p}" for p in PIECES]
    out += [w + tail for w in WORDS for tail in ("\n", " ", "_", ": a")]
    out += [head + w for w in WORDS for head in (" ", "\n", "a\n")]
    out += ["\n".join((a, b, c)) for a in LINES for b in LINES[::3] for c in LINES[::4]]
    return list(dict.fromkeys(out))


def shapes(text: str) -> dict[str, Any]:
    """The places in a manifest where a string can stand."""
    return {
        "value": {"a": text},
        "key": {text: "a"},
        "nested": {"a": {"b": [text, {text: [text, {"c": text}]}], text: {"d": text}}, "e": text},
    }


def digest(dumped: str) -> str:
    """The name of a dumped text in `dumped.txt`."""
    return hashlib.sha256(dumped.encode()).hexdigest()[:16]


def ask(cases: list[dict[str, str]]) -> list[dict[str, Any]]:
    """What the reference program says about each case."""
    done = subprocess.run(
        ["go", "run", "."],
        cwd=HERE / "reference",
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def rebuild_parse() -> None:
    """`parse.json`: Argo CD's outcome for each of `cases.json`."""
    cases = json.loads((HERE / "cases.json").read_text("utf-8"))
    answers = ask([{"name": case["name"], "input": case["input"]} for case in cases])
    lines = ",\n".join(f"  {json.dumps(answer)}" for answer in answers)
    (HERE / "parse.json").write_text(f"[\n{lines}\n]\n", "utf-8")


def rebuild_dumped() -> None:
    """`strings.json` and `dumped.txt`: one line `digest verdict` for each dumped text."""
    texts = strings()
    (HERE / "strings.json").write_text("[\n" + ",\n".join(map(json.dumps, texts)) + "\n]\n", "utf-8")
    values = [value for text in texts for value in shapes(text).values()]
    dumped = [yamlio.dump(value) for value in values]
    answers = ask([{"name": digest(text), "input": text} for text in dumped])
    verdicts = {}
    for answer, value in zip(answers, values, strict=True):
        if "error" in answer:
            verdicts[answer["name"]] = "refused"
        else:
            verdicts[answer["name"]] = "same" if answer.get("objects") == [value] else "changed"
    (HERE / "dumped.txt").write_text("".join(f"{k} {v}\n" for k, v in sorted(verdicts.items())), "utf-8")


if __name__ == "__main__":
    rebuild_parse()
    rebuild_dumped()
