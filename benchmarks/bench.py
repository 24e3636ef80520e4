"""Measures becalm beside stock helm, in pairs, in one run: `make bench`.

Each pair renders one chart with stock helm and with becalm, one right after the other, so that what
else the machine does hits both. Charts are written here and rendered warm. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import normalising

from becalm.derive import keys, seed
from becalm.derive.labels import Application
from becalm.pipeline import render
from becalm.request import Request
from becalm.sources.helm import HelmOptions

ROOT = Path(__file__).resolve().parents[1]
SMALL, LARGE, DRAWS, CERTIFICATES = "small", "large", "draws", "certs"


def write(directory: Path, files: dict[str, str]) -> Path:
    """Write a chart."""
    for name, text in {
        "Chart.yaml": f"apiVersion: v2\nname: {directory.name}\nversion: 1.0.0\n",
        **files,
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


HELPERS = """{{- define "app.name" -}}{{ .Release.Name }}-{{ .Chart.Name }}{{- end -}}
{{- define "app.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "app.name" . }}-NUMBER
  labels: {{- include "app.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas | default 2 }}
  selector:
    matchLabels: {{- include "app.labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "app.labels" . | nindent 8 }}
    spec:
      containers:
        - name: app
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
          {{- with .Values.env }}
          env: {{- toYaml . | nindent 12 }}
          {{- end }}
"""
VALUES = "image: {repository: example/app, tag: 1.2.3}\nenv: [{name: A, value: b}]\nreplicas: 2\n"
OBJECTS = """apiVersion: v1
kind: Secret
metadata:
  name: {{ include "app.name" . }}-NUMBER
data:
  password: {{ include "app.password" . | b64enc }}
  key: {{ randAlphaNum 32 | b64enc }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "app.name" . }}-NUMBER
  annotations: {id: {{ uuidv4 }}}
"""
TLS = """{{- $ca := genCA "bench" 3650 }}
{{- range list "a" "b" "c" }}
{{- $cert := genSignedCert . nil (list .) 365 $ca }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ . }}
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
  auth: {{ htpasswd "admin" (randAlphaNum 20) | b64enc }}
{{- end }}
"""
HELPER = """{{- define "app.password" -}}
{{- if .Values.password }}{{ .Values.password }}{{ else }}{{ randAlphaNum 16 }}{{ end -}}
{{- end -}}
"""


def crd(number: int) -> str:
    """A CustomResourceDefinition of about 25 kB."""
    fields = "\n".join(
        f"                field{i}:\n                  type: string\n"
        f"                  description: What the field {i} of resource {number} is for, in a sentence."
        for i in range(200)
    )
    return (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        f"metadata: {{name: things{number}.example.com}}\nspec:\n  group: example.com\n"
        f"  names: {{kind: Thing{number}, plural: things{number}}}\n  scope: Namespaced\n  versions:\n"
        "    - name: v1\n      served: true\n      storage: true\n      schema:\n        openAPIV3Schema:\n"
        "          type: object\n          properties:\n            spec:\n              type: object\n"
        f"              properties:\n{fields}\n"
    )


def charts(directory: Path) -> dict[str, Path]:
    """The charts of the benchmark."""

    def deployments(count: int) -> dict[str, str]:
        return {
            f"templates/deployment-{i:03}.yaml": DEPLOYMENT.replace("NUMBER", str(i)) for i in range(count)
        }

    base = {"values.yaml": VALUES, "templates/_helpers.tpl": HELPERS}
    crds = {f"crds/thing-{i:03}.yaml": crd(i) for i in range(120)}
    secrets = {f"templates/secret-{i}.yaml": OBJECTS.replace("NUMBER", str(i)) for i in range(5)}
    return {
        SMALL: write(directory / SMALL, base | deployments(3)),
        LARGE: write(directory / LARGE, base | deployments(300) | crds),
        DRAWS: write(
            directory / DRAWS, base | deployments(12) | secrets | {"templates/_password.tpl": HELPER}
        ),
        CERTIFICATES: write(directory / CERTIFICATES, base | deployments(12) | {"templates/tls.yaml": TLS}),
    }


def timed(work: Callable[[], object]) -> float:
    """Seconds of wall time."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def child(argv: list[str]) -> None:
    """Run a child to its end, and fail when it fails."""
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--helm", default=str(ROOT / ".tools/helm-4.1.4/helm"), help="the helm binary")
    parser.add_argument("--pairs", type=int, default=11, help="pairs for each chart (default: 11)")
    options = parser.parse_args()
    version = subprocess.run([options.helm, "version", "--short"], check=True, capture_output=True, text=True)
    print(f"helm {version.stdout.strip()}, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs, "
          f"medians of {options.pairs} pairs, milliseconds")  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        seed_file = directory / "seed"
        seed_file.touch(mode=0o600)
        seed_file.write_bytes(seed.new())
        print(
            f"{'chart':<8}{'files':>7}{'MB':>7}{'runs':>6}{'helm':>8}{'becalm':>8}{'ratio':>7}{'command':>9}"
        )
        for chart, path in charts(directory).items():
            _chart(chart, path, seed_file, options.helm, options.pairs)
        _keys(options.pairs)
        normalising.measure(options.pairs)
        start = statistics.median(
            timed(lambda: child([sys.executable, "-c", "pass"])) for _ in range(options.pairs)
        )
        command = statistics.median(
            timed(lambda: child([sys.executable, "-m", "becalm", "--version"])) for _ in range(options.pairs)
        )
    print(
        f"the interpreter alone starts in {start * 1000:.0f} ms, `becalm --version` takes {command * 1000:.0f} ms"
    )
    print("becalm: in this process; command: `becalm render` as a process of its own")


def _keys(count: int) -> None:
    """How long keys take to derive, each another one; and a certificate chart without a cache."""
    kinds = {"RSA 2048": lambda key: keys.rsa_key(key, 2048), "RSA 4096": lambda key: keys.rsa_key(key, 4096),
             "DSA 2048": keys.dsa_key, "ECDSA P-256": keys.ecdsa_key, "Ed25519": keys.ed25519_key}  # fmt: skip
    for kind, derive in kinds.items():
        times = [timed(partial(derive, number.to_bytes(32, "big"))) * 1000 for number in range(2 * count)]
        print(
            f"{kind:<12} median {statistics.median(times):7.1f} ms, longest {max(times):7.1f} ms, of {len(times)}"
        )


def _chart(name: str, path: Path, seed_file: Path, helm: str, pairs: int) -> None:
    request = Request(
        chart=path,
        root=None,
        options=HelmOptions(release="bench", namespace="bench"),
        application=Application(name="bench", project="default", namespace="bench", cluster=""),
        seed=seed.parse(seed_file.read_bytes(), where="seed"),
        helm=helm,
        at=0,
        path=os.environ["PATH"],
        cache=seed_file.parent / "cache",
    )
    command = [sys.executable, "-m", "becalm", "render", str(path), "--app=bench", "--namespace=bench"]
    command += [f"--seed={seed_file}", f"--helm={helm}"]
    os.environ["BECALM_CACHE_DIR"] = str(seed_file.parent / "cache")
    stock = [helm, "template", "bench", str(path), "--namespace=bench", "--include-crds"]
    runs = render(request).runs
    child(stock)
    seconds: dict[str, list[float]] = {"helm": [], "becalm": [], "command": []}
    for _ in range(pairs):
        seconds["helm"].append(timed(lambda: child(stock)))
        seconds["becalm"].append(timed(lambda: render(request)))
        seconds["command"].append(timed(lambda: child(command)))
    files = [file for file in path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files) / 1e6
    middle = {key: statistics.median(times) * 1000 for key, times in seconds.items()}
    ratio = statistics.median(b / h for h, b in zip(seconds["helm"], seconds["becalm"], strict=True))
    print(
        f"{name:<8}{len(files):>7}{size:>7.1f}{runs:>6}"
        f"{middle['helm']:>8.0f}{middle['becalm']:>8.0f}{ratio:>7.2f}{middle['command']:>9.0f}"
    )


if __name__ == "__main__":
    main()
