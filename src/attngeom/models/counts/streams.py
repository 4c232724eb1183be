"""What a weight matrix sees of the residual stream, and how many of its entries the function can show.

A reader is a matrix W (with or without bias) applied to u = gain ∘ n(x) + bias. For RMS norms the entries of
W diag(gain) are visible; for LayerNorm n(x) is orthogonal to 1, so W diag(gain) is seen on 1^⊥ only, d − 1 entries
per row, and the constant W·bias + b (lemma L4 of docs/theorems/models.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact.modular import rank_mod_p
from attngeom.exact.primes import WORD_PRIME
from attngeom.models.specification import Norm

MAX_SQUARES = 2**22


@dataclass(frozen=True)
class Stream:
    """Vectors u of a stream of width d that span ``seen`` dimensions, plus a constant vector if ``constant``.

    ``is_round``: they lie on one ellipsoid, behind a norm with eps = 0.
    """

    width: int
    seen: int
    constant: bool
    is_round: bool = False

    def rows(self, rows: int, bias: bool, visible: bool) -> int:
        """Redundant entries of a reader with that many rows that are due to the norm, not to an invisible bias.

        A row has width + bias entries; it shows ``seen`` of them, and one constant if there is one (an own bias or
        the norm's) and if the function shows it (``visible``). An own bias that is never shown is counted elsewhere.
        """
        shown = visible and self.has_constant(bias)
        return rows * (self.width - self.seen + bias - shown - (bias and not visible))

    def has_constant(self, bias: bool) -> bool:
        """Whether a reader with or without own bias adds a constant."""
        return bias or self.constant


def stream(width: int, norm: Norm | None) -> Stream:
    """The stream behind a norm (None: the residual stream itself, an arbitrary vector).

    >>> stream(768, Norm(kind="layer", eps=1e-5, bias=True)).rows(2304, bias=True, visible=True)
    2304
    """
    if norm is None:
        return Stream(width, width, False)
    is_layer = norm.kind == "layer"
    return Stream(width, width - is_layer, is_layer and norm.bias, norm.eps == 0)


def product(inner: int, left: int, right: int) -> int:
    """Dimension of {A B : A is left×inner, B is inner×right}: α(left + right − α), α = min(inner, left, right).

    >>> product(2, 5, 3), product(4, 3, 3)
    (12, 9)
    """
    alpha = min(inner, left, right)
    return alpha * (left + right - alpha)


def independent_squares(dimensions: list[int], width: int) -> bool:
    """Whether the spaces S²(U_i) of generic subspaces U_i of these dimensions of a space of this width are independent.

    True if the U_i themselves fit in (their sum is direct). Else decided by a random point mod p, where True is a
    proof; False means that they are dependent, or only probably so, or that the question is too large to try.

    >>> independent_squares([2, 2], 4), independent_squares([2, 2], 3), independent_squares([2, 2, 2], 4)
    (True, False, True)
    """
    if sum(dimensions) <= width:
        return True
    unknowns, equations = sum(size * (size + 1) // 2 for size in dimensions), width * (width + 1) // 2
    if unknowns > equations or unknowns * equations > MAX_SQUARES:
        return False
    rng = np.random.default_rng(0)
    upper = np.triu_indices(width)
    rows = []
    for size in dimensions:
        basis = rng.integers(1, WORD_PRIME, (size, width))
        for i in range(size):
            for j in range(i + 1):
                first, second = (np.outer(basis[i], basis[j]) % WORD_PRIME, np.outer(basis[j], basis[i]) % WORD_PRIME)
                rows.append(((first + second) % WORD_PRIME)[upper])
    return rank_mod_p(np.array(rows), WORD_PRIME) == unknowns
