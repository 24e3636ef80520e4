"""`python -m becalm` and the `becalm` command."""

import sys

from becalm import cli


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(cli.main())


if __name__ == "__main__":
    main()
