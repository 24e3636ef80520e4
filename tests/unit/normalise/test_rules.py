"""The catalogue does what it says; rule files are checked by line; the engine does no harm."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from becalm.errors import ManifestError, RuleError
from becalm.manifests.objects import ObjectId
from becalm.normalise import builtin, engine, examples, packs, policy, rules
from becalm.normalise.policy import Say
from becalm.normalise.selectors import Key, Selector

CATALOGUE = sorted(Path(str(resources.files("becalm.normalise") / "catalogue")).glob("*.yaml"))
BUILT_IN = packs.built_in(examples=True)
ALL = [rule for pack in BUILT_IN for rule in pack.rules]
USUAL = [rule for rule in ALL if rule.enabled]
EXAMPLES = [(rule, example) for rule in ALL for example in rule.examples]


def normalise(text: str, acting: Sequence[rules.Rule], kube_version: str = "1.26") -> engine.Normalised:
    cluster = engine.Cluster(namespace="n", kube_version=kube_version)
    return engine.normalise(text, policy.always(acting), cluster)


@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: path.stem)
def test_the_catalogue_has_the_form_of_rule_files(path: Path) -> None:
    pack = rules.load(path.read_text(), where=path.name)
    assert pack.id == path.stem
    assert pack.title


@pytest.mark.parametrize("outcome", list(examples.run(BUILT_IN)), ids=lambda one: f"{one.rule}: {one.title}")
def test_every_example_holds(outcome: examples.Outcome) -> None:
    """And every rule has one that it changes and one that it leaves alone."""
    assert outcome.problem == ""


def test_a_render_reads_the_same_rules_without_their_examples() -> None:
    bare = [dataclasses.replace(rule, examples=()) for rule in ALL]
    assert [rule for pack in packs.built_in() for rule in pack.rules] == bare


def test_ids_are_unique_and_reasons_are_sentences() -> None:
    assert len({rule.id for rule in ALL}) == len(ALL)
    for rule in ALL:
        assert rule.reason[0].isupper() or rule.reason.startswith(("cert-manager", "istiod"))
        assert rule.reason.endswith(".")


def stream(*objs: object) -> str:
    return "".join(
        f"---\n# Source: a/templates/{n}.yaml\n{yaml.safe_dump(obj)}" for n, obj in enumerate(objs)
    )


def objects(text: str) -> list[object]:
    return [obj for obj in yaml.safe_load_all(text) if obj]


BEFORE = [dict(example.before) for _, example in EXAMPLES]


@settings(max_examples=8, deadline=None)
@given(st.permutations(BEFORE))
def test_the_order_of_documents_does_not_matter(order: list) -> None:
    done = objects(normalise(stream(*order), ALL).output)
    usual = objects(normalise(stream(*BEFORE), ALL).output)
    key = yaml.safe_dump
    assert sorted(map(key, done)) == sorted(map(key, usual))


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_whole_catalogue_is_idempotent(number: int) -> None:
    _, example = EXAMPLES[number]
    once = normalise(stream(example.before, *example.others), ALL)
    twice = normalise(once.output, ALL)
    assert twice.output == once.output
    assert twice.changes == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab:{}- \n", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_what_no_rule_names_keeps_its_bytes(value: object) -> None:
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": value}
    text = stream(obj, obj) + "---\n# only a comment\n"
    done = normalise(text, ALL)
    assert (done.output, done.changes) == (text, ())


def test_neighbours_of_a_changed_document_keep_their_bytes() -> None:
    odd = "---\n# Source: a/b.yaml\nkind:   ConfigMap # odd\nmetadata: {  name: a }\n\n\n"
    changed = "---\n# Source: a/c.yaml\n# about it\nkind: ConfigMap\napiVersion: v1\nmetadata:\n  name: b\n  uid: x\n\n"
    done = normalise(odd + changed + odd, ALL)
    assert done.output == (
        odd
        + "---\n# Source: a/c.yaml\n# about it\nkind: ConfigMap\napiVersion: v1\nmetadata:\n  name: b\n\n"
        + odd
    )
    (change,) = done.changes
    assert (change.rule.id, str(change.object), change.path) == (
        "core/server-metadata",
        "ConfigMap/n/b",
        ("metadata", "uid"),
    )


def test_items_of_lists_are_objects_too() -> None:
    items = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": []}]
    done = normalise(stream({"apiVersion": "v1", "kind": "List", "items": items}), ALL)
    assert objects(done.output) == [
        {"apiVersion": "v1", "kind": "List", "items": [{k: v for k, v in items[0].items() if k != "secrets"}]}
    ]


def test_an_object_can_refuse_rules_and_packs() -> None:
    for words in ("-core/service-account-empty-lists", "-core", " -admission , -core "):
        obj = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "a", "annotations": {"becalm.dev/rules": words}},
            "secrets": [],
        }
        assert normalise(stream(obj), USUAL).changes == ()
        obj["metadata"]["annotations"]["becalm.dev/rules"] = "-argo"
        assert len(normalise(stream(obj), USUAL).changes) == 1


MINE = """\
pack: mine
enabled: false
rules:
  - id: one
    reason: A controller of ours writes it.
    match: [{group: example.com, kind: "Th?ng", name: "a-*", namespace: prod}]
    strip: [spec.x, "spec.list[name=b]"]
    when: {object: {equals: {spec.mode: auto}, absent: [spec.keep]}}
"""


def thing(**spec: object) -> dict:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a-1", "namespace": "prod"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("obj", "left"),
    [
        (
            thing(mode="auto", x=1, list=[{"name": "a"}, {"name": "b"}]),
            {"mode": "auto", "list": [{"name": "a"}]},
        ),
        (thing(mode="auto", x=1, keep=None), {"mode": "auto", "x": 1, "keep": None}),
        (thing(mode="manual", x=1), {"mode": "manual", "x": 1}),
        (thing(mode=True, x=1), {"mode": True, "x": 1}),
        (thing(x=1) | {"kind": "Thang", "metadata": {"name": "b", "namespace": "prod"}}, {"x": 1}),
    ],
)
def test_users_rules_match_by_globs_and_conditions(obj: dict, left: dict) -> None:
    pack = rules.load(MINE, where="mine.yaml")
    (found,) = objects(normalise(stream(obj), pack.rules).output)
    assert found["spec"] == left


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: []\n", r"mine\.yaml:1: the file: 'pack' is a required property"),
        ("pack: A\nrules: [{}]\n", r"mine\.yaml:1: pack: 'A' does not match"),
        (MINE.replace("strip:", "stripe:"), r"mine\.yaml:4: rules/0: "),
        (MINE.replace("{group: example.com, ", "{"), r"mine\.yaml:6: rules/0/match/0: 'group' is a required"),
        (
            MINE + "    fill: {a: 1}\n",
            r"mine\.yaml:4: rules/0: needs exactly one of strip, fill, canonicalise",
        ),
        (MINE.replace("spec.x", '"spec[0]"'), r"mine\.yaml: mine/one: 'spec\[0\]' is no selector"),
        (
            MINE.replace('strip: [spec.x, "spec.list[name=b]"]', '    fill: {"a[]": 1}'.strip()),
            "ends with a key",
        ),
        ("pack: [", r"mine\.yaml, line \d: not valid YAML"),
        ("pack: mine\npack: mine\nrules: []\n", "given twice|twice"),
        ("- a\n", r"mine\.yaml:1: the file: .* is not of type 'object'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(text: str, words: str) -> None:
    with pytest.raises(RuleError) as caught:
        rules.load(text, where="mine.yaml")
    assert re.search(words, str(caught.value)), str(caught.value)


def test_examples_that_do_not_hold_are_told() -> None:
    text = MINE + (
        "    examples:\n"
        "      - {title: kept, keeps: {apiVersion: example.com/v1, kind: Thing, metadata: {name: a-1, namespace: prod},"
        " spec: {mode: auto, x: 1}}}\n"
    )
    found = {(one.title, one.problem) for one in examples.run([rules.load(text, where="mine.yaml")])}
    assert found == {("-", "it has no example that it changes"), ("kept", "it is changed")}


def test_rules_and_packs_are_switched() -> None:
    mine = rules.load(MINE, where="mine.yaml")
    every = (*BUILT_IN, mine)

    def acting(*switches: str) -> set[str]:
        return set(policy.select(every, [Say(where="x", switches=switches)]).usual)

    usual = acting()
    assert usual == {rule.id for rule in ALL if rule.enabled}
    assert {"core/nulls", "definitions/lists"} <= usual
    assert {
        rule_id for rule_id in usual if rule_id.startswith(("openshift/", "aks/", "gke-autopilot/"))
    } == set()
    assert acting("+mine") - usual == {"mine/one"}
    assert usual - acting("-core") == {rule_id for rule_id in usual if rule_id.startswith("core/")}
    assert usual - acting("-core/status") == {"core/status"}
    assert acting("-all", "+core/status") == {"core/status"}
    assert acting("+all") == {rule.id for pack in every for rule in pack.rules if not rule.by_name}
    assert "core/unknown-fields" not in acting("+core")
    assert acting("+core/unknown-fields") - usual == {"core/unknown-fields"}
    assert acting("+all", "-all") == set()


@pytest.mark.parametrize(
    ("switch", "words"),
    [("-cor", "did you mean -core"), ("core", "switches no rule"), ("+core/none", "switches no rule")],
)
def test_a_switch_that_names_nothing_is_refused(switch: str, words: str) -> None:
    with pytest.raises(RuleError, match=words):
        policy.select(BUILT_IN, [Say(where="--rule", switches=(switch,))])


def test_two_packs_of_one_name_are_refused() -> None:
    core = next(pack for pack in BUILT_IN if pack.id == "core")
    with pytest.raises(RuleError, match="two packs 'core'"):
        policy.select((*BUILT_IN, core))


STYLES = {
    "block": {},
    "wide": {"indent": 6, "width": 20},
    "inner flow": {"default_flow_style": None},
    "flow": {"default_flow_style": True},
    "double quotes": {"default_style": '"'},
    "single quotes": {"default_style": "'"},
    "indented lists": {"Dumper": type("D", (yaml.SafeDumper,), {
        "increase_indent": lambda self, flow=False, indentless=False: yaml.SafeDumper.increase_indent(self, flow, False)
    })},
}  # fmt: skip
EMPTIES = {
    "null": ["", "~", "null", "# nothing", "!!null ''"],
    "''": ['""', "''", "|-", '!!str ""'],
    "[]": ["[ ]"],
    "{}": ["{ }"],
}


def spellings(text: str):
    yield text
    for plain, others in EMPTIES.items():
        for other in others:
            yield re.sub(rf": {re.escape(plain)}$", f": {other}", text, flags=re.MULTILINE)
    yield text.replace(": false", ": no")
    yield text.replace(": ", " :  ")
    yield text.replace("\n", "   # about it\n")
    yield text.replace("\n", "\r\n")
    yield re.sub(r": null$", ":", text, flags=re.MULTILINE).replace("\n", "\r\n")
    yield textwrap.indent(text, "  ")
    yield re.sub(r"^( *)(.*:) (\S.*)$", r"\1\2\n\1        \3", text, flags=re.MULTILINE)
    yield re.sub(r": null$", ":", text, flags=re.MULTILINE).replace("\n", "\n        \n   # about it\n\n")


@pytest.mark.parametrize("style", STYLES)
def test_however_an_object_is_written_no_rule_misses_it(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decided by the text alone never leaves out what the rules would change."""
    texts = []
    for _, example in EXAMPLES:
        for obj in (example.before, {"apiVersion": "v1", "kind": "List", "items": [dict(example.before)]}):
            whole = yaml.dump(obj, **{"Dumper": yaml.SafeDumper, **STYLES[style]})
            spelt = spellings(whole) if style == "block" and obj is example.before else [whole]
            texts += [
                "".join(f"---\n{part}" for part in (text, *map(yaml.safe_dump, example.others)))
                for text in dict.fromkeys(spelt)
            ]

    def outcome(text: str) -> object:
        try:
            done = normalise(text, ALL)
        except ManifestError:
            return None  # a spelling that is no YAML
        return done.output, [(change.rule.id, change.path) for change in done.changes]

    quick = [outcome(text) for text in texts]
    monkeypatch.setattr(engine._Index, "wanted", lambda self, look, render: self._rules)
    thorough = [outcome(text) for text in texts]
    # A document that cannot be read is an error only where it has to be read.
    assert [one for one, all_ in zip(quick, thorough, strict=True) if all_ is not None and one != all_] == []
    assert sum(one is not None and bool(one[1]) for one in thorough) >= len(EXAMPLES) - 10


def test_aliases_and_merges_hide_nothing() -> None:
    for text in (
        "kind: ServiceAccount\napiVersion: v1\nmetadata: {name: a}\nimagePullSecrets: &e []\nsecrets: *e\n",
        "kind: ServiceAccount\napiVersion: v1\nmetadata: {name: a}\nx: &e {secrets: []}\n<<: *e\n",
    ):
        assert normalise(text, ALL).changes != ()


#: Written by its controller, where a role aggregates; any other role keeps its rules.
NOT_LEFT_OUT_BY_GO = {"core/aggregated-role-rules"}


@pytest.mark.parametrize("release", ["1.29", "1.37"])
def test_no_rule_takes_away_a_field_that_must_be_there(release: str) -> None:
    """What Go leaves out where it is empty, nobody requires."""
    table = builtin.types(release)
    checked = 0
    for rule in ALL:
        if rule.verb != "strip" or rule.id in NOT_LEFT_OUT_BY_GO:
            continue
        for key in builtin._table()["kinds"]:
            version, _, kind = key.rpartition("/")
            group = version.rpartition("/")[0]
            owner = ObjectId(kind=kind, namespace="", name="a", group=group)
            if not any(
                dataclasses.replace(match, name="*", namespace="*").fits(owner) for match in rule.match
            ):
                continue
            for selector, _ in rule.targets:
                field = resolved(selector, table, table.of({"apiVersion": version, "kind": kind}))
                if field is not None:
                    checked += 1
                    assert field.omitempty, (rule.id, key, selector.text)
    assert checked > 100


def resolved(selector: Selector, table: builtin.Types, name: str) -> builtin.Field | None:
    """The type of the field that a selector names; None for keys of maps, elements and other kinds."""
    field, written = None, name
    for step in selector.steps:
        written = written.removeprefix("*")
        if isinstance(step, Key):
            field = (table.struct(written) or {}).get(step.name)
            if field is None:
                return None
            written = field.type
        elif written[:2] in ("[]", "{}"):
            field, written = None, written[2:]
        else:
            return None
    return field


def test_the_page_of_the_catalogue_is_fresh() -> None:
    """After a change of rules: make docs."""
    root = Path(__file__).resolve().parents[3]
    made = subprocess.run(
        [sys.executable, "-c", "import catalogue_page as c; print(c.page(), end='')"],
        cwd=root / "tools", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert made.stdout == (root / "docs" / "catalogue.md").read_text()
