"""`python -m becalm` and the `becalm` command."""

import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if sys.argv[1:] == ["generate"]:
        # Argo CD starts this for every render, so the service is asked before anything else is loaded.
        from becalm.service import client  # noqa: PLC0415

        code = client.generate()
        if code is not None:
            sys.exit(code)
    from becalm import cli  # noqa: PLC0415

    sys.exit(cli.main())


if __name__ == "__main__":
    main()
