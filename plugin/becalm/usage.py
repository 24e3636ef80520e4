"""What becalm says of a command line that is wrong: in one line, with what to do, as all its errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from becalm.errors import ConfigError, nearest


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` whose errors begin with what is wrong.

    The one of the standard library writes the usage first, which is twenty lines for `becalm render`, and tells of
    unknown options without the command that they were given to.
    """

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one line on stderr."""
        hint = f"`{self.prog} --help` explains what it takes"
        if message.endswith("expected one argument"):
            option = message.removeprefix("argument ").partition(":")[0].rpartition("/")[2]
            hint = f"give it a value; one that begins with - as {option}=-VALUE"
        self._end(message, hint)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End because of arguments that the command does not have; the first one is told of."""
        name = unknown[0].partition("=")[0]
        otherwise = f"`{self.prog} --help` explains what it takes"
        if not name.startswith("-"):
            self._end(f"{unknown[0]!r} is one argument too many", otherwise)
        hint = nearest(name, sorted(self._option_string_actions), otherwise=otherwise)
        self._end(f"there is no option {name}", hint)

    def show(self, _: argparse.Namespace) -> NoReturn:
        """End because no command was named; the help lists them."""
        self.print_help(sys.stderr)
        self.exit(ConfigError.exit_code)

    def _end(self, what: str, hint: str) -> NoReturn:
        error = ConfigError(what, where=self.prog, hint=hint)
        self.exit(error.exit_code, f"Error: {error}\n")
