"""How a command ends: its output complete or not at all, errors on stderr, and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

from becalm.errors import EXIT_BUG, EXIT_SHORT, PluginError, bug

#: Of disk, files, processes and memory.
_SHORT = frozenset((
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM,
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ended:
    """The output of a command that tells something by its exit code as well, as `diff` does."""

    output: str
    code: int


def guarded(run: Callable[[], str | Ended], told: Callable[[str], None] | None = None) -> int:
    """Run a command and print what it gives.

    Args:
        run: gives the output.
        told: is given the first line of an error.

    Returns:
        The exit code.
    """
    try:
        output = run()
    except PluginError as error:
        if told is not None:
            told(error.record_line())
        sys.stderr.write(f"Error: {error}\n")
        return error.exit_code
    except (OSError, MemoryError) as error:
        short = _shortage(error)
        if short is None:
            return _bug(error, told)
        if told is not None:
            told(short)
        sys.stderr.write(f"Error: {short}\n")
        return EXIT_SHORT
    except Exception as error:  # noqa: BLE001  # whatever it is, its text may hold a value and must not be shown
        return _bug(error, told)
    if isinstance(output, Ended):
        return _write(output.output) or output.code
    return _write(output)


def _bug(error: Exception, told: Callable[[str], None] | None) -> int:
    if told is not None:
        told(f"internal error: {type(error).__name__}")
    sys.stderr.write(bug(error))
    return EXIT_BUG


def _shortage(error: OSError | MemoryError) -> str | None:
    """What the machine has too little of, in one line; None where that is not the fault."""
    if isinstance(error, MemoryError):
        return "the render needs more memory than it may take; make the application smaller, or raise BECALM_CHILD_BYTES"
    if error.errno in _SHORT:
        return f"the machine has no room: {error.strerror}; give the sidecar more, or make the application smaller"
    return None


def warn(line: str) -> None:
    """One warning, where Argo CD's log has it."""
    sys.stderr.write(warning(line))


def warning(line: str) -> str:
    """A warning as it is printed."""
    return f"Warning: {line}\n"


def _write(output: str) -> int:
    """Everything to stdout, as UTF-8 whatever the locale is."""
    stream = sys.stdout.buffer
    try:
        stream.write(output.encode())
        stream.flush()
    except OSError as error:
        # Python would try again when it ends, and complain on stderr.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            return 128 + signal.SIGPIPE
        sys.stderr.write(f"Error: the output could not be written: {error.strerror}\n")
        return 1
    return 0
