"""The cache of renders: hits only where every input is the same, nothing in clear text, and no harm from any fault."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from applications import TOOLS, text, write
from children import inside
from services import CHART, Sidecar

from becalm.answers import answering as answers
from becalm.answers import key as keys
from becalm.answers import store
from becalm.config.keeping import Keeping
from becalm.derive.seed import Seed

KUBECTL = TOOLS / "kubectl-1.37.1" / "kubectl"


class Kept(Sidecar):
    """Renders in this process, with a count of what really ran."""

    def __init__(self, top: Path, monkeypatch) -> None:
        super().__init__(top)
        self.runs = 0
        self.parameters: list[dict] = []
        render = answers.render

        def counted(request, *more):
            self.runs += 1
            return render(request, *more)

        monkeypatch.setattr(answers, "render", counted)
        monkeypatch.setattr("becalm.derive.clock.now", lambda: self.now)
        self.now = 1_800_000_000

    def render(self, *parameters: dict, **variables: str):
        env = {**self.env, "ARGOCD_APP_PARAMETERS": json.dumps([*self.parameters, *parameters]), **variables}
        return inside(["generate"], cwd=self.app, env=env)

    def is_hit(self, *parameters: dict, **variables: str) -> bool:
        before = self.runs
        done = self.render(*parameters, **variables)
        assert done.returncode == 0, done.stderr
        return self.runs == before

    @property
    def renders(self) -> Path:
        return self.top / "cache" / "renders"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    return Kept(tmp_path, monkeypatch)


def test_the_same_inputs_are_rendered_once(kept):
    first = kept.render()
    second = kept.render()
    assert (first.returncode, first.stderr, first.stdout) == (0, "", second.stdout)
    assert kept.runs == 1


def test_times_of_files_and_the_place_of_the_checkout_do_not_matter(kept):
    kept.render()
    for path in kept.root.rglob("*"):
        os.utime(path, (1, 1))
    other = kept.top / "elsewhere"
    kept.root.rename(other)
    kept.root, kept.app = other, other / "apps" / "web"
    assert kept.is_hit(ARGOCD_APP_REVISION="another", KUBE_SERVICE_HOST="x", HOME="/elsewhere")


CHANGES = {
    "a template": lambda kept: write(
        kept.app, {"templates/b.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: b}\n"}
    ),
    "a value": lambda kept: write(kept.app, {"values.yaml": "a: other\n"}),
    "the name of a file": lambda kept: (kept.app / "templates/a.yaml").rename(kept.app / "templates/c.yaml"),
    "an ignored file": lambda kept: write(kept.app, {".helmignore": "x*\n"}),
    "a file of the chart": lambda kept: write(kept.app, {"files/x.txt": "x"}),
    "a link": lambda kept: (kept.app / "link").symlink_to("values.yaml"),
    "a packed dependency": lambda kept: write(
        kept.app, {"charts/x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n"}
    ),
    "rules of the app": lambda kept: write(kept.app, {".becalm.yaml": "switches: [-core]\n"}),
    "a values file": lambda kept: write(kept.app, {"env.yaml": "a: changed\n"}),
    "a file of fileParameters": lambda kept: write(kept.app, {"text.txt": "changed"}),
    "the seed": lambda kept: Path(kept.env["BECALM_SEED_FILE"]).write_bytes(bytes(range(1, 33))),
    "rules of the operator": lambda kept: write(kept.top, {"rules/a.yaml": RULES.replace("one", "two")}),
    "definitions": lambda kept: write(
        kept.top, {"definitions/a.yaml": "apiVersion: v1\nkind: List\nitems: []\n# x\n"}
    ),
}
RULES = """\
pack: own
title: Ours
rules:
  - id: one
    reason: Something else writes it.
    evidence: [ours]
    first_sync: nothing
    match: [{group: "", kind: Secret}]
    strip: [metadata.annotations]
    when: {value: empty}
"""


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_a_file_that_counts_is_no_hit(kept, change):
    write(kept.app, {"env.yaml": "a: env\n", "text.txt": "text"})
    write(kept.top, {"definitions/a.yaml": "apiVersion: v1\nkind: List\nitems: []\n"})
    kept.parameters = [
        {"name": "valueFiles", "array": ["env.yaml"]},
        {"name": "fileParameters", "map": {"b": "text.txt"}},
    ]
    kept.env["BECALM_DEFINITIONS_DIR"] = str(kept.top / "definitions")
    write(kept.top, {"rules/a.yaml": RULES})
    kept.env["BECALM_RULES_DIR"] = str(kept.top / "rules")
    kept.render()
    assert kept.is_hit()
    CHANGES[change](kept)
    before_runs = kept.runs
    kept.render()
    assert kept.runs == before_runs + 1


@pytest.mark.parametrize(
    "given",
    [
        {"ARGOCD_APP_NAME": "other"}, {"ARGOCD_APP_PROJECT_NAME": "other"}, {"ARGOCD_APP_NAMESPACE": "other"}, {"KUBE_VERSION": "1.33.0"},
        {"KUBE_API_VERSIONS": "v1,example.com/v1"}, {"BECALM_CLUSTER": "two"}, {"BECALM_INSTANT": "2025-01-01T00:00:00Z"},
        {"BECALM_RULES": "-core"}, {"BECALM_APP_RULES": "none"}, {"BECALM_CERTIFICATE_WINDOW": "1/4"}, {"BECALM_STRICT": "true"},
        {"ARGOCD_ENV_BECALM_INSTANT": "2025-02-01T00:00:00Z"}, {"BECALM_HELM": str(TOOLS / "helm-4.3.1" / "helm")},
        *(text(name, value) for name, value in (
            ("releaseName", "r"), ("namespace", "n"), ("values", "a: x"), ("kubeVersion", "1.31.0"), ("skipCrds", "true"), ("skipTests", "true"),
            ("skipSchemaValidation", "true"), ("becalm.epoch", "2"),
        )),
        {"name": "parameters", "map": {"a": "1"}}, {"name": "stringParameters", "map": {"a": "1"}}, {"name": "apiVersions", "array": ["x/v1"]},
        {"name": "becalm.epochs", "map": {"Secret/pw/pw": "2"}}, {"name": "becalm.rules", "array": ["-core"]},
    ],
    ids=str,
)  # fmt: skip
def test_what_changes_a_setting_that_counts_is_no_hit(kept, given):
    kept.render()
    parameters, variables = ([given], {}) if "name" in given else ([], given)
    assert not kept.is_hit(*parameters, **variables)
    assert kept.is_hit(*parameters, **variables)
    assert kept.is_hit()


def test_every_field_of_a_request_counts_or_is_left_out_on_purpose():
    from dataclasses import fields

    from becalm.request import Request

    counted = {
        "application", "instant", "windows", "epoch", "item_epochs", "operator", "app", "by_hand", "app_scope", "strict", "directory",
        "source", "kustomize", "pins", "looking",
    }  # fmt: skip
    assert {one.name for one in fields(Request)} == counted | keys._LEFT_OUT


KUSTOMIZATION = "resources: [../../base]\nconfigMapGenerator: [{name: c, files: [k=data.txt]}]\npatches: [{path: p.yaml}]\n"
BASE = {
    "base/kustomization.yaml": "resources: [a.yaml]\n",
    "base/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n",
    "apps/web/data.txt": "data\n",
    "apps/web/p.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {p: q}\n",
    "other/x.yaml": "unrelated\n",
}


@pytest.fixture
def kustomized(kept):
    shutil.rmtree(kept.app)
    write(kept.root, {**BASE, "apps/web/kustomization.yaml": KUSTOMIZATION})
    kept.env["BECALM_KUSTOMIZE"] = str(KUBECTL)
    return kept


@pytest.mark.parametrize(
    "file",
    [
        "base/a.yaml",
        "base/kustomization.yaml",
        "apps/web/data.txt",
        "apps/web/p.yaml",
        "apps/web/kustomization.yaml",
    ],
)
def test_a_kustomization_depends_on_the_files_that_it_reads(kustomized, file):
    kustomized.render()
    write(kustomized.root, {"other/x.yaml": "changed\n", "apps/other/new.yaml": "x\n"})
    assert kustomized.is_hit()
    path = kustomized.root / file
    path.write_text(path.read_text() + "# changed\n")
    assert not kustomized.is_hit()


def test_a_kustomization_with_generators_depends_on_the_whole_repository(kustomized):
    generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: [k=data.txt]\n"
    write(
        kustomized.root,
        {
            "apps/web/g.yaml": generator,
            "apps/web/kustomization.yaml": KUSTOMIZATION + "generators: [g.yaml]\n",
        },
    )
    kustomized.render()
    assert kustomized.is_hit()
    write(kustomized.root, {"other/x.yaml": "changed\n"})
    assert not kustomized.is_hit()


@pytest.mark.parametrize(
    "parameter",
    [
        text("namePrefix", "x-"),
        {"name": "images", "array": ["a:1"]},
        {"name": "commonLabels", "map": {"a": "$ARGOCD_APP_REVISION"}},
    ],
)
def test_parameters_of_kustomize_count(kustomized, parameter):
    kustomized.render()
    assert not kustomized.is_hit(parameter)
    assert kustomized.is_hit(parameter)
    assert kustomized.is_hit(parameter, ARGOCD_APP_REVISION="2") == ("map" not in parameter)


def test_links_that_change_places_count(kustomized):
    kustomization = "configMapGenerator: [{name: c, files: [k=one, j=two]}]\n"
    write(
        kustomized.root,
        {"apps/web/kustomization.yaml": kustomization, "apps/web/x": "x\n", "apps/web/y": "y\n"},
    )
    (kustomized.app / "one").symlink_to("x")
    (kustomized.app / "two").symlink_to("y")
    kustomized.render()
    assert kustomized.is_hit()
    for name, target in (("one", "y"), ("two", "x")):
        (kustomized.app / name).unlink()
        (kustomized.app / name).symlink_to(target)
    assert not kustomized.is_hit()


def test_a_generator_at_the_root_can_read_what_git_has(kustomized):
    generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: [k=%s]\n"
    files = {
        "kustomization.yaml": "generators: [g.yaml]\n",
        "data.txt": "x\n",
        "g.yaml": generator % ".git/HEAD",
    }
    write(kustomized.root, {**files, ".git/HEAD": "one\n"})
    kustomized.app = kustomized.root
    kustomized.env["ARGOCD_APP_SOURCE_PATH"] = "."
    kustomized.render()
    assert kustomized.is_hit()
    write(kustomized.root, {".git/HEAD": "two\n"})
    assert not kustomized.is_hit()
    write(kustomized.root, {"g.yaml": generator % "data.txt"})
    kustomized.render()
    write(kustomized.root, {".git/HEAD": "three\n"})
    assert kustomized.is_hit()


def test_a_chart_that_shows_git_to_its_templates_depends_on_it(kept):
    shutil.rmtree(kept.root)
    reads = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: {{ .Files.Get ".git/HEAD" | quote }}}\n'
    write(kept.root, {**CHART, "templates/b.yaml": reads, ".git/HEAD": "one"})
    kept.app = kept.root
    kept.env["ARGOCD_APP_SOURCE_PATH"] = "."
    assert "one" in kept.render().stdout
    assert kept.is_hit()
    write(kept.root, {".git/HEAD": "two"})
    assert "two" in kept.render().stdout
    write(kept.root, {".helmignore": ".git/\n"})
    kept.render()
    write(kept.root, {".git/HEAD": "three"})
    assert kept.is_hit()


LIBRARY = {
    "lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\n",
    "lib/templates/l.yaml": BASE["base/a.yaml"],
}
DEPENDS = (
    "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: lib, version: 1.0.0, repository: %s}]\n"
)
ELSEWHERE = "file://../../lib"
SPELLED = {
    "plainly": ELSEWHERE,
    "escaped": '"file:\\x2f\\x2f../../lib"',
    "in base64": f"!!binary {base64.b64encode(ELSEWHERE.encode()).decode()}",
}


@pytest.mark.parametrize("spelling", SPELLED)
def test_a_chart_depends_on_directories_that_it_names(kept, spelling):
    write(kept.root, {**LIBRARY, "apps/web/Chart.yaml": DEPENDS % SPELLED[spelling]})
    assert kept.render().stdout.count("kind: ConfigMap") == 1
    write(kept.root, {"lib/templates/l.yaml": BASE["base/a.yaml"].replace("a: b", "a: changed")})
    assert "a: changed" in kept.render().stdout


def test_a_lock_can_name_directories_as_well(kept):
    from becalm.sources import requirements

    one = {"name": "lib", "version": "1.0.0", "repository": "https://charts.example"}
    other = {**one, "repository": ELSEWHERE}
    lock = {"dependencies": [other], "digest": requirements.digest([[one], [other]])}
    write(
        kept.root,
        {
            **LIBRARY,
            "apps/web/Chart.yaml": DEPENDS % one["repository"],
            "apps/web/Chart.lock": json.dumps(lock),
        },
    )
    first = kept.render()
    assert first.stdout.count("kind: ConfigMap") == 1
    write(kept.root, {"lib/templates/l.yaml": BASE["base/a.yaml"].replace("a: b", "a: changed")})
    assert "a: changed" in kept.render().stdout


@pytest.mark.parametrize("variable", ["BECALM_REPOSITORY_CONFIG", "BECALM_REPOSITORIES_DIR"])
def test_what_aliases_of_repositories_mean_counts(kept, variable):
    place = kept.top / "repositories"
    file = place / "a.yaml" if variable.endswith("DIR") else place
    write(kept.top, {str(file.relative_to(kept.top)): "repositories: []\n"})
    kept.env[variable] = str(place)
    kept.render()
    assert kept.is_hit()
    write(kept.top, {str(file.relative_to(kept.top)): "repositories: []\n# x\n"})
    assert not kept.is_hit()


def test_a_file_of_rules_is_none_of_definitions(kept):
    from dataclasses import replace

    from becalm import wiring

    file = kept.top / "x.yaml"
    file.write_text("x")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(kept.app)
        for name, value in kept.env.items():
            patch.setenv(name, value)
        request = wiring.from_environment()
    found = [keys.of(replace(request, **{field: (file,)})) for field in ("rule_files", "definitions")]
    assert found[0].digest != found[1].digest


def test_what_was_replaced_during_the_render_is_not_kept(kept, monkeypatch):
    write(kept.top, {"rules/a.yaml": RULES})
    kept.env["BECALM_RULES_DIR"] = str(kept.top / "rules")
    render = answers.render

    def late(request, *more):
        write(kept.top, {"rules/a.yaml": RULES.replace("one", "two")})
        return render(request, *more)

    with monkeypatch.context() as patch:
        patch.setattr(answers, "render", late)
        assert kept.render().returncode == 0
    write(kept.top, {"rules/a.yaml": RULES})
    assert not kept.is_hit()
    assert kept.is_hit()


@pytest.mark.parametrize("name", ["a.py", "templates/a.toml", "templates/a.tpl", "web/a.html"])
def test_every_file_of_becalm_counts(tmp_path, monkeypatch, name):
    write(tmp_path, {name: "one"})
    monkeypatch.setattr(keys, "_PACKAGE", tmp_path)
    first = keys.own.__wrapped__()
    write(tmp_path, {"__pycache__/a.pyc": "x"})
    assert keys.own.__wrapped__() == first
    write(tmp_path, {name: "two"})
    assert keys.own.__wrapped__() != first


@pytest.mark.parametrize("library", keys._LIBRARIES)
def test_libraries_that_write_output_count(monkeypatch, library):
    from importlib import metadata

    first = keys.own.__wrapped__()
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0" if name == library else version(name))
    assert keys.own.__wrapped__() != first


def test_a_plain_directory_depends_on_its_files(kept):
    shutil.rmtree(kept.app)
    write(kept.root, {"apps/web/a.yaml": BASE["base/a.yaml"], "apps/web/deep/b.yaml": BASE["base/a.yaml"]})
    kept.render()
    write(kept.root, {"apps/web/deep/b.yaml": "changed\n"})
    assert kept.is_hit()
    assert not kept.is_hit(text("directory.recurse", "true"))
    write(kept.root, {"apps/web/a.yaml": BASE["base/a.yaml"] + "# x\n"})
    assert not kept.is_hit()


def test_an_entry_ends_with_the_first_window_in_it(kept):
    certificate = '{{ $c := genSelfSignedCert "x" nil nil 90 }}\napiVersion: v1\nkind: Secret\nmetadata: {name: tls}\nstringData: {crt: {{ $c.Cert | quote }}}\n'
    write(kept.app, {"templates/tls.yaml": certificate})
    first = kept.render().stdout
    day = 86_400
    hits = []
    for days in range(1, 32):
        kept.now = 1_800_000_000 + days * day
        hits.append(kept.is_hit())
    # A window is a third of 90 days, so there is one change in 30, and everything else is kept.
    assert 1 <= hits.count(False) <= 2
    assert kept.render().stdout != first
    kept.now = 1_800_000_000 - 40 * day
    assert not kept.is_hit()


def test_a_clock_that_jumps_back_gives_no_entry_of_the_future(kept):
    kept.render()
    kept.now -= 3600
    assert not kept.is_hit()
    assert kept.is_hit()


def test_errors_are_not_kept(kept):
    write(kept.app, {"templates/b.yaml": '{{ fail "no" }}'})
    for _ in range(2):
        assert kept.render().returncode == 5
    assert kept.runs == 2


def test_warnings_come_back_and_what_is_not_pinned_is_kept_as_long_as_the_operator_says(kept, monkeypatch):
    from dataclasses import replace

    from becalm.errors import Warned

    render = answers.render
    warned = Warned("may be another tomorrow", where="x", hint="pin it")
    monkeypatch.setattr(
        answers, "render", lambda request, *more: replace(render(request, *more), warnings=(warned,))
    )
    for _ in range(2):
        assert kept.render().stderr == "Warning: x: may be another tomorrow; pin it\n"
    assert kept.runs == 2
    limited = {"BECALM_UNPINNED_SECONDS": "60"}
    kept.render(**limited)
    kept.now += 59
    assert kept.is_hit(**limited)
    assert kept.render(**limited).stderr == "Warning: x: may be another tomorrow; pin it\n"
    kept.now += 1
    assert not kept.is_hit(**limited)


def test_what_is_not_pinned_ends_with_the_first_window_as_well(kept, monkeypatch):
    from dataclasses import replace

    from becalm.errors import Warned

    render = answers.render
    warned = Warned("may be another tomorrow", where="x", hint="pin it")
    monkeypatch.setattr(
        answers, "render", lambda request, *more: replace(render(request, *more), warnings=(warned,))
    )
    certificate = '{{ $c := genSelfSignedCert "x" nil nil 90 }}\napiVersion: v1\nkind: Secret\nmetadata: {name: tls}\nstringData: {crt: {{ $c.Cert | quote }}}\n'
    write(kept.app, {"templates/tls.yaml": certificate})
    days = 86_400
    limited = {"BECALM_UNPINNED_SECONDS": str(365 * days)}
    found = []
    for day in range(0, 31, 5):
        kept.now = 1_800_000_000 + day * days
        output = kept.render(**limited).stdout
        assert output == kept.render(BECALM_CACHE_DIR="off").stdout
        found.append(output)
    assert len(set(found)) == 2


def test_without_a_seed_nothing_is_kept(kept):
    write(kept.app, {"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"})
    del kept.env["BECALM_SEED_FILE"]
    assert not kept.is_hit()
    assert not kept.is_hit()
    assert not kept.renders.exists()


def test_nothing_is_there_in_clear_text(kept):
    planted = "planted-secret-value"
    output = kept.render(text("values", f"a: {planted}\n")).stdout
    password = output.partition("pw: ")[2].split()[-1].strip('"}')
    assert planted in output
    seed = Path(kept.env["BECALM_SEED_FILE"]).read_bytes()
    files = [path for path in (kept.top / "cache").rglob("*") if path.is_file()]
    assert files
    for path in files:
        data = path.read_bytes() + path.name.encode()
        for secret in (
            planted.encode(),
            password.encode(),
            base64.b64encode(planted.encode()),
            seed,
            b"kind",
            b"my-app",
        ):
            assert secret not in data
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[:10], lambda data: data[:-1], lambda data: data + b"x", lambda data: bytes([data[0] ^ 1]) + data[1:],
    lambda data: data[:8] + b"\xff" * 8 + data[16:], lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], lambda data: b"\0" * len(data),
])  # fmt: skip
def test_what_is_damaged_is_made_anew_and_told(kept, damage):
    first = kept.render()
    (entry,) = kept.renders.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    done = kept.render()
    assert (done.returncode, done.stdout) == (0, first.stdout)
    assert done.stderr == "Warning: an entry of the cache's directory was damaged, and is made anew\n"
    assert kept.runs == 2
    assert entry.read_bytes() != damage(whole)
    assert kept.is_hit()
    assert kept.render().stderr == ""


def test_an_entry_of_another_name_or_seed_is_damaged(kept):
    kept.render()
    (entry,) = kept.renders.iterdir()
    data = entry.read_bytes()
    kept.render(text("releaseName", "x"))
    (other,) = [path for path in kept.renders.iterdir() if path != entry]
    other.write_bytes(data)
    assert "was damaged" in kept.render(text("releaseName", "x")).stderr


def test_faults_of_the_disk_cost_time_only(kept, monkeypatch):
    expected = kept.render().stdout
    shutil.rmtree(kept.top / "cache")
    assert kept.render().stdout == expected
    kept.renders.chmod(0o755)
    assert not kept.is_hit()
    assert "is open to others (mode 0755), so nothing is kept there; name a directory" in kept.render().stderr
    kept.renders.chmod(0o700)

    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    shutil.rmtree(kept.top / "cache")
    with monkeypatch.context() as patched:
        patched.setattr("becalm.config.private.tempfile.mkstemp", full)
        for _ in range(2):
            done = kept.render()
            assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")
    shutil.rmtree(kept.top / "cache")
    (kept.top / "cache").write_text("a file in its place")
    assert kept.render().stdout == expected


def test_it_does_not_grow_above_its_limit(tmp_path):
    keeping = Keeping(directory=tmp_path / "cache", bytes=40_000)
    kept = store.Store(keeping, Seed(secret=bytes(32)))
    import hashlib

    for number in range(300):
        content = json.dumps([hashlib.sha512(str(number).encode()).hexdigest() * 8, {}])
        kept.put(number.to_bytes(32, "big"), store.Entry(made=0, until=100, content=content))
    sizes = [path.stat().st_size for path in (tmp_path / "cache" / "renders").iterdir()]
    assert sum(sizes) < 80_000
    assert kept.get((299).to_bytes(32, "big"), at=5) is not None


class FakeRedis(socketserver.ThreadingTCPServer):
    """As much of Redis as is used here, on the loopback interface."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.data: dict[bytes, tuple[bytes, float]] = {}
        self.commands: list[list[bytes]] = []
        self.is_silent = False
        self.nonsense: list[bytes] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.server_address[1]}/0"


class _Talk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server: FakeRedis = self.server  # type: ignore[assignment]
        while line := self.rfile.readline():
            words = []
            for _ in range(int(line[1:])):
                size = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(size + 2)[:-2])
            server.commands.append(words)
            if server.is_silent:
                time.sleep(3)
                return
            name = words[0].upper()
            if name in (b"GET", b"SET") and server.nonsense:
                with contextlib.suppress(OSError):
                    for piece in server.nonsense:
                        self.wfile.write(piece)
                        time.sleep(0.1 if len(server.nonsense) > 1 else 0)
                return
            if name == b"GET":
                value, until = server.data.get(words[1], (b"", 0.0))
                self.wfile.write(
                    b"$%d\r\n%s\r\n" % (len(value), value) if time.time() < until else b"$-1\r\n"
                )
            elif name == b"SET":
                assert words[3].upper() == b"EX"
                server.data[words[1]] = (words[2], time.time() + int(words[4]))
                self.wfile.write(b"+OK\r\n")
            else:
                self.wfile.write(b"+OK\r\n")


@pytest.fixture
def redis():
    from becalm.answers import shared

    shared._client.cache_clear()
    server = FakeRedis()
    yield server
    server.shutdown()
    server.server_close()


def test_replicas_share_by_redis(kept, redis):
    shared = {"BECALM_REDIS_URL": redis.url, "BECALM_REDIS_PASSWORD": "word"}
    first = kept.render(**shared)
    (name,) = redis.data
    assert name.startswith(b"becalm:answer:")
    assert b"pw" not in redis.data[name][0]
    assert any(words[0].upper() == b"AUTH" and words[-1] == b"word" for words in redis.commands)
    # Another replica has a disk of its own.
    shutil.rmtree(kept.top / "cache")
    second = kept.render(**shared)
    assert (second.stdout, second.stderr, kept.runs) == (first.stdout, "", 1)
    redis.data.clear()
    assert kept.is_hit(**shared)
    without = {**shared, "BECALM_CACHE_DIR": "off"}
    assert not kept.is_hit(**without)
    assert kept.is_hit(**without)


@pytest.mark.parametrize("fault", ["gone", "silent", "damaged", "closed"])
def test_faults_of_redis_cost_time_only(kept, redis, fault):
    settings = {"BECALM_REDIS_URL": redis.url, "BECALM_CACHE_DIR": "off"}
    expected = kept.render(**settings)
    if fault == "gone":
        settings["BECALM_REDIS_URL"] = "redis://127.0.0.1:1/0"
    elif fault == "silent":
        redis.is_silent = True
    elif fault == "damaged":
        for name, (value, until) in list(redis.data.items()):
            redis.data[name] = (value[:-1], until)
    else:
        redis.shutdown()
        redis.server_close()
    started = time.monotonic()
    done = kept.render(**settings)
    assert time.monotonic() - started < 8
    assert (done.returncode, done.stdout) == (0, expected.stdout)
    assert ("an entry of Redis was damaged" in done.stderr) == (fault == "damaged")


NONSENSE = {
    "no number": [b"$abc\r\n"],
    "no protocol": [b"HTTP/1.1 400 Bad Request\r\n\r\n"],
    "half": [b"$1000\r\nabc"],
    "another type": [b":5\r\n"],
    "a list": [b"*2\r\n$1\r\na\r\n$x\r\n"],
    "an endless length": [b"$99999999999\r\nabc"],
    "an error": [b"-ERR no\r\n"],
    "not authenticated": [b"-NOAUTH Authentication required.\r\n"],
    "nothing": [b"\0"],
    "byte by byte": [b"$1000\r\n", *[b"x"] * 200],
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_from_redis_costs_time_only(kept, redis, kind):
    settings = {"BECALM_REDIS_URL": redis.url, "BECALM_CACHE_DIR": "off"}
    expected = kept.render(**settings)
    redis.nonsense = NONSENSE[kind]
    started = time.monotonic()
    done = kept.render(**settings)
    assert time.monotonic() - started < 10
    assert (done.returncode, done.stderr, done.stdout) == (0, "", expected.stdout)


def test_an_address_that_is_none_is_said(kept):
    done = kept.render(BECALM_REDIS_URL="http://x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "BECALM_REDIS_URL: this is no address of a Redis; write redis://host:6379/1" in done.stderr


def test_processes_that_write_the_same_entry_at_once_do_no_harm(tmp_path):
    sidecar = Sidecar(tmp_path)
    started = [sidecar.popen() for _ in range(6)]
    outcomes = []
    for one in started:
        with contextlib.closing(one.stdout), contextlib.closing(one.stderr):
            outcomes.append(one.communicate(timeout=60))
    assert len(set(outcomes)) == 1
    assert outcomes[0][1] == ""
    assert len(list((tmp_path / "cache" / "renders").iterdir())) == 1


INFLATED = "helmCharts: [{name: db, releaseName: shop, namespace: there}]\n"
GENERATOR = "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: g}\nname: db\nreleaseName: shop\n"
CERTIFICATE = '{{ $c := genSelfSignedCert "x" nil nil 90 }}\napiVersion: v1\nkind: Secret\nmetadata: {name: tls}\nstringData: {crt: {{ $c.Cert | quote }}}\n'


@pytest.fixture
def inflating(kustomized):
    """A Kustomization that inflates a chart with a certificate."""
    chart = {
        "Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
        "values.yaml": "",
        "templates/tls.yaml": CERTIFICATE,
    }
    files = {f"apps/web/charts/db/{name}": content for name, content in chart.items()}
    write(kustomized.root, {**files, "apps/web/kustomization.yaml": INFLATED})
    kustomized.env["BECALM_KUSTOMIZE_BUILD_OPTIONS"] = "--enable-helm"
    return kustomized


@pytest.mark.parametrize("by", ["helmCharts", "generators"])
def test_charts_that_kustomize_inflates_are_kept_until_a_certificate_in_them_changes(inflating, by):
    if by == "generators":
        files = {"apps/web/g.yaml": GENERATOR, "apps/web/kustomization.yaml": "generators: [g.yaml]\n"}
        write(inflating.root, files)
    # becalm-helm has the machine's own clock.
    inflating.now = int(time.time())
    first = inflating.render()
    assert (first.returncode, first.stderr) == (0, "")
    assert "BEGIN CERTIFICATE" in first.stdout
    second = inflating.render()
    assert (second.stdout, second.stderr, inflating.runs) == (first.stdout, "", 1)
    (entry,) = inflating.renders.iterdir()
    until = int.from_bytes(entry.read_bytes()[8:16], "big")
    # A window is a third of 90 days; nothing else ends that early but by chance in one of 30 days.
    assert 0 < until - inflating.now <= 30 * 86_400
    import yaml
    from cryptography import x509

    (secret,) = yaml.safe_load_all(first.stdout)
    begun = x509.load_pem_x509_certificate(secret["stringData"]["crt"].encode()).not_valid_before_utc
    assert until == int(begun.timestamp()) + 30 * 86_400
    write(inflating.root, {"apps/web/charts/db/values.yaml": "a: b\n"})
    assert not inflating.is_hit()


def test_the_page_is_told_when_certificates_change_that_kustomize_had_made(inflating, monkeypatch):
    write(inflating.root, {
        "apps/web/charts/db/templates/ca.yaml": '{{ $c := genCA "ca" 900 }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca}\n'
        "data: {crt: {{ $c.Cert | quote }}}\n",
    })  # fmt: skip
    found = []
    report = answers.report
    monkeypatch.setattr(answers, "report", lambda *given: found.append(report(*given)) or found[-1])
    inflating.now = int(time.time())
    assert inflating.render().returncode == 0
    told = {one["subject"]: one for one in found[0]["certificates"]}
    assert sorted(told) == ["CN=ca", "CN=x"]
    for subject, days in (("CN=x", 90), ("CN=ca", 900)):
        assert told[subject]["changes"] == told[subject]["from"] + days * 86_400 // 3
        assert told[subject]["changes"] < told[subject]["until"]


def test_another_program_for_charts_tells_nothing_so_nothing_is_kept(inflating, tmp_path):
    (tmp_path / "own-helm").symlink_to(inflating.env["BECALM_HELM"])
    inflating.env["BECALM_HELM_COMMAND"] = str(tmp_path / "own-helm")
    assert not inflating.is_hit()
    assert not inflating.is_hit()


def test_what_is_not_pinned_is_kept_no_longer_than_a_certificate_in_it(kept, monkeypatch):
    from dataclasses import replace

    from becalm.errors import Warned

    write(kept.app, {"templates/tls.yaml": CERTIFICATE})
    render = answers.render
    warned = Warned("may be another tomorrow", where="x", hint="pin it")
    monkeypatch.setattr(
        answers, "render", lambda request, *more: replace(render(request, *more), warnings=(warned,))
    )
    kept.render(BECALM_UNPINNED_SECONDS=str(400 * 86_400))
    (entry,) = kept.renders.iterdir()
    until = int.from_bytes(entry.read_bytes()[8:16], "big")
    from cryptography import x509

    pem = (
        kept.render(BECALM_CACHE_DIR="off")
        .stdout.partition("crt: ")[2]
        .partition("\n")[0]
        .strip("{}")
        .strip()
    )
    certificate = x509.load_pem_x509_certificate(json.loads(pem).encode())
    assert until == int(certificate.not_valid_before_utc.timestamp()) + 30 * 86_400


def test_what_kustomize_fetches_is_kept_as_long_as_the_operator_says(inflating, monkeypatch, tmp_path):
    from dataclasses import replace

    from becalm.sources.kustomize import Told, told

    # Whatever it is that has helm fetch a chart, becalm-helm tells of it.
    file = tmp_path / "told"
    file.touch()
    helm = tmp_path / "fake-helm"
    helm.write_text("#!/bin/sh\nexit 0\n")
    helm.chmod(0o755)
    env = {"PATH": os.environ["PATH"], "BECALM_HELM": str(helm), "BECALM_HELM_TOLD": str(file)}
    argv = [sys.executable, "-m", "becalm.dropin"]
    for words in (["version"], ["pull", "--untar", "db"]):
        subprocess.run([*argv, *words], env={**os.environ, **env}, check=True, timeout=60)
    assert told(file.read_text()) == Told(fetched=True)
    render = answers.render
    monkeypatch.setattr(
        answers, "render", lambda request, *more: replace(render(request, *more), charts=Told(fetched=True))
    )
    assert not inflating.is_hit()
    assert not inflating.is_hit()
    inflating.render(BECALM_UNPINNED_SECONDS="60")
    assert inflating.is_hit(BECALM_UNPINNED_SECONDS="60")
