"""What all tests share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keys are cached away from the user's own; other tests of the same run may find them there."""
    os.environ["BECALM_CACHE_DIR"] = str(tmp_path_factory.getbasetemp().parent / "becalm-cache")
