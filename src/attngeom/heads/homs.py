"""Homomorphisms between two heads: matrices (X, Y) ≠ 0 with X B_h(z) = B_g(z) Y for all z, B_h(z) = (W_h z)(K_h z)ᵀ.

The entries are products of linear forms, (X W_h z)_i (K_h z)_j = (W_g z)_i (Yᵀ K_g z)_j, so unique factorization
leaves two cases; docs/theorems/heads.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.precise import measured_rank
from attngeom.heads.factors import ReducedHead
from attngeom.limits.rounding import CLEAR_GAP, NESTED_ROWS


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
