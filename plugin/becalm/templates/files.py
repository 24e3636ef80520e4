"""Template texts, and whether any of them may have to be rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from becalm.templates import functions


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateFile:
    """One template text.

    `key` names it for people and is unique (`charts/db-1.tgz/templates/secret.yaml`), `name` is
    its path below the chart's `templates/`. `is_text` marks a text that `tpl` renders, which is
    no file of its own; `origin` then tells people where it stands.
    """

    key: str
    name: str
    text: str
    is_text: bool = False
    origin: str = ""

    @property
    def place(self) -> str:
        """The file, or where the text stands, for people."""
        return self.origin or self.key

    @property
    def is_partial(self) -> bool:
        """Whether Helm only loads the file, for others to include."""
        return self.is_text or self.name.rpartition("/")[2].startswith("_")


def wants(files: Iterable[TemplateFile], texts: Iterable[str]) -> bool:
    """Whether anything may have to be rewritten."""
    return any(functions.mentions(file.text) for file in files) or any(map(functions.mentions, texts))
