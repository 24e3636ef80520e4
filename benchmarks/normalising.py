"""Measures normalisation alone, in this process, on a render of the size of a large monitoring chart.

One output needs no change at all, in the other most objects outside of the definitions need one. The output is
written here: definitions of 400 kB, custom resources of their kinds, dashboards as ConfigMaps, rules, workloads.
"""

from __future__ import annotations

import statistics
import time

from becalm.normalise import packs, policy
from becalm.normalise.engine import normalise
from becalm.normalise.rendered import Cluster

CRDS, DASHBOARDS, WORKLOADS = 10, 28, 60


def crd(number: int) -> str:
    """A CustomResourceDefinition of about 400 kB, with a default in a list."""
    fields = "\n".join(
        f"                    field{i}:\n                      type: string\n                      description: |-\n"
        f"                        What the field {i} of resource {number} is for, in a sentence or two, as\n"
        "                        generators of definitions copy it from the comments of Go programs.\n"
        for i in range(1500)
    )
    return f"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.18.0
  name: things{number}.monitoring.example.com
spec:
  group: monitoring.example.com
  names:
    kind: Thing{number}
    plural: things{number}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              endpoints:
                type: array
                items:
                  type: object
                  properties:
                    action:
                      type: string
                      default: replace
{fields}"""


def dashboard(number: int) -> str:
    """A ConfigMap with 30 kB of JSON."""
    panels = ",".join(
        f'{{"id": {i}, "title": "Panel {i}", "expr": "sum(rate(a_{i}[5m]))"}}' for i in range(500)
    )
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "
        f'dashboard-{number}\n  labels:\n    app: grafana\ndata:\n  board.json: |-\n    {{"panels": [{panels}]}}\n'
    )  # fmt: skip


def workload(number: int, replicas: str) -> str:
    """A Deployment as charts print it."""
    return f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
  labels:
    app.kubernetes.io/name: app
spec:
  replicas: {replicas}
  selector:
    matchLabels:
      app.kubernetes.io/name: app
  template:
    metadata:
      labels:
        app.kubernetes.io/name: app
    spec:
      serviceAccountName: app-{number}
      containers:
      - name: app
        image: "example.com/app:1.2.3"
        args:
        - --listen=:8080
        env:
        - name: POD
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        ports:
        - name: http
          containerPort: 8080
        resources:
          limits:
            cpu: 500m
            memory: 512Mi
"""


def small(number: int, address: str) -> str:
    """A Service, a ServiceAccount, a RoleBinding and a custom resource."""
    return f"""apiVersion: v1
kind: Service
metadata:
  name: app-{number}
spec:
  {address}
  ports:
  - name: http
    port: 80
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: app-{number}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: app-{number}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: app
subjects:
- kind: ServiceAccount
  name: app-{number}
  namespace: bench
"""


def custom(number: int) -> str:
    """A custom resource of one of the definitions."""
    return (
        f"apiVersion: monitoring.example.com/v1\nkind: Thing{number % 3}\nmetadata:\n  name: thing-{number}\n"
        f"spec:\n  endpoints:\n  - field1: a\n"
    )


def output(*, needs_changes: bool) -> str:
    """The render."""
    address = 'clusterIP: ""' if needs_changes else "type: ClusterIP"
    replicas = "null" if needs_changes else "2"
    documents = [crd(i) for i in range(CRDS)] + [dashboard(i) for i in range(DASHBOARDS)]
    documents += [workload(i, replicas) for i in range(WORKLOADS)] + [
        small(i, address) for i in range(WORKLOADS)
    ]
    documents += [custom(i) for i in range(WORKLOADS)] if needs_changes else []
    return "".join(f"---\n# Source: bench/templates/a.yaml\n{text}" for text in documents)


def measure(count: int) -> None:
    """Print medians."""
    start = time.perf_counter()
    catalogue = packs.built_in()
    loaded = time.perf_counter() - start
    print(f"the catalogue is loaded in {loaded * 1000:.0f} ms")
    selection = policy.select(catalogue)
    cluster = Cluster(namespace="bench", kube_version="1.34")
    for title, needs_changes in (("no object needs a change", False), ("most objects need one", True)):
        text = output(needs_changes=needs_changes)
        times = []
        for _ in range(count):
            start = time.perf_counter()
            done = normalise(text, selection, cluster)
            times.append(time.perf_counter() - start)
        print(
            f"normalising {len(text) / 1e6:.1f} MB where {title}: median {statistics.median(times) * 1000:.0f} ms,"
            f" {len(done.changes)} changes"
        )


if __name__ == "__main__":
    measure(11)
