"""Comparison through exact virtual weights (M, L): Theorems A and S for softmax and sigmoid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from attngeom.comparison.fiber_theorems import VirtualPair
from attngeom.comparison.matching import ClearedNetwork
from attngeom.comparison.results import Ruling
from attngeom.comparison.samples import Relation
from attngeom.errors import InputError
from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.numbers import WORD_PRIME
from attngeom.network.weights import VirtualWeights


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
    # Two tokens with a mask: which M_i vanish matters, and that is seen over Q only.
    if not (architecture.mask.hides and architecture.tokens == 2):
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
