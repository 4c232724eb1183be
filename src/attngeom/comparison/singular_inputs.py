"""Inputs at which the large parts of a layer are silent, so that what is small beside them is heard.

A layer that multiplies one direction of its input by 10^10 and another by 1 shows the first alone at random inputs. The
directions are those of the singular value decomposition of what its heads read, pulled back to the input along all
paths through the value maps before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attngeom.errors import RangeError
from attngeom.exact import lapack
from attngeom.exact.domains import Array
from attngeom.limits.rounding import DIRECTIONS_APART
from attngeom.limits.trials import SINGULAR_BASES
from attngeom.network import Weights
from attngeom.network.inputs import thinned


def singular_inputs(first: Weights, second: Weights, sizes: Array, tokens: int, seed: int) -> Array:
    """Random inputs (N, d, tokens), of the given exponents, in spaces that the large parts of a layer do not see.

    >>> from attngeom.exact import RR
    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((2, 1), 1), np.array([1.0, 0, 1, 1, 9e9, 1.0]), RR)
    >>> X = singular_inputs(w, w, np.zeros(1, dtype=np.int64), 1, seed=0)
    >>> bool(np.all(np.abs(X[:, 0] / X[:, 1]) < 1e-9))
    True
    """
    rng = np.random.default_rng(seed)
    bases = [base for weights in (first, second) for base in _small_directions(weights)]
    chosen = thinned(list(range(len(bases))), SINGULAR_BASES)
    inputs = [
        np.ldexp(bases[place] @ rng.standard_normal((bases[place].shape[1], tokens)), int(size))
        for place in chosen
        for size in sizes
    ]
    return np.array(inputs).reshape(len(inputs), first.architecture.widths[0], tokens)


def _small_directions(weights: Weights) -> Iterator[Array]:
    """For each gap between the singular values of what a layer reads a basis of the directions below it."""
    architecture = weights.architecture
    has_scale, is_residual = architecture.rule.has_scale, architecture.residual
    before: list[tuple[Array, ...]] = []
    narrowest = architecture.widths[0]
    for shape, maps, matrices in zip(architecture.layers, weights.value_matrices(), weights.attention_matrices()):
        narrowest = min(narrowest, shape.d_in)
        # Lightning heads count by the size of what they add, A and V together.
        loudness = [lapack.norm(A) if has_scale else 1.0 for A in matrices]
        values = np.concatenate([size * V for size, V in zip(loudness, maps)])
        scores = np.concatenate([part for A in matrices for part in (A, A.T)])
        ranks = (shape.heads * shape.value_rank, 2 * shape.heads * shape.attention)
        for rows, rank in zip((values, scores), ranks):
            # What no weights of this shape read, a lightning layer without a skip maps to zero: nothing is heard.
            heard = min(rank, narrowest) if architecture.is_homogeneous else architecture.widths[0]
            try:
                yield from _below_gaps(_pull_back(rows, before, is_residual), heard)
            except RangeError:
                continue
        before.append(maps)


def _pull_back(rows: Array, before: list[tuple[Array, ...]], is_residual: bool) -> Array:
    """Linear forms of a hidden layer as forms of the input, along all paths, in an orthonormal basis of rows."""
    for maps in reversed(before):
        rows = np.concatenate([rows @ V for V in maps] + [rows] * is_residual)
        if len(rows) > rows.shape[1]:
            rows = lapack.triangle(rows)
    return rows


def _below_gaps(rows: Array, heard: int) -> Iterator[Array]:
    values, right = lapack.svd(rows)[1:]
    values = np.concatenate([values, np.zeros(len(right) - len(values))])
    for place in range(1, min(len(right), heard)):
        if values[place - 1] > DIRECTIONS_APART * values[place]:
            yield right[place:].T
