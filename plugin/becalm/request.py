"""What is asked of a render, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from becalm.config.keeping import Keeping
from becalm.config.looking import Looking
from becalm.derive import instant
from becalm.derive.deriver import Issued
from becalm.derive.labels import Application, Label
from becalm.derive.pins import NAME as PINS
from becalm.derive.pins import Pin
from becalm.derive.seed import Seed
from becalm.derive.windows import Windows
from becalm.errors import Warned
from becalm.normalise.policy import Say, Scope, Selection
from becalm.sources import detect
from becalm.sources.chart import label
from becalm.sources.detect import Kind
from becalm.sources.directory import DirectoryOptions
from becalm.sources.edits import KustomizeOptions
from becalm.sources.helm import HelmOptions
from becalm.sources.kustomize import KustomizeTool, Told
from becalm.sources.sourcing import Remote

if TYPE_CHECKING:
    from becalm.normalise.engine import Change
    from becalm.stabilise.looking import Looked, Lookups
    from becalm.stabilise.stabiliser import Stabilised


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One render: the chart, what helm is told, and whose values are derived.

    `root` is the repository's root, which nothing may leave; None means the chart itself. `at` is the time
    of the render in seconds since 1970, on which the windows of certificates depend, and nothing else.
    `epoch` is the app's, `item_epochs` are by item (`Secret/db/password`); raising one gives new values.
    `epochs_where` is the parameter or option that gave the latter. `rule_files` are the operator's packs of
    normalisation rules, `operator`, `app` and `by_hand` say which rules act, `app_scope` is where the app has a say, and
    `keeping` says what `generate` keeps of renders, `definitions` are files of the CustomResourceDefinitions that the cluster has. With `strict` an input that may
    change between two renders is an error, not a warning. `remote` is what is not in the directory: a chart from
    elsewhere, values files, and under which settings they are brought. `source` says what is rendered where that is not to be found out; `directory` is for plain directories, `kustomize` for Kustomizations,
    `looking` says how `lookup` is answered, unless `lookups` does it.
    `tool` says what builds them, and `variables` are those of the program that renders charts for it, `git` are those with
    credentials for the repository's server, and `parameters` is the file that a person gave for
    what an application sets. `pins` take the place of those of the application's file.
    """

    chart: Path
    root: Path | None
    options: HelmOptions
    application: Application
    seed: Seed | None = field(repr=False)
    helm: str = "helm"
    path: str = ""
    timeout: float = 50.0
    instant: str = instant.DEFAULT
    at: int
    windows: Windows = field(default_factory=Windows)
    cache: Path | None = None
    epoch: str = ""
    item_epochs: Mapping[str, str] = field(default_factory=dict)
    epochs_where: str = ""
    rule_files: tuple[Path, ...] = ()
    operator: tuple[Say, ...] = ()
    app: tuple[Say, ...] = ()
    by_hand: Say = field(default_factory=lambda: Say(where="--rule"))
    app_scope: Scope = field(default_factory=Scope)
    definitions: tuple[Path, ...] = ()
    strict: bool = False
    keeping: Keeping = field(default_factory=Keeping)
    remote: Remote = field(default_factory=Remote)
    directory: DirectoryOptions = field(default_factory=DirectoryOptions)
    source: Kind = ""
    kustomize: KustomizeOptions = field(default_factory=KustomizeOptions)
    tool: KustomizeTool = field(default_factory=KustomizeTool)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    git: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Path | None = None
    pins: Mapping[Label, Pin] | None = field(default=None, repr=False)
    looking: Looking = field(default_factory=Looking)
    lookups: Lookups | None = field(default=None, repr=False)

    @property
    def pins_file(self) -> Path:
        """Where the application's pins are, if it has any."""
        return self.chart / PINS if self.chart.is_dir() else self.chart.with_name(PINS)

    @property
    def kind(self) -> Kind:
        """What is rendered.

        Raises:
            SourceError: there is nothing of that sort.
        """
        return detect.require(
            self.chart,
            self.path_name,
            wanted=self.source,
            recurse=self.directory.recurse,
            has_chart=self.remote.chart is not None or self.remote.path is not None,
        )

    @property
    def repository(self) -> Path:
        """The repository's root; where none is given, the Git checkout around the source, else the source itself."""
        return self.root or detect.repository(self.chart)

    @property
    def path_name(self) -> str:
        """The source for messages: its place in the repository, or its name."""
        return label(self.chart.absolute(), self.root)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was rendered, how often helm ran, and what was stabilised (None: nothing to do).

    `before` is the output before it was normalised. `issued` are the certificates that were derived, by their PEM text; `changes` what was normalised, by rules
    of `selection`. `warnings` tell what may make the next render another one, and `charts` is what was told of those that
    Kustomize inflated. `lookups` are those of the last render, and `notices` tell what is deterministic, and all the same
    not what `helm install` would do, or not what was pinned.
    """

    output: str = field(repr=False)
    before: str = field(default="", repr=False)
    runs: int
    stabilised: Stabilised | None
    issued: Mapping[str, Issued] = field(default_factory=dict, repr=False)
    changes: tuple[Change, ...] = ()
    selection: Selection
    warnings: tuple[Warned, ...] = ()
    charts: Told = field(default_factory=Told)
    lookups: tuple[Looked, ...] = ()
    notices: tuple[Warned, ...] = ()
