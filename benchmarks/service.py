"""The warm service and its cache beside stock helm, in pairs, in one run: `make bench`.

Each pair runs stock `helm template` and `becalm generate`, as Argo CD starts it, one right after the other. Printed are
medians and ratios; nothing is asserted. becalm is the command of the image, built with `cc`; where there is none it is the one
in Python that `becalm.launcher` writes, which is said.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
APPS = 300

CONFIG = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-NUMBER
  labels:
    app: {{ .Chart.Name }}
data:
  {{- range $i, $e := until 40 }}
  key-{{ $i }}: {{ printf "%s-%d" $.Values.text $i | sha256sum | quote }}
  {{- end }}
"""
DRAW = "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-NUMBER}\nstringData: {a: {{ randAlphaNum 20 }}, b: {{ uuidv4 }}}\n"


def chart(directory: Path, objects: int, draws: int = 0) -> Path:
    """Write a chart of so many ConfigMaps and Secrets."""
    (directory / "templates").mkdir(parents=True)
    (directory / "Chart.yaml").write_text(f"apiVersion: v2\nname: {directory.name}\nversion: 1.0.0\n")
    (directory / "values.yaml").write_text("text: some\n")
    for number in range(objects):
        (directory / f"templates/c{number}.yaml").write_text(CONFIG.replace("NUMBER", str(number)))
    for number in range(draws):
        (directory / f"templates/s{number}.yaml").write_text(DRAW.replace("NUMBER", f"s{number}"))
    return directory


def timed(run: Callable[[], object]) -> float:
    """Seconds that a function takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def command(work: Path) -> str:
    """The path of a `becalm` as in the image."""
    python, native = work / "becalm-python", work / "becalm"
    subprocess.run([sys.executable, "-m", "becalm.launcher", str(python)], check=True)
    compiler = shutil.which("cc")
    if compiler is None:
        print("there is no cc, so becalm is the command in Python, which takes about 12 ms longer")
        return str(python)
    source, define = ROOT / "image" / "becalm.c", f'-DPYTHON_COMMAND="{python}"'
    subprocess.run([compiler, "-O2", "-static", define, str(source), "-o", str(native)], check=True)
    return str(native)


class Measured:
    """Stock helm, and becalm with a running service."""

    def __init__(self, helm: str, work: Path) -> None:
        self.helm = helm
        self.work = work
        seed = work / "seed"
        seed.touch(mode=0o600)
        seed.write_bytes(bytes(range(32)))
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(work), "BECALM_HELM": helm, "BECALM_SEED_FILE": str(seed), "KUBE_VERSION": "1.34.1",
            "BECALM_SOCKET": str(work / "run" / "render.sock"), "BECALM_CACHE_DIR": str(work / "cache"), "BECALM_WEB_ADDRESS": "off",
            "ARGOCD_APP_PROJECT_NAME": "default", "ARGOCD_APP_NAMESPACE": "shop",
        }  # fmt: skip
        self.becalm = command(work)

    @contextlib.contextmanager
    def serving(self) -> Iterator[int]:
        """The process id of a service that is ready."""
        log = self.work / "log"
        with log.open("wb") as stderr:
            service = subprocess.Popen([self.becalm, "serve"], env=self.env, stderr=stderr)
        try:
            while b"ready" not in log.read_bytes():
                time.sleep(0.02)
            yield service.pid
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(30)

    def stock(self, directory: Path) -> None:
        """As Argo CD's own source."""
        argv = [
            self.helm,
            "template",
            ".",
            "--name-template=app",
            "--namespace=shop",
            "--include-crds",
            "--kube-version=1.34.1",
        ]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.work)}
        subprocess.run(argv, cwd=directory, env=env, stdout=subprocess.DEVNULL, check=True)

    def generate(self, directory: Path, **variables: str) -> None:
        """As argocd-cmp-server runs it."""
        env = {**self.env, "ARGOCD_APP_NAME": "app", **variables}
        subprocess.run(
            [self.becalm, "generate"], cwd=directory, env=env, stdout=subprocess.DEVNULL, check=True
        )

    @staticmethod
    def bare() -> None:
        """What no program in Python can do without: its start and its end."""
        subprocess.run([sys.executable, "-IS", "-c", "pass"], check=True)

    def pairs(self, directory: Path, turns: int, **variables: str) -> tuple[float, float]:
        """Medians of stock and becalm."""
        self.generate(directory, **variables)
        self.stock(directory)
        found = [
            (timed(lambda: self.stock(directory)), timed(lambda: self.generate(directory, **variables)))
            for _ in range(turns)
        ]
        return statistics.median(one for one, _ in found), statistics.median(one for _, one in found)


def resident(pid: int) -> int:
    """Memory of a process in MiB."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) // 1024


def row(name: str, stock: float, ours: float) -> None:
    """One line of the table."""
    print(f"{name:52} {1000 * stock:9.0f} ms {1000 * ours:9.0f} ms {ours / stock:8.2f}", flush=True)


def monorepo(measured: Measured, turns: int) -> None:
    """All apps of a repository after a commit that changes one of them."""
    top = measured.work / "monorepo"
    apps = [chart(top / f"app-{number}", objects=6, draws=2) for number in range(APPS)]
    for app in apps:
        measured.generate(app, ARGOCD_APP_NAME=app.name)

    def stock_of_all() -> None:
        for app in apps:
            measured.stock(app)

    stock = timed(stock_of_all)
    times = []

    def all_of(revision: str) -> None:
        for app in apps:
            measured.generate(app, ARGOCD_APP_NAME=app.name, ARGOCD_APP_REVISION=revision)

    for turn in range(turns):
        (apps[turn] / "values.yaml").write_text(f"text: changed-{turn}\n")
        times.append(timed(partial(all_of, str(turn))))
    row(f"{APPS} apps, one of them changed", stock, statistics.median(times))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--helm", default=str(ROOT / ".tools" / "helm-4.1.4" / "helm"), help="stock helm")
    parser.add_argument("--turns", type=int, default=9, help="pairs for each line")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="becalm-bench-") as name:
        measured = Measured(arguments.helm, Path(name))
        small = chart(Path(name) / "small", objects=10)
        large = chart(Path(name) / "large", objects=900)
        drawing = chart(Path(name) / "drawing", objects=300, draws=60)
        off = {"BECALM_CACHE_DIR": "off"}
        with measured.serving() as pid:
            before = resident(pid)
            print(f"{'':52} {'helm':>12} {'becalm':>12} {'ratio':>8}")
            for what, directory in (("small", small), ("large", large), ("drawing", drawing)):
                row(f"{what}: cache hit", *measured.pairs(directory, arguments.turns))
                row(f"{what}: miss", *measured.pairs(directory, arguments.turns, **off))
                row(
                    f"{what}: miss, no rules",
                    *measured.pairs(directory, arguments.turns, BECALM_RULES="-all", **off),
                )
            bare = statistics.median(timed(measured.bare) for _ in range(5 * arguments.turns))
            print(f"{'Python that does nothing':52} {'':12} {1000 * bare:9.0f} ms", flush=True)
            monorepo(measured, 3)
            print(f"memory of the service: {before} MiB at the start, {resident(pid)} MiB at the end")


if __name__ == "__main__":
    main()
