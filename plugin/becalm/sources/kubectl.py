"""Asking a cluster through kubectl, with whatever credentials a person has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from becalm.errors import ToolFailedError
from becalm.sources.process import Command, run

_SECONDS = 60.0


def get(binary: str, path: str, *, variables: Mapping[str, str]) -> bytes | None:
    """The JSON at a path of the API; None where there is nothing.

    Args:
        binary: kubectl.
        path: of the API, escaped.
        variables: the person's environment, with what says which cluster is meant.

    Raises:
        ToolFailedError: kubectl could not ask, or was refused.
        ToolMissingError, ToolTimeoutError: it is not there, or did not end.
    """
    argv = (binary, "get", f"--raw={path}")
    done = run(Command(argv=argv, cwd=Path.cwd(), env=variables, timeout=_SECONDS))
    if done.returncode == 0:
        return done.stdout
    text = done.stderr.decode("utf-8", "replace").strip()
    if "Error from server (NotFound)" in text:
        return None
    last = text.splitlines()[-1] if text else f"exit code {done.returncode}"
    raise ToolFailedError(f"kubectl get {path}: {last[:500]}", hint="check that kubectl can read it")
