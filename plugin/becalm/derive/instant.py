"""The instant that stands for the clock in a render."""

from __future__ import annotations

from datetime import UTC, datetime

from becalm.errors import ConfigError

DEFAULT = "2024-01-01T00:00:00Z"


def parse(text: str, *, where: str) -> str:
    """An instant in RFC 3339, brought to UTC and whole seconds: `2024-01-01T00:00:00Z`.

    Raises:
        ConfigError: it is something else, or before the year 1970.
    """
    try:
        instant: datetime | None = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None or not 1970 <= instant.year < 9999:
        raise ConfigError(
            f"{text!r} is not an instant",
            where=where,
            hint=f"give one in RFC 3339 with its zone, for example {DEFAULT}",
        )
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> int:
    """An instant that `parse` gave, in seconds since 1970."""
    return int(datetime.fromisoformat(text).timestamp())


def written(at: int) -> str:
    """Seconds since 1970 as an instant."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
