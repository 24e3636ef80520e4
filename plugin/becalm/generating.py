"""What `becalm generate` does, in a process of its own or in a child of the service."""

from __future__ import annotations

from typing import Any

from becalm import answers, console, wiring
from becalm.errors import ConfigError
from becalm.sources.process import forward_termination


def generate(record: dict[str, Any] | None = None) -> str:
    """The manifests of the application that the environment describes, in the current directory.

    Args:
        record: is filled with what can be told of the render, without any secret.

    Raises:
        PluginError: it cannot be rendered, or renders to nothing.
    """
    with forward_termination():
        request = wiring.from_environment()
        answer = answers.answer(request)
    if record is not None:
        record |= answer.record
    for line in answer.warnings:
        console.warn(line)
    if not answer.output.strip():
        raise ConfigError(
            "the source renders to nothing, and Argo CD would delete everything",
            where=request.application.name,
            hint="no file of the directory holds an object, and it has no Chart.yaml and no kustomization.yaml; check the path"
            if request.kind == "directory"
            else "check the values and the path, or remove the Application",
        )
    return answer.output
