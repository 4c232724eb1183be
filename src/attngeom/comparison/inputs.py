"""Inputs at which a chosen part of a layer decides the outputs, because larger parts are silent there.

A layer that multiplies one direction of its input by 10^10 and another by 1 shows the first alone at random inputs. The
directions are those of the singular value decomposition of what its heads read, pulled back to the input along all
paths through the value maps before it.

A head is silent at a token that meets a zero of its values, queries or keys, or at which its attention is saturated off
it: so tokens are sparse, unit vectors, multiples of one direction, of many sizes each. Of many such inputs those are
kept at which a row of the output changes most when the values, or the scores, of one head change sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from attngeom.canonical.evaluation import ScaledOutputs, evaluate_floats
from attngeom.errors import RangeError
from attngeom.exact import lapack
from attngeom.exact.domains import Array
from attngeom.exact.numbers import split_scale
from attngeom.limits.rounding import DIRECTIONS_APART, SHARE_STEPS
from attngeom.limits.trials import (
    ALL_HEAD_INPUTS_KEPT,
    HEAD_INPUTS_KEPT,
    HEAD_INPUTS_TRIED,
    SATURATED_SCORES,
    SINGULAR_BASES,
    SIZE_MARGIN,
)
from attngeom.network import Architecture, Head, Weights
from attngeom.network.inputs import thinned
from attngeom.network.symmetry import tensors_of


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


def head_inputs(
    first: Weights, second: Weights, sizes: Array, tokens: int, seed: int, tried: int = HEAD_INPUTS_TRIED
) -> Array:
    """For each head of either network the inputs (N, d, tokens), of those tried, that show its values and its scores.

    >>> from attngeom.exact import RR
    >>> w = Weights.from_vector(Architecture((2, 1), 1, tokens=1, residual=False), np.array([1.0, 1, 1, 1, 9e9, 1]), RR)
    >>> head_inputs(w, w, np.zeros(1, dtype=np.int64), 1, seed=0).shape
    (3, 2, 1)
    """
    rng = np.random.default_rng(seed)
    aligned = [x for weights in (first, second) for x in _saturating_inputs(weights, tokens, rng)]
    X = _sparse_inputs(first.architecture, sizes, tokens, tried, rng)
    if aligned:
        X = np.concatenate([X, np.stack(aligned)[:tried]])
    chosen: set[int] = set()
    with np.errstate(all="ignore"):
        for weights in (first, second):
            given = evaluate_floats(weights, X)
            for changed in _with_signs_changed(weights):
                shares = _changes(given, evaluate_floats(changed, X))
                chosen |= set(
                    np.argsort(-np.floor(SHARE_STEPS * shares), axis=0, kind="stable")[:HEAD_INPUTS_KEPT]
                    .ravel()
                    .tolist()
                )
    return X[sorted(chosen)[:ALL_HEAD_INPUTS_KEPT]]


def _sparse_inputs(
    architecture: Architecture, sizes: Array, tokens: int, count: int, rng: np.random.Generator
) -> Array:
    """Random inputs with zeros, unit vectors and multiples of one direction among their tokens, of many sizes each."""
    d = architecture.widths[0]
    X = rng.standard_normal((count, d, tokens))
    signs = rng.choice([-1, 1], (count, 1, tokens))
    units = np.swapaxes(np.eye(d)[rng.integers(d, size=(count, tokens))], 1, 2) * signs
    is_first = (np.arange(tokens) == 0)[None, None]
    kinds = (
        X,
        X * (rng.random(X.shape) < 0.5),
        units,
        np.where(is_first, units, X),
        np.where(is_first, X, units),
        np.broadcast_to(X[:, :, :1], X.shape) * np.where(rng.integers(4, size=(count, 1, 1)) > 0, 1, signs),
    )
    X = np.choose(np.arange(count)[:, None, None] % len(kinds), kinds)
    X = np.stack([x[:, rng.permutation(tokens)] for x in X])
    # Attention is saturated at inputs beyond the natural sizes; a homogeneous network has one size.
    largest = 0 if architecture.is_homogeneous else SIZE_MARGIN // 2
    powers = np.resize(sizes, count)[:, None] + rng.integers(0, largest + 1, size=(count, 1))
    apart = np.where(
        rng.integers(2, size=(count, 1)) > 0, rng.integers(-SIZE_MARGIN, SIZE_MARGIN + 1, size=(count, tokens)), 0
    )
    return np.asarray(np.ldexp(X, (powers + apart)[:, None, :]))


def _saturating_inputs(weights: Weights, tokens: int, rng: np.random.Generator) -> Iterator[Array]:
    """Tokens along an eigenvector of a symmetric part of A, so large that all scores of one sign are saturated.

    Unless attention is normalised, heads whose scores are negative then are silent. Hidden layers are read through
    Σ V, or as they are beside a skip connection.
    """
    architecture = weights.architecture
    if not architecture.rule.can_be_silent:
        return
    before = np.eye(architecture.widths[0])
    for matrices, maps in zip(weights.attention_matrices(), weights.value_matrices()):
        forms = [split_scale(before.T @ (A + A.T) @ before) for A in matrices]
        units = np.stack([form for form, _ in forms])
        for form in (*units, units.sum(axis=0), *(units.sum(axis=0) - 2 * units)):
            if not np.all(np.isfinite(form)) or not form.any():
                continue
            values, vectors = lapack.eigh(form)
            for place, power in product(np.flatnonzero(values < 0), SATURATED_SCORES):
                size = np.sqrt(2.0**power * float(architecture.temperature) / -values[place])
                apart = rng.integers(-1, 2, size=tokens)
                yield np.ldexp(size * vectors[:, [place]], -(forms[0][1] // 2)) * np.ldexp(1.0, apart)
        if not architecture.residual:
            before = split_scale(sum(maps) @ before)[0]


def _with_signs_changed(weights: Weights) -> Iterator[Weights]:
    """The network with the values of one head negated, and with the scores of one head negated, for every head."""
    names = "V" if weights.architecture.rule.has_scale else "VQ"
    for (layer, head, name), a in tensors_of(weights).items():
        if name in names and head is not None:
            heads = list(weights.layers[layer])
            heads[head] = Head.of({**heads[head].tensors, name: -a})
            yield replace(weights, layers=(*weights.layers[:layer], tuple(heads), *weights.layers[layer + 1 :]))


def _changes(one: ScaledOutputs, two: ScaledOutputs) -> Array:
    """For each input and row of the output the largest change of an entry, relative to that entry; from 0 to 2."""
    exponents = np.maximum(one.exponents, two.exponents)
    a, b = one.relative_to(exponents), two.relative_to(exponents)
    size = np.maximum(np.abs(a), np.abs(b))
    return np.asarray(np.max(np.nan_to_num(np.where(size > 0, np.abs(a - b) / size, 0.0)), axis=2, initial=0.0))
