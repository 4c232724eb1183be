"""Black boxes: functions that can only be evaluated, over floats, balls of any precision, or an exact field; probes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import flint
import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array, Balls, Domain
from attngeom.network import Architecture, Weights, forward
from attngeom.network.virtual import virtual_layer


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


class Probe:
    """Inputs to a network with virtual weights whose only nonzero tokens are x and y, and its known virtual layers.

    The token of x sees that of y: under a causal mask it comes after it.
    """

    def __init__(self, box: BlackBox, architecture: Architecture, domain: Domain, rng: np.random.Generator) -> None:
        self.box, self.architecture, self.domain, self.rng = box, architecture, domain, rng
        self.d, self.layers = architecture.widths[0], architecture.num_layers
        self.places = (1, 0) if architecture.causal else (0, 1)
        self.known: list[Array] = []

    def embed(self, x: Array, y: Array) -> Array:
        """Inputs (N, d, t) with the columns x and y, (N, d) each."""
        X = self.domain.zeros((len(x), self.d, self.architecture.tokens))
        X[:, :, self.places[0]], X[:, :, self.places[1]] = x, y
        return X

    def propagate(self, X: Array, layers: Sequence[Array]) -> Array:
        """The tokens after virtual layers with these matrices."""
        for M in layers:
            X = virtual_layer(M, X, self.architecture.rule, self.domain)
        return X
