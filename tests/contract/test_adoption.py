"""Taking over: what stock helm drew stays as it is, on charts of the usual shapes, until somebody wants a new value."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from adoption import Running, changed, run
from applications import TOOLS

#: As charts write them: one password in several places, with hashes of it, and one that only another has.
PASSWORDS = {
    "templates/_helpers.tpl": """\
{{- define "sample.password" -}}
{{- if not (hasKey .Values "memo") }}{{ $_ := set .Values "memo" (randAlphaNum 24) }}{{ end -}}
{{- .Values.memo -}}
{{- end -}}
{{- define "sample.strong" -}}
{{- $sub := list (randAlpha 6 | lower) (randAlpha 6 | upper) (randNumeric 4) (randAlphaNum 8) -}}
{{- join "" $sub | splitList "" | join "" | shuffle -}}
{{- end -}}
""",
    "templates/secret.yaml": """\
{{- $fixed := "fixed-password" }}
apiVersion: v1
kind: Secret
metadata: {name: db}
data:
  password: {{ include "sample.password" . | b64enc | quote }}
  twice: {{ randAlphaNum 16 | b64enc | b64enc | quote }}
stringData:
  bcrypt: {{ bcrypt (include "sample.password" .) | quote }}
  htpasswd: {{ htpasswd "admin" (include "sample.password" .) | quote }}
  fixed: {{ htpasswd "guest" $fixed | quote }}
  strong: {{ include "sample.strong" . | quote }}
  digest: {{ include "sample.password" . | sha256sum }}
---
apiVersion: v1
kind: Secret
metadata: {name: registry}
type: kubernetes.io/dockerconfigjson
data:
  {{- $auth := printf "puller:%s" .Values.pull | b64enc }}
  .dockerconfigjson: {{ printf `{"auths":{"registry.local":{"username":"puller","auth":%q}}}` $auth | b64enc }}
""".replace(".Values.pull", '(include "sample.pull" .)'),
    "templates/puller.yaml": """\
apiVersion: v1
kind: Secret
metadata: {name: puller}
stringData: {password: {{ include "sample.pull" . | quote }}}
""",
    "templates/_pull.tpl": """\
{{- define "sample.pull" -}}
{{- if not (hasKey .Values "kept") }}{{ $_ := set .Values "kept" (randAlphaNum 32) }}{{ end -}}
{{- .Values.kept -}}
{{- end -}}
""",
    "templates/url.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: url}
data:
  url: postgres://user:{{ include "sample.password" . }}@db:5432/app?sslmode=require
  other: {{ randAlphaNum 12 | trunc 10 | lower }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata:
      annotations: {checksum/config: {{ include (print $.Template.BasePath "/puller.yaml") . | sha256sum }}}
""",
}
PEM = """\
{{- $ca := genCA "sample-ca" 3650 }}
{{- $cert := genSignedCert "sample" nil (list "sample" "sample.space.svc") 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: tls}
type: kubernetes.io/tls
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: hook.sample.local
  clientConfig:
    caBundle: {{ $ca.Cert | b64enc }}
"""
#: Two authorities: one whose key is kept, one whose key nobody has.
CERTIFICATES = {
    "templates/tls.yaml": PEM,
    "templates/other.yaml": """\
{{- $ca := genCA "kept-ca" 3650 }}
{{- $cert := genSignedCert "kept" nil (list "kept") 365 $ca }}
{{- $own := genSelfSignedCert "own" (list "10.0.0.1") (list "own") 365 }}
apiVersion: v1
kind: Secret
metadata: {name: kept}
stringData:
  ca.crt: {{ $ca.Cert | quote }}
  ca.key: {{ $ca.Key | quote }}
  tls.crt: |
    {{- $cert.Cert | nindent 4 }}
  tls.key: |-
    {{- $cert.Key | trim | nindent 4 }}
  bundle.pem: |
    {{- print $cert.Cert $ca.Cert | nindent 4 }}
---
apiVersion: v1
kind: Secret
metadata: {name: own}
stringData:
  crt: {{ $own.Cert | toJson }}
  key: {{ $own.Key | toJson }}
  ssh: {{ genPrivateKey "ed25519" | quote }}
  ec: |
    {{- genPrivateKey "ecdsa" | nindent 4 }}
""",
}
#: As JupyterHub's: the configuration is a file within a Secret, with keys made digit by digit.
NESTED = {
    "values.yaml": "hub:\n  config: {JupyterHub: {admin_access: true}}\n",
    "templates/_helpers.tpl": """\
{{- define "sample.hex" -}}
{{- $o := "" }}{{ range until 64 }}{{ $o = print $o (mod (randNumeric 4 | atoi) 16 | printf "%x") }}{{ end }}{{ $o -}}
{{- end -}}
{{- define "sample.config" -}}
{{- $values := deepCopy .Values -}}
{{- $_ := set $values.hub "cookieSecret" (randAlphaNum 64) -}}
{{- $_ := set $values.hub.config "CryptKeeper" (dict "keys" (list (include "sample.hex" .))) -}}
{{- $values | toYaml -}}
{{- end -}}
""",
    "templates/secret.yaml": """\
apiVersion: v1
kind: Secret
metadata: {name: hub}
data:
  values.yaml: {{ include "sample.config" . | b64enc | quote }}
  token: {{ include "sample.hex" . | b64enc | quote }}
""",
}
#: Functions, and what lands elsewhere than in a text of a Secret.
KINDS = {
    "values.yaml": 'text: "{{ randAlphaNum 18 }}"\nsalt: "salt-{{ randAlphaNum 14 }}"\n',
    "templates/_helpers.tpl": """\
{{- define "sample.generated" -}}{{ .name }}-{{ randAlphaNum .length }}{{- end -}}
""",
    "templates/all.yaml": """\
{{- $name := printf "job-%s" (randAlphaNum 8 | lower) }}
apiVersion: v1
kind: Secret
metadata: {name: one}
stringData:
  uuid: {{ uuidv4 | quote }}
  bytes: {{ randBytes 24 | quote }}
  ascii: {{ randAscii 20 | quote }}
  generated: {{ include "sample.generated" (dict "name" "one" "length" 16) }}
  text: {{ tpl .Values.text . | quote }}
  salt: {{ tpl .Values.salt . | quote }}
  upper: {{ randAlphaNum 20 | upper | quote }}
---
apiVersion: v1
kind: Secret
metadata: {name: two}
stringData:
  generated: {{ include "sample.generated" (dict "name" "two" "length" 16) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $name }}}
data: {self: {{ $name | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports: [{port: {{ randInt 30000 32000 }}}]
  externalName: {{ $name }}.local
""",
    "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    "charts/sub/templates/a.yaml": """\
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-sub}
data: {password: {{ randAlphaNum 20 | b64enc }}}
""",
}
CHAIN = {**KINDS, "kustomization.yaml": "namePrefix: pre-\nresources: [all.yaml]\n"}


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A chart, and the fields that change when an item gets another epoch, or when entries with some words are removed."""

    name: str
    files: dict[str, str]
    items: dict[str, set[str]] = field(default_factory=dict)
    entries: dict[tuple[str, ...], set[str]] = field(default_factory=dict)
    same: frozenset[str] = frozenset()
    """Parts of labels of what no epoch of the application changes."""


DERIVED = {"db/password", "db/bcrypt", "db/htpasswd", "db/digest", "url/url"}
PULLED = {
    "puller/password",
    "registry/.dockerconfigjson",
    "web/spec/template/metadata/annotations/checksum/config",
}
BUNDLE = "hook/webhooks/0/clientConfig/caBundle"
FLOWS = (
    Flow(
        name="passwords",
        files=PASSWORDS,
        items={
            "Secret/db/password": DERIVED,
            "Secret/db/bcrypt": {"db/bcrypt"},
            "Secret/db/strong": {"db/strong"},
            "Secret/puller/password": PULLED,
        },
        entries={
            ("data.password",): DERIVED,
            ("twice",): {"db/twice"},
            ("stringData.strong",): {"db/strong"},
            ("data.other",): {"url/other"},
        },
    ),
    Flow(
        name="certificates",
        files=CERTIFICATES,
        items={
            "Secret/tls/ca.crt": {"tls/ca.crt", "tls/tls.crt", "tls/tls.key", BUNDLE},
            "Secret/kept/tls.crt": {"kept/tls.crt", "kept/tls.key", "kept/bundle.pem"},
            "Secret/own/ssh": {"own/ssh"},
        },
        entries={
            ("kept", "genCA"): {
                "kept/ca.crt",
                "kept/ca.key",
                "kept/tls.crt",
                "kept/tls.key",
                "kept/bundle.pem",
            },
            ("own", "ecdsa"): {"own/ec"},
        },
    ),
    Flow(
        name="nested",
        files=NESTED,
        items={"Secret/hub/token": {"hub/token"}},
        entries={("values.yaml", "randAlphaNum"): {"hub/values.yaml"}, ("token",): {"hub/token"}},
    ),
    Flow(
        name="kinds",
        files=KINDS,
        items={
            "Secret/one/uuid": {"one/uuid"},
            "Secret/one/generated": {"one/generated"},
            "Secret/shop-sub/password": {"shop-sub/password"},
        },
        entries={
            ("randInt",): {"web/spec/ports/0/port"},
            ("stringData.salt",): {"one/salt"},
            ("stringData.text",): {"one/text"},
        },
    ),
    Flow(name="chain", files=CHAIN, items={"Secret/two/generated": {"pre-two/generated"}}),
)
HELMS = {"4": TOOLS / "helm-4.1.4" / "helm", "3": TOOLS / "helm-3.17.3" / "helm"}


@pytest.fixture(scope="module", params=[f"{flow.name}-{helm}" for flow in FLOWS for helm in HELMS])
def taken(request, tmp_path_factory) -> tuple[Flow, Running]:
    """An application that was taken over."""
    name, _, helm = request.param.partition("-")
    flow = next(flow for flow in FLOWS if flow.name == name)
    app = Running(tmp_path_factory.mktemp(request.param), flow.files, helm=HELMS[helm]).install()
    done = app.adopt()
    assert (done.returncode, done.stderr) == (0, "")
    assert "not taken over" not in done.stdout
    assert "nowhere to be seen" not in done.stdout
    return flow, app


def test_what_was_taken_over_is_rendered_byte_for_byte(taken):
    _, app = taken
    assert app.render() == app.stock
    assert app.warned == ""


def test_nothing_is_left_to_take_over_and_nothing_changes(taken):
    _, app = taken
    before = app.pins.read_bytes()
    done = app.adopt("--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip().endswith("as before")
    assert "taken over" not in done.stdout
    assert app.pins.read_bytes() == before


def test_live_objects_are_told_to_be_the_same(taken):
    _, app = taken
    code, states = app.differences()
    assert code == 0
    assert set(states.values()) == {"same"}


def test_an_epoch_of_an_item_changes_it_and_what_derives_from_it(taken):
    flow, app = taken
    for item, expected in flow.items.items():
        assert changed(app.stock, app.render(f"--item-epoch={item}=2")) == expected, item
        assert "becalm.pins.yaml" in app.warned


def test_without_an_entry_only_its_value_changes(taken):
    flow, app = taken
    text = app.pins.read_text()
    for words, expected in flow.entries.items():
        app.without(*words)
        try:
            assert changed(app.stock, app.render()) == expected, words
        finally:
            app.pins.write_text(text)


def test_an_epoch_of_the_application_changes_everything_and_tells(taken):
    flow, app = taken
    drawn = set().union(*flow.items.values(), *flow.entries.values())
    assert changed(app.stock, app.render("--epoch=2")) >= drawn
    assert "of another epoch of the application do not hold" in app.warned


def test_of_a_packed_chart_the_pins_are_beside_it(tmp_path):
    app = Running(tmp_path, PASSWORDS)
    run([HELMS["4"], "package", app.directory, "-d", tmp_path / "packed"])
    app.path = tmp_path / "packed" / "sample-1.0.0.tgz"
    app.pins = app.path.with_name("becalm.pins.yaml")
    app.install()
    assert app.adopt("--check").returncode == 1
    assert not app.pins.exists()
    done = app.adopt()
    assert (done.returncode, done.stdout.rstrip().endswith("commit it beside the chart")) == (0, True)
    assert (app.render(), app.warned) == (app.stock, "")
    before = app.pins.read_bytes()
    assert app.adopt().returncode == 0
    assert app.pins.read_bytes() == before


def test_before_taking_over_everything_would_change(tmp_path):
    app = Running(tmp_path, KINDS).install()
    code, states = app.differences()
    assert code == 1
    assert states["Secret/space/one data.uuid"] == "changes"
    assert states["Service/space/web spec.ports[0].port"] == "changes"


def test_a_checksum_of_what_is_drawn_anew_is_told_to_change(tmp_path):
    """Stock helm draws twice where a chart includes a template that draws, so that such a checksum fits nothing."""
    files = {
        **PASSWORDS,
        "templates/url.yaml": PASSWORDS["templates/url.yaml"].replace("/puller.yaml", "/secret.yaml"),
    }
    app = Running(tmp_path, files).install()
    done = app.adopt()
    field = "spec.template.metadata.annotations[checksum/config]"
    assert f"The next sync changes:\nDeployment.apps/space/web  {field}\n" in done.stdout
    assert changed(app.stock, app.render()) == {"web/spec/template/metadata/annotations/checksum/config"}
    assert app.differences()[0] == 1
    assert app.adopt("--check").returncode == 1
