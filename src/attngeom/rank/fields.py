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
from attngeom.programs.arithmetic import CHAIN
from attngeom.programs.program import Program


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
    def characters(self, scales: Mapping[str, Array]) -> Array:
        """How a torus that scales each weight at its own rate acts on the terms of each field: (unknowns, terms).

        A term that moves w by v has the rate of w minus that of v; terms of one rate may stand once.
        """

    @property
    def diagonal(self) -> Array:
        """The unknowns that scale."""
        return np.zeros(0, dtype=np.intp)

    @property
    def scaled(self) -> Array:
        """The places in the tensor that each of these unknowns scales: (unknowns, places)."""
        return np.zeros((0, 1), dtype=np.intp)

    def diagonal_columns(
        self, gradient: Mapping[str, Array], weights: Mapping[str, Array], field: BalancedResidues
    ) -> Array:
        """The columns of the unknowns that scale."""
        return self.columns(gradient, weights, field)[:, self.diagonal]


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
    def places(self) -> Array:
        places: Array = self._arrange(np.arange(prod(self.shape)).reshape(1, *self.shape))[0]
        return places

    def terms(self, unknown: int, program: Program) -> Iterator[tuple[int, int | None]]:
        i, j = divmod(unknown, self.shape[self.axis])
        start = program.offsets[self.tensor].start
        for moved, source in zip(self.places[i].tolist(), self.places[j].tolist()):
            yield start + moved, start + source

    @property
    def diagonal(self) -> Array:
        n = self.shape[self.axis]
        return np.arange(n) * (n + 1)

    @property
    def scaled(self) -> Array:
        return self.places

    def diagonal_columns(
        self, gradient: Mapping[str, Array], weights: Mapping[str, Array], field: BalancedResidues
    ) -> Array:
        rows, values = self._arrange(gradient[self.tensor]), self._arrange(weights[self.tensor])[0]
        product = field.multiply(np.ascontiguousarray(rows.transpose(1, 0, 2)), values[:, :, None])
        return np.asarray(product)[:, :, 0].T

    def characters(self, scales: Mapping[str, Array]) -> Array:
        rates = self._arrange(scales[self.tensor][None])[0]
        if (rates - rates[:, :1] == (rates - rates[:, :1])[:1]).all():
            rates = rates[:, :1]
        return np.asarray(rates[:, None, :] - rates[None, :, :]).reshape(self.count, -1)


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

    def characters(self, scales: Mapping[str, Array]) -> Array:
        return scales[self.tensor].reshape(-1)[self._places]


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

    def characters(self, scales: Mapping[str, Array]) -> Array:
        matrix = scales[self.matrix] if self.axis == 1 else scales[self.matrix].T
        return scales[self.tensor][None, :] - matrix


@dataclass(frozen=True)
class PairBlock(FieldBlock):
    """T[i, …] += S[i, …] for tensors of one shape: a bias before a scale into what is added behind it."""

    tensor: str
    source: str
    axis: int
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return self.shape[self.axis]

    def _lines(self, x: Array) -> Array:
        """(axis, samples, rest)."""
        moved: Array = np.moveaxis(x, 1 + self.axis, 0)
        return moved.reshape(self.count, len(x), -1)

    def columns(self, gradient: Mapping[str, Array], weights: Mapping[str, Array], field: BalancedResidues) -> Array:
        rows, values = self._lines(gradient[self.tensor]), self._lines(weights[self.source])
        return np.asarray(field.multiply(rows, values.transpose(0, 2, 1)))[:, :, 0].T

    def terms(self, unknown: int, program: Program) -> Iterator[tuple[int, int | None]]:
        places = np.take(np.arange(prod(self.shape)).reshape(self.shape), unknown, axis=self.axis)
        start, other = program.offsets[self.tensor].start, program.offsets[self.source].start
        for place in places.ravel().tolist():
            yield start + place, other + place

    def characters(self, scales: Mapping[str, Array]) -> Array:
        difference = (scales[self.tensor] - scales[self.source])[None]
        return self._lines(difference)[:, 0]


@dataclass(frozen=True)
class EntryBlock(FieldBlock):
    """w += v for each weight w of one tensor and each weight v of another, or of the same."""

    tensor: str
    source: str
    size: int
    source_size: int

    @property
    def count(self) -> int:
        return self.size * self.source_size

    def columns(self, gradient: Mapping[str, Array], weights: Mapping[str, Array], field: BalancedResidues) -> Array:
        rows, values = gradient[self.tensor], weights[self.source]
        return np.asarray(field.multiply(rows.reshape(-1, 1), values.reshape(1, -1))).reshape(len(rows), self.count)

    def terms(self, unknown: int, program: Program) -> Iterator[tuple[int, int | None]]:
        moved, source = divmod(unknown, self.source_size)
        yield program.offsets[self.tensor].start + moved, program.offsets[self.source].start + source

    def characters(self, scales: Mapping[str, Array]) -> Array:
        return (scales[self.tensor].reshape(-1, 1) - scales[self.source].reshape(1, -1)).reshape(self.count, 1)

    @property
    def diagonal(self) -> Array:
        return np.arange(self.size if self.tensor == self.source else 0) * (self.size + 1)

    @property
    def scaled(self) -> Array:
        return np.arange(len(self.diagonal))[:, None]


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
    def of(cls, program: Program, every: bool = True) -> Ansatz:
        """All blocks; with ``every`` false only vectors, and rows and columns of matrices, are translated."""
        blocks: list[FieldBlock] = []
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
            others = [other for other, size in program.parameters.items() if other != name and size == shape]
            blocks += [PairBlock(name, other, axis, shape) for other in others for axis in range(min(2, len(shape)))]
        return cls(program, tuple(blocks))

    @classmethod
    def of_entries(cls, program: Program) -> Ansatz:
        """All linear and affine fields on the weights: unknowns are the square of their number, and their number."""
        sizes = {name: prod(shape) for name, shape in program.parameters.items()}
        blocks: list[FieldBlock] = [ShiftBlock(name, (size,)) for name, size in sizes.items()]
        blocks += [EntryBlock(name, other, sizes[name], sizes[other]) for name in sizes for other in sizes]
        return cls(program, tuple(blocks))

    @cached_property
    def starts(self) -> list[int]:
        return [0, *np.cumsum([block.count for block in self.blocks]).tolist()]

    @property
    def count(self) -> int:
        return self.starts[-1]

    @cached_property
    def tensors(self) -> Array:
        """For each unknown the number of the tensor that it moves."""
        names = list(self.program.parameters)
        return np.repeat([names.index(block.tensor) for block in self.blocks], [block.count for block in self.blocks])

    def columns(self, rows: Array, weights: Mapping[str, Array], unknowns: Array | None = None) -> Array:
        """Rows of the Jacobian at these weights, times the fields of the ansatz, or of some unknowns in order."""
        shaped = self._shaped(rows, weights)
        if unknowns is None:
            return np.concatenate([block.columns(*shaped) for block in self.blocks], axis=1)
        cuts = np.searchsorted(unknowns, self.starts)
        parts = [
            block.columns(*shaped)[:, unknowns[first:last] - start]
            for block, start, first, last in zip(self.blocks, self.starts, cuts, cuts[1:])
            if first < last
        ]
        return np.concatenate(parts, axis=1)

    def _shaped(
        self, rows: Array, weights: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array], BalancedResidues]:
        gradient = {name: np.ascontiguousarray(x) for name, x in self.program.split(rows).items()}
        gradient = {name: x.reshape(len(x), *(x.shape[1:] or (1,))) for name, x in gradient.items()}
        shaped = {name: x.reshape(1, *(x.shape[1:] or (1,))) for name, x in weights.items()}
        return gradient, shaped, BalancedResidues(self.prime)

    @cached_property
    def scaling(self) -> Array:
        """The unknowns that scale weights."""
        return np.concatenate([start + block.diagonal for block, start in zip(self.blocks, self.starts)])

    def scaling_columns(self, rows: Array, weights: Mapping[str, Array]) -> Array:
        """The columns of the unknowns that scale, without the others."""
        shaped = self._shaped(rows, weights)
        parts = [block.diagonal_columns(*shaped) for block in self.blocks if len(block.diagonal)]
        return np.concatenate(parts, axis=1)

    def rates(self, scalings: Array) -> Array:
        """The rates mod p at which fields, given by coefficients of the scaling unknowns, scale each weight."""
        p, start = self.prime, 0
        result = np.zeros((len(scalings), self.program.num_parameters), dtype=np.int64)
        for block in self.blocks:
            first = self.program.offsets[block.tensor].start
            for line in block.scaled:
                result[:, first + line] += scalings[:, start : start + 1].astype(np.int64)
                start += 1
        return result % p

    def split(self, scales: Array) -> list[Array]:
        """The unknowns in groups that a torus, which scales weights at these rates (two rows), does not mix.

        The change of the function along a field splits by characters of the torus, and parts with different ones are
        independent: a field is a symmetry if and only if its parts in all groups are.
        """
        # Loaded when it is used: no command needs it to start.
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        p = self.prime
        owners, keys = [], []
        shapes = {name: shape or (1,) for name, shape in self.program.parameters.items()}
        places = self.program.offsets
        rates = [{name: row[places[name]].reshape(shape) for name, shape in shapes.items()} for row in scales]
        for block, start in zip(self.blocks, self.starts):
            one, two = np.broadcast_arrays(*(block.characters(rate) % p for rate in rates))
            number = np.broadcast_to(np.arange(block.count)[:, None] + start, one.shape)
            owners.append(number.ravel())
            keys.append((one * p + two).ravel())
        owner, key = np.concatenate(owners), np.unique(np.concatenate(keys), return_inverse=True)[1]
        nodes = self.count + int(key.max()) + 1
        graph = coo_matrix((np.ones(len(owner), dtype=bool), (owner, self.count + key)), shape=(nodes, nodes))
        labels = connected_components(graph, directed=False)[1][: self.count]
        order = np.argsort(labels, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)

    @property
    def prime(self) -> int:
        return CHAIN[0]

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
