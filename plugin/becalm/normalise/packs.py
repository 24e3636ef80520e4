"""The built-in catalogue, and users' rule files."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path

from becalm.errors import RuleError
from becalm.normalise import application
from becalm.normalise.rules import Pack, load

_FIRST = ("core.yaml", "definitions.yaml", "raw-defaults.yaml")


#: The examples of a rule, as the catalogue's files are indented.
_EXAMPLES = re.compile(r"^    examples:\n(?:      .*\n)+", re.MULTILINE)


@cache
def built_in(*, examples: bool = False) -> tuple[Pack, ...]:
    """The packs of the catalogue: what concerns all kinds first, then by name.

    Args:
        examples: read those of the rules as well, which a render does not need and which take most of the time.
    """
    folder = resources.files("becalm.normalise").joinpath("catalogue")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".yaml")),
        key=lambda file: (file.name not in _FIRST, file.name),
    )
    texts = ((file.name, file.read_text("utf-8")) for file in files)
    return tuple(
        load(text if examples else _EXAMPLES.sub("", text), where=name, checked=False) for name, text in texts
    )


def read(path: Path) -> Pack:
    """A user's rule file, or the rules in an application's `.becalm.yaml`.

    Raises:
        RuleError: it cannot be read, or is wrong; the message names the line.
    """
    if path.name == application.NAME and path.is_file():
        found = application.read(path.parent).pack
        return found or Pack(id=application.PACK, title="", enabled=True, rules=())
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise RuleError("the rule file cannot be read", where=str(path), hint="check its path") from error
    return load(text, where=str(path))
