"""Which values files an application means: paths, globs and duplicates as Argo CD's own Helm source treats them.

The rules are those of Argo CD, reposerver/repository (`getResolvedValueFiles`) and util/io/path: a relative
path is below the application's directory, one that begins with / below the repository's root, and nothing
may lead out of the root, links included. What several names mean is loaded once, at its first place; a
file that is named by itself keeps that place also where a glob would have found it earlier.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from becalm.errors import SourceError
from becalm.sources import globs, remote_values
from becalm.sources.remote_values import RemoteFile

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_REFERENCE = re.compile(r"\$\{?([\w-]+)")
_MOST_FILES = 1000
_ENDING = re.compile(r"[,\\]")


def resolve(  # noqa: PLR0913  # by keyword, and each a fact of its own
    names: Sequence[str],
    *,
    app: Path,
    root: Path,
    ignore_missing: bool,
    where: str,
    urls: Sequence[str] = (),
) -> list[Path | RemoteFile]:
    """The files, in the order in which helm loads them.

    Args:
        names: as the application gives them.
        app: the application's directory, in the root.
        root: the repository's root.
        ignore_missing: leave out files that are not there, and globs that find nothing.
        where: the parameter, for messages.
        urls: prefixes of addresses that the operator allows.

    Raises:
        SourceError: a name is an address that is not allowed, leads out of the root, or is not there.
    """
    root = Path(os.path.realpath(root))
    app = Path(os.path.realpath(app))
    local = [name for name in names if not (urls and _URL.match(name))]
    plain = {_inside(name, app, root, where) for name in local if not globs.is_glob(name)}
    found: list[Path | RemoteFile] = []
    for name in names:
        if urls and _URL.match(name):
            found.append(remote_values.parse(name, urls, where=where))
            continue
        if globs.is_glob(name):
            matches = [path for path in _globbed(name, app, root, where) if path not in plain]
            if not matches and not ignore_missing:
                raise _missing(name, where, "no file fits the pattern")
            found += matches
            continue
        path = _inside(name, app, root, where)
        if path.is_file():
            found.append(path)
        elif not ignore_missing:
            raise _missing(name, where, "the file is not there")
    return list(dict.fromkeys(found))


def refuse_other_sources(names: Sequence[str], variables: Sequence[str], *, where: str) -> None:
    """Refuse `$ref/...`, which means another source of the application.

    Args:
        names: before variables are replaced.
        variables: the names of those that are.
        where: the parameter, for messages.

    Raises:
        SourceError: a name begins with something else than such a variable.
    """
    for name in names:
        match = _REFERENCE.match(name)
        if match is not None and match[1] not in variables:
            raise SourceError(
                f"{name[:200]!r} means another source of the application, which no plugin is given",
                where=where,
                hint="keep the file in this repository",
            )


def single(name: str, *, app: Path, root: Path, where: str) -> Path:
    """One file of the repository, for `--set-file`.

    Raises:
        SourceError: as `resolve`.
    """
    path = _inside(name, Path(os.path.realpath(app)), Path(os.path.realpath(root)), where)
    if not path.is_file():
        raise _missing(name, where, "the file is not there")
    if _ENDING.search(str(path)):
        # helm would read on behind it, and take the rest for another file.
        raise SourceError(
            f"{name[:200]!r} has a comma or backslash in its path", where=where, hint="rename the file"
        )
    return path


def _inside(name: str, app: Path, root: Path, where: str) -> Path:
    _refuse(name, where)
    path = Path(os.path.realpath(root / name.lstrip("/") if name.startswith("/") else app / name))
    if not path.is_relative_to(root) or path == root:
        raise _outside(name, where)
    return path


def _refuse(name: str, where: str) -> None:
    if _URL.match(name):
        raise SourceError(
            f"{name[:200]!r} is an address, and what it holds may change between two renders",
            where=where,
            hint="keep the file in the repository, or ask the operator to allow it by BECALM_VALUES_FILE_URLS",
        )
    if not globs.is_path(name):
        raise SourceError(f"{name[:60]!r} is no name of a file", where=where, hint="correct it")


def _globbed(name: str, app: Path, root: Path, where: str) -> list[Path]:
    """The files that a pattern means, in lexical order; `**` goes through any number of directories."""
    _refuse(name, where)
    base, pattern = globs.climbed(root if name.startswith("/") else app, name.lstrip("/"))
    if not base.is_relative_to(root):
        raise _outside(name, where)
    matches = [path for path in globs.matches(base, pattern, where=where) if path.is_file()]
    if len(matches) > _MOST_FILES:
        raise SourceError(f"{name[:200]!r} fits more than {_MOST_FILES} files", where=where)
    real = [Path(os.path.realpath(match)) for match in matches]
    if not all(path.is_relative_to(root) for path in real):
        raise _outside(name, where)
    return real


def _outside(name: str, where: str) -> SourceError:
    return SourceError(
        f"{name[:200]!r} leads out of the repository", where=where, hint="keep the file in the repository"
    )


def _missing(name: str, where: str, what: str) -> SourceError:
    return SourceError(
        f"{name[:200]!r}: {what}", where=where, hint="check its path, or set ignoreMissingValueFiles to true"
    )
