"""The parameters that an app team can set in `source.plugin.parameters` (ARGOCD_APP_PARAMETERS).

`parameters.schema.json` is the one source of what there is: of this check, of what Argo CD's UI offers, and of
docs/parameters.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from becalm.cmp import kustomize_parameters
from becalm.cmp.kustomize_parameters import KustomizeParameters
from becalm.config.schema import first_error, packaged
from becalm.errors import ConfigError, ManifestError, nearest
from becalm.manifests import yamlio

EPOCH = "becalm.epoch"
EPOCHS = "becalm.epochs"
SEED = "becalm.seed"
RULES = "becalm.rules"
SOURCE = "becalm.source"
WHERE = "source.plugin.parameters"
#: The field of a parameter that holds its value, by its type in the schema
#: (pkg/apis/application/v1alpha1/types.go, ApplicationSourcePluginParameter).
_FIELDS = {"string": "string", "array": "array", "object": "map"}
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmParameters:
    """What Argo CD's own Helm source calls by the same names; empty where nothing is set.

    `values` is the text of `valuesObject`, else of `values`.
    """

    release_name: str = ""
    namespace: str = ""
    value_files: tuple[str, ...] = ()
    ignore_missing_value_files: bool = False
    values: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    string_parameters: Mapping[str, str] = field(default_factory=dict)
    file_parameters: Mapping[str, str] = field(default_factory=dict)
    skip_crds: bool = False
    skip_tests: bool = False
    skip_schema_validation: bool = False
    pass_credentials: bool = False
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    is_upgrade: bool = False
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartParameters:
    """Which chart is meant, where it is not that of the app's directory: a path, or a repository, name and version."""

    path: str = ""
    repository: str = ""
    name: str = ""
    version: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is not that of the app's directory."""
        return bool(self.path or self.repository)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What is set: the app's epoch, epochs by item, the seed to stay on, switches of rules, helm; else empty.

    `source` is the kind of the source, `version` that of its tool, and `given` are the names of all that is set.
    """

    epoch: str = ""
    epochs: Mapping[str, str] = field(default_factory=dict)
    seed: str = ""
    rules: tuple[str, ...] = ()
    helm: HelmParameters = field(default_factory=HelmParameters)
    chart: ChartParameters = field(default_factory=ChartParameters)
    recurse: bool = False
    include: str = ""
    exclude: str = ""
    source: Literal["helm", "kustomize", "chain", "directory", ""] = ""
    version: str = ""
    kustomize: KustomizeParameters = field(default_factory=KustomizeParameters)
    given: frozenset[str] = frozenset()


def read(text: str) -> Parameters:
    """Read the variable: a JSON array of objects with `name` and one of `string`, `array` and `map`.

    Raises:
        ConfigError: it is something else, or a parameter is unknown, repeated, or not what it may be.
    """
    found: dict[str, Any] = {}
    for entry in _entries(text):
        name = str(entry.get("name") or "")
        if name not in schema()["properties"]:
            raise _unknown(name)
        if name in found:
            raise ConfigError("the parameter is set twice", where=f"{WHERE}: {name}")
        wanted = collection(name)
        given = [kind for kind in ("string", "array", "map") if entry.get(kind) is not None]
        if given != [wanted]:
            raise ConfigError(
                f"the parameter has the wrong type ({' and '.join(given) or 'no value'})",
                where=f"{WHERE}: {name}",
                hint=f"set its `{wanted}`",
            )
        found[name] = entry[wanted]
    if found:
        _check(found)
    return Parameters(
        epoch=found.get(EPOCH, ""),
        epochs=found.get(EPOCHS, {}),
        seed=found.get(SEED, ""),
        rules=tuple(found.get(RULES, ())),
        helm=HelmParameters(
            release_name=found.get("releaseName", ""),
            namespace=found.get("namespace", ""),
            value_files=tuple(found.get("valueFiles", ())),
            ignore_missing_value_files=found.get("ignoreMissingValueFiles") == "true",
            values=found.get("valuesObject") or found.get("values", ""),
            parameters=found.get("parameters", {}),
            string_parameters=found.get("stringParameters", {}),
            file_parameters=found.get("fileParameters", {}),
            skip_crds=found.get("skipCrds") == "true",
            skip_tests=found.get("skipTests") == "true",
            skip_schema_validation=found.get("skipSchemaValidation") == "true",
            pass_credentials=found.get("passCredentials") == "true",
            kube_version=found.get("kubeVersion", ""),
            api_versions=tuple(found.get("apiVersions", ())),
            is_upgrade=_is_upgrade(found),
            revision=int(found.get("release.revision") or 1),
        ),
        chart=_chart(found),
        recurse=found.get("directory.recurse") == "true",
        include=found.get("directory.include", ""),
        exclude=found.get("directory.exclude", ""),
        source=found.get(SOURCE, ""),
        version=found.get("version", ""),
        kustomize=kustomize_parameters.read(found),
        given=frozenset(found),
    )


def _is_upgrade(found: Mapping[str, Any]) -> bool:
    """A second revision is an upgrade, unless the contrary is said."""
    return bool(
        (found.get("release.isUpgrade") or ("true" if int(found.get("release.revision") or 1) > 1 else ""))
        == "true"
    )


def from_file(path: Path) -> Parameters:
    """The parameters of a YAML or JSON file: a list as in `source.plugin.parameters`, or a whole Application.

    Raises:
        ConfigError: the file is something else, or a parameter is wrong.
    """
    where = f"--parameters {path}"
    try:
        value: Any = yamlio.load(path.read_text("utf-8"), where=where)
    except (OSError, UnicodeError) as error:
        raise ConfigError("the file cannot be read", where=where, hint="check its path") from error
    except ManifestError as error:
        raise ConfigError(error.what, where=error.where, hint=error.hint) from error
    if isinstance(value, dict):
        spec: Any = value.get("spec") or {}
        sources = [spec.get("source"), *(spec.get("sources") or [])]
        plugins = [
            one["plugin"] for one in sources if isinstance(one, dict) and isinstance(one.get("plugin"), dict)
        ]
        if value.get("kind") != "Application" or not plugins:
            raise _no_parameters(where)
        value = plugins[0].get("parameters")
    elif not isinstance(value, list):
        raise _no_parameters(where)
    return read(json.dumps(value))


def _no_parameters(where: str) -> ConfigError:
    return ConfigError(
        "the file is neither a list of parameters nor an Application with a plugin",
        where=where,
        hint="write what is below spec.source.plugin.parameters",
    )


def _chart(found: Mapping[str, Any]) -> ChartParameters:
    chart = ChartParameters(
        path=found.get("chart.path", ""),
        repository=found.get("chart.repository", ""),
        name=found.get("chart.name", ""),
        version=found.get("chart.version", ""),
    )
    if bool(chart.repository) != bool(chart.name) or (chart.version and not chart.repository):
        raise ConfigError(
            "chart.repository and chart.name belong together",
            where=f"{WHERE}: chart.repository",
            hint="set both, and chart.version",
        )
    if chart.path and chart.repository:
        raise ConfigError(
            "chart.path is for charts of this repository",
            where=f"{WHERE}: chart.path",
            hint="set one of the two",
        )
    return chart


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of an application's parameters, by name."""
    return packaged("becalm.cmp", "parameters.schema.json")


def form(name: str) -> dict[str, Any]:
    """What the schema says of one parameter, with what it refers to."""
    entry: dict[str, Any] = schema()["properties"][name]
    reference = entry.get("$ref")
    return entry if reference is None else {**schema()["$defs"][reference.rpartition("/")[2]], **entry}


def collection(name: str) -> str:
    """The field of an Argo CD parameter that holds the value: `string`, `array` or `map`."""
    return _FIELDS[form(name)["type"]]


def announcement() -> list[dict[str, Any]]:
    """What Argo CD's UI offers to set (cmpserver/apiclient, ParameterAnnouncement)."""
    found = []
    for name in schema()["properties"]:
        entry = form(name)
        one = {"name": name, "title": entry["title"], "tooltip": entry["description"]}
        if collection(name) != "string":
            one["collectionType"] = collection(name)
        found.append(one)
    return found


def flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The single values of a chart as `--set` names them, with their defaults as texts; no lists."""
    for key, value in values.items():
        name = prefix + key.replace("\\", "\\\\").replace(".", "\\.").replace(",", "\\,")
        if isinstance(value, dict):
            yield from flattened(value, f"{name}.")
        elif isinstance(value, bool):
            yield name, "true" if value else "false"
        elif value is not None and not isinstance(value, list):
            yield name, str(value)


def _entries(text: str) -> list[dict[str, Any]]:
    try:
        entries = json.loads(text or "null") or []
    except ValueError as error:
        raise ConfigError("the value is not JSON", where="ARGOCD_APP_PARAMETERS") from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError("the value is not a list of parameters", where="ARGOCD_APP_PARAMETERS")
    return entries


def _unknown(name: str) -> ConfigError:
    names = list(schema()["properties"])
    hint = nearest(name, names, otherwise=f"the parameters are {', '.join(sorted(names))}")
    return ConfigError(f"{name[:_SHOWN]!r} is no parameter of becalm", where=WHERE, hint=hint)


def _check(found: Mapping[str, Any]) -> None:
    first = first_error(found, schema())
    if first is None:
        return
    name = str(first.absolute_path[0])
    place = ": ".join([WHERE, *map(str, first.absolute_path)])
    limit: Any = first.validator_value
    if first.validator == "enum":
        raise ConfigError(
            f"{str(first.instance)[:_SHOWN]!r} is not allowed",
            where=place,
            hint=f"write {' or '.join(limit)}",
        )
    example = f"for example {json.dumps(form(name)['examples'][0])}"
    if first.validator == "pattern":
        # Names and versions; what may be a secret has no pattern.
        raise ConfigError(f"{str(first.instance)[:_SHOWN]!r} is not allowed", where=place, hint=example)
    if first.validator == "type" and limit == "string":
        raise ConfigError("the value is no string", where=place, hint=f"put it in quotes, {example}")
    # The value itself may be a secret, and long; its limit says enough.
    raise ConfigError(
        f"the value does not fit: {first.validator} {str(limit)[:_SHOWN]}",
        where=place,
        hint=example,
    )
