"""The hypotheses of the theorems on fibers, checked for given weights. The theorems: docs/theorems/comparison.md."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.numbers import split_scale
from attngeom.exact.precise import Rank, measured_rank
from attngeom.limits.rounding import CLEAR_GAP, PRODUCT_EXPONENTS
from attngeom.network import Architecture, Weights
from attngeom.network.mask import NO_MASK

FIBER_THEOREMS = {"lightning": "Theorem F", "softmax": "Theorem A", "sigmoid": "Theorem S"}
"""The theorem on fibers in (M, L) of each kind of attention: docs/theorems/comparison.md."""


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis: the theorem that needs it, its statement, and whether it holds (None: cannot be told)."""

    theorem: str
    statement: str
    holds: bool | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Traits(NamedTuple):
    """What theorems ask of a matrix: True, False, or None where it cannot be told."""

    is_nonzero: bool | None
    is_not_skew: bool | None
    has_rank_two: bool | None


@dataclass(frozen=True)
class VirtualRanks:
    """Ranks of A_i, of the virtual weights M_i, of M_i + M_iᵀ, and of L.

    Over floats M_i, M_i + M_iᵀ and L count as zero where they do not stand out from the rounding errors of the
    products that they are; ``size`` below is the size of those products.
    """

    A: tuple[Rank, ...]
    M: tuple[Rank, ...]
    symmetric: tuple[Rank, ...]
    L: Rank

    def traits(self, layer: int | None) -> Traits:
        """Those of M_i, i counted from 0, or of L."""
        rank = self.L if layer is None else self.M[layer]
        is_not_skew = None if layer is None else is_nonzero(self.symmetric[layer])
        return Traits(is_nonzero(rank), is_not_skew, _decided(rank, rank.value >= 2))


def in_range(weights: Weights) -> Weights:
    """Float weights whose M_i and L stay in the range of floats: tensors scaled by powers of two where they would not.

    With one head and no skip connection A, V, M_i and L are scaled then, which changes no rank; nor does it change the
    rank of the parametrization of a lightning network, whose function is scaled.
    """
    room = PRODUCT_EXPONENTS // (2 * weights.architecture.num_layers + 2)
    split = {name: split_scale(tensor) for name, tensor in weights.tensors()}
    if all(abs(exponent) <= room for _, exponent in split.values()):
        return weights
    return Weights.from_tensors(weights.architecture, {name: unit for name, (unit, _) in split.items()}, weights.domain)


def virtual_ranks(weights: Weights, noise: float = 0.0) -> VirtualRanks:
    """The ranks on which identifiability depends, for one head and no skip connection.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> virtual_ranks(random_weights(Architecture((3, 2, 2), 2), QQ, seed=0)).M[1].value
    2
    """
    domain = weights.domain
    weights = in_range(weights) if domain.rounds else weights
    virtual = weights.virtual()
    A = tuple(measured_rank(heads[0], domain, noise) for heads in weights.attention_matrices())
    *sizes, total = _product_sizes(weights)
    return VirtualRanks(
        A,
        tuple(_rank_beside(M, size, domain, noise) for M, size in zip(virtual.M, sizes)),
        tuple(_rank_beside(domain.reduce(M + M.T), size, domain, noise) for M, size in zip(virtual.M, sizes)),
        _rank_beside(virtual.L, total, domain, noise),
    )


def _product_sizes(weights: Weights) -> list[float]:
    """‖K_i L_{i-1}‖ ‖Q_i L_{i-1}‖ for each layer, and ‖V_l‖ ‖L_{l-1}‖: what rounding errors of M_i and L scale with."""
    if weights.domain.is_exact:
        return [0.0] * (weights.architecture.num_layers + 1)
    L = np.eye(weights.architecture.widths[0])
    sizes, total = [], 1.0
    for (head,), (V,) in zip(weights.layers, weights.value_matrices()):
        sizes.append(float(np.linalg.norm(head.K @ L) * np.linalg.norm(head.Q @ L)))
        total = float(np.linalg.norm(V) * np.linalg.norm(L))
        L = V @ L
    return [*sizes, total]


def _rank_beside(a: Array, size: float, domain: Domain, noise: float) -> Rank:
    """The rank of a matrix that is known up to rounding errors, or the noise, of the given size."""
    if domain.is_exact:
        return measured_rank(a, domain)
    cut = max(a.shape) * max(8 * np.finfo(float).eps, noise) * size
    largest = float(np.linalg.norm(a))
    if largest > CLEAR_GAP * cut:
        return measured_rank(a, domain, noise)
    values = tuple(lapack.svdvals(a).tolist())
    return Rank(0, False, values, None if largest <= cut else largest / cut)


def _decided(rank: Rank, holds: bool) -> bool | None:
    return holds if rank.is_clear else None


def _all(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def check_hypotheses(weights: Weights, noise: float = 0.0) -> tuple[Hypothesis, ...]:
    """Which hypotheses of [G] Lemma 3.1, Lemma 3.5, Theorem 3.2, 3.9 and of Theorems A, F and S hold for these weights.

    Exact for exact weights; over floats None when singular values show no clear gap.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 3), 2, tokens=1), QQ, seed=0)
    >>> [h.statement for h in check_hypotheses(w) if not h.holds]
    ['t ≥ 2']
    """
    architecture = weights.architecture
    theorem = FIBER_THEOREMS.get(architecture.kind)
    if theorem is None:
        return (Hypothesis("none", f"a theorem on the fibers of {architecture.kind} attention", False),)
    if not architecture.has_virtual_weights:
        return (Hypothesis(theorem, "one head and no skip connection", False),)
    ranks = virtual_ranks(weights, noise)
    hypotheses = [
        Hypothesis(
            "[G] Lemma 3.1",
            f"rk A_{i + 1} = a_{i + 1} ≤ d_{i}",
            _decided(rank, rank.value == architecture.attention[i]),
        )
        for i, rank in enumerate(ranks.A)
    ]
    if theorem == "Theorem F":
        hypotheses += _lightning(architecture, ranks)
    else:
        hypotheses += _tokens_apart(architecture, theorem, ranks)
    if architecture.num_layers > 1:
        delta, is_equal = min(architecture.widths[1:-1]), architecture.bottleneck is not None
        hypotheses.append(Hypothesis("[G] Lemma 3.5", "equal hidden widths δ ≤ d_0, d_l", is_equal))
        hypotheses.append(Hypothesis("[G] Lemma 3.5", f"rk L = {delta}", _decided(ranks.L, ranks.L.value == delta)))
    return tuple(hypotheses)


def _tokens_apart(architecture: Architecture, theorem: str, ranks: VirtualRanks) -> list[Hypothesis]:
    """Theorems A, A' and S: t ≥ 2, L ≠ 0, and no layer before the last that makes all tokens equal."""
    layers, t, is_softmax = architecture.num_layers, architecture.tokens, theorem == "Theorem A"
    if is_softmax:
        theorem = "[G] Theorem 3.9" if layers == 1 else "Theorem A'" if architecture.mask.hides else "Theorem A"
    hypotheses = [Hypothesis(theorem, "t ≥ 2", t >= 2), Hypothesis(theorem, "L ≠ 0", is_nonzero(ranks.L))]
    if layers == 1 or (theorem == "Theorem A'" and t != 2):
        return hypotheses
    if not is_softmax:
        hypotheses.append(Hypothesis(theorem, NO_MASK, not architecture.mask.hides))
    by_skew = theorem == "Theorem A" and t == 2
    seen, statement = visible_layers(ranks, by_skew), "not skew-symmetric" if by_skew else "≠ 0"
    seen = seen if theorem == "Theorem A'" else seen[:-1]
    return hypotheses + [Hypothesis(theorem, f"M_{i} {statement}", holds) for i, holds in enumerate(seen, start=1)]


def is_nonzero(rank: Rank) -> bool | None:
    """Whether a matrix is not zero; None if floats do not tell."""
    return _decided(rank, rank.value > 0)


def visible_layers(ranks: VirtualRanks, skew_is_blind: bool) -> tuple[bool | None, ...]:
    """Which M_i are not blind: not zero, nor skew where Theorem A says so (two tokens of softmax)."""
    return tuple(is_nonzero(rank) for rank in (ranks.symmetric if skew_is_blind else ranks.M))


def _lightning(architecture: Architecture, ranks: VirtualRanks) -> list[Hypothesis]:
    """[G] Theorem 3.2 for one layer; Theorem F, which repairs [G] Theorem 3.7, for several."""
    layers, t = architecture.num_layers, architecture.tokens
    M, L = [ranks.traits(i) for i in range(layers)], ranks.traits(None)
    if layers > 1:
        return _theorem_f(t, M, L)
    return [Hypothesis("[G] Theorem 3.2", "t ≥ 2", t >= 2), *_single_layer(M[0], L)]


def orbit_hypotheses(tokens: int, M: list[Traits], L: Traits) -> list[Hypothesis]:
    """Those under which the fiber of a lightning network in (M, L) is an orbit of the scales of [G] Eq 13."""
    if tokens == 1:
        theorem = "Theorem F (one token)"
        return [Hypothesis(theorem, "rk L ≥ 2", L.has_rank_two), *_no_skew(theorem, M)]
    if len(M) > 1:
        return _theorem_f(tokens, M, L)
    ranks = _either(M[0].has_rank_two, L.has_rank_two)
    return [*_single_layer(M[0], L), Hypothesis("[G] Theorem 3.2", "rk A · rk V ≥ 2", ranks)]


def _no_skew(theorem: str, M: list[Traits]) -> list[Hypothesis]:
    return [Hypothesis(theorem, f"M_{i} not skew-symmetric", x.is_not_skew) for i, x in enumerate(M, 1)]


def _single_layer(A: Traits, V: Traits) -> list[Hypothesis]:
    theorem = "[G] Theorem 3.2"
    return [Hypothesis(theorem, "V ≠ 0", V.is_nonzero), Hypothesis(theorem, "A ≠ 0", A.is_nonzero)]


def _theorem_f(tokens: int, M: list[Traits], L: Traits) -> list[Hypothesis]:
    theorem, last = "Theorem F", M[-1]
    hypotheses = [Hypothesis(theorem, "t ≥ 2", tokens >= 2), Hypothesis(theorem, "L ≠ 0", L.is_nonzero)]
    for i, traits in enumerate(M, start=1):
        if i < len(M):
            hypotheses.append(Hypothesis(theorem, f"rk M_{i} ≥ 2", traits.has_rank_two))
        hypotheses.append(Hypothesis(theorem, f"M_{i} not skew-symmetric", traits.is_not_skew))
    product = _all([last.is_nonzero, L.is_nonzero, _either(last.has_rank_two, L.has_rank_two)])
    hypotheses.append(Hypothesis(theorem, f"rk M_{len(M)} · rk L ≥ 2", product))
    return hypotheses


def _either(first: bool | None, second: bool | None) -> bool | None:
    return True if first or second else None if None in (first, second) else False


def failed(hypotheses: tuple[Hypothesis, ...]) -> tuple[str, ...]:
    """The statements that do not hold or cannot be told, with their theorem."""
    return tuple(f"{h.theorem}: {h.statement}" for h in hypotheses if not h.holds)
