"""The bytes of keys, certificates and hashes that users rely on."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

VECTORS = Path(__file__).parents[2] / "vectors"
PINNED = json.loads((VECTORS / "crypto.json").read_text())
CASES = runpy.run_path(str(VECTORS / "rebuild_crypto.py"))


@pytest.fixture(scope="module")
def derived():
    return CASES["derive"]()


@pytest.mark.parametrize("name", [case[0] for case in CASES["CASES"]])
def test_bytes_are_pinned(name, derived):
    """A change of any byte is a new scheme version with a migration, never a slip."""
    assert CASES["digests"](derived[name]) == PINNED[name]


def test_every_pinned_case_is_derived(derived):
    assert list(derived) == list(PINNED)
