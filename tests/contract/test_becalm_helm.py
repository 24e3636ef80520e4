"""`becalm-helm` is helm in every way, but that what `template` draws is the same every time."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import children
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
HELMS = ("3.17.3", "4.1.4", "4.3.1")
KUBECTLS = ("1.31.9", "1.34.5", "1.37.1")
ONE = "4.1.4"
CHART = "apiVersion: v2\nname: {name}\nversion: 0.1.0\n"
TEMPLATES = {
    "values.yaml": "a: {b: usual, c: 1}\nlist: [x]\n",
    "values.schema.json": '{"properties": {"never": {"type": "integer"}}}',
    "text.txt": "a file\n",
    "crds/thing.yaml": "kind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n",
    "templates/NOTES.txt": "Notes of {{ .Release.Name }}\n",
    "templates/a.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n"
        "data:\n  values: {{ .Values | toJson | quote }}\n  kube: {{ .Capabilities.KubeVersion }}\n"
        '  has: {{ .Capabilities.APIVersions.Has "example.com/v9" | quote }}\n'
        "  base: {{ .Template.BasePath }}\n  name: {{ .Template.Name }}\n  chart: {{ .Chart | toJson | quote }}\n"
        '  files: {{ (.Files.Glob "*").AsConfig | quote }}\n  upgrade: {{ .Release.IsUpgrade | quote }}\n'
    ),
    "templates/hook.yaml": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n"
    ),
    "templates/test.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n",
}
# Draws, but prints nothing of it: rewritten and rendered as a copy, with the output that stock helm gives.
DEAD = {
    "templates/draws.yaml": "{{ if .Values.dead }}k: {{ randAlphaNum 8 }}{{ end }}\n# {{ len (randAlpha 4) }}\n"
}
DRAWS = {
    "templates/secret.yaml": (
        "{{ $p := randAlphaNum 20 }}apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-db}\n"
        "stringData:\n  password: {{ $p | quote }}\n  url: postgres://u:{{ $p }}@db\n"
        '  when: {{ now | date "15:04 MST" | quote }}\n  from: {{ tpl (.Values.t | default "") . | quote }}\n'
    ),
    "templates/hook.yaml": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n"
        "stringData: {key: {{ randAlpha 30 }}}\n"
    ),
}


def binary(name: str) -> Path:
    path = TOOLS / name / name.partition("-")[0]
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{path} is missing; run tools/get_tools.py")
        pytest.skip("the binary is not there")
    return path


def write(chart: Path, *files: dict[str, str]) -> Path:
    for name, text in {"Chart.yaml": CHART.format(name=chart.name)}.items():
        chart.mkdir(parents=True, exist_ok=True)
        (chart / name).write_text(text)
    for name, text in {key: text for one in files for key, text in one.items()}.items():
        path = chart / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return chart


def pack(chart: Path, target: Path) -> Path:
    target.mkdir(exist_ok=True)
    with tarfile.open(target / f"{chart.name}-0.1.0.tgz", "w:gz") as archive:
        archive.add(chart, chart.name)
    return target / f"{chart.name}-0.1.0.tgz"


@pytest.fixture(scope="session")
def dropin(tmp_path_factory) -> Path:
    """The console script, as pip writes it."""
    path = tmp_path_factory.mktemp("bin") / "becalm-helm"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nfrom becalm.dropin.main import main\nsys.exit(main())\n"
    )
    path.chmod(0o755)
    return path


class Place:
    """A directory with charts, and helm and becalm-helm to run in it."""

    def __init__(self, root: Path, dropin: Path) -> None:
        self.root = root
        self.dropin = dropin
        write(root / "pure", TEMPLATES)
        write(root / "dead", TEMPLATES, DEAD)
        write(root / "draws", TEMPLATES, DRAWS)
        (root / "v.yaml").write_text("a: {b: file}\n")
        (root / "w.yaml").write_text("a: {c: 2}\n")
        seed = root / "seed"
        seed.touch(mode=0o600)
        seed.write_bytes(bytes(range(32)))
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "HELM_CACHE_HOME": str(root / "home" / "cache"),
            "HELM_CONFIG_HOME": str(root / "home" / "config"),
            "HELM_DATA_HOME": str(root / "home" / "data"),
            "TZ": "America/New_York",
        }
        self.identity = {
            "BECALM_SEED_FILE": str(seed), "ARGOCD_APP_NAME": "app", "ARGOCD_APP_PROJECT_NAME": "default",
            "ARGOCD_APP_NAMESPACE": "space", "BECALM_CACHE_DIR": os.environ["BECALM_CACHE_DIR"],
        }  # fmt: skip

    def run(self, *argv: str, text: str | None = None, **env: str) -> subprocess.CompletedProcess:
        given = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
        return subprocess.run(
            [str(argument) for argument in argv], cwd=self.root, env={**self.env, **env}, capture_output=True,
            text=True, timeout=60, check=False, **given,
        )  # fmt: skip

    def stock(self, version: str, *arguments: str, text: str | None = None, **env: str):
        return self.run(binary(f"helm-{version}"), *arguments, text=text, **env)

    def becalm(self, version: str, *arguments: str, text: str | None = None, **env: str):
        env = {**self.identity, "BECALM_HELM": str(binary(f"helm-{version}")), **env}
        return children.run(
            arguments, cwd=self.root, env={**self.env, **env}, stdin=text or "", program="becalm.dropin.main", name=str(self.dropin)
        )  # fmt: skip

    def same(self, version: str, *arguments: str, text: str | None = None, **env: str):
        """Run both, and compare all that can be seen."""
        stock = self.stock(version, *arguments, text=text, **env)
        ours = self.becalm(version, *arguments, text=text, **env)
        assert (ours.returncode, ours.stderr) == (stock.returncode, stock.stderr)
        assert ours.stdout == stock.stdout
        return ours


@pytest.fixture
def place(tmp_path, dropin) -> Place:
    return Place(tmp_path, dropin)


def secret(output: str, name: str = "r-db") -> dict[str, str]:
    return next(o["stringData"] for o in yaml.safe_load_all(output) if o and o["metadata"]["name"] == name)


LINES = [
    "template r CHART",
    "template CHART",
    "template CHART -g",
    "template CHART --generate-name",
    "template CHART --name-template abc",
    'template --name-template=a-{{.|len|printf"%d"}} CHART',
    "--debug=false template r CHART",
    "-n space template r CHART",
    "--namespace space template r CHART",
    "template r -nspace CHART",
    "template r CHART --namespace=space --namespace other",
    "template -gf v.yaml CHART",
    "template -gfv.yaml CHART",
    "template -f v.yaml r -f w.yaml CHART",
    "template r CHART -f=v.yaml,w.yaml",
    "template r CHART --values v.yaml --set a.b=set --set-string a.c=1 --set-json list=[1,2]",
    "template r CHART --set-file a.b=v.yaml --set-literal a.c=x,y",
    "template --include-crds r CHART",
    "template --skip-crds r CHART --include-crds",
    "template r CHART --no-hooks",
    "template r CHART --skip-tests",
    "template r CHART -s templates/a.yaml",
    "template r CHART --show-only templates/a.yaml --show-only templates/hook.yaml",
    "template r CHART -s templates/none.yaml",
    "template r CHART --kube-version 1.29.3 -a example.com/v9",
    "template r CHART --kube-version new",
    "template r CHART --api-versions=example.com/v9,x/v1",
    "template r CHART --is-upgrade",
    "template r CHART --set never=x",
    "template r CHART --set never=x --skip-schema-validation",
    "template r CHART --set a",
    "template r CHART --set a.b={{.Values}}",
    "template r CHART -f none.yaml",
    "template r CHART --dry-run --create-namespace --replace --wait --wait-for-jobs --timeout 5m",
    "template r CHART --dry-run=client --labels a=b --description d --disable-openapi-validation",
    "template r CHART --v=0 --logtostderr -v 0",
    "template r CHART --validate",
    "template -- r CHART",
    "template r -- CHART",
    "template -- -r CHART",
    "template r CHART extra",
    "template",
    "template r",
    "template r ./none",
    "template r /none",
    "template r none/none",
    "template r CHART --nope",
    "template r CHART -x",
    "template r CHART -f",
    "template r CHART --wait=x=y",
    "template r CHART --timeout soon",
    "template --help",
    "template r CHART -h",
    "template r CHART --help=false",
    "template r CHART --verify",
    "template r CHART --output-dir",
    "template BIG_Name CHART",
    "template r CHART --post-renderer none",
]  # fmt: skip


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize("chart", ["pure", "dead", "pure.tgz", "dead.tgz"])
def test_what_draws_nothing_is_as_from_helm(place, version, chart):
    """Streams and exit codes of 58 lines, of charts that go straight through and that are rewritten."""
    given = chart
    if chart.endswith(".tgz"):
        given = str(pack(place.root / chart.removesuffix(".tgz"), place.root / "packed"))
    lines = LINES if version == ONE and not chart.endswith(".tgz") else LINES[::4]
    for line in lines:
        place.same(version, *(word.replace("CHART", given) for word in line.split()))


OTHERS = [
    "", "version", "version --short", "--debug version", "lint pure", "lint none", "show chart pure", "env", "help template", "nope",
    "--nope", "--help", "-h template", "--help template x", "-g template .", "upgrade template pure --nope", "show template pure",
    "__complete template --ver", "pull none/none", "repo list", "dependency list pure", "plugin list", "package pure --version 9.9.9",
    "list --nope=template", "--kube-context template version", "--nope template version --short",
]  # fmt: skip


@pytest.mark.parametrize("version", HELMS)
def test_every_other_command_is_helms(place, version):
    for line in OTHERS:
        place.same(version, *line.split())


@pytest.mark.parametrize("version", HELMS)
def test_every_flag_takes_a_value_exactly_where_helms_does(place, version):
    """The table is true of this helm, its help text lists nothing else, and reading that gives the same."""
    from becalm.dropin import command, flags

    table = flags.known(command.SWITCHES)
    help_text = place.stock(version, "template", "--help").stdout
    assert flags.from_help(help_text, table) == table
    empty = flags.Known(takes={}, short={})
    read = flags.from_help(help_text, empty)
    assert len(read.takes) > 60
    assert read.takes == {name: table.takes[name] for name in read.takes}
    assert read.short == {letter: table.short[letter] for letter in read.short}
    for name, takes in table.takes.items():
        said = place.stock(version, "template", f"--{name}").stderr
        if "unknown flag" not in said and name != "help":
            assert ("flag needs an argument" in said) == takes, name


COMMANDS = [
    "template", "--debug template", "-n x template", "-nx template", "-n=x template", "--namespace template template", "--v 2 template",
    "--v=2 template", "-v 2 template", "--alsologtostderr template", "--set a template", "--set=a template", "-g template", "-g x template",
    "--help template", "-h template", "-- template", "- template", "--kube-insecure-skip-tls-verify template", "x template", "show template",
    "template template", "--debug", "-n", "-n x", "--debug=true template", "-gn template", "-gn x template",
]  # fmt: skip


@pytest.mark.parametrize("version", HELMS)
def test_the_command_is_found_where_helm_finds_it(place, version):
    from becalm.dropin import command

    for line in COMMANDS:
        words = line.split()
        at = command.find(words)
        # What only `template` says when it is given too many arguments.
        said = place.stock(version, *words, "--", "a", "b", "c").stderr
        if "unknown flag" in said or "unknown shorthand flag" in said:
            continue  # some command says it, and none runs
        assert (at is not None and words[at] == "template") == ("unexpected arguments" in said), (line, said)


@pytest.mark.parametrize("version", HELMS)
def test_draws_are_the_same_and_those_of_render(place, version):
    first, second = (place.becalm(version, "template", "r", "draws", "-n", "space") for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert (
        place.stock(version, "template", "r", "draws").stdout
        != place.stock(version, "template", "r", "draws").stdout
    )
    argv = [
        sys.executable,
        "-m",
        "becalm",
        "render",
        "draws",
        "--app=app",
        "--project=default",
        "--namespace=space",
    ]
    argv += [
        f"--seed={place.root / 'seed'}",
        f"--helm={binary(f'helm-{version}')}",
        "--rule=-all",
        "-f",
        "v.yaml",
    ]
    (place.root / "v.yaml").write_text("t: '{{ randNumeric 12 }}'\n")
    render = place.run(*argv, BECALM_CACHE_DIR="off")
    ours = place.becalm(version, "template", "app", "draws", "--include-crds", "-n", "space", "-f", "v.yaml")
    assert render.returncode == ours.returncode == 0, render.stderr + ours.stderr
    assert ours.stdout == render.stdout
    assert re.fullmatch(r"\d{12}", secret(ours.stdout, "app-db")["from"])


@pytest.mark.parametrize(
    "flags",
    [
        ["-f", "-"], ["--values=v.yaml"], ["--set-string", "t=\\{{ randNumeric 12 }}"], ["--set", "t=\\{{ randNumeric 12 }}"],
        ["--set-json", 't="{{ randNumeric 12 }}"'], ["--set-literal", "t={{ randNumeric 12 }}"], ["--set-file", "t=t.txt"],
        ["--set-file", "t=-"], ["-f", "file://v.yaml"], ["-f", "w.yaml,v.yaml"],
    ],
)  # fmt: skip
def test_templates_in_values_of_every_kind_are_stable(place, flags):
    (place.root / "v.yaml").write_text("t: '{{ randNumeric 12 }}'\n")
    (place.root / "t.txt").write_text("{{ randNumeric 12 }}")
    text = "{{ randNumeric 12 }}" if "t=-" in flags else "t: '{{ randNumeric 12 }}'\n"
    runs = [place.becalm(ONE, "template", "r", "draws", *flags, text=text) for _ in range(2)]
    if flags == ["-f", "file://v.yaml"]:
        stock = place.stock(ONE, "template", "r", "draws", *flags)
        assert (runs[0].returncode, runs[0].stderr) == (stock.returncode, stock.stderr)
        return
    assert [run.stderr for run in runs] == ["", ""]
    assert runs[0].stdout == runs[1].stdout
    assert re.fullmatch(r"\d{12}", secret(runs[0].stdout)["from"])


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize("chart", ["pure", "dead"])
def test_standard_input_is_read_once(place, version, chart):
    done = place.same(version, "template", "r", chart, "-f", "-", text="a: {b: stdin}\n")
    assert "stdin" in done.stdout
    place.same(version, "template", "r", chart, "-f", "-", "--set-file", "x=-", text="a: {b: stdin}\n")


@pytest.mark.parametrize(
    "flags",
    [["--no-hooks"], ["--skip-tests"], ["-s", "templates/secret.yaml"], ["--debug"], ["--is-upgrade"]],
)
def test_values_do_not_depend_on_what_is_shown(place, flags):
    whole = place.becalm(ONE, "template", "r", "draws")
    part = place.becalm(ONE, "template", "r", "draws", *flags)
    assert part.returncode == 0, part.stderr
    assert secret(part.stdout) == secret(whole.stdout)
    assert ("kind: Pod" in part.stdout) <= ("-s" not in flags)


@pytest.mark.parametrize("version", HELMS)
def test_output_directories_are_helms(place, version):
    for chart in ("dead", "draws"):
        for more in ([], ["--release-name"], ["--include-crds"]):
            ours = place.becalm(version, "template", "r", chart, "--output-dir", "ours", *more)
            stock = place.stock(version, "template", "r", chart, "--output-dir", "stock", *more)
            assert ours.returncode == stock.returncode == 0, ours.stderr + stock.stderr
            assert ours.stdout == stock.stdout.replace("stock", "ours")
    names = [
        {str(p.relative_to(place.root / d)) for p in (place.root / d).rglob("*")} for d in ("ours", "stock")
    ]
    assert names[0] == names[1]
    for path in (place.root / "ours").rglob("*"):
        assert path.is_dir() or "becalm" not in path.read_text()
    whole = place.becalm(version, "template", "r", "draws")
    assert secret((place.root / "ours" / "draws" / "templates" / "secret.yaml").read_text()) == secret(
        whole.stdout
    )


def post_renderer(place, version: str, script: str) -> dict[str, str]:
    """A post-renderer in both forms: an executable for helm 3, a plugin for helm 4."""
    folder = place.root / "plugins" / "after"
    folder.mkdir(parents=True)
    (folder / "after").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "after").chmod(0o755)
    (folder / "plugin.yaml").write_text(
        "apiVersion: v1\ntype: postrenderer/v1\nname: after\nversion: 0.1.0\nruntime: subprocess\n"
        'runtimeConfig: {platformCommand: [{command: "${HELM_PLUGIN_DIR}/after"}]}\n'
    )
    if version.startswith("3"):
        return {"PATH": f"{folder}:{os.environ['PATH']}"}
    return {"HELM_PLUGINS": str(folder.parent)}


@pytest.mark.parametrize("version", HELMS)
def test_post_renderers_run_once_on_final_values(place, version):
    env = post_renderer(place, version, f'cat; echo "# after $*"; echo ran >> {place.root}/count')
    line = ["--post-renderer", "after", "--post-renderer-args", "x"]
    ours = place.becalm(version, "template", "r", "draws", *line, **env)
    assert (ours.returncode, ours.stderr) == (0, "")
    assert "# after x" in ours.stdout
    assert (place.root / "count").read_text() == "ran\n"
    assert secret(ours.stdout) == secret(place.becalm(version, "template", "r", "draws").stdout)
    place.same(version, "template", "r", "dead", *line, **env)


@pytest.mark.parametrize("version", HELMS)
def test_a_failing_post_renderer_fails(place, version):
    env = post_renderer(place, version, "echo wrong >&2; exit 3")
    place.same(version, "template", "r", "dead", "--post-renderer=after", **env)


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize(
    "template",
    [
        '{{ fail (randAlpha 0 | print "no") }}',
        "{{ .Values.none.none }}{{ randAlpha 3 }}",
        "a: {{ randAlpha 3 }}: b: c",
        "{{ randAlpha 3",
        '{{ randAlpha "x" }}',
    ],
)
def test_a_chart_that_fails_fails_as_with_helm(place, version, template):
    write(place.root / "bad", {"templates/a.yaml": template})
    done = place.same(version, "template", "r", "bad")
    assert done.returncode == 1
    write(place.root / "broken", {"Chart.yaml": "name: [\n"})
    place.same(version, "template", "r", "broken")
    write(
        place.root / "lacking",
        {
            "Chart.yaml": CHART.format(name="lacking")
            + "dependencies: [{name: d, version: 1.0.0, repository: 'https://127.0.0.1:1'}]\n"
        },
        DRAWS,
    )
    place.same(version, "template", "r", "lacking")


@pytest.mark.parametrize("version", HELMS)
def test_missing_dependencies_are_fetched_for_a_copy(place, version):
    write(place.root / "libs" / "sub", DRAWS)
    write(
        place.root / "apps" / "top",
        {
            "Chart.yaml": CHART.format(name="top")
            + "dependencies: [{name: sub, version: 0.1.0, repository: 'file://../../libs/sub'}]\n"
        },
    )
    before = sorted(map(str, (place.root / "apps").rglob("*")))
    runs = [place.becalm(version, "template", "r", "apps/top", "--dependency-update") for _ in range(2)]
    assert [(run.returncode, run.stderr) for run in runs] == [(0, ""), (0, "")]
    assert runs[0].stdout == runs[1].stdout
    assert secret(runs[0].stdout)["password"]
    assert sorted(map(str, (place.root / "apps").rglob("*"))) == before
    write(
        place.root / "gone",
        {
            "Chart.yaml": CHART.format(name="gone")
            + "dependencies: [{name: sub, version: 0.1.0, repository: 'file://../none'}]\n"
        },
        DRAWS,
    )
    failed = place.becalm(version, "template", "r", "gone", "--dependency-update")
    stock = place.stock(version, "template", "r", "gone", "--dependency-update")
    assert (failed.returncode, failed.stderr) == (1, stock.stderr)
    assert "becalm-" not in failed.stderr.replace("becalm-helm", "")


@pytest.mark.parametrize("version", HELMS)
def test_dependencies_of_a_requirements_file_are_found_whatever_the_chart_calls_itself(place, version):
    write(place.root / "libs" / "sub", DRAWS)
    needs = "dependencies: [{name: sub, version: 0.1.0, repository: 'file://../../libs/sub'}]\n"
    write(place.root / "apps" / "top", {"requirements.yaml": needs})
    done = place.becalm(version, "template", "r", "apps/top", "--dependency-update")
    assert done.returncode == 0, done.stderr
    assert secret(done.stdout)["password"]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.authorization and self.headers.get("Authorization") != self.server.authorization:
            self.send_error(401)
            return
        super().do_GET()


@pytest.fixture
def repository(place):
    """A chart repository on the loopback interface, with all three charts."""
    folder = place.root / "repository"
    entries = {}
    for name in ("pure", "dead", "draws"):
        data = pack(place.root / name, folder).read_bytes()
        entries[name] = [
            {"apiVersion": "v2", "name": name, "version": "0.1.0", "urls": [f"{name}-0.1.0.tgz"], "digest": hashlib.sha256(data).hexdigest()}
        ]  # fmt: skip
    (folder / "index.yaml").write_text(json.dumps({"apiVersion": "v1", "entries": entries}))

    def handler(*arguments):
        return _Quiet(*arguments, directory=str(folder))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.authorization = ""
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)


@pytest.mark.parametrize("version", HELMS)
def test_charts_of_repositories_and_addresses(place, version, repository):
    url = f"http://127.0.0.1:{repository.server_port}"
    for name in ("pure", "dead"):
        place.same(version, "template", "r", name, "--repo", url, "--version", "0.1.0")
        # Helm 4.1 warns of a range in `template`, but not in `pull`.
        devel = ("template", name, "--repo", url, "--devel")
        assert place.becalm(version, *devel).stdout == place.stock(version, *devel).stdout != ""
        place.same(version, "template", "r", f"{url}/{name}-0.1.0.tgz")
    # A directory of that name comes first, as in helm.
    (place.root / "draws" / "templates" / "here.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here}\n"
    )
    assert "name: here" in place.becalm(version, "template", "r", "draws", "--repo", url).stdout
    (place.root / "draws").rename(place.root / "elsewhere")
    runs = [place.becalm(version, "template", "r", "draws", "--repo", url) for _ in range(2)]
    assert [(run.returncode, run.stderr) for run in runs] == [(0, ""), (0, "")]
    assert runs[0].stdout == runs[1].stdout
    assert "name: here" not in runs[0].stdout
    place.same(version, "template", "r", "draws", "--repo", url, "--version", "9.9.9")
    place.same(version, "template", "r", "none", "--repo", url)
    place.same(version, "template", "r", "draws", "--repo", url, "--verify")
    place.same(version, "template", "r", "draws", "--repo", "http://127.0.0.1:1")
    added = place.becalm(version, "repo", "add", "mine", url)
    assert added.returncode == 0, added.stderr
    assert place.becalm(version, "template", "r", "mine/draws").stdout == runs[0].stdout
    place.same(version, "template", "r", "mine/dead")
    place.same(version, "template", "r", "mine/none")


def test_credentials_of_repositories_are_used_and_not_shown(place, repository):
    repository.authorization = "Basic dXNlcjpoaWRkZW4="  # user:hidden
    url = f"http://127.0.0.1:{repository.server_port}"
    (place.root / "draws").rename(place.root / "elsewhere")
    given = ["--repo", url, "--username", "user", "--password"]
    done = place.becalm(ONE, "template", "r", "draws", *given, "hidden")
    assert done.returncode == 0, done.stderr
    refused = place.becalm(ONE, "template", "r", "draws", *given, "secret-word")
    assert refused.returncode == 1
    assert "secret-word" not in refused.stderr + refused.stdout
    assert "401" in refused.stderr


@pytest.mark.parametrize(
    "value",
    [
        "--post-renderer=/bin/sh",
        "-f/etc/passwd",
        "--kubeconfig=/x",
        "-",
        "--",
        "$(id)",
        "; id",
        "--output-dir=out",
        "a --debug",
        "-s",
    ],
)
def test_no_value_becomes_an_option(place, value):
    for line in (
        ["--set-string", f"a.b={value}"],
        [f"--set-string=a.b={value}"],
        ["--description", value],
        ["--name-template", value],
        ["-n", value],
        ["--set-literal", f"a.b={value}"],
    ):
        place.same(ONE, "template", "dead", *line)
    for line in (
        ["template", "--", value, "dead"],
        ["template", "--", "r", value],
        ["template", "--", value],
        ["template", "r", value],
    ):
        place.same(ONE, *line)
    assert not (place.root / "out").exists()
    write(place.root / value, DEAD) if "/" not in value and value not in ("-", "--") else None
    place.same(ONE, "template", "r", "--", value)


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize("flag", ["--validate", "--dry-run=server"])
def test_only_the_last_run_asks_a_cluster(place, version, flag):
    log = place.root / "log"
    real = str(binary(f"helm-{version}"))
    helm = fake(
        place,
        f"print(sys.argv[1:], file=open({str(log)!r}, 'a'))\nos.execv({real!r}, ['helm', *sys.argv[1:]])",
    )
    env = {"KUBECONFIG": str(place.root / "none")}
    stock = place.stock(version, "template", "r", "draws", flag, **env)
    ours = place.becalm(version, "template", "r", "draws", flag, **env, BECALM_HELM=helm)
    assert (ours.returncode, ours.stderr) == (stock.returncode, stock.stderr)
    asked = [flag in line for line in log.read_text().splitlines()]
    assert asked[-1]
    assert len(asked) > 1
    assert not any(asked[:-1])


@pytest.mark.parametrize("missing", ["ARGOCD_APP_NAME", "ARGOCD_APP_PROJECT_NAME", "BECALM_SEED_FILE"])
def test_nothing_is_rendered_without_seed_or_identity(place, missing):
    done = place.becalm(ONE, "template", "r", "draws", **{missing: ""})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: becalm-helm: templates/hook.yaml:4: the chart calls randAlpha, ")
    assert done.stderr.endswith(f"; set {missing}\n")
    place.same(ONE, "template", "r", "pure")
    # What needs no seed needs no identity.
    write(place.root / "clock", {"templates/a.yaml": "when: {{ now | unixEpoch }}\n"})
    done = place.becalm(ONE, "template", "r", "clock", **{missing: ""})
    assert "when: 1704067200" in done.stdout


def test_epochs_of_other_charts_are_no_error_and_those_of_this_one_count(place):
    def password(**epochs: str) -> str:
        given = json.dumps([{"name": "becalm.epochs", "map": epochs}])
        done = place.becalm(ONE, "template", "r", "draws", ARGOCD_APP_PARAMETERS=given)
        assert done.returncode == 0, done.stderr
        return secret(done.stdout)["password"]

    first = password()
    assert password(**{"Secret/other/password": "2"}) == first
    assert password(**{"Secret/r-db/password": "2"}) != first


def test_releases_and_namespaces_have_values_of_their_own(place):
    def password(*line: str, **env: str) -> str:
        done = place.becalm(ONE, "template", *line, **env)
        assert done.returncode == 0, done.stderr
        return next(
            o["stringData"]["password"]
            for o in yaml.safe_load_all(done.stdout)
            if o and "password" in o.get("stringData", {})
        )

    assert password("r", "draws") != password("q", "draws")
    assert password("r", "draws", "-n", "x") != password("r", "draws", "-n", "y")
    assert (
        password("r", "draws")
        == password("r", "draws", "-n", "space")
        == password("r", "draws", HELM_NAMESPACE="space")
    )
    assert password("r", "draws") != password("r", "draws", ARGOCD_APP_NAME="other")


def test_a_name_that_is_drawn_is_refused(place):
    done = place.becalm(ONE, "template", "pure", "--name-template", "a-{{ randAlpha 3 | lower }}")
    assert (done.returncode, done.stdout) == (8, "")
    assert done.stderr.startswith("Error: becalm-helm: --name-template: the name of the release is drawn")


def test_links_out_of_the_chart_are_refused(place):
    (place.root / "outside").write_text("stolen")
    (place.root / "pure" / "link.txt").symlink_to(place.root / "outside")
    done = place.becalm(ONE, "template", "r", "pure")
    assert (done.returncode, done.stdout) == (3, "")
    assert "stolen" not in done.stderr


def test_the_real_helm_is_found_and_never_this_one(place, tmp_path):
    helm = binary(f"helm-{ONE}")
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "helm").symlink_to(place.dropin)
    env = {**place.identity, "BECALM_HELM": ""}
    done = place.run(
        place.dropin, "version", **{**env, "PATH": f"{folder}:{helm.parent}:{os.environ['PATH']}"}
    )
    assert (done.returncode, "v4.1.4" in done.stdout) == (0, True)
    wrapper = folder / "wrapper"
    wrapper.write_text('#!/bin/sh\nexec becalm-helm "$@"\n')
    wrapper.chmod(0o755)
    for path in (place.dropin, folder / "helm", wrapper):
        done = place.becalm(ONE, "version", BECALM_HELM=str(path))
        assert (done.returncode, done.stdout) == (2, "")
        assert "this is becalm-helm itself; set BECALM_HELM to the path of the real helm" in done.stderr
    done = place.becalm(ONE, "version", BECALM_HELM="/none/helm")
    assert (done.returncode, "cannot be found" in done.stderr) == (4, True)


def fake(place, script: str) -> str:
    path = place.root / "fake"
    path.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_helm_gets_line_and_environment_unchanged(place):
    script = "print(repr(sys.argv[1:]), sorted(open('/proc/self/environ', 'rb').read().split(b'\\0')), signal.getsignal(signal.SIGPIPE))"
    helm = fake(place, script)
    line = ["lint", "--x", "a b", "", "-", "\udcff", "--", "-y"]
    for env in ({}, {"LC_ALL": "C"}, {"LANG": "C", "ODD": "\udcfe"}):
        given = {"PATH": os.environ["PATH"], "BECALM_HELM": helm, **env}
        ours, theirs = (
            subprocess.run([program, *line], env=given, capture_output=True, timeout=60, check=True).stdout
            for program in (place.dropin, helm)
        )
        assert ours == theirs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
def test_a_signal_that_ends_helm_ends_this(place, number):
    helm = fake(
        place,
        f"signal.signal({number}, signal.SIG_DFL) if {number} != 9 else None\nos.kill(os.getpid(), {number})",
    )
    assert place.becalm(ONE, "version", BECALM_HELM=helm).returncode == -number
    # In the last run of `template`, which is the one on a chart that was rewritten.
    helm = fake(
        place,
        f"if '--no-hooks' in sys.argv: os.kill(os.getpid(), {number})\nos.execv({str(binary(f'helm-{ONE}'))!r}, ['helm', *sys.argv[1:]])",
    )
    assert place.becalm(ONE, "template", "r", "dead", "--no-hooks", BECALM_HELM=helm).returncode in (
        -number,
        1,
    )


@pytest.mark.parametrize("last", [False, True])
def test_termination_reaches_helm_and_leaves_nothing(place, last):
    """While helm is asked for the chart, and in its last run."""
    real = str(binary(f"helm-{ONE}"))
    helm = fake(
        place,
        f"if {last} != ('--no-hooks' in sys.argv): os.execv({real!r}, ['helm', *sys.argv[1:]])\n"
        "open('started', 'w').write(str(os.getpid()))\ntime.sleep(60)",
    )
    scratch = place.root / "scratch"
    scratch.mkdir()
    env = {**place.env, **place.identity, "BECALM_HELM": helm, "TMPDIR": str(scratch)}
    child = subprocess.Popen(
        [place.dropin, "template", "r", "dead", "--no-hooks"],
        cwd=place.root,
        env=env,
        stdout=subprocess.DEVNULL,
    )
    started = place.root / "started"
    until = time.monotonic() + 30
    while not (started.exists() and started.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
        pytest.fail("helm is still there")
    assert list(scratch.iterdir()) == []


def test_nothing_heavy_is_loaded_before_helm(place):
    code = (
        "import sys; before = set(sys.modules); import becalm.dropin.main; "
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('becalm')))"
    )
    loaded = place.run(
        sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'plugin')!r}); {code}"
    )
    heavy = {"typing", "re", "dataclasses", "subprocess", "pathlib", "inspect", "yaml", "json"}
    assert not heavy & set(yaml.safe_load(loaded.stdout)), loaded.stdout
    assert len(yaml.safe_load(loaded.stdout)) < 30


def test_the_script_is_installed():
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["becalm-helm"] == "becalm.dropin.main:main"


@pytest.mark.parametrize("kubectl", KUBECTLS)
@pytest.mark.parametrize("version", HELMS)
def test_charts_that_kustomize_inflates_are_stable(place, kubectl, version):
    write(place.root / "base" / "charts" / "draws", TEMPLATES, DRAWS)
    (place.root / "base" / "kustomization.yaml").write_text(
        "helmGlobals: {chartHome: charts}\nnamePrefix: x-\nhelmCharts:\n"
        "- {name: draws, releaseName: r, namespace: space, includeCRDs: true, valuesInline: {t: '{{ randNumeric 12 }}'}}\n"
        "- {name: draws, releaseName: q, namespace: other, skipHooks: true}\n"
    )
    env = {**place.identity, "BECALM_HELM": str(binary(f"helm-{version}"))}
    line = [binary(f"kubectl-{kubectl}"), "kustomize", "--enable-helm", "base", "--helm-command"]
    stock = place.run(*line, binary(f"helm-{version}"), **env)
    runs = [place.run(*line, place.dropin, **env) for _ in range(2)]
    if stock.returncode != 0:
        # A Kustomize that knows helm 3 only.
        assert "helm" in stock.stderr
        assert version[0] == "4"
        assert [run.returncode for run in runs] == [stock.returncode] * 2
        return
    assert [(run.returncode, run.stderr) for run in runs] == [(0, stock.stderr)] * 2
    assert runs[0].stdout == runs[1].stdout != stock.stdout
    assert re.fullmatch(r"\d{12}", secret(runs[0].stdout, "x-r-db")["from"])
    assert secret(runs[0].stdout, "x-r-db")["password"] != secret(runs[0].stdout, "x-q-db")["password"]
    assert len(list(yaml.safe_load_all(runs[0].stdout))) == len(list(yaml.safe_load_all(stock.stdout)))
