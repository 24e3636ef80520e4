"""Asks Kubernetes' own libraries for the vectors; README.md says how."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

HAND = [
    "0",
    "00",
    "+0",
    "-0",
    "0m",
    "0Ki",
    "1",
    "+1",
    "-1",
    "5.",
    ".5",
    ".",
    "+",
    "-",
    "Ki",
    "Ei",
    "Mi1",
    "010",
    "1E3",
    "1e3",
    "1000e3",
    "1e-3",
    "10e-3",
    "1e",
    "1e+",
    "1E",
    "1k",
    "1K",
    "1000",
    "1000m",
    "0.5",
    "0.1",
    "1.0",
    "2.0",
    "1.5",
    "1.5Gi",
    "1024Mi",
    "1000Mi",
    "1000M",
    "1000k",
    "1000000",
    "1073741824",
    "0.5Mi",
    "1.1Gi",
    "1.1G",
    "0.1n",
    "1n",
    "1u",
    "1500u",
    "0.0000000001",
    "16Ei",
    "8Ei",
    "7Ei",
    "9Ei",
    "-9Ei",
    "1025Mi",
    "2047Mi",
    "2048Mi",
    "1Gi1",
    "1Gi_",
    "1_0",
    "100m",
    "250m",
    "1250m",
    "12000m",
    "0.25",
    "0.001",
    "0.0001",
    "1e18",
    "1e19",
    "1e21",
    "1e-9",
    "1e-10",
    "1e-12",
    "100e-2",
    "1000E",
    "10000E",
    "1000T",
    "1000P",
    "123456789012345678",
    "1234567890123456789",
    "12345678901234567890",
    "12345678901234567890k",
    "0.123456789",
    "0.1234567891",
    "1.0000000001Ki",
    "1023",
    "1023Ki",
    "1024Ki",
    "0.5Ki",
    "1.5Ki",
    "512Ki",
    "-0.5",
    "-1.5Gi",
    "-1000m",
    "+1000m",
    "1\\u00a0",
    "1h",
    "1h30m",
    "90m",
    "8760h",
    "2160h",
    "0s",
    "1s",
    "60s",
    "3600s",
    "1m",
    "1.5h",
    "1.5s",
    "0.1s",
    "100ms",
    "1500ms",
    "1us",
    "1µs",
    "1μs",
    "1ns",
    "999ns",
    "1000ns",
    "1h0m0s",
    "-1h",
    "+1h",
    "-0",
    "1h1h",
    ".5h",
    "5.h",
    "1.h",
    ".h",
    "h",
    "1",
    "1d",
    "1w",
    "1H",
    "1hh",
    "1h-",
    "2562047h47m16.854775807s",
    "2562047h47m16.854775808s",
    "-2562047h47m16.854775808s",
    "9223372036854775807ns",
    "9223372036854775808ns",
    "-9223372036854775808ns",
    "0.3333333333333333333h",
    "0.000000001s",
    "0.0000000001s",
    "1.0000000000000000000000001s",
]


def texts() -> list[str]:
    found = dict.fromkeys(text.encode().decode("unicode_escape") if "\\" in text else text for text in HAND)
    generator = random.Random(7)
    suffixes = [
        "",
        "n",
        "u",
        "m",
        "k",
        "M",
        "G",
        "T",
        "P",
        "E",
        "Ki",
        "Mi",
        "Gi",
        "Ti",
        "Pi",
        "Ei",
        "e3",
        "E-2",
        "e1",
        "e20",
    ]
    units = ["ns", "us", "ms", "s", "m", "h"]
    numbers = [
        "1",
        "10",
        "100",
        "1000",
        "1024",
        "1536",
        "10000",
        "999",
        "0.1",
        "0.25",
        "1.5",
        "10.50",
        "007",
        "0.000001",
    ]
    found |= dict.fromkeys(a + b for a, b in itertools.product(numbers, suffixes))
    found |= dict.fromkeys(a + b for a, b in itertools.product(numbers, units))
    for _ in range(700):
        digits = str(generator.randrange(10 ** generator.randint(1, 20)))
        if generator.random() < 0.4:
            digits += "." + str(generator.randrange(10 ** generator.randint(1, 12)))
        sign = generator.choice(["", "", "", "-", "+"])
        found[sign + digits + generator.choice(suffixes)] = None
        found[sign + "".join(digits + generator.choice(units) for _ in range(generator.randint(1, 3)))] = None
    return ["", " 1 ", *found]


Case = dict[str, Any]
HAND_DEFAULTS: list[Case] = [
    {
        "schema": {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "default": {},
                    "properties": {
                        "mode": {"type": "string", "default": "auto"},
                        "count": {"type": "integer", "default": 0},
                        "nullable": {"type": "string", "nullable": True, "default": "x"},
                        "port": {"x-kubernetes-int-or-string": True, "default": "http"},
                        "raw": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                            "default": {"a": None},
                        },
                        "rules": {
                            "type": "array",
                            "default": [{}],
                            "items": {
                                "type": "object",
                                "properties": {
                                    "weight": {"type": "integer", "default": 1},
                                    "ref": {
                                        "type": "object",
                                        "default": {},
                                        "properties": {"kind": {"type": "string", "default": "Service"}},
                                    },
                                },
                            },
                        },
                        "labels": {
                            "type": "object",
                            "additionalProperties": {
                                "type": "object",
                                "default": {"b": True},
                                "properties": {"a": {"type": "number", "default": 1.5}},
                            },
                        },
                        "template": {
                            "type": "object",
                            "x-kubernetes-embedded-resource": True,
                            "properties": {"spec": {"type": "object", "default": {"c": 1}}},
                        },
                        "selector": {
                            "type": "object",
                            "x-kubernetes-map-type": "atomic",
                            "properties": {"policy": {"type": "string", "default": "All"}},
                        },
                    },
                }
            },
        },
        "object": {"spec": spec} if spec is not None else {},
    }
    for spec in (
        None,
        {},
        {"mode": None, "count": None, "nullable": None, "port": None, "raw": None},
        {"rules": []},
        {"rules": [{}, {"weight": None}, {"ref": {}}, {"ref": None}, {"ref": {"kind": "B"}, "other": 1}]},
        {"rules": [None]},
        {"rules": None, "unknown": None},
        {"labels": {"x": {}, "y": None, "z": {"a": None}}},
        {"template": {"apiVersion": "v1", "kind": "A", "metadata": None}},
        {"template": None},
        {"selector": {}},
        {"selector": {"policy": None, "more": 1}},
        {"mode": 1, "rules": "text", "labels": []},
    )
]


def generated(generator: random.Random) -> Case:
    """A schema of a few levels, and an object that has some of its fields, some nulls, and some fields too many."""
    schema = _schema(generator, 3)
    schema["type"] = "object"
    for word in ("default", "nullable", "additionalProperties"):
        schema.pop(word, None)
    schema.setdefault("properties", {"a": _schema(generator, 2)})
    schema.pop("items", None)
    return {"schema": schema, "object": _object(generator, schema)}


def _schema(generator: random.Random, depth: int) -> Case:
    kind = generator.choice(
        ["object", "object", "array", "array", "string", "integer", "boolean"]
        if depth
        else ["string", "integer"]
    )
    schema: Case = {"type": kind}
    if generator.random() < 0.25:
        schema["nullable"] = True
    if kind == "object":
        if generator.random() < 0.25:
            schema["additionalProperties"] = _schema(generator, depth - 1)
        else:
            names = generator.sample("abcd", generator.randint(1, 3))
            schema["properties"] = {name: _schema(generator, depth - 1) for name in sorted(names)}
        if generator.random() < 0.2:
            schema["x-kubernetes-map-type"] = "atomic"
    elif kind == "array":
        schema["items"] = _schema(generator, max(depth - 1, 1) if generator.random() < 0.6 else 0)
    if generator.random() < 0.5:
        schema["default"] = _value(generator, schema, whole=False)
    return schema


def _object(generator: random.Random, schema: Case) -> Any:
    found = _value(generator, schema, whole=True)
    assert isinstance(found, dict)
    return found


def _value(generator: random.Random, schema: Case, *, whole: bool) -> Any:
    """A value of a schema; a whole one may hold nulls and fields that the schema lacks."""
    match schema["type"]:
        case "object":
            properties = schema.get("properties") or dict.fromkeys("xy", schema.get("additionalProperties"))
            value = {name: _value(generator, part, whole=whole) for name, part in properties.items()
                     if generator.random() < 0.6}  # fmt: skip
            if whole:
                value |= {name: None for name in properties if generator.random() < 0.15}
                value |= {"extra": 1} if generator.random() < 0.1 and "properties" in schema else {}
            return value
        case "array":
            items = [_value(generator, schema["items"], whole=whole) for _ in range(generator.randint(0, 3))]
            return [None if whole and generator.random() < 0.1 else item for item in items]
        case "string":
            return generator.choice(["", "one", "two"])
        case "integer":
            return generator.choice([0, 1, 7])
    return generator.random() < 0.5


def ask(program: str, text: str) -> str:
    return subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout


def main() -> None:
    inputs = texts()
    answer = ask(sys.argv[1], "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in inputs))
    answers = [json.loads(line) for line in answer.splitlines()]
    vectors = {text: [one["quantity"], one["duration"]] for text, one in zip(inputs, answers, strict=True)}
    body = ",\n".join(f" {json.dumps(text)}: {json.dumps(one)}" for text, one in vectors.items())
    Path(__file__).with_name("canonical.json").write_text(f"{{\n{body}\n}}\n")

    generator = random.Random(11)
    cases = [*HAND_DEFAULTS, *(generated(generator) for _ in range(240))]
    results = json.loads(ask(sys.argv[2], json.dumps(cases)))
    lines = [json.dumps(case | {"result": result}) for case, result in zip(cases, results, strict=True)]
    Path(__file__).with_name("defaults.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
