"""What becalm-helm tells the becalm that started Kustomize: when the first certificate changes, and what was fetched.

A render is kept until then (becalm.answers), and what was fetched for as long as the operator says. The file is in a private
directory that no chart reaches. `pull` is told of before it becomes helm, so this imports nothing that Python has not loaded.
"""

from __future__ import annotations

import os

# As typing has it, which takes longer to load than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Names the file; becalm.sources.kustomize sets it.
FILE = "BECALM_HELM_TOLD"
FETCHED = "fetched"


def changes(variables: Mapping[str, str], times: Iterable[int]) -> None:
    """Tell when certificates change, in seconds since 1970.

    Raises:
        SourceError: the file cannot be written.
    """
    if times := sorted(times):
        _line(variables, f"change {times[0]}")


def fetched(variables: Mapping[str, str]) -> None:
    """Tell that a chart is fetched.

    Raises:
        SourceError: the file cannot be written.
    """
    _line(variables, FETCHED)


def _line(variables: Mapping[str, str], text: str) -> None:
    path = variables.get(FILE)
    if not path:
        return
    try:
        number = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(number, f"{text}\n".encode())
        finally:
            os.close(number)
    except OSError as error:
        from becalm.errors import SourceError  # noqa: PLC0415  # loaded where something is wrong only

        raise SourceError(
            f"the file cannot be written: {error.strerror}", where=FILE, hint="leave it to becalm"
        ) from error
