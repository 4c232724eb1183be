"""Values of options as numbers, paths and texts, converted here where typer would ask pydantic for it.

From 0.29 on typer builds a validator for each option and argument that a command line can have, which is most of the
time that a start takes. Options of the few types that the commands use need none. Where typer keeps its converters
elsewhere, or a type is another one, typer does the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
import typer.core

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
