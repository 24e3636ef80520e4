"""The key of an answer: everything that can change what a render gives.

That is the request (options, parameters, the seed's fingerprint, epochs, the instant, how certificates' windows are cut,
rules, definitions), the content of every file that can be read, never its time, the programs by their content, and
becalm itself. What is left out cannot reach the output: time (an entry ends with the first window in it), credentials,
time limits, and where the private directories are.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

from becalm import __version__, overlays
from becalm.errors import PluginError
from becalm.manifests import yamlio
from becalm.request import Request
from becalm.sources import detect, kustomization, kustomize
from becalm.sources import tree as charts
from becalm.stabilise.recorded import NAME as LOOKUPS

_SCHEME = "becalm answer key 2"
_MOST_FILES = 50_000
_MOST_BYTES = 512 * 1024 * 1024
#: Fields of a request that cannot reach its output, or that are looked at in another way.
_LEFT_OUT = frozenset((
    "chart", "root", "seed", "helm", "path", "timeout", "at", "cache", "keeping", "epochs_where", "rule_files", "definitions",
    "variables", "tool", "options", "remote", "parameters", "git", "lookups",
))  # fmt: skip
_PACKAGE = Path(__file__).resolve().parents[1]
#: Libraries that write parts of the output.
_LIBRARIES = ("PyYAML", "bcrypt", "cryptography", "gmpy2")
#: Files that say where the dependencies of a chart are.
_REQUIREMENTS = ("Chart.yaml", "requirements.yaml", "Chart.lock", "requirements.lock")
#: Without one of these signs no YAML file can name a path in `.git`: it is written out, escaped or tagged.
_NAMES_GIT = (b".git", b"\\", b"!")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A digest of 32 bytes, and whether an input is on a server where it may change.

    `operators` is the digest of the operator's files alone.
    """

    digest: bytes
    operators: bytes
    may_change: bool


class _UnfitError(OSError):
    """The inputs cannot be told, or there are too many of them."""


def of(request: Request) -> Key | None:
    """The key of a request; None where its inputs cannot all be told, or where it is wrong in some way.

    Errors are for the render to tell.
    """
    digest = _Digest()
    try:
        own_files = operators(request)
        digest.add(own_files)
        may_change = _inputs(request, digest)
    except (_UnfitError, PluginError, OSError):
        return None
    return Key(digest=digest.end(), operators=own_files, may_change=may_change)


def _inputs(request: Request, digest: _Digest) -> bool:
    digest.add(_SCHEME, __version__, own())
    digest.add("" if request.seed is None else request.seed.id)
    given = {
        field.name: getattr(request, field.name) for field in fields(request) if field.name not in _LEFT_OUT
    }
    digest.value(given)
    digest.program(request.helm, request.path)
    options = request.options
    for path in options.values:
        digest.file(path)
    digest.value(replace(options, values=(), set_files=()))
    digest.value((len(options.values), len(options.set_files)))
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
    # An alias of a repository (`@name`) means what these say.
    for place in (network.repository_config, network.repositories):
        digest.add("") if place is None else digest.tree(place)
    if kind in ("helm", "chain") and remote.chart is None:
        chart = remote.path or request.chart
        digest.tree(chart)
        if chart.is_dir() and _has_local_dependencies(chart):
            digest.tree(request.root or chart)
    if request.chart.is_dir():
        digest.optional(request.chart / ".becalm.yaml")
        digest.optional(request.chart / LOOKUPS)
    digest.optional(request.pins_file)
    if kind in ("kustomize", "chain"):
        may_change = _kustomization(request, digest)
    if kind == "directory":
        digest.tree(request.chart, is_deep=request.directory.recurse)
    return may_change


def operators(request: Request) -> bytes:
    """The digest of the operator's files that a render reads late, and that may be replaced while it runs.

    Raises:
        OSError: one cannot be read, or is no file.
    """
    digest = _Digest()
    for files in (request.rule_files, request.definitions):
        digest.add(str(len(files)))
        for path in files:
            digest.file(path)
    return digest.end()


def _has_local_dependencies(chart: Path) -> bool:
    """Whether a file names a directory of the repository, however that is spelled.

    Raises:
        PluginError: a file is not YAML.
    """
    for name in _REQUIREMENTS:
        if (chart / name).is_file():
            value = yamlio.load((chart / name).read_bytes().decode("utf-8", "replace"), where=name)
            entries = value.get("dependencies") if isinstance(value, dict) else None
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, dict) and str(entry.get("repository")).startswith("file://"):
                    return True
    return False


def _kustomization(request: Request, digest: _Digest) -> bool:
    """The files that a Kustomization reads; whether some are on servers."""
    tool = request.tool
    digest.value((tool.build_options, tool.protocols, tool.helm_command))
    digest.program(kustomize.program(tool, request.path), request.path)
    where = request.path_name
    found = overlays.opened(request.chart, request.repository, where, request.kustomize)
    app, root = found.app, found.root
    seen = kustomization.reachable(app, root, found.content, where, reads_anything=tool.reads_anything)
    may_inflate = seen.has_charts or seen.has_remotes or not seen.sees_all
    if tool.inflates and tool.helm_command and may_inflate:
        # Only becalm-helm tells when a certificate changes, and what it fetches.
        raise _UnfitError
    if not seen.sees_all:
        digest.tree(root, has_git=_may_name_git(seen.files, root))
        return seen.has_remotes
    digest.add(app.relative_to(root).as_posix())
    for name, path in seen.named:
        # Two links that change places leave the files as they are.
        digest.add(name, path.relative_to(root).as_posix())
    for path in seen.files:
        digest.add(path.relative_to(root).as_posix())
        digest.optional(path)
    return seen.has_remotes


def _may_name_git(files: Iterable[Path], root: Path) -> bool:
    """Whether a generator of a kustomization at the repository's root may read Git's own files."""
    at_root = any(path.parent == root and path.name in detect.KUSTOMIZATIONS for path in files)
    texts = (path.read_bytes() for path in files if at_root and path.is_file())
    return any(sign in text for text in texts for sign in _NAMES_GIT)


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
        """A value of plain types, in mappings with texts as keys, or in dataclasses, of which the fields count."""
        try:
            self.add(json.dumps(value, sort_keys=True, default=_plain))
        except TypeError as error:
            raise _UnfitError(str(error)) from error

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

    def tree(self, path: Path, *, is_deep: bool = True, has_git: bool = False) -> None:
        """A file, or all files of a directory by name.

        The history of Git is left out, where it is not asked for and no chart that holds it shows it to templates.
        """
        if not path.is_dir():
            self.file(path)
            return
        self._directory(path, is_deep=is_deep, has_git=has_git, above=())

    def _directory(self, path: Path, *, is_deep: bool, has_git: bool, above: tuple[str, ...]) -> None:
        real = os.path.realpath(path)
        if real in above:
            raise _UnfitError
        self.add("directory")
        for entry in _entries(path):
            if entry.is_dir():
                if is_deep and (entry.name != ".git" or has_git or any(map(_shows_git, (*above, real)))):
                    self.add(entry.name)
                    self._directory(Path(entry.path), is_deep=True, has_git=has_git, above=(*above, real))
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


def _shows_git(directory: str) -> bool:
    """Whether a directory is a chart whose `.helmignore` does not keep `.git` from its templates."""
    top = Path(directory)
    if not (top / detect.CHART).is_file():
        return False
    return not charts.rules(top, top, top.name).ignores(".git", is_dir=True)


def _plain(value: object) -> object:
    """What JSON has no word for, in its words.

    Raises:
        TypeError: it has none for this.
    """
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Fraction):
        return ["fraction", str(value)]
    raise TypeError(type(value).__name__)


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
    """Becalm's own files, and what it runs on: a version that is being worked on has one number for many contents."""
    from importlib import metadata  # noqa: PLC0415  # takes long to load; the service has it

    digest = hashlib.sha256(f"{sys.version}\n".encode())
    for name in _LIBRARIES:
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    for path in sorted(_PACKAGE.rglob("*")):
        if path.suffix != ".pyc" and path.is_file():
            data = path.read_bytes()
            digest.update(f"{path.relative_to(_PACKAGE)} {len(data)}\n".encode() + data)
    return digest.digest()
