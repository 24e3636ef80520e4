"""What a forked child does: one render, with the client's directory, environment and files."""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from becalm import console
from becalm.answers import Answer
from becalm.config import load
from becalm.generating import generate
from becalm.report import source_of
from becalm.request import Request
from becalm.service import forked, handed


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a client asks for: open files of its directory, output and errors, and the environment of `generate`."""

    directory: int
    output: int
    errors: int
    environment: dict[bytes, bytes]


def start(order: Order, record: int) -> tuple[int, int]:
    """Fork the process of a render.

    Returns:
        Its process id, and an open file that says `exit CODE` in a line as soon as output and errors are complete.

    Raises:
        OSError: the machine has no room for it; nothing of it is left.
    """
    reading, notice = os.pipe()
    try:
        own = os.getpid()
        pid = os.fork()
        if pid == 0:
            _run(order, record, notice, service=own)
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(notice)
    return pid, reading


def _run(order: Order, record: int, notice: int, *, service: int) -> NoReturn:
    """Render and end the process with the exit code of `generate`.

    Args:
        order: the render.
        record: an open file for what can be told of it, as JSON. A reader may have left in it what it found.
        notice: a pipe that is told how the render ended, as soon as output and errors are complete.
        service: the process id of the service, with which the render ends.
    """
    code = 70
    try:
        forked.begin(service)
        _become(order, record, notice)
        missed, stopwatch = handed.taken(3)
        told: dict[str, Any] = {}
        found: list[Answer] = []
        begun: list[Request] = []

        def rendered() -> str:
            found.append(generate(stopwatch, begun.append, missed))
            return found[0].output

        code = console.guarded(rendered, told=lambda line: told.update(error=line))
        sys.stderr.flush()
        os.write(4, f"exit {code}\n".encode())
        if code == 0:
            told |= found[0].finish()
        elif begun:
            told["source"] = source_of(begun[0])
        forked.put(3, forked.line({**told, "stages": stopwatch.seconds()}))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        # Nothing of the parent's is to run: no exit handler, no destructor.
        os._exit(code)


def _become(order: Order, record: int, notice: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.fchdir(order.directory)
    # Numbers above the highest that is needed here, so that none is overwritten before it is copied.
    copies = [os.dup(number) for number in (null, order.output, order.errors, record, notice)]
    for target, number in enumerate(copies):
        os.dup2(number, target, inheritable=target < 3)
    os.closerange(5, forked.LAST)
    load.replace_environment(order.environment)
    # One render and the end: collecting would only touch, and so copy, the parent's memory.
    gc.disable()
