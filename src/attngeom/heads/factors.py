"""The heads of one layer in lowest terms, V = O W and A = Kᵀ Q of full rank, and homomorphisms between them.

The entries are products of linear forms, (X W_h z)_i (K_h z)_j = (W_g z)_i (Yᵀ K_g z)_j, so unique factorization
leaves two cases; docs/theorems/heads.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.numbers import split_scale
from attngeom.exact.precise import Rank, measured_rank
from attngeom.limits.rounding import CLEAR_GAP, NESTED_ROWS
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


@dataclass(frozen=True, eq=False)
class Homs:
    """Hom(h, g): its dimension, and one nonzero element X (v_g×v_h), Y (a_g×a_h) if there is any.

    ``is_clear`` is False where floats do not tell whether a space lies in another one.
    """

    dimension: int
    X: Array | None = None
    Y: Array | None = None
    is_clear: bool = True


def find_homs(h: ReducedHead, g: ReducedHead, domain: Domain) -> Homs:
    """Hom(h, g) for heads in lowest terms.

    (ii) If v_g = a_h = 1 and W_g = λ K_h: the elements are p in row W_h ∩ row K_g, with X W_h = p and Yᵀ K_g = p/λ.
    (i) Else the dimension is 1 if row W_g ⊆ row W_h and row K_h ⊆ row K_g, with X W_h = W_g and Yᵀ K_g = K_h, else 0.

    >>> from attngeom.exact import QQ
    >>> from attngeom.heads.factors import reduce_heads
    >>> from attngeom.network import Architecture, random_weights
    >>> h, g = reduce_heads(random_weights(Architecture((4, 4), 1, heads=2), QQ, seed=0))
    >>> find_homs(h, h, QQ).dimension, find_homs(h, g, QQ).dimension
    (1, 0)
    """
    parallel = None
    clear = True
    if g.v == 1 and h.a == 1:
        parallel, clear = _solve_rows(h.K, g.W, domain)
    if parallel is not None:
        return _common_rows(h, g, parallel[0, 0], domain, clear)
    X, clear_X = _solve_rows(h.W, g.W, domain)
    Yt, clear_Y = _solve_rows(g.K, h.K, domain)
    # One clear "no" decides it; an unclear one matters only where the other space does not exclude a homomorphism.
    certain = clear and (clear_X or (Yt is None and clear_Y)) and (clear_Y or (X is None and clear_X))
    if X is None or Yt is None:
        return Homs(0, is_clear=certain)
    return Homs(1, X, Yt.T, certain)


def _solve_rows(rows: Array, wanted: Array, domain: Domain) -> tuple[Array | None, bool]:
    """X with X rows = wanted, None if there is none; over floats with whether that is clear."""
    if domain.is_exact:
        solution = domain.solve(rows.T, wanted.T)
        return (None if solution is None else solution.T), True
    X = lapack.solve_left(rows, wanted)
    miss = float(np.linalg.norm(X @ rows - wanted) / np.linalg.norm(wanted))
    clear = miss < NESTED_ROWS / CLEAR_GAP or miss > NESTED_ROWS * CLEAR_GAP
    return (X if miss < NESTED_ROWS else None), clear


def _common_rows(h: ReducedHead, g: ReducedHead, scale: object, domain: Domain, clear: bool) -> Homs:
    """The homomorphisms of case (ii), where W_g = λ K_h: one for each p in row W_h ∩ row K_g."""
    stacked = np.concatenate([h.W, g.K])
    if not domain.is_exact:
        unit = np.concatenate([lapack.qr(h.W.T)[0].T, lapack.qr(g.K.T)[0].T])
        rank = measured_rank(unit, domain, NESTED_ROWS)
        return Homs(len(stacked) - rank.value, is_clear=clear and rank.is_clear)
    # x W_h = y K_g: the left nullspace of the stacked rows, as (x, −y).
    relations = domain.nullspace(stacked.T)
    if not len(relations):
        return Homs(0, is_clear=clear)
    x, y = relations[0][: h.v], domain.reduce(-relations[0][h.v :])
    return Homs(len(relations), x[None, :], domain.times(y, domain.invert(scale))[:, None], clear)
