"""What the default functions of Kubernetes' scheme fill in, for the kinds that charts render most.

Argo CD runs these functions on both sides of a comparison (gitops-engine, pkg/diff, `applyPatch`), so that a
default is no drift even inside a list that is compared whole. The values are those of k8s.io/kubernetes,
`pkg/apis/*/v1/defaults.go` and the `+default` markers. Not in it, since no such function
sets them: `apiVersion` and `kind` of volumeClaimTemplates (conversion), `resourceFieldRef.divisor` and `creationTimestamp` (serialisation), and all that admission sets.

Left out: rounding of resources to thousandths, resources of whole pods, ReplicationController, `resource.k8s.io`
(not in Argo CD's scheme), versions of APIs that Kubernetes no longer serves.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from becalm.normalise import builtin

_RBAC = "rbac.authorization.k8s.io"
_MODE = {"defaultMode": 0o644}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_VOLUME_MODE = {"volumeMode": "Filesystem"}
_SELECTING: dict[str, Any] = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_WEBHOOK = {"failurePolicy": "Fail", "timeoutSeconds": 10, **_SELECTING}
_ROLE_REF = {"roleRef": {"apiGroup": _RBAC}}

FIELDS: dict[str, dict[str, Any]] = {
    "core/v1.Container": _CONTAINER,
    "core/v1.EphemeralContainer": _CONTAINER,
    "core/v1.ContainerPort": {"protocol": "TCP"},
    "core/v1.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "core/v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core/v1.GRPCAction": {"service": ""},
    "core/v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    "core/v1.ConfigMapVolumeSource": _MODE,
    "core/v1.SecretVolumeSource": _MODE,
    "core/v1.DownwardAPIVolumeSource": _MODE,
    "core/v1.ProjectedVolumeSource": _MODE,
    "core/v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core/v1.HostPathVolumeSource": {"type": ""},
    "core/v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core/v1.PersistentVolumeClaim": {"status": {"phase": "Pending"}},
    "core/v1.PersistentVolumeClaimSpec": _VOLUME_MODE,
    "core/v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", **_VOLUME_MODE},
    "core/v1.Secret": {"type": "Opaque"},
    "core/v1.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "core/v1.ServicePort": {"protocol": "TCP"},
    "apps/v1.DeploymentSpec": {
        "replicas": 1,
        "strategy": {},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "apps/v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "apps/v1.DaemonSetSpec": {"updateStrategy": {}, "revisionHistoryLimit": 10},
    "apps/v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps/v1.StatefulSetSpec": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {},
    },
    "apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    },
    "apps/v1.RollingUpdateStatefulSetStrategy": {"partition": 0},
    "apps/v1.ReplicaSetSpec": {"replicas": 1},
    "batch/v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "batch/v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "autoscaling/v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "autoscaling/v2.HorizontalPodAutoscalerSpec": {
        "minReplicas": 1,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ],
    },
    "autoscaling/v2.HorizontalPodAutoscalerBehavior": {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ],
        },
        "scaleDown": {
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        },
    },
    "networking/v1.NetworkPolicyPort": {"protocol": "TCP"},
    "networking/v1.IngressClassParametersReference": {"scope": "Cluster"},
    "rbac/v1.RoleBinding": _ROLE_REF,
    "rbac/v1.ClusterRoleBinding": _ROLE_REF,
    "admissionregistration/v1.ValidatingWebhook": _WEBHOOK,
    "admissionregistration/v1.MutatingWebhook": {"reinvocationPolicy": "Never", **_WEBHOOK},
    "admissionregistration/v1.RuleWithOperations": {"scope": "*"},
    "admissionregistration/v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration/v1.ServiceReference": {"port": 443},
    "admissionregistration/v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration/v1.MatchResources": _SELECTING,
    "storage/v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "storage/v1.CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    },
    "scheduling/v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "discovery/v1.EndpointPort": {"name": "", "protocol": "TCP"},
}
"""The defaults of each struct's fields; those of a map are filled into the map that is there."""


def apply(obj: dict[str, Any], kube_version: str = "") -> dict[str, Any]:
    """A copy of an object of Kubernetes' own kinds with the defaults in it; of any other kind, a plain copy."""
    table = builtin.types(kube_version)
    obj = deepcopy(obj)
    _into(obj, table.of(obj), table)
    return obj


fill = apply


def _into(value: Any, written: str, table: builtin.Types) -> None:
    """Fill a struct first and then what it holds, so that defaults reach structs that are defaults themselves."""
    written = written.removeprefix("*")
    if written.startswith("[]") and isinstance(value, list):
        for one in value:
            _into(one, written[2:], table)
    elif written.startswith("{}") and isinstance(value, dict):
        for one in value.values():
            _into(one, written[2:], table)
    elif isinstance(value, dict) and (struct := table.struct(written)) is not None:
        _fill(value, {**FIELDS.get(written, {}), **COMPUTED.get(written, _none)(value)}, struct)
        for key, one in value.items():
            if key in struct:
                _into(one, struct[key].type, table)


def _fill(value: dict[str, Any], defaults: dict[str, Any], struct: builtin.Struct | None) -> None:
    """Fill what Go sees as unset: a pointer that is nil, any other field that has its zero value."""
    for key, default in defaults.items():
        if struct is not None and key not in struct:
            continue
        found = value.get(key)
        is_pointer = struct is not None and struct[key].type.startswith("*")
        if found is None or (not is_pointer and found in ("", 0, []) and found is not False):
            value[key] = deepcopy(default)
        elif isinstance(found, dict) and isinstance(default, dict):
            _fill(found, default, None)


def _none(_: dict[str, Any]) -> dict[str, Any]:
    return {}


def _pull_policy(container: dict[str, Any]) -> dict[str, Any]:
    name, _, digest = str(container.get("image") or "").partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    is_latest = tag == "latest" or not (tag or digest)
    return {**_CONTAINER, "imagePullPolicy": "Always" if is_latest else "IfNotPresent"}


def _volume(volume: dict[str, Any]) -> dict[str, Any]:
    return {} if volume.keys() - {"name"} else {"emptyDir": {}}


def _pod(pod: dict[str, Any]) -> dict[str, Any]:
    """What only a Pod gets and no template of one: requests like limits, host ports like ports."""
    spec = pod.get("spec") or {}
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        resources = container.get("resources") or {}
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
        if spec.get("hostNetwork"):
            for port in container.get("ports") or []:
                port["hostPort"] = port.get("hostPort") or port.get("containerPort")
    return {"spec": {"enableServiceLinks": True}}


def _rolling(**defaults: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The limits of a rolling update, where the strategy is one."""

    def strategy(value: dict[str, Any]) -> dict[str, Any]:
        is_rolling = value.get("type") in (None, "", "RollingUpdate")
        return {"rollingUpdate": defaults} if is_rolling else {}

    return strategy


def _stateful_update(value: dict[str, Any]) -> dict[str, Any]:
    """Unlike the other strategies, one whose type is given gets no `rollingUpdate`."""
    return {} if value.get("type") else {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}


def _service(spec: dict[str, Any]) -> dict[str, Any]:
    kind = spec.get("type") or "ClusterIP"
    found: dict[str, Any] = {}
    if spec.get("sessionAffinity") == "ClientIP":
        found["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    if kind != "ExternalName":
        found["internalTrafficPolicy"] = "Cluster"
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        found["externalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer":
        found["allocateLoadBalancerNodePorts"] = True
    return found


def _job(spec: dict[str, Any]) -> dict[str, Any]:
    counts = {"parallelism": 1} if spec.get("completions") else {"completions": 1, "parallelism": 1}
    return {
        **({} if spec.get("parallelism") else counts),
        "backoffLimit": 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
        "manualSelector": False,
    }


def _job_object(job: dict[str, Any]) -> dict[str, Any]:
    """A Job's own fields, which a template of one in a CronJob does not get, and its template's labels."""
    spec = job.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    own = {} if (job.get("metadata") or {}).get("labels") or not labels else {"metadata": {"labels": labels}}
    return {"spec": _job(spec), **own}


def _namespace(namespace: dict[str, Any]) -> dict[str, Any]:
    name = (namespace.get("metadata") or {}).get("name")
    return {"metadata": {"labels": {"kubernetes.io/metadata.name": name}}} if name else {}


def _limits(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type") != "Container":
        return {}
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    return {key: value for key, value in (("default", default), ("defaultRequest", requests)) if value}


def _policy_types(spec: dict[str, Any]) -> dict[str, Any]:
    return {"policyTypes": ["Ingress", *(["Egress"] if spec.get("egress") else [])]}


COMPUTED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "core/v1.Container": _pull_policy,
    "core/v1.EphemeralContainer": _pull_policy,
    "core/v1.Volume": _volume,
    "core/v1.Pod": _pod,
    "core/v1.Namespace": _namespace,
    "core/v1.LimitRangeItem": _limits,
    "core/v1.ServiceSpec": _service,
    "core/v1.ServicePort": lambda port: {"targetPort": port.get("port")},
    "apps/v1.DeploymentStrategy": _rolling(maxUnavailable="25%", maxSurge="25%"),
    "apps/v1.DaemonSetUpdateStrategy": _rolling(maxUnavailable=1, maxSurge=0),
    "apps/v1.StatefulSetUpdateStrategy": _stateful_update,
    "batch/v1.Job": _job_object,
    "networking/v1.NetworkPolicySpec": _policy_types,
    "rbac/v1.Subject": lambda one: {"apiGroup": _RBAC} if one.get("kind") in ("User", "Group") else {},
}
"""Defaults that depend on other fields of the struct."""
