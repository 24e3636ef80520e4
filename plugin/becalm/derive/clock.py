"""The clock: the only place that reads it. Nothing but the choice of certificates' windows depends on it."""

from __future__ import annotations

import time


def now() -> int:
    """Seconds since 1970-01-01T00:00:00Z."""
    return int(time.time())
