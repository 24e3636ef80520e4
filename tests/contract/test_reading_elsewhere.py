"""Ways to files outside of the repository that were found by attacking becalm; each printed the file, or ran with it."""

from __future__ import annotations

import json

import pytest
import servers
from applications import array, chart_files, pairs, text, write
from test_kustomize_charts import CHART, ENABLE, below, inflated
from test_kustomize_parameters import fingerprint, generate
from test_kustomize_remotes import FILE, git

SECRET = "stolen-from-elsewhere"
PRINTS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {all: {{ .Values | toJson | quote }}}\n"


@pytest.fixture
def outside(tmp_path):
    file = tmp_path / "outside" / "secret.yaml"
    write(file.parent, {"secret.yaml": f"password: {SECRET}\n"})
    return file


def refused(done, code: int, words: str) -> None:
    assert SECRET not in done.stdout + done.stderr
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("key", ["b={0},a", "a,b={0},c", "a={{x}}", "{{a}}", "a\nb", "a=b"])
def test_names_of_file_parameters_hold_no_second_file(app, outside, key):
    app.chart(**{"templates/a.yaml": PRINTS, "v": "x"})
    given = pairs("fileParameters", **{key.format(outside): "v"})
    refused(app.generate(given), 2, "is no name of one value; write for example a.b")


@pytest.mark.parametrize("path", ["v,b={0}", "v\\,b={0}", "v\\\\,b={0}", "v\\"])
def test_paths_of_file_parameters_hold_no_second_file(app, outside, path):
    name = path.format(outside)
    app.chart(**{"templates/a.yaml": PRINTS, "v": "x", name.lstrip("/"): "y"})
    refused(
        app.generate(pairs("fileParameters", a=name)),
        3,
        "has a comma or backslash in its path; rename the file",
    )


def test_a_values_file_with_a_comma_is_one_file(app, outside):
    name = f"v,{outside}"
    app.chart(**{"templates/a.yaml": PRINTS, "v": "a: 1\n", name: "a: mine\n", 'q"u,o.yaml': "b: mine\n"})
    done = app.generate(array("valueFiles", name, 'q"u,o.yaml'))
    assert (done.returncode, done.stderr) == (0, "")
    assert SECRET not in done.stdout
    assert json.dumps('{"a":"mine","b":"mine"}')[1:-1] in done.stdout
    globbed = app.generate(array("valueFiles", "v*/**/*.yaml"))
    assert SECRET not in globbed.stdout + globbed.stderr


def test_names_that_no_file_can_have_are_errors(app):
    app.chart()
    for name in ("x" * 300, "a\nb", "a\x7fb", "\ud800"):
        for given in (array("valueFiles", name), pairs("fileParameters", a=name), text("chart.path", name)):
            done = app.generate(given)
            assert done.returncode == 3, done.stderr
            assert "internal error" not in done.stderr


def test_patterns_end_in_bounded_time(app):
    deep = "/".join("d" * 1 for _ in range(30))
    app.chart(**{f"{deep}/x.yaml": "a: 1\n"})
    for link in ("a", "b", "c"):
        (app.directory / link).symlink_to(".")
    for pattern in ("**/" * 14 + "nothing", "*/" * 30 + "nothing", "*a" * 100):
        done = app.generate(array("valueFiles", pattern), timeout=10)
        assert done.returncode == 3


REPOSITORY = "apps/web"


def kustomized(tmp_path, content: str, **files: str):
    return write(tmp_path / "repository", {f"{REPOSITORY}/kustomization.yaml": content, **files})


@pytest.mark.parametrize(
    "content",
    [
        "resources: ['https:/../../../../outside']", "resources: [' https:/../../../../outside']",
        "components: ['https:/../../../../outside']", "re\u017fources: [../../../outside]", "RESOURCES: [a]\nresources: [b]",
        "configMapGenerator: [{name: x, file\u017f: [../../../outside/secret.yaml]}]",
        "configMapGenerator: [{name: x, FILES: [ok.txt], Files: [../../../outside/secret.yaml]}]",
        "patchesStrategicMerge: ['{x}/../../../../outside/secret.yaml']", "generators: ['{a: b}/../../../../outside']",
        "resources: ['https://x/../../../../../outside']",
    ],
)  # fmt: skip
@pytest.mark.parametrize("restrictor", ["", "--load-restrictor=LoadRestrictionsNone"])
def test_no_spelling_leads_kustomize_out(tmp_path, outside, content, restrictor):
    write(outside.parent, {"kustomization.yaml": "configMapGenerator: [{name: x, files: [secret.yaml]}]\n"})
    root = kustomized(tmp_path, content + "\n", **{f"{REPOSITORY}/ok.txt": "fine\n"})
    (root / REPOSITORY / "{a: b}").mkdir()
    refused(generate(root, BECALM_KUSTOMIZE_BUILD_OPTIONS=restrictor), 3, "apps/web")


def test_a_generator_that_looks_like_an_object_can_be_a_file(tmp_path, outside):
    generator = (
        f"apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: x}}\nfiles: [k={outside}]\n"
    )
    root = kustomized(tmp_path, "generators: ['{a: b}']\n", **{f"{REPOSITORY}/{{a: b}}": generator})
    refused(
        generate(root, BECALM_KUSTOMIZE_BUILD_OPTIONS="--load-restrictor=LoadRestrictionsNone"),
        3,
        "with 'files' could read",
    )


def test_links_in_the_chart_of_a_remote_base_are_not_followed(tmp_path, outside):
    """becalm refuses the chart, and then helm itself must not tell of it."""
    leak = '{{ fail (.Files.Get "link") }}\n'
    base = write(tmp_path / "far", {
        "base/kustomization.yaml": "helmCharts: [{name: db, releaseName: x}]\n",
        **below("base/charts/db", {**CHART, "templates/b.yaml": leak}),
    })  # fmt: skip
    (base / "base" / "charts" / "db" / "link").symlink_to(outside)
    git(base, "init", "-q", "-b", "main")
    git(base, "add", "base")
    git(base, "commit", "-qm", "one")
    git(base, "tag", "v1.0.0")
    root = kustomized(tmp_path, f"resources: ['file://{base}//base?ref=v1.0.0']\n")
    refused(generate(root, **FILE, **ENABLE), 5, "a link in the chart leads out of the repository")


def test_values_files_of_charts_are_one_file_each(tmp_path, outside):
    chart = f"helmCharts: [{{name: db, releaseName: a, additionalValuesFiles: ['v,{outside}']}}]\n"
    root = inflated(tmp_path / "repository", chart, **{"templates/b.yaml": PRINTS})
    write(root, {"apps/web/v": "a: 1\n", f"apps/web/v,{outside}": "a: 2\n"})
    refused(generate(root, **ENABLE), 5, "leads out of the repository")


def test_a_home_of_helm_in_the_repository_names_no_repositories(tmp_path, serve, repository_files, outside):
    """Its entries could name certificates and keys of the operator's, for a server of the app's."""
    site = serve(servers.files(repository_files))
    chart = f"helmGlobals: {{configHome: hh}}\nhelmCharts: [{{name: db, releaseName: a, version: 1.2.3, repo: '{site.url}'}}]\n"
    entry = {
        "name": "ev",
        "url": site.url,
        "certFile": str(outside),
        "keyFile": str(outside),
        "caFile": str(outside),
    }
    root = inflated(tmp_path / "repository", chart)
    write(root, {
        "apps/web/hh/repositories.yaml": json.dumps({"apiVersion": "v1", "repositories": [entry]}),
        "apps/web/hh/.cache/repository/ev-index.yaml": repository_files["/index.yaml"].decode(),
    })  # fmt: skip
    (root / "apps/web/charts").rename(root / "apps/web/other")
    allowed = {"BECALM_CHART_REPOSITORIES": "http://127.0.0.1:*"}
    before = fingerprint(root)
    done = generate(root, **ENABLE, **allowed)
    assert done.returncode == 0, done.stderr
    assert "name: db" in done.stdout
    assert fingerprint(root) == before


def test_charts_come_from_allowed_repositories_only(tmp_path, serve, repository_files):
    site = serve(servers.files(repository_files))
    chart = f"helmCharts: [{{name: db, releaseName: a, version: 1.2.3, repo: '{site.url}'}}]\n"
    root = inflated(tmp_path / "repository", chart)
    (root / "apps/web/charts").rename(root / "apps/web/other")
    refused(generate(root, **ENABLE), 5, "is not encrypted")
    refused(
        generate(root, **ENABLE, BECALM_CHART_REPOSITORIES="https://charts.example"),
        5,
        "is not among the addresses",
    )
    assert site.asked == []


def test_the_checkout_is_not_written_through_links_of_the_copy(tmp_path, serve, authority):
    """An archive whose folder is called as one of the checkout's."""
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in {**chart_files("other", "1.0.0"), "committed.txt": "WRITTEN THROUGH"}.items():
            entry = tarfile.TarInfo(f"other/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
    index = {
        "apiVersion": "v1",
        "entries": {"db": [{"name": "db", "version": "1.0.0", "urls": ["db-1.0.0.tgz"]}]},
    }
    site = serve(
        servers.files({"/index.yaml": json.dumps(index).encode(), "/db-1.0.0.tgz": packed.getvalue()})
    )
    chart = f"helmCharts: [{{name: db, releaseName: a, version: 1.0.0, repo: '{site.url}'}}]\n"
    root = inflated(tmp_path / "repository", chart)
    write(root, {"apps/web/charts/db-1.0.0/other/committed.txt": "as committed\n"})
    before = fingerprint(root)
    generate(root, **ENABLE, BECALM_CHART_REPOSITORIES="http://127.0.0.1:*")
    assert fingerprint(root) == before


def test_the_cache_tells_apart_what_a_token_opened(app, serve, repository_files):
    def answer(path, _headers):
        name, _, query = path.partition("?")
        body = repository_files.get(name)
        if query != "sig=token" and name.endswith("index.yaml"):
            return 403, {}, b"no"
        return (404, {}, b"") if body is None else (200, {}, body)

    site = serve(answer)
    given = [text("chart.name", "db"), text("chart.version", "1.2.3")]
    app.generate(*given, text("chart.repository", f"{site.url}?sig=token"))
    done = app.generate(*given, text("chart.repository", site.url), ARGOCD_APP_PROJECT_NAME="other")
    assert (done.returncode, done.stdout) == (3, "")


@pytest.mark.parametrize(
    "address",
    [
        "https://[fd00:ec2::254]/x",
        "https://[64:ff9b::a9fe:a9fe]/x",
        "https://metadata.google.internal/x",
        "https://a/..%2fb",
        "https://a/x%5Cb",
    ],
)
def test_addresses_that_mean_something_else(app, address):
    given = [text("chart.repository", address), text("chart.name", "db"), text("chart.version", "1.2.3")]
    refused(app.generate(*given, BECALM_CHART_REPOSITORIES=""), 3, "chart.repository")
