"""The frame of the command line: finds the commands, turns errors into one line and an exit code.

Exit codes: 0 done or the positive verdict, 1 the negative verdict, 2 bad input, 3 undecided within the budget.
A module of this package that defines ``register(app)`` adds commands; nothing else needs to know of it.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from typing import Annotated

import typer

import attngeom
from attngeom.errors import AttnGeomError

EXIT_NEGATIVE = 1
EXIT_BAD_INPUT = 2
EXIT_UNDECIDED = 3


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"attngeom {attngeom.__version__}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """The typer application with every command of this package."""
    app = typer.Typer(
        name="attngeom",
        help="Exact questions about the functions that attention networks compute.",
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """Exact questions about the functions that attention networks compute."""

    package = importlib.import_module("attngeom.cli")
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        register = getattr(importlib.import_module(f"attngeom.cli.{module}"), "register", None)
        if register is not None:
            register(app)
    return app


def _fail(message: str) -> int:
    print("attngeom: " + " ".join(str(message).split()), file=sys.stderr)
    return EXIT_BAD_INPUT


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code; errors of the user become one line on stderr."""
    try:
        code = build_app()(args=arguments, standalone_mode=False)
    except AttnGeomError as error:
        return _fail(str(error))
    except typer.TyperException as error:
        return _fail(error.format_message() + " (see attngeom --help)")
    except MemoryError:
        return _fail("out of memory; give a smaller problem or a budget")
    except BrokenPipeError:
        # The reader of our output went away: leave quietly, and keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NEGATIVE
    except (KeyboardInterrupt, typer.Abort):
        print("attngeom: interrupted", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0


def main() -> None:
    """Entry point of the ``attngeom`` program."""
    sys.exit(run())
