"""The catalogue does what it says; rule files are checked by line; the engine does no harm."""

from __future__ import annotations

import dataclasses
import json
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
from becalm.normalise import builtin, engine, examples, packs, policy, rendered, rules
from becalm.normalise.policy import Say
from becalm.normalise.selectors import Key, Selector

CATALOGUE = sorted(Path(str(resources.files("becalm.normalise") / "catalogue")).glob("*.yaml"))
BUILT_IN = packs.built_in(examples=True)
ALL = [rule for pack in BUILT_IN for rule in pack.rules]
USUAL = [rule for rule in ALL if rule.enabled]
EXAMPLES = [(rule, example) for rule in ALL for example in rule.examples]


def normalise(text: str, acting: Sequence[rules.Rule], kube_version: str = "1.26") -> engine.Normalised:
    cluster = rendered.Cluster(namespace="n", kube_version=kube_version)
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
        ("pack: A\nrules: [{}]\n", r"mine\.yaml:1: pack: the value does not match"),
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
        (MINE + MINE.partition("rules:\n")[2], r"mine\.yaml: there are two rules 'mine/one'"),
        (MINE.replace("spec.x", "metadata.name"), "a rule cannot change 'metadata.name', by which"),
        (MINE.replace("spec.x", "kind"), "a rule cannot change 'kind', by which"),
        (MINE.replace("spec.x", '"metadata[*]"'), "a rule cannot change"),
        (MINE.replace("when: {", 'when: {below: "1.99999", '), r"when/below: the value does not match"),
        ("pack: [", r"mine\.yaml, line \d: not valid YAML"),
        ("pack: mine\npack: mine\nrules: []\n", "given twice|twice"),
        ("- a\n", r"mine\.yaml:1: the file: the value is not of type object"),
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
    [
        ("-cor", "did you mean -core"),
        ("core", r"has no sign; write \+core or -core"),
        ("cor", "has no sign"),
        ("+core/none", "switches no rule"),
    ],
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
    value = yaml.safe_load(text)
    for depth in (1, 2, 3):
        # As `toJson` prints what stands below some level.
        yield "".join(f"{line}\n" for line in jsoned(value, depth))
    yield f"\ufeff{text}"
    yield re.sub(r"^( *)-( *)name: (\w+)$", r'\1-   name: "\3"', text, count=1, flags=re.MULTILINE)
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


def jsoned(value: object, depth: int, indent: str = "") -> list[str]:
    """Block style down to some level, and JSON without blanks below it."""
    if not isinstance(value, dict) or not value or depth == 0:
        return [indent + json.dumps(value, separators=(",", ":"))]
    lines = []
    for key, one in value.items():
        if isinstance(one, dict) and one and depth > 1:
            lines += [f"{indent}{json.dumps(key)}:", *jsoned(one, depth - 1, indent + "  ")]
        else:
            lines.append(f"{indent}{json.dumps(key)}: {json.dumps(one, separators=(',', ':'))}")
    return lines


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
    monkeypatch.setattr(engine._Index, "of", lambda self, look, render: self._rules)
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


@pytest.mark.parametrize(("call", "name"), [("page", "catalogue"), ("parameters_page", "parameters")])
def test_pages_that_are_made_from_the_code_are_fresh(call: str, name: str) -> None:
    """After a change: make docs."""
    root = Path(__file__).resolve().parents[3]
    made = subprocess.run(
        [sys.executable, "-c", f"import pages; print(pages.{call}(), end='')"],
        cwd=root / "tools", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert made.stdout == (root / "docs" / f"{name}.md").read_text()


def left(before: object, *others: object, acting: Sequence[rules.Rule] = USUAL) -> object:
    return objects(normalise(stream(before, *others), acting, "1.34").output)[0]


def pod(*env: dict) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "env": list(env)}]},
    }


def variable(text: str) -> dict:
    name, _, value = text.partition("=")
    return {"name": name, "value": value}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A=1 A=2", "A=2"),
        ("A=1 B=x A=1", "A=1 B=x"),
        ("A=1 A=2 A=1", "A=1"),
        ("A=1 A=$(A)/x", "A=1 A=$(A)/x"),
        ("A=$(A)/x A=$(A)/x", "A=$(A)/x A=$(A)/x"),
        ("A=1 B=$(A) A=2 A=1", "A=1 B=$(A) A=2 A=1"),
        ("A=1 A=2 B=$(A)", "A=2 B=$(A)"),
    ],
)
def test_the_container_sees_the_same_variables(before: str, after: str) -> None:
    found = left(pod(*map(variable, before.split())))
    assert found == pod(*map(variable, after.split()))


def test_an_empty_list_inside_of_an_emptied_map_is_gone_at_once() -> None:
    app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"}}
    done = left({**app, "spec": {"project": "p", "syncPolicy": {"syncOptions": []}}})
    assert done["spec"] == {"project": "p"}


def test_rules_see_what_earlier_rules_have_left() -> None:
    text = """\
pack: mine
rules:
  - {id: inner, reason: Comes before the outer one., match: [{group: example.com, kind: Thing}], fill: {spec.a.b: 1}}
  - {id: outer, reason: Makes room for the inner one., match: [{group: example.com, kind: Thing}], fill: {spec.a: {}}}
"""
    acting = rules.load(text, where="mine.yaml").rules
    assert left(thing(), acting=acting)["spec"] == {"a": {"b": 1}}


def mine(*lines: str) -> Sequence[rules.Rule]:
    head = "reason: A reason of some length., match: [{group: '*', kind: '*'}]"
    entries = (f"  - {{id: r{number}, {head}, {line}}}\n" for number, line in enumerate(lines))
    return rules.load(f"pack: mine\nrules:\n{''.join(entries)}", where="mine.yaml").rules


@pytest.mark.parametrize(
    ("lines", "left_over", "by"),
    [
        (["fill: {spec.a: 1}", "strip: [spec.a]"], {}, []),
        (["strip: [spec.a]", "fill: {spec.a: 1}"], {"a": 1}, ["mine/r1"]),
        (["strip: [spec.b]", "fill: {spec.b: 3}"], {"b": 3}, ["mine/r1"]),
        (["fill: {spec.b: 3}", "strip: [spec.b]"], {}, ["mine/r1"]),
        (["strip: [spec.b]", "fill: {spec.b: 2}", "strip: [spec.b]"], {}, ["mine/r2"]),
        (["fill: {spec.a.c: 1}", "fill: {spec.a: {}}", "strip: [spec.a.c]"], {"a": {}}, ["mine/r1"]),
    ],
)  # fmt: skip
def test_the_later_of_two_rules_decides(lines: list[str], left_over: dict, by: list[str]) -> None:
    obj = thing()
    has_b = "spec.b" in str(lines)
    obj["spec"] = {"b": 2} if has_b else {}
    done = normalise(stream(obj), mine(*lines), "1.34")
    assert objects(done.output)[0]["spec"] == left_over
    assert [change.rule.id for change in done.changes] == by
    again = normalise(done.output, mine(*lines), "1.34")
    assert again.output == done.output


def test_what_rules_change_and_change_back_keeps_its_bytes() -> None:
    text = "kind: Thing   # x\napiVersion: example.com/v1\nmetadata: {name: a}\nspec: {}\n"
    assert normalise(text, mine("fill: {spec.a: 1}", "strip: [spec.a]"), "1.34").output == text


def test_users_rules_decide_on_what_built_in_ones_do() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": ""}}
    acting = [*USUAL, *mine('fill: {spec.clusterIP: ""}')]
    assert left(service, acting=acting) == service
    nothing = [*USUAL, *mine("strip: [spec.x]", "fill: {spec.x: null}")]
    assert left({**service, "spec": {"x": 1}}, acting=nothing)["spec"] == {"x": None}


def test_any_number_of_rules_may_make_room_for_an_earlier_one() -> None:
    paths = [".".join(["spec", *"abcdefghijklmnopqrst"[: n + 1]]) for n in range(20)]
    acting = mine(*(f"fill: {{{path}: {{}}}}" for path in reversed(paths)))
    found = left(thing(), acting=acting)["spec"]
    for name in "abcdefghijklmnopqrst":
        found = found[name]
    assert found == {}


def test_a_status_with_defaults_is_stripped_all_the_same() -> None:
    every = [rule for rule in ALL if rule.id in ("definitions/everywhere", "mine/r0")]
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "properties": {"status": {"default": {"a": 1}}}}}}]},
    }  # fmt: skip
    assert "status" in left({**thing(), "status": {}}, crd, acting=every)
    assert "status" not in left({**thing(), "status": {}}, crd, acting=[*every, *mine("strip: [status]")])


def test_a_route_that_a_rollout_steers_gets_no_weight_of_its_definition() -> None:
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "a"},
        "spec": {"rules": [{"backendRefs": [{"name": "s", "port": 80}]}]},
    }  # fmt: skip
    weight = {"default": 1}
    refs = {
        "items": {"properties": {"weight": weight, "port": {}, "kind": {"default": "Service"}, "group": {}}}
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "httproutes.gateway.networking.k8s.io"},
        "spec": {"group": "gateway.networking.k8s.io", "names": {"kind": "HTTPRoute"}, "versions": [{"name": "v1", "schema": {
            "openAPIV3Schema": {"properties": {"spec": {"properties": {"rules": {"items": {"properties": {
                "backendRefs": refs}}}}}}}}}]},
    }  # fmt: skip
    rollout = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"},
        "spec": {"strategy": {"canary": {"trafficRouting": {"plugins": {"argoproj-labs/gatewayAPI": {"httpRoute": "a"}}}}}},
    }  # fmt: skip
    alone = left(route, crd)["spec"]["rules"][0]["backendRefs"][0]
    assert (alone["weight"], alone["kind"]) == (1, "Service")
    steered = left(route, crd, rollout)["spec"]["rules"][0]["backendRefs"][0]
    assert "weight" not in steered
    assert steered["kind"] == "Service"


def test_references_are_those_of_what_was_rendered() -> None:
    """Whatever rules do to the object that refers, and wherever it stands."""
    hpa = {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
    }  # fmt: skip
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 2}
    }  # fmt: skip
    acting = [*USUAL, *mine("strip: [spec.scaleTargetRef]")]
    for order in ([hpa, deployment], [deployment, hpa]):
        done = normalise(stream(*order), acting, "1.34")
        specs = {obj["kind"]: obj["spec"] for obj in objects(done.output)}
        assert specs == {"HorizontalPodAutoscaler": {}, "Deployment": {}}


def test_the_schema_of_a_definition_is_data() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com", "annotations": {"x": None}},
        "spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "schema": {
            "openAPIV3Schema": {"properties": {"spec": {"default": None, "example": None}}}}}]},
    }  # fmt: skip
    found = left(crd)
    assert "annotations" not in found["metadata"]
    assert found["spec"] == crd["spec"]


def test_two_metrics_of_one_cpu_keep_their_order() -> None:
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
    }
    memory = {**cpu, "resource": {**cpu["resource"], "name": "memory"}}
    hpa = {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"metrics": [cpu, cpu, memory]},
    }  # fmt: skip
    rule = [rule for rule in ALL if rule.id == "core/metric-order"]
    assert normalise(stream(hpa), rule, "1.26").changes == ()
    hpa["spec"]["metrics"] = [cpu, memory]
    assert objects(normalise(stream(hpa), rule, "1.26").output)[0]["spec"]["metrics"] == [memory, cpu]


@pytest.mark.parametrize("source", ["configMapKeyRef", "secretKeyRef", "fileKeyRef"])
def test_a_variable_that_may_be_missing_leaves_the_earlier_one(source: str) -> None:
    reference = {"name": "s", "key": "k", "optional": True}
    before = pod(variable("A=1"), {"name": "A", "valueFrom": {source: reference}})
    assert left(before) == before
    del reference["optional"]
    sure = pod({"name": "A", "valueFrom": {source: reference}})
    assert left(pod(variable("A=1"), *sure["spec"]["containers"][0]["env"])) == sure


@pytest.mark.parametrize("protocol", [{}, [], 1])
def test_ports_without_a_proper_protocol_are_left_alone(protocol: object) -> None:
    port = {"containerPort": 80, "protocol": protocol}
    before = pod()
    before["spec"]["containers"][0] = {"name": "c", "ports": [port, port]}
    assert left(before) == before


def test_null_annotations_of_all_templates_are_taken_away() -> None:
    def metadata() -> dict:
        return {"annotations": {"x": None, "y": "1"}}

    job = {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", **metadata()},
        "spec": {"jobTemplate": {"metadata": metadata(), "spec": {"template": {"metadata": metadata()}}}},
    }  # fmt: skip
    assert "null" not in normalise(stream(job), USUAL, "1.34").output


def test_rules_that_multiply_are_stopped() -> None:
    fills = ", ".join(
        f"{'spec.z' + '[].z' * depth}: [{', '.join(['{}'] * 50)}]".replace("spec.z[", '"spec.z[').replace(
            "].z:", '].z":'
        )
        for depth in range(5)
    )
    text = f"pack: mine\nrules:\n  - {{id: one, reason: Multiplies without an end., match: [{{group: example.com, kind: Thing}}], fill: {{{fills}}}}}\n"
    with pytest.raises(RuleError, match="rules change more than 100,000 fields"):
        left(thing(), acting=rules.load(text, where="mine.yaml").rules)


def refusing(value: object) -> dict:
    metadata = {"name": "a", "annotations": {"becalm.dev/rules": value}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.mark.parametrize("word", ["-core/none", "core", "- core", "+core"])
def test_an_annotation_that_switches_nothing_off_is_an_error(word: str) -> None:
    with pytest.raises(RuleError, match="switches no rule off"):
        left(refusing(word))


@pytest.mark.parametrize("value", [["-core"], {}, 1, True])
def test_an_annotation_that_is_no_text_is_an_error(value: object) -> None:
    with pytest.raises(RuleError, match="is no text"):
        left(refusing(value))


def test_an_annotation_can_switch_all_off() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "x", "annotations": {"becalm.dev/rules": "-all"}},
    }
    assert left(obj) == obj


def test_kinds_that_are_called_as_kubernetes_own_have_defaults_too() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "jobs.batch.example.com"},
        "spec": {"group": "batch.example.com", "names": {"kind": "Job"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "properties": {"spec": {"properties": {"tasks": {"items": {"properties": {"size": {"default": 1}}}}}}}}}}]},
    }  # fmt: skip
    job = {
        "apiVersion": "batch.example.com/v1",
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"tasks": [{}]},
    }
    assert left(job, crd)["spec"] == {"tasks": [{"size": 1}]}


@pytest.mark.parametrize(
    "text",
    [
        "kind: Service\napiVersion: v1\nmetadata: {name: a}\nspec:\n  type: x\nspec:\n  clusterIP: ''\n",
        "kind: Bundle\nitems:\n- kind: Service\n  apiVersion: v1\n  metadata: {name: a}\n  spec:\n    clusterIP: ''\n",
        "kind: &k Service\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  clusterIP: ''\n",
        "kind: !!str Service\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  clusterIP: ''\n",
        "kind: Service\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  clusterIP: &p ''\n",
        'kind: Service\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  "cluster\\u0049P": ""\n',
        'kind: Service\napiVersion: v1\nmetadata:\n  name: a\nspec: {\n"clusterIP": ""\n}\n',
        "kind: Service\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  ? clusterIP\n  : ''\n",
        "kind: &k Service\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  clusterIP: ''\n  x:\n    kind: Other\n",
        "kind: >-\n  Service\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  clusterIP: ''\n  x:\n    kind: Other\n",
        "metadata:\n  name: a\n  ownerReferences:\n  - {uid: u, name: a}\n  - uid: u\n    name: a\nkind: ConfigMap\napiVersion: v1\n",
        "metadata:\n  name: a\n  ownerReferences:\n  - uid: u\n  - uid: u\nkind: Role\napiVersion: rbac.authorization.k8s.io/v1\n",
    ],
)
def test_unusual_forms_hide_nothing(text: str) -> None:
    assert normalise(text, USUAL, "1.34").changes != ()


@pytest.mark.parametrize(
    "text",
    [
        "kind: Deployment\napiVersion: apps/v1\nmetadata:\n  name: a\nspec:\n  a:\n"
        + "  # cpu:\n" * 20000
        + "    l: 1\n",
        "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  k: '~'\n  a:\n"
        + "    # :\n" * 20000
        + "    l: x\n",
        "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  k:\n"
        + "  # x:\n" * 20000
        + "    l\n",
        "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  k: '" + "a ? " * 300000 + "'\n",
        'kind: Thing\napiVersion: x.example/v1\nmetadata:\n  name: a\nspec:\n  a: "'
        + '\\"x\\": ' * 60000
        + '"\n',
        "kind: Thing\napiVersion: x.example/v1\nmetadata:\n  name: a\nspec:\n  a: x" + '\\"' * 200000 + "\n",
        "kind: Thing\napiVersion: x.example/v1\nmetadata:\n  name: a\nspec:\n  a: '" + "-{[" * 200000 + "'\n",
    ],
    ids=["quantities", "nulls", "blanks", "questions", "escapes", "unclosed", "braces"],
)
def test_long_texts_take_time_by_their_length(text: str) -> None:
    """Each of these took minutes when it took time by the square of it."""
    normalise(text, USUAL, "1.34")


def test_many_objects_take_time_by_their_number() -> None:
    pairs = [
        obj
        for n in range(1500)
        for obj in (
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"a{n}"}, "spec": {"replicas": 2}},
            {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": f"a{n}"},
             "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"a{n}"}}},
        )
    ]  # fmt: skip
    text = "".join(f"---\n{json.dumps(obj)}\n" for obj in pairs)
    assert len(normalise(text, USUAL, "1.34").changes) == 1500


@pytest.mark.parametrize(
    "text",
    [
        "metadata: {name: a, annotations: {x: }}\nspec: {}\n",
        'metadata: {name: a, annotations: {x: , y: "1"}}\n',
        'metadata: {name: a, annotations: {x, y: "1"}}\n',
        'metadata: {name: a, annotations: {y: "1", x}}\n',
        'metadata: {"name":"a","uid":"1"}\n',
        "metadata:\n  name: a\n  annotations: {\n    x: null }\n",
        'metadata: {name: a}\nspec: {"clusterIP":""}\n',
        'metadata: {name: a}\nspec:\n  ports: [{"nodePort":0,"port":80}]\n',
        "metadata: {name: a}\nspec:\n  ports: [{port: 80, nodePort: 0}]\n",
        "metadata: {name: a}\nspec: {ports: [{port: 80, nodePort: null}]}\n",
        "metadata: {name: a}\nspec:\n  ports: [ {port: 80, nodePort: ~} ]\n",
        "metadata: {name: a}\nspec:\n  ports:\n  - {port: 80, nodePort: }\n",
        'metadata: {name: a}\nspec:\n  ports: [{"port":80,"name":"v"},{"name":"v","port":80}]\n',
        "metadata: {name: a}\nspec: {ports: [{port: 80, targetPort: [a], nodePort}]}\n",
        "metadata: {name: a}\nspec: {x: {}, clusterIP}\n",
        "metadata: {name: a}\nspec: {x: '{x}', clusterIP}\n",
        'metadata: {name: a}\nspec: {x: "{x}", clusterIP}\n',
        "metadata: {name: a}\nspec: {x: don't, clusterIP, z: won't}\n",
        "metadata: {name: a}\nspec: {x: a:b, clusterIP}\n",
    ],
)
def test_braces_hide_nothing(text: str) -> None:
    assert normalise(f"kind: Service\napiVersion: v1\n{text}", USUAL, "1.34").changes != ()


def test_an_autoscaler_whose_kind_is_in_an_unusual_form_refers_all_the_same() -> None:
    deployment = "kind: Deployment\napiVersion: apps/v1\nmetadata:\n  name: a\nspec:\n  replicas: 2\n"
    for kind in (
        "&k HorizontalPodAutoscaler",
        "!!str HorizontalPodAutoscaler",
        ">-\n  HorizontalPodAutoscaler",
    ):
        hpa = (
            f"kind: {kind}\napiVersion: autoscaling/v2\nmetadata:\n  name: h\nspec:\n"
            "  scaleTargetRef:\n    kind: Deployment\n    name: a\n"
        )
        assert [change.path for change in normalise(f"{deployment}---\n{hpa}", USUAL, "1.34").changes] == [
            ("spec", "replicas")
        ]


def test_values_behind_every_key_are_looked_at() -> None:
    text = "kind: Thing\napiVersion: x.example/v1\nmetadata:\n  name: a\nspec:\n  l:\n    k: ''\n  m:\n  - ''\n  p:\n"
    acting = mine("strip: ['spec.l[*]'], when: {value: empty}", "strip: ['spec.m[]'], when: {value: empty}")
    assert len(normalise(text, acting, "1.34").changes) == 2
    nothing = mine("strip: [spec.p], when: {value: nonzero}")
    assert len(normalise(text, nothing, "1.34").changes) == 1


@pytest.mark.parametrize("place", ["validation", "versions:\n  - a"])
def test_schemas_are_looked_at_wherever_they_are(place: str) -> None:
    text = (
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata:\n  name: a\n"
        f"spec:\n  {place}:\n      openAPIV3Schema:\n        description: ''\n"
    )
    path = "spec.validation" if place == "validation" else "spec.versions[][*]"
    acting = mine(f"strip: ['{path}.openAPIV3Schema.description']")
    assert len(normalise(text, acting, "1.34").changes) == 1


def test_a_person_can_switch_the_applications_own_rules() -> None:
    own = rules.load(
        "pack: app\nrules:\n- {id: x, reason: A reason of some length., match: [{group: '*', kind: '*'}], strip: [spec.x]}\n",
        where="app.yaml",
    )
    for switch in ("-app", "-app/x"):
        chosen = policy.select(BUILT_IN, app_packs=[own], last=Say(where="--rule", switches=(switch,)))
        assert "app/x" not in {rule.id for rule in chosen.rules}


SCALED = "{group: autoscaling, kind: HorizontalPodAutoscaler, path: spec.scaleTargetRef}"


def scaler() -> dict:
    return {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
    }  # fmt: skip


def test_a_fill_that_leaves_out_keeps_no_strip_from_acting() -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"replicas": 3},
    }
    acting = [*USUAL, *mine(f"fill: {{spec.replicas: 1}}, when: {{unreferred: [{SCALED}]}}")]
    assert left(deployment, scaler(), acting=acting)["spec"] == {}


@pytest.mark.parametrize(
    ("spec", "lines", "left_over"),
    [
        ({"f": 1}, ["strip: [spec.f]", "fill: {spec.f: true}"], {"f": True}),
        ({"f": 1, "g": 1}, ["strip: [spec.f, spec.g]", "fill: {spec.f: true}"], {"f": True}),
        (
            {"l": []},
            [
                "strip: [spec.l], when: {value: empty}",
                "fill: {spec.l: [{name: x}]}",
                "strip: ['spec.l[name=x]']",
            ],
            {"l": []},
        ),
        ({}, ["strip: [spec.a.b]", "fill: {spec.a: {b: 1}}"], {"a": {}}),
        ({}, ["fill: {spec.a: {b: 1}}", "strip: [spec.a.b]"], {"a": {}}),
    ],
)
def test_the_later_rule_decides_on_all_that_it_sets(spec: dict, lines: list[str], left_over: dict) -> None:
    done = normalise(stream({**thing(), "spec": spec}), mine(*lines), "1.34")
    found = objects(done.output)[0]["spec"]
    assert json.dumps(found) == json.dumps(left_over)
    assert normalise(done.output, mine(*lines), "1.34").output == done.output


def test_an_emptied_map_of_annotations_ends_no_turn() -> None:
    acting = mine("strip: ['metadata.annotations[x]']", "fill: {metadata.annotations: {x: z}}")
    once = left(thing(), acting=acting)
    assert once["metadata"]["annotations"] == {"x": "z"}
    assert left(once, acting=acting) == once


@pytest.mark.parametrize("indent", [None, 2])
def test_definitions_in_json_are_definitions(indent: int | None) -> None:
    items = {"properties": {"mode": {"default": "auto"}, "kind": {"type": "string"}}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "schema": {
            "openAPIV3Schema": {"properties": {"spec": {"properties": {"l": {"items": items}}}}}}}]},
    }  # fmt: skip
    text = f"{json.dumps(crd, indent=indent)}\n---\n{yaml.safe_dump({**thing(), 'spec': {'l': [{}]}})}"
    assert objects(normalise(text, USUAL, "1.34").output)[1]["spec"] == {"l": [{"mode": "auto"}]}


def test_many_elements_take_time_by_their_number() -> None:
    twice = [variable(f"A{n}={side}") for side in (1, 2) for n in range(4000)]
    assert len(left(pod(*twice))["spec"]["containers"][0]["env"]) == 4000
    same = pod(*(variable("A=1") for _ in range(4000)))
    same["spec"]["containers"] += [{"name": f"c{n}", "image": None} for n in range(4000)]
    assert len(left(same)["spec"]["containers"][0]["env"]) == 1


PORTS = "kind: Pod\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: c\n    ports:\n    - containerPort: 80\n"


@pytest.mark.parametrize(
    "text",
    [
        '{"apiVersion":"v1","kind":Service,"metadata":{"name":"a"},"spec":{"clusterIP":"","ports":[{"port":80,"kind":"User"}]}}',
        "{'apiVersion': v1, 'kind':!!str \"Service\", metadata: {name: a}, spec: {clusterIP: '', x: {kind: Y}}}\n",
        f"{PORTS}    - containerPort: 0x50\n",
        f'{PORTS}    - containerPort: !!int "80"\n',
    ],
)
def test_unusual_values_hide_nothing(text: str) -> None:
    assert normalise(text, USUAL, "1.34").changes != ()
