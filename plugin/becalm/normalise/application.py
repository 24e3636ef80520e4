"""What an app team says of rules in `.becalm.yaml`, beside its chart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from becalm.errors import RuleError
from becalm.normalise import rules
from becalm.normalise.rules import Pack

NAME = ".becalm.yaml"
#: The pack of the app's own rules.
PACK = "app"
_MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFile:
    """Switches, and rules of the app's own, in a pack; None where it has none."""

    switches: tuple[str, ...] = ()
    pack: Pack | None = None


def read(directory: Path) -> ApplicationFile:
    """The file in a directory; one that says nothing where there is none.

    Raises:
        RuleError: it cannot be read, is a link, or is wrong; the message names the line.
    """
    path = directory / NAME
    # A link could show another file's text in a message.
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RuleError("the file is no regular file", where=NAME, hint="write the rules into it")
    if not path.exists():
        return ApplicationFile()
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeError) as error:
        raise RuleError("the file cannot be read", where=NAME, hint="it has to be UTF-8") from error
    if len(data) > _MOST_BYTES:
        raise RuleError(f"the file is larger than {_MOST_BYTES // 1024} KiB", where=NAME)
    value: Any = rules.parse(text, where=NAME)
    if value is None:
        return ApplicationFile()
    rules.check(value, _schema(), text, NAME)
    own = tuple(rules.rule(entry, PACK, where=NAME, enabled=True) for entry in value.get("rules", ()))
    own = rules.unique(own, NAME)
    pack = Pack(id=PACK, title="Rules of the application", enabled=True, rules=own) if own else None
    return ApplicationFile(switches=tuple(value.get("switches", ())), pack=pack)


@cache
def _schema() -> dict[str, Any]:
    schema = rules.schema()
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "switches": {"type": "array", "items": {"type": "string", "maxLength": 64}},
            "rules": schema["properties"]["rules"],
        },
        "$defs": schema["$defs"],
    }
