"""A private copy of a repository, in which files may be replaced while the checkout stays as it is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from becalm.errors import SourceError

_MOST = 200_000
_GIT = ".git"
#: Where a link points that leads out; whoever follows it finds nothing, and says so.
_NOWHERE = "a-link-that-leads-out-of-the-repository"


def copy(root: Path, destination: Path, *, may_link: bool) -> Path:
    """Copy a repository without its history.

    With `may_link` files are hard links where the disk allows it: for whom nothing is written into files. Links that lead out of the repository lead nowhere in the copy.

    Raises:
        SourceError: it cannot be read, or has too many files.
    """
    real = Path(os.path.realpath(root))
    try:
        _Copier(real, destination, may_link=may_link).directory(real, destination)
    except OSError as error:
        raise SourceError(
            f"the repository cannot be copied to the working directory: {error.strerror}", where=root.name
        ) from error
    return destination


class _Copier:
    def __init__(self, root: Path, destination: Path, *, may_link: bool) -> None:
        self.root = root
        self.destination = destination
        self.number = 0
        self.links = may_link

    def directory(self, source: Path, target: Path) -> None:
        with os.scandir(source) as entries:
            found = sorted(entries, key=lambda one: one.name)
        target.mkdir(mode=0o700)
        for entry in found:
            # A person's temporary directory may be in the repository, and the copy with it.
            if entry.name == _GIT or self.destination.is_relative_to(entry.path):
                continue
            self.number += 1
            if self.number > _MOST:
                raise SourceError(f"the repository has more than {_MOST:,} files", where=self.root.name)
            if entry.is_symlink():
                self.link(Path(entry.path), target / entry.name)
            elif entry.is_dir(follow_symlinks=False):
                self.directory(Path(entry.path), target / entry.name)
            elif entry.is_file(follow_symlinks=False):
                self.file(entry.path, target / entry.name)

    def link(self, source: Path, target: Path) -> None:
        real = Path(os.path.realpath(source))
        if not real.is_relative_to(self.root):
            target.symlink_to(_NOWHERE)
            return
        there = self.destination / real.relative_to(self.root)
        target.symlink_to(os.path.relpath(there, target.parent))

    def file(self, source: str, target: Path) -> None:
        if self.links:
            try:
                os.link(source, target, follow_symlinks=False)
            except OSError:
                self.links = False  # another disk, or a file that is not ours to link
            else:
                return
        shutil.copyfile(source, target)


def write(path: Path, content: bytes, root: Path) -> None:
    """Put a new file in the place of one of the copy, or where there is none, without writing through a link.

    Raises:
        SourceError: the place is not in the copy.
    """
    parent = Path(os.path.realpath(path.parent))
    if not parent.is_relative_to(os.path.realpath(root)):
        raise SourceError(
            "the path leads out of the repository", where=path.name, hint="keep it in the repository"
        )
    parent.mkdir(parents=True, exist_ok=True)
    fresh = parent / path.name
    fresh.unlink(missing_ok=True)
    with fresh.open("xb") as target:
        target.write(content)
