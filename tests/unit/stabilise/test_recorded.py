"""The file of recorded lookups: stable bytes, sealed Secrets, and nothing that can be changed unseen."""

from __future__ import annotations

import pytest

from becalm.derive.labels import Application
from becalm.derive.sealing import Sealer
from becalm.derive.seed import Seed
from becalm.errors import PluginError, SeedMissingError
from becalm.stabilise import recorded
from becalm.stabilise.looking import Asked

SEED = Seed(bytes(range(32)))
ONE = Application(name="one", project="default", namespace="shop", cluster="")
TWO = Application(name="two", project="default", namespace="shop", cluster="")
SECRET = Asked(api_version="v1", kind="Secret", namespace="shop", name="db")
ANSWERS = {
    SECRET: {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": {"password": "aHVzaCBodXNo"}},
    Asked(api_version="v1", kind="ConfigMap", namespace="shop", name="a"): {"kind": "ConfigMap", "data": {"x": "1"}},
    Asked(api_version="v1", kind="Secret", namespace="shop", name="none"): {},
}  # fmt: skip


def sections(*applications: Application) -> dict[str, recorded.Section]:
    return {f"default/{one.name}/shop": recorded.sealed(ANSWERS, Sealer(SEED, one)) for one in applications}


def test_equal_answers_give_equal_bytes_and_are_read_back() -> None:
    text = recorded.write(sections(TWO, ONE))
    assert recorded.write(sections(ONE, TWO)) == text
    for one in (ONE, TWO):
        section = recorded.read(text, where="file")[f"default/{one.name}/shop"]
        assert recorded.opened(section, Sealer(SEED, one), where="file") == ANSWERS
    assert "hush" not in text
    assert "aHVzaCBodXNo" not in text
    assert "x: '1'" in text


def test_no_changed_byte_gives_another_answer() -> None:
    """Each is an error, or what was changed is the section of another application, which sees it itself."""
    text = recorded.write(sections(ONE, TWO))
    errors = 0
    for at, old in enumerate(text):
        for new in (chr(ord(old) ^ 1), "\n", ""):
            changed = text[:at] + new + text[at + 1 :]
            if changed == text:
                continue
            try:
                section = recorded.read(changed, where="file").get("default/one/shop")
                answers = (
                    None if section is None else recorded.opened(section, Sealer(SEED, ONE), where="file")
                )
            except PluginError:
                errors += 1
            else:
                # Without the section, what is looked up is an error too.
                assert answers in (None, ANSWERS)
    assert errors > len(text)


@pytest.mark.parametrize(
    "sealer",
    [Sealer(SEED, TWO), Sealer(Seed(bytes(range(1, 33))), ONE)],
    ids=("application", "seed"),
)
def test_another_application_or_seed_opens_nothing(sealer: Sealer) -> None:
    section = sections(ONE)["default/one/shop"]
    with pytest.raises(
        PluginError, match="ConfigMap shop/a was changed, or was recorded for another application"
    ):
        recorded.opened(section, sealer, where="file")


def test_an_answer_stays_with_what_was_looked_up() -> None:
    section = sections(ONE)["default/one/shop"]
    for entry in section:
        assert isinstance(entry, dict)
        entry["name"] = "other"
    with pytest.raises(PluginError, match="shop/other was changed"):
        recorded.opened(section, Sealer(SEED, ONE), where="file")


def test_a_seed_is_needed() -> None:
    with pytest.raises(SeedMissingError):
        recorded.sealer(None, ONE)


def test_what_tells_who_wrote_an_object_is_left_out() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}
    obj = {"kind": "Secret", "metadata": {"name": "db", "managedFields": [], "annotations": annotations}}
    assert recorded.trimmed(obj) == {"kind": "Secret", "metadata": {"name": "db", "annotations": {"a": "b"}}}
    found = recorded.trimmed({"kind": "SecretList", "metadata": {"resourceVersion": "7"}, "items": [obj]})
    assert found["items"] == [recorded.trimmed(obj)]
    assert found["metadata"] == {"resourceVersion": ""}
