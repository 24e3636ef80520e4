"""What a reader hands to the child that renders in its place: that it looked, and how long that took.

It lies in the record's file, from which it is taken before the record is written. Making the key reads every file of the
application, so it is done once.
"""

from __future__ import annotations

import json
import time

from becalm.answers import Key, Missed
from becalm.service import forked
from becalm.stages import Stopwatch

#: Seconds for which it is taken to be so; the files of the application do not change, but mounted ones may.
_FRESH = 1.0


def leave(record: int, missed: Missed, stopwatch: Stopwatch) -> None:
    """Write it into the file of the record."""
    key = missed.key
    parts = None if key is None else [key.digest.hex(), key.operators.hex(), key.may_change]
    found = {
        "key": parts,
        "complaints": missed.complaints,
        "seconds": stopwatch.seconds(),
        "at": time.monotonic(),
    }
    forked.put(record, json.dumps(found).encode())


def taken(record: int) -> tuple[Missed | None, Stopwatch]:
    """What was left, which is not there any more, and a stopwatch that goes on; None where nobody has looked."""
    data = forked.content(record)
    forked.clear(record)
    if not data:
        return None, Stopwatch()
    found = json.loads(data)
    key = None
    if found["key"] is not None:
        digest, operators, may_change = found["key"]
        key = Key(
            digest=bytes.fromhex(digest), operators=bytes.fromhex(operators), may_change=bool(may_change)
        )
    is_old = time.monotonic() > found["at"] + _FRESH
    missed = Missed(key=key, complaints=tuple(found["complaints"]), is_old=is_old)
    return missed, Stopwatch(begun=found["seconds"])
