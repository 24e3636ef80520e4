"""Writes crypto.json, the bytes that keys, certificates and hashes must have for ever.

Run it to add a case. A change of what is there is a new scheme version, never a slip.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from becalm.derive.cache import Cache
from becalm.derive.deriver import Deriver
from becalm.derive.labels import Label
from becalm.derive.windows import Windows
from becalm.stabilise.finals import as_json

APP_KEY = bytes(range(32))
AT = 1_790_000_000
CA = ["example-ca", 3650]
LEAF = ["db.example.svc", ["10.0.0.1", "fd00::1"], ["db", "db.example.svc"], 365]
#: name, function, arguments, and the names of the earlier cases that are given, with the part of each.
CASES = [
    ("rsa", "genPrivateKey", ["rsa"], []),
    ("dsa", "genPrivateKey", ["dsa"], []),
    ("ecdsa", "genPrivateKey", ["ecdsa"], []),
    ("ed25519", "genPrivateKey", ["ed25519"], []),
    ("ca", "genCA", CA, []),
    ("self-signed", "genSelfSignedCert", LEAF, []),
    ("leaf", "genSignedCert", LEAF, [("ca", "Cert"), ("ca", "Key")]),
    ("ca-with-rsa", "genCAWithKey", CA, [("rsa", "")]),
    ("ca-with-ecdsa", "genCAWithKey", CA, [("ecdsa", "")]),
    ("ca-with-ed25519", "genCAWithKey", CA, [("ed25519", "")]),
    ("self-signed-with-ecdsa", "genSelfSignedCertWithKey", LEAF, [("ecdsa", "")]),
    ("leaf-of-ecdsa-with-rsa", "genSignedCertWithKey", LEAF,
     [("ca-with-ecdsa", "Cert"), ("ca-with-ecdsa", "Key"), ("rsa", "")]),
    ("leaf-of-ed25519-with-ecdsa", "genSignedCertWithKey", LEAF,
     [("ca-with-ed25519", "Cert"), ("ca-with-ed25519", "Key"), ("ecdsa", "")]),
    ("empty-name", "genSelfSignedCert", ["", [], ["a.example"], 30], []),
    ("long-name", "genSelfSignedCert", ["ü" * 80, [], [], 30], []),
    ("htpasswd", "htpasswd", ["admin"], [("=pass word", "")]),
    ("htpasswd-sha", "htpasswd", ["admin", "sha"], [("=pass word", "")]),
    ("bcrypt", "bcrypt", [], [("=pass word", "")]),
    ("bcrypt-of-73-bytes", "bcrypt", [], [("=" + "x" * 73, "")]),
    ("aes", "encryptAES", [], [("=secret", ""), ("=plain text", "")]),
    ("aes-of-nothing", "encryptAES", [], [("=secret", ""), ("=", "")]),
]  # fmt: skip


def derive() -> dict[str, object]:
    """Every case's value, as the runtime's table holds it."""
    deriver = Deriver(APP_KEY, at=AT, windows=Windows(), cache=Cache(None))
    done: dict[str, object] = {}
    for name, function, arguments, given in CASES:
        texts = [_text(done, source, part) for source, part in given]
        label = Label(("site", f"vector/{name}", function))
        done[name] = as_json(deriver.value(label, function, json.dumps(arguments), texts))
    return done


def _text(done: dict[str, object], source: str, part: str) -> str:
    if source.startswith("="):
        return source[1:]
    value = done[source]
    return value[part] if isinstance(value, dict) else str(value)


def digests(value: object) -> object:
    """Short values as they are, PEM texts by their SHA-256."""
    if isinstance(value, dict):
        return {name: digests(text) for name, text in value.items()}
    text = str(value)
    return hashlib.sha256(text.encode()).hexdigest() if text.startswith("-----") else text


if __name__ == "__main__":
    found = {name: digests(value) for name, value in derive().items()}
    Path(__file__).with_name("crypto.json").write_text(json.dumps(found, indent=1) + "\n")
