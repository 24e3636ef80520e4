"""Values files from addresses: which are allowed, and how they are pinned; `remote_fetch` brings them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from becalm.errors import SourceError, Warned
from becalm.sources import addresses

VARIABLE = "BECALM_VALUES_FILE_URLS"
_PIN = re.compile(r"sha256=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A values file from an address; `digest` is the SHA-256 that it must have, in hexadecimal, or "".

    `where` is the parameter that names it, for messages.
    """

    address: addresses.Address
    digest: str
    where: str

    @property
    def warned(self) -> Warned | None:
        """That it may be another one tomorrow, unless it is pinned."""
        if self.digest:
            return None
        return Warned(
            f"{self.address.shown} is not pinned, and may hold something else at the next render",
            where=self.where,
            hint="put #sha256= and its digest behind it, or keep the file in the repository",
        )


def parse(name: str, urls: Sequence[str], *, where: str) -> RemoteFile:
    """Read an address of a values file.

    Args:
        name: as the application gives it.
        urls: prefixes that the operator allows.
        where: the parameter, for messages.

    Raises:
        SourceError: it is none, or not allowed.
        ConfigError: a prefix is no address.
    """
    text, mark, fragment = name.partition("#")
    pin = _PIN.fullmatch(fragment)
    if mark and pin is None:
        raise SourceError(
            "what stands behind # is no digest", where=where, hint="write #sha256= and 64 hexadecimal digits"
        )
    address = addresses.parse(text, where=where)
    if address.is_oci:
        raise SourceError("a registry holds no values files", where=where, hint="use an https:// address")
    addresses.require_allowed(address, urls, variable=VARIABLE, where=where)
    return RemoteFile(address=address, digest=pin[1] if pin else "", where=where)
