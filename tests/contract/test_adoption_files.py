"""Files of pins: what matches nothing any more, several applications, what is damaged or foreign, and other seeds."""

from __future__ import annotations

import base64
import copy
import json
import shutil

import pytest
from adoption import NAME, NEW_SEED, SEED, Running, changed, fields

CHART = {
    "templates/_helpers.tpl": '{{- define "digits" }}{{ range until 20 }}{{ randInt 0 10 }}{{ end }}{{ end }}',
    "templates/all.yaml": """\
{{- $p := randAlphaNum 20 }}
{{- $ca := genCA "ca" 3650 }}{{ $leaf := genSignedCert "leaf" nil (list "leaf") 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData:
  password: {{ $p | quote }}
  hash: {{ htpasswd "user" $p | quote }}
  other: {{ randAlphaNum 16 | quote }}
  digits: {{ include "digits" . | quote }}
  ca: {{ $ca.Cert | quote }}
  crt: {{ $leaf.Cert | quote }}
  key: {{ $leaf.Key | quote }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: url}
data: {url: "postgres://user:{{ $p }}@db"}
""",
}
DRAWN = {"db/password", "db/hash", "db/other", "db/digits", "db/ca", "db/crt", "db/key", "url/url"}


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Running:
    app = Running(tmp_path_factory.mktemp("original"), CHART).install()
    assert app.adopt().returncode == 0
    return app


@pytest.fixture
def app(original, tmp_path) -> Running:
    """The application that was taken over, in a directory that a test may change."""
    shutil.copytree(original.top, tmp_path / "copy")
    one = copy.copy(original)
    one.top = tmp_path / "copy"
    one.directory = one.path = one.top / "chart"
    one.pins = one.directory / NAME
    one.seed = one.top / "seed"
    return one


def replace_in_chart(app: Running, old: str, new: str) -> None:
    path = app.directory / "templates" / "all.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def refused(app: Running, *words: str) -> str:
    done = app.becalm("render", *words)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def test_pins_of_what_is_drawn_no_more_are_told_of_kept_and_pruned(app):
    replace_in_chart(app, "  other: {{ randAlphaNum 16 | quote }}\n", "")
    app.render()
    assert "1 pin does not match what is drawn: Secret/space/db stringData.other" in app.warned
    before = app.pins.read_text()
    assert app.rows()["stringData.other"] == (
        "matches nothing", "the chart draws nothing there any more, or its epoch was raised"
    )  # fmt: skip
    assert app.pins.read_text() == before
    assert app.rows("--prune")["stringData.other"][1].endswith("; removed")
    lines = app.pins.read_text().splitlines()
    assert set(lines) < set(before.splitlines())
    assert len(before.splitlines()) - len(lines) == 2
    assert (app.render(), app.warned)[1] == ""


def test_a_chart_that_draws_nothing_any_more_keeps_them_too(app):
    (app.directory / "templates" / "all.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    )
    (app.directory / "templates" / "_helpers.tpl").unlink()
    app.render()
    assert "do not match what is drawn" in app.warned
    before = app.pins.read_text()
    assert {state for state, _ in app.rows().values()} == {"matches nothing"}
    assert app.pins.read_text() == before
    assert app.adopt("--prune").stdout.endswith(f"{NAME}: removed\n")
    assert not app.pins.exists()


def test_what_was_made_from_something_else_is_derived_and_told_of(app):
    replace_in_chart(app, "$p := randAlphaNum 20", '$p := "a fixed one"')
    after = fields(app.render())
    assert "what was pinned would now be made from something else, so it is derived" in app.warned
    assert "stringData.hash" in app.warned
    assert after["db/hash"] != fields(app.stock)["db/hash"]
    assert after["db/other"] == fields(app.stock)["db/other"]


def test_a_changed_value_changes_one_line(app):
    before = app.pins.read_text().splitlines()
    live = [copy.deepcopy(obj) for obj in app.live]
    live[0]["data"]["other"] = base64.b64encode(b"another-one-of-it").decode()
    app.write_live(live)
    assert app.adopt().returncode == 0
    after = app.pins.read_text().splitlines()
    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_windows_line_ends_are_read(app):
    app.pins.write_bytes(app.pins.read_bytes().replace(b"\n", b"\r\n"))
    assert app.render() == app.stock


def section(text: str, name: str) -> str:
    """The lines of one application."""
    after = text.partition(f"  '{name}':\n")[2].splitlines(keepends=True)
    end = next((n for n, line in enumerate(after) if line.startswith("  '")), len(after))
    return "".join(after[:end])


def test_each_application_reads_its_own_section(app):
    other = copy.copy(app)
    other.app = "shop-2"
    other.top = app.top / "second"
    other.top.mkdir()
    other.install()
    first = app.pins.read_text()
    assert other.adopt().returncode == 0
    assert (app.render(), other.render()) == (app.stock, other.stock)
    text = app.pins.read_text()
    assert section(text, "default/shop/space") in first
    # One moves into the other: an error of that application alone, which names the place.
    moved = text.replace(section(text, "default/shop-2/space"), section(text, "default/shop/space"))
    app.pins.write_text(moved)
    assert app.render() == app.stock
    assert "is damaged, or is not of this application and place" in refused(other)
    assert NAME in refused(other)
    app.pins.write_text(text)
    (other.top / "live.yaml").write_text((app.top / "live.yaml").read_text())
    # Another destination is another application.
    assert changed(app.stock, other.render("--namespace=elsewhere")) >= DRAWN


def test_an_entry_at_another_place_is_an_error_that_names_it(app):
    text = app.pins.read_text()
    lines = text.splitlines(keepends=True)
    at = [n for n, line in enumerate(lines) if "stringData.other" in line or "stringData.password" in line]
    one, two = (n + 1 for n in at)
    lines[one], lines[two] = lines[two], lines[one]
    app.pins.write_text("".join(lines))
    told = refused(app)
    assert "stringData.other" in told or "stringData.password" in told
    assert "is damaged, or is not of this application and place" in told


@pytest.mark.parametrize("field", ["epoch", "seed"])
def test_another_epoch_or_seed_in_the_file_is_an_error(app, field):
    text = app.pins.read_text()
    old = next(line for line in text.splitlines() if line.startswith(f"    {field}: "))
    app.pins.write_text(text.replace(old, f"    {field}: 'ffffffffffffffff'"))
    if field == "seed":
        assert "the pins are sealed with the seed ffffffffffffffff, and this one is" in refused(app)
    else:
        assert "is damaged" in refused(app)
        assert "is damaged" in refused(app, "--epoch=ffffffffffffffff")


def test_another_seed_is_an_error_that_says_what_to_do(app):
    app.seed = app.write_seed("other", NEW_SEED)
    told = refused(app)
    assert "the pins are sealed with the seed" in told
    assert "`becalm seed rotate` seals them anew" in told


def rotate(app: Running, *words: str):
    new = app.write_seed("new", NEW_SEED)
    return app.becalm("seed", "rotate", f"--to={new}", *words)


def test_a_new_seed_keeps_what_is_pinned(app):
    before = app.pins.read_bytes()
    done = rotate(app, "--check")
    assert (done.returncode, app.pins.read_bytes()) == (0, before)
    done = rotate(app)
    assert (done.returncode, done.stderr) == (0, "")
    assert "The new seed changes no value." in done.stdout
    assert "sealed with the new seed" in done.stdout
    assert app.pins.read_bytes() != before
    app.seed = app.top / "new"
    assert (app.render(), app.warned) == (app.stock, "")
    assert app.adopt("--check").returncode == 0


def test_a_new_seed_lists_what_it_changes_or_keeps_all(app):
    app.pins.unlink()
    derived = app.render()
    done = rotate(app, "--check")
    assert done.returncode == 1
    assert not app.pins.exists()
    for place in ("password", "hash", "other", "digits", "ca", "crt"):
        assert f"Secret/space/db stringData.{place} " in done.stdout
    assert "--keep pins them first." in done.stdout
    assert rotate(app, "--keep", "--check").returncode == 0
    assert not app.pins.exists()
    done = rotate(app, "--keep")
    assert (done.returncode, done.stderr) == (0, "")
    assert app.pins.exists()
    app.seed = app.top / "new"
    assert (app.render(), app.warned) == (derived, "")
    # And a value is new when somebody wants it.
    assert changed(derived, app.render("--item-epoch=Secret/db/password=2")) == {
        "db/password",
        "db/hash",
        "url/url",
    }


def test_without_keep_only_what_is_not_pinned_changes(app):
    app.without("stringData.other")
    app.without("stringData.password")
    done = rotate(app)
    assert done.returncode == 0
    listed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("Secret/")]
    assert sorted(listed) == ["stringData.hash", "stringData.other", "stringData.password"]
    app.seed = app.top / "new"
    assert changed(app.stock, app.render()) == {"db/other", "db/password", "db/hash", "url/url"}


def test_one_of_several_seeds_is_rotated_to(app):
    seeds = app.top / "seeds"
    seeds.mkdir()
    for name, content in (("2025", SEED), ("2026", NEW_SEED)):
        app.write_seed(f"seeds/{name}", content)
    done = app.becalm("seed", "rotate", f"--to={seeds}", "--keep")
    assert done.returncode == 2
    assert "there are several seeds, and none is chosen" in done.stderr
    assert app.becalm("seed", "rotate", f"--to={seeds / '2026'}", "--keep").returncode == 0
    app.seed = seeds
    assert "the pins are sealed with the seed" in refused(app, "--seed-id=2025")
    assert app.render("--seed-id=2026") == app.stock


def spellings(app: Running) -> set[str]:
    """What was drawn for the application, plain, in base64 and in hexadecimal; of PEM texts, their lines."""
    found = set()
    for path, text in fields(app.stock).items():
        for line in text.splitlines() if path in DRAWN else ():
            if not line.startswith("-----"):
                data = line.encode()
                found |= {
                    line,
                    base64.b64encode(data).decode().rstrip("="),
                    data.hex(),
                    base64.b64encode(text.encode()).decode(),
                }
    return found


def test_no_value_is_shown_anywhere(app):
    secrets = spellings(app)
    assert len(secrets) > 100
    live = f"--live={app.top / 'live.yaml'}"
    pins = app.pins.read_text()
    said = [pins]
    for words in (
        ("adopt", live), ("adopt", live, "-o", "json"), ("adopt", live, "--check", "--prune"), ("diff-live", live),
        ("diff-live", live, "-o", "json"), ("derive",), ("certs",), ("explain",), ("verify",),
    ):  # fmt: skip
        done = app.becalm(*words)
        # Certificates are no secrets, and `certs` may not print them either.
        said += [done.stdout, done.stderr]
    app.pins.write_text(pins.replace("stringData.hash", "stringData.hush"))
    said.append(app.becalm("render").stderr)
    app.pins.write_text(pins)
    said += [rotate(app).stdout, rotate(app, "--keep").stderr, app.pins.read_text()]
    (app.top / "live.yaml").write_text((app.top / "live.yaml").read_text().replace("kind: List", "kind: ["))
    said.append(app.adopt().stderr)
    live_texts = "".join(said)
    assert [one for one in secrets if one in live_texts] == []


def test_other_commands_use_pins(app):
    assert app.becalm("verify").returncode == 0
    derived = app.becalm("derive").stdout
    assert "stringData.password" in derived
    certs = json.loads(app.becalm("certs", "-o", "json").stdout)
    assert certs
    assert app.becalm("explain").returncode == 0
