"""How other libraries name and shape the four projections of an attention block."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array

Load = Callable[[str], Array]


@dataclass(frozen=True, eq=False)
class Projections:
    """Q, K, V (rows are outputs, d_in columns) and O (d_out rows) of all heads together."""

    Q: Array
    K: Array
    V: Array
    O: Array


@dataclass(frozen=True)
class Layout:
    """A naming scheme: the tensors below a prefix, and how to make projections of them.

    ``fused`` names one tensor that holds Q, K and V stacked; ``transposed`` says that inputs are rows.
    """

    names: tuple[str, ...]
    fused: bool = False
    transposed: bool = False

    def describe(self) -> str:
        return ", ".join(self.names)

    def load(self, prefix: str, load: Load) -> Projections:
        """The four projections, with rows as outputs."""
        arrays = [_matrix(load(prefix + name), prefix + name) for name in self.names]
        if self.transposed:
            arrays = [array.T for array in arrays]
        if self.fused:
            rows = arrays[0].shape[0]
            if rows % 3:
                raise InputError(
                    f"tensor {prefix}{self.names[0]} has {rows} rows; three equal projections are required"
                )
            arrays = [*np.split(arrays[0], 3), arrays[1]]
        Q, K, V, O = arrays
        if not Q.shape[1] == K.shape[1] == V.shape[1]:
            raise InputError(f"projections of {prefix} read inputs of different widths; self-attention is required")
        return Projections(Q, K, V, O)

    def store(self, prefix: str, parts: Projections) -> dict[str, Array]:
        """The tensors that :meth:`load` reads as these projections."""
        arrays = [parts.Q, parts.K, parts.V, parts.O]
        if self.fused:
            arrays = [np.concatenate(arrays[:3]), parts.O]
        if self.transposed:
            arrays = [array.T for array in arrays]
        return {prefix + name: array for name, array in zip(self.names, arrays)}


def _matrix(array: Array, name: str) -> Array:
    if array.ndim != 2:
        raise InputError(f"tensor {name} of shape {array.shape} given; a matrix is required")
    return array


LAYOUTS = (
    Layout(("in_proj_weight", "out_proj.weight"), fused=True),
    Layout(("q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight")),
    Layout(("q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight")),
    Layout(("q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight")),
    Layout(("self.query.weight", "self.key.weight", "self.value.weight", "output.dense.weight")),
    Layout(("c_attn.weight", "c_proj.weight"), fused=True, transposed=True),
)


@dataclass(frozen=True)
class CheckpointBlock:
    """One attention block of a checkpoint."""

    prefix: str
    layout: Layout

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.prefix + name for name in self.layout.names)


def _natural(prefix: str) -> list[tuple[int, str | int]]:
    """Sort key with numbers by value, so that block 10 follows block 9."""
    return [(1, int(part)) if part.isdigit() else (0, part) for part in re.split(r"(\d+)", prefix)]


def attention_blocks(names: Mapping[str, object]) -> list[CheckpointBlock]:
    """All attention blocks in natural order of their prefixes.

    >>> [block.prefix for block in attention_blocks({"h.0.attn.c_attn.weight": 0, "h.0.attn.c_proj.weight": 0})]
    ['h.0.attn.']
    """
    blocks = []
    for layout in LAYOUTS:
        for name in names:
            prefix = name.removesuffix(layout.names[0])
            if prefix == name or (prefix and not prefix.endswith(".")):
                continue
            if all(prefix + other in names for other in layout.names):
                blocks.append(CheckpointBlock(prefix, layout))
    return sorted(blocks, key=lambda block: _natural(block.prefix))
