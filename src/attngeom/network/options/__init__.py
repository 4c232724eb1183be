"""Options of attention, one file each; this table is the list of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.errors import InputError
from attngeom.network.options.alibi import Alibi
from attngeom.network.options.bias import Bias
from attngeom.network.options.normalised import NormalisedKeys
from attngeom.network.options.option import Nodes, Option, Shape
from attngeom.network.options.rope import Rope
from attngeom.network.options.settings import Decay, Feature, Gate, Unnormalised
from attngeom.network.options.visibility import Memory, Window

OPTIONS: dict[str, type[Option]] = {
    option.name: option
    for option in (Bias, Alibi, Rope, Window, Memory, NormalisedKeys, Decay, Gate, Feature, Unnormalised)
}


@dataclass(frozen=True)
class Options:
    """The options that were given, by their names, in the order of the table.

    >>> Options.read({"alibi": "fixed", "bias": True, "window": None}).to_json()
    {'bias': True, 'alibi': 'fixed'}
    """

    given: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Options:
        """Options from names and values; None and False stand for "not given"."""
        for name in values:
            if name not in OPTIONS:
                raise InputError(f"option {str(name)[:40]!r} given; known options are {', '.join(OPTIONS)}")
        kept = ((name, values[name]) for name in OPTIONS if values.get(name) is not None)
        return cls(tuple((name, OPTIONS[name].read(value)) for name, value in kept if value is not False))

    def __iter__(self) -> Iterator[Option]:
        return (OPTIONS[name](value) for name, value in self.given)

    def __bool__(self) -> bool:
        return bool(self.given)

    def get(self, name: str, otherwise: Any = None) -> Any:
        """The value of an option."""
        return dict(self.given).get(name, otherwise)

    def to_json(self) -> dict[str, Any]:
        return dict(self.given)


PLAIN = Options()

__all__ = ["OPTIONS", "PLAIN", "Nodes", "Option", "Options", "Shape"]
