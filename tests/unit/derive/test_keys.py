"""Private keys that charts give: what Go refuses is refused, in words that show nothing of the key."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from becalm.derive import keys, pem
from becalm.errors import DerivationError

KEY = bytes(range(32))
RSA = load_pem_private_key(keys.rsa_key(KEY, 2048).encode(), None)


def written(key, form=PrivateFormat.PKCS8, encryption=None) -> str:
    return key.private_bytes(Encoding.PEM, form, encryption or NoEncryption()).decode()


@pytest.mark.parametrize("kind", ["rsa", "dsa", "ecdsa", "ed25519"])
def test_what_is_written_can_be_read(kind):
    text = keys.KINDS[kind](KEY)
    assert keys.write(keys.read(text)) == text


def test_keys_are_valid_for_openssl():
    """Whose own check, which becalm leaves out, is done here."""
    for bits in (2048, 4096):
        key = load_pem_private_key(keys.rsa_key(KEY, bits).encode(), None)
        assert key.key_size == bits


@pytest.mark.parametrize(
    "key", [RSA, ec.derive_private_key(5, ec.SECP384R1()), ed25519.Ed25519PrivateKey.from_private_bytes(KEY)]
)
def test_pkcs_8_is_read_and_written_as_sprig_does(key):
    own = keys.write(keys.read(f"some text\n{written(key)}"))
    assert load_pem_private_key(own.encode(), None).public_key() == key.public_key()


def broken(**changes: int) -> str:
    numbers = RSA.private_numbers()
    fields = {name: getattr(numbers, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp")} | changes
    values = [0, numbers.public_numbers.n, numbers.public_numbers.e, fields["d"], fields["p"], fields["q"],
              fields["dmp1"], fields["dmq1"], fields["iqmp"]]  # fmt: skip

    def encoded(number: int) -> bytes:
        data = number.to_bytes(number.bit_length() // 8 + 1, "big")
        return b"\x02" + length(len(data)) + data

    def length(count: int) -> bytes:
        if count < 128:
            return bytes([count])
        size = (count.bit_length() + 7) // 8
        return bytes([0x80 | size]) + count.to_bytes(size, "big")

    body = b"".join(map(encoded, values))
    return pem.write("RSA PRIVATE KEY", b"\x30" + length(len(body)) + body)


def test_the_helper_of_these_tests_writes_keys():
    assert keys.write(keys.read(broken())) == keys.rsa_key(KEY, 2048)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no key",
        "-----BEGIN RSA PRIVATE KEY-----\n!!!!\n-----END RSA PRIVATE KEY-----\n",
        pem.write("RSA PRIVATE KEY", b"x"),
        pem.write("CERTIFICATE", b"x"),
        pem.write("PRIVATE KEY", b""),
        written(x25519.X25519PrivateKey.from_private_bytes(KEY)),
        written(ec.derive_private_key(5, ec.SECP256K1())),
        written(RSA, encryption=BestAvailableEncryption(b"secret")),
        broken(d=RSA.private_numbers().d + 2),
        broken(p=RSA.private_numbers().q),
        broken(dmp1=3),
        broken(iqmp=3),
    ],
)
def test_what_is_no_key_is_refused(text):
    with pytest.raises(DerivationError) as caught:
        keys.read(text)
    assert not any(line in str(caught.value) for line in text.splitlines()[1:-1])


def test_blocks_are_read_as_go_reads_them():
    body = base64.b64encode(bytes(60)).decode()
    text = f"words\n-----BEGIN A B-----\nProc-Type: 4\nDEK-Info: x\n\n{body}\n-----END A B-----\r\nmore\n"
    assert list(pem.blocks(text)) == [("A B", bytes(60))]
    assert pem.first("-----BEGIN A-----\n-----END B-----\n") is None
