"""Numbers of keys: the published vectors, and what a key of each kind must be."""

from __future__ import annotations

import json
from pathlib import Path

import gmpy2
import pytest

from becalm.derive import numbers

VECTORS = Path(__file__).parents[2] / "vectors" / "det-keygen"
RSA = json.loads((VECTORS / "rsa.json").read_text())
ECDSA = json.loads((VECTORS / "ecdsa.json").read_text())


@pytest.mark.parametrize("vector", RSA, ids=lambda v: f"{v['bits']}-{v['seed'][:16]}")
def test_rsa_keys_are_those_of_the_published_vectors(vector):
    found = numbers.rsa(bytes.fromhex(vector["seed"]), vector["bits"])
    assert [f"{number:x}" for number in (found.p, found.q, found.d)] == [vector[name] for name in "pqd"]


@pytest.mark.parametrize("vector", ECDSA, ids=lambda v: f"{v['curve']}-{v['seed'][:16]}")
def test_ecdsa_keys_are_those_of_the_published_vectors(vector):
    assert f"{numbers.ecdsa(bytes.fromhex(vector['seed']), vector['curve']):x}" == vector["d"]


def test_the_vectors_are_all_there():
    """The one seed that needs a second draw among them."""
    assert (len(RSA), len(ECDSA)) == (21, 21)
    assert "b432f9be30890480298218510559aed7" in {vector["seed"] for vector in ECDSA}


def test_a_scalar_out_of_range_is_drawn_again_for_p256_only(monkeypatch):
    """No published seed reaches the end; a smaller order does."""
    monkeypatch.setitem(numbers.ORDERS, "P-384", 2**383)
    seeds = (bytes([number]) * 16 for number in range(64))
    out_of_range = 0
    for seed in seeds:
        try:
            numbers.ecdsa(seed, "P-384")
        except ValueError:
            out_of_range += 1
    assert 0 < out_of_range < 64


@pytest.mark.parametrize("bits", [1024, 2047, 2056])
def test_rsa_sizes_that_the_scheme_does_not_have(bits):
    with pytest.raises(ValueError, match="2048 bits"):
        numbers.rsa(bytes(32), bits)


def test_seeds_that_are_too_short():
    with pytest.raises(ValueError, match="16 bytes"):
        numbers.rsa(bytes(15), 2048)
    with pytest.raises(ValueError, match="16 bytes"):
        numbers.ecdsa(bytes(15), "P-256")


@pytest.mark.parametrize("key", [bytes(32), bytes(range(32)), b"\xff" * 32])
def test_dsa_keys_are_as_fips_186_4_says(key):
    found = numbers.dsa(key)
    assert found == numbers.dsa(key)
    assert found.p.bit_length() == 2048
    assert found.q.bit_length() == 256
    assert gmpy2.is_prime(found.p, 40)
    assert gmpy2.is_prime(found.q, 40)
    assert (found.p - 1) % found.q == 0
    assert 1 < found.g < found.p
    assert pow(found.g, found.q, found.p) == 1
    assert 0 < found.x < found.q
    assert pow(found.g, found.x, found.p) == found.y


@pytest.mark.parametrize("number", [2**127 - 1, 2**89 - 1, 2**521 - 1])
def test_primes_are_prime(number):
    assert numbers.is_prime(number)


@pytest.mark.parametrize(
    "number",
    [
        (2**127 - 1) * (2**89 - 1),
        3 * (2**127 - 1),
        2**127 + 1,
        318665857834031151167461,  # a strong pseudoprime to the first twelve primes
        3317044064679887385961981,  # and to the first thirteen
    ],
)
def test_composites_are_not(number):
    assert not numbers.is_prime(number)
