"""Which command a line names, found as cobra finds it, so that no `template` is missed and nothing else is taken.

This is cobra's command.go, `stripFlags`: a flag that is not known as a switch takes the next argument with it, known
or not. Before the command only helm's global flags are known, and `--help` is not among them yet.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: The global flags that take no argument; the last ones are klog's, which helm hides.
SWITCHES = frozenset((
    "debug", "kube-insecure-skip-tls-verify", "add-dir-header", "alsologtostderr", "logtostderr", "one-output",
    "skip-headers", "skip-log-headers", "legacy-stderr-threshold-behavior",
))  # fmt: skip
_SHORT = 2


def find(arguments: Sequence[str]) -> int | None:
    """The place of the command in a line without its program; None where there is none."""
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if argument == "--":
            return None
        at += 1
        if _takes_the_next(argument):
            # The last argument is no value, so that cobra stops here as well.
            at += 1
        elif argument and not argument.startswith("-"):
            return at - 1
    return None


def _takes_the_next(argument: str) -> bool:
    if "=" in argument:
        return False
    if argument.startswith("--"):
        return argument[2:] not in SWITCHES
    return argument.startswith("-") and len(argument) == _SHORT
