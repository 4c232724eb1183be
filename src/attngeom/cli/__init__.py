"""The command line, one module per command; see :mod:`attngeom.cli.app`."""

import os
import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Entry point of the ``attngeom`` program; an interrupt while modules are loaded is told in one line, too."""
    if any(word.startswith("--workers") for word in sys.argv):
        # This process is one of the workers, and NumPy asks once: a core for each, no threads besides.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from attngeom.cli.app import run

        code = run()
    except KeyboardInterrupt:
        print("attngeom: interrupted", file=sys.stderr)
        code = EXIT_INTERRUPTED
    sys.exit(code)
