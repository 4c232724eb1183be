"""The base of all descriptions of models: frozen dataclasses whose fields are checked and bounded when made."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from attngeom.errors import InputError
from attngeom.limits.sizes import CONFIGURED_SIZE, CONFIGURED_SIZES


class Checked:
    """A frozen description whose fields are checked against their types: integers >= 0 and bounded, finite floats."""

    def __post_init__(self) -> None:
        for name, hint in _hints(type(self)).items():  # type: ignore[arg-type]  # classes are hashable
            _check_field(type(self).__name__, name, getattr(self, name), hint)
        self.check()

    def check(self) -> None:
        """Conditions between fields; raises InputError."""

    def to_json(self) -> dict[str, Any]:
        """The fields as plain dictionaries, lists and numbers."""
        return dict(asdict(self))  # type: ignore[call-overload]  # every subclass is a dataclass


_hints = cache(get_type_hints)


def _check_field(owner: str, name: str, value: Any, hint: Any) -> None:
    options = get_args(hint)
    if type(None) in options:
        if value is None:
            return
        options = tuple(option for option in options if option is not type(None))
        if len(options) == 1:
            hint = options[0]
            options = get_args(hint)
    given = f"{owner}.{name} = {str(value)[:40]!r} given"
    if hint is bool:
        require(isinstance(value, bool), f"{given}; true or false is required")
    elif hint is int:
        largest = CONFIGURED_SIZES.get(name, CONFIGURED_SIZE)
        good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest
        require(good, f"{given}; an integer from 0 to {largest} is required")
    elif hint is float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        require(good, f"{given}; a finite number is required")
    elif hint is str or get_origin(hint) is Literal:
        good = isinstance(value, str | bool) and value in options if options else isinstance(value, str)
        require(good, f"{given}; one of {', '.join(map(str, options)) or 'the texts'} is required")
    elif get_origin(hint) is tuple:
        kind = options[0]
        good = isinstance(value, tuple) and all(
            isinstance(item, (int, float) if kind is float else kind) for item in value
        )
        require(good, f"{given}; a tuple of {kind.__name__} is required")
    else:
        require(isinstance(value, options or hint), f"{given}; another kind of description is required")


def require(condition: bool, message: str) -> None:
    """Raise InputError with the message (cut to 200 characters) unless the condition holds."""
    if not condition:
        raise InputError(message[:200])
