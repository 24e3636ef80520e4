"""What `becalm generate` does, in a process of its own or in a child of the service."""

from __future__ import annotations

from collections.abc import Callable

from becalm import console, wiring
from becalm.answers import Answer, Missed, answer, look
from becalm.config import load, memory
from becalm.errors import ConfigError
from becalm.request import Request
from becalm.sources.process import forward_termination
from becalm.stages import Stopwatch


def _nobody(_: Request) -> None:
    """Nobody wants to know."""


def kept(stopwatch: Stopwatch) -> Answer | Missed:
    """The answer to `generate` that was kept, if there is one. Nothing is printed, and nothing rendered.

    Raises:
        PluginError: it cannot be told.
    """
    memory.bound(load.environment())
    return look(wiring.from_environment(), stopwatch)


def generate(
    stopwatch: Stopwatch | None = None,
    begun: Callable[[Request], None] = _nobody,
    missed: Missed | None = None,
) -> Answer:
    """Render the application that the environment describes, in the current directory, and print its warnings.

    Args:
        stopwatch: measures the stages.
        begun: is given what will be rendered, before that begins.
        missed: somebody has looked into the cache already.

    Raises:
        PluginError: it cannot be rendered, or renders to nothing.
    """
    memory.bound(load.environment())
    with forward_termination():
        request = wiring.from_environment()
        begun(request)
        found = answer(request, stopwatch, missed)
    for line in found.warnings:
        console.warn(line)
    if not found.output.strip():
        raise ConfigError(
            "the source renders to nothing, and Argo CD would delete everything",
            where=request.application.name,
            hint="no file of the directory holds an object, and it has no Chart.yaml and no kustomization.yaml; check the path"
            if request.kind == "directory"
            else "check the values and the path, or remove the Application",
        )
    return found
