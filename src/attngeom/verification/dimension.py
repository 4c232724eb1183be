"""Recheck a certificate for a dimension, with code of its own: forward derivatives, and the symmetries or a count.

Nothing here comes from the search. The Jacobian is evaluated by forward propagation of one tangent for each column
(the search propagates back), in the convention X = d×t of :mod:`attngeom.network`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.errors import AttnGeomError, FormatError
from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.modular import rank_mod_p
from attngeom.network.architecture import Architecture
from attngeom.network.infinitesimal import count_generators, infinitesimal_action
from attngeom.network.weights import Head, Weights, random_weights
from attngeom.verification.counts import count_upper_bound, reached_widths
from attngeom.verification.records import Verdict

MAX_DIMENSION = 4000
MAX_PARAMETERS = 10**6
MAX_ENTRIES = 2 * 10**8
MAX_WORK = 10**11


@dataclass(frozen=True)
class Point:
    """Where the minor is evaluated: weights and samples mod p, and which rows and columns."""

    field: PrimeField
    weights: Weights
    inputs: Array
    cotangents: Array
    attention: list[list[Array]] | None
    rows: list[int]
    columns: list[int]


def check(claim: Mapping[str, Any], witness: Mapping[str, Any], provenance: Mapping[str, Any]) -> Verdict:
    """Whether the witness proves that the functions of the architecture form a set of the claimed dimension.

    Valid means: the minor is nonzero mod p, so the dimension is at least its size, and an upper bound equals it.
    ``provenance`` is not needed: everything that the proof uses is in the witness.
    """
    words = "dimension"
    try:
        architecture, value = _read_claim(claim)
        words = f"the functions of {_describe(architecture)} form a set of dimension {value}"
        lower, upper = witness.get("lower"), witness.get("upper")
        if not isinstance(lower, dict) or not isinstance(upper, dict):
            raise FormatError("the witness needs the objects lower and upper")
        found = _upper(architecture, upper)
        if found != value:
            return Verdict(False, words, f"the upper bound is {found}, not {value}")
        point = _read_point(architecture, lower, value)
        rank = rank_mod_p(_minor(point), point.field.p)
        if rank < value:
            return Verdict(False, words, f"the minor of size {value} has rank {rank} mod {point.field.p}")
        reason = (
            f"a {value}×{value} minor is nonzero mod {point.field.p}, and {_upper_words(upper)} give at most {value}"
        )
        return Verdict(True, words, reason)
    except AttnGeomError as error:
        return Verdict(False, words, str(error))


def _describe(architecture: Architecture) -> str:
    return (
        f"{architecture.kind} attention with widths {list(architecture.widths)}, attention"
        f" {list(architecture.attention)}, {architecture.heads} head(s), {architecture.tokens} token(s)"
    )


def _upper_words(upper: Mapping[str, Any]) -> str:
    return "the infinitesimal symmetries" if upper["method"] == "symmetries" else "the counted parameters"


def _integer(record: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = record.get(key)
    if type(value) is not int or not least <= value <= most:
        raise FormatError(f"{key} = {str(value)[:40]} found; an integer from {least} to {most} is required")
    return value


def _indices(record: Mapping[str, Any], key: str, count: int, bound: int) -> list[int]:
    values = record.get(key)
    if type(values) is not list or len(values) != count or len(set(map(str, values))) != count:
        raise FormatError(f"{key} must be a list of {count} different indices")
    if any(type(index) is not int or not 0 <= index < bound for index in values):
        raise FormatError(f"{key} must hold integers from 0 to {bound - 1}")
    return list(values)


def _read_claim(claim: Mapping[str, Any]) -> tuple[Architecture, int]:
    architecture = Architecture.from_json(claim.get("architecture"))
    if architecture.num_parameters > MAX_PARAMETERS:
        raise FormatError(f"{architecture.num_parameters:,} parameters; at most {MAX_PARAMETERS:,} are rechecked")
    return architecture, _integer(claim, "dimension", 0, MAX_DIMENSION)


def _upper(architecture: Architecture, upper: Mapping[str, Any]) -> int:
    """The upper bound that the witness names, recomputed."""
    if upper.get("method") == "count":
        return count_upper_bound(architecture)
    if upper.get("method") != "symmetries":
        raise FormatError(f"upper bound by {str(upper.get('method'))[:40]!r}; symmetries or count is required")
    field = GF(_integer(upper, "prime", 2, 2**31 - 1))
    size = sum(count_generators(architecture).values()) * architecture.num_parameters
    if size > MAX_ENTRIES:
        raise FormatError(f"a matrix of {size:,} entries; at most {MAX_ENTRIES:,} are rechecked")
    vectors = infinitesimal_action(random_weights(architecture, field, _integer(upper, "seed", 0, 2**63 - 1))).rows
    return architecture.num_parameters - rank_mod_p(vectors, field.p)


def _read_point(architecture: Architecture, lower: Mapping[str, Any], size: int) -> Point:
    field = GF(_integer(lower, "prime", 2, 2**31 - 1))
    seed = _integer(lower, "seed", 0, 2**63 - 2)
    tokens = _integer(lower, "tokens", 1, architecture.tokens)
    samples = _integer(lower, "samples", size, 16 * MAX_DIMENSION)
    if samples * tokens * max(architecture.widths) * tokens > MAX_ENTRIES:
        raise FormatError(f"{samples} samples of {tokens} tokens; that is more than is rechecked")
    work = size**2 * tokens * max(architecture.widths) * architecture.num_layers * architecture.heads
    if work > MAX_WORK:
        raise FormatError(f"about {work:.0e} operations are needed; at most {MAX_WORK:.0e} are rechecked")
    support = _read_support(architecture, lower.get("support"))
    weights = _restrict(random_weights(architecture, field, seed), support)
    rng = np.random.default_rng(seed + 1)
    inputs = field.random((samples, tokens, architecture.widths[0]), rng)
    cotangents = field.random((samples, tokens, architecture.widths[-1]), rng)
    attention = None
    if architecture.kind == "softmax":
        attention = _draw_attention(architecture, support, samples, tokens, field, rng)
    rows = _indices(lower, "rows", size, samples)
    columns = _indices(lower, "columns", size, architecture.num_parameters)
    return Point(field, weights, inputs, cotangents, attention, rows, columns)


def _read_support(architecture: Architecture, support: Any) -> list[list[Any]]:
    """Sizes of corner blocks, [d_in, d_out, attention, value width] for each layer; any sizes give a valid point."""
    if type(support) is not list or len(support) != architecture.num_layers:
        raise FormatError(f"support must list the sizes of {architecture.num_layers} layers")
    for layer, sizes in zip(architecture.layers, support):
        most = [layer.d_in, layer.d_out, layer.attention, layer.value_width]
        if type(sizes) is not list or len(sizes) != 4:
            raise FormatError("each layer of the support needs four sizes")
        for size, bound in zip(sizes, most):
            if size is None and bound is None:
                continue
            if bound is None or type(size) is not int or not 1 <= size <= bound:
                raise FormatError(f"support size {str(size)[:40]} found; at most {bound} is possible")
    return support


def _restrict(weights: Weights, support: list[list[Any]]) -> Weights:
    """The weights with zeros outside the corner blocks."""
    layers = []
    for heads, (d_in, d_out, attention, value_width) in zip(weights.layers, support):
        inner = d_out if value_width is None else value_width
        layers.append(
            tuple(
                Head(
                    _corner(head.Q, attention, d_in),
                    _corner(head.K, attention, d_in),
                    _corner(head.V, inner, d_in),
                    None if head.O is None else _corner(head.O, d_out, inner),
                )
                for head in heads
            )
        )
    return Weights(weights.architecture, weights.domain, tuple(layers))


def _corner(matrix: Array, rows: int, columns: int) -> Array:
    out = np.zeros_like(matrix)
    out[:rows, :columns] = matrix[:rows, :columns]
    return out


def _draw_attention(
    architecture: Architecture,
    support: list[list[Any]],
    samples: int,
    tokens: int,
    field: PrimeField,
    rng: np.random.Generator,
) -> list[list[Array]]:
    """Formal attention: random columns that sum to 1, or from symmetric exponentials where inputs span one dimension.

    Exponentials of scores are algebraically independent if the inputs of the layer span two dimensions; for one
    dimension the scores are symmetric, and only symmetric exponentials are points that occur.
    """
    p = field.p
    drawn = []
    for reached, sizes in zip(reached_widths(architecture), support):
        if reached == 1 and sizes[0] != 1:
            raise FormatError("a layer whose inputs span one dimension has a larger support")
        heads = []
        for _ in range(architecture.heads):
            while True:
                E = field.random((samples, tokens, tokens), rng)
                if architecture.causal:
                    E = np.triu(E)
                elif sizes[0] == 1:
                    E = np.triu(E) + np.swapaxes(np.triu(E, 1), -1, -2)
                    E[:, -1, :] = E[:, -1, :] * (architecture.tokens - tokens + 1) % p
                if sizes[0] != 1:
                    for i in range(tokens):
                        E[:, i, i] = (1 - E[:, :, i].sum(axis=1) + E[:, i, i]) % p
                    break
                sums = E.sum(axis=1) % p
                if np.all(sums):
                    inverses = np.array([pow(int(x), -1, p) for x in sums.ravel()], dtype=np.int64)
                    E = E * inverses.reshape(samples, 1, tokens) % p
                    break
            heads.append(E)
        drawn.append(heads)
    return drawn


def _minor(point: Point) -> Array:
    """The square matrix ⟨C_n, ∂phi(X_n)/∂w_c⟩ over the chosen rows and columns."""
    places: dict[str, list[tuple[int, int, int]]] = {}
    position = {column: index for index, column in enumerate(point.columns)}
    offset = 0
    for name, (rows, columns) in point.weights.architecture.tensor_shapes():
        inside = [column for column in position if offset <= column < offset + rows * columns]
        places[name] = [(position[c], (c - offset) // columns, (c - offset) % columns) for c in inside]
        offset += rows * columns
    out = np.zeros((len(point.rows), len(point.columns)), dtype=np.int64)
    for index, sample in enumerate(point.rows):
        out[index] = _differentiate(point, sample, places)
    return out


def _differentiate(point: Point, sample: int, places: Mapping[str, list[tuple[int, int, int]]]) -> Array:
    """One row: all tangents (columns × d × t) are carried forward through the layers."""
    field, architecture = point.field, point.weights.architecture
    multiply, p = field.matmul, point.field.p
    count = len(point.columns)
    X = point.inputs[sample].T
    tangent = np.zeros((count, *X.shape), dtype=np.int64)
    names = iter(point.weights.tensors())

    def moved(name: str, matrix: Array, value: Array, change: Array) -> Array:
        """The derivative of matrix · value."""
        result = multiply(matrix, change)
        for place, row, column in places[name]:
            result[place, row] += value[column]
        return result % p

    for index, heads in enumerate(point.weights.layers):
        total = X if architecture.residual else 0
        total_tangent = tangent if architecture.residual else 0
        for h, head in enumerate(heads):
            tensors = [next(names) for _ in head.tensors]
            (q, dq), (k, dk), (v, dv) = (
                (multiply(matrix, X), moved(name, matrix, X, tangent)) for name, matrix in tensors[:3]
            )
            scores_tangent = (multiply(np.swapaxes(dk, 1, 2), q) + multiply(k.T, dq)) % p
            if point.attention is None:
                weights = multiply(k.T, q)
                if architecture.causal:
                    weights, scores_tangent = np.triu(weights), np.triu(scores_tangent)
            else:
                weights = point.attention[index][h][sample]
                weighted = weights * scores_tangent % p
                scores_tangent = (weighted - weights * (weighted.sum(axis=1, keepdims=True) % p)) % p
            out = multiply(v, weights)
            out_tangent = (multiply(dv, weights) + multiply(v, scores_tangent)) % p
            if head.O is not None:
                name, O = tensors[3]
                out, out_tangent = multiply(O, out), moved(name, O, out, out_tangent)
            total, total_tangent = (total + out) % p, (total_tangent + out_tangent) % p
        X, tangent = np.asarray(total), np.asarray(total_tangent)
    flat = tangent.reshape(count, -1)
    return multiply(flat, point.cotangents[sample].T.reshape(-1, 1)).reshape(count)
