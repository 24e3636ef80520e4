"""Asks Kubernetes' own libraries for the vectors of quantities and durations: writes canonical.json.

(cd tests/vectors/normalise/reference && go build -o /tmp/reference .)
python tests/vectors/normalise/rebuild.py /tmp/reference
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

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


def main() -> None:
    inputs = texts()
    lines = "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in inputs)
    done = subprocess.run([sys.argv[1]], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    vectors = {
        text: [answer["quantity"], answer["duration"]] for text, answer in zip(inputs, answers, strict=True)
    }
    body = ",\n".join(f" {json.dumps(text)}: {json.dumps(answer)}" for text, answer in vectors.items())
    Path(__file__).with_name("canonical.json").write_text(f"{{\n{body}\n}}\n")


if __name__ == "__main__":
    main()
