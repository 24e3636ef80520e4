"""What becalm-helm tells the becalm that started Kustomize of lookups."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from becalm.config.looking import Looking
from becalm.dropin import template, told
from becalm.sources.kustomize import told as read
from becalm.stabilise.looking import Asked, Looked

LOOKED = Looked(
    asked=Asked(api_version="v1", kind="Secret", namespace="a", name="b"),
    place="templates/a.yaml:4",
    answer="live",
)


def tell(tmp_path, policy: str, *looked: Looked) -> str:
    file = tmp_path / "told"
    file.touch()
    session = SimpleNamespace(environment={told.FILE: str(file)})
    template._tell_lookups(
        session, SimpleNamespace(looking=Looking(policy=policy)), SimpleNamespace(lookups=looked)
    )
    return file.read_text()


def test_answers_of_a_cluster_are_kept_no_longer_than_what_is_fetched(tmp_path) -> None:
    assert read(tell(tmp_path, "live", LOOKED)).fetched


@pytest.mark.parametrize("policy", ["empty", "recorded", "rendered"])
def test_other_answers_are_the_same_tomorrow(tmp_path, policy) -> None:
    assert not read(tell(tmp_path, policy, LOOKED)).fetched


def test_a_chart_that_looks_nothing_up_tells_nothing(tmp_path) -> None:
    assert tell(tmp_path, "live") == tell(tmp_path, "empty") == ""


def test_what_is_answered_with_nothing_is_told_once(tmp_path) -> None:
    text = tell(tmp_path, "empty", LOOKED)
    (notice,) = read(text + text).notices
    assert "Secret a/b (templates/a.yaml:4)" in notice.line()
