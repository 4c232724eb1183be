"""Tensors without the entries that a gauge fixes: identity blocks, unit pivots, constant rows are left out.

In the echelon gauge the redundant entries of a layer are zeros and ones in known places. `pack` cuts a tensor into
blocks of consecutive rows whose fixed entries lie in the same columns, and keeps the other entries and a short plan;
`unpack` restores every bit. Both know nothing of models, so that any tensor survives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.arrays import Array
from attngeom.limits.sizes import COMPACT_ENTRIES, TENSOR_RANK

PLAN = "#plan"
"""Ending of the name of the plan of a tensor."""
ZEROS, ONES, PLACES = 0, 1, 2
"""The fixed entries of a block: all zero, all one, or at most a single one in each row, whose column is listed."""
NOWHERE = -1


def pack(tensor: Array) -> tuple[Array, Array]:
    """(kept entries, plan) of a tensor; the plan is empty of blocks where nothing is fixed.

    >>> kept, plan = pack(np.hstack([np.eye(4), [[0.5], [2.0], [3.0], [4.0]]]))
    >>> kept.tolist(), unpack(kept, plan, "x").shape
    ([0.5, 2.0, 3.0, 4.0], (4, 5))
    """
    options = [_pack_rows(_as_rows(tensor, axis), tensor.dtype.itemsize) for axis in (0, 1)]
    axis = int(options[1][0].size < options[0][0].size)
    kept, blocks = options[axis]
    head = [axis, tensor.ndim, *tensor.shape, len(blocks)]
    return kept, np.concatenate([np.array(head, dtype=np.int64), *blocks]).astype(np.int64)


def _as_rows(tensor: Array, axis: int) -> Array:
    """The tensor as a matrix whose rows run along its last axis, or along its first; a vector is a column."""
    if tensor.ndim < 2:
        return tensor.reshape(-1, 1)
    flat = tensor.reshape(-1, tensor.shape[-1])
    return flat if axis == 0 else flat.T


def _pack_rows(rows: Array, width: int) -> tuple[Array, list[Array]]:
    ones = rows == 1
    fixed = ones | ((rows == 0) & ~np.signbit(rows.astype(np.float32)))
    kept = np.ones(rows.shape, dtype=bool)
    blocks = []
    for start, stop in _runs(fixed):
        columns = np.flatnonzero(fixed[start])
        own = ones[start:stop, columns]
        places = np.zeros(0, dtype=np.int64)
        if not own.any():
            content = ZEROS
        elif own.all():
            content = ONES
        elif (own.sum(axis=1) <= 1).all():
            content, places = PLACES, np.where(own.any(axis=1), columns[own.argmax(axis=1)], NOWHERE)
        else:
            continue
        listed = columns if len(columns) < rows.shape[1] else columns[:0]
        if own.size * width <= 8 * (4 + len(listed) + len(places)):
            continue
        kept[start:stop, columns] = False
        blocks.append(np.concatenate([[start, stop, len(listed), content], listed, places]).astype(np.int64))
    return np.ascontiguousarray(rows)[kept], blocks


def _runs(fixed: Array) -> Iterator[tuple[int, int]]:
    """Maximal runs of rows with the same fixed columns, at least one."""
    packed = np.packbits(fixed, axis=1)
    changes = np.flatnonzero((packed[1:] != packed[:-1]).any(axis=1)) + 1
    bounds = [0, *changes.tolist(), len(fixed)]
    for start, stop in pairwise(bounds):
        if stop > start and fixed[start].any():
            yield start, stop


def shape_of(plan: Array, name: str) -> tuple[int, ...]:
    """The shape that a plan restores; FormatError for a plan that is none."""
    if plan.ndim != 1 or plan.dtype != np.int64 or len(plan) < 3 or plan[0] not in (0, 1):
        raise FormatError(f"{name[:60]}: not a plan of a compact tensor; write the folder again")
    rank = int(plan[1])
    if not 0 <= rank <= TENSOR_RANK or len(plan) < rank + 3 or (plan[2 : 2 + rank] < 0).any():
        raise FormatError(f"{name[:60]}: a plan without a shape; write the folder again")
    shape = tuple(int(n) for n in plan[2 : 2 + rank])
    if prod(shape) > COMPACT_ENTRIES:
        raise FormatError(f"{name[:60]}: a tensor of {prod(shape):,} entries; at most {COMPACT_ENTRIES:,} are read")
    return shape


def unpack(kept: Array, plan: Array, name: str) -> Array:
    """The tensor, bit by bit; FormatError if plan and entries do not fit each other."""
    shape, axis = shape_of(plan, name), int(plan[0])
    size = prod(shape)
    if kept.ndim != 1 or kept.size > size:
        raise FormatError(f"{name[:60]}: {kept.size:,} entries for a tensor of {size:,}; write the folder again")
    length = size if len(shape) < 2 else size // max(shape[-1], 1) if axis == 0 else shape[-1]
    rows = np.empty((length, size // max(length, 1)), dtype=kept.dtype)
    free = np.ones(rows.shape, dtype=bool)
    for start, stop, columns, content, places in _blocks(plan[2 + len(shape) :], rows.shape, name):
        block = np.full((stop - start, len(columns)), content == ONES, dtype=kept.dtype)
        inside = np.flatnonzero(places != NOWHERE)
        columns_held = np.minimum(np.searchsorted(columns, places[inside]), len(columns) - 1)
        if (columns[columns_held] != places[inside]).any():
            raise FormatError(f"{name[:60]}: a one outside the fixed entries; write the folder again")
        block[inside, columns_held] = 1
        rows[start:stop, columns], free[start:stop, columns] = block, False
    if int(free.sum()) != kept.size:
        raise FormatError(f"{name[:60]}: {kept.size:,} entries for {int(free.sum()):,} places; write the folder again")
    rows[free] = kept
    if len(shape) < 2:
        return rows.reshape(shape)
    return rows.reshape(shape) if axis == 0 else np.ascontiguousarray(rows.T).reshape(shape)


def _blocks(plan: Array, shape: tuple[int, int], name: str) -> Iterator[tuple[int, int, Array, int, Array]]:
    """The blocks of a plan, checked: rows in increasing order, columns in range."""
    position, last = 1, 0
    for _ in range(int(plan[0])):
        if len(plan) < position + 4:
            raise FormatError(f"{name[:60]}: a plan that ends too early; write the folder again")
        start, stop, count, content = (int(n) for n in plan[position : position + 4])
        middle = position + 4 + count
        end = middle + (stop - start if content == PLACES else 0)
        if not (last <= start < stop <= shape[0] and 0 <= count <= shape[1] and content in (ZEROS, ONES, PLACES)):
            raise FormatError(f"{name[:60]}: a plan with rows out of range; write the folder again")
        columns = plan[position + 4 : middle] if count else np.arange(shape[1])
        if end > len(plan) or (columns < 0).any() or (columns >= shape[1]).any() or (np.diff(columns) <= 0).any():
            raise FormatError(f"{name[:60]}: a plan with columns out of range; write the folder again")
        yield start, stop, columns, content, plan[middle:end]
        position, last = end, stop
    if position != len(plan):
        raise FormatError(f"{name[:60]}: a plan with a rest that says nothing; write the folder again")


def pack_all(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of which something can be left out as two: kept entries, and the plan; others as they are."""
    packed: dict[str, Array] = {}
    for name, tensor in tensors.items():
        kept, plan = pack(tensor) if tensor.size and tensor.dtype.kind in "fV" else (tensor, np.zeros(0))
        if plan.size and kept.size < tensor.size:
            packed |= {name: kept, name + PLAN: plan}
        else:
            packed[name] = tensor
    return packed
