"""What all tests share."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--soak", default=0, type=float, metavar="SECONDS", help="for so long many calls are made at once"
    )


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keys are cached away from the user's own; other tests of the same run may find them there."""
    os.environ["BECALM_CACHE_DIR"] = str(tmp_path_factory.getbasetemp().parent / "becalm-cache")
