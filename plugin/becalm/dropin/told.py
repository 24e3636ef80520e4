"""What becalm-helm tells the becalm that started Kustomize: when each certificate changes, what was fetched or looked up.

A render is kept until the first does (becalm.answers), and what was fetched for as long as the operator says. The file is in a private
directory that no chart reaches. `pull` is told of before it becomes helm, so this imports nothing that Python has not loaded.
"""

from __future__ import annotations

import os

# As typing has it, which takes longer to load than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from becalm.errors import Warned

#: Names the file; becalm.sources.kustomize sets it.
FILE = "BECALM_HELM_TOLD"
FETCHED = "fetched"
NOTICE = "notice"


def changes(variables: Mapping[str, str], planned: Mapping[bytes, int]) -> None:
    """Tell when certificates change, in seconds since 1970, by their fingerprints.

    Raises:
        SourceError: the file cannot be written.
    """
    lines = sorted(f"change {at} {fingerprint.hex()}" for fingerprint, at in planned.items())
    if lines:
        _line(variables, "\n".join(lines))


def fetched(variables: Mapping[str, str]) -> None:
    """Tell that a chart is fetched.

    Raises:
        SourceError: the file cannot be written.
    """
    _line(variables, FETCHED)


def noticed(variables: Mapping[str, str], notices: Sequence[Warned]) -> bool:
    """Tell what should be told to people; whether there is somebody who will.

    Raises:
        SourceError: the file cannot be written.
    """
    if not variables.get(FILE):
        return False
    import base64  # noqa: PLC0415  # loaded where there is something to tell only
    import json  # noqa: PLC0415

    for one in notices:
        text = json.dumps([one.what, one.where, one.hint]).encode()
        _line(variables, f"{NOTICE} {base64.b64encode(text).decode('ascii')}")
    return True


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
