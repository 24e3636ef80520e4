"""The entry: everything but `template` becomes the real helm at once."""

from __future__ import annotations

import sys

from becalm.dropin import command, launch, told


def main() -> int:
    """Run the command line; the exit code. Where a signal ended helm, it ends this process as well."""
    arguments = sys.argv[1:]
    try:
        variables = launch.environment()
        helm = launch.find(variables)
        at = command.find(arguments)
        if at is None or arguments[at] != "template":
            if at is not None and arguments[at] == "pull":
                told.fetched(variables)
            launch.become(helm, arguments, variables)
        from becalm.dropin import template  # noqa: PLC0415  # other commands need none of it

        code = template.run(helm, arguments, at, variables)
    except Exception as error:  # noqa: BLE001  # its text may hold a value and must not be shown
        return _report(error)
    if code < 0:
        launch.end(-code)
    return code


def _report(error: Exception) -> int:
    from becalm.errors import EXIT_BUG, PluginError, bug  # noqa: PLC0415

    if isinstance(error, PluginError):
        sys.stderr.write(f"Error: becalm-helm: {error}\n")
        return error.exit_code
    sys.stderr.write(bug(error))
    return EXIT_BUG
