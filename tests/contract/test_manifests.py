"""The manifests, rendered by real kustomize over a stand-in for Argo CD's Deployment, and checked by Kubernetes' schemas.

Names and paths that must agree stand in many files (manifests, plugin.yaml, Dockerfile, code); a
mistake in one of them shows only in a running cluster, so it is caught here.
"""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from installations import (
    KUBECTLS,
    MANIFESTS,
    OVERLAYS,
    PORT,
    ROOT,
    SOCKETS,
    STAND_IN,
    VAR_FILES,
    Objects,
    becalm_of,
    installation,
    kustomize,
    mounts,
    rendered,
    valid,
    variables,
)

from becalm import options
from becalm.cmp import parameters
from becalm.config import load, looking, private


@pytest.fixture(
    scope="module",
    params=[(version, overlay) for version in sorted(KUBECTLS) for overlay in OVERLAYS],
    ids="-".join,
)
def objects(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    version, overlay = request.param
    directory = tmp_path_factory.mktemp(overlay)
    return rendered(version, installation(directory, overlay, components=("monitoring",)))


@pytest.fixture
def pod(objects: Objects) -> dict[str, Any]:
    return objects["Deployment", "argocd-repo-server"]["spec"]["template"]["spec"]


@pytest.fixture
def sidecar(pod: dict[str, Any]) -> dict[str, Any]:
    return becalm_of(pod["containers"])


def test_only_the_repo_server_gets_the_sidecar_and_keeps_its_own_container(objects: Objects) -> None:
    deployments = {name: item for (kind, name), item in objects.items() if kind == "Deployment"}
    names = {
        name: [container["name"] for container in item["spec"]["template"]["spec"]["containers"]]
        for name, item in deployments.items()
    }
    assert {name: sorted(containers) for name, containers in names.items()} == {
        "argocd-repo-server": ["argocd-repo-server", "becalm"],
        "argocd-server": ["argocd-server"],
    }
    original = next(yaml.safe_load_all(STAND_IN))["spec"]["template"]["spec"]
    patched = deployments["argocd-repo-server"]["spec"]["template"]
    assert patched["spec"]["initContainers"] == original["initContainers"]
    others = [item for item in patched["spec"]["containers"] if item["name"] != "becalm"]
    assert others == original["containers"]
    # kustomize puts the new container first, which kubectl would take for the one that is meant.
    assert patched["metadata"]["annotations"] == {
        "kubectl.kubernetes.io/default-container": original["containers"][0]["name"]
    }


def test_everything_fits_kubernetes_schemas(objects: Objects) -> None:
    checked = [item for item in objects.values() if item["kind"] != "PodMonitor"]
    assert {item["kind"] for item in checked} == {"Deployment", "Service", "NetworkPolicy"}
    for item in checked:
        valid(item)


def test_the_schemas_refuse_a_field_that_is_none(objects: Objects) -> None:
    wrong = copy.deepcopy(objects["Deployment", "argocd-repo-server"])
    becalm_of(wrong["spec"]["template"]["spec"]["containers"])["readinesProbe"] = {}
    with pytest.raises(Exception, match="readinesProbe"):
        valid(wrong)


def test_every_object_is_in_argo_cds_namespace(objects: Objects) -> None:
    assert {item["metadata"].get("namespace") for item in objects.values()} == {"argocd"}


def test_every_mount_has_its_volume_and_no_volume_is_there_twice(
    pod: dict[str, Any], sidecar: dict[str, Any]
) -> None:
    volumes = [volume["name"] for volume in pod["volumes"]]
    assert sorted(volumes) == sorted(set(volumes))
    assert set(mounts(sidecar)) <= set(volumes)
    paths = list(mounts(sidecar).values())
    assert sorted(paths) == sorted(set(paths))


def test_argo_cds_own_volumes_are_mounted_where_argo_cd_expects_them(sidecar: dict[str, Any]) -> None:
    assert mounts(sidecar)["var-files"] == VAR_FILES
    assert mounts(sidecar)["plugins"] == SOCKETS


def test_the_sidecar_has_a_tmp_of_its_own(pod: dict[str, Any], sidecar: dict[str, Any]) -> None:
    (name,) = [name for name, path in mounts(sidecar).items() if path == "/tmp"]
    assert name != "tmp"
    others = [item for item in pod["containers"] if item["name"] != "becalm"]
    assert all(name not in mounts(other) for other in others)


def test_what_is_written_is_bounded_and_the_cache_stays_below_its_volume(
    pod: dict[str, Any], sidecar: dict[str, Any]
) -> None:
    limits = {volume["name"]: volume["emptyDir"]["sizeLimit"]
              for volume in pod["volumes"] if volume["name"].startswith("becalm-") and "emptyDir" in volume}  # fmt: skip
    assert set(limits) == {"becalm-tmp", "becalm-cache"}
    gibibytes = int(limits["becalm-cache"].removesuffix("Gi"))
    assert int(variables(sidecar)["BECALM_CACHE_BYTES"]) * 2 <= gibibytes * 1024**3


def test_becalm_takes_the_cache_directory_that_the_pod_gives_it(
    sidecar: dict[str, Any], tmp_path: Path
) -> None:
    """The volume itself belongs to root and is open to all; a directory below it can be ours alone."""
    directory = load.cache_directory(variables(sidecar))
    assert directory is not None
    below = directory.relative_to(mounts(sidecar)["becalm-cache"])
    assert str(below) != "."
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(0o2777)
    assert private.is_private(volume / below)
    assert not private.is_private(volume)


def test_the_seed_is_where_the_environment_says_and_only_the_sidecar_sees_it(
    pod: dict[str, Any], sidecar: dict[str, Any]
) -> None:
    (volume,) = [item for item in pod["volumes"] if "secret" in item]
    (mount,) = [item for item in sidecar["volumeMounts"] if item["name"] == volume["name"]]
    environment = variables(sidecar)
    assert mount["readOnly"] is True
    assert volume["secret"]["defaultMode"] == 0o440
    # All keys of the Secret are seeds, so that a new one can be put beside the old one.
    assert "items" not in volume["secret"]
    # Not optional: a repo-server without a seed does not start, instead of failing at the first render.
    assert "optional" not in volume["secret"]
    assert mount["mountPath"] == environment["BECALM_SEED_FILE"]
    assert environment["BECALM_CLUSTER"] == "production"
    # The files belong to root: without this group the process could not read them.
    assert pod["securityContext"]["fsGroup"] == sidecar["securityContext"]["runAsGroup"]
    others = [item for item in pod["containers"] + pod["initContainers"] if item["name"] != "becalm"]
    assert all(volume["name"] not in mounts(other) for other in others)


def test_the_sidecar_runs_with_no_more_rights_than_it_needs(sidecar: dict[str, Any]) -> None:
    assert sidecar["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 999,
        "runAsGroup": 999,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_the_image_agrees_with_the_pod(sidecar: dict[str, Any]) -> None:
    text = (ROOT / "Dockerfile").read_text()
    user, group = re.findall(r"(?m)^USER (\d+):(\d+)$", text)[-1]
    assert int(user) == sidecar["securityContext"]["runAsUser"]
    assert int(group) == sidecar["securityContext"]["runAsGroup"]
    assert re.findall(r"(?m)^EXPOSE (\d+)$", text) == [str(PORT)]
    # The image says what runs, in one place.
    assert not {"command", "args"} & set(sidecar)
    assert sidecar["image"] == "example/becalm:0.1.0"


def test_probes_and_service_use_the_port_on_which_becalm_listens(
    objects: Objects, sidecar: dict[str, Any]
) -> None:
    (port,) = sidecar["ports"]
    assert variables(sidecar)["BECALM_WEB_ADDRESS"] == f"0.0.0.0:{PORT}"
    assert port == {"name": "becalm", "containerPort": PORT, "protocol": "TCP"}
    paths = {
        name: sidecar[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    assert paths == {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    assert {sidecar[name]["httpGet"]["port"] for name in paths} == {"becalm"}
    service = objects["Service", "argocd-becalm"]["spec"]
    assert (service["ports"][0]["port"], service["ports"][0]["targetPort"]) == (PORT, "becalm")
    monitor = objects["PodMonitor", "argocd-becalm"]["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("becalm", "/metrics")
    labels = objects["Deployment", "argocd-repo-server"]["spec"]["template"]["metadata"]["labels"]
    # Variables of a Service called "becalm" would look like becalm's own.
    assert all(not name.startswith("becalm") for kind, name in objects if kind == "Service")
    assert service["selector"] == monitor["selector"]["matchLabels"] == labels


def test_the_policy_opens_the_web_port_and_nothing_else(objects: Objects) -> None:
    policy = objects["NetworkPolicy", "argocd-becalm"]["spec"]
    labels = objects["Deployment", "argocd-repo-server"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (ingress,) = policy["ingress"]
    assert ingress["ports"] == [{"protocol": "TCP", "port": PORT}]
    assert ingress["from"]  # without it, everybody would be let in
    reached = [sorted((one["protocol"], one["port"]) for one in rule["ports"]) for rule in policy["egress"]]
    assert reached == [[("TCP", 53), ("UDP", 53)], [("TCP", 22), ("TCP", 443)], [("TCP", 6379)]]
    (redis,) = policy["egress"][2]["to"]
    names = redis["podSelector"]["matchExpressions"][0]["values"]
    assert names == ["argocd-redis", "argocd-redis-ha-haproxy"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_replicas_share_their_cache_in_argo_cds_redis_where_there_are_several(
    tmp_path: Path, overlay: str
) -> None:
    found = rendered("1.37.1", installation(tmp_path, overlay))
    pod = found["Deployment", "argocd-repo-server"]["spec"]["template"]["spec"]
    environment = variables(becalm_of(pod["containers"]))
    redis = {name: value for name, value in environment.items() if name.startswith("BECALM_REDIS")}
    expected = {
        "BECALM_REDIS_URL": "redis://argocd-redis-ha-haproxy:6379/1",
        "BECALM_REDIS_PASSWORD": {"secretKeyRef": {"name": "argocd-redis", "key": "auth"}},
    }
    assert redis == (expected if overlay == "ha" else {})
    assert ("PodMonitor", "argocd-becalm") not in found  # its definition may be missing


@pytest.mark.parametrize("version", sorted(KUBECTLS))
def test_the_component_for_redis_names_argo_cds_redis(tmp_path: Path, version: str) -> None:
    found = rendered(version, installation(tmp_path, "standard", components=("redis",)))
    pod = found["Deployment", "argocd-repo-server"]["spec"]["template"]["spec"]
    assert variables(becalm_of(pod["containers"]))["BECALM_REDIS_URL"] == "redis://argocd-redis:6379/1"
    valid(found["Deployment", "argocd-repo-server"])


@pytest.mark.parametrize("version", sorted(KUBECTLS))
def test_without_the_deployment_the_build_fails_instead_of_doing_nothing(
    tmp_path: Path, version: str
) -> None:
    run = kustomize(
        version, installation(tmp_path, "standard", STAND_IN.replace("argocd-repo-server", "other"))
    )
    assert run.returncode != 0
    assert "argocd-repo-server" in run.stderr


@pytest.mark.parametrize("version", sorted(KUBECTLS))
def test_an_installation_with_namespace_and_labels_of_its_own_is_patched_as_well(
    tmp_path: Path, version: str
) -> None:
    own = STAND_IN.replace(
        "  name: argocd-repo-server\n", "  name: argocd-repo-server\n  namespace: argocd\n", 1
    )
    own = own.replace("{app.kubernetes.io/name: argocd-repo-server}", "{app: repo, team: platform}")
    found = rendered(version, installation(tmp_path, "standard", own))
    assert found["Service", "argocd-becalm"]["spec"]["selector"] == {"app": "repo", "team": "platform"}
    becalm_of(found["Deployment", "argocd-repo-server"]["spec"]["template"]["spec"]["containers"])


def test_rules_and_definitions_are_read_from_where_they_are_mounted(
    pod: dict[str, Any], sidecar: dict[str, Any]
) -> None:
    environment = variables(sidecar)
    assert environment["BECALM_RULES_DIR"] == mounts(sidecar)["becalm-rules"]
    assert environment["BECALM_DEFINITIONS_DIR"] == mounts(sidecar)["becalm-definitions"]
    for name in ("becalm-rules", "becalm-definitions"):
        (volume,) = [volume for volume in pod["volumes"] if volume["name"] == name]
        assert volume["configMap"] == {"name": name, "optional": True}


def test_an_overlay_generates_the_config_map_of_rules_and_the_pod_finds_it(tmp_path: Path) -> None:
    """As the overlays show it in a comment: the name gets a suffix, and the volume follows."""
    path = installation(tmp_path, "standard")
    text = (MANIFESTS / "overlays/standard/kustomization.yaml").read_text()
    shown = re.search(r"(?m)^# configMapGenerator:\n(?:#   .*\n)+", text)
    assert shown is not None
    with (path / "kustomization.yaml").open("a") as file:
        file.write(re.sub("(?m)^# ", "", shown[0]))
    for name in ("ours.yaml", "externalsecrets.yaml"):
        (path / name).write_text("{}\n")
    found = rendered("1.37.1", path)
    maps = {name for kind, name in found if kind == "ConfigMap"}
    pod = found["Deployment", "argocd-repo-server"]["spec"]["template"]["spec"]
    assert {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume} == maps
    assert len(maps) == 2


@pytest.mark.parametrize("version", sorted(KUBECTLS))
def test_lookups_are_granted_as_they_are_allowed(version: str, tmp_path: Path) -> None:
    """The component allows what the Role grants, and only becalm's own container gets the token that it is granted to."""
    found = rendered(version, installation(tmp_path, "standard", components=("lookup",)))
    pod = found["Deployment", "argocd-repo-server"]["spec"]["template"]["spec"]
    valid(found["Deployment", "argocd-repo-server"])
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    holders = [
        one["name"]
        for one in pod["containers"]
        if account in {mount["mountPath"] for mount in one["volumeMounts"]}
    ]
    assert holders == ["becalm"]
    given = variables(becalm_of(pod["containers"]))
    looking_ = looking.read(given)
    assert looking_.policy == "live"
    assert looking_.projects == ("shop",)
    granted = rendered(version, tmp_path / "manifests/lookup")
    role, binding = granted["Role", "becalm-lookup"], granted["RoleBinding", "becalm-lookup"]
    for item in (role, binding):
        valid(item)
    (rule,) = role["rules"]
    allowed = {(one.kind.rpartition("/")[2].lower() + "s", one.namespace) for one in looking_.allowed}
    assert {(name, role["metadata"]["namespace"]) for name in rule["resources"]} == allowed
    assert (rule["apiGroups"], rule["verbs"]) == ([""], ["get", "list"])
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "argocd-repo-server", "namespace": "argocd"}
    ]


def documented() -> set[str]:
    """The variables that `becalm generate --help` and the table in docs/install.md explain."""
    texts = [value for value in vars(options).values() if isinstance(value, str)]
    table = re.findall(r"(?m)^\| `(BECALM_\w+)` \|", (ROOT / "docs/install.md").read_text())
    return set(table) | {name for text in texts for name in re.findall(r"(?m)^  (BECALM_\w+) ", text)}


@pytest.mark.parametrize("path", sorted(str(path.relative_to(ROOT)) for path in MANIFESTS.rglob("*.yaml")))
def test_every_variable_in_the_manifests_is_one_that_becalm_explains(path: str) -> None:
    used = set(re.findall(r"\bBECALM_\w+", (ROOT / path).read_text()))
    assert used <= documented()


def test_plugin_yaml_is_what_cmp_server_accepts() -> None:
    """cmp-server ignores unknown keys, so a misspelt field would be silent: none may be there."""
    plugin = yaml.safe_load((ROOT / "plugin.yaml").read_text())
    announced = plugin["spec"].pop("parameters")
    assert announced["static"] == parameters.announcement()
    assert announced["dynamic"] == {"command": ["becalm", "parameters", "--dynamic"]}
    assert plugin == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ConfigManagementPlugin",
        "metadata": {"name": "becalm"},
        "spec": {"generate": {"command": ["becalm", "generate"]}},
    }
