"""`python -m becalm` and the `becalm` command."""

import sys


def main(*, is_bare: bool = False) -> None:
    """Run the command line and end the process with its exit code.

    Args:
        is_bare: Python was started with -S, by the command that `becalm.launcher` writes.
    """
    if sys.argv[1:] == ["generate"]:
        # Argo CD starts this for every render, so the service is asked before anything else is loaded.
        from becalm.service import client  # noqa: PLC0415

        code = client.generate()
        if code is not None:
            if is_bare:
                client.end(code)
            sys.exit(code)
    if is_bare:
        import site  # noqa: PLC0415

        site.main()
    from becalm import cli  # noqa: PLC0415

    sys.exit(cli.main())


if __name__ == "__main__":
    main()
