"""Helm loads from the one file that it is given the very chart that it loads from the directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from applications import TOOLS, run_helm

from becalm.sources.archive import read_chart_archive
from becalm.sources.chart import load_chart, pack_chart
from becalm.sources.packing import Packed
from becalm.sources.tarball import MIB

ADDED = "templates/_added.tpl"
SHOWS = """{{ range $path, $content := .Files }}
# {{ $path }} {{ $content | toString | sha256sum }}
{{ end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ include "added" . }}}
data: {value: {{ .Values.text | quote }}, depth: {{ .Template.Name }}}
"""
FILES: dict[str, bytes] = {
    "Chart.yaml": b"\xef\xbb\xbfapiVersion: v2\nname: odd\nversion: 1.0.0\n",
    "values.yaml": b"text: some\n",
    "templates/a.yaml": SHOWS.encode(),
    "templates/deep/er/b.yaml": b"kind: B\n",
    "templates/_c.tpl": b'{{ define "c" }}c{{ end }}',
    ADDED: b'{{ define "added" }}old{{ end }}',
    "crds/b.yaml": b"kind: CustomResourceDefinition\nmetadata: {name: second}\n",
    "crds/a/z.yaml": b"kind: CustomResourceDefinition\nmetadata: {name: first}\n",
    "charts/sub/Chart.yaml": b"apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    "charts/sub/templates/a.yaml": b"kind: Sub\n",
    ".helmignore": b"secret/\n",
    "secret/not-seen": b"x",
    "files/empty": b"",
    "files/.hidden": b"h",
    "files/binary": bytes(range(256)) * 5,
    "files/block": bytes(512),
    "files/bom": b"\xef\xbb\xbf\xef\xbb\xbftwice",
    "files/é ü/ü.txt": "é".encode(),
    f"files/{'long-' * 30}/{'name-' * 40}": b"long",
}


def chart(directory: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return directory


@pytest.mark.parametrize("version", ["3.17.3", "4.1.4", "4.3.1"])
def test_helm_renders_from_it_what_it_renders_from_the_directory(tmp_path, version):
    helm = TOOLS / f"helm-{version}" / "helm"
    directory = chart(tmp_path / "odd", FILES)
    packed = pack_chart(load_chart(directory), {})
    assert packed is not None
    for name in ("first", "second"):
        added = f'{{{{ define "added" }}}}{name}{{{{ end }}}}'.encode()
        # What is added stands last, so it takes the place of one that is there.
        packed.write(tmp_path / "odd.tgz", {ADDED: added})
        (directory / ADDED).write_bytes(added)
        texts = [
            run_helm("template", "app", path, "--include-crds", helm=helm).stdout
            for path in (directory, tmp_path / "odd.tgz")
        ]
        assert texts[0] == texts[1]
        assert f"name: {name}" in texts[0]
        assert "not-seen" not in texts[0]


def test_nobody_else_can_read_it_and_a_link_is_not_followed(tmp_path):
    path = tmp_path / "chart.tgz"
    packed = Packed({"Chart.yaml": b"x"})
    packed.write(path, {})
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_chart_archive(path.read_bytes(), where="x") == {"Chart.yaml": b"x"}
    (tmp_path / "link.tgz").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        packed.write(tmp_path / "link.tgz", {})


@pytest.mark.parametrize(
    "files",
    [
        {"templates/a\\b.yaml": b""},
        {"C:/a.yaml": b""},
        {"templates/\udcff.yaml": b""},
        {"files/large": bytes(5 * MIB + 1)},
        {f"files/{number}": bytes(5 * MIB) for number in range(7)},
    ],
    ids=["backslash", "drive", "no UTF-8", "a large file", "many files"],
)
def test_what_helm_would_not_take_from_an_archive_is_left_in_a_directory(files):
    with pytest.raises(ValueError, match="helm"):
        Packed(files)


def test_a_chart_that_cannot_be_packed_is_rendered_all_the_same(app):
    secret = "kind: Secret\napiVersion: v1\nmetadata: {name: s}\nstringData: {a: {{ randAlphaNum 20 }}}\n"
    chart(
        app.directory,
        {
            "Chart.yaml": b"apiVersion: v2\nname: web\nversion: 1.0.0\n",
            "files/back\\slash": b"x",
            "templates/a.yaml": secret.encode(),
        },
    )
    seed = app.top / "seed"
    seed.touch(mode=0o600)
    seed.write_bytes(bytes(range(32)))
    first, second = (app.generate(BECALM_SEED_FILE=str(seed), BECALM_CACHE_DIR="off") for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert "kind: Secret" in first.stdout
