"""Black boxes: functions that can only be evaluated, over floats, balls of any precision, or an exact field; probes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array, Domain
from attngeom.network import Architecture
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
