"""The readers of a service: begun when they are needed, kept for the next order, and ended when there is none for long."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import KeysView
from contextlib import suppress
from dataclasses import dataclass, field

from becalm.service import reader
from becalm.service.child import Order

#: A reader never gives memory back, so it ends after so many orders.
_MOST_ORDERS = 500
_IDLE = 60.0


@dataclass(slots=True, eq=False)
class Reader:
    """One of them: its process, and where it is asked and answers."""

    pid: int
    control: socket.socket
    orders: int = 0
    since: float = field(default_factory=time.monotonic)


class Readers:
    """Those that have not ended; each has one order, or none."""

    def __init__(self) -> None:
        self._all: dict[int, Reader] = {}
        self._idle: list[Reader] = []

    @property
    def pids(self) -> KeysView[int]:
        """Of all of them."""
        return self._all.keys()

    def hand(self, order: Order, record: int) -> Reader:
        """Have one look for the answer to an order.

        Raises:
            OSError: the machine has no room for one.
        """
        while self._idle:
            one = self._idle.pop()
            with suppress(OSError):
                return self._handed(one, order, record)
        return self._handed(self._begun(), order, record)

    def back(self, one: Reader) -> None:
        """It is done with its order."""
        one.orders += 1
        one.since = time.monotonic()
        if one.orders < _MOST_ORDERS:
            self._idle.append(one)
        else:
            one.control.close()

    def gone(self, pid: int) -> None:
        """A process has ended; nothing where it is none of them."""
        one = self._all.pop(pid, None)
        if one is None:
            return
        one.control.close()
        if one in self._idle:
            self._idle.remove(one)

    def rest(self) -> None:
        """End those that have had nothing to do for long."""
        before = time.monotonic() - _IDLE
        for one in [one for one in self._idle if one.since < before]:
            self._idle.remove(one)
            one.control.close()

    def _begun(self) -> Reader:
        ours, theirs = socket.socketpair()
        own = os.getpid()
        try:
            with theirs:
                pid = os.fork()
                if pid == 0:
                    reader.run(theirs, service=own)
        except OSError:
            ours.close()
            raise
        self._all[pid] = Reader(pid, ours)
        return self._all[pid]

    @staticmethod
    def _handed(one: Reader, order: Order, record: int) -> Reader:
        try:
            reader.send(one.control, order, record)
        except OSError:
            one.control.close()  # with which it ends
            raise
        return one
