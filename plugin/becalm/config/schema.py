"""Data that comes with becalm as JSON, and checks against JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


def packaged(package: str, name: str) -> dict[str, Any]:
    """A JSON file of a package."""
    loaded: dict[str, Any] = json.loads(resources.files(package).joinpath(name).read_text("utf-8"))
    return loaded


def first_error(value: object, form: Mapping[str, Any]) -> ValidationError | None:
    """What is wrong with a value by a JSON Schema: the error at the first place by name; None if it fits."""
    import jsonschema  # noqa: PLC0415  # loaded only where somebody's file or parameter is checked

    errors = jsonschema.Draft202012Validator(form).iter_errors(value)
    return min(errors, key=lambda error: [str(step) for step in error.absolute_path], default=None)
