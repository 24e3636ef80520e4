"""Applies rules to rendered output. Documents that no rule changes keep their bytes.

Rules act in the order of their packs and files, each once on each object. A document is parsed only if its
text holds what some rule needs; with N documents and R rules the cost is that of N texts and of the rules
that fit an object.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from becalm.manifests import yamlio
from becalm.manifests.objects import Object, ObjectId, flatten, identify
from becalm.manifests.paths import Path
from becalm.manifests.scalars import Value
from becalm.manifests.stream import Document, split
from becalm.normalise import duration, quantity
from becalm.normalise.rules import Reference, Rule, at, is_kind
from becalm.normalise.selectors import Key, Selector

_HEAD = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*")
_KIND = re.compile(r"(?:^|(?<=[\s{,\-\"']))[\"']?kind[\"']?\s*:\s*[\"']?([A-Za-z0-9.]+)")
_GLOB = re.compile(r"[*?\[]")
_ROOT_IN_FLOW = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*[{\[&!?]")
_ALIAS = re.compile(r"[:,\[-][ \t]+\*[\w-]")
_COLON = re.compile(r"[\"']?[ \t]*:(?=[ \t\r\n]|$)[ \t]*")
_NEXT_ROOT = re.compile(r"\n(?=[^ \t#\r\n-])")
_VALUES = {
    "false": re.compile(r"[\w!]"),
    "zero": re.compile(r"[-+.\d!]"),
    "null": re.compile(r"!|null|Null|NULL|~"),
    "empty": re.compile(r"!|null|Null|NULL|~|[\"'\[{|>&]"),
}
#: Rules and packs that an object is left alone by, with commas between: `-core/status,-admission`.
ANNOTATION = "becalm.dev/rules"
_FORMS = {"quantity": quantity.canonical, "duration": duration.canonical}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field that a rule changed; its values are not kept, since they may be secret."""

    rule: Rule
    object: ObjectId
    path: Path


@dataclass(frozen=True, slots=True)
class Normalised:
    """The output, and what was changed, in its order."""

    output: str
    changes: tuple[Change, ...]


def normalise(output: str, rules: Sequence[Rule], namespace: str) -> Normalised:
    """Apply rules to a stream of documents.

    Args:
        output: what was rendered.
        rules: in the order in which they act.
        namespace: of objects that name none.

    Raises:
        ManifestError: a document that a rule might mean cannot be read.
    """
    documents = split(output)
    render = _Render(documents, namespace)
    texts: list[str] = []
    changes: list[Change] = []
    for document in documents:
        look = _Look(document)
        wanted = [rule for rule in rules if look.may_mean(rule)]
        done = _document(document, wanted, render) if wanted else []
        if not done:
            texts.append(document.separator + document.text)
            continue
        changes += done
        texts.append(document.separator + _written(document, render.value(document)))
    return Normalised("".join(texts), tuple(changes))


class _Render:
    """The documents of one render, each parsed when it is first needed."""

    def __init__(self, documents: Sequence[Document], namespace: str) -> None:
        self.documents = documents
        self.namespace = namespace
        self._values: dict[int, Any] = {}

    def value(self, document: Document) -> Any:
        if document.index not in self._values:
            self._values[document.index] = yamlio.load(
                document.text, where=document.where, line=document.line
            )
        return self._values[document.index]

    def objects(self, document: Document) -> Iterator[tuple[ObjectId, Object]]:
        value = self.value(document)
        for obj in flatten(value, where=document.where) if isinstance(value, dict) else ():
            owner = identify(obj, self.namespace)
            if owner is not None:
                yield owner, obj

    def refers(self, reference: Reference, to: ObjectId) -> bool:
        """Whether an object of the reference's kind names another by kind and name, in its namespace."""
        for document in self.documents:
            if document.is_empty or reference.kind not in _kinds(document.text):
                continue
            for owner, obj in self.objects(document):
                if (owner.group, owner.kind, owner.namespace) != (
                    reference.group,
                    reference.kind,
                    to.namespace,
                ):
                    continue
                for path in reference.path.find(obj):
                    target = at(obj, path)
                    # KEDA means a Deployment where it names no kind.
                    if isinstance(target, dict) and (
                        target.get("kind", "Deployment"),
                        target.get("name"),
                    ) == (
                        to.kind,
                        to.name,
                    ):
                        return True
        return False


class _Look:
    """What a document's text shows of the rules that could change it: it says yes too often, never no."""

    def __init__(self, document: Document) -> None:
        self._text = document.text
        self._is_empty = document.is_empty
        self._kinds = set() if document.is_empty else _kinds(document.text)
        self._blocks: dict[str, str] = {}

    def may_mean(self, rule: Rule) -> bool:
        """Whether a rule could change the document."""
        if self._is_empty:
            return False
        if not any(_GLOB.search(match.kind) or match.kind in self._kinds for match in rule.match):
            return False
        return self._is_opaque or any(self._holds(rule, selector) for selector, _ in rule.targets)

    @cached_property
    def _is_opaque(self) -> bool:
        """Whether fields may be where the text does not show them: lists of objects, flow style, aliases, merges."""
        text = self._text
        return (
            any(kind.endswith("List") for kind in self._kinds)
            or _ROOT_IN_FLOW.match(text) is not None
            or "<<" in text
            or ("*" in text and "&" in text and _ALIAS.search(text) is not None)
            or "\n? " in text
        )

    def _holds(self, rule: Rule, selector: Selector) -> bool:
        """Whether the block of the selector's first key holds the others, and the last one what it should."""
        first, *names = [step.name for step in selector.steps if isinstance(step, Key)]
        block = self._block(first)
        if rule.verb == "fill":
            return (bool(block) or not names) and all(name in block for name in names[:-1])
        if not block or not all(name in block for name in names):
            return False
        return rule.verb != "strip" or _shows([first, *names][-1], block, rule.when.value)

    def _block(self, name: str) -> str:
        """The text of a key at the root, up to the next one; "" where there is none."""
        if name not in self._blocks:
            start = _root_key(self._text, name)
            end = None if start < 0 else _NEXT_ROOT.search(self._text, start)
            self._blocks[name] = "" if start < 0 else self._text[start : end.start() if end else None]
        return self._blocks[name]


def _kinds(text: str) -> set[str]:
    """The kinds of a document's objects, and perhaps some more words."""
    start = _root_key(text, "kind")
    match = None if start < 0 else _KIND.match(text, start)
    if match is None or match.group(1).endswith("List"):
        return set(_KIND.findall(text))
    return {match.group(1)}


def _root_key(text: str, name: str) -> int:
    for written in (name, f'"{name}"', f"'{name}'"):
        at_ = 0 if text.startswith(written) else text.find(f"\n{written}") + 1
        while at_ or text.startswith(written):
            if _COLON.match(text, at_ + len(written)):
                return at_
            at_ = text.find(f"\n{written}", at_ + 1) + 1
            if not at_:
                break
    return -1


def _shows(name: str, block: str, kind: str | None) -> bool:
    """Whether a key stands somewhere in a block with a value that may be of a kind."""
    at_ = block.find(name)
    while at_ >= 0:
        before = block[at_ - 1] if at_ else "\n"
        colon = _COLON.match(block, at_ + len(name)) if not (before.isalnum() or before in "_./") else None
        if colon is not None:
            if kind is None or _VALUES[kind].match(block, colon.end()):
                return True
            if kind in ("empty", "null") and _opens_nothing(block, at_, colon.end()):
                return True
        at_ = block.find(name, at_ + 1)
    return False


def _opens_nothing(block: str, key: int, colon: int) -> bool:
    """Whether the rest of a key's line is empty, and no deeper line or list element follows."""
    line_end = block.find("\n", colon)
    rest = block[colon : line_end if line_end >= 0 else None].strip()
    if rest and not rest.startswith("#"):
        return False
    if line_end < 0:
        return True
    start = block.rfind("\n", 0, key) + 1
    indent = len(block[start:key]) - len(block[start:key].lstrip(" -\"'"))
    following = block[line_end + 1 : line_end + 1 + indent + 2]
    return len(following) - len(following.lstrip(" ")) <= indent and not following.strip().startswith("-")


def _document(document: Document, rules: Iterable[Rule], render: _Render) -> list[Change]:
    changes: list[Change] = []
    for owner, obj in render.objects(document):
        refused = _refused(obj)
        for rule in rules:
            if (
                refused.isdisjoint((rule.id, rule.pack))
                and rule.fits(owner)
                and _acts(rule, owner, obj, render)
            ):
                changes += [Change(rule=rule, object=owner, path=path) for path in _apply(rule, obj)]
    return changes


def _refused(obj: Object) -> set[str]:
    metadata: Any = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    words = text.split(",") if isinstance(text, str) else []
    return {word.strip().removeprefix("-") for word in words if word.strip().startswith("-")}


def _acts(rule: Rule, owner: ObjectId, obj: Object, render: _Render) -> bool:
    when = rule.when
    if not when.object.hold(obj):
        return False
    return not when.referred or any(render.refers(reference, owner) for reference in when.referred)


def _apply(rule: Rule, obj: Object) -> list[Path]:
    done: list[Path] = []
    for selector, wanted in rule.targets:
        match rule.verb:
            case "fill":
                done += _fill(rule, obj, selector, wanted)
            case "strip":
                done += _strip(rule, obj, selector)
            case "canonicalise":
                done += _canonicalise(rule, obj, selector, wanted)
    return done


def _fill(rule: Rule, obj: Object, selector: Selector, wanted: Value) -> list[Path]:
    done = []
    for path in selector.holders(obj):
        holder: Any = at(obj, path)
        if selector.last not in holder and rule.when.holder.hold(holder):
            holder[selector.last] = copy.deepcopy(wanted)
            done.append((*path, selector.last))
    return done


def _strip(rule: Rule, obj: Object, selector: Selector) -> list[Path]:
    # From the end, so that the places of list elements stay what they are.
    done = [path for path in reversed(selector.find(obj)) if _meant(rule, obj, path)]
    for path in done:
        holder: Any = at(obj, path[:-1])
        del holder[path[-1]]
        if not holder and path[-2:-1] in (("annotations",), ("labels",)):
            # An empty map of these is dropped by the server, which would show as a difference itself.
            outer: Any = at(obj, path[:-2])
            del outer[path[-2]]
    return done[::-1]


def _canonicalise(rule: Rule, obj: Object, selector: Selector, form: str) -> list[Path]:
    done = []
    for path in selector.find(obj):
        holder: Any = at(obj, path[:-1])
        value = holder[path[-1]]
        if isinstance(value, bool | float) or not isinstance(value, str | int) or not _meant(rule, obj, path):
            continue
        try:
            new = _FORMS[form](str(value))
        except ValueError:
            continue
        if type(value) is not str or new != value:
            holder[path[-1]] = new
            done.append(path)
    return done


def _meant(rule: Rule, obj: Object, path: Path) -> bool:
    """Whether the conditions on a field and on what holds it are fulfilled."""
    value = at(obj, path)
    if rule.when.value is not None and not is_kind(value, rule.when.value):
        return False
    return rule.when.holder.hold(at(obj, path[:-1]))


def _written(document: Document, value: Value) -> str:
    """A document's new text: the comments at its start, then the value, and as many newlines at its end."""
    head = _HEAD.match(document.text)
    text = (head.group() if head else "") + yamlio.dump(value)
    stripped = document.text.rstrip("\n")
    return text.rstrip("\n") + document.text[len(stripped) :]
