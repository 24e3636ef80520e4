"""What the operator says of the cache of renders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from becalm.config import load

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Of answers that are kept.

    `directory` is becalm's cache, None for no files; `bytes` is how much renders may take in it. `redis` is the address
    of a shared one, "" for none. What depends on an input that is not pinned is kept for `unpinned` seconds.
    """

    directory: Path | None = None
    bytes: int = 1024 * _MIB
    redis: str = ""
    redis_password: str = field(default="", repr=False)
    unpinned: int = 0


def read(variables: Mapping[str, str]) -> Keeping:
    """The settings of the environment.

    Raises:
        ConfigError: a variable is wrong.
    """
    usual = Keeping()
    return Keeping(
        directory=load.cache_directory(variables),
        bytes=load.number(variables, "BECALM_CACHE_BYTES", usual.bytes),
        redis=variables.get("BECALM_REDIS_URL", ""),
        redis_password=variables.get("BECALM_REDIS_PASSWORD", ""),
        unpinned=load.number(variables, "BECALM_UNPINNED_SECONDS", usual.unpinned),
    )
