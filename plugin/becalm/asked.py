"""What Argo CD's own sources would tell helm and Kustomize, from the parameters that an application sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from becalm.cmp import kustomize_parameters, parameters, substitution
from becalm.cmp.environment import ApplicationEnvironment
from becalm.cmp.parameters import Parameters
from becalm.config import load
from becalm.errors import ConfigError
from becalm.sources import remote_values, value_files
from becalm.sources.detect import Kind
from becalm.sources.edits import KustomizeOptions
from becalm.sources.helm import HelmOptions
from becalm.sources.remote_values import RemoteFile
from becalm.sources.sourcing import RemoteValues

#: Parameters that charts alone have; the others have a meaning for Kustomize, or for becalm.
_HELM_ONLY = frozenset((
    "releaseName", "valueFiles", "ignoreMissingValueFiles", "values", "valuesObject", "parameters", "stringParameters",
    "fileParameters", "skipCrds", "skipTests", "skipSchemaValidation", "passCredentials",
    "chart.path", "chart.repository", "chart.name", "chart.version", "release.isUpgrade", "release.revision",
))  # fmt: skip
_HELM_VERSIONS = ("", "v3", "v4")
_KUSTOMIZE_ONLY = frozenset(kustomize_parameters.NAMES)
_DIRECTORY_ONLY = frozenset(("directory.recurse", "directory.include", "directory.exclude"))
#: By kind of source: what that is called, and the parameters that do nothing there, with what they are for.
_FOREIGN: Mapping[str, tuple[str, Mapping[str, frozenset[str]]]] = {
    "helm": ("this is a chart", {"Kustomizations": _KUSTOMIZE_ONLY, "plain manifests": _DIRECTORY_ONLY}),
    "kustomize": ("this is a Kustomization", {"charts": _HELM_ONLY, "plain manifests": _DIRECTORY_ONLY}),
    "chain": ("this is a chart and a Kustomization", {"plain manifests": _DIRECTORY_ONLY}),
    "directory": (
        "these are plain manifests",
        {
            "charts": _HELM_ONLY | {"namespace", "kubeVersion", "apiVersions", "version"},
            "Kustomizations": _KUSTOMIZE_ONLY,
        },
    ),
}


def refuse_foreign(given: Parameters, kind: Kind) -> None:
    """Refuse parameters that would do nothing.

    Raises:
        ConfigError: one is for another kind of source.
    """
    this, others = _FOREIGN[kind]
    for other, names in others.items():
        for name in sorted(names & given.given):
            raise ConfigError(
                f"the parameter is for {other}, and {this}",
                where=f"{parameters.WHERE}: {name}",
                hint="remove it, or set becalm.source",
            )


def require_version(given: Parameters, kind: Kind) -> None:
    """Refuse a version of helm that Argo CD refuses (util/helm/cmd.go, `NewCmd`); Kustomize's is looked up.

    Raises:
        ConfigError: it is none.
    """
    if kind in ("helm", "directory") and given.version not in _HELM_VERSIONS:
        raise ConfigError(
            f"{given.version!r} is no version of helm",
            where=f"{parameters.WHERE}: version",
            hint="write v3 or v4, or remove it: the operator chooses the helm",
        )


def helm(
    app: ApplicationEnvironment, variables: Mapping[str, str], directory: Path, root: Path
) -> tuple[HelmOptions, tuple[RemoteValues, ...]]:
    """What Argo CD's own Helm source would tell helm (reposerver/repository, `helmTemplate`).

    Values files from addresses come apart, since they are not here yet.

    Args:
        app: the application.
        variables: the environment, of which Argo CD's are replaced where Argo CD does it.
        directory: the application's.
        root: the repository, which no file may leave.

    Raises:
        ConfigError: a file or a variable is refused.
        SourceError: a file is not there.
    """
    asked = app.parameters.helm

    def expanded(text: str) -> str:
        return substitution.expand(text, variables)

    where = f"{parameters.WHERE}: valueFiles"
    value_files.refuse_other_sources(asked.value_files, substitution.NAMES, where=where)
    files = value_files.resolve(
        [expanded(name) for name in asked.value_files],
        app=directory,
        root=root,
        ignore_missing=asked.ignore_missing_value_files,
        where=where,
        urls=load.words(variables.get(remote_values.VARIABLE, "")),
    )
    where = f"{parameters.WHERE}: fileParameters"
    for name in asked.file_parameters:
        if _TWO.search(name):
            # helm would read a second name and file in it.
            raise ConfigError(
                f"{name[:60]!r} is no name of one value", where=where, hint="write for example a.b"
            )
    contents = {
        name: value_files.single(expanded(path), app=directory, root=root, where=where)
        for name, path in asked.file_parameters.items()
    }
    options = HelmOptions(
        release=asked.release_name or app.release,
        namespace=asked.namespace or app.namespace,
        values=tuple(file for file in files if isinstance(file, Path)),
        inline=asked.values,
        sets=_assignments(asked.parameters, expanded),
        set_strings=_assignments(asked.string_parameters, expanded),
        set_files=tuple(f"{name}={path}" for name, path in sorted(contents.items())),
        kube_version=_three_numbers(asked.kube_version) or app.kube_version,
        api_versions=asked.api_versions or app.api_versions,
        skip_crds=asked.skip_crds,
        skip_tests=asked.skip_tests,
        skip_schema_validation=asked.skip_schema_validation,
        is_upgrade=asked.is_upgrade,
        revision=asked.revision,
    )
    remote = enumerate(files)
    return options, tuple(
        RemoteValues(at=at, file=file) for at, file in remote if isinstance(file, RemoteFile)
    )


_TWO = re.compile(r"[,={}\x00-\x1f]")
_NUMBERS = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


def _three_numbers(version: str) -> str:
    """`v1.30.2-eks-1` as `1.30.2` (util/helm, `parseKubeVersion`); "" stays so."""
    match = _NUMBERS.match(version)
    return "" if match is None else ".".join(str(int(number or 0)) for number in match.groups())


def _assignments(pairs: Mapping[str, str], expanded: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(f"{name}={_without_commas(expanded(value))}" for name, value in sorted(pairs.items()))


_BARE_COMMA = re.compile(r"(?<!\\),")


def _without_commas(value: str) -> str:
    """A value whose commas end nothing, but for a list in braces (util/helm/cmd.go, `cleanSetParameters`)."""
    is_list = value.startswith("{") and value.endswith("}")
    return value if is_list else _BARE_COMMA.sub(r"\\,", value)


def kustomize(
    given: Parameters, variables: Mapping[str, str], *, kube_version: str, api_versions: tuple[str, ...]
) -> KustomizeOptions:
    """What Argo CD's own Kustomize source would tell Kustomize (util/kustomize, `Build`).

    Args:
        given: the parameters.
        variables: the environment, of which Argo CD's are replaced where Argo CD does it.
        kube_version: the application's, else the cluster's.
        api_versions: likewise.
    """
    asked = given.kustomize

    def expanded(text: str) -> str:
        return substitution.expand(text, variables)

    return KustomizeOptions(
        name_prefix=asked.name_prefix,
        name_suffix=asked.name_suffix,
        images=tuple(map(expanded, asked.images)),
        replicas=asked.replicas,
        common_labels={name: expanded(value) for name, value in asked.common_labels.items()},
        force_common_labels=asked.force_common_labels,
        label_without_selector=asked.label_without_selector,
        label_include_templates=asked.label_include_templates,
        common_annotations={
            name: expanded(value) if asked.common_annotations_envsubst else value
            for name, value in asked.common_annotations.items()
        },
        force_common_annotations=asked.force_common_annotations,
        namespace=given.helm.namespace,
        components=asked.components,
        ignore_missing_components=asked.ignore_missing_components,
        patches=asked.patches,
        kube_version=kube_version,
        api_versions=api_versions,
    )
