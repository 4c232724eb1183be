"""Deep lightning networks from black boxes over GF(p), by linear algebra alone: two and three layers, exactly.

Virtual layers cannot be undone over a finite field in general. Instead, tokens a, b with aᵀ M_1 a = bᵀ M_1 a = 0 are
sent by the first layer to 0 and y = X (Xᵀ M_1 b): the derivative of the output there gives M_2. The last layer is a
table of quadrics that enters linearly, and is split.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import nmod_poly

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import Array, PrimeField
from attngeom.exact.matrices import determinant, nullspace, solve
from attngeom.fibers.blackbox import BlackBox
from attngeom.fibers.one_layer import split_layer
from attngeom.fibers.quadrics import reciprocal, square_root
from attngeom.fibers.recovery import Outcome, Recovery
from attngeom.fibers.virtual_lift import lift_virtual
from attngeom.network import Architecture, VirtualWeights
from attngeom.network.virtual import forward_virtual

CHECKS = 4


class _Field:
    """One run over GF(p)."""

    def __init__(self, box: BlackBox, architecture: Architecture, field: PrimeField, seed: int) -> None:
        self.box, self.architecture, self.field = box, architecture, field
        self.rng = np.random.default_rng(seed)
        self.d = architecture.widths[0]
        self.known: list[Array] = []

    def random(self, *shape: int) -> Array:
        return self.field.random(shape, self.rng)

    def pair(self, u: Array, M: Array, v: Array) -> Any:
        """uᵀ M v."""
        return self.field.matmul(u[None, :], self.field.matmul(M, v[:, None]))[0, 0]

    def ask(self, x: Array, y: Array) -> Array:
        """The outputs (N, d_l) at the token of x, for pairs of columns (x, y) and zeros elsewhere."""
        first, second = (1, 0) if self.architecture.causal else (0, 1)
        X = self.field.zeros((len(x), self.d, self.architecture.tokens))
        X[:, :, first], X[:, :, second] = x, y
        return self.box(X)[:, :, first]

    def linear_part(self, x: Array, y: Array, degree: int) -> Array:
        """The coefficient of s in the output at the token s-dependent as x[0] + s x[1], for many pairs at once.

        x has shape (2, N, d): the polynomial has the given degree and is interpolated at s = 0, …, degree.
        """
        nodes = self.field.array(np.arange(degree + 1))
        powers = self.field.array([[pow(int(s), k, self.field.p) for k in range(degree + 1)] for s in nodes])
        weights = self.field.inverse(powers)[1]
        columns = [self.field.reduce(x[0] + self.field.reduce(x[1] * s)) for s in nodes]
        answers = self.ask(np.concatenate(columns), np.tile(y, (degree + 1, 1)))
        stacked = answers.reshape(degree + 1, -1)
        return self.field.matmul(weights[None, :], stacked).reshape(len(y), -1)

    def solutions(self, rows: list[Array]) -> list[Array]:
        """The d×d matrices annihilated by all rows, up to scale: one, or the singular ones in a pencil of them.

        A pencil remains for M_2 if M_1 is singular; M_2 is one of its singular members if a_2 < d.
        """
        basis = nullspace(np.stack(rows), self.field).reshape(-1, self.d, self.d)
        if len(basis) != 2:
            return list(basis) if len(basis) == 1 else []
        members = [self.field.reduce(basis[0] + basis[1] * s) for s in range(self.d + 1)]
        determinants = self.field.array([[determinant(M, self.field)] for M in members])
        powers = self.field.array([[s**k for k in range(self.d + 1)] for s in range(self.d + 1)])
        values = self.field.matmul(self.field.inverse(powers), determinants)[:, 0]
        polynomial = nmod_poly([int(x) for x in values], self.field.p)
        if polynomial.degree() < 1:
            return []
        roots = [-factor[0] / factor[1] for factor, _ in polynomial.factor()[1] if factor.degree() == 1]
        return [self.field.reduce(basis[0] + self.field.reduce(basis[1] * int(root))) for root in roots]

    def compare(self, y: Array, first: Array, second: Array, values: Array, others: Array) -> list[Array]:
        """Equations (yᵀ M first) other = (yᵀ M second) value, for each pair of values."""
        reduce = self.field.reduce
        left, right = reduce(y[:, None] * first[None, :]).ravel(), reduce(y[:, None] * second[None, :]).ravel()
        return [reduce(reduce(left * b) - reduce(right * a)) for a, b in zip(values, others)]

    def first_matrix(self) -> list[Array]:
        """M_1, as over the reals: F(y) (yᵀ M_1 x) is the part that is linear in x."""
        d, count = self.d, 2 * self.d + 4
        y, units = self.random(count, d), self.field.eye(d)
        directions = np.stack([self.field.zeros((count * d, d)), np.tile(units, (count, 1))])
        values = self.linear_part(directions, np.repeat(y, d, axis=0), 3**self.architecture.num_layers)
        values = values.reshape(count, d, -1)
        rows = []
        for point, value in zip(y, values):
            for c in range(1, d):
                rows += self.compare(point, units[0], units[c], value[0], value[c])
        return self.solutions(rows)

    def second_matrix(self) -> list[Array]:
        """M_2 from tokens that the first layer sends to zero; needs d ≥ 3."""
        field, M = self.field, self.known[0]
        rows: list[Array] = []
        while len(rows) < self.d**2 + 6:
            a = self.isotropic()
            b, other = self.random(self.d), self.random(self.d)
            if a is None or not self.pair(other, M, a):
                continue
            shift = field.reduce(self.pair(b, M, a) * reciprocal(self.pair(other, M, a), field))
            b = field.reduce(b - field.reduce(other * shift))
            y = field.reduce(b * self.pair(b, M, b))
            if not self.architecture.causal:
                y = field.reduce(y + field.reduce(a * self.pair(a, M, b)))
            u = self.random(2, self.d)
            degree = 3**self.architecture.num_layers
            values = self.linear_part(np.stack([np.stack([a, a]), u]), np.stack([b, b]), degree)
            images = []
            for direction in u:
                inner = field.reduce(self.pair(direction, M, a) + self.pair(a, M, direction))
                images.append(field.reduce(field.reduce(a * inner) + field.reduce(b * self.pair(b, M, direction))))
            rows += self.compare(y, images[0], images[1], values[0], values[1])[:1]
        return self.solutions(rows)

    def isotropic(self) -> Array | None:
        """A vector a ≠ 0 with aᵀ M_1 a = 0 on a random line, if the discriminant is a square."""
        field, M = self.field, self.known[0]
        start, step = self.random(self.d), self.random(self.d)
        A, C = self.pair(step, M, step), self.pair(start, M, start)
        B = field.reduce(self.pair(step, M, start) + self.pair(start, M, step))
        root = square_root(int(field.reduce(field.reduce(B * B) - field.reduce(4 * field.reduce(A * C)))), field)
        if root is None or not A:
            return None
        scale = field.reduce((root - B) * reciprocal(field.reduce(2 * A), field))
        return field.reduce(start + field.reduce(step * scale))

    def last_layer(self) -> tuple[Array, Array] | str:
        """(M_l, L) from the table of quadrics of the last layer, which enters linearly."""
        field, d, t = self.field, self.d, self.architecture.tokens
        pairs = d * (d + 1) // 2
        X = self.random(pairs * d // t + 4, d, t)
        answers = self.box(X)
        k, l = np.triu_indices(d)
        rows, right = [], []
        for x, answer in zip(X, answers):
            Y = x
            for M in self.known:
                scores = field.matmul(Y.T, field.matmul(M, Y))
                Y = field.matmul(
                    Y, scores * np.triu(np.ones((t, t), dtype=int)) if self.architecture.causal else scores
                )
            squares = field.reduce(Y[k] * Y[l])
            for i in range(t):
                seen = squares[:, : i + 1] if self.architecture.causal else squares
                context = field.reduce(seen.sum(axis=1))
                rows.append(field.reduce(Y[:, i][:, None] * context[None, :]).ravel())
                right.append(answer[:, i])
        table = solve(np.stack(rows), np.stack(right), field)
        if table is None:
            return "the last layer is no table of quadrics: the function is not of this architecture"
        split = split_layer(table.T.reshape(-1, d, pairs), field)
        if not split.points:
            return "the quadrics of the last layer do not split: the function is not of this architecture"
        return split.points[0].A, split.points[0].V


def recover_field(box: BlackBox, architecture: Architecture, seed: int = 0) -> Recovery:
    """Weights over GF(p) of a lightning network with two or three layers, checked at random inputs.

    Three layers need d ≥ 3. A large prime is needed: degrees 3^l must be below p.
    """
    field = box.domain
    layers = architecture.num_layers
    if not isinstance(field, PrimeField) or field.p <= 3**layers:
        raise DomainError(f"a box over {field.name} given; GF(p) with p above the degree {3**layers} is required")

    def stop(outcome: Outcome, reason: str) -> Recovery:
        return Recovery(outcome, reason, (), None, box.queries, seed, field)

    if layers > 3 or (layers == 3 and architecture.widths[0] < 3):
        return stop("failed", "over GF(p) two layers are recovered, and three if d ≥ 3; use a box over Q")
    run = _Field(box, architecture, field, seed)
    candidates: list[list[Array]] = [[]]
    for index in range(layers - 1):
        found = run.first_matrix() if index == 0 else run.second_matrix()
        if not found:
            return stop("not identifiable", f"layer {index + 1}: the values do not determine M_{index + 1}")
        run.known = found[:1]
        candidates = [[*known, M] for known in candidates for M in found]
    reason = "no candidate fits"
    for known in candidates:
        run.known = known
        last = run.last_layer()
        if isinstance(last, str):
            reason = last
            continue
        virtual = VirtualWeights((*known, last[0]), last[1], field, "lightning", architecture.causal)
        X = run.random(CHECKS, architecture.widths[0], architecture.tokens)
        if not field.equal(forward_virtual(virtual, X), box(X)):
            reason = "the outputs at held-out inputs differ: the function is not of this architecture"
            continue
        try:
            weights = lift_virtual(virtual, architecture)
        except InputError as error:
            reason = str(error)
            continue
        shown = f"equal outputs at {CHECKS} random inputs over GF({field.p})"
        return Recovery("recovered", shown, (weights,), 0.0, box.queries, seed, field, is_exact=True)
    return stop("failed", reason)
