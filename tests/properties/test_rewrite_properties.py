"""The rewrite changes nothing but where a draw's value is from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
import yaml
from generate import CONSTANTS, INSTANT, Generator, Pair
from hypothesis import given
from hypothesis import strategies as st

from becalm.templates import functions
from becalm.templates.files import TemplateFile
from becalm.templates.rewrite import Sites, rewrite_file
from becalm.templates.runtime import Runtime, text_key
from becalm.templates.taint import read, taint

ROOT = Path(__file__).resolve().parents[2]
HELM = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools")) / "helm-4.1.4" / "helm"
BATCH = 40
VALUES = "word: drow\n"


Chart = tuple[list[Pair], list[Pair]]


def chart(seed: int, *, drawing: bool = True) -> Chart:
    """The files of a chart and its texts for `tpl`."""
    files: list[Pair] = []
    texts: list[Pair] = []
    for number in range(BATCH):
        # Too many choices for hypothesis to make each; a failure shows the smallest file that fails.
        generator = Generator(Random(f"{seed}/{number}").randrange, number, drawing=drawing)
        files.append(generator.file())
        texts += generator.texts
    return files, texts


def rewritten(files: list[Pair], texts: list[Pair], mode: str) -> dict[str, str]:
    """The template files of the chart, by name, with draws that are answered by the constants."""
    plain = [
        TemplateFile(key=f"d{number}", name=f"d{number}.yaml", text=pair.drawing)
        for number, pair in enumerate(files)
    ]
    wanted = {text_key(pair.drawing): pair.drawing for pair in texts}
    plain += [TemplateFile(key=key, name=key, text=text, is_text=True) for key, text in wanted.items()]
    found = taint(plain, rewrites_tpl=bool(wanted))
    new = {file.key: file.text for file in plain}
    sites = Sites()
    for key, parsed in found.parsed.items():
        new[key] = rewrite_file(parsed, found, sites, instant=INSTANT)
    framed = [k for k, p in found.parsed.items() if not p.file.is_text and found.framed(p.bodies[0][1])]
    runtime = Runtime(
        mode=mode,
        marker="becalm-test",
        instant=INSTANT,
        names=found.names,
        files=tuple(framed),
        texts={key: new[key] for key in wanted},
        interesting="|".join(functions.rewritten()),
    ).text()
    runtime = runtime.replace('define "becalm.draw"', 'define "becalm.not-used"') + CONSTANTS
    templates = {f"{file.key}.yaml": new[file.key] for file in plain if not file.is_text}
    return {"_becalm.tpl": runtime, **templates}


def render(templates: dict[str, str]) -> dict[str, str]:
    """The texts that helm renders, by the names of their objects."""
    with TemporaryDirectory() as directory:
        folder = Path(directory) / "templates"
        folder.mkdir()
        (folder.parent / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 1.0.0\n")
        (folder.parent / "values.yaml").write_text(VALUES)
        for name, text in templates.items():
            (folder / name).write_text(text)
        argv = [HELM, "template", "app", directory]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return {obj["metadata"]["name"]: obj["text"] for obj in yaml.safe_load_all(done.stdout) if obj}


@pytest.mark.parametrize("mode", ["survey", "replay"])
@given(seed=st.integers(0, 2**64))
def test_draws_that_are_answered_by_constants_render_as_the_constants(mode: str, seed: int) -> None:
    files, texts = chart(seed)
    templates = rewritten(files, texts, mode)
    output = render(templates | {f"c{number}.yaml": pair.constant for number, pair in enumerate(files)})
    failed = [n for n in range(BATCH) if output[f"d{n}"] != output[f"c{n}"]]
    if failed:
        n = min(failed, key=lambda n: len(files[n].drawing))
        pytest.fail(f"\n{files[n].drawing}\nwas rewritten as\n{templates[f'd{n}.yaml']}")


@given(seed=st.integers(0, 2**64))
def test_a_template_without_target_functions_is_unchanged(seed: int) -> None:
    pairs, _ = chart(seed, drawing=False)
    files = [TemplateFile(key=f"d{n}", name=f"d{n}.yaml", text=pair.drawing) for n, pair in enumerate(pairs)]
    found = taint(files, rewrites_tpl=False)
    assert found.names == frozenset()
    for file in files:
        parsed = found.parsed.get(file.key) or read(file)
        assert rewrite_file(parsed, found, Sites(), instant=INSTANT) == file.text
