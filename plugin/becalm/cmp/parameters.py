"""The parameters that an app team can set in `source.plugin.parameters` (ARGOCD_APP_PARAMETERS)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from becalm.errors import ConfigError

EPOCH = "becalm.epoch"
EPOCHS = "becalm.epochs"
SEED = "becalm.seed"
RULES = "becalm.rules"
_WHERE = "source.plugin.parameters"
#: The field of a parameter that holds its value (pkg/apis/application/v1alpha1/types.go,
#: ApplicationSourcePluginParameter).
TYPES = {EPOCH: "string", EPOCHS: "map", SEED: "string", RULES: "array"}
_LONGEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What is set: the app's epoch, epochs by item, the seed to stay on, switches of rules; else empty."""

    epoch: str = ""
    epochs: Mapping[str, str] = field(default_factory=dict)
    seed: str = ""
    rules: tuple[str, ...] = ()


def read(text: str) -> Parameters:
    """Read the variable: a JSON array of objects with `name` and one of `string`, `array` and `map`.

    Raises:
        ConfigError: it is something else, or a parameter is unknown, repeated, or of the wrong type.
    """
    found: dict[str, Any] = {}
    for entry in _entries(text):
        name = entry.get("name")
        if name not in TYPES:
            raise ConfigError(
                f"{name!r} is no parameter of becalm",
                where=_WHERE,
                hint=f"the parameters are {', '.join(sorted(TYPES))}; put values for the chart into its values.yaml",
            )
        if name in found:
            raise ConfigError("the parameter is set twice", where=f"{_WHERE}: {name}")
        wanted = TYPES[name]
        given = [kind for kind in ("string", "array", "map") if entry.get(kind) is not None]
        if given != [wanted]:
            raise ConfigError(
                "the parameter has the wrong type", where=f"{_WHERE}: {name}", hint=f"set its `{wanted}`"
            )
        found[name] = _value(name, entry[wanted])
    return Parameters(
        epoch=found.get(EPOCH, ""),
        epochs=found.get(EPOCHS, {}),
        seed=found.get(SEED, ""),
        rules=tuple(found.get(RULES, ())),
    )


def _entries(text: str) -> list[dict[str, Any]]:
    try:
        entries = json.loads(text or "null") or []
    except ValueError as error:
        raise ConfigError("the value is not JSON", where="ARGOCD_APP_PARAMETERS") from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError("the value is not a list of parameters", where="ARGOCD_APP_PARAMETERS")
    return entries


def _value(name: str, value: object) -> object:
    texts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and len(text) <= _LONGEST for text in texts):
        raise ConfigError(f"a value is no text of at most {_LONGEST} characters", where=f"{_WHERE}: {name}")
    return value
