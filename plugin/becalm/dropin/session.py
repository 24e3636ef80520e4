"""One `helm template` of a caller: its line, its environment, and the runs of the real helm for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from becalm.dropin import command
from becalm.dropin.flags import GLOBAL_VALUES, Line
from becalm.errors import SourceError
from becalm.sources.process import Command, Completed, attend, run

#: What says where a chart is fetched from; a chart that is at hand needs none of it.
_FETCH = ("repo", "version", "devel", "verify", "dependency-update")
#: What sends the rendered text elsewhere.
_OUTPUT = ("output-dir", "release-name", "post-renderer", "post-renderer-args")
#: What acts on the rendered text only. Hooks and tests are looked at even if they are not printed, so that the
#: values that they share with others do not depend on the flag; and no cluster is shown provisional values.
_QUIET = (*_OUTPUT, "show-only", "debug", "no-hooks", "skip-tests", "validate", "dry-run")
_PULL = (
    "repo", "version", "devel", "verify", "ca-file", "cert-file", "key-file", "keyring", "username", "password",
    "pass-credentials", "insecure-skip-tls-verify", "plain-http", *GLOBAL_VALUES, *sorted(command.SWITCHES),
)  # fmt: skip
_TEMPLATE_SECONDS = 50.0
_NETWORK_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What the caller wants.

    `line` is the line of `helm template`, with one or two arguments; `work` a private directory, and `stdin`
    a file in it that holds standard input, where helm reads that.
    """

    helm: str
    line: Line
    environment: Mapping[str, str] = field(repr=False)
    work: Path
    stdin: Path | None

    @property
    def chart(self) -> str:
        """The chart as the caller names it, as helm reads it."""
        return self.line.arguments[-1].strip()

    @property
    def stable_environment(self) -> dict[str, str]:
        """The caller's environment, but that local time is UTC, as everywhere in becalm."""
        return {**self.environment, "TZ": "UTC"}

    def render(self, chart: Path, *more: str) -> Completed:
        """A run for its output alone: of no file, post-renderer or selection; not judged.

        Args:
            chart: at hand.
            more: further flags.
        """
        return self._run(self._argv(chart, (*_QUIET, *_FETCH), more), self.stable_environment)

    def stock(self) -> Completed:
        """What the caller's line gives as it is, but for files and post-renderers."""
        argv = (self.helm, "template", *self.line.without(_OUTPUT), "--", *self.line.arguments)
        return self._run(argv, self.environment, seconds=_NETWORK_SECONDS)

    def finish(self, chart: Path, *, stable: bool) -> int:
        """The caller's line on a chart at hand, in our place; the exit code, or minus a signal's number."""
        argv = self._argv(chart, _FETCH, ())
        environment = self.stable_environment if stable else self.environment
        return attend(argv, env=environment, stdin=self.stdin)

    def pull(self) -> Path:
        """Fetch the chart as the caller's flags say; its archive.

        Raises:
            SourceError: helm could not, or left no archive.
        """
        target = self.work / "pulled"
        target.mkdir(mode=0o700)
        argv = (self.helm, "pull", *self.line.only(_PULL), f"--destination={target}", "--", self.chart)
        done = self._run(argv, self.environment, seconds=_NETWORK_SECONDS)
        found = sorted(target.glob("*.tgz"))
        if done.returncode != 0 or len(found) != 1:
            raise SourceError("`helm pull` could not fetch the chart that `helm template` can", where="CHART")
        # `template` says the same of a registry's chart.
        relay(done, stdout=False)
        return found[0]

    def _argv(self, chart: Path, without: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
        name = self.line.arguments[:-1]
        return (self.helm, "template", *self.line.without(without), *more, "--", *name, str(chart))

    def _run(
        self, argv: tuple[str, ...], environment: Mapping[str, str], *, seconds: float = _TEMPLATE_SECONDS
    ) -> Completed:
        return run(Command(argv=argv, cwd=Path.cwd(), env=environment, timeout=seconds, stdin=self.stdin))


def relay(done: Completed, *, stdout: bool = True, renamed: Mapping[str, str] | None = None) -> int:
    """Print what a run printed; its exit code.

    Args:
        done: the run.
        stdout: whether its standard output is wanted as well.
        renamed: paths of ours, and what the caller calls them.
    """
    told = done.stderr
    for ours, theirs in (renamed or {}).items():
        told = told.replace(os.fsencode(ours), os.fsencode(theirs))
    _write(2, told)
    if stdout:
        _write(1, done.stdout)
    return done.returncode


def _write(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]
