"""What becalm-helm tells of the charts of a build, written and read."""

from __future__ import annotations

from pathlib import Path

from becalm.dropin import told
from becalm.errors import Warned
from becalm.sources import kustomize


def test_what_is_told_is_read(tmp_path: Path) -> None:
    path = tmp_path / "told"
    path.touch()
    variables = {told.FILE: str(path)}
    notices = [Warned("b\n", where="lookup", hint="do"), Warned("a", where="lookup", hint="do")]
    told.changes(variables, {b"x" * 32: 7, b"y" * 32: 5})
    told.fetched(variables)
    for one in (*notices, notices[0]):
        assert told.noticed(variables, [one])
    found = kustomize.told(path.read_text())
    assert found.changes == {b"x" * 32: 7, b"y" * 32: 5}
    assert found.change == 5
    assert found.fetched
    assert found.notices == tuple(sorted(notices, key=lambda one: one.what))


def test_without_a_file_nobody_is_told() -> None:
    assert not told.noticed({}, [])
