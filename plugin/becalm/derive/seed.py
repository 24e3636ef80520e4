"""Seeds: at least 32 random bytes, known only to the operator.

A seed file is either one line of text, `becalm-seed-v1:` and at least 32 bytes in URL-safe base64,
as `becalm seed new` writes it; or, if it does not start like that, the raw bytes themselves.
A seed's id is its fingerprint, so it does not depend on a file's name or place.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from becalm.errors import ConfigError

MINIMUM = 32
MAXIMUM = 4096
_PREFIX = b"becalm-seed-v1:"
_REMEDY = "make one with `becalm seed new FILE`"


@dataclass(frozen=True, slots=True)
class Seed:
    """A seed; its representation shows the fingerprint only."""

    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """The fingerprint: 16 hexadecimal digits that do not reveal the seed."""
        return hmac.new(b"becalm seed fingerprint", self.secret, hashlib.sha256).hexdigest()[:16]


def parse(data: bytes, *, where: str) -> Seed:
    """Read a seed file's content.

    Raises:
        ConfigError: too short, too long, damaged, or plainly not random.
    """
    is_text = data.startswith(_PREFIX)
    secret = _decode(data[len(_PREFIX) :].strip(), where) if is_text else data
    if len(secret) < MINIMUM:
        raise ConfigError(
            f"the seed has {len(secret)} bytes, at least {MINIMUM} are needed", where=where, hint=_REMEDY
        )
    if len(secret) > MAXIMUM:
        raise ConfigError(f"the seed has more than {MAXIMUM} bytes", where=where, hint=_REMEDY)
    if len(set(secret)) < MINIMUM // 4:
        raise ConfigError("the seed is not random", where=where, hint=_REMEDY)
    return Seed(secret)


def choose(contents: Mapping[str, bytes], wanted: str, *, where: str) -> Seed:
    """One of several seeds.

    Args:
        contents: of the files, by name.
        wanted: the name of a file or the id of a seed; "" where there is only one.
        where: the directory or file, for messages.

    Raises:
        ConfigError: a file holds no seed, or `wanted` does not tell which.
    """
    seeds = {name: parse(data, where=f"{where}: {name}" if len(contents) > 1 else where)
             for name, data in contents.items()}  # fmt: skip
    found = {seed.id: seed for name, seed in seeds.items() if wanted in ("", name, seed.id)}
    if len(found) == 1:
        return next(iter(found.values()))
    known = ", ".join(f"{name} ({seed.id})" for name, seed in seeds.items())
    if wanted:
        raise ConfigError(f"there is no seed {wanted!r}", where=where, hint=f"the seeds are {known}")
    raise ConfigError(
        "there are several seeds, and none is chosen",
        where=where,
        hint=f"choose one with --seed-id, or BECALM_SEED_ID of the sidecar: {known}",
    )


def _decode(text: bytes, where: str) -> bytes:
    try:
        return base64.b64decode(text, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError("the seed is damaged: not base64", where=where, hint=_REMEDY) from None


def new() -> bytes:
    """The content of a fresh seed file."""
    return write(Seed(secrets.token_bytes(MINIMUM)))


def write(seed: Seed) -> bytes:
    """The content of a seed's file."""
    return _PREFIX + base64.urlsafe_b64encode(seed.secret) + b"\n"
