"""The instant that stands for the clock."""

import pytest

from becalm.derive import instant
from becalm.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T02:30:00+02:00", "2024-01-01T00:30:00Z"),
        ("2024-01-01T00:00:00.999Z", "2024-01-01T00:00:00Z"),
    ],
)
def test_is_brought_to_utc_and_whole_seconds(text: str, expected: str) -> None:
    assert instant.parse(text, where="--instant") == expected


@pytest.mark.parametrize("text", ["", "now", "2024-01-01", "2024-01-01T00:00:00", "1969-12-31T00:00:00Z"])
def test_refuses_what_has_no_zone_or_is_no_instant(text: str) -> None:
    with pytest.raises(ConfigError, match="is not an instant"):
        instant.parse(text, where="--instant")
