"""What a forked child does: one render, with the client's directory, environment and files."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from becalm import console
from becalm.answers import Answer
from becalm.config import load
from becalm.generating import generate
from becalm.report import source_of
from becalm.request import Request
from becalm.stages import Stopwatch

#: Of a record in one line; without the differences a longer one is told.
LARGEST = 4 * 1024 * 1024
_LAST = 1 << 16
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a client asks for: open files of its directory, output and errors, and the environment of `generate`."""

    directory: int
    output: int
    errors: int
    environment: dict[bytes, bytes]


def run(order: Order, record: int, notice: int, *, service: int) -> NoReturn:
    """Render and end the process with the exit code of `generate`.

    Args:
        order: the render.
        record: an open file for what can be told of it, as JSON.
        notice: a pipe that is told how the render ended, as soon as output and errors are complete.
        service: the process id of the service, with which the render ends.
    """
    code = 70
    try:
        _end_with(service)
        _become(order, record, notice)
        told: dict[str, Any] = {}
        found: list[Answer] = []
        begun: list[Request] = []
        stopwatch = Stopwatch()

        def rendered() -> str:
            found.append(generate(stopwatch, begun.append))
            return found[0].output

        code = console.guarded(rendered, told=lambda line: told.update(error=line))
        sys.stderr.flush()
        os.write(4, f"exit {code}\n".encode())
        if code == 0:
            told |= found[0].finish()
        elif begun:
            told["source"] = source_of(begun[0])
        os.write(3, _line({**told, "stages": stopwatch.seconds()}))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        # Nothing of the parent's is to run: no exit handler, no destructor.
        os._exit(code)


def _end_with(service: int) -> None:
    """Have the kernel send SIGTERM, which ends the render and its helm, when the service ends however it does (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != service:
        os._exit(143)


def _become(order: Order, record: int, notice: int) -> None:
    signal.set_wakeup_fd(-1)
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(caught, signal.SIG_DFL)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    os.fchdir(order.directory)
    # Numbers above the highest that is needed here, so that none is overwritten before it is copied.
    copies = [os.dup(number) for number in (null, order.output, order.errors, record, notice)]
    for target, number in enumerate(copies):
        os.dup2(number, target, inheritable=target < 3)
    os.closerange(5, _LAST)
    load.replace_environment(order.environment)
    # One render and the end: collecting would only touch, and so copy, the parent's memory.
    gc.disable()


def _line(told: dict[str, Any]) -> bytes:
    data = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    if len(data) > LARGEST:
        data = json.dumps({**told, "diffs": [], "truncated": True}, ensure_ascii=False).encode(
            "utf-8", "replace"
        )
    return data if len(data) <= LARGEST else b"{}"
