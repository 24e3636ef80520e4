"""Parse and write one YAML document the way Argo CD's Go reader sees it. The only importer of yaml.

Both directions work on libyaml's *events*: nothing recurses, aliases are priced before they are expanded,
and no class or table of PyYAML is changed. Scalars follow `scalars`, mappings and aliases follow `tree`.

Meant differences from Go, all of them refusals: keys that collide once they are strings (Go picks one at
random), unknown tags (Go drops them), `!!binary` of bytes that are not text (Go garbles them), a second
document (Go loses it), nesting beyond `MAX_DEPTH` (Go's limit is 10,000).
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import yaml
from yaml import events

from becalm.errors import ManifestError
from becalm.manifests import paths, scalars
from becalm.manifests.scalars import Value
from becalm.manifests.tree import MAX_DEPTH, TreeBuilder

_HAVE_LIBYAML: bool = bool(yaml.__with_libyaml__)
# Without libyaml the C classes don't exist; the refusal comes at first use, where it can be reported.
_BaseLoader: Any = yaml.CSafeLoader if _HAVE_LIBYAML else yaml.SafeLoader
_BaseDumper: Any = yaml.CSafeDumper if _HAVE_LIBYAML else yaml.SafeDumper


class _EventLoader(_BaseLoader):  # type: ignore[misc]  # the base depends on how PyYAML was built
    """Gives events; resolving and constructing happen here, so PyYAML's tables are empty."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}
    yaml_constructors: ClassVar[dict[str | None, Any]] = {}


class _EventDumper(_BaseDumper):  # type: ignore[misc]  # as above
    """Takes events; representing happens here, so PyYAML's tables are empty."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}
    yaml_representers: ClassVar[dict[type, Any]] = {}


def load(
    text: str,
    *,
    where: str,
    line: int = 1,
    strict: bool = False,
    warnings: list[str] | None = None,
) -> Value:
    """The value of one document: None, bool, int, float, str, list, or dict with string keys.

    Each use of an anchor is a separate copy. Merge keys act in document order, as in Go: `<<` overrides the
    keys above it and is overridden by those below it.

    Args:
        text: one document without its separators. As in Argo CD's reader, a missing final newline is added
            and CRLF becomes LF.
        where: the document for messages, such as `document 3 (Source: a/b.yaml)`.
        line: the number of the text's first line in the stream, for messages.
        strict: a key given twice is an error rather than a warning.
        warnings: receives one sentence for each key given twice (the last one counts, as in Go).

    Raises:
        ManifestError: the text is not YAML, Argo CD would refuse it or read it at random, or it exceeds a
            limit. Messages name keys and lines, never values.
    """
    _require_libyaml()
    text = text.replace("\r\n", "\n")
    if not text.endswith("\n"):
        text += "\n"
    builder = TreeBuilder(where=where, line=line, strict=strict, warnings=warnings)
    inner = _INNER_BOM(text)
    if inner:
        # libyaml skips it, Go takes it for a part of the next word.
        builder.fail("a byte order mark at the start of a line", text.count("\n", 0, inner.end()))
    loader = None
    try:
        loader = _EventLoader(text)
        _drive(loader.get_event, builder)
    except UnicodeError:
        builder.fail("half of a surrogate pair, which UTF-8 cannot hold")
    except yaml.reader.ReaderError as error:
        before = text.encode("utf-8")[: max(int(error.position or 0), 0)]
        builder.fail("a character that YAML does not allow", before.count(b"\n"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        lost = error.problem == "did not find expected <document start>"
        what = "content behind the end of the document, which Argo CD would lose or refuse" if lost else None
        builder.fail(what or f"not valid YAML ({error.problem})", mark.line if mark else None)
    except yaml.YAMLError:
        builder.fail("not valid YAML")
    finally:
        if loader is not None:
            loader.dispose()
    value: Value = builder.root
    return value


_INNER_BOM = re.compile("[\r\n\x85\u2028\u2029]\ufeff").search


def _require_libyaml() -> None:
    if not _HAVE_LIBYAML:
        raise ManifestError(
            "PyYAML was built without libyaml", hint="install a PyYAML wheel, which contains it"
        )


def _drive(get: Any, builder: TreeBuilder) -> None:
    get()
    event = get()
    if event.__class__ is events.StreamEndEvent:
        return
    if event.version or event.tags:
        builder.fail("a % directive, which Argo CD refuses", event.start_mark.line)
    scalar_event, alias_event = events.ScalarEvent, events.AliasEvent
    mapping_start, sequence_start = events.MappingStartEvent, events.SequenceStartEvent
    while True:
        event = get()
        kind = event.__class__
        if kind is scalar_event:
            builder.scalar(event)
        elif kind is mapping_start:
            builder.open(event, mapping=True)
        elif kind is sequence_start:
            builder.open(event, mapping=False)
        elif kind is alias_event:
            builder.alias(event)
        elif kind is events.DocumentEndEvent:
            break
        else:
            builder.close(event)
    event = get()
    if event.__class__ is not events.StreamEndEvent:
        builder.fail(
            "content behind the end of the document, which Argo CD would lose", event.start_mark.line
        )


# What a double-quoted scalar has to escape, tabs included, because libyaml writes them only there.
_ESCAPED = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]").search
_WORDS = {None: "null", True: "true", False: "false"}


def dump(value: Value) -> str:
    """One YAML document, in block style and insertion order, without aliases or line folding.

    Strings are quoted if any YAML reader would take them for another type, and the text survives the loss
    of its final newline (Argo CD trims one). Integral floats are written as integers.

    Raises:
        ManifestError: a number is not finite or an integer needs more than 64 bits, a string has half of a
            surrogate pair, or the nesting is deeper than `MAX_DEPTH`. The message names the path.
        TypeError: a value or key has a type that JSON does not know.
    """
    _require_libyaml()
    out = io.StringIO()
    # A negative width is libyaml's "unlimited".
    dumper = _EventDumper(out, allow_unicode=True, width=-1, default_flow_style=False)
    try:
        for event in _events(value):
            dumper.emit(event)
    except UnicodeError:
        _explain(value)
        raise
    finally:
        dumper.dispose()
    # libyaml ends a plain scalar at the root with a document end marker.
    return out.getvalue().removesuffix("...\n") if not isinstance(value, list | dict) else out.getvalue()


def _events(value: Value) -> Iterator[Any]:
    yield events.StreamStartEvent()
    yield events.DocumentStartEvent(explicit=False)
    key_events: dict[str, Any] = {}
    open_nodes: list[tuple[Iterator[Any], Any]] = [(iter((value,)), events.DocumentEndEvent(explicit=False))]
    while open_nodes:
        items, end = open_nodes[-1]
        for item in items:
            kind = item.__class__
            if kind is events.ScalarEvent:
                yield item
            elif kind is str:
                yield _string(item)
            elif isinstance(item, dict):
                yield events.MappingStartEvent(None, None, True, flow_style=False)
                open_nodes.append((_pairs(item, key_events), events.MappingEndEvent()))
                break
            elif isinstance(item, list):
                yield events.SequenceStartEvent(None, None, True, flow_style=False)
                open_nodes.append((iter(item), events.SequenceEndEvent()))
                break
            else:
                yield events.ScalarEvent(None, None, (True, False), _atom(item, value))
        else:
            yield end
            open_nodes.pop()
        if len(open_nodes) > MAX_DEPTH + 1:
            raise ManifestError(f"a value is nested deeper than {MAX_DEPTH}")
    yield events.StreamEndEvent()


def _pairs(mapping: dict[str, Value], key_events: dict[str, Any]) -> Iterator[Any]:
    for key, value in mapping.items():
        event = key_events.get(key)
        if event is None:
            if not isinstance(key, str):
                raise TypeError(f"a mapping key of type {type(key).__name__}")
            event = key_events[key] = _string(key, key=True)
        yield event
        yield value


def _string(text: str, *, key: bool = False) -> Any:
    """A scalar event: plain where no reader is misled, literal for text in lines, otherwise quoted."""
    if _ESCAPED(text):
        return events.ScalarEvent(None, None, (False, True), text, style='"')
    if "\n" in text:
        # At the end of the stream a trim would eat one of several final newlines, and a block that begins
        # with a space or newline needs an indentation number, which readers disagree about.
        literal = not key and text[0] not in " \n" and not text.endswith("\n\n")
        return events.ScalarEvent(None, None, (False, True), text, style="|" if literal else '"')
    return events.ScalarEvent(None, None, (not scalars.must_quote(text), True), text)


def _atom(value: Any, root: Value) -> str:
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, float) and math.isfinite(value):
        value = scalars.narrow(value)
    if isinstance(value, int) and scalars.INT64_MIN <= value <= scalars.UINT64_MAX:
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value):
        text = repr(value)
        # YAML 1.1 readers want a dot in a float.
        return text if "." in text else text.replace("e", ".0e")
    if isinstance(value, int | float):
        _explain(root)
    raise TypeError(f"a value of type {type(value).__name__}")


def _explain(root: Value) -> None:
    """Raise for the first scalar of a value that cannot be written; the path comes from a second walk."""
    for path, leaf in paths.leaves(root, keys=True):
        what = None
        if isinstance(leaf, str):
            what = "half of a surrogate pair" if re.search("[\ud800-\udfff]", leaf) else None
        elif isinstance(leaf, float) and not math.isfinite(leaf):
            what = "an infinite or undefined number"
        elif isinstance(leaf, int) and not scalars.INT64_MIN <= leaf <= scalars.UINT64_MAX:
            what = "an integer beyond 64 bits"
        if what:
            raise ManifestError(f"{what}, which cannot be written", where=paths.render(path) or None)


def lines(text: str) -> dict[paths.Path, int]:
    """The line (from 1) of every value in one YAML document that `load` has read, by its path.

    What stands behind an alias is left out.
    """
    found: dict[paths.Path, int] = {}
    node = yaml.compose(text, Loader=_BaseLoader)
    todo: list[tuple[paths.Path, Any]] = [((), node)] if node is not None else []
    seen: set[int] = set()
    while todo:
        path, one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        found.setdefault(path, one.start_mark.line + 1)
        if isinstance(one, yaml.MappingNode):
            for key, value in one.value:
                found[(*path, str(key.value))] = key.start_mark.line + 1
                todo.append(((*path, str(key.value)), value))
        elif isinstance(one, yaml.SequenceNode):
            todo += [((*path, index), value) for index, value in enumerate(one.value)]
    return found
