"""From options, or from what Argo CD and the operator set, to what a render may ask of the network."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from becalm.cmp import parameters
from becalm.cmp.parameters import Parameters
from becalm.config import network
from becalm.errors import ConfigError
from becalm.sources import sourcing
from becalm.sources.sourcing import RegistryChart, Remote, RemoteValues

#: Options that say what the sidecar's variables say, with the field of `Network` for both.
_MOUNTED = {
    "--repositories": "repositories",
    "--registry-config": "registry_config",
    "--repository-config": "repository_config",
    "--ca-file": "ca_file",
}


def from_arguments(arguments: argparse.Namespace, variables: Mapping[str, str]) -> Remote:
    """What the options say; where they say nothing, the sidecar's variables count.

    Raises:
        ConfigError: a file is not there, or the name of a chart without its repository is given.
    """
    usual = network.from_variables(variables, pass_credentials=arguments.pass_credentials)
    given = {field: getattr(arguments, field) for field in _MOUNTED.values()}
    chosen: dict[str, Any] = {
        field: network.checked(given[field], option)
        for option, field in _MOUNTED.items()
        if given[field] is not None
    }
    repository, name, version = arguments.chart_repository, arguments.chart_name, arguments.chart_version
    if bool(repository) != bool(name) or (version and not repository):
        raise ConfigError(
            "a chart needs both", where="--chart-repository and --chart-name", hint="give both, or none"
        )
    chart = RegistryChart(repository=repository, name=name, version=version, where="--chart")
    return Remote(chart=chart if repository else None, network=replace(usual, **chosen))


def as_arguments(remote: Remote) -> list[str]:
    """The same as options of `render`."""
    paths = {option: getattr(remote.network, field) for option, field in _MOUNTED.items()}
    found = [f"{option}={path}" for option, path in paths.items() if path is not None]
    found += ["--pass-credentials"] if remote.network.pass_credentials else []
    if remote.chart is not None:
        chart = remote.chart
        found += [f"--chart-repository={chart.repository}", f"--chart-name={chart.name}"]
        found.append(f"--chart-version={chart.version}")
    return found


def from_environment(
    given: Parameters,
    variables: Mapping[str, str],
    values: tuple[RemoteValues, ...],
    *,
    directory: Path,
    root: Path,
) -> Remote:
    """What an application asks for, as far as the operator's variables allow.

    Args:
        given: the application's parameters.
        variables: the environment.
        values: values files from addresses.
        directory: the application's.
        root: the repository.

    Raises:
        ConfigError: a variable is wrong.
        SourceError: `chart.path` leads out of the repository, or is not there.
    """
    chart = given.chart
    registry = RegistryChart(
        repository=chart.repository, name=chart.name, version=chart.version, where=parameters.WHERE
    )
    where = f"{parameters.WHERE}: chart.path"
    return Remote(
        chart=registry if chart.repository else None,
        path=sourcing.directory(chart.path, app=directory, root=root, where=where) if chart.path else None,
        values=values,
        network=network.from_variables(variables, pass_credentials=given.helm.pass_credentials),
    )
