"""What a weight matrix sees of the residual stream, and how many of its entries the function can show.

A reader is a matrix W (with or without bias) applied to u = gain ∘ n(x) + bias. For RMS norms the entries of
W diag(gain) are visible; for LayerNorm n(x) is orthogonal to 1, so W diag(gain) is seen on 1^⊥ only, d − 1 entries
per row, and the constant W·bias + b (lemma L4 of docs/theorems/models.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from attngeom.models.specification import Norm


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
