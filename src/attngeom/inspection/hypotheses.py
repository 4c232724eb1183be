"""The hypotheses of the theorems on fibers, checked for given weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.inspection.ranks import Rank, measured_rank
from attngeom.network import Weights


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis: the theorem that needs it, its statement, and whether it holds (None: cannot be told)."""

    theorem: str
    statement: str
    holds: bool | None

    def to_json(self) -> dict[str, Any]:
        return {"theorem": self.theorem, "statement": self.statement, "holds": self.holds}


@dataclass(frozen=True)
class VirtualRanks:
    """Ranks of A_i, of the virtual weights M_i and of L."""

    A: tuple[Rank, ...]
    M: tuple[Rank, ...]
    L: Rank


def virtual_ranks(weights: Weights, noise: float = 0.0) -> VirtualRanks:
    """The ranks on which identifiability depends, for one head and no skip connection."""
    virtual = weights.virtual()
    domain = weights.domain
    A = tuple(measured_rank(heads[0], domain, noise) for heads in weights.attention_matrices())
    M = tuple(measured_rank(matrix, domain, noise) for matrix in virtual.M)
    return VirtualRanks(A, M, measured_rank(virtual.L, domain, noise))


def _is_skew(M: Array, domain: Domain) -> bool:
    if domain.is_exact:
        return domain.is_zero(domain.reduce(M + M.T))
    return bool(np.linalg.norm(M + M.T) <= len(M) * 1e-14 * np.linalg.norm(M))


def check_hypotheses(weights: Weights, noise: float = 0.0) -> tuple[Hypothesis, ...]:
    """Which hypotheses of [G] Lemma 3.1, Lemma 3.5, Theorem 3.2, 3.7 and 3.9 hold for these weights.

    Exact for exact weights; over floats None when singular values show no clear gap.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 3), 2, tokens=1), QQ, seed=0)
    >>> [h.statement for h in check_hypotheses(w) if not h.holds]
    ['t ≥ 2']
    """
    architecture = weights.architecture
    if not architecture.has_virtual_weights:
        return (Hypothesis("[G] Theorem 3.7", "one head and no skip connection", False),)
    layers, widths, t = architecture.num_layers, architecture.widths, architecture.tokens
    ranks = virtual_ranks(weights, noise)

    def decided(rank: Rank, holds: bool) -> bool | None:
        return holds if rank.is_clear else None

    found = [
        Hypothesis(
            "[G] Lemma 3.1",
            f"rk A_{i + 1} = a_{i + 1} ≤ d_{i}",
            decided(rank, rank.value == architecture.attention[i]),
        )
        for i, rank in enumerate(ranks.A)
    ]
    nonzero = decided(ranks.L, ranks.L.value > 0)
    if architecture.kind == "softmax":
        theorem = "[G] Theorem 3.9" if layers == 1 else "[G] Conjecture 3.10"
        found += [Hypothesis(theorem, "t ≥ 2", t >= 2), Hypothesis(theorem, "L ≠ 0", nonzero)]
    elif layers == 1:
        theorem = "[G] Theorem 3.2"
        found += [Hypothesis(theorem, "t ≥ 2", t >= 2), Hypothesis(theorem, "V ≠ 0", nonzero)]
        found.append(Hypothesis(theorem, "A ≠ 0", decided(ranks.M[0], ranks.M[0].value > 0)))
    else:
        theorem = "[G] Theorem 3.7"
        if architecture.causal:
            found.append(Hypothesis(theorem, "no causal mask", False))
        found += [Hypothesis(theorem, "t ≥ 3", t >= 3), Hypothesis(theorem, "L ≠ 0", nonzero)]
        M = weights.virtual().M
        for i, rank in enumerate(ranks.M):
            found.append(Hypothesis(theorem, f"rk M_{i + 1} ≥ 2", decided(rank, rank.value >= 2)))
            # [G] asks this for i > 1 only, but the fiber is larger for M_1 = J = ((0, 1), (-1, 0)): (J, I, L) and
            # (I, J, L) are one function. See docs/differences.md.
            holds = not _is_skew(M[i], weights.domain)
            found.append(Hypothesis(theorem, f"M_{i + 1} not skew-symmetric", holds))
    if layers > 1:
        delta = min(widths[1:-1])
        constant = set(widths[1:-1]) == {delta} and delta <= min(widths[0], widths[-1])
        found.append(Hypothesis("[G] Lemma 3.5", "equal hidden widths δ ≤ d_0, d_l", constant))
        found.append(Hypothesis("[G] Lemma 3.5", f"rk L = {delta}", decided(ranks.L, ranks.L.value == delta)))
    return tuple(found)


def failed(hypotheses: tuple[Hypothesis, ...]) -> tuple[str, ...]:
    """The statements that do not hold or cannot be told, with their theorem."""
    return tuple(f"{h.theorem}: {h.statement}" for h in hypotheses if not h.holds)
