"""What can be told of a render, without a secret."""

from __future__ import annotations

from typing import Any

from becalm.pipeline import Request, Result


def report(request: Request, result: Result) -> dict[str, Any]:
    """A render's record."""
    return {"source": request.kind, "runs": result.runs, "bytes": len(result.output)}
