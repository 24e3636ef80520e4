"""The flags of `helm template`, read as pflag reads them.

The table is of helm 3.13 to 4.3, hidden and deprecated flags included; a test asks the binaries. What it does not
hold is looked up in the help text of the helm at hand (`from_help`), so that a newer helm's flags work as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

#: Flags of every command that take an argument; klog's, which helm hides, come last.
GLOBAL_VALUES = (
    "burst-limit", "color", "colour", "content-cache", "kube-apiserver", "kube-as-group", "kube-as-user",
    "kube-ca-file", "kube-context", "kube-tls-server-name", "kube-token", "kubeconfig", "namespace", "qps",
    "registry-config", "repository-cache", "repository-config",
    "log-backtrace-at", "log-dir", "log-file", "log-file-max-size", "stderrthreshold", "v", "vmodule",
)  # fmt: skip
_VALUES = (
    "api-versions", "ca-file", "cert-file", "description", "key-file", "keyring", "kube-version", "labels",
    "name-template", "output-dir", "password", "post-renderer", "post-renderer-args", "repo", "set", "set-file",
    "set-json", "set-literal", "set-string", "show-only", "timeout", "username", "values", "version",
)  # fmt: skip
#: Switches, and flags whose argument may be left out: both take one only with `=`.
_SWITCHES = (
    "atomic", "create-namespace", "dependency-update", "devel", "disable-openapi-validation", "dry-run",
    "enable-dns", "force", "force-conflicts", "force-replace", "generate-name", "help", "hide-notes",
    "include-crds", "insecure-skip-tls-verify", "is-upgrade", "no-hooks", "pass-credentials", "plain-http",
    "release-name", "render-subchart-notes", "replace", "rollback-on-failure", "server-side", "skip-crds",
    "skip-schema-validation", "skip-tests", "take-ownership", "validate", "verify", "wait", "wait-for-jobs",
)  # fmt: skip
_SHORT = {
    "a": "api-versions", "f": "values", "g": "generate-name", "h": "help", "l": "labels", "n": "namespace",
    "s": "show-only", "v": "v",
}  # fmt: skip
# strconv.ParseBool
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_HELP = re.compile(r"^\s+(?:-(?P<short>\w), )?--(?P<name>[\w-]+)(?: (?P<kind>\S+))?(?: {2,}|$)", re.MULTILINE)


class NotReadError(Exception):
    """A flag that is not known, or lacks its argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The flags there are: whether each takes the next argument, by name; and names by letter."""

    takes: Mapping[str, bool]
    short: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag of a line; `value` is None where none is given."""

    name: str
    value: str | None = field(repr=False)

    def argument(self) -> str:
        """The flag as one argument, in which the value can be no other flag."""
        return f"--{self.name}" if self.value is None else f"--{self.name}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of `helm template`: flags and the other arguments, each in order."""

    flags: tuple[Flag, ...]
    arguments: tuple[str, ...]

    def values(self, *names: str) -> list[str]:
        """Every value of some flags."""
        return [flag.value for flag in self.flags if flag.name in names and flag.value is not None]

    def last(self, name: str) -> str:
        """The value that counts of a flag that can be given once, else ""."""
        return (self.values(name) or [""])[-1]

    def is_on(self, name: str) -> bool:
        """Whether a switch is on."""
        given = [flag.value for flag in self.flags if flag.name == name]
        return bool(given) and (given[-1] is None or given[-1] in _TRUE)

    def without(self, names: Iterable[str]) -> list[str]:
        """The flags as arguments, but for some."""
        left_out = frozenset(names)
        return [flag.argument() for flag in self.flags if flag.name not in left_out]

    def only(self, names: Iterable[str]) -> list[str]:
        """Some of the flags as arguments."""
        kept = frozenset(names)
        return [flag.argument() for flag in self.flags if flag.name in kept]


def known(switches: Iterable[str]) -> Known:
    """The table; `switches` are the global ones."""
    takes = dict.fromkeys((*GLOBAL_VALUES, *_VALUES), True) | dict.fromkeys((*switches, *_SWITCHES), False)
    return Known(takes=takes, short=_SHORT)


def from_help(text: str, table: Known) -> Known:
    """The table with the flags that a help text lists: `--name kind`, where `kind[=x]` may be left out."""
    takes, short = dict(table.takes), dict(table.short)
    for match in _HELP.finditer(text):
        kind = match["kind"] or ""
        takes.setdefault(match["name"], bool(kind) and "[=" not in kind)
        if match["short"]:
            short.setdefault(match["short"], match["name"])
    return Known(takes=takes, short=short)


def read(arguments: Sequence[str], table: Known) -> Line:
    """Read what follows the program, without the command (pflag's flag.go, `parseArgs`).

    Raises:
        NotReadError: helm refuses it, or is of another version.
    """
    rest = list(reversed(arguments))
    flags: list[Flag] = []
    others: list[str] = []
    while rest:
        argument = rest.pop()
        if argument == "--":
            others += reversed(rest)
            break
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            flags.append(_flag(name, value if equals else None, rest, table))
        elif argument.startswith("-") and argument != "-":
            flags += _bundle(argument[1:], rest, table)
        else:
            others.append(argument)
    return Line(flags=tuple(flags), arguments=tuple(others))


def _flag(name: str, value: str | None, rest: list[str], table: Known) -> Flag:
    if name not in table.takes:
        raise NotReadError
    if value is None and table.takes[name]:
        if not rest:
            raise NotReadError
        value = rest.pop()
    return Flag(name=name, value=value)


def _bundle(letters: str, rest: list[str], table: Known) -> list[Flag]:
    """Letters after one dash: switches, then perhaps a flag with the rest as its argument (`parseSingleShortArg`)."""
    flags: list[Flag] = []
    while letters:
        name = table.short.get(letters[0])
        if name is None:
            raise NotReadError
        letters = letters[1:]
        value: str | None = None
        if len(letters) > 1 and letters[0] == "=":
            value, letters = letters[1:], ""
        elif letters and table.takes.get(name, False):
            value, letters = letters, ""
        flags.append(_flag(name, value, rest, table))
    return flags
