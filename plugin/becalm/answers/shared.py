"""A Redis that replicas share, if the operator names one; without it, or while it is away, nothing is shared."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

from becalm.config.keeping import Keeping
from becalm.errors import ConfigError

_PREFIX = "becalm:answer:"
#: Of one entry: Redis holds everybody's in memory.
_LARGEST = 16 * 1024 * 1024
_SECONDS = 0.5


def get(keeping: Keeping, name: str) -> bytes | None:
    """An entry's bytes, if it is there."""
    if not keeping.redis:
        return None
    redis = _library()

    with suppress(redis.RedisError, OSError):
        found: Any = _client(keeping).get(_PREFIX + name)
        return found if isinstance(found, bytes) else None
    return None


def put(keeping: Keeping, name: str, data: bytes, *, seconds: int) -> None:
    """Keep an entry for so long; where that fails, it is not kept."""
    if not keeping.redis or len(data) > _LARGEST:
        return
    redis = _library()

    with suppress(redis.RedisError, OSError):
        _client(keeping).set(_PREFIX + name, data, ex=max(seconds, 1))


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
