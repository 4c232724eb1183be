"""Deep softmax networks from values: L from equal tokens, then M_1, M_2, … from tokens on lines, layer by layer.

A layer with matrix M maps g_± to g_- + c p_±, c = g_+ − g_-, where p_± = 1/(1 + (t−1) exp(−c (u + g_± w))), u = δᵀ M y
and w = δᵀ M δ. So a network with virtual weights (M_1..M_l, L) is a chain of maps of the plane on each line, and its
derivatives in u and w are those in all of M.

Theorem A behind it: means move at order c² by a multiple of (δᵀ M_i y) δ, c the difference of the tokens before layer
i, and differences shrink to order c³. So at the right size of c layer i is seen and layer i + 1 is not, and the known
layers are fitted again together with each new one before the search goes deeper: errors do not add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array
from attngeom.exact.fitting import fit
from attngeom.layer.blackbox import BlackBox, QueryPlan, on_grid
from attngeom.limits.rounding import (
    ATTENTION_VISIBLE,
    BEST_DIFFERENCE,
    FIRST_DIFFERENCE,
    LAST_DIFFERENCE,
    RECOVERY_CLEAR,
)
from attngeom.limits.trials import HELD_OUT, OVERSAMPLING, POLISH_STEPS, SOFTMAX_ATTEMPTS
from attngeom.network import Architecture, VirtualWeights
from attngeom.recovery.results import Attempt, Recovery, undetermined
from attngeom.recovery.virtual_lift import largest_error, lift_virtual
from attngeom.results import Failure


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


SIZES = np.geomspace(1e-3, 12.0, 80)
PROBES = np.geomspace(1e-6, 1e6, 73)


def recover_softmax(box: BlackBox, architecture: Architecture, seed: int, tolerance: float) -> Recovery:
    """Weights of a softmax network with one head per layer, no skip connection and no mask, t ≥ 2, from its values.

    Held-out inputs decide: weights are given only if they reproduce the outputs there to the tolerance.
    """
    return Recovery.best((_attempt(box, architecture, seed, k) for k in range(SOFTMAX_ATTEMPTS)), box, tolerance, seed)


def _attempt(box: BlackBox, architecture: Architecture, seed: int, attempt: int) -> Attempt | Failure:
    """The weights of one run; held-out inputs are random, of many sizes, with all tokens different."""
    name = f"attempt {attempt + 1}, "
    search = _SoftmaxSearch(box, architecture, np.random.default_rng([seed, attempt]), name)
    result = search.run()
    if isinstance(result, Failure):
        return result
    weights = lift_virtual(result, architecture)
    rng = np.random.default_rng([seed, attempt, 1])
    X = on_grid(rng.standard_normal((HELD_OUT, architecture.widths[0], architecture.tokens)))
    X *= search.unit * np.geomspace(0.3, 4.0, HELD_OUT)[:, None, None]
    plan, Y = box.ask(f"{name}check", QueryPlan(X))
    note = f"; the values fix the matrices M to a relative accuracy of about {search.uncertainty:.0e} only"
    error = largest_error(weights, plan.inputs, Y)
    return Attempt(error, weights, None, note if search.uncertainty > RECOVERY_CLEAR else "")


@dataclass(frozen=True, eq=False)
class _Data:
    """Lines with the positions (N, 2) that were read off the outputs."""

    lines: Lines
    seen: Array

    def join(self, other: _Data) -> _Data:
        return _Data(self.lines.join(other.lines), np.concatenate([self.seen, other.seen]))


class _SoftmaxSearch:
    """One run; all matrices are those of scores, M/τ, until the end."""

    def __init__(self, box: BlackBox, architecture: Architecture, rng: np.random.Generator, name: str) -> None:
        self.box, self.architecture, self.rng, self.name = box, architecture, rng, name
        self.d, self.tokens, self.layers = architecture.widths[0], architecture.tokens, architecture.num_layers
        self.L = np.empty(0)
        self.M: list[Array] = []
        self.unit = 1.0
        self.uncertainty = 0.0

    def run(self) -> VirtualWeights | Failure:
        """The virtual weights, or why they were not found."""
        equal = QueryPlan(np.repeat(np.eye(self.d)[:, :, None], self.tokens, axis=2))
        self.L = self.box.ask(f"{self.name}equal tokens", equal)[1][:, :, 0].T
        if not np.any(self.L) or not np.all(np.isfinite(self.L)):
            return undetermined(0, "L = V_l … V_1 is zero: the function is zero and hides all layers")
        visible = self._visible_sizes()
        if not len(visible):
            still = "attention does not move the mean of tokens of sizes from 1e-6 to 1e6; M_1 may be zero"
            return undetermined(0, still)
        # There the scores of layer 1 are of size one: attention moves the mean of the tokens, not far.
        self.unit = float(visible[0])
        data: _Data | None = None
        for layer in range(self.layers):
            differences = (FIRST_DIFFERENCE, None) if layer < self.layers - 1 else (LAST_DIFFERENCE,)
            for look, difference in enumerate(differences, 1):
                step = f"layer {layer + 1}, look {look}"
                lines = self._choose(layer, difference or self._best_difference(layer)) or self._planned(step)
                if lines is None:
                    apart = "no inputs leave its tokens apart; an earlier M may be 0, or skew (t = 2)"
                    return undetermined(layer, apart)
                new = self._ask(step, lines)
                if len(self.M) == layer:
                    self.M.append(np.zeros((self.d, self.d)))
                self._fit(new, layer)
                data = new if data is None else data.join(new)
                self._fit(data, 0)
        assert data is not None
        data = data.join(self._ask("all layers", self._spread()))
        self._fit(data, 0)
        self.uncertainty = self._measure(data)
        M = tuple(matrix * float(self.architecture.temperature) for matrix in self.M)
        return VirtualWeights(M, self.L, RR, self.architecture.rule)

    def _visible_sizes(self) -> Array:
        """The sizes of tokens at which attention moves their mean."""
        lines = 5
        y, delta = self._draw(lines)
        sizes = np.repeat(PROBES, lines)
        points = np.tile(y, (len(PROBES), 1)) * sizes[:, None]
        data = self._ask("sizes", Lines(points, np.tile(delta, (len(PROBES), 1)), sizes))
        seen, sizes = data.seen, data.lines.size
        # Without scores the mean of the tokens at ±s/2, one against t − 1, is where they go.
        still = sizes * (1 / self.tokens - 0.5)
        moved = np.median(np.abs(seen.mean(axis=1) - still).reshape(len(PROBES), lines) / PROBES[:, None], axis=1)
        return np.asarray(PROBES[moved > ATTENTION_VISIBLE])

    def _best_difference(self, layer: int) -> float:
        """The difference before a layer, in units, at which rounding and the next layer disturb it equally."""
        size = float(np.linalg.norm(self.M[layer], 2)) * self.unit**2
        return float(np.clip(BEST_DIFFERENCE / np.sqrt(size), 1e-3, 0.3)) if size > 0 else FIRST_DIFFERENCE

    def _planned(self, step: str) -> Lines | None:
        """The lines that were planned for a step before."""
        plan = self.box.planned(f"{self.name}{step}")
        return None if plan is None else Lines.of(plan)

    def _ask(self, step: str, lines: Lines) -> _Data:
        """What is seen on the lines that were answered: those of the plan, where there is one."""
        plan, outputs = self.box.ask(f"{self.name}{step}", lines.plan(self.tokens))
        lines = Lines.of(plan)
        return _Data(lines, lines.read(outputs, self.L))

    def _draw(self, count: int) -> tuple[Array, Array]:
        """Points of size about one and unit directions that L does not hide."""
        y = self.unit * self.rng.standard_normal((count, self.d)) / np.sqrt(self.d)
        delta = self.rng.standard_normal((count, self.d))
        return y, delta / np.linalg.norm(delta, axis=1, keepdims=True)

    def _choose(self, layer: int, difference: float) -> Lines | None:
        """Lines on which the known layers leave the given difference before the next one; the smallest inputs first."""
        wanted = OVERSAMPLING * self.d**2 + 4
        difference, sizes = difference * self.unit, SIZES * self.unit
        y, delta = self._draw(8 * wanted)
        image = np.linalg.norm(delta @ self.L.T, axis=1)
        visible = image > 0.2 * np.linalg.norm(self.L, 2) / np.sqrt(self.d)
        y, delta = y[visible], delta[visible]
        count = len(y)
        if layer == 0:
            size = np.full(count, difference)
        else:
            left = np.stack([self._difference(y, delta, np.full(count, s), layer) for s in sizes], axis=1)
            reached = left >= difference
            place = np.argmax(reached, axis=1)
            good = reached[np.arange(count), place] & (place > 0)
            y, delta, place = y[good], delta[good], place[good]
            low, high = sizes[place - 1], sizes[place]
            for _ in range(30):
                middle = (low + high) / 2
                above = self._difference(y, delta, middle, layer) >= difference
                low, high = np.where(above, low, middle), np.where(above, middle, high)
            size = high
        order = np.argsort(size, kind="stable")[:wanted]
        if len(order) < self.d**2 + 2:
            return None
        return Lines(y[order], delta[order], size[order])

    def _difference(self, y: Array, delta: Array, size: Array, layer: int) -> Array:
        """How far the tokens are apart before a layer."""
        positions, _ = pass_layers(Lines(y, delta, size), self.M[:layer], self.tokens)
        return np.asarray(np.abs(positions[:, 0] - positions[:, 1]))

    def _spread(self) -> Lines:
        """Lines with points and differences of many sizes, at which all layers are seen."""
        count = (OVERSAMPLING * self.d**2 + 4) * self.layers
        y, delta = self._draw(count)
        y = y * np.geomspace(0.3, 3.0, count)[:, None]
        size = self.unit * np.exp(self.rng.uniform(np.log(0.3), np.log(8.0), count))
        return Lines(y, delta, size)

    def _error(self, data: _Data, M: list[Array]) -> tuple[Array, Array]:
        """What is missed, and its derivatives in the entries of all M; unknown layers take the mean."""
        positions, changes = pass_layers(data.lines, M, self.tokens)
        missed = positions - data.seen
        if len(M) < self.layers:
            missed, changes = mean_token(missed, self.tokens), mean_token(changes, self.tokens)
        # u = δᵀ M y and w = δᵀ M δ are linear in M.
        y, delta = (x[:, None, None, None] for x in (data.lines.y, data.lines.delta))
        J = swap(delta) * (changes[..., :1, None] * y + changes[..., 1:, None] * delta)
        return missed.ravel(), J.reshape(-1, len(M) * self.d**2)

    def _measure(self, data: _Data) -> float:
        """About how well the data fix the M_i, relative to their norms: the largest error that residuals explain."""
        error, J = self._error(data, self.M)
        sizes = np.repeat([float(np.linalg.norm(matrix)) or 1.0 for matrix in self.M], self.d**2)
        values = lapack.svdvals(J * sizes)
        rounding = np.finfo(float).eps * float(np.abs(data.seen).max()) * np.sqrt(len(error))
        residual = max(float(np.linalg.norm(error)), rounding)
        return residual / float(values[-1]) if values[-1] > 0 else float("inf")

    def _fit(self, data: _Data, start: int) -> None:
        """Levenberg–Marquardt on M_start … of the known layers; steps relative to what each entry moves."""
        fixed, known = start * self.d**2, self.M[:start]

        def at(vector: Array) -> list[Array]:
            return [*known, *vector.reshape(-1, self.d, self.d)]

        def derivative(vector: Array) -> tuple[Array, Array]:
            J = self._error(data, at(vector))[1][:, fixed:]
            moved = np.linalg.norm(J, axis=0)
            units = 1 / np.where(moved > 0, moved, 1.0)
            return J * units, units

        start_vector = np.concatenate([M.ravel() for M in self.M[start:]])
        self.M = at(fit(start_vector, lambda x: self._error(data, at(x))[0], derivative, steps=POLISH_STEPS))
