"""Charts that parameters name instead of a directory, values files from addresses, and variables of the source."""

from __future__ import annotations

import hashlib
import json

import pytest
import servers
import yaml
from applications import TOOLS, text, write

ANY = "http://127.0.0.1:*"


def chart(url: str, name: str = "db", version: str = "1.2.3") -> list[dict]:
    return [text("chart.repository", url), text("chart.name", name), text("chart.version", version)]


def objects(done) -> dict[str, dict]:
    assert (done.returncode, done.stderr) == (0, "")
    return {one["metadata"]["name"]: one for one in yaml.safe_load_all(done.stdout)}


def failed(done, code: int, words: str) -> bool:
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "Traceback" not in done.stderr
    return words in done.stderr.splitlines()[0]


def test_a_chart_of_a_repository_with_values_of_the_directory(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    write(app.directory, {"values-prod.yaml": "a: prod\n"})
    given = [*chart(site.url), {"name": "valueFiles", "array": ["values-prod.yaml"]}]
    assert objects(app.generate(*given))["db"]["data"] == {"version": "1.2.3", "a": "prod"}
    options = [f"--chart-repository={site.url}", "--chart-name=db", "--chart-version=1.3.0"]
    assert objects(app.render(*options))["db"]["data"] == {"version": "1.3.0", "a": "usual"}
    assert "names a chart" not in app.render("--chart-name=db").stderr
    assert failed(app.render("--chart-name=db"), 2, "--chart-repository and --chart-name: a chart needs both")


def test_a_chart_of_a_registry(app, serve, packed, authority):
    site = serve(servers.registry({"charts/db": {"1.2.3": packed["db-1.2.3.tgz"]}}), authority)
    app.env["BECALM_CA_FILE"] = str(authority.ca)
    assert objects(app.generate(*chart(f"{site.oci}/charts")))["db"]["data"]["version"] == "1.2.3"


def test_the_chart_of_the_directory_is_not_meant(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    assert set(objects(app.chart().generate(*chart(site.url)))) == {"db"}


def test_a_kustomization_of_the_directory_is_built_upon_it(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    write(app.directory, {"kustomization.yaml": "resources: [all.yaml]\nnamePrefix: k-\n"})
    env = {"BECALM_KUSTOMIZE": str(kubectl(app))}
    assert set(objects(app.generate(*chart(site.url), **env))) == {"k-db"}
    assert set(objects(app.generate(*chart(site.url), text("becalm.source", "helm"), **env))) == {"db"}
    refused = app.generate(*chart(site.url), text("becalm.source", "kustomize"), **env)
    assert failed(refused, 2, "the parameter is for charts, and this is a Kustomization")


def kubectl(app):
    return TOOLS / "kubectl-1.37.1" / "kubectl"


@pytest.mark.parametrize("version", ["", "1.x", "^1.0.0", ">=1 <2", "~1.3", "1"])
def test_a_range_is_warned_of_and_strictly_refused(app, serve, repository_files, version):
    site = serve(servers.files(repository_files))
    given = chart(site.url, version=version)
    done = app.generate(*given)
    assert done.returncode == 0, done.stderr
    assert "version: 1.3.0" in done.stdout
    assert "chart.version: " in done.stderr
    assert "so the same commit can render differently tomorrow" in done.stderr
    assert failed(app.generate(*given, BECALM_STRICT="true"), 8, "chart.version")


def test_verify_and_derive_see_the_chart(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    options = [f"--chart-repository={site.url}", "--chart-name=db", "--chart-version=1.2.3"]
    done = app.command("verify", *options, "--throwaway-seed")
    assert done.returncode == 0, done.stderr
    assert "identical" in done.stdout


def test_one_of_several_charts_of_the_repository(app):
    for name in ("one", "two"):
        files = {"Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n", "values.yaml": "a: usual\n"}
        template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {a: {{ .Values.a }}}\n"
        write(app.root / "charts" / name, {**files, "templates/a.yaml": template})
    write(app.directory, {
        "values.yaml": "a: mine\n", ".becalm.yaml": "switches: [-core/service-empty-addresses]\n"
    })  # fmt: skip
    for name in ("one", "two"):
        given = [text("chart.path", f"../../charts/{name}"), {"name": "valueFiles", "array": ["values.yaml"]}]
        assert objects(app.generate(*given)) == {
            name: {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "mine"}}
        }
    assert failed(app.generate(text("chart.path", "none")), 3, "chart.path: 'none' is no directory")
    both = app.generate(text("chart.path", "x"), *chart("https://x.example"))
    assert failed(both, 2, "chart.path: chart.path is for charts of this repository; set one of the two")


def test_what_does_not_fit_together_is_refused(app):
    assert failed(
        app.generate(text("chart.name", "db")), 2, "chart.repository and chart.name belong together"
    )
    assert failed(app.generate(text("chart.version", "1.2.3")), 2, "belong together")


def test_the_operator_says_what_may_be_named(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    given = chart(site.url)
    refused = app.generate(*given, BECALM_CHART_REPOSITORIES="https://charts.example")
    assert failed(
        refused, 3, f"{site.url} is not among the addresses that the operator allows; ask the operator"
    )
    assert failed(app.generate(*given, BECALM_CHART_REPOSITORIES=""), 3, f"{site.url} is not encrypted")
    own = chart(site.url.replace("http", "https"))
    assert failed(app.generate(*own, BECALM_CHART_REPOSITORIES=""), 3, "of the machine itself or of its link")
    assert site.asked == []


HOSTILE = [
    "--post-renderer=x", "-", "", " ", "file:///etc/passwd", "file://../x", "/etc/passwd", "../..", "https://", "https:///x",
    "https://user:pw@127.0.0.1:1", "https://127.0.0.1:1/a b", "https://127.0.0.1:1/a\nb", "https://127.0.0.1:1/../../x",
    "https://127.0.0.1:1/%2e%2e/x", "oci://127.0.0.1:1/../x", "oci://-oProxy/x", "http://169.254.169.254/latest",
    "https://169.254.169.254/latest", "https://[::1]:1/x", "https://localhost:1/x", "https://2130706433/x", "https://0x7f.1/x",
    "ssh://git@127.0.0.1/x", "git+https://x/y", "s3://bucket/charts", "ext::sh -c id", "javascript:x", "https://x\\y/z",
    "https://127.0.0.1:99999/x", "https://example.com#x", "$(id)", "`id`", "{{ env }}", "$HOME", "@name", "alias:name",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
def test_no_repository_leads_elsewhere(app, value):
    """With the operator's usual settings."""
    done = app.generate(*chart(value), BECALM_CHART_REPOSITORIES="")
    assert done.returncode in (2, 3)
    assert done.stdout == ""
    assert "root:" not in done.stderr
    assert "internal error" not in done.stderr
    assert "pw@" not in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "--help", "-f", "../db", "a/b", "/db", "db\nx", "db x", "db@sha256:aa", "db:latest", "..", "a..b", "$(id)", "{{ .x }}", "",
        "db?x=1", "db#x", "%2e%2e", "x" * 251,
    ],
)  # fmt: skip
def test_names_are_no_options_and_no_paths(app, serve, repository_files, name):
    site = serve(servers.files(repository_files))
    done = app.generate(*chart(site.url, name=name))
    assert done.returncode in (2, 3)
    assert done.stdout == ""
    assert site.asked == []


@pytest.mark.parametrize(
    "version",
    ["--devel", "-1", "1.2.3\n--x", "1.2.3;id", "$(id)", "../1.2.3", "1.2.3/../x", "{{ x }}", "1.2.3'"],
)
def test_versions_are_no_options_and_no_paths(app, serve, repository_files, version):
    site = serve(servers.files(repository_files))
    done = app.generate(*chart(site.url, version=version))
    assert done.returncode in (2, 3)
    assert done.stdout == ""


@pytest.mark.parametrize("path", ["/etc", "../../..", "../../../outside", "link", "a\\0b", "--help", "none"])
def test_chart_paths_stay_in_the_repository(app, path):
    write(app.top / "outside", {"Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n"})
    (app.directory / "link").symlink_to(app.top / "outside")
    done = app.generate(text("chart.path", path.replace("\\0", "\0")))
    assert (done.returncode, done.stdout) == (3, "")
    assert "chart.path" in done.stderr


VALUES = b"a: remote\n"
PIN = hashlib.sha256(VALUES).hexdigest()


def remote(app, *names: str, **variables: str):
    given = {"name": "valueFiles", "array": list(names)}
    return app.generate(given, **{"BECALM_VALUES_FILE_URLS": ANY, **variables})


def test_values_files_from_addresses_need_the_operators_word(app, serve):
    site = serve(servers.files({"/v.yaml": VALUES}))
    app.chart()
    name = f"{site.url}/v.yaml"
    refused = remote(app, name, BECALM_VALUES_FILE_URLS="")
    assert failed(refused, 3, "ask the operator to allow it by BECALM_VALUES_FILE_URLS")
    refused = remote(app, name, BECALM_VALUES_FILE_URLS="https://values.example")
    assert failed(refused, 3, "is not among the addresses that the operator allows")
    assert site.asked == []
    done = remote(app, name)
    assert done.returncode == 0
    assert 'a: "remote"' in done.stdout or "a: remote" in done.stdout
    assert "is not pinned, and may hold something else at the next render" in done.stderr
    assert failed(remote(app, name, BECALM_STRICT="true"), 8, "is not pinned")


def test_a_pinned_values_file_is_checked(app, serve):
    found = {"/v.yaml": VALUES}
    site = serve(servers.files(found))
    app.chart(**{"late.yaml": "a: late\n"})
    name = f"{site.url}/v.yaml#sha256={PIN}"
    assert objects(remote(app, name, BECALM_STRICT="true"))["app"]["data"]["a"] == "remote"
    assert objects(remote(app, name, "late.yaml"))["app"]["data"]["a"] == "late"
    assert objects(remote(app, "late.yaml", name))["app"]["data"]["a"] == "remote"
    found["/v.yaml"] = b"a: other\n"
    assert failed(remote(app, name), 3, "does not have the digest that it is pinned to")
    assert failed(remote(app, f"{site.url}/v.yaml#sha256=12"), 3, "what stands behind # is no digest")


def test_redirects_go_to_allowed_addresses_only(app, serve):
    target = serve(servers.files({"/v.yaml": VALUES}))
    site = serve(servers.files({"/v.yaml": f"->{target.url}/v.yaml".encode(), "/loop": b"->/loop"}))
    app.chart()
    name = f"{site.url}/v.yaml#sha256={PIN}"
    assert objects(remote(app, name))["app"]["data"]["a"] == "remote"
    target.asked.clear()
    refused = remote(app, name, BECALM_VALUES_FILE_URLS=site.url)
    assert failed(refused, 3, "is not among the addresses that the operator allows")
    assert target.asked == []
    assert failed(remote(app, f"{site.url}/loop"), 3, "redirects more than 5 times")


def test_credentials_go_to_their_repository_only(app, serve):
    site = serve(servers.files({"/v/v.yaml": VALUES}, "ann", "pw"))
    other = serve(servers.files({"/v/v.yaml": VALUES}))
    app.chart().secret("one", url=f"{site.url}/v", name="one", username="ann", password="pw")
    assert objects(remote(app, f"{site.url}/v/v.yaml#sha256={PIN}"))["app"]["data"]["a"] == "remote"
    assert objects(remote(app, f"{other.url}/v/v.yaml#sha256={PIN}"))["app"]["data"]["a"] == "remote"
    assert not other.sent_credentials()
    redirecting = serve(servers.files({"/v/v.yaml": f"->{other.url}/v/v.yaml".encode()}))
    app.secret("two", url=f"{redirecting.url}/v", name="two", username="ann", password="pw")
    assert objects(remote(app, f"{redirecting.url}/v/v.yaml#sha256={PIN}"))["app"]["data"]["a"] == "remote"
    assert redirecting.sent_credentials()
    assert not other.sent_credentials()


def test_what_a_server_does_wrong_is_said(app, serve):
    site = serve(servers.files({"/big": b"#" * (10 * 1024 * 1024 + 1)}))
    app.chart()
    assert failed(remote(app, f"{site.url}/none"), 3, f"{site.url}/none answers 404")
    assert failed(remote(app, f"{site.url}/big"), 3, "holds more than 10 MiB")
    port = servers.free_port()
    assert failed(remote(app, f"http://127.0.0.1:{port}/v"), 3, "cannot be reached: Connection refused")
    write(app.directory, {"values.yaml": "a: x\n"})


def test_a_values_file_of_another_kind_of_address_is_refused(app):
    app.chart()
    for name in (
        "oci://127.0.0.1:1/v",
        "file:///etc/passwd",
        "ftp://x/y",
        "http://user:pw@127.0.0.1:1/v",
        "gopher://x",
    ):
        done = remote(app, name)
        assert (done.returncode, done.stdout) == (3, ""), name
        assert "pw" not in done.stderr


def test_variables_of_the_source(app):
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\ndata: {a: {{ .Values.a }}}\n"
    app.chart(**{"templates/a.yaml": template, "one.yaml": "a: one\n", "two.yaml": "a: two\n"})
    env = {
        "ARGOCD_ENV_RELEASE_NAME": "rel",
        "ARGOCD_ENV_NAMESPACE": "there",
        "ARGOCD_ENV_VALUE_FILES": "one.yaml, two.yaml",
    }
    found = objects(app.generate(**env))
    assert found["rel"]["metadata"]["namespace"] == "there"
    assert found["rel"]["data"] == {"a": "two"}
    won = objects(
        app.generate(text("releaseName", "mine"), {"name": "valueFiles", "array": ["one.yaml"]}, **env)
    )
    assert won["mine"]["data"] == {"a": "one"}
    assert failed(
        app.generate(ARGOCD_ENV_NAMESPACE="A b"), 2, "source.plugin.env: NAMESPACE: the value is no name"
    )
    assert failed(app.generate(ARGOCD_ENV_VALUE_FILES="../../../etc/x"), 3, "leads out of the repository")


@pytest.mark.parametrize(
    "name", ["HELM_ARGS", "HELM_TEMPLATE_OPTIONS", "KUSTOMIZE_BUILD_OPTIONS", "helm_flags", "HELM_EXTRA_ARGS"]
)
def test_options_as_free_text_are_refused_with_a_reason(app, name):
    done = app.chart().generate(**{f"ARGOCD_ENV_{name}": "--post-renderer=/bin/sh"})
    assert failed(
        done,
        2,
        f"source.plugin.env: {name}: options as free text are not passed on, since they could run programs",
    )


def test_a_values_file_for_each_environment(app):
    """By Argo CD's variables in paths."""
    app.chart(**{"values-my-app.yaml": "a: mine\n", "envs/space.yaml": "a: space\n"})
    for name, wanted in (
        ("values-$ARGOCD_APP_NAME.yaml", "mine"),
        ("envs/${ARGOCD_APP_NAMESPACE}.yaml", "space"),
    ):
        done = app.generate({"name": "valueFiles", "array": [name]})
        assert objects(done)["app"]["data"]["a"] == wanted


def test_the_announcement_is_empty_where_there_is_no_chart(app):
    done = app.command("parameters", "--dynamic")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
