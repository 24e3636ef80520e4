"""How helm and Kustomize say that they were refused memory: Go's runtime, in a stack trace of many lines."""

from __future__ import annotations

import re

from becalm.errors import ToolFailedError
from becalm.sources.process import Completed

#: runtime/malloc.go, runtime/mem_linux.go: `throw("runtime: out of memory")` and its like.
_WORDS = re.compile(
    rb"^(fatal error: |runtime: )(runtime: )?(out of memory|cannot (allocate|map|reserve))", re.MULTILINE
)


def of_memory(done: Completed, name: str) -> ToolFailedError | None:
    """The error of a tool that had too little memory; None where it has another one."""
    if done.returncode == 0 or not _WORDS.search(done.stderr):
        return None
    return ToolFailedError(
        f"{name} needs more memory than it may take",
        hint="make the application smaller, or raise BECALM_CHILD_BYTES",
    )
