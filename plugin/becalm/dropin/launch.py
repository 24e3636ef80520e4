"""Finds the real helm, and becomes it.

Every command passes here, and Kustomize runs several per chart, so this imports nothing that Python has not loaded
by itself. Errors are imported where one is raised.
"""

from __future__ import annotations

import os
import signal
import sys

# As typing has it, which takes longer to load than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

VARIABLE = "BECALM_HELM"
_SCRIPT = 4096


def environment() -> dict[str, str]:
    """The environment that this process was started with.

    Python adds LC_CTYPE to it in the C locale (PEP 538), which no child of helm shall see.
    """
    variables = dict(os.environ)
    try:
        with open("/proc/self/environ", "rb") as file:
            first = {entry.partition(b"=")[0] for entry in file.read().split(b"\0")}
    except OSError:
        return variables
    return {name: value for name, value in variables.items() if os.fsencode(name) in first}


def find(variables: Mapping[str, str]) -> str:
    """The path of the real helm: BECALM_HELM, else `helm` in the PATH, but never this program.

    Raises:
        ToolMissingError: there is none.
        ConfigError: there is only this program.
    """
    wanted = variables.get(VARIABLE) or "helm"
    candidates = [wanted]
    if "/" not in wanted:
        folders = variables.get("PATH", os.defpath).split(":")
        candidates = [f"{folder or '.'}/{wanted}" for folder in folders]
    looped = ""
    for path in candidates:
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            continue
        if not _is_this(path):
            return path
        looped = path
    raise _missing(wanted, looped)


def _is_this(path: str) -> bool:
    """Whether a program is `becalm-helm`, by another name, as another installation, or in a script."""
    try:
        if os.path.samefile(path, sys.argv[0]):
            return True
        with open(path, "rb") as file:
            head = file.read(_SCRIPT)
    except OSError:
        return False
    return head.startswith(b"#!") and (b"becalm-helm" in head or b"becalm.dropin" in head)


def _missing(wanted: str, looped: str) -> Exception:
    from becalm.errors import ConfigError, ToolMissingError  # noqa: PLC0415

    if looped:
        return ConfigError(
            "this is becalm-helm itself", where=looped, hint=f"set {VARIABLE} to the path of the real helm"
        )
    return ToolMissingError(
        "the program cannot be found", where=wanted, hint=f"install helm, or set {VARIABLE} to its path"
    )


def end(number: int) -> None:
    """End as a program that a signal ended."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def become(
    helm: str, arguments: Sequence[str], variables: Mapping[str, str], *, stdin: int | None = None
) -> NoReturn:
    """Let helm take the place of this process.

    Args:
        helm: its path.
        arguments: those after the program.
        variables: the environment.
        stdin: an open file for standard input, else ours.

    Raises:
        ToolMissingError: it cannot be executed.
    """
    # Python ignores these two, and a program inherits what is ignored.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    if stdin is not None:
        os.dup2(stdin, 0)
    try:
        os.execve(helm, [helm, *arguments], dict(variables))
    except OSError as error:
        from becalm.errors import ToolMissingError  # noqa: PLC0415

        raise ToolMissingError(f"the program cannot be run: {error.strerror}", where=helm) from error
