"""Running `helm template` hermetically: own homes, no plugins, UTC, a time limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from becalm.errors import ToolFailedError, ToolMissingError
from becalm.sources import shortage
from becalm.sources.excerpt import short
from becalm.sources.process import Command, Completed, run

OLDEST = (3, 13)
_LONGEST_LINE = 1000
_INLINE = "values.yaml"
# Helm's flag, which becalm does not have.
_ADVICE = "Use --debug flag to render out invalid YAML"


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmOptions:
    """What `helm template` is told.

    `values` are files, in order, and `inline` is the text of a last one; `sets` and `set_strings` are `KEY=VALUE`
    in Helm's own --set syntax, `set_files` are `KEY=PATH`. Empty `namespace` and `kube_version` leave their flags
    out. `revision` is for whoever writes the chart that is rendered: helm has no flag for it.
    """

    release: str
    namespace: str
    values: tuple[Path, ...] = ()
    inline: str = ""
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    set_files: tuple[str, ...] = ()
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    skip_crds: bool = False
    skip_tests: bool = False
    skip_schema_validation: bool = False
    is_upgrade: bool = False
    revision: int = 1

    def argv(self, helm: str, chart: Path, inline: Path | None = None) -> tuple[str, ...]:
        """The command; each value is glued to its flag, so that none is taken for another flag.

        `inline` is the file that `self.inline` was written to.

        `--dry-run=client` is what `template` does anyway; Helm before 3.13 does not know the form
        and refuses it, so that an old helm never renders.
        """
        arguments = [helm, "template", str(chart), f"--name-template={self.release}"]
        arguments += [*([] if self.skip_crds else ["--include-crds"]), "--dry-run=client"]
        if self.namespace:
            arguments.append(f"--namespace={self.namespace}")
        arguments += [f"--values={_one(path)}" for path in (*self.values, *([inline] if inline else []))]
        arguments += [f"--set={item}" for item in self.sets]
        arguments += [f"--set-string={item}" for item in self.set_strings]
        arguments += [f"--set-file={item}" for item in self.set_files]
        arguments += ["--is-upgrade"] if self.is_upgrade else []
        arguments += ["--skip-tests"] if self.skip_tests else []
        arguments += ["--skip-schema-validation"] if self.skip_schema_validation else []
        if self.kube_version:
            arguments.append(f"--kube-version={self.kube_version}")
        return (*arguments, *(f"--api-versions={item}" for item in self.api_versions))


class Helm:
    """The stock helm binary with private homes below `work`.

    Args:
        binary: name or path.
        path: the PATH to look it up in.
        work: an existing private directory.
        timeout: seconds for one run.
    """

    def __init__(self, *, binary: str, path: str, work: Path, timeout: float) -> None:
        self.binary = binary
        self.work = work
        self.timeout = timeout
        self.runs = 0
        home = str(work / "home")
        self.env: Mapping[str, str] = {
            "PATH": path,
            "HOME": home,
            "TMPDIR": str(work),
            "TZ": "UTC",
            "HELM_CACHE_HOME": f"{home}/cache",
            "HELM_CONFIG_HOME": f"{home}/config",
            "HELM_DATA_HOME": f"{home}/data",
            "HELM_PLUGINS": f"{home}/plugins",
            "HELM_NO_PLUGINS": "1",
            "KUBECONFIG": f"{home}/kubeconfig",
            # A run lasts a moment, so Go collects garbage seldom; near the limit it does as usual.
            "GOGC": "400",
            "GOMEMLIMIT": "512MiB",
        }

    def template(self, chart: Path, options: HelmOptions) -> Completed:
        """Run `helm template`; the outcome is not judged."""
        self.runs += 1
        inline = None
        if options.inline:
            inline = self.work / _INLINE
            inline.write_text(options.inline, "utf-8")
        return self._run(options.argv(self.binary, chart, inline))

    def _run(self, argv: tuple[str, ...]) -> Completed:
        return run(Command(argv=argv, cwd=self.work, env=self.env, timeout=self.timeout))

    def failure(self, done: Completed) -> ToolFailedError | ToolMissingError:
        """The error for a failed run: helm's own words, or that helm is too old."""
        self.require_supported()
        if done.returncode < 0:
            return ended_by_signal(done)
        no_memory = shortage.of_memory(done, "helm")
        if no_memory is not None:
            return no_memory
        return self.failed(done.stderr.decode("utf-8", "replace"), done.returncode)

    def failed(self, text: str, returncode: int = 1) -> ToolFailedError:
        """The error for what a helm that failed by itself wrote to its standard error."""
        text = text.strip()
        text = text.replace(str(self.work / _INLINE), "the parameter values").replace(str(self.work), "")
        # Helm 4 tells place, expression and reason in lines of their own, the deeper the further in.
        text = re.sub(
            r"^(Error: .*(?:\n +\S.*)+)", lambda m: " ".join(m.group().split()), text, flags=re.MULTILINE
        )
        lines = [short(line, _LONGEST_LINE) for line in text.splitlines() if line.strip() and line != _ADVICE]
        last = next(
            (line for line in reversed(lines) if line.startswith("Error:")), lines[-1] if lines else ""
        )
        return ToolFailedError(
            f"helm template failed: {last.removeprefix('Error: ') or f'exit code {returncode}'}",
            details=tuple(line for line in lines if line != last)[:20],
        )

    def require_supported(self) -> None:
        """Refuse a helm that is too old.

        Raises:
            ToolMissingError: helm is older than 3.13, or does not tell its version.
        """
        done = self._run((self.binary, "version", "--template={{.Version}}"))
        match = re.match(rb"v(\d+)\.(\d+)", done.stdout)
        if match is None:
            raise ToolMissingError(
                f"{self.binary} does not tell its version",
                hint="give a helm of 3.13 or newer with --helm or BECALM_HELM",
            )
        version = (int(match.group(1)), int(match.group(2)))
        if version < OLDEST:
            raise ToolMissingError(
                f"helm {version[0]}.{version[1]} is too old", hint="install helm 3.13 or newer"
            )


def ended_by_signal(done: Completed) -> ToolFailedError:
    """The error for a helm that somebody else ended, such as the kernel when memory is short."""
    return ToolFailedError(
        f"helm was ended by signal {-done.returncode}",
        hint="render it again; with signal 9, give the sidecar more memory",
    )


def _one(path: Path) -> str:
    """A path as an entry of a list: helm reads --values as CSV (github.com/spf13/pflag, StringSlice)."""
    text = str(path)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text
