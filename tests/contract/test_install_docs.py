"""What the pages about installing say is so: paths, commands, variables, and the tutorial's chart."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from becalm import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "docs/install.md",
    "docs/tutorial.md",
    "docs/app-teams.md",
    "docs/explanation.md",
    "manifests/README.md",
    "README.md",
)
TEXTS = sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
HELM = ROOT / ".tools/helm-4.1.4/helm"


def blocks(page: str, kind: str) -> list[str]:
    text = (ROOT / page).read_text()
    return re.findall(rf"(?ms)^ *```{kind}\n(.*?)^ *```$", text)


@pytest.mark.parametrize("page", [*TEXTS, "manifests/README.md"])
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text()):
        if not target.startswith("https://"):
            assert ((ROOT / page).parent / target).exists(), target


@pytest.mark.parametrize("page", TEXTS)
def test_no_merge_is_left_half_done(page):
    assert not re.findall(r"(?m)^(?:<{7}|>{7}|={7})(?: |$)", (ROOT / page).read_text())


def test_the_readme_leads_to_every_page():
    text = (ROOT / "README.md").read_text()
    assert [page for page in TEXTS if page != "README.md" and f"]({page})" not in text] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_manifest_that_is_named_is_there(page):
    for path in re.findall(r"\bmanifests/[\w./-]*\w", (ROOT / page).read_text()):
        assert (ROOT / path).exists() or path == "manifests/overlays/mine", path


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_becalm_is_one(page):
    for block in blocks(page, "console"):
        for line in block.replace("\\\n", " ").splitlines():
            for command in re.findall(r"(?:^\$ |&& |--entrypoint )(becalm .*?)(?: &&|>|#|;|$)", line.strip()):
                words = [word for word in shlex.split(command) if not word.startswith("example/becalm:")]
                if words[1:] != ["--version"]:
                    assert cli._parser().parse_args(words[1:]), command


@pytest.mark.parametrize("page", ["docs/tutorial.md", "docs/app-teams.md"])
def test_every_yaml_is_yaml(page):
    for block in blocks(page, "yaml"):
        if "{{" not in block:
            assert list(yaml.safe_load_all(block))


def test_the_settings_of_the_sidecar_are_in_the_table():
    table = re.findall(r"(?m)^\| `(BECALM_\w+)` \|", (ROOT / "docs/install.md").read_text())
    names = "WEB_ADDRESS WEB_PAGE WEB_NAMES CONCURRENCY CHILD_BYTES QUEUE DEADLINE CACHE_DIR CACHE_BYTES REDIS_URL REDIS_PASSWORD UNPINNED_SECONDS SOCKET LOG"
    assert table == [f"BECALM_{name}" for name in names.split()]


def test_the_figures_of_the_page_are_those_of_the_manifests():
    text = (ROOT / "docs/install.md").read_text()
    patch = (ROOT / "manifests/base/repo-server-patch.yaml").read_text()
    pod = yaml.safe_load(patch)["spec"]["template"]["spec"]
    limits = {
        volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"] if "emptyDir" in volume
    }
    assert f"**`/tmp`** ({limits['becalm-tmp'].replace('Gi', ' GiB')})" in text
    assert f"**Cache** ({limits['becalm-cache'].replace('Gi', ' GiB')}, of which 1 is used)" in text
    (container,) = pod["containers"]
    assert (
        f"{container['resources']['limits']['memory'].replace('Gi', ' GiB')} for `BECALM_CONCURRENCY=4`"
        in text
    )


@pytest.fixture
def chart(tmp_path):
    """The tutorial's chart, as a reader makes it."""
    if not HELM.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{HELM} is absent: run `make tools`")
        pytest.skip(f"{HELM} is absent: run `make tools`")
    (tmp_path / "hello/templates").mkdir(parents=True)
    metadata, templates = blocks("docs/tutorial.md", "yaml")[:2]
    (tmp_path / "hello/Chart.yaml").write_text(metadata)
    (tmp_path / "hello/templates/all.yaml").write_text(templates)
    return tmp_path / "hello"


def output(argv: list[str]) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout


def test_the_tutorials_chart_drifts_with_helm_and_not_with_becalm(chart, tmp_path, capsysbinary):
    stock = {output([str(HELM), "template", "plain", str(chart)]) for _ in range(2)}
    assert len(stock) == 2
    seed = tmp_path / "seed"
    assert cli.main(["seed", "new", str(seed)]) == 0
    capsysbinary.readouterr()
    render = ["--app", "calm", "--namespace", "calm", "--seed", str(seed), "--helm", str(HELM)]
    found = []
    for more in ([], [], ["--item-epoch", "Secret/calm/password=2"]):
        assert cli.main(["render", str(chart), *render, *more]) == 0
        found.append(capsysbinary.readouterr().out.decode())
    assert found[0] == found[1]
    # The item that the tutorial gives another epoch: one line changes.
    changed = [
        pair for pair in zip(found[0].splitlines(), found[2].splitlines(), strict=True) if pair[0] != pair[1]
    ]
    assert len(changed) == 1
    assert changed[0][0].strip().startswith("password: ")


def test_no_page_holds_marks_of_a_merge():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "manifests").rglob("*.md")]
    assert pages
    for page in pages:
        assert not re.search(r"(?m)^(<<<<<<<|=======|>>>>>>>)", page.read_text("utf-8")), page
