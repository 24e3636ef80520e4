"""Which components an application adds: paths, globs and missing ones, as `kustomize edit add component` has it."""

from __future__ import annotations

import os
from pathlib import Path

from becalm.errors import ConfigError, SourceError
from becalm.sources import globs, repospec
from becalm.sources.edits import WHERE, KustomizeOptions

_PLACE = f"{WHERE}: components"


def found(options: KustomizeOptions, *, app: Path, root: Path) -> tuple[str, ...]:
    """The components of the options, by path from the application's directory or by address.

    Args:
        options: what is asked for.
        app: the application's directory, with links followed.
        root: the repository, likewise.

    Raises:
        ConfigError: one would become an option of Kustomize.
        SourceError: one leads out of the repository, or is not there.
    """
    result: list[str] = []
    for name in options.components:
        if name.startswith("-") or not globs.is_path(name):
            raise ConfigError(f"{name[:200]!r} is no component", where=_PLACE, hint="write its path")
        if repospec.parse(name) is not None:
            # Argo CD looks for a directory of that name.
            result += [] if options.ignore_missing_components else [name]
            continue
        target = Path(os.path.realpath(app / name))
        if name.startswith("/") or not target.is_relative_to(root):
            raise _outside(name)
        # Argo CD looks before globs are read (util/kustomize, `Build`), so that a glob is always missing.
        if options.ignore_missing_components and not target.exists():
            continue
        names = _present(name, app, root)
        if not names:
            raise SourceError(
                f"{name[:200]!r} is not there",
                where=_PLACE,
                hint="check its path, or set ignoreMissingComponents to true",
            )
        result += names
    return tuple(result)


def _present(name: str, app: Path, root: Path) -> list[str]:
    if not globs.is_glob(name):
        return [name] if os.path.lexists(app / name) else []
    base, pattern = globs.climbed(app, name)
    matches = globs.matches(base, pattern.replace("**", "*"), where=_PLACE)
    if not all(Path(os.path.realpath(match)).is_relative_to(root) for match in matches):
        raise _outside(name)
    return [os.path.relpath(match, app) for match in matches]


def _outside(name: str) -> SourceError:
    return SourceError(
        f"{name[:200]!r} leads out of the repository", where=_PLACE, hint="keep it in the repository"
    )
