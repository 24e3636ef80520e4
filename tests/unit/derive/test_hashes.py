"""Hashes and encrypted texts are real ones, with salts that a new password never meets again."""

from __future__ import annotations

import base64

import bcrypt
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from becalm.derive import hashes

KEYS = st.binary(min_size=32, max_size=32)
KEY = bytes(range(32))


@pytest.mark.parametrize("password", ["", "a", "pass word", "ü" * 36, "x" * 72, 'a"b\\c'])
def test_the_password_logs_in(password):
    user, _, line = hashes.htpasswd(KEY, "admin", password, "").partition(":")
    assert user == "admin"
    assert line.startswith("$2a$10$")
    assert bcrypt.checkpw(password.encode(), line.encode())
    assert not bcrypt.checkpw(b"another", line.encode())


def test_salts_depend_on_key_and_password():
    salts = {hashes.bcrypt(key, password)[:29] for key in (KEY, bytes(32)) for password in ("a", "b")}
    assert len(salts) == 4


@pytest.mark.parametrize("password", ["x" * 73, "ü" * 37])
def test_passwords_above_72_bytes_give_the_text_that_sprig_gives(password):
    text = "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    assert hashes.bcrypt(KEY, password) == text
    assert hashes.htpasswd(KEY, "u", password, "bcrypt") == f"u:{text}"


def test_users_with_a_colon_give_the_text_that_sprig_gives():
    assert hashes.htpasswd(KEY, "a:b", "p", "") == "invalid username: a:b"


@settings(max_examples=30)
@given(KEYS, st.text(), st.text(min_size=1))
def test_what_is_encrypted_can_be_decrypted(key, password, text):
    """As decryptAES does: 32 bytes of the password, the vector first, PKCS #7 padding."""
    data = base64.b64decode(hashes.encrypt_aes(key, password, text))
    secret = password.encode()[:32].ljust(32, b"\0")
    decryptor = Cipher(algorithms.AES(secret), modes.CBC(data[:16])).decryptor()
    padded = decryptor.update(data[16:]) + decryptor.finalize()
    assert padded[: -padded[-1]].decode() == text


def test_equal_beginnings_do_not_show():
    one, two = (base64.b64decode(hashes.encrypt_aes(KEY, "k", "x" * 32 + end)) for end in "ab")
    assert one[:16] != two[:16]
    assert one[16:32] != two[16:32]


def test_nothing_encrypts_to_nothing():
    assert hashes.encrypt_aes(KEY, "k", "") == ""
