"""The private copy of a chart that helm renders instead of it, and the texts in it that can draw."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from becalm.errors import ConfigError, ManifestError, SourceError
from becalm.sources.chart import (
    ChartTree,
    Location,
    is_template,
    no_copy,
    pack_chart,
    template_path,
    write_chart,
)
from becalm.sources.helm import HelmOptions, ended_by_signal
from becalm.sources.process import Completed
from becalm.templates import functions
from becalm.templates.files import TemplateFile

if TYPE_CHECKING:
    from becalm.derive.deriver import Deriver
    from becalm.sources.packing import Packed
    from becalm.stabilise.epochs import Epochs
    from becalm.stabilise.looking import Lookups
    from becalm.stabilise.stabiliser import Attempt, Observed, Stabilised, Stabiliser
    from becalm.stages import Stopwatch

_NOTES = "NOTES.txt"
_RUNTIME = "templates/_becalm.tpl"
#: Helm renders the deepest path first, then those that are last by name (pkg/engine, `sortTemplates`).
_LAST = "templates/!becalm.yaml"
_FIRST = "templates/{}/becalm.yaml"
_MAX_TEXT = 1024 * 1024

#: Runs helm on a chart; the outcome is not judged.
Run = Callable[[Path], Completed]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The texts of a chart that can draw: templates, and texts for `tpl` with the places they are from."""

    files: list[TemplateFile]
    texts: dict[str, str]
    locations: dict[str, Location]


@contextmanager
def work_directory() -> Iterator[Path]:
    """A private directory that is gone afterwards, and that is locked while it is used (flock(2), shared).

    Raises:
        ConfigError: none can be made.
    """
    try:
        directory = tempfile.mkdtemp(prefix="becalm-")
    except OSError as error:
        raise ConfigError(
            f"no temporary directory can be made: {error.strerror or error}",
            where="TMPDIR",
            hint="name one that can be written to and has room",
        ) from error
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # What removes leftovers looks at it: their age is told by clocks, which jump.
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield Path(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


class Copy:
    """The private copy of a chart that is rendered instead of it, one after another.

    Args:
        tree: the chart.
        inputs: its texts that can draw.
        work: an existing private directory.
        run: runs helm on the copy.
        revision: what `.Release.Revision` is.
    """

    def __init__(self, tree: ChartTree, inputs: Inputs, *, work: Path, run: Run, revision: int = 1) -> None:
        self.tree = tree
        self._revision = revision
        self._tells_lookups = False
        self.inputs = inputs
        self.work = work
        self.run = run
        self.path = Path()
        """What helm was given last: a directory, or an archive in one."""
        self._changed: dict[str, str] | None = None
        self._packed: Packed | None = None
        self._stabiliser: Stabiliser | None = None
        self._runtime = ""

    def stabilise(  # noqa: PLR0913  # each is one thing that a render depends on
        self,
        *,
        deriver: Deriver | None,
        namespace: str,
        instant: str,
        epochs: Epochs,
        lookups: Lookups | None = None,
        stopwatch: Stopwatch | None = None,
    ) -> Stabilised:
        """Render until nothing is left to settle; then helm renders the copy at `path` the same way every time.

        A chart that renders only where its lookups are left alone is rendered so, if they are answered with nothing.

        Args:
            deriver: answers the draws, None without a seed.
            namespace: of the release.
            instant: stands for the clock, RFC 3339 in UTC.
            epochs: of items.
            lookups: how they are answered; None leaves them to helm, unseen.
            stopwatch: measures the stages.

        Raises:
            PluginError: as `Stabiliser.run`.
        """
        from becalm.stabilise import looking  # noqa: PLC0415  # not for charts that draw nothing
        from becalm.stabilise.stabiliser import Stabiliser  # noqa: PLC0415

        if not any(map(functions.looks, (*(file.text for file in self.inputs.files), *self.inputs.texts))):
            lookups = None

        def stabilised(lookups: Lookups | None) -> Stabilised:
            self._tells_lookups = lookups is not None
            self._stabiliser = Stabiliser(
                self.inputs.files, self.inputs.texts, deriver=deriver, namespace=namespace, instant=instant,
                epochs=epochs, lookups=lookups, stopwatch=stopwatch,
            )  # fmt: skip
            return self._stabiliser.run(self._render)

        done = stabilised(lookups)
        if done.output is None and lookups is not None and lookups.is_optional:
            done = stabilised(None)
            places = (place for file in self.inputs.files for place in looking.mentions(file))
            done.lookups = tuple(map(looking.unseen, places))
        return done

    def quieten(self) -> None:
        """Let the copy print nothing of ours, where somebody else renders it once more."""
        if self._tells_lookups:
            assert self._changed is not None
            self._tells_lookups = False
            self._write(self._changed, self._runtime)

    def observe(self, salt: str | None = None) -> Observed:
        """Render once more what `stabilise` has rendered, as `Stabiliser.observe`."""
        assert self._stabiliser is not None
        return self._stabiliser.observe(self._render, salt=salt)

    def _render(self, changed: dict[str, str], runtime: str) -> Attempt:
        """Run helm on the copy with these templates replaced and this file of templates added."""
        from becalm.stabilise.stabiliser import Attempt  # noqa: PLC0415

        self._runtime = runtime
        if changed is self._changed and self._packed is not None:
            self._add(self._packed, runtime)
        else:
            self._write(changed, runtime)
        done = self.run(self.path)
        if done.returncode < 0:
            # Nothing is wrong with the chart, so nothing is gained by another try with helm alone.
            raise ended_by_signal(done)
        if done.returncode != 0:
            return Attempt(output="", error=done.stderr.decode("utf-8", "replace"))
        return Attempt(output=decoded(done.stdout), error=None)

    def _write(self, changed: dict[str, str], runtime: str) -> None:
        replaced = {self.inputs.locations[key]: _encode(text) for key, text in changed.items()}
        for location in list(replaced):
            if location[-1].endswith(f"/{_NOTES}"):
                # Helm drops the notes; a file that runs right after them prints what they recorded.
                sibling = location[-1].removesuffix(".txt") + ".becalm.yaml"
                replaced[(*location[:-1], sibling)] = b'{{ include "becalm.notes" . }}'
        if self._tells_lookups:
            replaced[(_LAST,)] = b'{{ include "becalm.lookups" . }}'
        replaced |= release(self.tree, self._revision)
        directory = Path(tempfile.mkdtemp(prefix="chart-", dir=self.work))
        self._changed, self._packed = changed, pack_chart(self.tree, replaced)
        if self._packed is None:
            self.path = write_chart(
                self.tree, {**replaced, (_RUNTIME,): _encode(runtime)}, directory / "chart"
            )
        else:
            self.path = directory / "chart.tgz"
            self._add(self._packed, runtime)

    def _add(self, packed: Packed, runtime: str) -> None:
        """Write the copy with this runtime."""
        try:
            packed.write(self.path, {_RUNTIME: _encode(runtime)})
        except OSError as error:
            raise no_copy(self.tree, error) from error


def release(tree: ChartTree, revision: int) -> dict[Location, bytes]:
    """The file that makes `.Release.Revision` another one than 1, which `helm template` always gives.

    All charts of a render share one map of the release, and helm renders this file before all others.
    """
    if revision == 1:
        return {}
    depth = max("/".join(location).count("/") for location, _, _ in tree.walk())
    path = _FIRST.format("/".join(["becalm"] * (depth + 2)))
    return {(path,): b'{{ $_ := set .Release "Revision" %d }}' % revision}


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def decoded(data: bytes) -> str:
    """What helm printed, as text.

    Raises:
        ManifestError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ManifestError("helm printed text that is not UTF-8", where=f"byte {error.start}") from error


def read_inputs(tree: ChartTree, options: HelmOptions) -> Inputs:
    """The templates of a chart and its subcharts, and the texts that `tpl` may be given."""
    files: list[TemplateFile] = []
    texts: dict[str, str] = {}
    locations: dict[str, Location] = {}
    for location, owner, path in tree.walk():
        if is_template(path):
            key = "/".join(location)
            text = owner.read(path).decode("utf-8", "surrogateescape")
            files.append(
                TemplateFile(key=key, name=template_path(path).removeprefix("templates/"), text=text)
            )
            locations[key] = location
        elif path not in owner.archives and not path.startswith("crds/"):
            data = owner.read(path)
            if b"{{" in data and len(data) <= _MAX_TEXT:
                texts = _texts("/".join(location), data.decode("utf-8", "surrogateescape")) | texts
    for path_ in options.values:
        try:
            texts = _texts(path_.name, path_.read_text("utf-8", "surrogateescape"), is_yaml=True) | texts
        except OSError as error:
            raise SourceError(
                f"the values file cannot be read: {error.strerror}", where=str(path_), hint="check its path"
            ) from error
    if options.inline:
        texts = _texts("values", options.inline, is_yaml=True) | texts
    for item in (*options.sets, *options.set_strings):
        key, _, value = item.partition("=")
        texts |= {item: f"--set {key}", value: f"--set {key}"}
    return Inputs(files, texts, locations)


def _texts(place: str, text: str, *, is_yaml: bool = False) -> dict[str, str]:
    """A file's text, and the strings of a YAML file, that may call what is rewritten."""
    if not functions.mentions(text):
        return {}
    from becalm.manifests import yamlio  # noqa: PLC0415  # not for charts that draw nothing
    from becalm.manifests.paths import leaves  # noqa: PLC0415
    from becalm.manifests.paths import render as render_path  # noqa: PLC0415

    found = {text: place}
    if is_yaml or place.endswith((".yaml", ".yml")):
        try:
            value = yamlio.load(text, where=place)
        except ManifestError:
            return found
        for path, leaf in leaves(value):
            if isinstance(leaf, str) and functions.mentions(leaf):
                found.setdefault(leaf, f"{place} {render_path(path)}")
    return found
