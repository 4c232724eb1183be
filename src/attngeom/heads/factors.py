"""The heads of one layer in lowest terms: V = O W and A = Kᵀ Q with O, W, K, Q of full rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.numbers import split_scale
from attngeom.exact.precise import Rank, measured_rank
from attngeom.network import Head, Weights


@dataclass(frozen=True, eq=False)
class ReducedHead:
    """One head φ_h(X) = O W X Xᵀ Kᵀ Q X: O is d_out×v, W is v×d, K and Q are a×d, all of full rank.

    ``index`` counts the heads of the layer from 0. ``ranks`` are those of V and of A, with their gaps over floats.
    """

    index: int
    O: Array
    W: Array
    K: Array
    Q: Array
    ranks: tuple[Rank, Rank]

    @property
    def v(self) -> int:
        return int(self.W.shape[0])

    @property
    def a(self) -> int:
        return int(self.K.shape[0])

    @property
    def is_zero(self) -> bool:
        """Whether the head adds nothing to a lightning layer."""
        return self.v == 0 or self.a == 0


def reduce_heads(weights: Weights) -> tuple[ReducedHead, ...]:
    """The heads of the only layer of a network, in lowest terms; exact over fields, by singular values over floats.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> [(head.v, head.a) for head in reduce_heads(random_weights(Architecture((4, 4), 1, heads=2), QQ, seed=0))]
    [(2, 1), (2, 1)]
    """
    if weights.architecture.num_layers != 1:
        raise InputError(f"{weights.architecture.num_layers} layers given; one layer is required, give it by itself")
    domain = weights.domain
    if domain.encloses:
        raise DomainError("weights over balls given; exact or float weights are required")
    if domain.rounds:
        # Row and column spaces are all that counts, and those do not depend on the scales of the tensors.
        weights = unit_heads(weights)[0]
    reduced = []
    for index, head in enumerate(weights.layers[0]):
        O, W, rank_V = factor(head.value_matrix(domain), domain)
        Kt, Q, rank_A = factor(head.attention_matrix(domain), domain)
        reduced.append(ReducedHead(index, O, W, Kt.T, Q, (rank_V, rank_A)))
    return tuple(reduced)


def unit_heads(weights: Weights) -> tuple[Weights, tuple[int, ...]]:
    """Float weights of one layer with every tensor of size one, and the e_h for which head h is 2^e_h times that.

    The largest entries are in [1/2, 1). Exact, so that neither products overflow nor small heads vanish.

    >>> from attngeom.exact import RR
    >>> from attngeom.network import Architecture
    >>> w = Weights.from_tensors(Architecture((1, 1), 1), {f"layers.0.{x}": [[8.0]] for x in "QKV"}, RR)
    >>> unit_heads(w)[1]
    (12,)
    """
    heads, exponents = [], []
    for head in weights.layers[0]:
        parts = {letter: split_scale(array) for letter, array in head.tensors.items()}
        heads.append(Head.of({letter: array for letter, (array, _) in parts.items()}))
        exponents.append(sum(exponent for _, exponent in parts.values()))
    return Weights(weights.architecture, weights.domain, (tuple(heads),)), tuple(exponents)


def factor(matrix: Array, domain: Domain) -> tuple[Array, Array, Rank]:
    """matrix = L R with L of full column rank and R of full row rank: pivots over fields, singular values else.

    >>> from attngeom.exact import QQ
    >>> [x.tolist() for x in factor(QQ.convert([[1, 2], [2, 4]]), QQ)[:2]]
    [[[1], [2]], [[1, 2]]]
    """
    if domain.is_exact:
        echelon = domain.rref(matrix)
        return matrix[:, list(echelon.pivots)], echelon.matrix, Rank(echelon.rank, True)
    rank = measured_rank(matrix, domain)
    left, values, right = lapack.svd(matrix, full_matrices=False)
    roots = np.sqrt(values[: rank.value])
    return left[:, : rank.value] * roots, roots[:, None] * right[: rank.value], rank
