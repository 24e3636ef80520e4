"""Taking over what is only partly live, or derived already: chains stay whole, and nothing is pinned without need."""

from __future__ import annotations

import json
import os

import pytest
from applications import HELM, run_helm, write
from children import MEASURE, inside

from becalm.manifests.objects import objects
from becalm.manifests.stream import split

NAME = "becalm.pins.yaml"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: sample\nversion: 1.0.0\n",
    "templates/all.yaml": """\
{{- $password := randAlphaNum 20 }}
{{- $ca := genCA "sample-ca" 3650 }}
{{- $cert := genSignedCert "sample" nil (list "sample.svc") 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: space}
data:
  password: {{ $password | b64enc }}
  hash: {{ bcrypt $password | b64enc }}
  token: {{ randAlphaNum 12 | lower | b64enc }}
---
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: space}
data:
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: bundle, namespace: space}
data:
  ca: {{ $ca.Cert | quote }}
""",
}
#: A certificate for a key that is a draw of its own, in another object.
OWN_KEY = {
    "Chart.yaml": CHART["Chart.yaml"],
    "templates/all.yaml": """\
{{- $key := genPrivateKey "ecdsa" }}
{{- $cert := genSelfSignedCertWithKey "sample" nil (list "sample.svc") 365 $key }}
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: space}
data: {tls.key: {{ $key | b64enc }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: bundle, namespace: space}
data:
  certificate: {{ $cert.Cert | quote }}
""",
}


class Running:
    """A chart, and objects that are live."""

    def __init__(self, top, files):
        self.top = top
        self.pins = write(top / "chart", files) / NAME
        seed = top / "seed"
        seed.touch(mode=0o600)
        seed.write_bytes(bytes(range(32)))

    def live(self, text, *names):
        """Only the objects with these names are in the file, or all."""
        items = [obj for _, obj in objects(split(text)) if not names or obj["metadata"]["name"] in names]
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        (self.top / "live.yaml").write_text(listed)

    def becalm(self, command, *words, seed="--seed=seed"):
        env = {
            **MEASURE, "PATH": os.environ["PATH"], "HOME": str(self.top),
            "BECALM_CACHE_DIR": os.environ["BECALM_CACHE_DIR"],
        }  # fmt: skip
        argv = [command, "chart", "--app=shop", "--namespace=space", f"--helm={HELM}", seed, *words]
        return inside(argv, cwd=self.top, env=env)

    def adopt(self, *words):
        """The exit code, and the state of each draw by function."""
        done = self.becalm("adopt", "--live=live.yaml", "--output=json", *words)
        rows = json.loads(done.stdout)["draws"] if done.stdout else []
        return done, {row["function"] or row["label"]: (row["state"], row["why"]) for row in rows}


@pytest.fixture
def running(tmp_path):
    found = Running(tmp_path, CHART)
    found.live(run_helm("template", "shop", tmp_path / "chart").stdout)
    return found


def stock(running):
    return run_helm("template", "shop", running.top / "chart").stdout


def test_an_authority_whose_leaf_is_not_live_is_not_taken_over(running):
    running.live(stock(running), "bundle")
    done, rows = running.adopt()
    assert (done.returncode, done.stderr) == (0, "")
    assert rows["genCA"][0] == rows["genSignedCert"][0] == "not taken over"
    assert "it would have to sign Secret/space/tls data[tls.crt]" in rows["genCA"][1]
    assert not running.pins.exists()


def test_a_leaf_whose_authority_is_not_live_is_not_taken_over(running):
    """The bundle would be of another authority, and nobody could connect any more."""
    running.live(stock(running), "tls", "db")
    _, rows = running.adopt()
    assert rows["genSignedCert"] == (
        "not taken over",
        "the authority that signed it is not taken over: ConfigMap/space/bundle data.ca",
    )
    assert rows["randAlphaNum"][0] == "taken over"
    certs = running.becalm("certs", "--output=json")
    assert certs.returncode == 0, certs.stdout


def test_a_certificate_whose_key_is_not_live_is_not_taken_over(tmp_path):
    running = Running(tmp_path, OWN_KEY)
    running.live(stock(running), "bundle")
    _, rows = running.adopt()
    assert rows["genSelfSignedCertWithKey"] == (
        "not taken over",
        "its key is not taken over: Secret/space/key data[tls.key]",
    )
    running.live(stock(running))
    _, rows = running.adopt()
    assert {state for state, _ in rows.values()} == {"taken over"}


def test_an_authority_without_key_gives_way_to_a_new_leaf(running):
    """Its pin makes the render an error, and to adopt again is the way out."""
    assert running.adopt()[0].returncode == 0
    path = running.top / "chart" / "templates" / "all.yaml"
    path.write_text(path.read_text().replace('"sample.svc"', '"sample.svc" "other.svc"'))
    refused = running.becalm("render")
    assert refused.returncode == 8
    assert "taken over without its key" in refused.stderr
    done, rows = running.adopt("--prune")
    assert done.returncode == 0
    assert "would have to sign" in rows["genCA"][1]
    why = "the live certificate lacks a name that the chart asks for"
    assert rows["genSignedCert"] == ("not taken over", why)
    assert running.becalm("render").returncode == 0


def test_what_is_derived_already_gets_no_pin(running):
    running.live(running.becalm("render").stdout)
    done, rows = running.adopt("--check")
    assert done.returncode == 0
    assert {state for state, _ in rows.values()} == {"derived as it is"}
    running.adopt()
    assert not running.pins.exists()


def test_a_rotation_ends_with_fewer_pins(running):
    """After the sync the new password and its hash are derived, also from then on."""
    running.adopt()
    epoch = "--item-epoch=Secret/db/password=2"
    before = running.pins.read_text()
    running.live(running.becalm("render", epoch).stdout)
    done, rows = running.adopt(epoch, "--prune")
    assert done.returncode == 0
    assert rows["bcrypt"] == ("derived as it is", "")
    labels = [line for line in running.pins.read_text().splitlines() if "label:" in line]
    assert len(labels) == before.count("label:") - 2
    assert "[20]" not in "".join(labels)
    assert running.adopt(epoch, "--check")[0].returncode == 0
    assert running.becalm("render", epoch).stderr == ""


def test_pins_are_removed_without_live_objects(running):
    running.adopt()
    assert (
        running.becalm("adopt", "--prune").stdout
        == f"Every pin matches what is drawn.\n{NAME}: 5 pins, as before\n"
    )
    epoch = "--item-epoch=Secret/db/password=2"
    done = running.becalm("adopt", "--prune", epoch)
    assert done.returncode == 0
    assert "data.password" in done.stdout
    assert "removed" in done.stdout
    assert "not taken over" not in done.stdout
    assert running.becalm("adopt").returncode == 2


def test_what_is_not_looked_at_is_named(running):
    running.live(stock(running), "db")
    done = running.becalm("adopt", "--live=live.yaml")
    assert (
        "Not among the live objects, so nothing is said of them: Secret/space/tls, ConfigMap/space/bundle\n"
        in done.stdout
    )


def test_a_throwaway_seed_seals_nothing(running):
    refused = running.becalm("adopt", "--live=live.yaml", seed="--throwaway-seed")
    assert refused.returncode == 2
    assert "nobody could open what a throwaway seed seals" in refused.stderr
    assert running.becalm("adopt", "--live=live.yaml", "--check", seed="--throwaway-seed").returncode == 1
    assert not running.pins.exists()
