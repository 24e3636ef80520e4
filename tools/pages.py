"""Writes docs/catalogue.md, docs/parameters.md and the announcement in plugin.yaml from the code: make docs.

Tests fail when they are stale.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from becalm.cmp import parameters
from becalm.normalise import computed, ignores, packs
from becalm.normalise.rules import Pack, Rule

DOCS = Path(__file__).resolve().parents[1] / "docs"
PARAMETERS = """# Parameters

Made from the schema by `make docs`; do not edit. An Application sets these in `source.plugin.parameters`; each has the
name of Argo CD's own Helm, Kustomize or directory source where that has it ([Kustomize](kustomize.md)). Anything else is an error, never ignored.

```yaml
source:
  plugin:
    name: becalm
    parameters:
      - name: valueFiles
        array: [values-prod.yaml]
      - name: parameters
        map: {image.tag: 1.2.3}
```

In values of `parameters`, `stringParameters` and `fileParameters`, and in names of values files, `$ARGOCD_APP_NAME` and the like
are replaced as Argo CD does it; in `values` nothing is. Values count in this order: values files, `values` (or
`valuesObject`), `parameters`, `stringParameters`, `fileParameters`. Values files must lie in the repository.

| parameter | field | meaning | example |
| --- | --- | --- | --- |
"""
HEAD = """# Built-in rules

Made from the catalogue by `make docs`; do not edit. [Rules](rules.md) explains how to switch them and how to write your
own. `becalm rules show ID` shows one with its examples. *By name* means that the rule acts only when a switch
names it (`+PACK/RULE`), not with its pack.
"""
IGNORES = """
## What no rule can help with

`becalm ignore` writes `ignoreDifferences` for these. The first column says whether it finds them in the render by
itself; the others are asked for with `--entry ID`.

| found | entry | why rendering cannot help |
| --- | --- | --- |
"""


def page() -> str:
    """The page's text."""
    parts = [HEAD]
    for pack in packs.built_in():
        parts.append(
            f"\n## {pack.id}\n\n{pack.title}.{_when(pack)}\n\n| rule | acts | verb | fields | why |\n"
        )
        parts.append("| --- | --- | --- | --- | --- |\n")
        parts += [_row(rule) for rule in pack.rules]
    parts.append(IGNORES)
    parts += [
        f"| {'yes' if entry.is_found else ''} | `{entry.id}` | {entry.reason} |\n"
        for entry in ignores.entries()
    ]
    return "".join(parts)


def parameters_page() -> str:
    """The text of docs/parameters.md."""
    rows = []
    for name in parameters.schema()["properties"]:
        form = parameters.form(name)
        example = json.dumps(form["examples"][0])
        rows.append(f"| `{name}` | {parameters.collection(name)} | {form['description']} | `{example}` |\n")
    return PARAMETERS + "".join(rows)


def announced(text: str) -> str:
    """plugin.yaml with the static announcement that the schema gives."""
    before, start, rest = text.partition("    static:\n")
    _, end, after = rest.partition("    dynamic:\n")
    lines = []
    for entry in parameters.announcement():
        for sign, (key, value) in zip("-" + " " * len(entry), entry.items(), strict=False):
            is_plain = ": " not in value and value[0].isalnum()
            lines.append(f"      {sign} {key}: {value if is_plain else json.dumps(value)}\n")
    return before + start + "".join(lines) + end + after


def _when(pack: Pack) -> str:
    return "" if pack.enabled else f" Off until it is switched on: `+{pack.id}`."


def _row(rule: Rule) -> str:
    name = rule.id.partition("/")[2]
    acts = "by name" if rule.by_name else "yes" if rule.enabled else "with its pack"
    return f"| `{name}` | {acts} | {rule.verb} | {'<br>'.join(_fields(rule))} | {rule.reason} |\n"


def _fields(rule: Rule) -> Iterator[str]:
    if rule.computed:
        yield computed.SETS[rule.computed].about
        return
    shown = 6
    for selector, _ in rule.targets[:shown]:
        yield f"`{selector}`"
    if len(rule.targets) > shown:
        yield f"and {len(rule.targets) - shown} more"


if __name__ == "__main__":
    (DOCS / "catalogue.md").write_text(page(), "utf-8")
    (DOCS / "parameters.md").write_text(parameters_page(), "utf-8")
    plugin = DOCS.parent / "plugin.yaml"
    plugin.write_text(announced(plugin.read_text("utf-8")), "utf-8")
