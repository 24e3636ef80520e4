"""Who asks the service for a render, how far that is, and what is told of it."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from becalm.service import forked, health
from becalm.service.child import Order
from becalm.service.listening import Message
from becalm.service.readers import Reader

_FIELDS = (
    ("app", b"ARGOCD_APP_NAME"),
    ("project", b"ARGOCD_APP_PROJECT_NAME"),
    ("namespace", b"ARGOCD_APP_NAMESPACE"),
    ("path", b"ARGOCD_APP_SOURCE_PATH"),
)
_USUAL = {"source": "unknown", "code": 0, "error": "", "runs": 0, "warnings": [], "killed": 0}


@dataclass(slots=True, eq=False)
class Client:
    """A connection, its order once that is whole, and the process that has it.

    Times are seconds of a clock that never goes back: `since` it connected, `queued` since it waits, `answered` and
    `ending` 0.0 as long as that has not happened; `waited` are seconds. `at` is seconds since 1970. Open files are -1 where there is none.
    """

    connection: socket.socket
    since: float
    at: float
    message: Message = field(default_factory=Message)
    order: Order | None = None
    app: str = ""
    pid: int = 0
    reader: Reader | None = None
    record: int = -1
    notice: int = -1
    queued: float = 0.0
    waited: float = 0.0
    answered: float = 0.0
    ending: float = 0.0
    why: str = ""

    def wait(self) -> None:
        """It waits for its turn."""
        self.queued = time.monotonic()

    def begin(self) -> None:
        """Its turn has come."""
        self.waited += time.monotonic() - self.queued

    def begin_anew(self) -> None:
        """Whoever had it has perhaps written a part."""
        assert self.order is not None
        for number in (self.order.output, self.order.errors, self.record):
            forked.clear(number)

    def close_record(self) -> None:
        """Nothing is told of it any more."""
        if self.record >= 0:
            os.close(self.record)
            self.record = -1

    def told(self, status: int) -> dict[str, Any]:
        """What there is to tell of a render that has ended with this status (negative: a signal); its record is closed."""
        found = _parsed(forked.content(self.record))
        self.close_record()
        if status < 0 and not self.why:
            found["error"] = f"the render was ended by signal {-status}"
        seconds = (self.answered or time.monotonic()) - self.since - self.waited
        return {
            **found,
            "outcome": self.why or ("failed" if status else str(found.get("outcome", "rendered"))),
            "code": status,
            "stages": {
                "queue": round(self.waited, 4),
                **found.get("stages", {}),
                "render": round(seconds, 4),
            },
            "killed": int(status < 0 or bool(self.why)),
        }

    def line(self, told: dict[str, Any]) -> dict[str, Any] | None:
        """The record of the render; None of the sample, of which nobody is told."""
        assert self.order is not None
        variables = self.order.environment
        if health.MARK in variables:
            return None
        given = {key: variables.get(name, b"").decode("utf-8", "replace") for key, name in _FIELDS}
        seconds = (self.answered or time.monotonic()) - self.since
        return {"at": self.at, **_USUAL, **told, **given, "seconds": round(seconds, 4)}


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
