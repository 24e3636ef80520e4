"""The key of an answer: everything that can change what a render gives.

That is the request (options, parameters, the seed's fingerprint, epochs, the instant, how certificates' windows are cut,
rules, definitions), the content of every file that can be read, never its time, the programs by their content, and
becalm itself. What is left out cannot reach the output: time (an entry ends with the first window in it), credentials,
time limits, and where the private directories are.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from becalm import __version__
from becalm.errors import PluginError
from becalm.pipeline import Request
from becalm.sources import components, detect, kustomization
from becalm.sources.chart import label
from becalm.sources.edits import edited
from becalm.stabilise.recorded import NAME as LOOKUPS

_SCHEME = "becalm answer key 1"
_MOST_FILES = 50_000
_MOST_BYTES = 512 * 1024 * 1024
#: Fields of a request that cannot reach its output, or that are looked at in another way.
_LEFT_OUT = frozenset((
    "chart", "root", "seed", "helm", "path", "timeout", "at", "cache", "keeping", "epochs_where", "rule_files", "definitions",
    "variables", "tool", "options", "remote", "parameters", "git", "lookups",
))  # fmt: skip
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A digest of 32 bytes, and whether an input is on a server where it may change."""

    digest: bytes
    may_change: bool


class _UnfitError(Exception):
    """The inputs cannot be told, or there are too many of them."""


def of(request: Request) -> Key | None:
    """The key of a request; None where its inputs cannot all be told, or where it is wrong in some way.

    Errors are for the render to tell.
    """
    digest = _Digest()
    try:
        may_change = _inputs(request, digest)
    except (_UnfitError, PluginError, OSError):
        return None
    return Key(digest=digest.end(), may_change=may_change)


def _inputs(request: Request, digest: _Digest) -> bool:
    digest.add(_SCHEME, __version__, own())
    digest.add("" if request.seed is None else request.seed.id)
    given = {
        field.name: getattr(request, field.name) for field in fields(request) if field.name not in _LEFT_OUT
    }
    digest.value(given)
    digest.program(request.helm, request.path)
    options = request.options
    for path in (*request.rule_files, *request.definitions, *options.values):
        digest.file(path)
    digest.value({**_plain(options), "values": len(options.values), "set_files": ()})
    for item in options.set_files:
        name, _, file = item.partition("=")
        digest.add(name)
        digest.file(Path(file))
    return _source(request, digest)


def _source(request: Request, digest: _Digest) -> bool:
    kind, remote = request.kind, request.remote
    network = remote.network
    digest.value((kind, remote.chart, [(one.at, one.file) for one in remote.values]))
    digest.value(
        (network.allowed, network.values_urls, network.pass_credentials, request.application.project)
    )
    may_change = False
    if kind in ("helm", "chain") and remote.chart is None:
        chart = remote.path or request.chart
        digest.tree(chart)
        if chart.is_dir() and b"file://" in _dependencies(chart):
            digest.tree(request.root or chart)
    if request.chart.is_dir():
        digest.optional(request.chart / ".becalm.yaml")
        digest.optional(request.chart / LOOKUPS)
    if kind in ("kustomize", "chain"):
        may_change = _kustomization(request, digest)
    if kind == "directory":
        digest.tree(request.chart, is_deep=request.directory.recurse)
    return may_change


def _dependencies(chart: Path) -> bytes:
    names = ("Chart.yaml", "requirements.yaml")
    return b"".join((chart / name).read_bytes() for name in names if (chart / name).is_file())


def _kustomization(request: Request, digest: _Digest) -> bool:
    """The files that a Kustomization reads; whether some are on servers."""
    tool = request.tool
    digest.value((tool.build_options, tool.protocols, tool.helm_command))
    digest.program(tool.binary or _first(request.path), request.path)
    root = Path(os.path.realpath(request.root or detect.repository(request.chart)))
    app = Path(os.path.realpath(request.chart))
    where = label(app, root)
    original = kustomization.read(app, where)
    found = components.found(request.kustomize, app=app, root=root)
    content = edited(original, request.kustomize, found)
    seen = kustomization.reachable(app, root, content, where, reads_anything=tool.reads_anything)
    if seen.has_charts:
        # becalm-helm does not tell when a certificate in such a chart changes.
        raise _UnfitError
    if seen.files is None:
        digest.tree(root)
        return seen.has_remotes
    digest.add(app.relative_to(root).as_posix())
    for path in seen.files:
        digest.add(path.relative_to(root).as_posix())
        digest.optional(path)
    return seen.has_remotes


def _first(path: str) -> str:
    return next((name for name in ("kustomize", "kubectl") if shutil.which(name, path=path)), "kustomize")


class _Digest:
    """SHA-256 of a sequence of texts, values and files, each with its length in front."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._files = 0
        self._bytes = 0

    def end(self) -> bytes:
        return self._hash.digest()

    def add(self, *parts: str | bytes) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
            self._hash.update(len(data).to_bytes(8, "big") + data)

    def value(self, value: object) -> None:
        """A value of plain types, with the type of each; of a dataclass its fields."""
        if is_dataclass(value):
            value = _plain(value)
        if isinstance(value, Mapping):
            self.add(f"map {len(value)}")
            for key in sorted(value):
                self.add(str(key))
                self.value(value[key])
        elif isinstance(value, (list, tuple)):
            self.add(f"list {len(value)}")
            for one in value:
                self.value(one)
        elif value is None or isinstance(value, (str, int, float, bool, Fraction)):
            self.add(f"{type(value).__name__} {value}")
        else:
            raise _UnfitError(type(value).__name__)

    def program(self, name: str, path: str) -> None:
        """A program by its content."""
        found = shutil.which(name, path=path)
        if found is None:
            raise _UnfitError
        self.add(program(os.path.realpath(found)))

    def optional(self, path: Path) -> None:
        """A file that need not be there."""
        self.file(path) if os.path.lexists(path) else self.add("absent")

    def file(self, path: Path) -> None:
        """A file, with its links followed."""
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise _UnfitError
        self._count(state.st_size)
        self.add("file", path.read_bytes())

    def tree(self, path: Path, *, is_deep: bool = True) -> None:
        """A file, or all files of a directory by name; the history of Git is left out."""
        if not path.is_dir():
            self.file(path)
            return
        self._directory(path, is_deep=is_deep, above=())

    def _directory(self, path: Path, *, is_deep: bool, above: tuple[str, ...]) -> None:
        real = os.path.realpath(path)
        if real in above:
            raise _UnfitError
        self.add("directory")
        for entry in _entries(path):
            if entry.is_dir():
                if is_deep and entry.name != ".git":
                    self.add(entry.name)
                    self._directory(Path(entry.path), is_deep=True, above=(*above, real))
            elif entry.is_file():
                self.add(entry.name)
                self.file(Path(entry.path))
            elif entry.is_symlink():
                self.add(entry.name, "link", str(Path(entry.path).readlink()))
        self.add("end")

    def _count(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._files > _MOST_FILES or self._bytes > _MOST_BYTES:
            raise _UnfitError


def _entries(path: Path) -> Iterable[os.DirEntry[str]]:
    with os.scandir(path) as found:
        return sorted(found, key=lambda entry: entry.name)


def _plain(value: object) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]  # a dataclass


def program(path: str) -> bytes:
    """The digest of a program; read once in a process as long as it does not change."""
    state = Path(path).stat()
    return _content(path, state.st_size, state.st_mtime_ns, state.st_ino)


@cache
def _content(path: str, size: int, mtime: int, inode: int) -> bytes:  # noqa: ARG001  # what tells that it is the same
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


@cache
def own() -> bytes:
    """Becalm's own files: a version that is being worked on has one number for many contents."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        if path.suffix in (".py", ".json", ".yaml", ".tpl", ".toml") and path.is_file():
            data = path.read_bytes()
            digest.update(f"{path.relative_to(_PACKAGE)} {len(data)}\n".encode() + data)
    return digest.digest()
