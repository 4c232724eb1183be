"""Outputs of two float networks at inputs of many sizes, against what errors of the weights explain.

Inputs are random, with all coordinates of one size or of many, at sizes at which the attention of some layer is neither
flat nor saturated; special ones show what is small elsewhere. Beside a skip connection what is added to the input is
compared, so that small layers are seen. Copies are evaluated with rounding errors of their own.

Special inputs are those at which a chosen part of a layer decides the outputs, because larger parts are silent there.

A layer that multiplies one direction of its input by 10^10 and another by 1 shows the first alone at random inputs. The
directions are those of the singular value decomposition of what its heads read, pulled back to the input along all
paths through the value maps before it.

A head is silent at a token that meets a zero of its values, queries or keys, or at which its attention is saturated off
it: so tokens are sparse, unit vectors, multiples of one direction, of many sizes each. Of many such inputs those are
kept at which a row of the output changes most when the values, or the scores, of one head change sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from attngeom.canonical.evaluation import ScaledOutputs, evaluate_floats, scores_of
from attngeom.comparison.results import Report, Separation, ignore
from attngeom.comparison.samples import Layers, copy_of, spread
from attngeom.errors import RangeError, SizeError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array, Balls
from attngeom.exact.numbers import split_scale
from attngeom.limits.memory import SCORES_AT_ONCE
from attngeom.limits.rounding import (
    DIRECTIONS_APART,
    LARGEST_CHANGE,
    NOISE_DECIDES,
    NOISE_EXCLUDED,
    SCORES_UNSURE,
    SEPARATING_BITS,
    SHARE_STEPS,
    SUM_ROUNDING,
    WORST_AMPLIFIED,
)
from attngeom.limits.sizes import COMPARED_TOKENS
from attngeom.limits.trials import (
    ALL_HEAD_INPUTS_KEPT,
    HEAD_INPUTS_KEPT,
    HEAD_INPUTS_TRIED,
    MORE_OUTPUT_INPUTS,
    NOISE_COPIES,
    OUTPUT_INPUTS,
    SATURATED_SCORES,
    SINGULAR_BASES,
    SIZE_MARGIN,
    SIZES_MEASURED,
    SPREAD_EXPONENTS,
    VISIBLE_AT,
    VISIBLE_INPUTS,
)
from attngeom.network import Architecture, Head, Weights, forward
from attngeom.network.inputs import natural_sizes, telling_sizes, telling_tokens, thinned, with_all_tokens
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


@dataclass(frozen=True, eq=False)
class OutputTest:
    """What the outputs show, and the most telling input.

    ``worst`` is the largest ratio of a difference to its noise; far apart are outputs that differ by much more than
    their noise at two inputs. ``difference`` and ``noise`` are relative to the outputs, root mean squares over the
    inputs; ``excess`` is the part of the difference that is not due to rounding.
    """

    X: Array
    exponents: Array
    is_far: bool
    worst: float
    difference: float
    noise: float
    excess: float
    place: int


def draw_inputs(first: Weights, second: Weights, seed: int) -> Array:
    """Inputs (N, d, t) at the sizes at which some layer can be seen."""
    architecture = first.architecture
    is_plain = architecture.is_homogeneous or architecture.num_layers == 1
    count = _affordable(architecture, OUTPUT_INPUTS if is_plain else MORE_OUTPUT_INPUTS)
    sizes = telling_sizes(first, second, seed, _affordable(architecture, SIZES_MEASURED))
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, architecture.widths[0], telling_tokens(architecture)))
    spread = rng.integers(-SPREAD_EXPONENTS, SPREAD_EXPONENTS + 1, size=(count, architecture.widths[0], 1))
    spread[::2] = 0
    return np.asarray(np.ldexp(X, spread + np.resize(sizes, count)[:, None, None]))


def draw_special_inputs(first: Weights, second: Weights, seed: int) -> Array:
    """Inputs at which the large parts of a layer are silent: in few directions, and at single tokens."""
    architecture = first.architecture
    tokens, sizes = telling_tokens(architecture), natural_sizes(first, second)
    X = singular_inputs(first, second, np.unique(sizes[[0, -1]]), tokens, seed)
    if architecture.heads > 1 or architecture.residual:
        passes = 4 * architecture.heads * architecture.num_layers
        tried = _affordable(architecture, passes * HEAD_INPUTS_TRIED) // passes
        X = np.concatenate([X, head_inputs(first, second, sizes, tokens, seed, tried)])
    return X[: _affordable(architecture, len(X))]


def check_tokens(architecture: Architecture) -> None:
    """Refuse networks whose outputs are seen at long inputs only."""
    if telling_tokens(architecture) > COMPARED_TOKENS:
        raise SizeError(
            f"{architecture.tokens:,} tokens, {architecture.kind} without mask: floats are compared for at most"
            f" {COMPARED_TOKENS}, or softmax for a multiple of a number from 3 to 64; give such a number of tokens"
        )


def _affordable(architecture: Architecture, most: int) -> int:
    """The number of inputs whose scores fit into memory, at least one and at most so many."""
    tokens = telling_tokens(architecture)
    return min(max(SCORES_AT_ONCE // (tokens * (tokens + architecture.widths[0]) * architecture.heads), 1), most)


def _largest_exponents(one: ScaledOutputs, two: ScaledOutputs) -> Array:
    """For each input the exponent of the larger output; zero has none."""
    sides = [np.where(np.any(x.units, axis=(1, 2)), x.exponents, y.exponents) for x, y in ((one, two), (two, one))]
    return np.asarray(np.maximum(*sides))


def judge_outputs(
    architecture: Architecture, one: Layers, two: Layers, X: Array, tolerance: float, report: Report = ignore
) -> OutputTest:
    """Compare the outputs at the inputs X, entry by entry, with the noise of the copies."""
    with np.errstate(all="ignore"):
        sides: list[list[ScaledOutputs]] = [[], []]
        for done in range(2 * (NOISE_COPIES + 1)):
            report("evaluating", done, 2 * (NOISE_COPIES + 1))
            k, side = divmod(done, 2)
            errors = np.random.default_rng(done) if k else None
            sides[side].append(evaluate_floats(copy_of(architecture, (one, two)[side], k), X, errors))
        largest = _largest_exponents(sides[0][0], sides[1][0])
        values = [[outputs.relative_to(largest) for outputs in side] for side in sides]
        difference = np.abs(values[0][0] - values[1][0])
        noise = np.hypot(*(spread(np.stack(side)) for side in values))
        size = np.maximum(*(np.abs(side[0]) for side in values))
        finite = np.isfinite(difference) & np.isfinite(noise)
        ratio = np.where(difference > 0, difference / noise, 0.0)
        ratio = np.where(finite, np.nan_to_num(ratio, posinf=1e300), 0.0)
        worst = np.max(ratio, axis=(1, 2), initial=0.0)
        shown = [np.linalg.norm(np.where(finite, x, 0.0), axis=(1, 2)) for x in (difference, noise, size)]
        relative = [np.where(shown[2] > 0, x / shown[2], 0.0) for x in shown[:2]]
    apart = np.flatnonzero(worst > NOISE_EXCLUDED)
    if len(apart):
        is_sure = np.logical_and(*(_scores_are_sure(architecture, side, X[apart]) for side in (one, two)))
        apart = apart[is_sure]
    is_far = len(apart) >= 2 or bool(np.any(worst[apart] > NOISE_DECIDES))
    shows = bool(np.all(finite)) and bool(np.any(size > 0))
    exact = np.where(
        shown[0] > NOISE_EXCLUDED * shown[1] * (SUM_ROUNDING / max(tolerance, SUM_ROUNDING)), relative[0], 0.0
    )
    rms = [float(np.sqrt(np.mean(x**2))) for x in (*relative, exact)]
    place = int(apart[np.argmax(relative[0][apart])]) if len(apart) else 0
    return OutputTest(
        X=X,
        exponents=largest,
        is_far=is_far,
        worst=float(worst.max()) if shows else np.inf,
        difference=rms[0],
        noise=rms[1],
        excess=rms[2],
        place=place,
    )


def differ_visibly(weights: tuple[Weights, Weights], X: Array, tolerance: float) -> bool:
    """Whether outputs without any rounding differ by more than 10,000 τ, or by 5 %, at three of eight inputs.

    Floats cannot tell where a network magnifies errors beyond their own; inputs at which only rounding of the weights
    decides, as at the edge of saturation, are rare. Where all that adds up to an output cancels, nothing is seen.
    """
    domain, skip = Balls(SEPARATING_BITS[1]), weights[0].architecture.residual
    sides, sizes = ([side.to(domain) for side in pair] for pair in (weights, tuple(map(_absolute, weights))))
    allowed, count = min(WORST_AMPLIFIED * tolerance, LARGEST_CHANGE), 0
    for x in map(domain.convert, X[:VISIBLE_INPUTS]):
        one, two = (forward(side, x) - x if skip else forward(side, x) for side in sides)
        size, whole = _largest(one, two), _largest(*(forward(side, abs(x)) for side in sizes))
        count += size > SUM_ROUNDING * whole and _largest(one - two) > allowed * size
    return count >= VISIBLE_AT


def _absolute(weights: Weights) -> Weights:
    """Absolute values of all entries: sizes of all that adds up to an output."""
    tensors = {name: abs(a) for name, a in weights.tensors()}
    return Weights.from_tensors(weights.architecture, tensors, weights.domain)


def _largest(*arrays: Array) -> Any:
    return max(abs(value).mid() for array in arrays for value in array.ravel())


def _scores_are_sure(architecture: Architecture, layers: Layers, X: Array) -> Array:
    """For each input whether errors of the weights hardly change any score, or leave no doubt that it is saturated.

    Attention hides errors of scores that it cuts off: what copies differ by is no measure of the noise then.
    """
    sure = np.ones(len(X), dtype=bool)
    rule = architecture.rule
    if rule.is_polynomial:
        return sure
    copies = [list(scores_of(copy_of(architecture, layers, k), X)) for k in range(NOISE_COPIES + 1)]
    visible = architecture.mask.visible(X.shape[-1])
    for scores in map(np.stack, zip(*copies)):
        if rule.is_normalised:
            top = np.argmax(np.where(visible, scores[0], -np.inf), axis=-2, keepdims=True)
            scores = scores - np.take_along_axis(scores, top[None], axis=-2)
        noise = spread(scores)
        sure &= np.all(
            (noise <= SCORES_UNSURE) | (np.abs(scores[0]) > NOISE_EXCLUDED * noise) | ~visible, axis=(-2, -1)
        )
    return sure


def show_separation(networks: tuple[Weights, Weights], inputs: Array, outputs: OutputTest) -> Separation | None:
    """The most telling input in units 2^inputs, scaled to outputs of size 1 where the degree allows it."""
    architecture = networks[0].architecture
    X = np.ldexp(outputs.X[outputs.place], inputs[:, None])
    if architecture.is_homogeneous:
        part, whole = np.modf(-float(outputs.exponents[outputs.place]) / 3**architecture.num_layers)
        X = np.ldexp(X * 2.0**part, int(whole))
    values = forward(networks[0], X), forward(networks[1], X)
    is_shown = all(np.all(np.isfinite(value)) for value in values) and not np.array_equal(*values)
    if not is_shown:
        return None
    one, two = (with_all_tokens(architecture, value) for value in values)
    return Separation(with_all_tokens(architecture, X), (one, two), RR)
