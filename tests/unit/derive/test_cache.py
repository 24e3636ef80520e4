"""The cache: private, encrypted, and never trusted."""

from __future__ import annotations

import os
import stat

import pytest

from becalm.derive import cache
from becalm.derive.cache import Cache

KEY = bytes(range(32))


def derive_once(calls):
    def derive():
        calls.append(1)
        return f"value {len(calls)}"

    return derive


def test_a_value_is_derived_once(tmp_path):
    calls = []
    for _ in range(3):
        assert Cache(tmp_path / "c").value(KEY, derive_once(calls)) == "value 1"
    assert Cache(tmp_path / "c").value(bytes(32), derive_once(calls)) == "value 2"


def test_directory_and_files_are_private_and_tell_nothing(tmp_path):
    Cache(tmp_path / "a" / "c").value(KEY, lambda: "a secret value")
    directory = tmp_path / "a" / "c"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    (entry,) = directory.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert b"secret" not in entry.read_bytes()
    assert KEY.hex() not in entry.name


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 100, b"x" * 100_000])
def test_what_was_changed_is_derived_anew(tmp_path, damage):
    calls = []
    Cache(tmp_path / "c").value(KEY, derive_once(calls))
    (entry,) = (tmp_path / "c").iterdir()
    entry.write_bytes(damage)
    assert Cache(tmp_path / "c").value(KEY, derive_once(calls)) == "value 2"


def test_an_entry_is_good_for_its_own_key_only(tmp_path):
    for key in (KEY, bytes(32)):
        Cache(tmp_path / "c").value(key, lambda key=key: key.hex())
    one, two = sorted((tmp_path / "c").iterdir())
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)
    assert Cache(tmp_path / "c").value(KEY, lambda: "anew") == "anew"


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_a_directory_that_is_open_to_others_is_not_used(tmp_path, mode):
    directory = tmp_path / "c"
    directory.mkdir()
    directory.chmod(mode)
    assert Cache(directory).value(KEY, lambda: "v") == "v"
    assert list(directory.iterdir()) == []


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "c").symlink_to(tmp_path / "real")
    assert Cache(tmp_path / "c").value(KEY, lambda: "v") == "v"
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.parametrize("directory", [None, "file/below", "file"])
def test_without_a_directory_everything_is_derived(tmp_path, directory):
    (tmp_path / "file").write_text("")
    calls = []
    tested = Cache(None if directory is None else tmp_path / directory)
    assert [tested.value(KEY, derive_once(calls)) for _ in range(2)] == ["value 1", "value 2"]


def test_a_full_disk_costs_time_only(tmp_path, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("becalm.config.private.tempfile.mkstemp", full)
    assert Cache(tmp_path / "c").value(KEY, lambda: "v") == "v"


def test_the_oldest_entries_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 4)
    # Renders and charts are kept below the same directory.
    (tmp_path / "c" / "renders").mkdir(parents=True)
    (tmp_path / "c").chmod(0o700)
    for number in range(5):
        Cache(tmp_path / "c").value(bytes([number]) * 32, lambda: "v")
        for age, path in enumerate(sorted((tmp_path / "c").iterdir(), key=os.path.getmtime)):
            os.utime(path, ns=(age, age))
    assert (tmp_path / "c" / "renders").is_dir()
    assert len(list((tmp_path / "c").iterdir())) == 3
