"""A Redis that replicas share, if the operator names one; without it, or while it is away, nothing is shared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from becalm.config.keeping import Keeping
from becalm.errors import ConfigError

_PREFIX = "becalm:answer:"
#: Of one entry: Redis holds everybody's in memory.
_LARGEST = 16 * 1024 * 1024
_SECONDS = 0.5
#: Of one question in all: the former is for each piece, and pieces may be single bytes.
_SECONDS_IN_ALL = 2.0


def get(keeping: Keeping, name: str) -> bytes | None:
    """An entry's bytes, if it is there."""
    if not keeping.redis:
        return None
    client = _client(keeping)
    found = _in_time(lambda: client.get(_PREFIX + name))
    return found if isinstance(found, bytes) else None


def put(keeping: Keeping, name: str, data: bytes, *, seconds: int) -> None:
    """Keep an entry for so long; where that fails, it is not kept."""
    if not keeping.redis or len(data) > _LARGEST:
        return
    client = _client(keeping)
    _in_time(lambda: client.set(_PREFIX + name, data, ex=max(seconds, 1)))


def _in_time(ask: Callable[[], Any]) -> Any:
    """What is answered in time; None where nothing is, or what is no answer."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(ask())
        except Exception:  # noqa: BLE001  # what answers may be anything: the library has no one error for nonsense
            return

    # Nobody waits for it when the process ends.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_SECONDS_IN_ALL)
    return found[0] if found else None


def _library() -> Any:
    try:
        import redis  # noqa: PLC0415  # only where one is named
    except ImportError as error:
        raise ConfigError(
            "the Python package redis is not installed",
            where="BECALM_REDIS_URL",
            hint="install becalm[redis]",
        ) from error
    return redis


@cache
def _client(keeping: Keeping) -> Any:
    redis = _library()

    try:
        return redis.Redis.from_url(
            keeping.redis,
            password=keeping.redis_password or None,
            protocol=2,
            socket_timeout=_SECONDS,
            socket_connect_timeout=_SECONDS,
            retry=None,
            retry_on_timeout=False,
        )
    except ValueError as error:
        raise ConfigError(
            "this is no address of a Redis", where="BECALM_REDIS_URL", hint="write redis://host:6379/1"
        ) from error
