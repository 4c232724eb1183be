"""The command line, one module per command; see :mod:`attngeom.cli.app`."""

import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Entry point of the ``attngeom`` program; an interrupt while modules are loaded is told in one line, too."""
    try:
        from attngeom.cli.app import run

        code = run()
    except KeyboardInterrupt:
        print("attngeom: interrupted", file=sys.stderr)
        code = EXIT_INTERRUPTED
    sys.exit(code)
