"""Reading the process environment: the only place that does."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from becalm.errors import ConfigError


def environment() -> Mapping[str, str]:
    """A copy of the process environment."""
    return dict(os.environ)


def seed_bytes(path: Path) -> bytes:
    """The content of a seed file.

    Group read is allowed, since Kubernetes gives a mounted Secret to a user who is not root only
    through the group (fsGroup).

    Raises:
        ConfigError: it is missing, unreadable, or open to others.
    """
    where = str(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise ConfigError(
                f"the seed file is open to others (mode {stat.S_IMODE(mode):04o})",
                where=where,
                hint="run chmod 0600 on it, or mount the Secret with defaultMode 0440",
            )
        with path.open("rb") as file:
            return file.read(16384)
    except OSError as error:
        raise ConfigError(
            f"the seed file cannot be read: {error.strerror}",
            where=where,
            hint="check --seed, or BECALM_SEED_FILE of the sidecar",
        ) from error


def cache_directory(variables: Mapping[str, str]) -> Path | None:
    """Where slow values are kept: BECALM_CACHE_DIR, else the user's cache as the XDG base directories say.

    BECALM_CACHE_DIR=off keeps none.
    """
    chosen = variables.get("BECALM_CACHE_DIR", "")
    if chosen:
        return None if chosen == "off" else Path(chosen)
    base = variables.get("XDG_CACHE_HOME") or (f"{home}/.cache" if (home := variables.get("HOME")) else "")
    return Path(base) / "becalm" if base.startswith("/") else None
