"""Sigmoid attention: every score on its own gives a weight between 0 and 1, and nothing is normalised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.network.attention.kind import Attention, Key, View, up_to_sign

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


@dataclass(frozen=True)
class Sigmoid(Attention):
    """P_ji = σ(S_ji/τ) for visible j, σ(s) = 1 / (1 + exp(−s)); Ṗ = P (1 − P) Ṡ/τ.

    Formal sigmoid: mod p the entries of P are random elements. That gives the generic rank of the true Jacobian
    (docs/explanation/dimension.md). Where the tokens span one dimension only, S_ji = m y_j y_i is symmetric, and so
    are the weights drawn.

    >>> from attngeom.exact import RR
    >>> from attngeom.network.mask import Mask
    >>> Sigmoid(Mask(True)).weights(np.zeros((2, 2)), RR).tolist()
    [[0.5, 0.5], [0.0, 0.5]]
    """

    name: ClassVar[str] = "sigmoid"
    is_polynomial: ClassVar[bool] = False
    has_temperature: ClassVar[bool] = True
    head_theorem: ClassVar[str | None] = "Theorem S"

    @property
    def can_be_silent(self) -> bool:
        return True

    def view(self, tokens: int) -> View:
        """Up to sign, because σ(s) − 1/2 is odd."""
        return "signed"

    def weights(self, S: Array, domain: Domain) -> Array:
        return self.hide(1 / (1 + domain.exp(-self.over_temperature(S, domain))))

    def shares(self, b: Builder, S: int) -> int:
        return self.hidden(b, b.sigmoid(S))

    def push(self, P: Array, dS: Array, domain: Domain) -> Array:
        return self.over_temperature(domain.times(domain.times(P, 1 - P), dS), domain)

    def second_derivative(self, P: Array, dP: Array, cotangent: Array, domain: Domain) -> Array:
        """(1 − 2P) Ṗ c, divided by τ."""
        return self.over_temperature(domain.times(domain.times(domain.reduce(1 - P - P), dP), cotangent), domain)

    def terms(self, A: Array, V: Array, tokens: int, domain: Domain) -> Iterator[tuple[Key, Array]]:
        """V for the sum of the tokens, and V for A up to the sign of (A, V), because σ(s) − 1/2 is odd.

        One token sees A + Aᵀ only.
        """
        yield (), V
        seen = domain.reduce(A + A.T) if tokens == 1 else A
        if (term := up_to_sign(seen, V, domain)) is not None:
            yield term

    def formal_weights(self, E: Array, copies: int | None, domain: Domain) -> Array | None:
        """E itself, symmetric if the scores are; weights of tokens that are left out are specialised to 0.

        >>> from attngeom.exact import GF
        >>> P = Sigmoid().draw((3, 3), 1, GF(7), np.random.default_rng(0))
        >>> bool(np.all(P == P.T))
        True
        """
        if self.mask.hides or copies is None:
            return self.mask.keep(E)
        return np.triu(E) + swap(np.triu(E, 1))
