"""Files of pins: stable, exact to the byte, bound to application, epoch, place and seed."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from becalm.derive import pins as pinning
from becalm.derive.labels import Application, Label
from becalm.derive.pins import Pin, Pins, text_label
from becalm.derive.sealing import Sealer
from becalm.derive.seed import Seed
from becalm.errors import ConfigError

SEED = Seed(bytes(range(32)))
APP = Application(name="shop", project="default", namespace="prod", cluster="")
SEALER = Sealer(SEED, APP)
VECTORS = Path(__file__).parents[2] / "vectors" / "pins"
PASSWORD = Label(
    ("landing", "", "Secret", "prod", "db", "data.password", "", "value", "randAlphaNum", "[16]")
)
REPEATED = PASSWORD.numbered(1)
HASH = Label(("landing", "", "Secret", "prod", "db", "data.hash", 'it\'s "ü"', "value", "htpasswd", '["u"]'))
CERTIFICATE = Label(
    ("landing", "", "Secret", "prod", "tls", "data[tls.crt]", "", "value", "genCA", '["ca",365]')
)
PINS = {
    PASSWORD: Pin(texts=("correct horse battery staple",)),
    REPEATED: Pin(texts=("",)),
    HASH: Pin(texts=("u:$2a$10$abc",), given=pinning.digest(["correct horse battery staple"])),
    CERTIFICATE: Pin(texts=("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n", "")),
    text_label(PASSWORD): Pin(texts=("prefix-\x00-ü-suffix",), given=pinning.made_from("prefix-x-suffix")),
}


def section(pins=PINS, *, sealer=SEALER, seed=SEED, epoch=""):
    return pinning.seal(pins, sealer, seed=seed.id, epoch=epoch)


def opened(path: Path, seed=SEED, application=APP, epoch="") -> dict[Label, Pin]:
    return dict(pinning.pins_of(path, seed, application, epoch).items)


@pytest.fixture
def path(tmp_path) -> Path:
    other = Sealer(SEED, replace(APP, name="other"))
    path = tmp_path / pinning.NAME
    path.write_text(pinning.write({
        "default/shop/prod": section(), "default/other/prod": section({PASSWORD: PINS[PASSWORD]}, sealer=other)
    }))  # fmt: skip
    return path


def test_a_committed_file_opens_in_every_later_version() -> None:
    committed = VECTORS / "becalm.pins.yaml"
    assert opened(committed) == PINS
    assert opened(committed, epoch="2") == {}
    assert opened(committed, application=replace(APP, name="other", cluster="eu-1"), epoch="e") == {
        PASSWORD: PINS[PASSWORD]
    }
    assert pinning.write(pinning.load(committed)) == committed.read_text("utf-8")


def test_the_same_pins_give_the_committed_file() -> None:
    other = Sealer(SEED, replace(APP, name="other", cluster="eu-1"))
    file = {
        "default/other/prod@eu-1": section({PASSWORD: PINS[PASSWORD]}, sealer=other, epoch="e"),
        "default/shop/prod": section(dict(reversed(PINS.items()))),
    }
    assert pinning.write(file) == (VECTORS / "becalm.pins.yaml").read_text("utf-8")


def test_no_file_and_no_seed_are_no_pins(tmp_path, path) -> None:
    assert opened(tmp_path / "nothing") == {}
    assert opened(path / "below") == {}
    assert opened(path, seed=None) == {}
    assert opened(path, application=replace(APP, name="third")) == {}


def test_one_changed_value_changes_one_line() -> None:
    before = pinning.write({"a": section()}).splitlines()
    after = pinning.write({"a": section({**PINS, PASSWORD: Pin(texts=("another",))})}).splitlines()
    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def outcome(path: Path, data: bytes) -> dict[Label, Pin] | None:
    """The pins of a file with this content; None for an error, which names the file."""
    path.write_bytes(data)
    told = ""
    try:
        return opened(path)
    except ConfigError as error:
        told = error.where
    assert told.startswith(path.name)
    return None


def is_harmless(found: dict[Label, Pin] | None) -> bool:
    """Whether a damaged file gives an error, or some of its pins, each as it was."""
    return found is None or all(PINS.get(label) == pin for label, pin in found.items())


def test_a_change_of_any_byte_is_an_error(path) -> None:
    """Only what is sealed for another application is not looked at."""
    data = path.read_bytes()
    assert outcome(path, data) == PINS
    other = range(data.index(b"  'default/other/prod'"), data.index(b"  'default/shop/prod'"))
    for at, byte in enumerate(data):
        changes = {byte ^ 1, byte ^ 0x20, byte ^ 0x80, ord("\n"), ord("A")} - {byte}
        damaged = [data[:at] + bytes([new]) + data[at + 1 :] for new in sorted(changes)[at % 2 :: 2]]
        damaged += [data[:at] + data[at + 1 :], data[:at] + b"0" + data[at:]][at % 2 :: 2]
        for one in damaged:
            found = outcome(path, one)
            assert found is None or (at in other and found == PINS), (at, one)


def test_whole_entries_can_be_removed_and_no_part_of_them(path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for first, last in itertools.combinations(range(len(lines) + 1), 2):
        found = outcome(path, b"".join(lines[:first] + lines[last:]))
        assert is_harmless(found)
    at = next(n for n, line in enumerate(lines) if b"data.hash" in line)
    assert outcome(path, b"".join(lines[:at] + lines[at + 2 :])) == {
        k: v for k, v in PINS.items() if k != HASH
    }
    assert outcome(path, b"".join(lines[:at] + lines[at + 1 :])) is None
    assert outcome(path, b"".join(lines[: at + 1] + lines[at + 2 :])) is None


def test_entries_and_sections_stay_in_their_order(path) -> None:
    data = path.read_text()
    lines = data.splitlines(keepends=True)
    at = [n for n, line in enumerate(lines) if line.startswith("    - label")]
    lines[at[1] : at[1] + 2], lines[at[2] : at[2] + 2] = lines[at[2] : at[2] + 2], lines[at[1] : at[1] + 2]
    assert outcome(path, "".join(lines).encode()) is None
    assert outcome(path, (data + "".join(data.splitlines(keepends=True)[at[-1] :])).encode()) is None


@pytest.mark.parametrize(("application", "seed", "epoch"), [
    (replace(APP, name="other"), SEED, ""),
    (replace(APP, project="other"), SEED, ""),
    (replace(APP, namespace="other"), SEED, ""),
    (replace(APP, cluster="other"), SEED, ""),
    (APP, Seed(bytes(range(1, 33))), ""),
    (APP, SEED, "2"),
])  # fmt: skip
def test_a_section_of_another_is_an_error_that_names_the_first_pin(
    tmp_path, application, seed, epoch
) -> None:
    one = pinning.seal(PINS, Sealer(seed, application), seed=SEED.id, epoch=epoch)
    path = tmp_path / pinning.NAME
    path.write_text(pinning.write({"default/shop/prod": replace(one, epoch="")}))
    with pytest.raises(
        ConfigError, match=r"the pin .* is damaged, or is not of this application and place"
    ) as told:
        opened(path)
    assert "data" in str(told.value)


def test_a_section_under_a_damaged_name_is_an_error(path) -> None:
    text = path.read_text()
    for name in ("default/shop-/prod", "default/shop/prod@eu", "shop", "a/b", "default/shop/"):
        path.write_text(pinning.write({
            name if key == "default/shop/prod" else key: one for key, one in pinning.read(text, where="").items()
        }))  # fmt: skip
        with pytest.raises(ConfigError, match=f"the pins of '{name}' are not of this application"):
            opened(path)
        assert opened(path, seed=Seed(bytes(range(1, 33)))) == {}


def test_another_seed_is_named(path) -> None:
    with pytest.raises(ConfigError, match=f"sealed with the seed {SEED.id}, and this one is"):
        opened(path, seed=Seed(bytes(range(1, 33))))


def test_pins_of_another_epoch_are_opened_and_left(path) -> None:
    found = pinning.pins_of(path, SEED, APP, "2")
    assert (not found, found.left) == (True, len(PINS))


def test_a_sealed_text_at_another_label_is_an_error() -> None:
    one = section()
    swapped = {**one.sealed, PASSWORD: one.sealed[REPEATED], REPEATED: one.sealed[PASSWORD]}
    with pytest.raises(ConfigError, match="is damaged"):
        pinning.unseal(replace(one, sealed=swapped), SEALER, seed=SEED.id, where="")


@pytest.mark.parametrize("text", [
    "", "\n", "null\n", "applications: []\n", "applications: {a: }\n", "{", "\x00", "a: &a [*a]\n", "applications: {a: {seed: 1, epoch: 2, pins: [{label: 3, sealed: 4}]}}\n",
    "applications: {a: {seed: 1, epoch: 2, pins: [{label: '[[1]]', sealed: 4}]}}\n",
    "applications: {a: {seed: 1, epoch: 2, pins: [{label: '[true]', sealed: 4}]}}\n",
])  # fmt: skip
def test_other_files_are_an_error(tmp_path, text) -> None:
    path = tmp_path / pinning.NAME
    path.write_text(text)
    with pytest.raises(ConfigError, match="as becalm writes it") as told:
        opened(path)
    assert "becalm adopt" in (told.value.hint or "")


def test_bytes_that_are_no_text_and_a_directory_are_errors(tmp_path) -> None:
    path = tmp_path / pinning.NAME
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not a file of pins"):
        opened(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        opened(tmp_path)


def test_a_pin_holds_only_for_what_its_value_was_made_from() -> None:
    pins = Pins(PINS)
    given = pins.given("htpasswd", ["correct horse battery staple"])
    assert pins.of(HASH, given) == PINS[HASH]
    assert pins.of(HASH, pins.given("htpasswd", ["another"])) is None
    assert HASH in pins.outdated
    assert pins.of(HASH, given) == PINS[HASH]
    assert pins.outdated == ()
    assert Pins(PINS, is_loose=True).of(HASH, "anything") == PINS[HASH]


def test_of_an_authority_the_key_counts_and_without_one_the_certificate() -> None:
    pins = Pins(PINS)
    keyless = PINS[CERTIFICATE].texts[0]
    assert pins.is_without_key(keyless)
    assert pins.given("genSignedCert", ["one", "key"]) == pins.given("genSignedCert", ["renewed", "key"])
    assert pins.given("genSignedCert", ["one", "key"]) != pins.given("genSignedCert", ["one", "other"])
    assert pins.given("genSignedCert", [keyless, "a"]) == pins.given("genSignedCert", [keyless, "b"])
    assert pins.given("genCA", []) == ""


def test_what_is_not_used_is_told() -> None:
    pins = Pins(PINS)
    assert set(pins.unused) == set(PINS)
    pins.of(PASSWORD, "")
    assert pins.text_of(PASSWORD) == PINS[text_label(PASSWORD)]
    assert set(pins.unused) == {REPEATED, HASH, CERTIFICATE}
    pins.outdate(PASSWORD)
    assert pins.outdated == (text_label(PASSWORD),)
    assert set(pins.unused) == {REPEATED, HASH, CERTIFICATE}


def test_values_are_in_no_representation() -> None:
    shown = f"{PINS} {Pins(PINS)!r} {json.dumps([str(label) for label in PINS])}"
    assert "correct horse" not in shown
    assert "MII=" not in shown
