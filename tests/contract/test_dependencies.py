"""Dependencies that are not in charts/: brought as `helm dependency build` would, cached, and refused where it must be."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time

import pytest
import servers
import yaml
from applications import HELM, ROOT, TOOLS, run_helm, write

DB = {"name": "db", "version": "1.2.3"}


def stock(app, *arguments: str, url: str = "") -> str:
    """What Argo CD does with a copy of the checkout: `repo add`, `dependency build`, then `template`."""
    copy = app.top / "stock"
    shutil.copytree(app.root, copy)
    chart = copy / "apps" / "web"
    env = {
        "HELM_REPOSITORY_CONFIG": str(app.top / "repositories.yaml"),
        "HELM_REPOSITORY_CACHE": str(app.top / "indexes"),
    }
    if url:
        run_helm("repo", "add", "test", url, **env)
    run_helm("dependency", "build", chart, *arguments, **env)
    done = run_helm(
        "template",
        chart,
        "--name-template=my-app",
        "--namespace=space",
        "--kube-version=1.34.1",
        "--include-crds",
    )
    return done.stdout


def versions(output: str) -> dict[str, str]:
    found = [one for one in yaml.safe_load_all(output) if one]
    return {one["metadata"]["name"]: one["data"]["version"] for one in found}


def lock(app) -> None:
    """A lock by the real helm; the archives that it brings go away again."""
    run_helm("dependency", "update", app.directory)
    shutil.rmtree(app.directory / "charts")


def test_the_output_is_that_of_helm_dependency_build(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    app.chart(
        [
            {**DB, "repository": site.url},
            {"name": "web", "version": "0.1.0", "repository": site.url, "alias": "front"},
        ]
    )
    done = app.generate()
    assert done.returncode == 0, done.stderr
    assert done.stdout == stock(app)
    assert versions(done.stdout) == {"app": "1.0.0", "db": "1.2.3", "front": "0.1.0"}


def test_a_registry_gives_the_same(app, serve, packed):
    site = serve(servers.registry({"charts/db": {"1.2.3": packed["db-1.2.3.tgz"]}}))
    app.chart([{**DB, "repository": f"{site.oci}/charts"}]).secret("r", url=f"127.0.0.1:{site.port}/charts", name="r", enableOCI="true", insecureOCIForceHttp="true")  # fmt: skip
    done = app.generate()
    assert done.returncode == 0, done.stderr
    assert done.stdout == stock(app, "--plain-http")


def test_versions_of_the_lock_count(app, serve, repository_files, packed):
    site = serve(servers.files(repository_files))
    app.chart([{"name": "db", "version": "^1.0.0", "repository": site.url}])
    lock(app)
    assert versions(app.generate().stdout)["db"] == "1.3.0"
    path = app.directory / "Chart.lock"
    locked = yaml.safe_load(path.read_text())
    locked["dependencies"][0]["version"] = "1.2.3"
    from becalm.sources.requirements import digest

    wanted = yaml.safe_load((app.directory / "Chart.yaml").read_text())["dependencies"]
    locked["digest"] = digest([wanted, locked["dependencies"]])
    path.write_text(yaml.safe_dump(locked))
    done = app.generate(BECALM_STRICT="true")
    assert (done.returncode, done.stderr) == (0, "")
    assert versions(done.stdout)["db"] == "1.2.3"
    assert done.stdout == stock(app, url=site.url)  # so helm, too, takes the digest for right


def test_a_lock_out_of_sync_is_an_error_as_with_helm(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    app.chart([{"name": "db", "version": "^1.0.0", "repository": site.url}])
    lock(app)
    app.chart([{"name": "db", "version": "^1.1.0", "repository": site.url}])
    done = app.generate()
    assert done.returncode == 3
    assert done.stderr == (
        "Error: apps/web/Chart.lock: the lock is out of sync with Chart.yaml; "
        "run `helm dependency update` and commit what it writes\n"
    )
    assert "out of sync" in run_helm("dependency", "build", app.directory, check=False).stderr


@pytest.mark.parametrize("version", ["^1.0.0", "1.x", ">=1.0.0 <2.0.0 || 9.9.9", "~1", "*", "1.3", ""])
def test_a_range_without_a_lock_is_warned_of_and_strictly_refused(app, serve, repository_files, version):
    site = serve(servers.files(repository_files))
    app.chart([{"name": "db", "version": version, "repository": site.url}])
    done = app.generate()
    assert done.returncode == 0, done.stderr
    assert versions(done.stdout)["db"] == "1.3.0"
    assert done.stderr.startswith("Warning: apps/web/Chart.yaml: db: ")
    assert "can render differently tomorrow; run `helm dependency update`" in done.stderr
    site.asked.clear()
    done = app.generate(BECALM_STRICT="true")
    assert (done.returncode, done.stdout, site.asked) == (8, "", [])
    assert done.stderr.startswith("Error: apps/web/Chart.yaml: db: ")


def test_a_missing_lock_is_warned_of_and_strictly_refused(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    app.chart([{**DB, "repository": site.url}])
    done = app.generate()
    assert done.returncode == 0
    assert versions(done.stdout)["db"] == "1.2.3"
    assert (
        "db: 1.2.3 is not locked, so what the repository calls so can be another chart tomorrow; run `helm"
        in done.stderr
    )
    strict = app.generate(BECALM_STRICT="true")
    assert (strict.returncode, strict.stdout) == (8, "")
    lock(app)
    assert app.generate(BECALM_STRICT="true").stderr == ""


@pytest.mark.parametrize("helm", ["3.17.3", "4.1.4", "4.3.1"])
def test_every_supported_helm_brings_them(app, serve, repository_files, packed, helm):
    site = serve(servers.files(repository_files, "ann", "right"))
    oci = serve(servers.registry({"web": {"0.1.0": packed["web-0.1.0.tgz"]}}, user="ann", password="right"))
    app.chart([{**DB, "repository": site.url}, {"name": "web", "version": "0.1.0", "repository": oci.oci}])
    app.secret("a", url=site.url, name="a", username="ann", password="right")
    app.secret("b", url=oci.oci, name="b", username="ann", password="right", enableOCI="true", insecureOCIForceHttp="true")  # fmt: skip
    done = app.generate(BECALM_HELM=str(TOOLS / f"helm-{helm}" / "helm"))
    assert done.returncode == 0, done.stderr
    assert versions(done.stdout) == {"app": "1.0.0", "db": "1.2.3", "web": "0.1.0"}
    assert "right" not in done.stderr


def test_older_charts_have_requirements(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    app.chart()
    chart = app.directory / "Chart.yaml"
    chart.write_text(chart.read_text().replace("v2", "v1"))
    write(
        app.directory,
        {
            "requirements.yaml": json.dumps(
                {"dependencies": [{"name": "db", "version": "1.x", "repository": site.url}]}
            )
        },
    )
    lock(app)
    assert (app.directory / "requirements.lock").is_file()
    done = app.generate(BECALM_STRICT="true")
    assert done.returncode == 0, done.stderr
    assert done.stdout == stock(app, url=site.url)
    write(
        app.directory,
        {
            "requirements.yaml": json.dumps(
                {"dependencies": [{"name": "db", "version": "2.x", "repository": site.url}]}
            )
        },
    )
    assert "requirements.lock: the lock is out of sync with requirements.yaml" in app.generate().stderr


def test_a_disabled_dependency_is_brought_as_helm_wants_it(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    app.chart(
        [{**DB, "repository": site.url, "condition": "db.enabled"}],
        **{"values.yaml": "a: 1\ndb: {enabled: false}\n"},
    )
    done = app.generate()
    assert done.returncode == 0, done.stderr
    assert versions(done.stdout) == {"app": "1.0.0"}
    assert "/db-1.2.3.tgz" in site.paths()


@pytest.mark.parametrize("is_packed", [True, False])
def test_what_is_there_is_left_alone_whatever_its_version(app, packed, is_packed):
    """As helm: `charts/` is asked for names only, so a repository that is gone does not matter."""
    app.chart([{"name": "db", "version": "^9.0.0", "repository": f"http://127.0.0.1:{servers.free_port()}"}])
    (app.directory / "charts").mkdir()
    (app.directory / "charts" / "any.tgz").write_bytes(packed["db-1.2.3.tgz"])
    if not is_packed:
        subprocess.run(["tar", "xzf", "any.tgz"], cwd=app.directory / "charts", check=True)
        (app.directory / "charts" / "any.tgz").unlink()
    done = app.generate()
    assert (done.returncode, done.stderr) == (0, "")
    assert versions(done.stdout)["db"] == "1.2.3"


def test_only_what_is_missing_is_brought(app, serve, repository_files, packed):
    site = serve(servers.files(repository_files))
    app.chart([{**DB, "repository": site.url}, {"name": "web", "version": "0.1.0", "repository": site.url}])
    (app.directory / "charts").mkdir()
    (app.directory / "charts" / "db-1.3.0.tgz").write_bytes(packed["db-1.3.0.tgz"])
    assert app.generate().returncode == 0
    assert "/db-1.2.3.tgz" not in site.paths()


def test_an_ignore_file_does_not_hide_what_was_brought(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    app.chart([{**DB, "repository": site.url}], **{".helmignore": "*.tgz\ncharts/\n"})
    done = app.generate()
    assert done.returncode == 0, done.stderr
    assert versions(done.stdout)["db"] == "1.2.3"


def test_charts_of_the_repository(app):
    write(app.root / "libs" / "base", {"Chart.yaml": "apiVersion: v2\nname: base\nversion: 0.3.0\n", ".helmignore": "secret*\n", "secret.txt": "no", "values.yaml": "a: base\n", "templates/a.yaml": 'kind: ConfigMap\napiVersion: v1\nmetadata: {name: base}\ndata: {version: {{ .Chart.Version }}, secret: {{ .Files.Get "secret.txt" | quote }}}\n'})  # fmt: skip
    app.chart([{"name": "base", "version": "~0.3", "repository": "file://../../libs/base"}])
    done = app.generate(BECALM_STRICT="true")
    assert done.returncode == 0, done.stderr
    assert done.stdout == stock(app)
    app.chart([{"name": "base", "version": "~0.4", "repository": "file://../../libs/base"}])
    done = app.generate()
    assert done.returncode == 3
    assert "file://../../libs/base has version 0.3.0, which is not ~0.4" in done.stderr


def test_charts_of_the_repository_bring_their_own(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    nested = [
        {"name": "leaf", "version": "1.0.0", "repository": "file://../leaf"},
        {**DB, "repository": site.url},
    ]
    write(
        app.root / "libs" / "base",
        {"Chart.yaml": f"apiVersion: v2\nname: base\nversion: 0.3.0\ndependencies: {json.dumps(nested)}\n"},
    )
    write(
        app.root / "libs" / "leaf",
        {
            "Chart.yaml": "apiVersion: v2\nname: leaf\nversion: 1.0.0\n",
            "templates/a.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: leaf}\ndata: {version: x}\n",
        },
    )
    app.chart([{"name": "base", "version": "0.3.0", "repository": "file://../../libs/base"}])
    done = app.generate()
    assert done.returncode == 0, done.stderr
    assert set(versions(done.stdout)) == {"app", "leaf", "db"}


@pytest.mark.parametrize("path", ["../../../outside", "/etc", "../../link", ".", "", "../../../../../../etc", "../web", "../../../repository-2"])  # fmt: skip
def test_no_chart_outside_of_the_repository_is_packed(app, path):
    write(
        app.top / "outside",
        {"Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.2.3\n", "templates/a.yaml": "stolen: true\n"},
    )
    shutil.copytree(app.top / "outside", app.top / "repository-2")
    (app.root / "link").symlink_to(app.top / "outside")
    app.chart([{**DB, "repository": f"file://{path}"}])
    done = app.generate()
    assert done.returncode == 3
    assert "leads out of the repository, or to the chart itself" in done.stderr
    assert "stolen" not in done.stdout + done.stderr


def test_charts_that_depend_on_each_other_come_to_an_end(app):
    for name, other in (("one", "two"), ("two", "one")):
        one = [{"name": other, "version": "1.0.0", "repository": f"file://../{other}"}]
        write(
            app.root / "libs" / name,
            {
                "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\ndependencies: {json.dumps(one)}\n"
            },
        )
    app.chart([{"name": "one", "version": "1.0.0", "repository": "file://../../libs/one"}])
    done = app.generate()
    assert done.returncode == 3
    assert "depends on itself" in done.stderr


def test_by_hand_the_root_can_be_given(app):
    write(app.root / "libs" / "base", {"Chart.yaml": "apiVersion: v2\nname: base\nversion: 0.3.0\n"})
    app.chart([{"name": "base", "version": "0.3.0", "repository": "file://../../libs/base"}])
    assert "leads out of the repository" in app.render().stderr
    done = app.render("--root", str(app.root))
    assert done.returncode == 0, done.stderr


def test_values_that_are_drawn_in_a_dependency_are_stable(app):
    write(
        app.root / "libs" / "base",
        {
            "Chart.yaml": "apiVersion: v2\nname: base\nversion: 0.3.0\n",
            "templates/a.yaml": "kind: Secret\napiVersion: v1\nmetadata: {name: s}\nstringData: {p: {{ randAlphaNum 20 }}}\n",
        },
    )
    app.chart([{"name": "base", "version": "0.3.0", "repository": "file://../../libs/base"}])
    seed = app.top / "seed"
    seed.touch(mode=0o600)
    seed.write_bytes(bytes(range(32)))
    outputs = {app.generate(BECALM_SEED_FILE=str(seed)).stdout for _ in range(2)}
    assert len(outputs) == 1
    assert "kind: Secret" in outputs.pop()
    argv = [
        sys.executable,
        "-m",
        "becalm",
        "verify",
        str(app.directory),
        "--app=a",
        "--namespace=n",
        "--helm",
        str(HELM),
        f"--root={app.root}",
        f"--seed={seed}",
    ]
    done = subprocess.run(argv, env=app.env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "randAlphaNum" in done.stdout


def test_the_cache_serves_when_the_server_is_gone(app, serve, repository_files, packed):
    site = serve(servers.files(repository_files))
    oci = serve(servers.registry({"web": {"0.1.0": packed["web-0.1.0.tgz"]}}))
    app.chart([{**DB, "repository": site.url}, {"name": "web", "version": "0.1.0", "repository": oci.oci}])
    app.secret("b", url=oci.oci, name="b", enableOCI="true", insecureOCIForceHttp="true")
    first = app.generate()
    site.close()
    oci.close()
    second = app.generate()
    assert first.returncode == second.returncode == 0, second.stderr
    assert first.stdout == second.stdout
    site.close = oci.close = lambda: None


def test_what_is_corrupt_in_the_cache_is_fetched_again(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    app.chart([{**DB, "repository": site.url}])
    first = app.generate()
    (archive,) = (app.top / "cache" / "charts" / "archives").iterdir()
    assert archive.name == f"{hashlib.sha256(archive.read_bytes()).hexdigest()}.tgz"
    archive.write_bytes(archive.read_bytes()[:-1] + b"x")
    asked = len(site.asked)
    assert app.generate().stdout == first.stdout
    assert len(site.asked) > asked
    assert archive.name == f"{hashlib.sha256(archive.read_bytes()).hexdigest()}.tgz"
    for entry in (app.top / "cache" / "charts" / "index").iterdir():
        entry.write_text("../../../etc/passwd")
    assert app.generate().stdout == first.stdout


def test_renders_at_the_same_time_do_not_disturb_each_other(app, serve, repository_files):
    site = serve(servers.files(repository_files))
    app.chart([{**DB, "repository": site.url}])
    argv = [sys.executable, "-m", "becalm", "generate"]
    running = [
        subprocess.Popen(argv, cwd=app.directory, env=app.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    outputs = [child.communicate(timeout=60) for child in running]
    assert [child.returncode for child in running] == [0] * 4, outputs
    assert len({output for output, _ in outputs}) == 1
    assert len(list((app.top / "cache" / "charts" / "archives").iterdir())) == 1
    assert not list(app.top.glob("becalm-*"))


def broken(files: dict[str, bytes], **changed: bytes) -> dict[str, bytes]:
    return {**files, **{f"/{name}": data for name, data in changed.items()}}


def test_an_archive_that_is_not_that_of_the_index_is_refused(app, serve, repository_files, packed):
    site = serve(servers.files(broken(repository_files, **{"db-1.2.3.tgz": packed["db-1.2.3.tgz"] + b"\0"})))
    app.chart([{**DB, "repository": site.url}])
    done = app.generate()
    assert done.returncode == 3
    assert "sent an archive that does not have the digest of its index" in done.stderr
    assert not list((app.top / "cache" / "charts" / "archives").iterdir())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("other", "sent another chart, web"),
        ("newer", "sent version 1.3.0 instead"),
        ("climbing", "leads out of the archive with .."),
        ("text", "this is neither a chart directory nor a .tgz archive"),
        ("link", "is a symbolic link"),
    ],
)
def test_an_archive_that_is_something_else_is_refused(app, serve, repository_files, packed, data, words):
    import io
    import tarfile

    def archive(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            text = b"apiVersion: v2\nname: db\nversion: 1.2.3\n"
            entry = tarfile.TarInfo("db/Chart.yaml")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
            bad = tarfile.TarInfo(name)
            bad.type, bad.linkname = kind, "/etc/passwd"
            tar.addfile(bad)
        return buffer.getvalue()

    content = {
        "other": packed["web-0.1.0.tgz"], "newer": packed["db-1.3.0.tgz"], "text": b"<html>",
        "climbing": archive("db/../../../evil"), "link": archive("db/link", tarfile.SYMTYPE),
    }[data]  # fmt: skip
    index = yaml.safe_load(repository_files["/index.yaml"])
    for entry in index["entries"]["db"]:
        entry.pop("digest")
    site = serve(
        servers.files(
            broken(
                repository_files, **{"db-1.2.3.tgz": content, "index.yaml": yaml.safe_dump(index).encode()}
            )
        )
    )
    app.chart([{**DB, "repository": site.url}])
    done = app.generate()
    assert done.returncode == 3
    assert words in done.stderr
    assert not list((app.top / "cache" / "charts" / "archives").iterdir())


def test_a_dead_repository_is_named_at_once(app):
    port = servers.free_port()
    app.chart([{**DB, "repository": f"http://127.0.0.1:{port}/charts"}])
    done = app.generate()
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == (
        f"Error: apps/web/Chart.yaml: db: db 1.2.3: http://127.0.0.1:{port}/charts cannot be reached; "
        "check the address, and the network of the sidecar"
    )


@pytest.mark.parametrize("scheme", ["http", "oci"])
def test_a_server_that_never_answers_is_named_within_the_time_limit(app, scheme):
    with servers.silent() as port:
        app.chart([{**DB, "repository": f"{scheme}://127.0.0.1:{port}/charts"}])
        started = time.monotonic()
        done = app.render("--timeout=3", f"--root={app.root}")
        assert time.monotonic() - started < 10
    assert done.returncode == 6
    assert f"{scheme}://127.0.0.1:{port}/charts did not send db 1.2.3 within 3 s" in done.stderr


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("db", "7.7.7", "db 7.7.7: {} has no version that fits"),
        ("none", "1.0.0", "none 1.0.0: {} does not have it"),
    ],
)
def test_what_a_repository_does_not_have_is_said(app, serve, repository_files, packed, name, version, words):
    site = serve(servers.files(repository_files))
    app.chart([{"name": name, "version": version, "repository": site.url}])
    done = app.generate()
    assert done.returncode == 3
    assert words.format(site.url) in done.stderr
    oci = serve(servers.registry({"db": {"1.2.3": packed["db-1.2.3.tgz"]}}))
    app.secret("b", url=oci.oci, name="b", enableOCI="true", insecureOCIForceHttp="true")
    app.chart([{"name": name, "version": version, "repository": oci.oci}])
    done = app.generate()
    assert done.returncode == 3
    assert f"{name} {version}: {oci.oci} does not have it" in done.stderr


def test_no_network_is_needed_when_nothing_is_missing(app, packed):
    """In a namespace without any network; and an audit hook sees that Python opens no socket."""
    alone = ["unshare", "-rn"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this kernel gives no network namespace to a user")
    app.chart([{**DB, "repository": "https://charts.invalid"}])
    (app.directory / "charts").mkdir()
    (app.directory / "charts" / "db-1.2.3.tgz").write_bytes(packed["db-1.2.3.tgz"])
    code = (
        "import sys\n"
        "def hook(event, _):\n"
        "    if event.startswith('socket.'): sys.stderr.write(event + '\\n')\n"
        "sys.addaudithook(hook)\n"
        "from becalm.__main__ import main\n"
        "sys.argv = ['becalm', 'generate']\n"
        "code = main()\n"
        "bad = {'socket', 'ssl', 'urllib.request', 'becalm.sources.download', 'becalm.sources.credentials'} & set(sys.modules)\n"
        "sys.stderr.write(''.join(sorted(bad)))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [*alone, sys.executable, "-c", code],
        cwd=app.directory,
        env=app.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert versions(done.stdout) == {"app": "1.0.0", "db": "1.2.3"}
    (app.directory / "charts" / "db-1.2.3.tgz").unlink()
    done = subprocess.run(
        [*alone, sys.executable, "-m", "becalm", "generate"],
        cwd=app.directory,
        env=app.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert "https://charts.invalid cannot be reached" in done.stderr
    assert ROOT.is_dir()
