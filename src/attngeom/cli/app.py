"""The frame of the command line: finds the commands, turns errors into one line and an exit code.

Exit codes: 0 done or the positive verdict, 1 the negative verdict, 2 bad input, 3 undecided within the budget.
A module of this package that defines ``register(app)`` adds commands. ``COMMANDS`` tells which module holds a command,
so that a call imports only what it needs; help and unknown commands import all.
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

COMMANDS = {
    "atlas": "atlas",
    "canonicalize": "canonicalize",
    "certify": "certify",
    "coefficients": "layers",
    "compare": "compare",
    "dim": "dim",
    "forward": "layers",
    "implicitize": "implicitize",
    "import": "layers",
    "info": "info",
    "inspect": "inspect",
    "invariants": "invariants",
    "model": "model",
    "recover": "recover",
    "reproduce": "reproduce",
    "teleport": "canonicalize",
    "verify": "certify",
}


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"attngeom {attngeom.__version__}")
        raise typer.Exit


def command_modules() -> list[str]:
    """The names of all modules of this package, in order."""
    package = importlib.import_module("attngeom.cli")
    return sorted(info.name for info in pkgutil.iter_modules(package.__path__))


def build_app(modules: list[str]) -> typer.Typer:
    """The typer application with the commands of the given modules."""
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

    for module in modules:
        register = getattr(importlib.import_module(f"attngeom.cli.{module}"), "register", None)
        if register is not None:
            register(app)
    return app


def _fail(message: str) -> int:
    print("attngeom: " + " ".join(str(message).split()), file=sys.stderr)
    return EXIT_BAD_INPUT


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code; errors of the user become one line on stderr."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = arguments[0] if arguments else ""
    modules = [COMMANDS[command]] if command in COMMANDS else command_modules()
    try:
        code = build_app(modules)(args=arguments, prog_name="attngeom", standalone_mode=False)
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
