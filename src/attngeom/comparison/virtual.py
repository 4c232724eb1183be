"""Comparison through exact virtual weights (M, L): [G] Eq 13 for lightning, Theorems A and S for softmax, sigmoid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flint import fmpq

from attngeom.comparison.fiber_theorems import VirtualPair
from attngeom.comparison.matching import ClearedNetwork
from attngeom.comparison.results import Ruling
from attngeom.comparison.samples import Relation
from attngeom.errors import InputError
from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.primes import WORD_PRIME
from attngeom.network import Weights
from attngeom.network.weights import VirtualWeights


def virtual_scales(first: Weights, second: Weights) -> tuple[object, ...] | None:
    """The scales (λ_1..λ_l, ρ) with M'_i = λ_i M_i, L' = ρ L and ρ Π λ_i^(3^(l-i)) = 1, or None.

    If they exist the functions of two lightning networks are equal: [G] Eq 13, which needs no hypothesis. One token
    sees the symmetric parts of the M_i only, so then these are compared. A zero factor on both sides makes both
    functions zero and leaves all scales free: they are given as 1.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 2), 2), QQ, seed=0)
    >>> virtual_scales(w, w)
    (1, 1)
    """
    architecture, domain = first.architecture, first.domain
    if not architecture.has_virtual_weights:
        return None
    one, two = (_factors(weights.virtual(), architecture.tokens) for weights in (first, second))
    if any(map(domain.is_zero, one)) and any(map(domain.is_zero, two)):
        return tuple(domain.one for _ in one)
    if any(map(domain.is_zero, (*one, *two))):
        return None
    places = map(domain.pivot, one)
    scales = [b.ravel()[place] / a.ravel()[place] for a, b, place in zip(one, two, places)]
    if not all(scale and domain.equal(a * scale, b) for scale, a, b in zip(scales, one, two)):
        return None
    return tuple(scales) if _satisfy_equation(scales) else None


def _satisfy_equation(scales: list[fmpq]) -> bool:
    """Whether ρ Π λ_i^(3^(l-i)) = 1 for (λ_1..λ_l, ρ) ≠ 0: P_l = 1/ρ, where P_0 = 1 and P_i = P_{i-1}³ λ_i.

    Rational cube roots are unique, so P_l leads back to P_0, and no large power is taken.

    >>> _satisfy_equation([fmpq(2), fmpq(-1, 8), fmpq(1), fmpq(1)]), _satisfy_equation([fmpq(2), fmpq(1, 8), fmpq(1)])
    (False, True)
    """
    *factors, last = scales
    product = 1 / last
    for factor in reversed(factors):
        cube = product / factor
        product = fmpq(abs(cube.p).root(3) * (1 if cube > 0 else -1), cube.q.root(3))
        if product**3 != cube:
            return False
    return bool(product == 1)


def _factors(virtual: VirtualWeights, tokens: int) -> list[Array]:
    """M_1..M_l, or their symmetric parts if there is one token, and L."""
    domain = virtual.domain
    M = [domain.reduce(m + m.T) for m in virtual.M] if tokens == 1 else list(virtual.M)
    return [*M, virtual.L]


@dataclass(frozen=True, eq=False)
class ExactPair(VirtualPair):
    """Virtual weights over Q, or their residues."""

    one: VirtualWeights
    two: VirtualWeights
    is_exact = True

    def _matrices(self, place: int, symmetric: bool) -> Iterator[Array]:
        for side in (self.one, self.two):
            matrix = (*side.M, side.L)[place]
            yield side.domain.reduce(matrix + matrix.T) if symmetric else matrix

    def relate(self, place: int, symmetric: bool = False) -> Relation:
        return "close" if self.one.domain.equal(*self._matrices(place, symmetric)) else "far"

    def are_zero(self, place: int, symmetric: bool = False) -> bool | None:
        zeros = {self.one.domain.is_zero(matrix) for matrix in self._matrices(place, symmetric)}
        return zeros.pop() if len(zeros) == 1 else None


def compare_virtual(first: ClearedNetwork, second: ClearedNetwork) -> Ruling:
    """Theorems A, A' (softmax) and S (sigmoid) for rational networks with one head and no skip connection.

    Different residues are different numbers and nonzero residues are nonzero, so almost all different pairs are told
    apart modulo a prime; equality is checked over Q.

    >>> from attngeom.comparison.matching import clear
    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = clear(random_weights(Architecture((2, 2, 2), 1, kind="softmax"), QQ, seed=0))
    >>> compare_virtual(w, w).same
    True
    """
    architecture = first.architecture
    # Two causal tokens: which M_i vanish matters, and that is seen over Q only.
    if not (architecture.causal and architecture.tokens == 2):
        try:
            residues = [_virtual_mod_p(network, GF(WORD_PRIME)) for network in (first, second)]
        except InputError:
            residues = []
        if residues and not residues[0].domain.is_zero(residues[0].L):
            verdict = ExactPair(architecture, residues[0], residues[1]).judge()
            if verdict.same is False:
                return verdict
    return ExactPair(architecture, first.weights.virtual(), second.weights.virtual()).judge()


def _virtual_mod_p(network: ClearedNetwork, field: PrimeField) -> VirtualWeights:
    """(M, L) mod p, inside FLINT; InputError if p divides a denominator."""
    L, M = field.to_flint(field.eye(network.architecture.widths[0])), []
    for (head,) in network.layers:
        M.append((field.image(head.K) * L).transpose() * (field.image(head.Q) * L))
        L = field.image(head.values()) * L
    return VirtualWeights(tuple(map(field.from_flint, M)), field.from_flint(L), field, network.architecture.rule)
