"""What children of the tests are given."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

from forks import FORKS

#: What makes a child measure its coverage, where this process does.
MEASURE = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def run(
    words: Sequence[object],
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    text: bool = True,
    stdin: str | bytes = "",
    timeout: float = 60,
    program: str = "becalm.__main__",
    name: str = "becalm",
) -> subprocess.CompletedProcess:
    """Run a command of becalm in a process of its own, as `subprocess.run` would with its output captured.

    Args:
        words: what follows `becalm`.
        cwd: its directory.
        env: its whole environment; that of this process when None.
        text: whether streams are texts in UTF-8.
        stdin: its standard input.
        timeout: in seconds.
        program: the module of another program, with a `main`.
        name: what it is started as.
    """
    variables = dict(os.environ if env is None else env)
    given = stdin.encode() if isinstance(stdin, str) else stdin
    argv = [name, *map(str, words)]
    if MEASURE or any(
        one.startswith("PYTHON") and variables[one] != os.environ.get(one) for one in variables
    ):
        code = f"import sys; sys.argv[0] = {name!r}; from {program} import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code, *argv[1:]], cwd=cwd, env=variables, capture_output=True, input=given,
            timeout=timeout, check=False,
        )  # fmt: skip
        result = done.returncode, done.stdout, done.stderr
    else:
        result = FORKS.run(program, argv, cwd=cwd or Path.cwd(), env=variables, stdin=given, timeout=timeout)
    status, out, err = result
    if text:
        return subprocess.CompletedProcess(argv, status, _text(out), _text(err))
    return subprocess.CompletedProcess(argv, status, out, err)


def _text(data: bytes) -> str:
    """As `subprocess` reads texts: every end of a line is the same."""
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


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
