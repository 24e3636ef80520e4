"""Certificates in rendered charts: chains, names, keys and sums are right, at any time."""

from __future__ import annotations

import base64
import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

import bcrypt
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.verification import PolicyBuilder, Store

from becalm.derive.labels import Application
from becalm.derive.seed import Seed
from becalm.pipeline import render
from becalm.request import Request, Result
from becalm.sources.helm import HelmOptions

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
GOLDEN = ROOT / "tests" / "golden" / "charts"
DAY = 86_400
AT = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp())
VERSIONS = ("3.17.3", "4.1.4", "4.3.1")


def rendered(case: str, *, at: int = AT, version: str = "4.1.4", **more) -> Result:
    return render(
        Request(
            chart=GOLDEN / case,
            root=None,
            options=HelmOptions(release="app", namespace="space"),
            application=Application(name="app", project="default", namespace="space", cluster=""),
            seed=Seed(bytes(range(32))),
            helm=str(TOOLS / f"helm-{version}" / "helm"),
            at=at,
            cache=Path(os.environ["BECALM_CACHE_DIR"]),
            **more,
        )
    )


def objects(output: str) -> dict[str, dict]:
    """The objects by name; Secrets with their data decoded."""
    found = {}
    for obj in filter(None, yaml.safe_load_all(output)):
        if obj["kind"] == "Secret":
            data = {key: base64.b64decode(text).decode() for key, text in obj.get("data", {}).items()}
            obj["data"] = data | obj.get("stringData", {})
        found[obj["metadata"]["name"]] = obj
    return found


def certificate(text: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(text.encode())


def verify(authority: str, leaf: str, name: str, at: int = AT) -> None:
    """As a TLS client would, which trusts this authority and asks for this name at this time."""
    policy = PolicyBuilder().store(Store([certificate(authority)])).time(datetime.fromtimestamp(at, UTC))
    policy.build_server_verifier(x509.DNSName(name)).verify(certificate(leaf), [])


def check_key(cert: str, key: str) -> None:
    assert load_pem_private_key(key.encode(), None).public_key() == certificate(cert).public_key()


#: Case: the chains in it, as functions of the objects: authority, leaf, key, host name.
CHAINS = {
    "certificates-together": lambda o: [
        *(
            (base64.b64decode(hook["clientConfig"]["caBundle"]).decode(), o["webhook-tls"]["data"]["tls.crt"],
             o["webhook-tls"]["data"]["tls.key"], "app.space.svc")
            for hook in o["webhook"]["webhooks"]
        ),
        (o["webhook-tls"]["data"]["ca.crt"], o["webhook-tls"]["data"]["tls.crt"],
         o["webhook-tls"]["data"]["tls.key"], "app"),
    ],
    "certificates-apart": lambda o: [
        (o[where]["data"]["ca.crt"], o["leaf"]["data"]["tls.crt"], o["leaf"]["data"]["tls.key"], "leaf.example")
        for where in ("authority", "leaf")
    ],
    "certificates-with-keys": lambda o: [
        (o["keyed"]["data"]["ca.crt"], o["keyed"]["data"]["leaf.crt"], o["keyed"]["data"]["leaf.key"], "leaf.example"),
    ],
    "certificates-per-element": lambda o: [
        (o["fleet-ca"]["data"]["ca.crt"], o[name.replace(".", "-")]["data"]["tls.crt"],
         o[name.replace(".", "-")]["data"]["tls.key"], name)
        for name in ("one.example", "two.example")
    ],
    "certificates-by-helper": lambda o: [
        (base64.b64decode(o["helper"]["webhooks"][0]["clientConfig"]["caBundle"]).decode(),
         o["helper-tls"]["data"]["tls.crt"], o["helper-tls"]["data"]["tls.key"], "helper.example"),
    ],
    "certificates-from-values": lambda o: [
        (o["values-tls"]["data"]["ca.crt"], o["values-tls"]["data"]["tls.crt"],
         o["values-tls"]["data"]["tls.key"], "values.example"),
    ],
}  # fmt: skip
CASES = sorted(path.name for path in GOLDEN.glob("certificates-*"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CHAINS)
def test_chains_names_and_keys_are_right(case, version):
    chains = CHAINS[case](objects(rendered(case, version=version).output))
    assert chains
    for authority, leaf, key, name in chains:
        verify(authority, leaf, name)
        check_key(leaf, key)
        with pytest.raises(x509.verification.VerificationError):
            verify(authority, leaf, "other.example")


def test_self_signed_certificates_are_the_same_everywhere():
    found = objects(rendered("certificates-self-signed").output)
    cert = found["self"]["data"]["tls.crt"]
    check_key(cert, found["self"]["data"]["tls.key"])
    certificate(cert).verify_directly_issued_by(certificate(cert))
    assert found["trust"]["data"]["bundle.pem"] == cert
    helper = objects(rendered("certificates-by-helper").output)
    bundle = helper["helper"]["webhooks"][1]["clientConfig"]["caBundle"]
    assert base64.b64decode(bundle).decode() == helper["self-tls"]["data"]["tls.crt"]


def test_keys_belong_to_their_certificates():
    data = objects(rendered("certificates-with-keys").output)["keyed"]["data"]
    for name in ("ca", "leaf", "self"):
        check_key(data[f"{name}.crt"], data[f"{name}.key"])
    data = objects(rendered("certificates-per-element").output)["clients"]["data"]
    for name, days in (("alice", 30), ("bob", 60)):
        check_key(data[f"{name}.crt"], data[f"{name}.key"])
        found = certificate(data[f"{name}.crt"])
        assert (found.not_valid_after_utc - found.not_valid_before_utc).days == days
    assert data["alice.key"] != data["bob.key"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("case", "source", "owner"),
    [("certificates-together", "tls.yaml", "server"), ("certificates-by-helper", "secret.yaml", "helper")],
)
def test_a_checksum_is_that_of_what_is_rendered(case, source, owner, version):
    output = rendered(case, version=version).output
    deployment = next(obj for obj in yaml.safe_load_all(output) if obj and obj["kind"] == "Deployment")
    assert deployment["metadata"]["name"] == owner
    texts = [
        document.partition("\n")[2].rstrip("\n") + "\n"
        for document in output.split("---\n# Source: ")
        if document.startswith(f"{case}/templates/{source}\n")
    ]
    sums = {hashlib.sha256(text.encode()).hexdigest() for text in ["\n" + "---\n".join(texts)]}
    assert deployment["spec"]["template"]["metadata"]["annotations"]["checksum/tls"] in sums


@pytest.mark.parametrize("case", [*CASES])
def test_helm_runs_twice(case, tmp_path):
    """A survey and a replay, with an empty cache as well, however many certificates there are."""
    assert rendered(case).runs == 2


@pytest.mark.parametrize("case", CASES)
def test_nothing_but_windows_changes_with_time(case):
    """All through a window the bytes stay; at its end the certificate is another, of the same key."""
    first = rendered(case)
    assert first.issued
    change = min(issued.window.change for issued in first.issued.values())
    last = max(issued.window.start for issued in first.issued.values())
    for at in (last, change - 1):
        assert rendered(case, at=at).output == first.output
    following = rendered(case, at=change)
    assert following.output != first.output
    before, after = (
        {issued.certificate.key for issued in result.issued.values()} for result in (first, following)
    )
    assert before == after


@pytest.mark.parametrize("case", CHAINS)
def test_leaves_and_authorities_of_overlapping_windows_fit(case):
    """Whatever of two renders is deployed where, clients and servers agree as long as both are valid."""
    times = [AT + step * 45 * DAY for step in range(14)]
    renders = [CHAINS[case](objects(rendered(case, at=at).output)) for at in times]
    pairs = 0
    for at_leaf, leaves in zip(times, renders, strict=True):
        for at_authority, authorities in zip(times, renders, strict=True):
            now = max(at_leaf, at_authority)
            for (_, leaf, _, name), (authority, _, _, _) in zip(leaves, authorities, strict=True):
                if all(certificate(text).not_valid_after_utc.timestamp() > now for text in (leaf, authority)):
                    verify(authority, leaf, name, at=now)
                    pairs += 1
    assert pairs > 2 * len(times)


@pytest.mark.parametrize("version", VERSIONS)
def test_passwords_log_in(version):
    data = objects(rendered("hashes", version=version).output)["users"]["data"]

    def logs_in(password: str, hashed: str) -> bool:
        return bcrypt.checkpw(password.encode(), hashed.encode())

    assert logs_in(data["password"], data["auth"].removeprefix("admin:"))
    assert logs_in(data["password"], data["hash"])
    assert logs_in(data["password"], data["only"])
    assert logs_in(data["strong"], data["strongHash"])
    assert logs_in(data["password"].upper(), data["upperHash"])
    assert len({data[name][:29] for name in ("hash", "strongHash", "upperHash", "unseenHash")}) == 4
    assert data["decrypted"] == "plain text"
    lines = objects(rendered("hashes", version=version).output)["lines"]["data"]["htpasswd"].split()
    assert [line.partition(":")[0] for line in lines] == ["alice", "bob"]
    assert all(logs_in("same password", line.partition(":")[2]) for line in lines)
    assert lines[0].partition(":")[2] != lines[1].partition(":")[2]


def test_windows_can_be_anchored():
    from becalm.derive.windows import Windows

    anchor = int(datetime(2026, 11, 1, 3, tzinfo=UTC).timestamp())
    result = rendered("certificates-together", windows=Windows(anchor=anchor))
    for issued in result.issued.values():
        assert (issued.window.start - anchor) % (issued.window.change - issued.window.start) == 0
