"""The commands that take a running app over: `adopt`, `diff-live` and `seed rotate`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from becalm import live, wiring
from becalm.adopt import Adoption, Rotation, adopt, depending, rotate
from becalm.config import load
from becalm.console import Ended, warn
from becalm.derive import pins as pinning
from becalm.derive import seed as seeds
from becalm.derive.labels import Label, app_key
from becalm.derive.pins import Pin
from becalm.derive.sealing import Sealer
from becalm.errors import ConfigError, counted
from becalm.live import Field, Live
from becalm.pipeline import render
from becalm.request import Request
from becalm.sources.process import forward_termination
from becalm.tables import table, times

CHANGES = 1
"""The exit code for a difference, as of `diff`."""


def run_adopt(arguments: argparse.Namespace) -> Ended:
    """Write the pins of an application, or with --check only tell."""
    if not arguments.live and not arguments.prune:
        raise ConfigError(
            "there are no live objects", where="--live", hint="name a file, or - for standard input"
        )
    if arguments.throwaway_seed and not arguments.check:
        raise ConfigError(
            "nobody could open what a throwaway seed seals",
            where="--throwaway-seed",
            hint="use the sidecar's seed with --seed, or only look with --check",
        )
    request = wiring.from_arguments(arguments)
    running = _live(arguments.live, request)
    file = pinning.load(request.pins_file)
    old = _own(request, file)
    with forward_termination():
        done = adopt(request, running, old, prune=arguments.prune)
    if not arguments.live:
        done = replace(done, rows=[row for row in done.rows if row.state == "matches nothing"], fields=[])
    is_new = _write(request, file, done.pins, is_check=arguments.check)
    output = (
        _as_json(done)
        if arguments.output == "json"
        else _report(done, request, is_new=is_new, is_check=arguments.check, is_compared=bool(arguments.live))
    )
    return Ended(output, CHANGES if arguments.check and (is_new or done.changes) else 0)


def run_difference(arguments: argparse.Namespace) -> Ended:
    """Compare every value of every Secret, and what depends on draws elsewhere, with what is live."""
    request = wiring.from_arguments(arguments)
    running = _live(arguments.live, request)
    with forward_termination():
        found = fields(request, running)
    if arguments.output == "json":
        output = json.dumps([dataclasses.asdict(one) for one in found], indent=2) + "\n"
    else:
        output = _fields(found) + _summary(found)
    return Ended(output, CHANGES if any(one.changes for one in found) else 0)


def run_rotate(arguments: argparse.Namespace) -> Ended:
    """Seal the pins of an application with another seed, or with --check only tell."""
    request = wiring.from_arguments(arguments)
    if request.seed is None:
        raise ConfigError(
            "there is no seed to rotate from", where="--seed", hint="give the one that is used now"
        )
    new = seeds.choose(load.seed_files(arguments.to), "", where=str(arguments.to))
    file = pinning.load(request.pins_file)
    with forward_termination():
        done = rotate(request, new, _own(request, file), keep=arguments.keep)
    is_new = _write(replace(request, seed=new), file, done.pins, is_check=arguments.check)
    return Ended(
        _rotated(done, request, is_new=is_new, is_check=arguments.check),
        CHANGES if arguments.check and done.changes else 0,
    )


def fields(request: Request, running: Live) -> list[Field]:
    """What a sync does to the fields of an application that hold secrets, or depend on what is drawn.

    Raises:
        PluginError: as `pipeline.render`.
    """
    done = render(request)
    for warned in (*done.warnings, *done.notices):
        warn(warned.line())
    drawn = () if done.stabilised is None else done.stabilised.draws.values()
    places = dict.fromkeys((place.object, place.path) for settled in drawn for place in settled.places)
    if done.stabilised is not None:
        places |= depending(request, running)
    key = b"" if request.seed is None else app_key(request.seed.secret, request.seed.id, request.application)
    return live.fields(live.rendered(done.output, request.options.namespace), running, places, key)


def _live(paths: Sequence[str] | None, request: Request) -> Live:
    texts = []
    for path in paths or ():
        name = "standard input" if path == "-" else path
        try:
            data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
            texts.append((name, data.decode("utf-8")))
        except OSError as error:
            raise ConfigError(f"the live objects cannot be read: {error.strerror}", where=name) from error
        except UnicodeDecodeError:
            raise ConfigError("the live objects are not UTF-8", where=name) from None
    return live.read(texts, request.options.namespace)


def _own(request: Request, file: pinning.File) -> dict[Label, Pin]:
    """The pins that are there for the application, if its epoch is still theirs."""
    if request.seed is None:
        return {}
    section = pinning.own(file, request.seed, request.application, where=request.pins_file.name)
    if section is None or section.epoch != request.epoch:
        return {}
    sealer = Sealer(request.seed, request.application)
    return pinning.unseal(section, sealer, seed=request.seed.id, where=request.pins_file.name)


def _write(request: Request, file: pinning.File, pins: Mapping[Label, Pin], *, is_check: bool) -> bool:
    """Write the file; whether it is another one than before."""
    assert request.seed is not None
    name = pinning.application_name(request.application)
    rest = {key: section for key, section in file.items() if key != name}
    if pins:
        sealer = Sealer(request.seed, request.application)
        rest[name] = pinning.seal(pins, sealer, seed=request.seed.id, epoch=request.epoch)
    if rest == file:
        return False
    if not is_check:
        write_file(request.pins_file, rest)
    return True


def write_file(path: Path, file: pinning.File) -> None:
    """Write sections, in one step; no file where there are none.

    Raises:
        ConfigError: the directory cannot be written to.
    """
    try:
        if not file:
            path.unlink(missing_ok=True)
            return
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(pinning.write(file), encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(
            f"the pins cannot be written: {error.strerror}",
            where=str(path),
            hint="run it where the repository can be changed, or use --check",
        ) from error


def _as_json(done: Adoption) -> str:
    value = {
        "draws": [dataclasses.asdict(row) for row in done.rows],
        "fields": [dataclasses.asdict(one) for one in done.fields],
    }
    return json.dumps(value, indent=2) + "\n"


def _report(done: Adoption, request: Request, *, is_new: bool, is_check: bool, is_compared: bool) -> str:
    rows: dict[tuple[str, ...], int] = {}
    for row in done.rows:
        line = (row.place, row.function, f"{row.state}: {row.why}" if row.why else row.state)
        rows[line] = rows.get(line, 0) + 1
    lines = [(place, times(function, number), state) for (place, function, state), number in rows.items()]
    nothing = "The chart draws nothing.\n" if is_compared else "Every pin matches what is drawn.\n"
    text = table([("PLACE", "FUNCTION", "STATE"), *lines]) if lines else nothing
    if is_compared:
        text += _next_sync(done)
    name = request.pins_file.name
    number = counted(len(done.pins), "pin")
    if not is_new:
        return f"{text}{name}: {number}, as before\n" if done.pins else text
    if is_check:
        return f"{text}{name}: would be written, with {number}; run it without --check\n"
    return (
        f"{text}{name}: written, with {number}; commit it beside the chart\n"
        if done.pins
        else f"{text}{name}: removed\n"
    )


def _next_sync(done: Adoption) -> str:
    changes = done.changes
    text = "\nThe next sync changes no value of a live Secret, and nothing that is drawn.\n"
    if changes:
        text = "\nThe next sync changes:\n" + table([(one.object, one.field) for one in changes])
    absent = list(dict.fromkeys(one.object for one in done.fields if one.state == "new object"))
    if absent:
        text += "Not among the live objects, so nothing is said of them: " + ", ".join(absent) + "\n"
    return text


def _rotated(done: Rotation, request: Request, *, is_new: bool, is_check: bool) -> str:
    rows: dict[tuple[str, str], int] = {}
    for one in done.changes:
        rows[one.place, one.function] = rows.get((one.place, one.function), 0) + 1
    text = "The new seed changes no value.\n"
    if rows:
        lines = [(place, times(function, number)) for (place, function), number in rows.items()]
        text = "The new seed changes:\n" + table([("PLACE", "FUNCTION"), *lines])
        text += "--keep pins them first.\n"
    verb = "would be sealed" if is_check else "sealed"
    name = request.pins_file.name
    number = counted(len(done.pins), "pin")
    return f"{text}{name}: {number} {verb} with the new seed, {done.kept} of them new\n" if is_new else text


def _fields(found: Sequence[Field]) -> str:
    rows = [(one.object, one.field, one.state, one.live or "-", one.rendered or "-") for one in found]
    return table([("OBJECT", "FIELD", "STATE", "LIVE", "RENDERED"), *rows]) if rows else ""


def _summary(found: Sequence[Field]) -> str:
    number = sum(one.changes for one in found)
    if not found:
        return "No Secret, and nothing that is drawn.\n"
    if number == 0:
        return "No value changes.\n"
    return f"{counted(number, 'value')} {'changes' if number == 1 else 'change'}.\n"
