"""Stands between Kustomize and the program that renders its charts, and lets through only what Kustomize itself says.

Kustomize puts texts of a kustomization on helm's line where they can become options (`releaseName`, `name`), and
passes paths that nobody has checked (`chartHome`, `configHome`), also for kustomizations of other servers, which no one
else sees. So the line is read here, as a whole: the flags of Kustomize's own (api/types/helmchartargs.go,
`AsHelmArgs`; api/internal/builtins, `HelmChartInflationGenerator`), and paths below one directory.

It starts several times per chart, so this imports nothing that Python has not loaded by itself.
"""

from __future__ import annotations

import os
import sys

# As typing has it, which takes longer to load than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMAND = "BECALM_HELM_COMMAND"
ROOT = "BECALM_HELM_ROOT"
ALLOWED = "BECALM_CHART_REPOSITORIES"
#: By command: flags with a value, and flags without.
_FLAGS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "template": (
        ("--namespace", "--name-template", "-f", "--values", "--api-versions", "--kube-version"),
        ("--generate-name", "--include-crds", "--skip-tests", "--no-hooks", "--debug", "--devel"),
    ),
    "pull": (("--untardir", "--repo", "--version"), ("--untar", "--devel")),
    "version": ((), ("-c", "--client", "--short")),
}
_PATHS = ("-f", "--values", "--untardir")
_HOMES = ("HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME")
#: Functions of a name's template that look at the machine.
_LOOKING = ("env", "getHostByName")
_REFUSED = 3
_GIT = ("GIT_", "ARGOCD_GIT_", "ARGOCD_ASK_PASS", "ARGOCD_BINARY_NAME", "BECALM_ASKPASS_")


def main() -> int:
    """Check the line and become the program, else say what is refused."""
    variables = dict(os.environ)
    command, root = variables.pop(COMMAND, ""), variables.pop(ROOT, "")
    # What Git is given for bases is nothing for charts.
    variables = {name: value for name, value in variables.items() if not name.startswith(_GIT)}
    arguments = sys.argv[1:]
    problem = refused(arguments, root, variables) if command and root else "this runs for Kustomize only"
    if not problem:
        try:
            os.execvpe(command, [command, *arguments], variables)
        except OSError as error:
            problem = f"{command} cannot be run: {error.strerror}"
    sys.stderr.write(f"becalm refuses the chart: {problem}\n")
    return _REFUSED


def refused(arguments: Sequence[str], root: str, variables: Mapping[str, str]) -> str:
    """Why a line is refused; "" for one that may run.

    Args:
        arguments: those after the program.
        root: the directory that no path may leave.
        variables: the environment.
    """
    known = _FLAGS.get(arguments[0] if arguments else "")
    if known is None:
        return "Kustomize runs helm's template, pull and version only"
    for name in _HOMES:
        if variables.get(name) and not _inside(variables[name], root):
            return "helmGlobals.configHome leads out of the repository"
    words: list[str] = []
    source = ""
    rest = iter(arguments[1:])
    for word in rest:
        if not word.startswith("-"):
            words.append(word)
        elif word in known[0]:
            value = next(rest, "")
            source = value if word == "--repo" else source
            problem = _value(word, value, root)
            if problem:
                return problem
        elif word not in known[1]:
            return f"{word[:100]!r} would become an option of helm"
    problem = _words(arguments[0], words, root)
    if not problem and arguments[0] == "pull":
        return _source(source or words[0], variables.get(ALLOWED, ""))
    return problem


def _value(flag: str, value: str, root: str) -> str:
    # helm reads a list in CSV, and each of its entries is a path or an address.
    if flag in _PATHS and (any(sign in value for sign in ',"\r\n') or not _inside(value, root)):
        return f"{flag} leads out of the repository"
    if flag == "--name-template" and "{{" in value and any(name in value for name in _LOOKING):
        return "nameTemplate looks at the machine"
    return ""


def _source(address: str, allowed: str) -> str:
    """Why nothing may be fetched from an address; "" for one that the operator allows."""
    from becalm.config import load  # noqa: PLC0415  # not for each of helm's commands
    from becalm.errors import PluginError  # noqa: PLC0415
    from becalm.sources import addresses  # noqa: PLC0415

    try:
        parsed = addresses.parse(address, where="helmCharts")
        patterns = load.words(allowed) or None
        addresses.require_allowed(parsed, patterns, variable=ALLOWED, where="helmCharts")
    except PluginError as error:
        return error.first_line()
    return ""


def _words(command: str, words: Sequence[str], root: str) -> str:
    """What is no flag: a release and a chart, or a chart to fetch."""
    if command == "template":
        if not 1 <= len(words) <= 2:
            return "a name and at most one releaseName are needed"
        if not words[-1].startswith("/") or not _inside(words[-1], root):
            return "the chart leads out of the repository"
        if not _is_closed(words[-1], root):
            return "a link in the chart leads out of the repository"
    if command == "pull" and (len(words) != 1 or ".." in words[0] or words[0].startswith(("/", "."))):
        return "the name is no name of a chart"
    return ""


def _is_closed(chart: str, root: str) -> bool:
    """Whether no link in a chart leads out; helm would read what it leads to, also where becalm refuses the chart."""
    for directory, folders, files in os.walk(chart):
        paths = [f"{directory}/{name}" for name in (*folders, *files)]
        if not all(_inside(path, root) for path in paths):
            return False
    return True


def _inside(path: str, root: str) -> bool:
    real, top = os.path.realpath(path), os.path.realpath(root)
    return real == top or real.startswith(top + os.sep)
