"""Every hard pattern of public charts as a small chart of its own, with the manifests it must give.

A case is a directory below `tests/golden/charts`: the chart, and beside its files `arguments` (one
for each line, for `becalm render`), `pack` (subcharts that are packed first) and `expected.yaml`.
After a change that is meant: UPDATE_GOLDEN=1 make test, and read the difference.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import children
import pytest
import yaml

from becalm.manifests.compare import differences
from becalm.manifests.paths import render as render_path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
GOLDEN = ROOT / "tests" / "golden" / "charts"
CASES = sorted(path.name for path in GOLDEN.iterdir())
SEED = b"becalm-seed-v1:" + base64.urlsafe_b64encode(bytes(range(32))) + b"\n"
OURS = ("arguments", "pack", "expected.yaml")
MOST_STOCK_RENDERS = 40


def prepare(case: str, directory: Path) -> Path:
    """A copy of a case's chart, with its subcharts packed, and a seed beside it."""
    chart = shutil.copytree(GOLDEN / case, directory / "copy" / case, ignore=shutil.ignore_patterns(*OURS))
    for name in lines(case, "pack"):
        folder = chart / name
        with tarfile.open(f"{folder}-1.0.0.tgz", "w:gz") as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    entry = tarfile.TarInfo(str(path.relative_to(folder.parent)))
                    entry.size = path.stat().st_size
                    archive.addfile(entry, io.BytesIO(path.read_bytes()))
        shutil.rmtree(folder)
    seed = directory / "seed"
    seed.touch(mode=0o600)
    seed.write_bytes(SEED)
    return chart


def lines(case: str, name: str) -> list[str]:
    path = GOLDEN / case / name
    return path.read_text().splitlines() if path.exists() else []


def helm(version: str) -> Path:
    return TOOLS / f"helm-{version}" / "helm"


def becalm(case: str, chart: Path, version: str, hash_seed: int | None = None, seed: bytes = SEED) -> str:
    (chart.parents[1] / "seed").write_bytes(seed)
    argv = ["render", chart, "--app=app", "--namespace=space"]
    argv += [f"--seed={chart.parents[1] / 'seed'}", f"--helm={helm(version)}", *lines(case, "arguments")]
    env = {**os.environ, "TMPDIR": str(chart.parents[1])}
    if hash_seed is not None:
        env["PYTHONHASHSEED"] = str(hash_seed)
    done = children.run(argv, cwd=chart, env=env)
    assert done.returncode == 0, done.stderr
    # Of a lookup that finds nothing a warning tells; of anything else nothing is to be told.
    told = [line for line in done.stderr.splitlines() if not line.startswith("Warning: lookup: ")]
    assert told == []
    assert bool(done.stderr) == (case == "look-up-or-draw")
    return done.stdout


def stock(case: str, chart: Path, version: str) -> str:
    arguments = [item for item in lines(case, "arguments") if not item.startswith(("--instant", "--at"))]
    argv = [helm(version), "template", "app", chart, "--namespace=space", "--include-crds", *arguments]
    return subprocess.run(argv, cwd=chart, capture_output=True, text=True, check=True).stdout


def fields(first: str, second: str) -> set[tuple[object, str]]:
    return {(d.object or d.where, render_path(d.path)) for d in differences(first, second, "space")}


@pytest.mark.parametrize("case", CASES)
def test_the_bytes_are_the_expected_ones_in_every_process(case: str, tmp_path: Path) -> None:
    chart = prepare(case, tmp_path / "one")
    output = becalm(case, chart, "4.1.4")
    expected = GOLDEN / case / "expected.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        expected.write_bytes(output.encode())
    assert output.encode() == expected.read_bytes()
    elsewhere = prepare(case, tmp_path / "another place")
    assert becalm(case, elsewhere, "4.1.4", hash_seed=2) == output
    left = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert left == ["copy", "seed"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", ["3.17.3", "4.3.1"])
def test_the_objects_are_the_same_with_every_helm(case: str, version: str, tmp_path: Path) -> None:
    output = becalm(case, prepare(case, tmp_path), version)
    expected = (GOLDEN / case / "expected.yaml").read_text()
    assert list(filter(None, yaml.safe_load_all(output))) == list(filter(None, yaml.safe_load_all(expected)))


@pytest.mark.parametrize("case", CASES)
def test_only_what_stock_helm_renders_differently_each_time_differs(case: str, tmp_path: Path) -> None:
    chart = prepare(case, tmp_path)
    first = stock(case, chart, "4.1.4")
    changed = fields(first, (GOLDEN / case / "expected.yaml").read_text())
    for _ in range(MOST_STOCK_RENDERS):
        if not changed:
            break
        changed -= fields(first, stock(case, chart, "4.1.4"))
    if case == "time":  # the instant is another than now, and a year is always the same
        changed = {field for field in changed if field[1] not in TIMES}
    assert changed == set()


def names(output: str) -> set[str]:
    return {obj["metadata"]["name"] for obj in yaml.safe_load_all(output) if obj}


@pytest.mark.parametrize("case", CASES)
def test_what_stock_helm_draws_at_random_follows_the_seed(case: str, tmp_path: Path) -> None:
    """Nothing provisional is left in the output: who knows the chart only knows no value."""
    chart = prepare(case, tmp_path)
    first = stock(case, chart, "4.1.4")
    random = fields(first, stock(case, chart, "4.1.4"))
    rendered = (GOLDEN / case / "expected.yaml").read_text()
    if case == "names":  # objects whose names are drawn cannot be compared
        other = becalm(case, chart, "4.1.4", seed=bytes(range(1, 33)))
        stable = names(first) & names(stock(case, chart, "4.1.4"))
        assert names(rendered) & names(other) == stable
        return
    for number in range(MOST_STOCK_RENDERS):
        if not random:
            break
        random -= fields(rendered, becalm(case, chart, "4.1.4", seed=bytes(range(number, number + 32))))
        if random and number > 2:
            # Times and orders do not follow the seed; that they differ in helm is the clock's or chance's work.
            random -= {field for field in random if field[1] in TIMES or case in ("orders", "time")}
    assert random == set()


TIMES = {
    f"data.{key}" for key in ("year", "zone", "string", "default", "ago", "round", "field", "unix", "later")
} | {"metadata.annotations.rollme"}


@pytest.mark.parametrize("case", CASES)
def test_values_that_are_drawn_apart_differ(case: str) -> None:
    """No two fields of one object share a drawn value, but where the chart repeats one on purpose."""
    seen: dict[str, str] = {}
    for obj in filter(None, yaml.safe_load_all((GOLDEN / case / "expected.yaml").read_text())):
        for section in ("data", "stringData"):
            for key, value in (obj.get(section) or {}).items():
                if not isinstance(value, str) or len(value) < 9 or case in REPEATING:
                    continue
                place = f"{obj['kind']}/{obj['metadata']['name']} {key}"
                assert seen.setdefault(value, place) == place


#: memoised prints one value twice on purpose, time and orders draw (nearly) nothing.
REPEATING = {"memoised", "time", "orders", "not-reached", "our-own-markers"}
