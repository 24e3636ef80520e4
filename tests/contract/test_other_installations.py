"""The Job for the seed, the values for the community's Helm chart, and the operator's resource.

Each holds what the Kustomize component holds, in another form; these tests keep them the same.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from installations import (
    KUBECTLS,
    MANIFESTS,
    Objects,
    base,
    becalm_of,
    chart_values,
    deployment,
    mounts,
    operator,
    rendered,
    valid,
)

from becalm import cli
from becalm.config import load


def seed_job(version: str) -> Objects:
    return rendered(version, MANIFESTS / "seed")


@pytest.mark.parametrize("version", sorted(KUBECTLS))
def test_the_seeds_job_fits_kubernetes_schemas(version: str) -> None:
    found = seed_job(version)
    assert {kind for kind, _ in found} == {"ServiceAccount", "Role", "RoleBinding", "Job"}
    for item in found.values():
        assert item["metadata"]["namespace"] == "argocd"
        valid(item)


def test_the_seeds_account_can_create_secrets_and_neither_read_nor_change_them() -> None:
    found = seed_job("1.37.1")
    assert found["Role", "becalm-seed"]["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}
    ]
    binding = found["RoleBinding", "becalm-seed"]
    assert binding["roleRef"]["name"] == "becalm-seed"
    (subject,) = binding["subjects"]
    account = found["Job", "becalm-seed"]["spec"]["template"]["spec"]["serviceAccountName"]
    assert (subject["kind"], subject["name"], subject["namespace"]) == ("ServiceAccount", account, "argocd")


def test_the_seeds_job_runs_a_command_that_becalm_has_and_makes_what_the_sidecar_mounts() -> None:
    job = seed_job("1.37.1")["Job", "becalm-seed"]["spec"]["template"]["spec"]
    (container,) = job["containers"]
    assert job["automountServiceAccountToken"] is True
    assert container["securityContext"] == becalm_of(base()["containers"])["securityContext"]
    (namespace,) = container["env"]
    assert namespace["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    words = [
        word.replace(f"$({namespace['name']})", "argocd") for word in container["command"] + container["args"]
    ]
    assert words[0] == "becalm"
    parsed = cli._parser().parse_args(words[1:])
    (volume,) = [item for item in base()["volumes"] if "secret" in item]
    assert (parsed.namespace, parsed.name) == ("argocd", volume["secret"]["secretName"])


def test_the_charts_values_hold_the_same_container_and_volumes() -> None:
    values = chart_values()["repoServer"]
    container = becalm_of(values["extraContainers"])
    ours = becalm_of(base()["containers"])
    assert container.pop("image") == "example/becalm:0.1.0"
    assert ours.pop("image") == "becalm"
    assert container == ours
    assert values["volumes"] == base()["volumes"]
    # The chart reads its extra containers as templates.
    assert "{{" not in (MANIFESTS / "helm-values.yaml").read_text()


def test_the_charts_values_hold_the_same_service_and_policy() -> None:
    objects = {item["kind"]: item for item in chart_values()["extraObjects"]}
    for kind, file in (("Service", "base/service.yaml"),
                       ("NetworkPolicy", "components/network-policy/network-policy.yaml")):  # fmt: skip
        assert objects[kind] == yaml.safe_load((MANIFESTS / file).read_text())
        valid(objects[kind])
    # Else that policy would be the only one, and the repo-server could not be reached.
    assert chart_values()["repoServer"]["networkPolicy"] == {"create": True}


def test_the_monitor_of_pods_fits_the_chart_and_the_operator_as_well() -> None:
    """It is applied by itself there (docs/install.md), so it has to select their pods and name their container's port."""
    monitor = yaml.safe_load((MANIFESTS / "components/monitoring/pod-monitor.yaml").read_text())
    (service,) = [item for item in chart_values()["extraObjects"] if item["kind"] == "Service"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    # The operator labels its pods by the name of its resource: NAME-repo-server.
    name = f"{operator()['metadata']['name']}-repo-server"
    assert monitor["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": name}
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    for containers in (
        chart_values()["repoServer"]["extraContainers"],
        operator()["spec"]["repo"]["sidecarContainers"],
    ):
        assert endpoint["port"] in [port["name"] for port in becalm_of(containers)["ports"]]


def test_the_charts_values_name_only_keys_that_the_chart_has() -> None:
    """Read in the chart's values.yaml, version 10.1.1; helm ignores any other key silently."""
    values = chart_values()
    assert set(values) == {"global", "repoServer", "extraObjects"}
    assert values["global"] == {"securityContext": base()["securityContext"]}
    assert set(values["repoServer"]) == {"podAnnotations", "networkPolicy", "extraContainers", "volumes"}


def test_the_operators_resource_holds_the_same_container_but_for_its_user() -> None:
    repo = operator()["spec"]["repo"]
    assert set(repo) == {"initContainers", "sidecarContainers", "volumes"}
    container = becalm_of(repo["sidecarContainers"])
    ours = becalm_of(base()["containers"])
    del container["image"], ours["image"]
    # OpenShift chooses the user, see the file.
    del ours["securityContext"]["runAsUser"], ours["securityContext"]["runAsGroup"]
    assert container == ours
    for volume in base()["volumes"]:
        if volume["name"] != "becalm-seed":
            assert volume in repo["volumes"]
    own = {"var-files", "plugins"}
    pod = {"containers": repo["sidecarContainers"], "initContainers": repo["initContainers"],
           "volumes": repo["volumes"] + [{"name": name, "emptyDir": {}} for name in sorted(own)]}  # fmt: skip
    valid(deployment(pod))
    names = {volume["name"] for volume in pod["volumes"]}
    assert {
        name for item in repo["initContainers"] + repo["sidecarContainers"] for name in mounts(item)
    } == names


def test_the_operators_container_for_the_seed_leaves_a_file_that_becalm_takes(tmp_path: Path) -> None:
    """Runs its command with directories of the test's own; the Secret is readable by all, as it is mounted there."""
    repo = operator()["spec"]["repo"]
    (container,) = repo["initContainers"]
    places = {path: tmp_path / name for name, path in mounts(container).items()}
    for path in places.values():
        path.mkdir()
    secret, copied = places["/secret"] / "seed", places["/seed"]
    secret.write_bytes(bytes(range(64)))
    secret.chmod(0o444)
    words = [
        re.sub(r"(?<![^=])/(secret|seed)(?=/|$)", lambda found: str(places[found[0]]), word)
        for word in container["command"]
    ]
    subprocess.run(words, check=True, timeout=20)
    assert load.seed_files(copied) == {"seed": bytes(range(64))}
    assert (copied / "seed").stat().st_mode & 0o777 == 0o400
    (volume,) = [item for item in repo["volumes"] if "secret" in item]
    assert all(volume["name"] not in mounts(item) for item in repo["sidecarContainers"])
    assert volume["secret"]["defaultMode"] == 0o444
