"""What cannot be taken over, and why; and live objects in every form in which people have them."""

from __future__ import annotations

import base64
import copy
import io
import json
import sys

import pytest
import yaml
from adoption import Running, encoded, fields

CHART = {
    "templates/all.yaml": """\
{{- $p := randAlphaNum 20 }}
{{- $ca := genCA "ca" 3650 }}
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData:
  password: {{ $p | quote }}
  hash: {{ htpasswd "user" $p | quote }}
  other: {{ randAlphaNum 16 | quote }}
  ca.crt: {{ $ca.Cert | quote }}
  ca.key: {{ $ca.Key | quote }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: file}
data:
  file: |
    # settings
    user = admin
    password = {{ $p }}
    other = 1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: short}
data: {part: "{{ randAlphaNum 30 | substr 0 5 }}"}
"""
}
DRAWN_NAME = {
    "templates/all.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: job-{{ randAlphaNum 10 | lower }}}\nstringData: {a: {{ randAlphaNum 16 | quote }}}\n"
}
PASSWORD = "stringData.password randAlphaNum"
HASH = "stringData.hash htpasswd"
OTHER = "stringData.other randAlphaNum"
AUTHORITY = "stringData[ca.crt] genCA"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Running:
    return Running(tmp_path_factory.mktemp("app"), CHART).install()


@pytest.fixture
def app(installed, tmp_path) -> Running:
    """The application with live objects that a test may change, and nothing taken over."""
    one = copy.copy(installed)
    one.live = copy.deepcopy(installed.live)
    installed.write_live(one.live)
    installed.pins.unlink(missing_ok=True)
    return one


def by_name(app: Running, name: str) -> dict:
    return next(obj for obj in app.live if obj["metadata"]["name"] == name)


def set_live(app: Running, **values: str) -> None:
    by_name(app, "db")["data"] |= {key.replace("__", "."): encoded(text) for key, text in values.items()}
    app.write_live(app.live)


def test_an_object_that_is_not_live_is_named(app):
    app.write_live([obj for obj in app.live if obj["metadata"]["name"] != "db"])
    rows = app.rows("--check")
    assert rows[OTHER] == ("not taken over", "Secret/space/db is not among the live objects")
    # The password stands in a file as well.
    assert rows[PASSWORD] == ("taken over", "")


def test_a_field_that_is_not_live_is_named(app):
    del by_name(app, "db")["data"]["other"]
    app.write_live(app.live)
    assert app.rows("--check")[OTHER] == (
        "not taken over",
        "Secret/space/db has no data.other in the cluster",
    )


def test_a_value_that_does_not_fit_is_told(app):
    set_live(app, ca__crt="none", ca__key="none")
    assert app.rows("--check")[AUTHORITY] == (
        "not taken over", "the live value of Secret/space/db data[ca.crt] does not fit"
    )  # fmt: skip


def test_a_pair_that_does_not_belong_together_is_refused(app, tmp_path_factory):
    other = Running(tmp_path_factory.mktemp("other"), CHART).install()
    key = fields(other.stock)["db/ca.key"]
    set_live(app, ca__key=key)
    assert app.rows("--check")[AUTHORITY] == (
        "not taken over", "the live certificate and the live key do not belong together"
    )  # fmt: skip


def test_a_hash_of_another_password_is_refused(app):
    set_live(app, hash="user:$2a$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234")
    assert app.rows("--check")[HASH] == ("not taken over", "the live hash does not match the password")


def test_a_hash_of_another_sort_is_refused(app):
    set_live(app, hash="user:$apr1$abcdefgh$abcdefghijklmnopqrstuv")
    assert app.rows("--check")[HASH] == (
        "not taken over", "the live hash is of a sort that becalm cannot check"
    )  # fmt: skip


def test_what_lands_nowhere_is_told_and_the_next_sync_changes_what_depends_on_it(app):
    done = app.adopt("--check")
    assert "nowhere to be seen: it lands in no field, or too short to be told" in done.stdout
    assert "The next sync changes:\nConfigMap/space/short  data.part\n" in done.stdout
    assert done.returncode == 1


def test_values_that_differ_between_places_are_told(app):
    set_live(app, password="another0another0anot", hash="user:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=")
    state, why = app.rows("--check")[PASSWORD]
    assert state == "taken over"
    assert why == "other values are in ConfigMap/space/file data.file"
    assert app.rows("--check")[HASH][1] == "the live hash does not match the password"


@pytest.mark.parametrize(("names", "words"), [
    (["job-aaaaaaaaaa", "job-bbbbbbbbbb"], "the name of a Secret is drawn, and 2 live ones could be it"),
    ([], "the name of a Secret is drawn, and no live one is like it"),
])  # fmt: skip
def test_a_drawn_name_needs_one_live_object(tmp_path, names, words):
    app = Running(tmp_path, DRAWN_NAME).install()
    app.write_live([{**app.live[0], "metadata": {"name": name, "namespace": "space"}} for name in names] or [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "unlike"}, "data": {}}
    ])  # fmt: skip
    assert {why for _, why in app.rows("--check").values()} == {words}


@pytest.mark.parametrize("value", [
    "short", "longer-than-the-chart-would-have-made-it-by-far", "ünïcödé \u2013 密码 🔑", 'quo"te\'s', "$HOME ${x} $1 \\1",
    "back\\slash\\n", ".*+?[a-z](b|c){2}^$", "with blank", "{{ .Values.a }}", "a: b # c", "two\nlines", " edge ",
])  # fmt: skip
def test_a_value_that_a_person_chose_is_taken_over_as_it_is(app, value):
    set_live(app, other=value)
    rows = app.rows()
    assert rows[OTHER] == ("taken over", "")
    assert fields(app.render())["db/other"].encode("latin-1").decode() == value


def test_a_chosen_value_in_two_places_is_one(app):
    value = 'S3cret$\\with"signs.*'
    set_live(app, password=value, hash="user:" + sha(value))
    file = by_name(app, "file")["data"]
    line = next(line for line in file["file"].splitlines() if line.startswith("password"))
    file["file"] = file["file"].replace(line, f"password = {value}")
    app.write_live(app.live)
    rows = app.rows()
    assert (rows[PASSWORD], rows[HASH]) == (("taken over", ""), ("taken over", ""))
    assert f"password = {value}\n" in fields(app.render())["file/file"]


def sha(text: str) -> str:
    import hashlib

    return "{SHA}" + base64.b64encode(hashlib.sha1(text.encode()).digest()).decode()


def test_another_version_of_the_chart_wrote_other_lines_around_it(app):
    file = by_name(app, "file")["data"]
    file["file"] = "# another header\nmode = old\n" + file["file"].replace("# settings\n", "") + "more = 2\n"
    app.write_live([file_ for file_ in app.live if file_["metadata"]["name"] == "file"])
    assert app.rows("--check")[PASSWORD] == ("taken over", "")


def test_live_objects_are_read_in_every_form(app, monkeypatch):
    kept = app.live
    forms = {
        "list": yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": kept}),
        "documents": yaml.safe_dump_all(kept, explicit_start=True),
        "json": json.dumps({"apiVersion": "v1", "kind": "List", "items": kept}),
        "typed": yaml.safe_dump({
            "apiVersion": "v1", "kind": "SecretList", "items": [obj for obj in kept if obj["kind"] == "Secret"]
        }),
        "one": json.dumps(by_name(app, "db"), indent=4),
    }  # fmt: skip
    for form, text in forms.items():
        (app.top / "live.yaml").write_text(text)
        rows = app.rows()
        assert rows[PASSWORD][0] == rows[AUTHORITY][0] == rows[HASH][0] == "taken over", form
        app.pins.unlink()
    (app.top / "live.yaml").unlink()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(forms["list"].encode())))
    done = app.becalm("adopt", "--live=-", "--check")
    assert "not taken over" not in done.stdout + done.stderr


@pytest.mark.parametrize(("text", "words"), [
    ("", "live.yaml: there is no object in it; write it with `kubectl get secret"),
    ("a: [", "live.yaml: "),
    ("just words\n", "live.yaml: "),
])  # fmt: skip
def test_what_holds_no_live_objects_is_an_error(app, text, words):
    (app.top / "live.yaml").write_text(text)
    done = app.adopt()
    assert done.returncode != 0
    assert done.stdout == ""
    assert words in done.stderr
    assert not app.pins.exists()


def test_live_objects_that_are_not_there_are_an_error(app):
    done = app.becalm("adopt", "--live=nothing.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing.yaml: the live objects cannot be read: No such file" in done.stderr


def test_an_authority_without_its_key_signs_nothing_new(tmp_path):
    app = Running(tmp_path, {"templates/all.yaml": """\
{{- $ca := genCA "ca" 3650 }}{{ $leaf := genSignedCert "leaf" nil (list "leaf") 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: tls}
stringData:
  ca: {{ $ca.Cert | quote }}
  crt: {{ $leaf.Cert | quote }}
  key: {{ $leaf.Key | quote }}
"""}).install()  # fmt: skip
    assert app.adopt().returncode == 0
    for words in (["--item-epoch=Secret/tls/crt=2"], []):
        if not words:
            app.without('"genSignedCert"')
        done = app.becalm("render", *words)
        assert (done.returncode, done.stdout) == (8, "")
        assert (
            "the authority was taken over without its key, so it signs nothing new; adopt again, raise its epoch"
            in done.stderr
        )
    assert app.render("--item-epoch=Secret/tls/crt=2", "--item-epoch=Secret/tls/ca=2") != app.stock


def test_a_kustomization_is_taken_over_chart_by_chart(tmp_path):
    app = Running(tmp_path, CHART).install()
    (app.directory / "Chart.yaml").unlink()
    (app.directory / "kustomization.yaml").write_text("resources: []\n")
    done = app.adopt()
    assert (done.returncode, done.stdout) == (2, "")
    assert "the charts of a Kustomization are taken over one by one; name one of its charts" in done.stderr
