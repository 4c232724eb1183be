"""The virtual weights (M_1..M_l, L) of a deep lightning network from its values alone, one layer after another.

If X = P N with two fixed columns P and a 2×2 matrix N of coordinates, the virtual layer X ↦ X · mask(Xᵀ M X) is the
virtual layer N ↦ N · mask(Nᵀ S N) with S = Pᵀ M P.

Two tokens are nonzero, x and y. The output at the token of x is odd in x and its linear part is F(y) (yᵀ M_1 x) with
F(y) ∥ L y: over many y this determines M_1 up to scale. A known virtual layer X ↦ X (Xᵀ M_1 X) is undone on the span
of x and y, and the rest of the network is a black box with one layer less. At the end L
enters linearly, all scales included.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact import lapack
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.exact.precise import least_squares, midpoints, null_vector, to_float
from attngeom.layer.blackbox import BlackBox, QueryPlan, on_grid
from attngeom.layer.float_splitting import split_layer_floats
from attngeom.layer.quadrics import context_products
from attngeom.limits.rounding import INVERSE_ACCEPTED, LEAST_SEPARATION
from attngeom.limits.trials import INVERSE_STARTS, NEWTON_STEPS, OVERSAMPLING
from attngeom.network import Architecture, VirtualWeights
from attngeom.network.attention import Attention
from attngeom.network.virtual import forward_virtual, virtual_layer
from attngeom.recovery.results import layer_failure, undetermined
from attngeom.results import Failure


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


UNITS = np.eye(4).reshape(4, 2, 2)


def _derivative(N: Array, S: Array, mask: Array) -> Array:
    """The 4×4 Jacobian of the layer at N, in floats."""
    left, right = S @ N, N.T @ S
    change = (np.swapaxes(UNITS, 1, 2) @ left + right @ UNITS) * mask
    columns: Array = (UNITS @ ((N.T @ left) * mask) + N @ change).reshape(4, 4)
    return columns.T


def invert_layer(
    target: Array, S: Array, rule: Attention, rng: np.random.Generator, start: Array | None = None
) -> Array | None:
    """An N with N · mask(Nᵀ S N) = target, by damped Newton steps from several starts; None if none is found.

    With ``start``, the solution at a target nearby, only that one is tried.

    >>> from attngeom.exact import RR
    >>> from attngeom.network.attention import Lightning
    >>> S = np.array([[1.0, 0.2], [-0.3, 2.0]])
    >>> N = invert_layer(np.diag([0.5, 1.0]), S, Lightning(), np.random.default_rng(0))
    >>> bool(np.allclose(virtual_layer(S, N, Lightning(), RR), np.diag([0.5, 1.0])))
    True
    """
    size = float(np.abs(S).max()) * float(np.linalg.norm(target))
    if size == 0 or not np.isfinite(size):
        return None
    mask = rule.hide(np.ones((2, 2)))
    if start is not None:
        return _newton(start, target, S, mask)
    guess = np.diag(np.cbrt(np.diagonal(target)) / np.cbrt(np.where(np.diagonal(S) == 0, 1.0, np.diagonal(S))))
    # Where attention is hidden coordinates are zero: a token that sees itself alone keeps to its own direction.
    for attempt in range(INVERSE_STARTS):
        spread = 0.0 if attempt == 0 else 0.5 * np.linalg.norm(guess)
        N = _newton(guess + spread * rng.standard_normal((2, 2)) * mask, target, S, mask)
        if N is not None:
            return N
    return None


def _newton(N: Array, target: Array, S: Array, mask: Array) -> Array | None:
    # Square and regular systems of size 4, thousands of them: damped least squares take nine times as long.
    scale = np.linalg.norm(target)
    error = N @ ((N.T @ S @ N) * mask) - target
    for _ in range(NEWTON_STEPS):
        size = np.linalg.norm(error)
        if size <= 1e-15 * scale:
            break
        try:
            step = lapack.solve(_derivative(N, S, mask), error.ravel()).reshape(2, 2)
        except SingularError:
            return None
        damping = 1.0
        while damping > 1e-4:
            trial = N - damping * step
            trial_error = trial @ ((trial.T @ S @ trial) * mask) - target
            if np.linalg.norm(trial_error) < size:
                break
            damping /= 2
        else:
            break
        N, error = trial, trial_error
    return N if np.linalg.norm(error) <= INVERSE_ACCEPTED * scale else None


def refine_inverse(N: Array, target: Array, S: Array, rule: Attention, domain: Domain) -> Array:
    """The float solution N improved to the precision of balls: residuals in balls, corrections in floats."""
    if domain.rounds:
        return N
    inverse = lapack.inv(_derivative(N, to_float(S), rule.hide(np.ones((2, 2)))))
    precision = getattr(domain, "precision", 53)
    current = domain.convert(N)
    last = np.inf
    for _ in range(precision // 8):
        error = midpoints(virtual_layer(S, current, rule, domain) - target)
        largest = max(abs(x) for x in error.ravel())
        if largest == 0:
            break
        # Scaled so that residuals far below the range of floats can still be corrected in floats.
        mantissa, exponent = largest.man_exp()
        size = int(mantissa).bit_length() + int(exponent)
        if size < -precision + 16 or size >= last:
            break
        last = size
        shift = domain.convert([2])[0] ** (-size)
        correction = inverse @ to_float(error * shift).ravel()
        current = midpoints(current - domain.convert(correction.reshape(2, 2)) / shift)
    return current


class Peeler(Probe):
    """One run of the algorithm over floats or balls; every random choice comes from ``rng``.

    Points at which a layer is undone with a condition above ``max_condition`` are not used; ``separation`` is the
    smallest one of the linear systems that were solved.
    """

    def __init__(
        self,
        box: BlackBox,
        architecture: Architecture,
        domain: Domain,
        rng: np.random.Generator,
        max_condition: float,
        name: str = "",
    ) -> None:
        super().__init__(box, architecture, domain, rng, name)
        self.max_condition = max_condition
        self.separation = 1.0

    def run(self) -> VirtualWeights | Failure:
        for layer in range(self.layers):
            result = self._first_layer() if layer == 0 else self._next_layer(layer)
            if isinstance(result, Failure) and 0 < layer == self.layers - 1:
                result = result if (last := self._last_layer()) is None else last
            if isinstance(result, Failure):
                return result
            self.known.append(result)
        return VirtualWeights(tuple(self.known), self._values(), self.domain, self.architecture.rule)

    def _odd_linear(self, values: Array, nodes: Array) -> Array:
        """The linear coefficient of an odd polynomial from its values at nodes ε (axis 0), of degree 2·len − 1."""
        K = len(nodes)
        largest = nodes[-1]
        powers = np.stack([(nodes / largest) ** (2 * k + 1) for k in range(K)], axis=1)
        weights = self.domain.inverse(powers)[0] / largest
        shape = values.shape[1:]
        return self.domain.matmul(weights[None, :], values.reshape(K, -1)).reshape(shape)

    def _solve(self, rows: Array) -> Array | None:
        """The d×d matrix annihilated by the equations, or None if it is not unique."""
        solution = null_vector(rows, self.domain)
        self.separation = min(self.separation, solution.separation)
        if solution.separation < LEAST_SEPARATION:
            return None
        return solution.vector.reshape(self.d, self.d)

    def _equations(self, y: Array, xs: Array, values: Array) -> Array:
        """Equations for M: the vector (yᵀ M x_i)_i is parallel to the given values."""
        domain = self.domain
        lead = int(np.argmax(np.abs(to_float(values))))
        products = (y[None, :, None] * xs[:, None, :]).reshape(len(xs), -1)
        rows = products * values[lead] - products[lead][None, :] * values[:, None]
        return domain.reduce(np.delete(rows, lead, axis=0))

    def _first_layer(self) -> Array | Failure:
        """M_1 from the linear part in x at small x, at the points y where that part is largest."""
        domain, d = self.domain, self.d
        count = OVERSAMPLING * (2 * d + 4)
        directions = self.rng.standard_normal((count, d))
        drawn = domain.convert(on_grid(directions / np.linalg.norm(directions, axis=1, keepdims=True)))
        step = 2.0**-14 if domain.rounds else 2.0 ** -(getattr(domain, "precision", 53) // 7)
        nodes = domain.convert([step, 2 * step, 3 * step])
        x = domain.eye(d)
        batch_x = np.concatenate([np.tile(x * node, (count, 1)) for node in nodes])
        batch_y = np.tile(np.repeat(drawn, d, axis=0), (3, 1))
        plan, outputs = self.ask("layer 1", QueryPlan(self.embed(batch_x, batch_y)))
        answers = outputs[:, :, self.places[0]].reshape(3, count, d, -1)
        y = plan.inputs[: count * d : d, :, self.places[1]]
        G = midpoints(self._odd_linear(answers, nodes))
        sizes = np.linalg.norm(to_float(G).reshape(count, -1), axis=1)
        if not np.all(np.isfinite(sizes)) or not np.any(sizes):
            return undetermined(0, "the linear part of the function vanishes: L or some M_i is zero or skew-symmetric")
        rows = []
        for index in np.argsort(-sizes)[: 2 * d + 4]:
            column = int(np.argmax(np.linalg.norm(to_float(G[index]), axis=0)))
            if sizes[index] > 0:
                rows.append(self._equations(y[index], x, G[index][:, column]))
        M = self._solve(np.concatenate(rows))
        return undetermined(0, "M_1 is not determined by the linear part: its rank is below 2") if M is None else M

    def _next_layer(self, layer: int) -> Array | Failure:
        """M of a later layer, by undoing the known ones on spans of two vectors."""
        domain, d = self.domain, self.d
        count = (3 ** (self.layers - layer) + 1) // 2
        # Chebyshev nodes: interpolation of the odd polynomial of degree 3^(l - layer) then amplifies errors least.
        nodes = np.cos((2 * np.arange(count)[::-1] + 1) * np.pi / (4 * count))
        step = f"layer {layer + 1}"
        made = self._plan_layer(nodes) or self.box.planned(f"{self.name}{step}")
        if made is None:
            return layer_failure(layer, "the known layers could not be undone at enough points")
        plan, outputs = self.ask(step, made)
        points = len(outputs) // count
        answers = outputs[: points * count, :, self.places[0]].reshape(points, count, -1)
        all_y, all_x = plan.source("y", points, d), plan.source("x", points, d)
        first = np.flatnonzero(np.r_[True, np.any(all_y[1:] != all_y[:-1], axis=1)])
        systems = []
        for y, xs, values in zip(all_y[first], np.split(all_x, first[1:]), np.split(answers, first[1:])):
            linear = midpoints(self._odd_linear(np.moveaxis(values, 1, 0), domain.convert(nodes)))
            column = int(np.argmax(np.linalg.norm(to_float(linear), axis=0)))
            size = np.linalg.norm(to_float(linear))
            loss = float(np.abs(to_float(values)).max() / size) if size else np.inf
            systems.append((loss, self._equations(domain.convert(y), domain.convert(xs), linear[:, column])))
        # Interpolation loses as many digits as the linear part is smaller than the values: keep the best points.
        systems.sort(key=lambda system: system[0])
        M = self._solve(np.concatenate([rows for loss, rows in systems[: 2 * d + 4] if np.isfinite(loss)]))
        return undetermined(layer, f"M_{layer + 1} is not determined: its rank may be below 2") if M is None else M

    def _plan_layer(self, nodes: Array) -> QueryPlan | None:
        """Inputs whose images under the known layers are (ε x, y), for each row of the sources x and y and each ε."""
        jobs: list[tuple[Array, Array, Array]] = []
        wanted = OVERSAMPLING * (self.d + 4)
        for _ in range(4 * wanted):
            inverse = self._invert_around(nodes)
            if inverse is not None:
                jobs.append(inverse)
            if len(jobs) == wanted:
                break
        if len(jobs) < self.d + 2:
            return None
        batch = np.concatenate([inputs for _, _, inputs in jobs])
        y, x = (
            np.concatenate([np.tile(y, (len(xs), 1)) for y, xs, _ in jobs]),
            np.concatenate([xs for _, xs, _ in jobs]),
        )
        return QueryPlan(self.embed(*(batch[:, :, place] for place in self.places)), {"x": x, "y": y})

    def _invert_around(self, nodes: Array) -> tuple[Array, Array, Array] | None:
        """A point y, vectors x and the inputs whose image under the known layers is (ε x, y), for each x and node ε."""
        y = self._direction()
        xs, inputs = [], []
        for _ in range(3 * self.d):
            x = self._direction()
            inverse = self._undo(x, y, nodes)
            if inverse is not None:
                xs.append(x)
                inputs += inverse
            if len(xs) == self.d:
                break
        return (y, np.array(xs), np.concatenate(inputs)) if len(xs) >= 2 else None

    def _direction(self) -> Array:
        x = self.rng.standard_normal(self.d)
        return np.asarray(x / np.linalg.norm(x))

    def _undo(self, x: Array, y: Array, nodes: Array) -> list[Array] | None:
        """One input (1, d, 2) for each node, or None if a layer cannot be undone stably."""
        rule = self.architecture.rule
        P = np.stack([(x, y)[place] for place in self.places], axis=1)
        exact_P = self.domain.convert(P)
        scores = [self.domain.matmul(exact_P.T, self.domain.matmul(M, exact_P)) for M in self.known][::-1]
        floats = [to_float(S) for S in scores]
        path: list[list[Array]] = []
        # From the largest node down, each solution is the start for the next one.
        for node in nodes[::-1]:
            target = np.diag([(node, 1.0)[place] for place in self.places])
            solutions = []
            for place, S in enumerate(floats):
                start = path[-1][place] if path else None
                N = invert_layer(target, S, rule, self.rng, start)
                if N is None and start is not None:
                    N = invert_layer(target, S, rule, self.rng)
                if N is None or lapack.cond(N) > self.max_condition:
                    return None
                solutions.append(N)
                target = N
            path.append(solutions)
        inputs = []
        for node, solutions in zip(nodes, path[::-1]):
            exact = self.domain.convert(np.diag([(node, 1.0)[place] for place in self.places]))
            for N, S in zip(solutions, scores):
                exact = refine_inverse(N, exact, S, rule, self.domain)
            inputs.append(self.domain.matmul(exact_P, exact)[None])
        return inputs

    def _last_layer(self) -> Array | None:
        """M_l without undoing layers: the last layer is a table of quadrics, linear in the answers, that is split.

        Less well conditioned, for images under known layers are almost parallel; a fallback, over floats only.
        """
        d = self.d
        if not self.domain.rounds:
            return None
        Y, sizes, outputs = self._images("last layer", d * d * (d + 1))
        rows = context_products(Y / sizes, self.architecture.mask, self.domain)
        right = swap(outputs / sizes**3)
        table = lapack.lstsq(np.concatenate(rows), np.concatenate(right)).T
        split = split_layer_floats(table.reshape(-1, d, d * (d + 1) // 2), tolerance=1e-2)
        return split.points[0].A if split.points else None

    def _values(self) -> Array:
        """L, with all scales, from φ(X) = L Y with Y the image of X under all virtual layers."""
        Y, sizes, outputs = self._images("values", 2 * self.d + 4)
        rows, right = (np.concatenate(swap(x / sizes)) for x in (Y, outputs))
        return least_squares(rows, right, self.domain).T

    def _images(self, step: str, count: int) -> tuple[Array, Array, Array]:
        """Random inputs: their images under the known layers, the sizes of these, 1 for zeros, and the outputs."""
        drawn = on_grid(self.rng.standard_normal((count, self.d, self.architecture.tokens)))
        plan, outputs = self.ask(step, QueryPlan(self.domain.convert(drawn)))
        Y = midpoints(self.propagate(plan.inputs, self.known))
        sizes = _sizes(Y)[:, None, None]
        return Y, self.domain.convert(np.where(sizes > 0, sizes, 1.0)), outputs


def _sizes(Y: Array) -> Array:
    """The largest entries of arrays (N, d, t)."""
    return np.asarray(np.abs(to_float(Y)).max(axis=(1, 2)))


def held_out_error(virtual: VirtualWeights, box: BlackBox, tokens: int, rng: np.random.Generator) -> float:
    """The largest relative error of the outputs at fresh random inputs."""
    X = virtual.domain.convert(rng.standard_normal((6, virtual.L.shape[1], tokens)))
    answers = box(X)
    sizes, gaps = _sizes(answers), _sizes(midpoints(forward_virtual(virtual, X) - answers))
    worst = float(np.max(np.where(sizes > 0, gaps / np.where(sizes > 0, sizes, 1.0), gaps > 0)))
    return worst if np.isfinite(worst) else np.inf
