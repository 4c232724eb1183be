"""Probes: inputs with two nonzero tokens, sent through the layers that are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.layer.blackbox import BlackBox, QueryPlan
from attngeom.network import Architecture
from attngeom.network.virtual import virtual_layer


class Probe:
    """Inputs to a network with virtual weights whose only nonzero tokens are x and y, and its known virtual layers.

    The token of x sees that of y: under a mask it comes after it. ``name`` is part of the names of all steps.
    """

    def __init__(
        self, box: BlackBox, architecture: Architecture, domain: Domain, rng: np.random.Generator, name: str = ""
    ) -> None:
        self.box, self.architecture, self.domain, self.rng, self.name = box, architecture, domain, rng, name
        self.d, self.layers = architecture.widths[0], architecture.num_layers
        self.places = architecture.mask.places
        self.known: list[Array] = []

    def ask(self, step: str, plan: QueryPlan) -> tuple[QueryPlan, Array]:
        """The plan that was answered and its outputs (N, d_l, t)."""
        return self.box.ask(f"{self.name}{step}", plan)

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
