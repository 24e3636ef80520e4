"""What a reader does: it looks into the cache for one order after another, and renders nothing.

It needs 2 ms for an answer that was kept. A process that is forked for it alone needs eight times as many, since it copies
pages of memory as it touches them. An order whose answer is not there goes to a process that has seen no other, with what
the look gave.
"""

from __future__ import annotations

import array
import contextlib
import gc
import os
import socket
from collections.abc import Iterator
from typing import NoReturn

from becalm import console, generating
from becalm.answers import Missed
from becalm.config import load
from becalm.service import client, forked, handed, listening
from becalm.service.child import Order
from becalm.stages import Stopwatch

#: What a reader says: output and errors are complete, it is done with the order, or the order is to be rendered.
WRITTEN, DONE, ANEW = b"exit 0\n", b"done\n", b"anew\n"
_FILES = 5
_CONTROL = 3


def run(control: socket.socket, *, service: int) -> NoReturn:
    """Read for the service until it ends the connection, and end the process.

    Args:
        control: where orders come from, as `send` writes them.
        service: the process id of the service.
    """
    code = 1
    try:
        forked.begin(service)
        os.dup2(control.fileno(), _CONTROL)
        os.closerange(_CONTROL + 1, forked.LAST)
        gc.disable()  # it ends after some hundred orders
        with socket.socket(fileno=_CONTROL) as asked:
            while True:
                with _order(asked) as found:
                    if found is None:
                        break
                    asked.sendall(_read(*found, asked))
                    os.chdir("/")
        code = 0
    finally:
        # Nothing of the parent's is to run: no exit handler, no destructor.
        os._exit(code)


def send(control: socket.socket, order: Order, record: int) -> None:
    """Give a reader an order.

    Raises:
        OSError: it is gone, or the machine has no room.
    """
    environment = os.memfd_create("environment")
    try:
        forked.put(environment, client.entries(order.environment))
        files = (order.directory, order.output, order.errors, record, environment)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
        control.sendmsg([b"\n"], rights)
    finally:
        os.close(environment)


@contextlib.contextmanager
def _order(asked: socket.socket) -> Iterator[tuple[Order, int] | None]:
    """The next order with the file of its record, which are open in the block; None where no more will come."""
    data, files, _, _ = socket.recv_fds(asked, 1, _FILES)
    try:
        if not data or len(files) != _FILES:
            yield None
            return
        directory, output, errors, record, environment = files
        variables = listening.environment(forked.content(environment))
        yield Order(directory=directory, output=output, errors=errors, environment=variables), record
    finally:
        for number in files:
            os.close(number)


def _read(order: Order, record: int, asked: socket.socket) -> bytes:
    """Write the answer that was kept and its record, or what the look gave; what is to be said of it."""
    stopwatch = Stopwatch()
    try:
        os.fchdir(order.directory)
        load.replace_environment(order.environment)
        found = generating.kept(stopwatch)
        if isinstance(found, Missed):
            handed.leave(record, found, stopwatch)
            return ANEW
        warnings = "".join(map(console.warning, found.warnings))
        forked.put(order.errors, warnings.encode("utf-8", "backslashreplace"))
        forked.put(order.output, found.output.encode())
    except Exception:  # noqa: BLE001  # whatever it is, the render meets it again, and tells it
        for number in (order.errors, order.output, record):
            forked.clear(number)
        return ANEW
    asked.sendall(WRITTEN)
    with contextlib.suppress(OSError):
        forked.put(record, forked.line({**found.finish(), "stages": stopwatch.seconds()}))
    return DONE
