"""Keys and labels: how a value is bound to everything that changes its meaning.

    app key = HKDF-SHA256(seed, info = encode("becalm app key", scheme, seed id, cluster, project,
                                              application, namespace [, "epoch", epoch]))
    item key = HMAC-SHA256(app key, encode("becalm item", scheme, label parts...))

`encode` is length-prefixed, so that no two lists of parts give the same bytes. The scheme version
is part of both: a change of any byte that users rely on is a new scheme version.
HKDF is RFC 5869 with an empty salt.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass

SCHEME = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The identity of an application, none of which an app team can choose by a parameter.

    `name`, `project` and `namespace` come from what Argo CD itself sets (ARGOCD_APP_NAME,
    ARGOCD_APP_PROJECT_NAME and ARGOCD_APP_NAMESPACE, the destination namespace); `cluster` from
    the operator's configuration.
    """

    name: str
    project: str
    namespace: str
    cluster: str


def encode(parts: Iterable[str | int]) -> bytes:
    """Length-prefixed encoding of a list of strings and integers.

    Each part is its type (s or i), the length of its UTF-8 text as 8 big-endian bytes, and the
    text; so lists that differ anywhere differ in their encoding.
    """
    out = bytearray()
    for part in parts:
        data = str(part).encode("utf-8", "surrogateescape")
        out += b"i" if isinstance(part, int) else b"s"
        out += len(data).to_bytes(8, "big") + data
    return bytes(out)


def hkdf(secret: bytes, info: bytes, length: int = 32) -> bytes:
    """HKDF-SHA256 (RFC 5869) with an empty salt; `length` is at most 8,160 bytes."""
    pseudorandom_key = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    out = block = b""
    for counter in range(1, -(-length // 32) + 1):
        block = hmac.new(pseudorandom_key, block + info + bytes([counter]), hashlib.sha256).digest()
        out += block
    return out[:length]


def app_key(seed: bytes, seed_id: str, application: Application, epoch: str = "") -> bytes:
    """The key (32 bytes) from which all values of one application are derived.

    Args:
        seed: the seed.
        seed_id: its id.
        application: whose values.
        epoch: the app's epoch; another one gives other values, "" is the first.
    """
    parts = ("becalm app key", SCHEME, seed_id, application.cluster, application.project,
             application.name, application.namespace)  # fmt: skip
    return hkdf(seed, encode((*parts, "epoch", epoch) if epoch else parts))


@dataclass(frozen=True, slots=True)
class Label:
    """What one value is: the parts of its identity, readable and without any secret.

    The parts are strings and integers; the first names the kind of label (landing, site).
    """

    parts: tuple[str | int, ...]

    def __str__(self) -> str:
        return json.dumps(self.parts, ensure_ascii=False, separators=(",", ":"))

    @property
    def place(self) -> str:
        """Where the value lands, for people: `Secret/shop/db data.password`; its site where it lands nowhere."""
        kind, *rest = (str(part) for part in self.parts)
        if kind != "landing":
            return rest[0] if rest else kind
        group, object_kind, namespace, name, path, *_ = rest
        owner = f"{object_kind}.{group}" if group else object_kind
        return f"{owner}/{namespace}/{name} {path}" if namespace else f"{owner}/{name} {path}"

    def numbered(self, number: int) -> Label:
        """The label of the `number`-th further value with the same identity; 0 is this label."""
        return Label((*self.parts, "repeat", number)) if number else self

    @property
    def first(self) -> Label:
        """The label of the first value with the same identity."""
        *parts, word, number = self.parts
        return Label(tuple(parts)) if word == "repeat" and isinstance(number, int) else self


def item_key(key: bytes, label: Label) -> bytes:
    """The key (32 bytes) of one value of an application."""
    return hmac.new(key, encode(("becalm item", SCHEME, *label.parts)), hashlib.sha256).digest()
