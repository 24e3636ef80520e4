"""The same calls with stock helm: certificates say the same, but for serial, dates, keys and signatures."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import children
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from becalm.derive.certificates import lenient

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
VERSIONS = ("3.17.3", "4.1.4", "4.3.1")
NAMES = '"db.example.svc" (list "10.0.0.1" "::ffff:192.0.2.1" "FD00::1") (list "db" "*.db.example.svc") 365'
#: Every shape of certificate: the text of the call; `$rsa` and the others are keys, `$ca` an authority.
CALLS = {
    "ca": 'genCA "example-ca" 3650',
    "ca-empty": 'genCA "" 10',
    "ca-star": 'genCA "*.example & Sons" 10',
    "ca-utf8": 'genCA "prüfung" 10',
    "ca-long": 'genCA (repeat 30 "name-") 10',
    "ca-rsa": 'genCAWithKey "ca" 10 $rsa',
    "ca-ecdsa": 'genCAWithKey "ca" 10 $ecdsa',
    "ca-ed25519": 'genCAWithKey "ca" 10 $ed25519',
    "self": f"genSelfSignedCert {NAMES}",
    "self-bare": 'genSelfSignedCert "a" nil nil 1',
    "self-lists": 'genSelfSignedCert "a" list list 1',
    "self-no-name": 'genSelfSignedCert "" nil (list "a.example") 1',
    "self-no-names": 'genSelfSignedCert "" nil nil 1',
    "self-addresses": 'genSelfSignedCert "a" (list "1.2.3.4") nil 1',
    "self-ecdsa": f"genSelfSignedCertWithKey {NAMES} $ecdsa",
    "self-ed25519": f"genSelfSignedCertWithKey {NAMES} $ed25519",
    "leaf": f"genSignedCert {NAMES} $ca",
    "leaf-same-name": 'genSignedCert "example-ca" nil nil 1 $ca',
    "leaf-ecdsa": f"genSignedCertWithKey {NAMES} $ca $ecdsa",
    "leaf-of-ecdsa": f"genSignedCert {NAMES} $ecdsaCa",
    "leaf-of-ed25519": f"genSignedCertWithKey {NAMES} $ed25519Ca $rsa",
    "leaf-of-self": f'genSignedCert {NAMES} (genSelfSignedCert "a" nil nil 5)',
    "leaf-of-values": f"genSignedCert {NAMES} (buildCustomCert (b64enc .Values.cert) (b64enc .Values.key))",
}
KEYS = {kind: f'genPrivateKey "{kind}"' for kind in ("", "rsa", "dsa", "ecdsa", "ed25519", "other")}


@pytest.fixture(scope="module")
def chart(tmp_path_factory):
    """A chart that makes each, and prints it as JSON in a Secret of its own."""
    directory = tmp_path_factory.mktemp("sprig")
    (directory / "seed").touch(mode=0o600)
    (directory / "seed").write_bytes(bytes(range(64)))
    chart = directory / "sample"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: sample\nversion: 1.0.0\n")
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes", "-days", "9",
         "-subj", "/C=DE/O=Example/CN=Own authority", "-keyout", directory / "key", "-out", directory / "cert"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    values = {"cert": (directory / "cert").read_text(), "key": (directory / "key").read_text()}
    (chart / "values.yaml").write_text(yaml.safe_dump(values))
    lines = [f'{{{{- $rsa := {KEYS["rsa"]} }}}}{{{{ $ecdsa := {KEYS["ecdsa"]} }}}}{{{{ $ed25519 := {KEYS["ed25519"]} }}}}',
             f'{{{{- $ca := {CALLS["ca"]} }}}}{{{{ $ecdsaCa := {CALLS["ca-ecdsa"]} }}}}',
             f'{{{{- $ed25519Ca := {CALLS["ca-ed25519"]} }}}}']  # fmt: skip
    for name, call in (CALLS | {"ca": "$ca"}).items():
        lines.append(f"---\nkind: Secret\nmetadata: {{name: {name}}}\ndata:")
        lines.append(
            f"{{{{- $c := {call} }}}}\n  cert: {{{{ b64enc $c.Cert }}}}\n  key: {{{{ b64enc $c.Key }}}}"
        )
    lines.append("---\nkind: Secret\nmetadata: {name: keys}\ndata:")
    lines += [f'  "key{kind}": {{{{ {call} | b64enc }}}}' for kind, call in KEYS.items()]
    (chart / "templates" / "all.yaml").write_text("\n".join(lines) + "\n")
    return chart


def load(output: str) -> dict[str, dict[str, str]]:
    return {
        obj["metadata"]["name"]: {key: base64.b64decode(text).decode() for key, text in obj["data"].items()}
        for obj in filter(None, yaml.safe_load_all(output))
    }


@pytest.fixture(scope="module", params=VERSIONS)
def both(chart, request):
    """The objects of stock helm and of becalm."""
    helm = TOOLS / f"helm-{request.param}" / "helm"
    stock = subprocess.run([helm, "template", "app", chart], capture_output=True, text=True, check=True)
    words = [
        "render",
        chart,
        "--app=app",
        "--namespace=n",
        f"--seed={chart.parent / 'seed'}",
        f"--helm={helm}",
    ]
    ours = children.run(words)
    assert ours.stderr == ""
    return load(stock.stdout), load(ours.stdout), request.param


def fields(certificate: x509.Certificate) -> dict[str, object]:
    """Everything that a certificate says but serial, dates, key and signature."""
    extensions = []
    for extension in certificate.extensions:
        value = extension.value
        if isinstance(value, x509.SubjectKeyIdentifier | x509.AuthorityKeyIdentifier):
            shown = "identifier", len(getattr(value, "digest", None) or value.key_identifier)
        else:
            shown = value.public_bytes()
        extensions.append((extension.oid.dotted_string, extension.critical, shown))
    public = certificate.public_key()
    return {
        "version": certificate.version,
        "subject": certificate.subject.public_bytes(),
        "issuer": certificate.issuer.public_bytes(),
        "extensions": extensions,
        "algorithm": certificate.signature_algorithm_oid,
        "key": (type(public).__name__, getattr(public, "key_size", 0)),
        "validity": certificate.not_valid_after_utc - certificate.not_valid_before_utc,
    }


def labels(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("-----")]


@pytest.mark.parametrize("name", CALLS)
def test_certificates_say_what_sprig_says(both, name):
    stock, ours, _ = both
    for part in ("cert", "key"):
        assert labels(ours[name][part]) == labels(stock[name][part])
        assert ours[name][part][-1] == stock[name][part][-1]
        assert {len(line) for line in ours[name][part].splitlines()[:-2]} == {
            len(line) for line in stock[name][part].splitlines()[:-2]
        }
    theirs = x509.load_pem_x509_certificate(stock[name]["cert"].encode())
    own = x509.load_pem_x509_certificate(ours[name]["cert"].encode())
    with lenient():
        assert fields(own) == fields(theirs)
    key = load_pem_private_key(ours[name]["key"].encode(), None)
    assert key.public_key() == own.public_key()
    assert 0 < own.serial_number < 2**128


def test_issuers_sign_what_sprig_has_them_sign(both):
    """Each leaf verifies against its authority, also where they share a name."""
    _, ours, _ = both
    certificates = {name: x509.load_pem_x509_certificate(ours[name]["cert"].encode()) for name in CALLS}
    for leaf, authority in (
        ("leaf", "ca"),
        ("leaf-same-name", "ca"),
        ("leaf-ecdsa", "ca"),
        ("leaf-of-ecdsa", "ca-ecdsa"),
        ("leaf-of-ed25519", "ca-ed25519"),
    ):
        certificates[leaf].verify_directly_issued_by(certificates[authority])
        wanted = certificates[authority].extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        if leaf != "leaf-same-name":
            own = certificates[leaf].extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
            assert own.value.key_identifier == wanted.value.digest


def test_an_authority_from_the_values_signs(both, chart):
    _, ours, _ = both
    authority = x509.load_pem_x509_certificate((chart.parent / "cert").read_bytes())
    leaf = x509.load_pem_x509_certificate(ours["leaf-of-values"]["cert"].encode())
    leaf.verify_directly_issued_by(authority)


def test_private_keys_are_written_as_sprig_writes_them(both):
    stock, ours, _ = both
    kinds = {"": rsa.RSAPrivateKey, "rsa": rsa.RSAPrivateKey, "dsa": dsa.DSAPrivateKey,
             "ecdsa": ec.EllipticCurvePrivateKey, "ed25519": ed25519.Ed25519PrivateKey}  # fmt: skip
    for kind, expected in kinds.items():
        own, theirs = ours["keys"][f"key{kind}"], stock["keys"][f"key{kind}"]
        assert labels(own) == labels(theirs)
        keys = [load_pem_private_key(text.encode(), None) for text in (own, theirs)]
        assert all(isinstance(key, expected) for key in keys)
        assert keys[0].public_key() != keys[1].public_key()
        assert len({getattr(key, "key_size", 0) for key in keys}) == 1
        # The same bytes but for the numbers: what is around them has the same length, give or take signs.
        assert abs(len(own) - len(theirs)) < 30
    assert ours["keys"]["keyother"] == stock["keys"]["keyother"] == "Unknown type other"


def test_keys_are_independent(both):
    """No two keys of the chart are the same, but those that it passed on itself."""
    _, ours, _ = both
    made = [
        ours[name]["key"]
        for name in CALLS
        if "ecdsa" not in name and "ed25519" not in name and name != "ca-rsa"
    ]
    assert len(set(made)) == len(made)
