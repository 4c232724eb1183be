"""Black boxes: functions that can only be evaluated, over floats, balls of any precision, or an exact field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import flint
import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array, Balls, Domain
from attngeom.network import Weights, forward


@dataclass(eq=False)
class BlackBox:
    """A function of X, asked in batches: ``evaluate`` maps arrays (N, d, t) over ``domain`` to arrays (N, d_out, t).

    A domain of balls stands for a box that can answer to any precision: it is asked for arrays of balls.
    """

    evaluate: Callable[[Array], Array]
    domain: Domain = RR
    queries: int = field(default=0)

    def __call__(self, X: Array) -> Array:
        self.queries += len(X)
        Y = np.asarray(self.evaluate(X))
        if Y.ndim != 3 or Y.shape[0] != X.shape[0] or Y.shape[2] != X.shape[2]:
            raise InputError(f"answer of shape {Y.shape} given to inputs of shape {X.shape}; (N, d_out, t) is required")
        return Y


def weights_box(weights: Weights, domain: Domain) -> BlackBox:
    """The function of given weights as a black box over another domain.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> box = weights_box(random_weights(Architecture((2, 1), 1), QQ, seed=0), RR)
    >>> box(np.ones((5, 2, 3))).shape, box.queries
    ((5, 1, 3), 5)
    """
    if domain.encloses:

        def evaluate(X: Array) -> Array:
            # The caller sets the precision around its whole computation.
            return forward(weights.to(Balls(flint.ctx.prec)), X)

        return BlackBox(evaluate, domain)
    moved = weights if weights.domain == domain else weights.to(domain)
    return BlackBox(lambda X: forward(moved, X), domain)
