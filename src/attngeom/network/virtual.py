"""Deep networks through their virtual weights (M_1..M_l, L): by mixing matrices, by [G]'s recursion, by its word."""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.limits.work import UNROLLED_LAYERS
from attngeom.network.attention.kind import Attention
from attngeom.network.mask import NO_MASK
from attngeom.network.weights import VirtualWeights


def _letters(virtual: VirtualWeights, X: Array) -> list[Array]:
    """The t×t matrices Xᵀ M_i X."""
    multiply = virtual.domain.matmul
    return [multiply(swap(X), multiply(M, X)) for M in virtual.M]


def virtual_layer(M: Array, X: Array, rule: Attention, domain: Domain) -> Array:
    """X ↦ X w(Xᵀ M X): one layer in coordinates in which its value map is the identity; X has shape (..., d, t)."""
    scores = domain.matmul(swap(X), domain.matmul(M, X))
    return domain.matmul(X, rule.weights(scores, domain))


def forward_virtual(virtual: VirtualWeights, X: Array) -> Array:
    """phi(X) = L X E_l for every kind of attention: E_0 = I, E_i = E_{i-1} w(E_{i-1}ᵀ Xᵀ M_i X E_{i-1}).

    The tokens entering layer i+1 are L_i X E_i, so each layer multiplies the t×t mixing matrix E by its attention
    weights w.
    """
    domain = virtual.domain
    E = domain.eye(X.shape[-1])
    for S in _letters(virtual, X):
        E = domain.matmul(E, virtual.rule.weights(domain.matmul(swap(E), domain.matmul(S, E)), domain))
    return domain.matmul(virtual.L, domain.matmul(X, E))


def _check_plain(virtual: VirtualWeights) -> None:
    if virtual.rule.mask.hides or not virtual.rule.has_scale:
        raise InputError(f"[G] Lemma 3.6 needs lightning attention and {NO_MASK}; use forward_virtual")


def forward_recursion(virtual: VirtualWeights, X: Array) -> Array:
    """phi(X) = L X Π_{i=1..l} (D_{l-i} Xᵀ M_{l-i+1} X), with D_i from the recursion of [G] Lemma 3.6.

    D_0 = I and D_i = D_{i-1} Xᵀ M_i X D_{i-1} Xᵀ M_iᵀ X D_{i-1}; for attention without mask.
    """
    _check_plain(virtual)
    multiply = virtual.domain.matmul
    D = virtual.domain.eye(X.shape[-1])
    product = None
    for S in _letters(virtual, X):
        factor = multiply(D, S)
        product = factor if product is None else multiply(factor, product)
        D = multiply(multiply(factor, D), multiply(swap(S), D))
    return multiply(virtual.L, multiply(X, np.asarray(product)))


def word(layers: int) -> tuple[tuple[int, bool], ...]:
    """The letters M~_1 … M~_{m-1}, M_1 of the unrolled network as (index i, transposed), m = (3^l - 1)/2.

    M~_j is M_α if the lowest nonzero base-3 digit of j is 1 and M_αᵀ if it is 2, α - 1 the 3-adic valuation of j
    ([G] Eq 12). Indices count from 1.

    >>> word(2)
    ((1, False), (1, True), (2, False), (1, False))
    """
    if layers > UNROLLED_LAYERS:
        raise SizeError(f"{layers} layers given; the unrolled word has 3^l letters, so at most {UNROLLED_LAYERS}")
    letters: tuple[tuple[int, bool], ...] = ()
    for i in range(1, layers + 1):
        letters = (*letters, (i, False), *letters, (i, True), *letters)
    return (*letters[: (3**layers - 3) // 2], (1, False))


def forward_word(virtual: VirtualWeights, X: Array) -> Array:
    """phi(X) = L X times the product of the letters Xᵀ M~_j X along the word of [G] Eq 12."""
    _check_plain(virtual)
    multiply = virtual.domain.matmul
    S = _letters(virtual, X)
    product = multiply(virtual.L, X)
    for index, transposed in word(len(virtual.M)):
        letter = S[index - 1]
        product = multiply(product, swap(letter) if transposed else letter)
    return product
