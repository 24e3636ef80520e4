"""What children of the tests are given."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

#: What makes a child measure its coverage, where this process does.
MEASURE = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def inside(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run becalm's command line in this process, for tests of many small cases: a child takes 0.3 s to start."""
    from becalm import cli

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    here = Path.cwd()
    with patch.dict(os.environ, dict(env), clear=True), patch.multiple(sys, stdout=out, stderr=err):
        os.chdir(cwd)
        try:
            code = cli.main([str(word) for word in argv])
        finally:
            os.chdir(here)
    out.flush()
    return subprocess.CompletedProcess(argv, code, out.buffer.getvalue().decode(), err.getvalue())
