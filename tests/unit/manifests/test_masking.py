"""What is secret is hidden in objects that are shown, wherever it is, and the rest can be read."""

from __future__ import annotations

import base64

import pytest

from becalm.manifests import yamlio
from becalm.manifests.masking import LONGEST, MASK, Secrets
from becalm.manifests.objects import ObjectId, identify

SECRET = "Tr0ub4dor&3-planted"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def of(obj: dict) -> tuple[ObjectId, dict]:
    return identify(obj, "space"), obj


def obj(kind: str = "ConfigMap", **fields) -> dict:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, **fields}


def masked(value: dict, *known: dict, derived: tuple[str, ...] = ()) -> dict:
    secrets = Secrets()
    secrets.add_derived(derived)
    for one in known:
        owner, found = of(one)
        secrets.add_object(found, owner)
    return secrets.masked([of(value)])[0]


SEEN = obj("Secret", data={"password": b64(SECRET)})


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        SECRET.upper(),
        b64(SECRET),
        f"before {SECRET} after",
        b64(f"user:{SECRET}@host"),
        b64(b64(SECRET)),
        f"a\nb: {SECRET}\n",
    ],
)
def test_a_secrets_value_is_hidden_in_other_objects(text):
    shown = yamlio.dump(masked(obj(data={"note": text, "other": "seen"}), SEEN))
    assert f"note: '{MASK}'" in shown
    assert "other: seen" in shown


def test_values_of_secrets_are_hidden_whatever_they_are():
    shown = masked(
        obj(
            "Secret",
            data={"a": "eA==", "b": None},
            stringData={"c": "x", "d": 5, "e": {"f": ["y"]}},
            type="Opaque",
        )
    )
    assert shown["data"] == {"a": MASK, "b": None}
    assert shown["stringData"] == {"c": MASK, "d": MASK, "e": {"f": [MASK]}}
    assert shown["type"] == "Opaque"


def test_a_secret_of_another_group_is_another_kind():
    other = {
        "apiVersion": "example.com/v1",
        "kind": "Secret",
        "metadata": {"name": "a"},
        "data": {"a": "seen"},
    }
    assert masked(other)["data"] == {"a": "seen"}


def test_short_and_numeric_values_are_hidden_where_they_are_all_of_a_value():
    shown = masked(obj(data={"a": "x1", "b": "has x1 in it", "c": "5432"}, port=5432, more=54321), obj("Secret", stringData={"a": "x1", "b": 5432}))  # fmt: skip
    assert shown["data"] == {"a": MASK, "b": "has x1 in it", "c": MASK}
    assert (shown["port"], shown["more"]) == (MASK, 54321)


def test_a_password_within_a_secrets_value_is_hidden_alone():
    address = obj("Secret", stringData={"url": "postgres://shop:hunter2hunter@db.space:5432/shop"})
    assert masked(obj(data={"a": "hunter2hunter", "b": "postgres"}), address)["data"] == {
        "a": MASK,
        "b": "postgres",
    }


def test_lines_of_derived_keys_are_hidden_and_their_marks_are_not():
    key = "-----BEGIN PRIVATE KEY-----\nAAAABBBBCCCC\n-----END PRIVATE KEY-----\n"
    shown = masked(obj(data={"a": "x AAAABBBBCCCC", "b": "fine", "c": key}), derived=(key,))
    assert shown["data"] == {"a": MASK, "b": "fine", "c": MASK}


def test_keys_with_a_secret_in_them_are_hidden_and_none_is_lost():
    shown = masked(obj(data={f"{SECRET}": "a", f"{SECRET}-2": "b"}), SEEN)
    assert SECRET not in yamlio.dump(shown)
    assert len(shown["data"]) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("password", "x"), ("DB_PASSWORD", "x"), ("apiKey", "x"), ("api_token", "x"), ("clientSecret", "x"), ("args", "--password=x"), ("a", "user password: x"),
     ("url", "https://me:x@host/"), ("header", "Bearer abcdef"), ("cmd", "run --db-password x")],
)  # fmt: skip
def test_what_looks_like_a_secret_is_hidden(name, value):
    assert masked(obj(data={name: value}))["data"] == {name: MASK}
    assert masked(obj(env=[{"name": name, "value": value}]))["env"] == [{"name": name, "value": MASK}]


@pytest.mark.parametrize(
    ("name", "value"),
    [("secretName", "db"), ("tokenExpirationSeconds", 3600), ("image", "registry.example/secret-store:1"), ("replicas", 3), ("automountServiceAccountToken", False), ("url", "https://host:8080/")],
)  # fmt: skip
def test_what_only_names_one_is_shown(name, value):
    assert masked(obj(spec={name: value}))["spec"] == {name: value}


def test_an_options_value_is_hidden_in_the_next_element_too():
    shown = masked(obj(args=["--user", "me", "--password", "x", "--verbose", "yes"]))
    assert shown["args"] == ["--user", "me", "--password", MASK, "--verbose", "yes"]


def test_long_values_are_cut_and_it_is_said():
    assert masked(obj(data={"a": "é" * 500}))["data"]["a"] == f"{'é' * LONGEST}… (500 characters)"


def test_names_lose_what_is_derived_and_keep_what_argo_cd_shows():
    secrets = Secrets()
    secrets.add_derived(["x7Yz2"])
    for one in (
        obj("Secret", stringData={"namespace": "space", "password": SECRET, "a": "abc"}),
        obj("Namespace"),
    ):
        owner, found = of(one)
        secrets.add_object(found, owner)
    assert secrets.name("Job.batch/space/job-x7Yz2") == f"Job.batch/space/job-{MASK}"
    assert secrets.name(f"data[{SECRET}]") == f"data[{MASK}]"
    assert secrets.name("ConfigMap/space/abc") == "ConfigMap/space/abc"
