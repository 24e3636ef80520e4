"""Reading the process environment: the only place that does."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from becalm.errors import ConfigError

_MAKE_SEED = "make one with `becalm seed new FILE`"


def environment() -> Mapping[str, str]:
    """A copy of the process environment."""
    return dict(os.environ)


def replace_environment(variables: Mapping[bytes, bytes]) -> None:
    """Give this process another environment: that of the client it renders for."""
    os.environ.clear()
    os.environb.update(variables)


def flag(variables: Mapping[str, str], name: str) -> bool:
    """A variable that is `true` or `false`, and false where it is not set.

    Raises:
        ConfigError: it is something else.
    """
    value = variables.get(name, "") or "false"
    if value not in ("true", "false"):
        raise ConfigError("the value is neither true nor false", where=name)
    return value == "true"


def words(text: str) -> tuple[str, ...]:
    """The words of a list that is separated by blanks, lines or commas."""
    return tuple(text.replace(",", " ").split())


def number(variables: Mapping[str, str], name: str, usual: int, *, least: int = 0) -> int:
    """A variable that is a whole number, and `usual` where it is not set.

    Raises:
        ConfigError: it is something else, or less than `least`.
    """
    text = variables.get(name, "")
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and int(text) >= least):
        raise ConfigError(f"{text[:60]!r} is no number from {least}", where=name, hint=f"for example {usual}")
    return int(text)


def seed_files(path: Path) -> dict[str, bytes]:
    """The contents of seed files by name: of one file, or of all files in a directory.

    Names that begin with a dot are left out, as Kubernetes keeps a mounted Secret's versions below such
    names. Group read is allowed, since Kubernetes gives a mounted Secret to a user who is not root only
    through the group (fsGroup).

    Raises:
        ConfigError: it is missing or unreadable, holds no file, or a file is open to others.
    """
    try:
        if not path.is_dir():
            return {path.name: _seed_bytes(path)}
        found = sorted(
            entry for entry in path.iterdir() if not entry.name.startswith(".") and entry.is_file()
        )
    except OSError as error:
        raise _unreadable(path, error) from error
    if not found:
        raise ConfigError("the directory holds no seed", where=str(path), hint=_MAKE_SEED)
    return {entry.name: _seed_bytes(entry) for entry in found}


def _seed_bytes(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise ConfigError(
                f"the seed file is open to others (mode {stat.S_IMODE(mode):04o})",
                where=str(path),
                hint="run chmod 0600 on it, or mount the Secret with defaultMode 0440",
            )
        with path.open("rb") as file:
            return file.read(16384)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"the seed file cannot be read: {error.strerror}",
        where=str(path),
        hint="check --seed, or BECALM_SEED_FILE of the sidecar",
    )


def cache_directory(variables: Mapping[str, str]) -> Path | None:
    """Where slow values are kept: BECALM_CACHE_DIR, else the user's cache as the XDG base directories say.

    BECALM_CACHE_DIR=off keeps none.
    """
    chosen = variables.get("BECALM_CACHE_DIR", "")
    if chosen:
        return None if chosen == "off" else Path(chosen)
    base = variables.get("XDG_CACHE_HOME") or (f"{home}/.cache" if (home := variables.get("HOME")) else "")
    return Path(base) / "becalm" if base.startswith("/") else None


def rule_files(directory: str) -> tuple[Path, ...]:
    """The rule files of a directory, such as a mounted ConfigMap, by name; none where no directory is given.

    Raises:
        ConfigError: it cannot be read.
    """
    if not directory:
        return ()
    return _files(Path(directory), (".yaml", ".yml"), "the rules", "check BECALM_RULES_DIR")


def definition_files(path: Path) -> tuple[Path, ...]:
    """A file of CustomResourceDefinitions, or those of a directory, such as a mounted ConfigMap, by name.

    Raises:
        ConfigError: it cannot be read.
    """
    if path.is_file():
        return (path.resolve(),)
    hint = "check BECALM_DEFINITIONS_DIR of the sidecar, or --definitions"
    return _files(path, (".yaml", ".yml", ".json"), "the definitions", hint)


def _files(directory: Path, endings: tuple[str, ...], what: str, hint: str) -> tuple[Path, ...]:
    """Files by name. Names that begin with a dot are Kubernetes' own in a mounted ConfigMap."""
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise ConfigError(
            f"{what} cannot be read: {error.strerror}", where=str(directory), hint=hint
        ) from error
    return tuple(entry.absolute() for entry in entries if entry.suffix in endings and entry.name[0] != ".")
