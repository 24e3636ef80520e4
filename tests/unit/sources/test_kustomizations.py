"""What a directory holds, references of Kustomize, and edits."""

from __future__ import annotations

import os

import pytest

from becalm.errors import ConfigError, SourceError, ToolFailedError
from becalm.sources import detect, edits, kustomize, repospec
from becalm.sources.edits import KustomizeOptions


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (["Chart.yaml"], "helm"),
        (["Chart.yaml", "values.yaml", "a.yaml"], "helm"),
        (["kustomization.yaml"], "kustomize"),
        (["kustomization.yml", "a.yaml"], "kustomize"),
        (["Kustomization"], "kustomize"),
        (["Chart.yaml", "kustomization.yaml"], "chain"),
        (["Chart.yaml", "Kustomization"], "chain"),
        (["a.yaml"], "directory"),
        (["a.yml"], "directory"),
        (["a.json"], "directory"),
        (["a.txt", "chart.yaml.bak", "Kustomization.md"], ""),
        ([], ""),
    ],
)
def test_what_a_directory_holds(tmp_path, files, kind):
    for name in files:
        (tmp_path / name).write_text("")
    assert detect.kind(tmp_path) == kind
    if kind:
        assert detect.require(tmp_path, "app") == kind
    else:
        with pytest.raises(
            SourceError, match=r"there is no Chart.yaml, no kustomization.yaml, kustomization.yml, Kust"
        ):
            detect.require(tmp_path, "app")


def test_a_wish_needs_what_it_wishes(tmp_path):
    (tmp_path / "a.yaml").write_text("")
    for wanted in ("helm", "kustomize", "chain"):
        with pytest.raises(SourceError, match="there is no"):
            detect.require(tmp_path, "app", wanted=wanted)
    assert detect.require(tmp_path, "app", wanted="directory") == "directory"


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "clone", "path", "ref"),
    [
        ("https://github.com/org/repo", "https://github.com/org/repo", "", ""),
        ("github.com/org/repo//path?ref=v1.0.0", "https://github.com/org/repo", "path", "v1.0.0"),
        ("github.com/org/repo/a/b?version=x", "https://github.com/org/repo", "a/b", "x"),
        ("github.com/org/repo?ref=a&version=b", "https://github.com/org/repo", "", "a"),
        ("GitHub.com:org/repo", "https://github.com/org/repo", "", ""),
        ("git@github.com:org/repo.git//x", "git@github.com:org/repo.git", "x", ""),
        ("ssh://git@github.com/org/repo", "git@github.com:org/repo", "", ""),
        ("git::https://example.com/org/repo/x", "https://example.com/org/repo", "x", ""),
        (
            "https://dev.example/org/project/_git/repo/a/b",
            "https://dev.example/org/project/_git/repo",
            "a/b",
            "",
        ),
        ("https://example.com/a/b/c.git/d/e", "https://example.com/a/b/c.git", "/d/e".lstrip("/"), ""),
        ("user@host.xz:a/b/c", "user@host.xz:a/b", "c", ""),
        ("ssh://host:22/a/b//c?ref=main", "ssh://host:22/a/b", "c", "main"),
        ("file:///srv/repo//x", "file:///srv/repo", "x", ""),
        ("file:///srv/repo/x", "file:///srv/repo/x", "", ""),
        ("https://example.com/a/b?ref=%zz", "https://example.com/a/b", "", ""),
        ("https://example.com/a/b?x=1;ref=a", "https://example.com/a/b", "", ""),
    ],
)
def test_addresses_are_read_as_kustomize_reads_them(text, clone, path, ref):
    assert repospec.parse(text) == repospec.RepoSpec(clone=clone, path=path, ref=ref)


@pytest.mark.parametrize(
    "text",
    ["../base", "a/b", "/srv/repo", "base", "example.com/a/b", "ext::sh -c x", "https://example.com/a", "ftp://a/b/c",
     "github.com/org/repo//../x", "", "."],
)  # fmt: skip
def test_all_else_is_local(text):
    assert repospec.parse(text) is None


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        (f"github.com/o/r?ref={COMMIT}", True),
        ("github.com/o/r?ref=v1.2.3", True),
        ("github.com/o/r?ref=1.2.3-rc.1", True),
        ("github.com/o/r?ref=controller-v1.2.3", True),
        ("github.com/o/r?ref=kustomize/v5.0.0", True),
        ("github.com/o/r?ref=refs/tags/stable", True),
        (f"https://raw.example.com/o/r/{COMMIT}/a.yaml", True),
        ("https://example.com/o/r/releases/download/v1.2.3/install.yaml", True),
        ("github.com/o/r?ref=heads/v1.2.3", False),
        ("github.com/o/r?ref=release/1.2.3", False),
        ("github.com/o/r?ref=release/v1.2.3", False),
        ("github.com/o/r?ref=feature-1.2.3-wip", False),
        ("https://raw.example.com/o/r/main/1.2.3/x.yaml", False),
        ("https:/../../v1.2.3/x", False),
        ("github.com/o/r", False),
        ("github.com/o/r?ref=main", False),
        ("github.com/o/r?ref=HEAD", False),
        ("github.com/o/r?ref=release-1.30", False),
        ("github.com/o/r?ref=v1", False),
        (f"github.com/o/r?ref={COMMIT[:12]}", False),
        ("https://raw.example.com/o/r/main/a.yaml", False),
        ("https://example.com/install-v1.2.3.yaml", False),
    ],
)
def test_what_is_pinned(text, pinned):
    assert repospec.is_pinned(text) is pinned


def test_passwords_are_not_shown():
    assert repospec.shown("https://user:word@example.com/a") == "https://example.com/a"


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("a=b:c@sha256:d", {"name": "a", "newName": "b", "newTag": "c", "digest": "sha256:d"}),
        ("a=b@sha256:d", {"name": "a", "newName": "b", "newTag": "", "digest": "sha256:d"}),
        ("a=b", {"name": "a", "newName": "b", "newTag": "", "digest": ""}),
        ("a:c", {"name": "a", "newTag": "c", "digest": ""}),
        ("a@sha256:d", {"name": "a", "newTag": "", "digest": "sha256:d"}),
        ("host:5000/a:c", {"name": "host:5000/a", "newTag": "c", "digest": ""}),
        ("a=host:5000/b", {"name": "a", "newName": "host:5000/b", "newTag": "", "digest": ""}),
    ],
)
def test_images_are_read_as_kustomize_reads_them(text, entry):
    assert edits.image(text) == entry


@pytest.mark.parametrize("text", ["", "a", "host:5000/a", "-a:b", "--help=x"])
def test_what_is_no_image_is_an_error(text):
    with pytest.raises(ConfigError, match="is no image"):
        edits.image(text)


def test_the_original_is_left_alone():
    content = {
        "labels": [{"pairs": {"a": "1"}}],
        "images": [{"name": "x", "newTag": "1"}],
        "components": ["c"],
    }
    before = str(content)
    options = KustomizeOptions(
        common_labels={"b": "2"},
        label_without_selector=True,
        images=("x:2",),
        components=("d",),
        name_prefix="p",
    )
    result = edits.edited(content, options, ("d",))
    assert str(content) == before
    assert result == {
        "labels": [{"pairs": {"a": "1", "b": "2"}}], "images": [{"name": "x", "newTag": "2"}], "components": ["c", "d"],
        "namePrefix": "p",
    }  # fmt: skip


def test_of_entries_of_one_name_the_first_stays():
    """As `kustomize edit` has it."""
    content = {"replicas": [{"name": "web", "count": 3}, {"name": "web", "count": 5}]}
    done = edits.edited(content, KustomizeOptions(replicas={"two": "4"}), ())
    assert done["replicas"] == [{"name": "two", "count": 4}, {"name": "web", "count": 3}]


@pytest.mark.parametrize("pairs", ["xyz", [1], 5])
def test_labels_that_are_none_are_an_error(pairs):
    given = KustomizeOptions(common_labels={"a": "b"}, label_without_selector=True)
    with pytest.raises(ConfigError, match="the pairs are no map"):
        edits.edited({"labels": [{"pairs": pairs}]}, given, ())


KLOG = 'E1203 12:17:51.734979   23255 run.go:72] "command failed" err=<\n{}\n >\n'


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            KLOG.format(
                "\tError: unknown shorthand flag: 'c' in -c\n\t: unable to run: 'helm version -c --short' with"
            ),
            "Kustomize failed: unknown shorthand flag: 'c' in -c; this Kustomize knows helm 3 only; take Kustomize 5.8",
        ),
        (
            KLOG.format("trouble with config: `\nname: shop\n`: must specify --enable-helm"),
            "Kustomize failed: must specify --enable-helm; the operator switches charts on with --enable-helm in ",
        ),
        (
            "error: Error: becalm-helm: no seed\n: unable to run: 'x'",
            "Kustomize failed: becalm-helm: no seed",
        ),
    ],
)
def test_the_words_of_kustomize_are_found_in_what_kubectl_logs(tmp_path, told, line):
    (tmp_path / "told").write_text(told)
    program = tmp_path / "kustomize"
    program.write_text("#!/bin/sh\ncat told >&2\nexit 1\n")
    program.chmod(0o755)
    builder = kustomize.Kustomize(
        kustomize.tool(str(program), "", "", ""),
        path=os.environ["PATH"],
        work=tmp_path,
        home=tmp_path / "home",
        timeout=30,
        network={},
    )
    with pytest.raises(ToolFailedError) as error:
        builder.build(tmp_path, cwd=tmp_path)
    assert error.value.first_line().startswith(line)
