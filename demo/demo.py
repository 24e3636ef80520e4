"""Show that a chart drifts with stock helm and does not with becalm.

Renders `demo/shop` twice with stock helm and twice with becalm, lists every object and field
that differed, and checks that becalm's two outputs are the same bytes and hold every object.
Values are never printed. Only the standard library is used; becalm is run as a command.

Exit codes: 0 as promised, 1 not as promised, 2 a command could not be run.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "demo" / "shop"
HELM = ROOT / ".tools" / "helm-4.1.4" / "helm"
SUBJECT = ("demo/shop", "--app", "shop", "--namespace", "shop", "--project", "default")
RENDER_SECONDS = 120
CLOCK_STEP_SECONDS = 1.1  # two renders within one second would read the same time
ERROR_LINES = 10

LINE = re.compile(r"(?P<indent> *)(?P<dashes>(?:- +)*)(?P<rest>.*)")
KEY = re.compile(r"(?P<key>\"[^\"]*\"|'[^']*'|[^\s#:'\"{\[][^:]*?):(?:\s+(?P<value>.*))?$")
CHECKSUM = re.compile(r"^ *checksum/secret: (?P<sum>[0-9a-f]{64})$", re.MULTILINE)
TOP_NAME = re.compile(r"^metadata:\n(?:  .*\n)*?  name: (?P<name>\S+)", re.MULTILINE)


class DemoError(Exception):
    """A command could not be run; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One rendered object: its identity, the template it came from and its text."""

    kind: str
    name: str
    source: str
    text: str

    @property
    def title(self) -> str:
        """The object as a person would name it."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One field that differed between two renders: the object, the path and how."""

    title: str
    path: str
    note: str


class Look:
    """Colours and signs, plain where the output is no terminal or NO_COLOR is set."""

    def __init__(self, *, colours: bool) -> None:
        self.colours = colours

    def paint(self, code: str, text: str) -> str:
        """The text in a colour, or as it is."""
        return f"\033[{code}m{text}\033[0m" if self.colours else text

    def heading(self, text: str) -> None:
        """A title with a line below."""
        print(f"\n{self.paint('1', text)}\n{self.paint('2', '-' * len(text))}")

    def verdict(self, text: str, *, good: bool) -> None:
        """One sentence, marked as kept or broken."""
        print(f"  {self.paint('32', 'ok  ') if good else self.paint('31', 'FAIL')}  {text}", flush=True)


def run(command: list[str], environment: dict[str, str]) -> str:
    """Run a command in the project's folder and return its output; DemoError if it fails."""
    try:
        child = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RENDER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"cannot run {command[0]}: {error}"
        raise DemoError(message) from error
    if child.returncode != 0:
        tail = "\n".join(child.stderr.decode(errors="replace").strip().splitlines()[:ERROR_LINES])
        message = f"{' '.join(command[:3])} ... ended with exit code {child.returncode}:\n{tail}"
        raise DemoError(message)
    return child.stdout.decode()


def split_objects(output: str) -> list[Entry]:
    """The objects of a rendered stream, in its order."""
    entries = []
    for document in re.split(r"^---[^\n]*\n", output, flags=re.MULTILINE):
        source = re.search(r"^# Source: (\S+)$", document, re.MULTILINE)
        text = "\n".join(line for line in document.splitlines() if not line.startswith("#")).strip("\n")
        kind = re.search(r"^kind: (\S+)$", text, re.MULTILINE)
        name = TOP_NAME.search(text + "\n")
        if kind:
            entries.append(
                Entry(
                    kind=kind[1],
                    name=name["name"].strip("\"'") if name else "(no name)",
                    source=source[1] if source else "",
                    text=text,
                )
            )
    return entries


def fields(text: str) -> Iterator[tuple[str, str]]:
    """Each line of an object with the path of its field.

    This reads the layout of the demo's own chart, block style throughout; it is no YAML parser.
    """
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None or not match["rest"]:
            continue
        indent = len(match["indent"]) + len(match["dashes"])
        stack = [(depth, name) for depth, name in stack if depth < indent]
        key = KEY.match(match["rest"])
        if key:
            stack.append((indent, key["key"].strip("\"'")))
        yield ".".join(name for _, name in stack), (key["value"] or "") if key else match["rest"]


def masked(before: str, after: str) -> str:
    """What two values look like, without showing them."""
    sizes = sorted({len(value.strip("\"'")) for value in (before, after)})
    return f"{'*' * min(sizes[-1], 12)}  ({' or '.join(str(size) for size in sizes)} characters)"


def compare(first: Entry, second: Entry) -> list[Drift]:
    """The fields in which two renders of one object differ."""
    before, after = list(fields(first.text)), list(fields(second.text))
    if [path for path, _ in before] != [path for path, _ in after]:
        changed = sum(
            line[:1] in "+-" for line in difflib.ndiff(first.text.split("\n"), second.text.split("\n"))
        )
        return [Drift(title=first.title, path="(layout)", note=f"{changed} lines")]
    return [
        Drift(title=first.title, path=path, note=masked(old, new))
        for (path, old), (_, new) in zip(before, after, strict=True)
        if old != new
    ]


def shared_start(first: str, second: str) -> str:
    """The characters that two names begin with alike."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return "".join(character for character, _ in same)


def find_drift(first: list[Entry], second: list[Entry]) -> list[Drift]:
    """All fields that differ between two renders, objects with a changing name included."""
    rest = {(entry.kind, entry.name): entry for entry in second}
    drift: list[Drift] = []
    unmatched: list[Entry] = []
    for entry in first:
        twin = rest.pop((entry.kind, entry.name), None)
        if twin is None:
            unmatched.append(entry)
        else:
            drift += compare(entry, twin)
    for entry in unmatched:
        twin = next(
            (one for one in rest.values() if (one.kind, one.source) == (entry.kind, entry.source)), None
        )
        common = shared_start(entry.name, twin.name) if twin else ""
        stable = Entry(kind=entry.kind, name=f"{common}*", source=entry.source, text=entry.text)
        if twin is None:
            drift.append(Drift(title=entry.title, path="(object)", note="only in one render"))
        else:
            del rest[twin.kind, twin.name]
            drift += compare(stable, twin)
    drift += [Drift(title=entry.title, path="(object)", note="only in one render") for entry in rest.values()]
    return drift


def checksums_that_hold(entries: list[Entry]) -> tuple[int, int]:
    """How many checksum/secret annotations are the sum of the Secret that was rendered, of how many.

    The annotation is the sum of the template's text, which ends with a line feed.
    """
    secrets = {
        entry.source: hashlib.sha256(f"{entry.text}\n".encode()).hexdigest()
        for entry in entries
        if entry.kind == "Secret"
    }
    found = [(entry, match["sum"]) for entry in entries if (match := CHECKSUM.search(entry.text))]
    held = sum(
        secrets.get(f"{entry.source.rpartition('/')[0]}/secret.yaml") == value for entry, value in found
    )
    return held, len(found)


def shape(entries: list[Entry]) -> Counter[tuple[str, str]]:
    """How many objects of which kind came from which template: what must never change."""
    return Counter((entry.kind, entry.source) for entry in entries)


def show_drift(look: Look, drift: list[Drift]) -> None:
    """The fields by object."""
    width = max(len(item.path) for item in drift)
    for title in dict.fromkeys(item.title for item in drift):
        print(f"  {look.paint('1', title)}")
        for item in drift:
            if item.title == title:
                print(f"    {look.paint('33', item.path.ljust(width))}  {look.paint('2', item.note)}")


def find_helm(given: str) -> Path:
    """The helm command, by path or by name."""
    found = shutil.which(given)
    if found is None:
        message = f"there is no helm at {given}; run `make tools` or give one: make demo HELM=/path/to/helm"
        raise DemoError(message)
    return Path(found).resolve()


def find_becalm(given: str | None) -> str:
    """The becalm command: the one given, the one beside this Python, or the one on PATH."""
    beside = Path(sys.executable).with_name("becalm")
    found = given or (str(beside) if beside.exists() else shutil.which("becalm"))
    if found is None:
        message = "there is no becalm command beside this Python or on PATH; run: make demo"
        raise DemoError(message)
    return found


def demonstrate(look: Look, helm: Path, becalm: str, scratch: Path) -> bool:
    """Do it all and say whether everything was as promised."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HELM_")},
        **{f"HELM_{kind}_HOME": str(scratch / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")},
    }
    version = run([str(helm), "version", "--short"], environment).strip()
    print(f"chart  demo/shop (web, PostgreSQL, a webhook, a packed Redis subchart)\nhelm   {version}")

    look.heading("Stock helm, rendered twice")
    stock_argv = [str(helm), "template", "shop", str(CHART), "--namespace", "shop"]
    stock = [split_objects(run(stock_argv, environment))]
    time.sleep(CLOCK_STEP_SECONDS)
    stock.append(split_objects(run(stock_argv, environment)))
    drift = find_drift(*stock)
    if drift:
        show_drift(look, drift)
    objects = len({item.title for item in drift})
    held, checksums = checksums_that_hold(stock[1])
    print(
        f"\n  {look.paint('31', f'{len(drift)} fields in {objects} of {len(stock[0])} objects drifted')};"
        f" {held} of {checksums} checksum annotations match their Secret."
        "\n  In Argo CD that is OutOfSync whenever the chart is rendered anew, and new passwords with each sync."
    )

    look.heading("becalm, rendered twice")
    seed = str(scratch / "seed")
    run([becalm, "seed", "new", seed], environment)
    calm_argv = [becalm, "render", *SUBJECT, "--seed", seed, "--helm", str(helm)]
    outputs = [run(calm_argv, environment)]
    time.sleep(CLOCK_STEP_SECONDS)
    outputs.append(run(calm_argv, environment))
    calm = [split_objects(output) for output in outputs]
    calm_drift = find_drift(*calm)
    if calm_drift:
        show_drift(look, calm_drift)
    held, checksums = checksums_that_hold(calm[0])
    complete = shape(calm[0]) == shape(stock[0])
    size = len(outputs[0].encode())
    checks = [
        (bool(drift), f"stock helm drifted ({len(drift)} fields)"),
        (
            outputs[0] == outputs[1],
            f"becalm's two outputs are the same {size} bytes, {len(calm_drift)} fields drifted",
        ),
        (complete, f"every object is there: {len(calm[0])} of {len(stock[0])}"),
        (held == checksums > 0, f"{held} of {checksums} checksum annotations match their Secret"),
    ]
    for good, sentence in checks:
        look.verdict(sentence, good=good)
    return all(good for good, _ in checks)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return the exit code."""
    parser = argparse.ArgumentParser(prog="demo.py", description="Stock helm and becalm side by side.")
    parser.add_argument("--helm", default=str(HELM), help="the helm to use (default: the pinned 4.1.4)")
    parser.add_argument("--becalm", help="the becalm command (default: the installed one)")
    options = parser.parse_args(argv)
    look = Look(colours=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    try:
        helm, becalm = find_helm(options.helm), find_becalm(options.becalm)
        with tempfile.TemporaryDirectory(prefix="becalm-demo-") as scratch:
            promised = demonstrate(look, helm, becalm, Path(scratch))
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    return 0 if promised else 1


if __name__ == "__main__":
    sys.exit(main())
