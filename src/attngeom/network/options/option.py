"""The contract of an option of attention: the tensors it adds, and what it does to projections, scores and masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from attngeom.errors import InputError
from attngeom.exact.arrays import Array

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder

Shape = tuple[int, int]
Nodes = Mapping[str, int]
"""The nodes of the tensors of one head, by their letters."""


@dataclass(frozen=True)
class Option:
    """One option with its value; every method that a subclass does not write changes nothing.

    ``choices`` are the values besides "not given"; an option without choices is a flag, or ``is_size`` a number.
    """

    value: Any
    name: ClassVar[str]
    choices: ClassVar[tuple[str, ...]] = ()
    is_size: ClassVar[bool] = False
    help: ClassVar[str]

    @classmethod
    def read(cls, value: Any) -> Any:
        """The value as it is stored; InputError for what is none."""
        if cls.is_size:
            if type(value) is not int or value < 1:
                raise InputError(f"{cls.name} = {str(value)[:40]} given; a positive integer is required")
        elif cls.choices:
            if value not in cls.choices:
                raise InputError(f"{cls.name} {str(value)[:40]!r} given; one of {', '.join(cls.choices)} is required")
        elif type(value) is not bool:
            raise InputError(f"{cls.name} = {str(value)[:40]} given; true or false is required")
        return value

    def check(self, attention: tuple[int, ...], tokens: int) -> None:
        """InputError unless the sizes of the network allow the option."""

    def tensors(self, read: Mapping[str, Shape]) -> dict[str, Shape]:
        """Further tensors of one head, from those that read its input."""
        return {}

    def shared(self, d_out: int) -> dict[str, Shape]:
        """Tensors that the heads of a layer of factored heads share."""
        return {}

    def project(self, b: Builder, head: Nodes, letter: str, y: int) -> int:
        """What is projected by one tensor, tokens as columns."""
        return y

    def orient(self, b: Builder, y: int) -> int:
        """Queries or keys, a×t."""
        return y

    def score(self, b: Builder, head: Nodes, scores: int, place: int) -> int:
        """The scores (j, i) of head number ``place``."""
        return scores

    def hide(self, visible: Array) -> Array:
        """Which token j (row) is seen by token i (column)."""
        return visible

    def output(self, b: Builder, shared: Nodes, y: int) -> int:
        """The sum of the heads of a layer."""
        return y

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        """The symmetries of a head with this option, from those without it."""
        return names


class Setting(Option):
    """An option that its kind of attention reads by itself."""
