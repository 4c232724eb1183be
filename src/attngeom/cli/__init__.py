"""The command line: one module per group of commands; see :mod:`attngeom.cli.app`."""

from attngeom.cli.app import main

__all__ = ["main"]
