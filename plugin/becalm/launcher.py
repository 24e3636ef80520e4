"""Writes a `becalm` that starts faster than the one that pip writes: `python -m becalm.launcher FILE`.

Argo CD starts `becalm generate` for every render of every application, and starting Python is most of what that costs.
With -I and -S Python neither looks at its environment nor loads `site`, which knows where packages are. `generate` does
without; whatever else is asked for, `site` is loaded first. The image has this one.
"""

import sys
from pathlib import Path

_TEXT = """\
#!{python} -IS
import sys
sys.path.append({packages!r})
from becalm.__main__ import main
main(is_bare=True)
"""


def write(path: Path) -> None:
    """Write the command for the Python that runs, and for the packages beside this one."""
    packages = str(Path(__file__).resolve().parents[1])
    path.write_text(_TEXT.format(python=sys.executable, packages=packages), "utf-8")
    path.chmod(0o755)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
