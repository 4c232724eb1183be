"""Vector fields on the weights that may be symmetries: linear maps on axes, translations, matrices into vectors.

The ansatz is a list of blocks; a field is a vector of coefficients, one for each unknown of each block. Heads in a
flattened axis, groups of shared keys, fused tensors, commutants of rotary embeddings and scales of units are all
subalgebras of gl(axis), and tied weights are one tensor: no case is special.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.residues import BalancedResidues
from attngeom.programs.program import Program

FULL_SHIFTS = 640
"""Up to so many weights every entry may be translated; beyond, those of vectors, and rows and columns of matrices."""


class FieldBlock(ABC):
    """Some unknowns of the ansatz: fields that move one tensor."""

    tensor: str

    @property
    @abstractmethod
    def count(self) -> int:
        """How many unknowns."""

    @abstractmethod
    def columns(self, gradient: Mapping[str, Array], weights: Mapping[str, Array], field: BalancedResidues) -> Array:
        """For each row of the Jacobian its product with every field of the block, at these weights."""

    @abstractmethod
    def terms(self, unknown: int, program: Program) -> Iterator[tuple[int, int | None]]:
        """The field of one unknown: which weights move, and by which weight, or by 1."""

    @abstractmethod
    def transposed(self, unknown: int) -> int | None:
        """The unknown whose linear map is the transposed one; None if the block has none."""


@dataclass(frozen=True)
class AxisBlock(FieldBlock):
    """E_ij on one axis of a tensor, W[…, i, …] += W[…, j, …], everywhere or at one place of another axis."""

    tensor: str
    axis: int
    shape: tuple[int, ...]
    at: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        return self.shape[self.axis] ** 2

    def _arrange(self, x: Array) -> Array:
        """(samples, axis, rest)."""
        part = x if self.at is None else np.take(x, [self.at[1]], axis=1 + self.at[0])
        moved: Array = np.moveaxis(part, 1 + self.axis, 1)
        return moved.reshape(len(x), self.shape[self.axis], -1)

    def columns(self, gradient: Mapping[str, Array], weights: Mapping[str, Array], field: BalancedResidues) -> Array:
        rows, values = self._arrange(gradient[self.tensor]), self._arrange(weights[self.tensor])[0]
        product = field.multiply(rows.reshape(-1, values.shape[1]), values.T)
        return np.asarray(product).reshape(len(rows), self.count)

    @cached_property
    def _places(self) -> Array:
        places: Array = self._arrange(np.arange(prod(self.shape)).reshape(1, *self.shape))[0]
        return places

    def terms(self, unknown: int, program: Program) -> Iterator[tuple[int, int | None]]:
        i, j = divmod(unknown, self.shape[self.axis])
        start = program.offsets[self.tensor].start
        for moved, source in zip(self._places[i].tolist(), self._places[j].tolist()):
            yield start + moved, start + source

    def transposed(self, unknown: int) -> int:
        i, j = divmod(unknown, self.shape[self.axis])
        return j * self.shape[self.axis] + i


@dataclass(frozen=True)
class ShiftBlock(FieldBlock):
    """Translations of a tensor: of each entry, or, along ``axis``, of all entries at one place of the other axes."""

    tensor: str
    shape: tuple[int, ...]
    axis: int | None = None

    @cached_property
    def _places(self) -> Array:
        """(unknowns, weights that move)."""
        numbers = np.arange(prod(self.shape)).reshape(self.shape)
        if self.axis is None:
            return numbers.reshape(-1, 1)
        return np.moveaxis(numbers, self.axis, -1).reshape(-1, self.shape[self.axis])

    @property
    def count(self) -> int:
        return len(self._places)

    def columns(self, gradient: Mapping[str, Array], weights: Mapping[str, Array], field: BalancedResidues) -> Array:
        flat = gradient[self.tensor].reshape(len(gradient[self.tensor]), -1)
        return field.balance(flat[:, self._places].sum(axis=-1))

    def terms(self, unknown: int, program: Program) -> Iterator[tuple[int, int | None]]:
        start = program.offsets[self.tensor].start
        for moved in self._places[unknown].tolist():
            yield start + moved, None

    def transposed(self, unknown: int) -> int:
        return unknown


@dataclass(frozen=True)
class VectorBlock(FieldBlock):
    """b += W e_j for a vector b and a matrix W with an axis of its length."""

    tensor: str
    matrix: str
    axis: int
    shape: tuple[int, int]

    @property
    def count(self) -> int:
        return self.shape[1 - self.axis]

    def columns(self, gradient: Mapping[str, Array], weights: Mapping[str, Array], field: BalancedResidues) -> Array:
        matrix = weights[self.matrix][0]
        return field.multiply(gradient[self.tensor], matrix if self.axis == 0 else matrix.T)

    def terms(self, unknown: int, program: Program) -> Iterator[tuple[int, int | None]]:
        start, other = program.offsets[self.tensor].start, program.offsets[self.matrix].start
        for i in range(self.shape[self.axis]):
            place = (i, unknown) if self.axis == 0 else (unknown, i)
            yield start + i, other + place[0] * self.shape[1] + place[1]

    def transposed(self, unknown: int) -> None:
        return None


@dataclass(frozen=True)
class Ansatz:
    """All blocks for a program; fields are vectors of coefficients of their unknowns.

    >>> from attngeom.programs import trace
    >>> Ansatz.of(trace(lambda w, x: w["V"] @ x + w["b"], 3, weights={"V": (2, 3), "b": 2})).count
    28
    """

    program: Program
    blocks: tuple[FieldBlock, ...]

    @classmethod
    def of(cls, program: Program) -> Ansatz:
        blocks: list[FieldBlock] = []
        every = program.num_parameters <= FULL_SHIFTS
        matrices = {name: shape for name, shape in program.parameters.items() if len(shape) == 2}
        for name, shape in program.parameters.items():
            for axis in range(max(len(shape), 1)):
                blocks += _axis_blocks(name, axis, shape or (1,))
            if every or len(shape) < 2:
                blocks.append(ShiftBlock(name, shape or (1,)))
            else:
                blocks += [ShiftBlock(name, shape, axis) for axis in range(len(shape))]
            for matrix, sizes in matrices.items() if len(shape) == 1 else ():
                blocks += [VectorBlock(name, matrix, axis, sizes) for axis in (0, 1) if sizes[axis] == shape[0]]
        return cls(program, tuple(blocks))

    @cached_property
    def starts(self) -> list[int]:
        return [0, *np.cumsum([block.count for block in self.blocks]).tolist()]

    @property
    def count(self) -> int:
        return self.starts[-1]

    @cached_property
    def tensors(self) -> list[str]:
        """For each unknown the tensor that it moves."""
        return [block.tensor for block in self.blocks for _ in range(block.count)]

    def columns(self, rows: Array, weights: Mapping[str, Array], field: BalancedResidues) -> Array:
        """Rows of the Jacobian at these weights, times all fields of the ansatz."""
        gradient = {name: np.ascontiguousarray(x) for name, x in self.program.split(rows).items()}
        gradient = {name: x.reshape(len(x), *(x.shape[1:] or (1,))) for name, x in gradient.items()}
        shaped = {name: x.reshape(1, *(x.shape[1:] or (1,))) for name, x in weights.items()}
        return np.concatenate([block.columns(gradient, shaped, field) for block in self.blocks], axis=1)

    def locate(self, unknown: int) -> tuple[FieldBlock, int]:
        """The block of an unknown, and its place there."""
        place = int(np.searchsorted(self.starts, unknown, side="right")) - 1
        return self.blocks[place], unknown - self.starts[place]


def _axis_blocks(name: str, axis: int, shape: tuple[int, ...]) -> list[FieldBlock]:
    """gl of one axis; with three axes at each place of another one: experts, heads, places of a kernel."""
    if len(shape) < 3:
        return [AxisBlock(name, axis, shape)]
    others = [k for k in range(len(shape)) if k != axis]
    blocks: list[FieldBlock] = [AxisBlock(name, axis, shape, (others[0], k)) for k in range(shape[others[0]])]
    for other in others[1:]:
        # All places of one axis together are all of another: the first one of each further axis is left out.
        blocks += [AxisBlock(name, axis, shape, (other, k)) for k in range(1, shape[other])]
    return blocks
