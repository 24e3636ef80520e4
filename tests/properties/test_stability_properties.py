"""Values stay what they are when something else is edited, and no two of them are the same.

A chart is kept as a model (secrets with fields, helpers, the files they are in), edited at random,
and rendered before and after.
"""

from __future__ import annotations

import base64
import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import yaml
from hypothesis import given
from hypothesis import strategies as st

from becalm.derive.labels import Application
from becalm.derive.seed import Seed
from becalm.pipeline import render
from becalm.request import Request
from becalm.sources.helm import HelmOptions

ROOT = Path(__file__).resolve().parents[2]
HELM = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools")) / "helm-4.1.4" / "helm"
DRAWS = (
    "randAlphaNum 16",
    "randAlpha 20",
    "randNumeric 18",
    "randAscii 24 | b64enc",
    "randBytes 12",
    "uuidv4",
)
SHORT = ("randAlphaNum 4", "randNumeric 5", "randInt 0 900000", "randAlphaNum 30 | trunc 6")


@dataclass
class Field:
    """One key of a secret, and how its value is drawn."""

    key: str
    form: str
    draw: str
    helper: str = ""

    @property
    def lands(self) -> bool:
        return self.form != "short"


@dataclass
class Secret:
    name: str
    file: str
    fields: list[Field]


@dataclass
class Helper:
    """A named template; `calls` another one, or draws."""

    name: str
    file: str
    draw: str
    calls: str = ""


@dataclass
class Model:
    secrets: list[Secret]
    helpers: dict[str, Helper]
    spacing: int = 0
    value: str = "x"
    others: list[str] = field(default_factory=list)

    def files(self) -> dict[str, str]:
        """The chart's files."""
        out = {
            "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
            "values.yaml": f"unrelated: {self.value}\ntexts:\n",
        }
        for helper in self.helpers.values():
            body = self.helper_body(helper)
            path = f"templates/_{helper.file}.tpl"
            out[path] = out.get(path, "") + f'{{{{- define "{helper.name}" -}}}}{body}{{{{- end -}}}}\n'
        for secret in self.secrets:
            path = f"templates/{secret.file}.yaml"
            text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {secret.name}}}\nstringData:\n"
            text += "".join(self.line(item) for item in secret.fields)
            out[path] = out.get(path, "") + self.variables(secret) + text + "---\n"
            for item in secret.fields:
                if item.form == "text":
                    out["values.yaml"] += f"  {secret.name}-{item.key}: '{{{{ {item.draw} }}}}'\n"
                    text = f"(index .Values.texts `{secret.name}-{item.key}`)"
                    out[path] = out[path].replace(f"TEXT-{item.key}\n", f"{{{{ tpl {text} . | quote }}}}\n")
        for name in self.others:
            out[f"templates/{name}.yaml"] = (
                f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{u: {{{{ .Values.unrelated }}}},"
                f" other: {{{{ randAlphaNum 33 }}}}}}\n"
            )
        return out

    def helper_body(self, helper: Helper) -> str:
        if helper.calls:
            return self.action(f'include "{self.helpers[helper.calls].name}" .')
        return self.action(helper.draw)

    def action(self, code: str) -> str:
        """The code in braces, with the spacing that the chart's author likes today."""
        forms = ("{{ %s }}", "{{%s}}", "{{   %s   }}", "{{ %s\n   }}", "{{/* %%s */}}{{ %s }}")
        return forms[self.spacing % len(forms)] % code.replace(" ", "  " if self.spacing % 2 else " ")

    def variables(self, secret: Secret) -> str:
        found = [item for item in secret.fields if item.form in ("variable", "twice")]
        return "".join(f"{{{{- ${item.key} := {item.draw} }}}}\n" for item in found)

    def line(self, item: Field) -> str:
        include = f'include "{self.helpers[item.helper].name}" .' if item.helper else ""
        value = {
            "inline": self.action(f"{item.draw} | quote"),
            "short": self.action(f"{item.draw} | quote"),
            "encoded": self.action(f"{item.draw} | b64enc"),
            "hashed": self.action(f"{item.draw} | sha256sum"),
            "helper": self.action(f"{include} | quote"),
            "piece": f"'user:{self.action(item.draw)}@host'",
            "printf": self.action(f'printf "%s-%s" ({item.draw}) ({item.draw}) | quote'),
            "variable": self.action(f"${item.key} | quote"),
            "twice": self.action(f"${item.key} | quote"),
            "text": f"TEXT-{item.key}",
        }
        if item.form == "range":
            draw = self.action(f"{item.draw} | quote")
            return f'  {{{{- range list "p" "q" }}}}\n  {item.key}-{{{{ . }}}}: {draw}\n  {{{{- end }}}}\n'
        second = f"  {item.key}-again: {{{{ ${item.key} | b64enc }}}}\n" if item.form == "twice" else ""
        return f"  {item.key}: {value[item.form]}\n{second}"


FORMS = (
    "inline",
    "short",
    "encoded",
    "hashed",
    "helper",
    "piece",
    "printf",
    "variable",
    "twice",
    "text",
    "range",
)


class Author:
    """Makes a chart and edits it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.count = 0
        self.model = Model([], {})
        for _ in range(4):
            self.add_helper()
        for _ in range(6):
            self.add_secret()

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def add_helper(self) -> None:
        key = self.fresh("h")
        calls = self.random.choice(["", *self.model.helpers]) if self.model.helpers else ""
        draw = self.random.choice(DRAWS)
        file = self.random.choice("ab")
        self.model.helpers[key] = Helper(f"shop.{key}", file, draw, calls)

    def new_field(self) -> Field:
        form = self.random.choice(FORMS)
        draw = self.random.choice(SHORT if form == "short" else DRAWS)
        helper = self.random.choice(list(self.model.helpers)) if form == "helper" else ""
        return Field(self.fresh("k"), form, draw, helper)

    def add_field(self) -> None:
        fields = self.random.choice(self.model.secrets).fields
        fields.insert(self.random.randint(0, len(fields)), self.new_field())

    def remove_field(self) -> None:
        fields = self.random.choice(self.model.secrets).fields
        if len(fields) > 1:
            fields.pop(self.random.randrange(len(fields)))

    def reorder_fields(self) -> None:
        self.random.shuffle(self.random.choice(self.model.secrets).fields)

    def add_secret(self) -> None:
        fields = [self.new_field() for _ in range(self.random.randint(1, 5))]
        secret = Secret(self.fresh("s"), self.random.choice("xyz"), fields)
        self.model.secrets.insert(self.random.randint(0, len(self.model.secrets)), secret)

    def remove_secret(self) -> None:
        self.model.secrets.pop(self.random.randrange(len(self.model.secrets)))

    def reorder_secrets(self) -> None:
        self.random.shuffle(self.model.secrets)

    def reformat(self) -> None:
        self.model.spacing += self.random.randint(1, 4)

    def change_value(self) -> None:
        self.model.value = self.fresh("v")

    def add_other(self) -> None:
        self.model.others.append(self.fresh("o"))

    def rename_helper(self) -> None:
        self.random.choice(list(self.model.helpers.values())).name = self.fresh("renamed.")

    def move_helper(self) -> None:
        self.random.choice(list(self.model.helpers.values())).file = self.fresh("f")

    def move_secret(self) -> None:
        self.random.choice(self.model.secrets).file = self.fresh("f")

    @property
    def leaves_sites(self) -> list[Callable[[], None]]:
        """The edits that leave every site's name alone."""
        return [self.add_field, self.remove_field, self.reorder_fields, self.add_secret, self.remove_secret,
                self.reorder_secrets, self.reformat, self.change_value, self.add_other]  # fmt: skip

    @property
    def edits(self) -> list[Callable[[], None]]:
        return [*self.leaves_sites, self.rename_helper, self.move_helper, self.move_secret]

    def edit(self, choices: list[Callable[[], None]]) -> list[str]:
        """Make a few edits; their names."""
        made = [self.random.choice(choices) for _ in range(self.random.randint(1, 4))]
        for change in made:
            change()
        return [change.__name__ for change in made]


def values(model: Model) -> dict[tuple[str, str], str]:
    """What becalm renders: the value of every field of every secret."""
    with TemporaryDirectory() as directory:
        for name, text in model.files().items():
            path = Path(directory) / "shop" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = render(
            Request(
                chart=Path(directory) / "shop",
                root=None,
                options=HelmOptions(release="shop", namespace="n"),
                application=Application(name="shop", project="p", namespace="n", cluster=""),
                seed=Seed(bytes(range(32))),
                helm=str(HELM),
                at=0,
            )
        )
    return {
        (obj["metadata"]["name"], key): value
        for obj in yaml.safe_load_all(result.output)
        if obj and obj["kind"] == "Secret"
        for key, value in obj["stringData"].items()
    }


def places(model: Model, *, landing: bool) -> set[tuple[str, str]]:
    """The fields of a chart; with `landing`, only those whose values land."""
    found = set()
    for secret in model.secrets:
        for item in secret.fields:
            keys = {"range": [f"{item.key}-p", f"{item.key}-q"], "twice": [item.key, f"{item.key}-again"]}
            if item.lands or not landing:
                found |= {(secret.name, key) for key in keys.get(item.form, [item.key])}
    return found


def check(before: Model, after: Model, *, landing: bool, edits: list[str]) -> None:
    kept = places(before, landing=landing) & places(after, landing=landing)
    first, second = values(before), values(after)
    assert {place: first[place] for place in kept} == {place: second[place] for place in kept}, edits


@given(seed=st.integers(0, 2**64))
def test_values_that_land_stay_under_every_edit_of_something_else(seed: int) -> None:
    author = Author(seed)
    before = copy.deepcopy(author.model)
    edits = author.edit(author.edits)
    check(before, author.model, landing=True, edits=edits)


@given(seed=st.integers(0, 2**64))
def test_values_that_land_nowhere_stay_while_the_names_of_their_sites_do(seed: int) -> None:
    author = Author(seed)
    before = copy.deepcopy(author.model)
    edits = author.edit(author.leaves_sites)
    check(before, author.model, landing=False, edits=edits)


@given(seed=st.integers(0, 2**64))
def test_values_that_are_drawn_apart_differ(seed: int) -> None:
    author = Author(seed)
    found = values(author.model)
    owners: dict[str, set[str]] = {}
    for secret, key in sorted(places(author.model, landing=True)):
        text = found[secret, key]
        if key.endswith("-again"):
            key, text = key.removesuffix("-again"), base64.b64decode(text).decode()  # noqa: PLW2901
        text = text.removeprefix("user:").removesuffix("@host")
        halves = (
            [text[: len(text) // 2], text[len(text) // 2 + 1 :]] if text[len(text) // 2] == "-" else [text]
        )
        for number, half in enumerate(halves):
            owners.setdefault(half, set()).add(f"{secret}.{key}[{number}]")
    assert {text: places for text, places in owners.items() if len(places) > 1} == {}
