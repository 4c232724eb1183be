"""Recheck that a list of conservation laws is complete: independent fields at a point mod p, as many as laws leave.

Nothing here comes from the search, which propagates back and differentiates that. Here a network is evaluated over the
ring GF(p)[ε, η_1, …, η_P]/(ε², η_i η_j): with weights w + ε v + Σ η_i e_i the coefficient of η_i of f is ∂f/∂w_i, that
of ε η_i is entry i of the Hessian times v.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import GF, Array, BalancedField, PrimeField
from attngeom.exact.modular import rank_mod_p
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry import infinitesimal_action, linear_factors
from attngeom.network.weights import Weights, random_weights
from attngeom.verification.budget import MAX_JACOBIAN, MAX_SAMPLE_ENTRIES, MAX_SYMMETRY_ENTRIES, afford
from attngeom.verification.dimension import KINDS, MAX_SAMPLES, MAX_SEED, draw_attention
from attngeom.verification.reading import in_words, read_index, read_integer, read_object, require
from attngeom.verification.upper_bound import reached_widths

MAX_PARAMETERS = 4000


@dataclass(frozen=True)
class LawsClaim:
    """Gradient flow on losses of the functions of an architecture conserves so many independent quantities."""

    architecture: Architecture
    count: int

    @classmethod
    def from_json(cls, record: Any) -> LawsClaim:
        """Read the claim strictly."""
        claim = read_object(record, ("kind", "architecture", "count"), "claim")
        architecture = Architecture.from_json(claim["architecture"])
        return cls(architecture, read_integer(claim["count"], 0, 10**18, "count"))

    def __str__(self) -> str:
        return (
            f"gradient flow on any loss of attention networks with {in_words(self.architecture)} conserves {self.count}"
            " independent quantities, the moments of the symmetries, and functions of these alone"
        )

    def check(self, witness: Mapping[str, Any]) -> str:
        """Why the claim is true: so many moments are independent, and the fields leave room for no other law."""
        architecture = self.architecture
        if architecture.kind not in KINDS:
            raise FormatError(f"kind {architecture.kind} found; laws of {' and '.join(KINDS)} are rechecked")
        afford(architecture.num_parameters, MAX_PARAMETERS, "parameters")
        point = _read_point(architecture, witness)
        moments = _symmetric_directions(point.weights)
        found = rank_mod_p(moments, point.field.p)
        require(found == self.count, f"{found} moments are independent mod {point.field.p}, not {self.count}")
        rank = architecture.num_parameters - self.count
        size = len(point.gradients) + len(point.brackets)
        require(size == rank, f"{size} fields given; {rank} independent ones leave room for {self.count} laws")
        fields = _fields(point)
        products = point.field.matmul(moments, fields.T)
        require(not np.any(products), "a moment is not constant along a field; the weights do not have this symmetry")
        require(rank_mod_p(fields, point.field.p) == rank, f"the fields are dependent mod {point.field.p}")
        return (
            f"{len(point.gradients)} gradients and {len(point.brackets)} brackets are independent mod {point.field.p},"
            f" and {self.count} moments annihilate them: together {architecture.num_parameters} dimensions"
        )


@dataclass(frozen=True)
class Point:
    """Weights and samples mod p, and which gradients and brackets are independent there.

    Tensors, inputs, cotangents and attention have balanced residues, over ``numbers``, whose products are BLAS calls.
    """

    field: PrimeField
    numbers: BalancedField
    weights: Weights
    tensors: list[Array]
    inputs: Array
    cotangents: Array
    attention: list[list[Array]] | None
    gradients: list[int]
    brackets: list[tuple[int, int]]


def _read_point(architecture: Architecture, witness: Any) -> Point:
    keys = ("prime", "seed", "tokens", "samples", "gradients", "brackets")
    record = read_object(witness, keys, "witness")
    field = GF(read_integer(record["prime"], 3, 2**31 - 1, "prime"))
    seed = read_integer(record["seed"], 0, MAX_SEED, "seed")
    tokens = read_integer(record["tokens"], 1, architecture.tokens, "tokens")
    samples = read_integer(record["samples"], 1, MAX_SAMPLES, "samples")
    lists = record["gradients"], record["brackets"]
    if any(type(x) is not list for x in lists) or any(type(x) is not list or len(x) != 2 for x in lists[1]):
        raise FormatError("gradients must be a list of samples, brackets a list of pairs of samples")
    gradients = [read_index(n, samples) for n in lists[0]]
    brackets = [(read_index(m, samples), read_index(n, samples)) for m, n in lists[1]]
    _afford_point(architecture, len(gradients) + 4 * len(brackets), tokens, samples)
    if not field.p > 2 or any(x % field.p == 0 for x in architecture.temperature.as_integer_ratio()):
        raise FormatError(f"temperature {architecture.temperature} cannot be used mod {field.p}")
    weights = random_weights(architecture, field, seed)
    rng = np.random.default_rng(seed + 1)
    inputs = field.random((samples, tokens, architecture.widths[0]), rng)
    cotangents = field.random((samples, tokens, architecture.widths[-1]), rng)
    attention = None
    if not architecture.rule.is_polynomial:
        spans = [[width] for width in reached_widths(architecture)]
        attention = draw_attention(architecture, spans[:-1], samples, tokens, field, rng)
    numbers = BalancedField(field.p)
    return Point(
        field,
        numbers,
        weights,
        [numbers.from_residues(tensor) for _, tensor in weights.tensors()],
        numbers.from_residues(inputs),
        numbers.from_residues(cotangents),
        None if attention is None else [[numbers.from_residues(P) for P in heads] for heads in attention],
        gradients,
        brackets,
    )


def _afford_point(architecture: Architecture, evaluations: int, tokens: int, samples: int) -> None:
    """Bound the memory of the samples and of one evaluation, and the multiplications of all of them."""
    width, parameters = max(architecture.widths), architecture.num_parameters
    depth = architecture.num_layers * architecture.heads
    entries = samples * tokens * (architecture.widths[0] + architecture.widths[-1])
    if not architecture.rule.is_polynomial:
        entries += samples * tokens**2 * depth
    afford(entries, MAX_SAMPLE_ENTRIES, "random numbers for the samples")
    generators = sum(factor.count for factor in linear_factors(architecture))
    afford(generators * parameters, MAX_SYMMETRY_ENTRIES, "entries of infinitesimal symmetries")
    inner = max(max(layer.attention, layer.value_width or 0) for layer in architecture.layers)
    tangents = 2 * parameters * tokens * max(width, inner)
    afford(tangents, MAX_SAMPLE_ENTRIES, "entries of tangents")
    afford(evaluations * depth * tangents * (width + tokens), MAX_JACOBIAN, "multiplications for the fields")


def _symmetric_directions(weights: Weights) -> Array:
    """ξw for symmetric generators ξ: the differentials of the moments, which the symmetries make constant."""
    p = weights.domain.characteristic
    rows, start, found = infinitesimal_action(weights).rows, 0, []
    for factor in linear_factors(weights.architecture):
        block = rows[start : start + factor.count].reshape(factor.size, factor.size, -1)
        found += [(block[i, j] + block[j, i]) % p for i in range(factor.size) for j in range(i + 1)]
        start += factor.count
    return np.array(found)


def _fields(point: Point) -> Array:
    """The chosen gradients, then the brackets [∇f_m, ∇f_n] = H_n ∇f_m − H_m ∇f_n, one row each."""
    used = {*point.gradients, *(n for pair in point.brackets for n in pair)}
    gradients = {n: _gradient(point, n) for n in used}
    rows = [gradients[n] for n in point.gradients]
    for m, n in point.brackets:
        forth, back = _hessian_product(point, n, gradients[m]), _hessian_product(point, m, gradients[n])
        rows.append(point.numbers.reduce(forth - back))
    found = np.array(rows).reshape(len(rows), point.weights.architecture.num_parameters)
    return point.numbers.to_integers(found)


@dataclass(frozen=True)
class Jet:
    """A matrix over the ring of the module: ``parts[i, j]`` belongs to ε^i and to 1 (j = 0) or η_j.

    Without a direction no ε is needed, and ``parts`` has length one.
    """

    parts: Array
    field: BalancedField

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.field.reduce(self.parts + other.parts), self.field)

    def __sub__(self, other: Jet) -> Jet:
        return Jet(self.field.reduce(self.parts - other.parts), self.field)

    def __matmul__(self, other: Jet) -> Jet:
        return Jet(_multiply(self.parts, other.parts, self.field.matmul, self.field), self.field)

    def __mul__(self, other: Jet) -> Jet:
        """Entry by entry."""
        return Jet(_multiply(self.parts, other.parts, self.field.times, self.field), self.field)

    def scaled(self, factor: Array) -> Jet:
        """Every part times a number, or entry by entry times a matrix of numbers."""
        return Jet(self.field.times(self.parts, factor), self.field)

    @property
    def T(self) -> Jet:
        return Jet(np.swapaxes(self.parts, -1, -2), self.field)

    @property
    def nilpotent(self) -> Jet:
        """The jet without its constant; the product of three of these is zero."""
        parts = self.parts.copy()
        parts[0, 0] = 0
        return Jet(parts, self.field)


Product = Callable[[Array, Array], Array]


def _multiply(a: Array, b: Array, times: Product, field: BalancedField) -> Array:
    """The product of two jets: ε² = 0, and one η at most."""
    orders = [_first_order(a[0], b[0], times, field)]
    if len(a) == 2:
        orders.append(field.reduce(_first_order(a[0], b[1], times, field) + _first_order(a[1], b[0], times, field)))
    return np.stack(orders)


def _first_order(a: Array, b: Array, times: Product, field: BalancedField) -> Array:
    """(a_0 + Σ a_j η_j)(b_0 + Σ b_j η_j)."""
    out = times(a[:1], b)
    out[1:] = field.reduce(out[1:] + times(a[1:], b[:1]))
    return out


@dataclass(frozen=True)
class Matrix:
    """W + ε v + Σ η_i e_i for one tensor, whose entries are the weights from number ``start`` on."""

    value: Array
    direction: Array | None
    start: int

    def __matmul__(self, x: Jet) -> Jet:
        """The product with a jet; entry (r, c) is varied by its own η, which puts row c of the jet into row r."""
        field = x.field
        rows, columns = self.value.shape
        out = field.matmul(self.value, x.parts)
        place = np.arange(rows)
        for order, constant in enumerate(x.parts[:, 0]):
            varied = out[order, 1 + self.start : 1 + self.start + self.value.size]
            varied.reshape(rows, columns, rows, -1)[place, :, place] += constant
        if self.direction is not None:
            out[1] += field.matmul(self.direction, x.parts[0])
        return Jet(field.reduce(out), field)


def _weights(point: Point, direction: Array | None) -> Iterator[Matrix]:
    """The varied weights, tensor by tensor."""
    start = 0
    for tensor in point.tensors:
        stop = start + tensor.size
        yield Matrix(tensor, None if direction is None else direction[start:stop].reshape(tensor.shape), start)
        start = stop


def _gradient(point: Point, sample: int) -> Array:
    """The gradient of ⟨C, φ(X)⟩ for one sample."""
    return np.asarray(_differentiate(point, sample, None)[0])


def _hessian_product(point: Point, sample: int, direction: Array) -> Array:
    """The Hessian of ⟨C, φ(X)⟩ for one sample, times the direction."""
    return np.asarray(_differentiate(point, sample, direction)[1])


def _differentiate(point: Point, sample: int, direction: Array | None) -> Array:
    """The coefficients of all η_i and, if there is a direction, of all ε η_i."""
    architecture, field = point.weights.architecture, point.numbers
    tensors = _weights(point, direction)
    orders, size = 1 if direction is None else 2, architecture.num_parameters
    X = np.zeros((orders, 1 + size, *point.inputs[sample].T.shape), dtype=field.dtype)
    X[0, 0] = point.inputs[sample].T
    state = Jet(X, field)
    for index, heads in enumerate(point.weights.layers):
        total = state if architecture.residual else None
        for h, head in enumerate(heads):
            Q, K, V = (next(tensors) for _ in range(3))
            scores = (K @ state).T @ (Q @ state)
            given = None if point.attention is None else point.attention[index][h][sample]
            out = (V @ state) @ _attend(scores, given, architecture)
            out = out if head.O is None else next(tensors) @ out
            total = out if total is None else total + out
        assert total is not None
        state = total
    C = point.cotangents[sample].T.reshape(-1, 1)
    return np.asarray(field.matmul(state.parts[:, 1:].reshape(orders, size, -1), C)[..., 0])


def _attend(scores: Jet, given: Array | None, architecture: Architecture) -> Jet:
    """The attention weights of scores S_0 + n, n nilpotent: S itself, or by Taylor's formula from those at S_0."""
    field = scores.field
    if given is None:
        return (
            scores.scaled(np.triu(np.ones(scores.parts.shape[-2:], dtype=field.dtype)))
            if architecture.causal
            else scores
        )
    n = scores.nilpotent.scaled(field.convert([1 / architecture.temperature]))
    square = (n * n).scaled(field.convert([Fraction(1, 2)]))
    constant = np.zeros_like(n.parts)
    constant[0, 0] = given
    if architecture.kind == "sigmoid":
        slope = field.times(given, field.reduce(1 - given))
        bend = field.times(slope, field.reduce(1 - 2 * given))
        return Jet(constant, field) + n.scaled(slope) + square.scaled(bend)
    # P exp(n) / Σ P exp(n), exp(n) = 1 + n + n²/2; the sum is 1 + m, its inverse 1 − m + m².
    powers = Jet(constant, field) + (n + square).scaled(given)
    m = Jet(field.reduce(powers.parts.sum(axis=-2, keepdims=True)), field).nilpotent
    one = np.zeros_like(m.parts)
    one[0, 0] = 1
    return powers * (Jet(one, field) - m + m * m)
