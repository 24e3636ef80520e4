"""How much memory a process of a render may take, if the operator says so."""

from __future__ import annotations

import resource
from collections.abc import Mapping

from becalm.config import load

VARIABLE = "BECALM_CHILD_BYTES"
#: Becalm itself has loaded about as much.
_LEAST = 128 * 1024 * 1024


def bound(variables: Mapping[str, str]) -> None:
    """Limit what this process, and each that it starts, may write to in memory; without a setting, nothing.

    It is RLIMIT_DATA of Linux (setrlimit(2), since 4.7), which counts private memory that can be written. RLIMIT_AS would
    count what Go only reserves as well, which is more than a gibibyte before helm does anything.

    Raises:
        ConfigError: the setting is wrong.
    """
    if not variables.get(VARIABLE):
        return
    most = load.number(variables, VARIABLE, 0, least=_LEAST)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
