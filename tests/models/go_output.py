"""How Argo CD reads what a plugin prints: cmp-server's splitter, then the repo-server's second parse.

After gitops-engine's pkg/utils/kube (`SplitYAMLToString`, `SplitYAML`), k8s.io/apimachinery's `YAMLOrJSONDecoder`,
sigs.k8s.io/yaml and go-yaml v2 (resolve.go). Every document is read as YAML 1.1 at least once, JSON included. A test
compares this with what the real libraries said (tests/vectors/yaml/parse.json). Left out: anchors, tags and merge keys, the
text of keys that are numbers with a fraction, and five oddities of Go's scanner that the test names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

PEEK = 4096
TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
NULL = ("", "~", "null", "Null", "NULL")
NAMED = {
    **dict.fromkeys(TRUE, True),
    **dict.fromkeys(FALSE, False),
    **dict.fromkeys(NULL),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{f"{sign}{word}": math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
#: strconv.ParseInt with base 0, after underscores are gone.
INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")


class OutputError(Exception):
    """What Argo CD's reader refuses."""


def decode(data: bytes) -> list[Any]:
    """The values of a plugin's output, after one newline at its end is cut off; empty documents are none."""
    text = data.removesuffix(b"\n").decode("utf-8", "replace")
    found = []
    for piece in _pieces(text):
        value = second(piece)
        if value is not None:
            found.append(value)
    return found


def second(piece: str) -> Any:
    """The repo-server's parse of what cmp-server sent."""
    return json.loads(json.dumps(_plain(_first(piece))))


def objects(data: bytes) -> list[dict[str, Any]]:
    """The objects of an output."""
    found = decode(data)
    for value in found:
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not value["kind"]:
            raise OutputError("Object 'Kind' is missing")
    return dissolved(found)


def dissolved(values: list[Any]) -> list[Any]:
    """Lists are dissolved one level, whatever their kind is (reposerver/repository, `getObjsFromYAMLOrJSON`)."""
    found = []
    for value in values:
        has_items = isinstance(value, dict) and "items" in value
        if has_items and isinstance(value["items"], list):
            found += value["items"]
        elif not (has_items and value["items"] is None and not {"spec", "status"} & set(value)):
            found.append(value)
    return found


def _pieces(text: str) -> Iterator[str]:
    """Documents as JSON texts, those of a stream of JSON as they are written."""
    rest = text
    if rest[:PEEK].lstrip().startswith("{"):
        number = 0
        while rest.strip():
            begin = rest.lstrip()
            try:
                value, end = json.JSONDecoder(parse_constant=_refuse).raw_decode(begin)
            except ValueError as error:
                if number == 0 or (number == 1 and begin.startswith("---")):
                    break
                raise OutputError(f"JSON: {error}") from error
            number += 1
            if value is not None:
                yield begin[:end]
            rest = begin[end:]
    for document in _documents(rest):
        value = _plain(_first(document))
        if value is not None:
            yield json.dumps(value, ensure_ascii=False)


def _refuse(word: str) -> None:
    raise ValueError(word)


def _documents(text: str) -> Iterator[str]:
    """Between lines of three dashes, behind which there may be a comment (`YAMLReader`)."""
    lines: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("---"):
            behind = line[3:].strip()
            if behind and not behind.startswith("#"):
                raise OutputError("invalid Yaml document separator")
            if lines:
                yield "\n".join([*lines, ""])
            lines = []
        else:
            lines.append(line)
    if lines:
        yield "\n".join([*lines, ""])


class _Loader(yaml.CSafeLoader):
    """PyYAML's parser with go-yaml's scalars."""

    yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile("<<"))]}  # noqa: RUF012  # as PyYAML has it


def _scalar(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> Any:
    text = node.value
    return text if node.style else resolved(text)


def resolved(text: str) -> Any:
    """What a plain scalar is (go-yaml v2, `resolve`); times are texts again, for old programs."""
    if text in NAMED:
        return NAMED[text]
    if not text or text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if text.startswith("._") or (text[0] == "." and text.endswith("_")):
        return text
    number = _integer(digits) if INTEGER.fullmatch(digits) else None
    if number is not None:
        return number
    if FLOAT.fullmatch(digits) and math.isfinite(float(digits)):
        return float(digits)
    # Of its own: the sign behind the prefix.
    signed = re.fullmatch(r"0b([-+])([01]+)", digits)
    return int(signed[1] + signed[2], 2) if signed else text


def _integer(digits: str) -> int | None:
    """A number of 64 bits, with a sign or without."""
    sign, bare = (-1, digits[1:]) if digits[0] == "-" else (1, digits.removeprefix("+"))
    prefix = bare[1:2].lower()
    if prefix in ("x", "b", "o"):
        number = sign * int(bare[2:], {"x": 16, "b": 2, "o": 8}[prefix])
    else:
        number = sign * int(bare, 8 if bare[0] == "0" else 10)
    return number if -(2**63) <= number < (2**63 if digits[0] in "+-" else 2**64) else None


def _map(loader: yaml.CSafeLoader, node: yaml.MappingNode) -> Iterator[dict[Any, Any]]:
    found: dict[Any, Any] = {}
    yield found
    loader.flatten_mapping(node)
    for key, value in node.value:
        found[_key(loader.construct_object(key, deep=True))] = loader.construct_object(value, deep=True)


def _key(value: Any) -> str:
    """sigs.k8s.io/yaml, `convertToJSONableObject`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)) or value is None:
        raise OutputError("unsupported map key")
    if isinstance(value, float) and not math.isfinite(value):
        raise OutputError("unsupported map key")
    return repr(value) if isinstance(value, float) else str(value)


_Loader.add_constructor("tag:yaml.org,2002:map", _map)
for _tag in ("str", "int", "float", "bool", "null", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _scalar)


def _first(text: str) -> Any:
    """The first document; whatever is behind it is lost."""
    loader = _Loader(text)
    try:
        return loader.get_data() if loader.check_data() else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise OutputError(f"YAML: {type(error).__name__}") from error
    finally:
        loader.dispose()


def _plain(value: Any) -> Any:
    """A value as JSON can say it."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise OutputError("json: unsupported value")
    if isinstance(value, int) and not isinstance(value, bool) and value >= 2**63:
        return float(value)
    return value
