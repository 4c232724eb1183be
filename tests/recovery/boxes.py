"""Weights that are hidden in black boxes."""

from __future__ import annotations

import flint

from attngeom.exact.domains import Array, Balls, Domain
from attngeom.layer.blackbox import BlackBox
from attngeom.network import Weights, forward


def weights_box(weights: Weights, domain: Domain) -> BlackBox:
    """The function of given weights as a black box over another domain."""
    if domain.encloses:

        def evaluate(X: Array) -> Array:
            # The caller sets the precision around its whole computation.
            return forward(weights.to(Balls(flint.ctx.prec)), X)

        return BlackBox(evaluate, domain)
    moved = weights if weights.domain == domain else weights.to(domain)
    return BlackBox(lambda X: forward(moved, X), domain)
