"""Softmax networks on lines: token 1 at y + g_+ δ, all others at y + g_- δ stay on that line, layer after layer.

A layer with matrix M maps g_± to g_- + c p_±, c = g_+ − g_-, where p_± = 1/(1 + (t−1) exp(−c (u + g_± w))), u = δᵀ M y
and w = δᵀ M δ. So a network with virtual weights (M_1..M_l, L) is a chain of maps of the plane on each line, and its
derivatives in u and w are those in all of M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact.domains import Array
from attngeom.layer.blackbox import QueryPlan


@dataclass(frozen=True, eq=False)
class Lines:
    """Points y (N, d), unit directions δ (N, d) and sizes (N,): token 1 at y + δ size/2, the others at y − δ size/2."""

    y: Array
    delta: Array
    size: Array

    def join(self, other: Lines) -> Lines:
        pairs = ((self.y, other.y), (self.delta, other.delta), (self.size, other.size))
        return Lines(*(np.concatenate(pair) for pair in pairs))

    @classmethod
    def of(cls, plan: QueryPlan) -> Lines:
        """The lines that the inputs of a plan lie on."""
        count, d, _ = plan.inputs.shape
        return cls(plan.source("y", count, d), plan.source("delta", count, d), plan.source("size", count))

    def plan(self, tokens: int) -> QueryPlan:
        """The inputs, with the lines that they lie on."""
        return QueryPlan(self.inputs(tokens), {"y": self.y, "delta": self.delta, "size": self.size})

    def inputs(self, tokens: int) -> Array:
        """The inputs X of shape (N, d, t)."""
        step = self.size[:, None] / 2 * self.delta
        X = np.repeat((self.y - step)[:, :, None], tokens, axis=2)
        X[:, :, 0] = self.y + step
        return X

    def read(self, outputs: Array, L: Array) -> Array:
        """The positions (N, 2) of the outputs at token 1 and at token 2 on the image of the line."""
        image = self.delta @ L.T
        moved = outputs[:, :, :2] - (self.y @ L.T)[:, :, None]
        positions: Array = np.einsum("nit,ni->nt", moved, image) / np.sum(image**2, axis=1)[:, None]
        return positions


def pass_layers(lines: Lines, M: Sequence[Array], tokens: int) -> tuple[Array, Array]:
    """Positions (N, 2) after layers with the matrices M, and their derivatives (N, 2, layers, 2) in (u, w) of each.

    >>> one = np.ones((1, 1))
    >>> pass_layers(Lines(one, one, np.array([2.0])), [0 * one], 2)[0].tolist()
    [[0.0, 0.0]]
    """
    g = np.stack([lines.size, -lines.size], axis=1) / 2
    changes = np.zeros((len(g), 2, len(M), 2))
    for layer, matrix in enumerate(M):
        scores = lines.delta @ matrix
        u, w = np.sum(scores * lines.y, axis=1)[:, None], np.sum(scores * lines.delta, axis=1)[:, None]
        c = g[:, :1] - g[:, 1:]
        moved = changes[:, :1] - changes[:, 1:]
        rate = u + g * w
        # Beyond ±700 attention is saturated in double precision.
        p = 1 / (1 + (tokens - 1) * np.exp(-np.clip(c * rate, -700, 700)))
        push = (c * p * (1 - p))[:, :, None, None]
        direct = np.zeros_like(changes)
        direct[:, :, layer, 0], direct[:, :, layer, 1] = c, c * g
        inner = moved * rate[:, :, None, None] + changes * (c * w)[:, :, None, None] + direct
        changes = changes[:, 1:] + moved * p[:, :, None, None] + push * inner
        g = g[:, 1:] + c * p
    return g, changes


def mean_token(values: Array, tokens: int) -> Array:
    """The mean over all tokens of numbers (N, 2, …) at token 1 and the others: what attention without scores makes."""
    return np.asarray(values[:, :1] + (tokens - 1) * values[:, 1:]) / tokens
