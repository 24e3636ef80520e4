"""Running `kustomize build`, or `kubectl kustomize`, hermetically: own homes, no plugins, UTC, a time limit."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from becalm.errors import ConfigError, ManifestError, ToolFailedError, ToolMissingError, Warned
from becalm.sources import shortage
from becalm.sources.excerpt import short
from becalm.sources.process import Command, Completed, run
from becalm.sources.repospec import without_passwords

_LONGEST = 1500
_PROTOCOLS = ("https", "ssh", "http", "git", "file")
#: Where errors of Kustomize begin to show what was rendered (kyaml's nodes, and helm's output with `debug`), or our line.
_CONTENT = ("Helm template:", "node contents:", "Helm stack trace:", ": unable to run: '")
#: What the guard reads (becalm.dropin.guard).
HELM_COMMAND = "BECALM_HELM_COMMAND"
HELM_ROOT = "BECALM_HELM_ROOT"
#: What becalm-helm writes to (becalm.dropin.told).
HELM_TOLD = "BECALM_HELM_TOLD"
_FETCHED = "fetched"
_NOTICE = "notice"
#: What becalm-askpass reads (becalm.dropin.askpass).
ASKPASS_SERVER = "BECALM_ASKPASS_SERVER"
ASKPASS_PROGRAM = "BECALM_ASKPASS_PROGRAM"
_OPTIONS = "BECALM_KUSTOMIZE_BUILD_OPTIONS"
#: What kubectl logs around an error of several lines (k8s.io/component-base/cli, klog).
_FRAME = re.compile(r"E\d{4} .*\berr=<|>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What becalm-helm tells of the charts of a build.

    `changes` is when each certificate in them changes, in seconds since 1970, by its SHA-256 fingerprint; `fetched` says
    whether a chart was fetched from elsewhere, or looked something up in the cluster. `notices` are sorted.
    """

    changes: Mapping[bytes, int] = field(default_factory=dict)
    fetched: bool = False
    notices: tuple[Warned, ...] = ()

    @property
    def change(self) -> int | None:
        """When the first certificate changes, None without one."""
        return min(self.changes.values(), default=None)


def told(text: str) -> Told:
    """Read what becalm-helm has written."""
    lines = text.splitlines()
    words = [line.split() for line in lines if line != _FETCHED]
    changes = {bytes.fromhex(rest[1]): int(rest[0]) for kind, *rest in words if kind != _NOTICE}
    # Two charts, or one chart twice, may say the same.
    notices = sorted({rest[0] for kind, *rest in words if kind == _NOTICE}, key=base64.b64decode)
    return Told(changes=changes, fetched=_FETCHED in lines, notices=tuple(map(_notice, notices)))


def _notice(text: str) -> Warned:
    what, where, hint = json.loads(base64.b64decode(text))
    return Warned(what, where=where, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class KustomizeTool:
    """What the operator says of Kustomize.

    `binary` is `kustomize`, `kubectl` or a path of one, "" for what there is; `build_options` are those of Argo CD's
    `kustomize.buildOptions`; `helm_command` is run for charts, "" for becalm-helm; `protocols` are Git's, with colons.
    """

    binary: str = ""
    build_options: tuple[str, ...] = ()
    helm_command: str = ""
    protocols: str = "https:ssh"

    @property
    def inflates(self) -> bool:
        """Whether charts are inflated."""
        return any(word in ("--enable-helm", "--enable-helm=true") for word in self.build_options)

    @property
    def reads_anything(self) -> bool:
        """Whether the operator switched off that Kustomize reads files of a kustomization's own directory only."""
        return any(word.endswith(("LoadRestrictionsNone", "none")) for word in self.build_options)

    @property
    def written(self) -> str:
        """The build options as text, with the program for charts."""
        command = [f"--helm-command={self.helm_command}"] if self.helm_command else []
        return " ".join([*self.build_options, *command])


def tool(binary: str, options: str, helm_command: str, protocols: str) -> KustomizeTool:
    """The operator's words; `--helm-command` of the options counts, and becomes `helm_command`.

    Raises:
        ConfigError: a protocol is unknown, or `--helm-command` says nothing.
    """
    words: list[str] = []
    given = iter(options.split())
    for word in given:
        name, equals, value = word.partition("=")
        if name != "--helm-command":
            words.append(word)
            continue
        helm_command = value if equals else next(given, "")
        if not helm_command:
            raise ConfigError(
                "--helm-command names nothing", where=_OPTIONS, hint="write --helm-command=PATH"
            )
    chosen = protocols or KustomizeTool().protocols
    for one in chosen.split(":"):
        if one not in _PROTOCOLS:
            raise ConfigError(
                f"{one!r} is no protocol that Git may use",
                where="BECALM_GIT_PROTOCOLS",
                hint=f"write some of {':'.join(_PROTOCOLS)}",
            )
    return KustomizeTool(
        binary=binary, build_options=tuple(words), helm_command=helm_command, protocols=chosen
    )


def program(settings: KustomizeTool, path: str) -> str:
    """The program that builds: the operator's, else the first that is there, kustomize or kubectl.

    Args:
        settings: the operator's.
        path: the PATH to look it up in.

    Raises:
        ToolMissingError: it is not there.
    """
    for name in (settings.binary,) if settings.binary else ("kustomize", "kubectl"):
        found = shutil.which(name, path=path)
        if found is not None:
            return found
    raise ToolMissingError(
        f"{settings.binary or 'neither kustomize nor kubectl'} cannot be found",
        hint="install Kustomize, or name it in BECALM_KUSTOMIZE or with --kustomize",
    )


class Kustomize:
    """Kustomize with private homes below `work`.

    Args:
        settings: the operator's.
        path: the PATH to look programs up in.
        work: an existing private directory, the only one where charts may be read and written.
        home: another one, which does not exist yet.
        timeout: seconds for one run.
        network: variables for proxies, certificates and registries.
    """

    def __init__(  # noqa: PLR0913  # whose tool, where, and how long
        self,
        settings: KustomizeTool,
        *,
        path: str,
        work: Path,
        home: Path,
        timeout: float,
        network: Mapping[str, str],
    ) -> None:
        self.settings = settings
        self.work = work
        self.timeout = timeout
        temporary = work / "tmp"
        for directory in (home, temporary):
            directory.mkdir(mode=0o700)
        self.env: Mapping[str, str] = {
            # A kustomization can name a home of helm, and helm runs programs that a registry's settings name.
            "HELM_REGISTRY_CONFIG": f"{home}/registries.json",
            "HELM_REPOSITORY_CONFIG": f"{home}/repositories.yaml",
            "HELM_REPOSITORY_CACHE": f"{home}/repositories",
            "HELM_CONTENT_CACHE": f"{home}/content",
            **network,
            "PATH": path,
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "TZ": "UTC",
            "XDG_CONFIG_HOME": f"{home}/config",
            "XDG_CACHE_HOME": f"{home}/cache",
            "XDG_DATA_HOME": f"{home}/data",
            "KUSTOMIZE_PLUGIN_HOME": f"{home}/kustomize-plugins",
            "KUBECONFIG": f"{home}/kubeconfig",
            "HELM_PLUGINS": f"{home}/helm-plugins",
            "HELM_NO_PLUGINS": "1",
            # Kustomize fetches with the system's git, at the wish of strangers.
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": settings.protocols,
        }

    def build(
        self,
        directory: Path,
        *,
        cwd: Path,
        more: tuple[str, ...] = (),
        charts: Mapping[str, str] | None = None,
    ) -> str:
        """What `kustomize build` prints for a directory.

        Args:
            directory: with the kustomization.
            cwd: the repository.
            more: further flags of ours.
            charts: further variables, for the program that renders charts.

        Raises:
            ToolMissingError: there is no Kustomize.
            ToolFailedError: it ended with an error; says its own words, but nothing that was rendered.
            ToolTimeoutError: it did not end within its time limit.
            ManifestError: it printed no UTF-8.
        """
        found = program(self.settings, self.env["PATH"])
        command = "kustomize" if Path(found).name.startswith("kubectl") else "build"
        argv = (found, command, str(directory), *self.settings.build_options, *more)
        env = {**(charts or {}), **self.env}
        done = run(Command(argv=argv, cwd=cwd, env=env, timeout=self.timeout))
        if done.returncode != 0:
            raise self._failure(done, cwd)
        try:
            return done.stdout.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ManifestError(
                "Kustomize printed text that is not UTF-8", where=f"byte {error.start}"
            ) from error

    def _failure(self, done: Completed, cwd: Path) -> ToolFailedError:
        if done.returncode < 0:
            return ToolFailedError(
                f"Kustomize was ended by signal {-done.returncode}", hint="render it again"
            )
        no_memory = shortage.of_memory(done, "Kustomize")
        if no_memory is not None:
            return no_memory
        text = done.stderr.decode("utf-8", "replace")
        for sign in _CONTENT:
            text = text.partition(sign)[0]
        text = (
            without_passwords(text).replace(f"{cwd}/", "").replace(str(cwd), ".").replace(f"{self.work}/", "")
        )
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith("# Warning") and not _FRAME.fullmatch(line)]
        last = next((line for line in lines if line.lower().startswith("error:")), lines[-1] if lines else "")
        words = re.sub(r"(?i)^(?:error: *)+", "", last).lstrip("`: ")
        return ToolFailedError(
            f"Kustomize failed: {short(words, _LONGEST) or f'exit code {done.returncode}'}",
            hint=_hint(text),
            details=tuple(short(line, _LONGEST) for line in lines if line != last)[:20],
        )


def _hint(text: str) -> str | None:
    if "must specify --enable-helm" in text:
        return f"the operator switches charts on with --enable-helm in {_OPTIONS}; by hand, give --build-options=--enable-helm"
    if "unknown shorthand flag: 'c' in -c" in text:
        return "this Kustomize knows helm 3 only; take Kustomize 5.8 or newer, or a helm 3"
    return None
