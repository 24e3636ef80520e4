"""The CustomResourceDefinitions at hand: those of the same render, then those that the operator mounts.

A definition is parsed when an object of its kind is first met, and found by its text until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from becalm.errors import RuleError
from becalm.manifests import yamlio
from becalm.manifests.objects import Object, flatten
from becalm.manifests.stream import Document, split
from becalm.normalise.defaults import Schema, schema_of
from becalm.normalise.look import Look

KIND = "CustomResourceDefinition"


class Definitions:
    """Schemas of custom resources by API version and kind.

    Args:
        rendered: the documents of the render.
        mounted: files of further definitions, YAML or JSON, in the order in which they are searched.
        look: what the text of a rendered document shows.
    """

    def __init__(
        self,
        rendered: Sequence[Document],
        mounted: Sequence[Path] = (),
        look: Callable[[Document], Look] = Look,
    ) -> None:
        self._rendered = rendered
        self._look = look
        self._mounted = mounted
        self._found: dict[tuple[str, str], Schema | None] = {}
        self._known: dict[str, bool] = {}
        self._texts: dict[int, list[Document]] = {}
        self._values: dict[tuple[int, int], list[Object]] = {}

    def schema(self, obj: Object) -> Schema | None:
        """The schema of an object's kind in its version, if a definition is at hand.

        Raises:
            RuleError: a mounted file cannot be read.
            ManifestError: a definition cannot be read.
        """
        version, kind = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str) or "/" not in version:
            return None
        if (version, kind) not in self._found:
            self._found[version, kind] = next(self._schemas(version, kind), None)
        return self._found[version, kind]

    def may_know(self, kind: str) -> bool:
        """Whether some definition's text names a kind."""
        if kind not in self._known:
            self._known[kind] = any(True for _ in self._candidates(kind))
        return self._known[kind]

    def _schemas(self, version: str, kind: str) -> Iterator[Schema]:
        group, _, name = version.rpartition("/")
        for source, document in self._candidates(kind):
            for crd in self._objects(source, document):
                spec: Any = crd.get("spec")
                if not isinstance(spec, dict) or spec.get("group") != group:
                    continue
                names = spec.get("names")
                if isinstance(names, dict) and names.get("kind") == kind:
                    schema = schema_of(crd, name)
                    if schema is not None:
                        yield schema

    def _candidates(self, kind: str) -> Iterator[tuple[int, Document]]:
        """Definitions that may be a kind's, with the number of their source."""
        for source in range(-1, len(self._mounted)):
            for document in self._documents(source):
                if kind in document.text:
                    yield source, document

    def _documents(self, source: int) -> list[Document]:
        if source not in self._texts:
            every = self._rendered if source < 0 else split(_read(self._mounted[source]))
            look = self._look if source < 0 else Look
            # A text that tells no kind, as JSON may, has to be read.
            self._texts[source] = [
                one for one in every if KIND in one.text and (not look(one).kinds or KIND in look(one).kinds)
            ]
        return self._texts[source]

    def _objects(self, source: int, document: Document) -> list[Object]:
        key = (source, document.index)
        if key not in self._values:
            where = document.where if source < 0 else f"{self._mounted[source]}: {document.where}"
            value = yamlio.load(document.text, where=where, line=document.line)
            every: Iterable[Object] = flatten(value, where=where) if isinstance(value, dict) else ()
            self._values[key] = [obj for obj in every if obj.get("kind") == KIND]
        return self._values[key]


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise RuleError(
            "the file of definitions cannot be read", where=str(path), hint="check BECALM_DEFINITIONS_DIR"
        ) from error
