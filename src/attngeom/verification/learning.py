"""Recheck a claim about a learning coefficient: ranks over Q, the theorem that a witness names, and its sum.

Written independently of :mod:`attngeom.learning`, from the statements in docs/theorems/learning.md. Pairs (λ, m) are
plain tuples (2λ, m) here, so that all numbers but one, the (d − 1)/2 of an aligned head, are integers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

from attngeom.errors import FormatError
from attngeom.exact.domains import QQ, Array
from attngeom.limits.recheck import ELIMINATION_WORK, LAMBDA_BITS, LAYER_PRODUCT_BITS, RECHECKED_PARAMETERS
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Head, Weights
from attngeom.results import Proof
from attngeom.verification.budget import afford, afford_elimination, height
from attngeom.verification.learning_deep import deficient_softmax, lightning_heads, without_values
from attngeom.verification.learning_laws import LAW_KEYS, LearningLaw
from attngeom.verification.learning_pairs import HeadMatrices, RankedMatrix, Twice, plus, times
from attngeom.verification.learning_ranks import check_ranks
from attngeom.verification.points import place_key
from attngeom.verification.reading import (
    digest_of,
    in_words,
    read_choice,
    read_integer,
    read_object,
    read_rational,
    read_tensors,
    require,
    show,
)


@dataclass(frozen=True, eq=False)
class LearningClaim:
    """At these rational weights the learning coefficient is λ, with this multiplicity.

    ``law`` says which inputs and which loss, if inputs have no density or the loss is not that of squares.
    """

    weights: Weights
    value: Fraction
    multiplicity: int
    law: LearningLaw

    @classmethod
    def from_json(cls, record: Any) -> LearningClaim:
        """Read the claim strictly; entries are rationals in lowest terms."""
        said = [key for key in LAW_KEYS if isinstance(record, Mapping) and key in record]
        claim = read_object(record, ("kind", "architecture", "tensors", "lambda", "multiplicity", *said), "claim")
        architecture = Architecture.from_json(claim["architecture"])
        afford(architecture.num_parameters, RECHECKED_PARAMETERS, "parameters")
        weights = read_tensors(architecture, claim["tensors"], "tensors")
        rational = read_rational(claim["lambda"])
        if height([rational]) > LAMBDA_BITS:
            raise FormatError(
                f"lambda {show(claim['lambda'])} found; numbers of at most {LAMBDA_BITS} bits are required"
            )
        value = Fraction(int(rational.p), int(rational.q))
        multiplicity = read_integer(claim["multiplicity"], 1, 10**6, "multiplicity")
        return cls(weights, value, multiplicity, LearningLaw.from_json(claim, architecture))

    def __str__(self) -> str:
        """The claim in words, with every field of the architecture by name and a digest of the weights."""
        return (
            f"for {self.law}, the learning coefficient of attention networks with"
            f" {in_words(self.weights.architecture)} at the weights with digest {digest_of(self.weights)}"
            f" is {self.value}, of multiplicity {self.multiplicity}"
        )

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true: the ranks are as stated, the hypotheses of the theorem hold, and it gives the pair."""
        name = read_choice(witness.get("theorem"), (*THEOREMS, *BY_RANKS), "theorem")
        at_inputs = self.law.inputs is not None and name in BY_RANKS and place_key(witness) not in witness
        extra = ("prime",) if at_inputs else ("prime", place_key(witness), "samples", "tokens")
        read_object(witness, ("theorem", "ranks", *(extra if name in BY_RANKS else ())), "witness")
        weights = self.law.network(self.weights)
        if self.law.inputs is not None and not at_inputs:
            self.law.check_table(weights.architecture)
        _afford_ranks(weights)
        heads = [_matrices(head) for layer in weights.layers for head in layer]
        ranks = [[*A.listed, *V.listed] for A, V in heads]
        # 1.0 and true are equal to 1, and are not what a certificate says.
        same = json.dumps(witness["ranks"]) == json.dumps(ranks)
        require(same, f"the ranks over Q are {show(ranks)}, not {show(witness['ranks'])}")
        if name in BY_RANKS:
            inputs = self.law.inputs if at_inputs else None
            (value, m), why = _by_ranks(weights, name, witness, heads, inputs)
        else:
            value, m = THEOREMS[name](weights, heads)
            why = f"the hypotheses of Theorem {name} hold at these ranks over Q"
        require(
            (value / 2, m) == (self.value, self.multiplicity),
            f"Theorem {name} gives λ = {value / 2}, m = {m}, not {self.value}, {self.multiplicity}",
        )
        return Proof("certified", f"{why}, and it gives λ = {self.value}, m = {m}")


def _by_ranks(
    weights: Weights, name: str, witness: Mapping[str, Any], heads: list[HeadMatrices], inputs: Array | None
) -> tuple[Twice, str]:
    """Theorems B and R and the two bounds: ranks mod p at the point."""
    jacobian, action = check_ranks(weights, heads, name, witness, inputs)
    if name == "R":
        return (Fraction(jacobian), 1), f"the rank {jacobian} mod p is the largest possible one"
    parts = []
    for A, V in heads:
        if A.rank and V.rank:
            parts += [A.pair, V.pair]
        else:
            parts.append(times(A.pair, V.pair) if A.rank == V.rank == 0 else A.pair if V.rank else V.pair)
    value, m = plus(*parts)
    value -= action
    if name == "bounds":
        require(value == jacobian and m == 1, f"the bounds are {jacobian}/2 and {value / 2}")
        return (value, 1), f"½ rank mod p = {value / 2} is also the sum of the blocks less the symmetries"
    return (value, m), f"the ranks {jacobian} + {action} mod p add up to dim Θ (Theorem B)"


def _matrices(head: Head) -> HeadMatrices:
    """Both matrices of a head with their ranks over Q."""
    A = _factored(head.K.T, head.Q)
    if head.O is None:
        return A, RankedMatrix(len(head.V), head.V.shape[1], _rank(head.V))
    return A, _factored(head.O, head.V)


def _afford_ranks(weights: Weights) -> None:
    """Bound all eliminations together, and the digits of products of layers."""
    architecture = weights.architecture
    heights = [(min(array.shape), height(array.ravel()), array.size) for _, array in weights.tensors()]
    total = sum(size**4 * bits**1.25 for size, bits, _ in heights)
    afford(total, ELIMINATION_WORK, "operations for the ranks of all tensors")
    digits = sum(bits * size for _, bits, size in heights)
    afford(architecture.num_layers * digits, LAYER_PRODUCT_BITS, "bits in products of layers")


def _rank(a: Array) -> int:
    afford_elimination(min(a.shape), height(a.ravel()))
    return QQ.rank(a)


def _factored(left: Array, right: Array) -> RankedMatrix:
    """A product: if one factor has no kernel in between, its rank is that of the other."""
    b, c, inner = _rank(left), _rank(right), right.shape[0]
    if inner in (b, c):
        r = c if b == inner else b
    elif min(b, c) == 0:
        r = 0
    else:
        afford(prod(left.shape) * right.shape[1], 10**8, "products of rationals")
        r = _rank(QQ.matmul(left, right))
    return RankedMatrix(left.shape[0], right.shape[1], r, inner, b, c)


def _one_head(weights: Weights, kind: str) -> Head:
    architecture = weights.architecture
    require(architecture.kind == kind, f"{kind} attention is required")
    require(architecture.num_layers == architecture.heads == 1, "one head in one layer is required")
    return weights.layers[0][0]


def _zero_function(weights: Weights, heads: list[HeadMatrices]) -> Twice:
    head, ((A, V),) = _one_head(weights, "lightning"), heads
    require(A.rank == 0 or V.rank == 0, "A = 0 or V = 0 is required")
    if weights.architecture.tokens == 1:
        form = head.attention_matrix(QQ)
        require(V.rank == 0 and not QQ.is_zero(form + form.T), "one token needs V = 0 and xᵀAx not zero")
        return V.pair
    if A.rank == V.rank == 0:
        return times(A.pair, V.pair)
    return A.pair if A.rank == 0 else V.pair


def _parallel(head: Head) -> bool:
    """Whether the column of A and the row of V, both of rank one, are parallel."""
    A, V = head.attention_matrix(QQ), head.value_matrix(QQ)
    k = next(A[:, m] for m in range(A.shape[1]) if any(A[:, m]))
    v = next(row for row in V if any(row))
    pivot = next(i for i, x in enumerate(k) if x)
    return all(k[pivot] * v[i] == k[i] * v[pivot] for i in range(len(k)))


def _up_to_scale(weights: Weights, heads: list[HeadMatrices]) -> Twice:
    head, ((A, V),) = _one_head(weights, "lightning"), heads
    require(weights.architecture.tokens >= 2, "two tokens are required")
    require(A.rank > 0 and V.rank > 0, "A and V must not be zero")
    require(A.rank * V.rank >= 2 or not _parallel(head), "A = k qᵀ and V = h kᵀ are aligned")
    value, m = plus(A.pair, V.pair)
    return value - 1, m


def _aligned(weights: Weights, heads: list[HeadMatrices]) -> Twice:
    head, ((A, V),) = _one_head(weights, "lightning"), heads
    require(weights.architecture.tokens >= 2, "two tokens are required")
    require(A.rank == V.rank == 1 and _parallel(head), "A = k qᵀ and V = h kᵀ are required")
    d, d_out = A.rows, V.rows
    return plus((Fraction(2 * d + d_out - 2) + Fraction(d - 1, 2), 1), A.below, V.below)


def _softmax_head(weights: Weights, heads: list[HeadMatrices]) -> Twice:
    _one_head(weights, "softmax")
    ((A, V),) = heads
    return plus(A.pair, V.pair) if V.rank and weights.architecture.tokens >= 2 else V.pair


def _sigmoid_head(weights: Weights, heads: list[HeadMatrices]) -> Twice:
    _one_head(weights, "sigmoid")
    ((A, V),) = heads
    require(V.rank == 0 or weights.architecture.tokens >= 2, "two tokens are required, or V = 0")
    return plus(A.pair, V.pair) if V.rank else V.pair


def _bounded_heads(weights: Weights, heads: list[HeadMatrices], kind: str) -> Twice:
    """Theorems D and S: the functions of the heads, which σ(−s) = 1 − σ(s) makes odd in A where two tokens compete."""
    architecture = weights.architecture
    require(architecture.kind == kind and architecture.num_layers == 1, f"one layer of {kind} is required")
    require(architecture.tokens >= 2, "two tokens are required")
    matrices = set()
    for head in weights.layers[0]:
        A = tuple(head.attention_matrix(QQ).ravel())
        require(A not in matrices, "the A_h must differ (sigmoid, or t = 2: also in sign)")
        matrices.update([A, tuple(-x for x in A)] if kind == "sigmoid" or architecture.tokens == 2 else [A])
    return plus(*(plus(A.pair, V.pair) if V.rank else V.pair for A, V in heads))


def _deep_softmax(weights: Weights, heads: list[HeadMatrices]) -> Twice:
    architecture = weights.architecture
    require(architecture.kind == "softmax" and architecture.num_layers >= 2, "two layers of softmax are required")
    require(architecture.heads == 1 and not architecture.residual, "one head and no skip connection are required")
    require(not architecture.mask.hides and architecture.tokens >= 2, "no mask and two tokens are required")
    d_0, *hidden, d_l = architecture.widths
    require(len(set(hidden)) == 1, "equal hidden widths are required")
    delta, L, seen = hidden[0], QQ.eye(d_0), 0
    blind = False
    for (head,) in weights.layers:
        if not blind:
            seen += 1
            M = QQ.matmul(QQ.matmul(head.K, L).T, QQ.matmul(head.Q, L))
            blind = QQ.is_zero(M + M.T if architecture.tokens == 2 else M)
        L = QQ.matmul(head.value_matrix(QQ), L)
    rank = _rank(L)
    require(rank == delta, f"rk L = {rank}, the hidden width {delta} is required")
    return plus((Fraction(delta * (d_0 + d_l) - delta**2), 1), *(A.pair for A, _ in heads[:seen]))


THEOREMS: dict[str, Callable[[Weights, list[HeadMatrices]], Twice]] = {
    "A1.1": _zero_function,
    "A1.2": _up_to_scale,
    "A1.3": _aligned,
    "A2": _softmax_head,
    "A3": _sigmoid_head,
    "D": partial(_bounded_heads, kind="softmax"),
    "S": partial(_bounded_heads, kind="sigmoid"),
    "C": _deep_softmax,
    "C2": partial(deficient_softmax, is_chain=False),
    "C3": partial(deficient_softmax, is_chain=True),
    "E0": without_values,
    "H3": lightning_heads,
}
BY_RANKS = ("B", "R", "bounds")
