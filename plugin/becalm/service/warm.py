"""Loads, before the first fork, what every render needs."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping

from becalm.answers import key
from becalm.errors import PluginError


def warm_up(variables: Mapping[str, str]) -> None:
    """Import every module of a render, read rules and types, and the content of the programs."""
    from cryptography.hazmat.primitives.ciphers import aead  # noqa: F401, PLC0415

    from becalm import generating  # noqa: F401, PLC0415
    from becalm.cmp import parameters  # noqa: PLC0415
    from becalm.normalise import computed, packs  # noqa: F401, PLC0415
    from becalm.sources import download, remote_fetch  # noqa: F401, PLC0415
    from becalm.stabilise import epochs, stabiliser  # noqa: F401, PLC0415
    from becalm.templates import functions  # noqa: PLC0415

    # Reads the schema, and builds what checks by it.
    parameters.read('[{"name": "releaseName", "string": "sample"}]')
    key.own()
    packs.built_in()
    functions.functions()
    for name in (variables.get("BECALM_HELM") or "helm", variables.get("BECALM_KUSTOMIZE") or "kubectl"):
        found = shutil.which(name, path=variables.get("PATH", ""))
        if found is not None:
            with contextlib.suppress(OSError, PluginError):
                key.program(os.path.realpath(found))
