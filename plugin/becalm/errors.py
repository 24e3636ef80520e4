"""The faults that becalm reports, each with a stable code and a process exit code.

Every error that a user can cause or mend is a `PluginError`. Its first line is the whole
story (what, where, what to do), because Argo CD shows all of stderr in its UI. Anything
else that escapes is a bug and ends with `EXIT_BUG` and the places it passed, without its text.

No constructor prints, and none may be given a secret value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

EXIT_BUG = 70
#: The output could not be written, or the machine has no room for the render.
EXIT_SHORT = 1


def nearest(name: str, known: Iterable[str], *, otherwise: str, sign: str = "") -> str:
    """A hint for a name that is not known: the one that it is most like, else what `otherwise` says.

    `sign` is what stands before the name that is proposed.
    """
    import difflib  # noqa: PLC0415  # this module is loaded by every command

    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {sign}{close[0]}?" if close else otherwise


def bug(error: Exception) -> str:
    """What to report of any other error: its kind and the places, without its text and without any value."""
    import traceback  # noqa: PLC0415

    frames = [
        f"  {frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return "\n".join(
        (
            f"Error: internal error ({type(error).__name__}); please report it with these lines",
            *frames[-30:],
            "",
        )
    )


def counted(number: int, name: str) -> str:
    """A number of things, for people: `1 rule`, `2 rules`."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


class PluginError(Exception):
    """A fault that the user can mend.

    Args:
        what: what is wrong, in one sentence without the final full stop.
        where: the place (file, `file:line`, object, option), or None when there is none.
        hint: what to do about it, in one sentence, or None.
        details: further lines, shown below the first one; never a secret value.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        self.details = details
        #: For readers who may not see what the application is given; None where the first line holds nothing of it.
        self.guarded_line: str | None = None

    def first_line(self) -> str:
        """The message in one line: `where: what; hint`."""
        parts = f"{self.where}: {self.what}" if self.where else self.what
        if self.hint:
            parts += f"; {self.hint}"
        return " ".join(parts.split())

    def record_line(self) -> str:
        """The message for the log and the web page, in one line."""
        return self.first_line() if self.guarded_line is None else self.guarded_line

    def __str__(self) -> str:
        return "\n".join((self.first_line(), *self.details))


class ConfigError(PluginError):
    """Options, environment, parameters or the seed are missing or wrong."""

    code = "config"
    exit_code = 2


class SourceError(PluginError):
    """The chart, its archives or its values cannot be read or are refused."""

    code = "source"
    exit_code = 3


class ToolMissingError(PluginError):
    """helm or kustomize is not there, or too old."""

    code = "tool-missing"
    exit_code = 4


class ToolFailedError(PluginError):
    """helm or kustomize ended with an error, or printed more than the limit."""

    code = "tool-failed"
    exit_code = 5


class ToolTimeoutError(PluginError):
    """helm or kustomize did not end within its time limit and was killed."""

    code = "tool-timeout"
    exit_code = 6


class ManifestError(PluginError):
    """Rendered output is not what Kubernetes or Argo CD would accept."""

    code = "manifest"
    exit_code = 7


class DeterminismError(PluginError):
    """The chart cannot be rendered the same way twice, or was not."""

    code = "determinism"
    exit_code = 8


class SeedMissingError(DeterminismError):
    """The chart draws values, and there is no seed to derive them from."""


class RuleError(PluginError):
    """A normalisation rule is wrong."""

    code = "rule"
    exit_code = 9


@dataclass(frozen=True, slots=True)
class Warned:
    """What renders today but may render differently tomorrow; with `strict` it is an error.

    Never holds a secret value.
    """

    what: str
    where: str
    hint: str

    def line(self) -> str:
        """The message in one line, as `PluginError.first_line`."""
        return self.error().first_line()

    def error(self) -> DeterminismError:
        """The error that it is with `strict`."""
        return DeterminismError(self.what, where=self.where, hint=self.hint)


class DerivationError(Exception):
    """A function was given arguments from which nothing can be derived.

    The render that asked tells where; helm's own words are shown if it refuses them as well.
    """
