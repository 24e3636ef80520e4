"""How every process that the service forks for renders begins, and how it tells of one."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

#: Of a record in one line; without the differences a longer one is told.
LARGEST = 4 * 1024 * 1024
#: Higher than any open file's number.
LAST = 1 << 16
_PR_SET_PDEATHSIG = 1


def begin(service: int) -> None:
    """Leave the service's signals and process group, and end with the service.

    The kernel sends SIGTERM, which ends a render and its helm, when the service ends however it does (prctl(2)).
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != service:
        os._exit(143)
    signal.set_wakeup_fd(-1)
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(caught, signal.SIG_DFL)
    os.setsid()


def line(told: Mapping[str, Any]) -> bytes:
    """A record as JSON."""
    data = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    if len(data) > LARGEST:
        data = json.dumps({**told, "diffs": [], "truncated": True}, ensure_ascii=False).encode(
            "utf-8", "replace"
        )
    return data if len(data) <= LARGEST else b"{}"


def put(number: int, data: bytes) -> None:
    """Write all of it into an open file.

    Raises:
        OSError: there is no room.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(number, view) :]


def content(number: int) -> bytes:
    """All that is in a file in memory."""
    return os.pread(number, os.fstat(number).st_size, 0)


def clear(number: int) -> None:
    """Have nothing in a file in memory, and begin at its start."""
    os.ftruncate(number, 0)
    os.lseek(number, 0, os.SEEK_SET)
