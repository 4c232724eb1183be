"""Parameters of commands: how their values are converted, how helps name them, and the examples below.

From 0.29 on typer builds a validator for each option and argument that a command line can have, which is most of the
time that a start takes. Options of the few types that the commands use need none. Where typer keeps its converters
elsewhere, or a type is another one, typer does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
import typer.core
from typer.models import CommandInfo, OptionInfo

from attngeom.cli.commands import EXAMPLES

MAKER = "build_runtime_param"
"""What typer 0.29 calls for the converter of an option."""
SIMPLE = (str, int, float, Path, bool)
PATH_CHECKS = ("exists", "resolve_path", "allow_dash", "writable")
TRUTH = {"1": True, "true": True, "t": True, "yes": True, "y": True, "on": True}
TRUTH |= {"0": False, "false": False, "f": False, "no": False, "n": False, "off": False}


@dataclass(frozen=True)
class Values:
    """A converter of one option: to a type, within a range."""

    kind: type
    least: float | None
    largest: float | None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """What typer calls with the texts of an option, or with its default."""
        if param.multiple or param.nargs == -1:
            return [] if value is None else [self._convert(each, param, ctx) for each in value]
        return None if value is None else self._convert(value, param, ctx)

    def _convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            converted = TRUTH[str(value).lower()] if self.kind is bool else self.kind(value)
        except (KeyError, ValueError, TypeError):
            name = f"{self.kind.__name__} range" if self.least is not None or self.largest is not None else ""
            words = f"{value!r} is not a valid {name or self.kind.__name__}."
            raise typer.BadParameter(words, ctx=ctx, param=param) from None
        if (self.least is not None and not converted >= self.least) or (
            self.largest is not None and not converted <= self.largest
        ):
            low = "" if self.least is None else f"{self.least}<=" if self.largest is not None else f">={self.least}"
            high = "" if self.largest is None else f"<={self.largest}"
            bounds = f"{low}x{high}" if self.largest is not None else f"x{low}"
            raise typer.BadParameter(f"{converted} is not in the range {bounds}.", ctx=ctx, param=param)
        return converted


def converter(descriptor: Any) -> Values | None:
    """The converter of an option that typer describes so, None for types and checks that are not ours."""
    kind, info = descriptor.annotation, descriptor.parameter_info
    kind = get_args(kind)[0] if get_origin(kind) is list else kind
    is_plain = info.parser is None and not any(getattr(info, check, False) for check in PATH_CHECKS)
    return Values(kind, info.min, info.max) if kind in SIMPLE and is_plain else None


def use_own_converters() -> None:
    """Ask :func:`converter` first wherever typer makes a converter."""
    make = getattr(typer.core, MAKER, None)
    if make is not None:
        setattr(typer.core, MAKER, lambda descriptor: converter(descriptor) or make(descriptor))


METAVARS: dict[Any, str] = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
"""What stands for a value of this type in a help."""


def finish_helps(app: typer.Typer) -> None:
    """Name the values of options and put the examples at the end of the help of every command and group."""
    for info in app.registered_groups:
        if info.typer_instance is not None:
            info.epilog = _epilog(f"{info.name}")
            for command in info.typer_instance.registered_commands:
                _finish(command, f"{info.name} {command.name}")
    for command in app.registered_commands:
        _finish(command, f"{command.name}")


def _finish(command: CommandInfo, name: str) -> None:
    command.epilog = _epilog(name)
    if command.callback is None:
        return
    first = (command.callback.__doc__ or "").partition("\n")[0]
    command.short_help = first.partition(". ")[0].rstrip(".") + "."
    parameters = signature(command.callback, eval_str=True).parameters
    for parameter in parameters.values():
        kind, *infos = get_args(parameter.annotation)
        for info in infos:
            if isinstance(info, OptionInfo) and info.metavar is None:
                info.metavar = next((METAVARS[leaf] for leaf in _leaves(kind) if leaf in METAVARS), None)
    # As objects: text would make the options anew.
    command.callback.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}


def name_arguments(command: Any) -> None:
    """Show the arguments of a command and of all below it by their names alone, whatever typer would add to them."""
    for below in getattr(command, "commands", {}).values():
        name_arguments(below)
    for param in command.params:
        if param.param_type_name == "argument":
            name = param.metavar or f"{param.name}{'...' if param.nargs != 1 else ''}"
            usage = name if name.startswith("[") else f"{{{name}}}" if param.required else f"[{name}]"
            param.get_usage_pieces = partial(_usage, usage)
            param.get_help_record = partial(_record, name, param.get_help_record)


def _usage(usage: str, ctx: Any) -> list[str]:
    return [usage]


def _record(name: str, record: Callable[[Any], tuple[str, str] | None], ctx: Any) -> tuple[str, str] | None:
    recorded = record(ctx)
    return None if recorded is None else (name, recorded[1])


def _leaves(kind: Any) -> list[Any]:
    """The types of which this one is made."""
    return [leaf for part in get_args(kind) for leaf in _leaves(part)] or [kind]


def _epilog(name: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  attngeom {line}" for line in EXAMPLES[name])
