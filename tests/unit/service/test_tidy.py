"""What killed renders left is removed, and nothing that is in use, whatever the clock says."""

from __future__ import annotations

import os

from becalm.copies import work_directory
from becalm.service.tidy import Tidy


def test_what_is_used_stays_when_the_clock_jumps(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "becalm-left"
    left.mkdir()
    with work_directory() as work:
        (work / "chart").touch()
        Tidy(tmp_path, 220).up(work.stat().st_mtime + 100_000)
        assert (work / "chart").exists()
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_links_and_files_are_left_alone(tmp_path):
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "file").touch()
    (tmp_path / "becalm-link").symlink_to(target)
    (tmp_path / "becalm-file").touch()
    (tmp_path / "becalm-directory").mkdir()
    (tmp_path / "becalm-directory" / "link").symlink_to(target)
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1), follow_symlinks=False)
    Tidy(tmp_path, 220).up(100_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["becalm-file", "becalm-link", "elsewhere"]
    assert (target / "file").exists()
