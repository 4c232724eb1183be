"""Softmax attention: the exponentials of the scores, normalised over the visible tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.limits.trials import LEAST_TOKENS
from attngeom.network.attention.kind import Attention, Key, View, up_to_sign

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


@dataclass(frozen=True)
class Softmax(Attention):
    """P_ji = exp(S_ji/τ) / Σ_k exp(S_ki/τ) over the visible k; Ṗ = P (Ṡ − Σ_j P_ji Ṡ_ji)/τ.

    Formal softmax: mod p the columns of P are random elements that sum to 1. That gives the generic rank of the true
    Jacobian (docs/explanation/dimension.md). Where the tokens span one dimension only, S_ji = m y_j y_i is symmetric,
    and so are the exponentials drawn.

    >>> from attngeom.exact import RR
    >>> Softmax().weights(np.zeros((2, 2)), RR)[0, 0].item()
    0.5
    """

    name: ClassVar[str] = "softmax"
    is_polynomial: ClassVar[bool] = False
    is_normalised: ClassVar[bool] = True
    has_temperature: ClassVar[bool] = True
    head_theorem: ClassVar[str | None] = "Theorem D"

    def count_free(self, tokens: int, rank: int) -> int:
        """Columns sum to 1."""
        return tokens * (tokens - 1)

    def telling_tokens(self, tokens: int, most: int) -> int:
        """Without a mask an input that repeats s tokens t/s times has the outputs of these, repeated."""
        if self.mask.hides or tokens <= most:
            return super().telling_tokens(tokens, most)
        return max((s for s in range(LEAST_TOKENS, most + 1) if tokens % s == 0), default=tokens)

    def with_all_tokens(self, X: Array, tokens: int) -> Array:
        return X if self.mask.hides else np.tile(X, tokens // X.shape[-1])

    def reference_scores(self, S: Array) -> Array | float:
        """The least score of each token: only differences count."""
        least: Array = S.min(axis=-2, keepdims=True)
        return least

    def reach(self, Y: Array) -> Array:
        """What the tokens differ by: where they are equal, errors of the scores do not matter."""
        spread: Array = np.ptp(Y, axis=-1, keepdims=True)
        return spread

    def view(self, tokens: int) -> View:
        """All from three tokens on; one token attends to itself whatever the scores are."""
        return "nothing" if tokens == 1 else "signed" if tokens == 2 else "plain"

    def weights(self, S: Array, domain: Domain) -> Array:
        S = self.over_temperature(S, domain)
        if domain.rounds:
            # Only differences of scores count: the largest visible one becomes 0, so that nothing overflows.
            shifted = np.where(self.mask.visible(S.shape[-1]), S, -np.inf) if self.mask.hides else S
            powers = np.exp(shifted - shifted.max(axis=-2, keepdims=True))
        else:
            powers = self.hide(domain.exp(S))
        shares: Array = powers / powers.sum(axis=-2, keepdims=True)
        return shares

    def shares(self, b: Builder, S: int) -> int:
        return self.normalised(b, b.exp(S))

    def push(self, P: Array, dS: Array, domain: Domain) -> Array:
        product = domain.times(P, dS)
        sums = domain.reduce(product.sum(axis=-2, keepdims=True))
        return self.over_temperature(domain.reduce(product - domain.times(P, sums)), domain)

    def second_derivative(self, P: Array, dP: Array, cotangent: Array, domain: Domain) -> Array:
        """Ṗ (c − Σ P c) − P Σ Ṗ c, divided by τ."""
        sums, changes = (domain.reduce(domain.times(x, cotangent).sum(axis=-2, keepdims=True)) for x in (P, dP))
        left = domain.times(dP, domain.reduce(cotangent - sums))
        return self.over_temperature(domain.reduce(left - domain.times(P, changes)), domain)

    def terms(self, A: Array, V: Array, tokens: int, domain: Domain) -> Iterator[tuple[Key, Array]]:
        """t ≥ 3: V for A. t = 2: V for the mean of the tokens, and V for A up to the sign of (A, V). t = 1: V.

        For t = 2 a head is V x̄ + V u tanh(uᵀ A x/τ) at tokens x̄ ± u, which is odd in A.
        """
        if tokens > 2:
            yield from super().terms(A, V, tokens, domain)
            return
        yield (), V
        if tokens == 2 and (term := up_to_sign(A, V, domain)) is not None:
            yield term

    def formal_weights(self, E: Array, copies: int | None, domain: Domain) -> Array | None:
        """E with each diagonal entry replaced by 1 − the rest of its column.

        Symmetric scores: P is the upper triangle of E made symmetric, its last row multiplied by the number of copies
        of the last token (unless masked), divided by the column sums, unless one of these vanishes.

        >>> from attngeom.exact import GF
        >>> from attngeom.network.mask import Mask
        >>> P = Softmax(Mask(True)).draw((2, 2), None, GF(7), np.random.default_rng(0))
        >>> P[0, 0].item(), P[1, 0].item()
        (1, 0)
        """
        diagonal = np.arange(E.shape[-1])
        if self.mask.hides:
            E = self.mask.keep(E)
        elif copies is not None:
            E = np.triu(E) + swap(np.triu(E, 1))
            E[..., -1, :] = domain.times(E[..., -1, :], domain.convert(np.full(1, copies)))
        if copies is None:
            E[..., diagonal, diagonal] = 0
            E[..., diagonal, diagonal] = domain.reduce(1 - E.sum(axis=-2))
            return E
        sums = domain.reduce(E.sum(axis=-2))
        if not np.all(sums):
            return None
        inverses = domain.invert(sums)[..., None, :]
        shares: Array = domain.times(E, inverses)
        return shares
