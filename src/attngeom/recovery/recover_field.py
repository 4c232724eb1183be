"""Deep lightning networks from black boxes over GF(p), exactly: linear algebra and common roots of two polynomials.

Virtual layers cannot be undone over a finite field in general. Instead, let k layers be known. Two tokens x, y whose
outputs Y_1, Y_2 after k − 1 layers satisfy Y_1ᵀ M_k Y_1 = Y_2ᵀ M_k Y_1 = 0 are sent to 0 and some y' by layer k: the
derivative of the output of the network at the token of x is there a multiple of y'ᵀ M_{k+1} Ẏ_1, which gives M_{k+1}.
The last layer is a table of quadrics that enters linearly, and is split.
"""

from __future__ import annotations

import numpy as np
from flint import nmod_poly

from attngeom.errors import DomainError, InputError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, PrimeField
from attngeom.layer.blackbox import BlackBox
from attngeom.layer.quadrics import context_products
from attngeom.layer.splitting import LayerMatrices, split_layer
from attngeom.limits.trials import EMPTY_PLANES, EXACT_CHECKS, SPARE_FIELD_ROWS
from attngeom.limits.work import FIELD_LAYERS
from attngeom.network import Architecture, VirtualWeights, Weights
from attngeom.network.virtual import forward_virtual
from attngeom.recovery.peeling import Probe
from attngeom.recovery.results import Recovery, undetermined
from attngeom.recovery.virtual_lift import lift_virtual
from attngeom.results import Failure


class _Field(Probe):
    """One run over GF(p); ``known`` are M_1, …, M_k."""

    def __init__(self, box: BlackBox, architecture: Architecture, field: PrimeField, seed: int) -> None:
        super().__init__(box, architecture, field, np.random.default_rng(seed))
        self.field = field
        self.degree = 3**architecture.num_layers

    def random(self, *shape: int) -> Array:
        return self.field.random(shape, self.rng)

    def inverse_powers(self, degree: int) -> Array:
        """The matrix that turns the values of a polynomial at 0, …, degree into its coefficients."""
        powers = [[pow(s, k, self.field.p) for k in range(degree + 1)] for s in range(degree + 1)]
        return self.field.inverse(self.field.convert(powers))

    def lines(self, x: Array, y: Array, u: Array) -> Array:
        """The inputs with columns x + s u and y for s = 0, …, degree and each direction u: (degree + 1, N) of them."""
        s = np.arange(self.degree + 1)[:, None, None]
        moved = self.field.reduce(x + self.field.reduce(self.field.convert(s) * u[None]))
        return self.embed(moved.reshape(-1, self.d), np.broadcast_to(y, moved.shape).reshape(-1, self.d))

    def derivatives(self, outputs: Array, count: int) -> Array:
        """The coefficients of s in the outputs (…, d') at the token of x along ``count`` lines."""
        weights = self.inverse_powers(self.degree)[1]
        stacked = outputs[:, :, self.places[0]].reshape(self.degree + 1, -1)
        return self.field.matmul(weights[None, :], stacked).reshape(count, -1)

    def solutions(self, rows: list[Array]) -> list[Array]:
        """The d×d matrices annihilated by all rows, up to scale: one, or the singular ones in a pencil of them.

        A pencil remains for M_{k+1} if M_k is singular; M_{k+1} is one of its singular members if a_{k+1} < d.
        """
        basis = self.field.nullspace(np.stack(rows)).reshape(-1, self.d, self.d)
        if len(basis) != 2:
            return list(basis) if len(basis) == 1 else []
        members = [self.field.reduce(basis[0] + basis[1] * s) for s in range(self.d + 1)]
        determinants = self.field.convert([[self.field.det(M)] for M in members])
        values = self.field.matmul(self.inverse_powers(self.d), determinants)[:, 0]
        roots = self.roots(nmod_poly(values.tolist(), self.field.p))
        return [self.field.reduce(basis[0] + self.field.reduce(basis[1] * root)) for root in roots]

    def roots(self, polynomial: nmod_poly) -> list[int]:
        """The roots in GF(p) of a polynomial that is not zero, else none."""
        return [int(root) for root, _ in polynomial.roots()] if polynomial.degree() > 0 else []

    def compare(self, y: Array, images: Array, values: Array) -> Array:
        """The equation (yᵀ M images_0) value_1 = (yᵀ M images_1) value_0 for M, from one entry of the values."""
        left, right = (self.field.reduce(y[:, None] * image[None, :]).ravel() for image in images)
        reduce = self.field.reduce
        entry = int(np.argmax(values[0] != 0))
        return reduce(reduce(left * values[1, entry]) - reduce(right * values[0, entry]))

    def next_matrix(self) -> list[Array]:
        """The candidates for M_{k+1}, from pairs of tokens that the known layers send to 0 and y'."""
        rows: list[Array] = []
        empty = 0
        while len(rows) < self.d**2 + SPARE_FIELD_ROWS:
            pairs = self.killed_pairs()
            empty = 0 if pairs else empty + 1
            if empty == EMPTY_PLANES:
                return []
            for x, y in pairs:
                u = self.random(2, self.d)
                X = self.lines(x, y, u)
                image = self.propagate(self.embed(x[None], y[None]), self.known)[0, :, self.places[1]]
                images = self.derivatives(self.propagate(X, self.known), 2)
                rows.append(self.compare(image, images, self.derivatives(self.box(X), 2)))
        return self.solutions(rows)

    def killed_pairs(self) -> list[tuple[Array, Array]]:
        """Pairs (x, y) in a random plane with output 0 at x after the known layers, not before, and not 0 at y.

        Without known layers: x = 0 and any y.
        """
        if not self.known:
            return [(self.field.zeros((self.d,)), self.random(self.d))]
        degree = 2 * 3 ** (len(self.known) - 1)
        base = self.random(3, 2, self.d)
        bezout = degree**2
        grid = np.array([[s, r] for s in range(bezout + 1) for r in range(degree + 1)])
        values = self.conditions(self.plane(base, grid)).reshape(2, bezout + 1, degree + 1)
        # In r by interpolation for every s, then the resultant in s.
        in_r = self.field.matmul(values.reshape(-1, degree + 1), self.inverse_powers(degree).T)
        f, g = in_r.reshape(2, bezout + 1, degree + 1).tolist()
        p = self.field.p
        resultants = [int(nmod_poly(a, p).resultant(nmod_poly(b, p))) for a, b in zip(f, g)]
        in_s = self.field.matmul(self.inverse_powers(bezout), self.field.convert(np.array(resultants)[:, None]))
        pairs = []
        for s in self.roots(nmod_poly(in_s[:, 0].tolist(), p)):
            points = self.plane(base, np.array([[s, r] for r in range(degree + 1)]))
            f, g = self.field.matmul(self.conditions(points), self.inverse_powers(degree).T).tolist()
            for r in self.roots(nmod_poly(f, p).gcd(nmod_poly(g, p))):
                x, y = self.plane(base, np.array([[s, r]]))[0]
                before = self.propagate(self.embed(x[None], y[None]), self.known[:-1])
                after = self.propagate(before, self.known[-1:])
                if before[0, :, self.places[0]].any() and after[0, :, self.places[1]].any():
                    pairs.append((x, y))
        return pairs

    def plane(self, base: Array, grid: Array) -> Array:
        """The pairs base_0 + s base_1 + r base_2 for each (s, r): shape (N, 2, d)."""
        combined = self.field.matmul(self.field.convert(grid), base[1:].reshape(2, -1)).reshape(-1, 2, self.d)
        return self.field.reduce(base[0] + combined)

    def conditions(self, pairs: Array) -> Array:
        """Y_1ᵀ M_k Y_1 and Y_2ᵀ M_k Y_1 for each pair, as two rows."""
        Y = self.propagate(self.embed(pairs[:, 0], pairs[:, 1]), self.known[:-1])
        first, second = (Y[:, :, place] for place in self.places)
        right = self.field.matmul(first, self.known[-1].T)
        return np.stack([self.field.reduce(self.field.reduce(y * right).sum(axis=1)) for y in (first, second)])

    def last_layer(self) -> LayerMatrices | Failure:
        """(M_l, L) from the table of quadrics of the last layer, which enters linearly."""
        field, d, t = self.field, self.d, self.architecture.tokens
        pairs = d * (d + 1) // 2
        X = self.random(pairs * d // t + 4, d, t)
        rows = context_products(self.propagate(X, self.known), self.architecture.mask, field)
        table = field.solve(np.concatenate(rows), np.concatenate(swap(self.box(X))))
        if table is None:
            return _foreign("last layer", "the last layer is no table of quadrics")
        split = split_layer(table.T.reshape(-1, d, pairs), field)
        if not split.points:
            return _foreign("last layer", "the quadrics of the last layer do not split")
        return split.points[0]

    def finish(self) -> Weights | Failure:
        """The weights that go on from the known layers, or why there are none."""
        last = self.last_layer()
        if isinstance(last, Failure):
            return last
        virtual = VirtualWeights((*self.known, last.A), last.V, self.field, self.architecture.rule)
        X = self.random(EXACT_CHECKS, self.d, self.architecture.tokens)
        if not self.field.equal(forward_virtual(virtual, X), self.box(X)):
            return _foreign("check", "the outputs at held-out inputs differ")
        try:
            return lift_virtual(virtual, self.architecture)
        except InputError as error:
            return Failure(stage="weights", reason=str(error))

    def search(self, known: list[Array]) -> Weights | Failure:
        """The weights that go on from known layers, or the last reason why there are none, depth first."""
        self.known = known
        if len(known) == self.architecture.num_layers - 1:
            return self.finish()
        reason = f"the values do not determine M_{len(known) + 1}"
        result: Weights | Failure = undetermined(len(known), reason)
        for M in self.next_matrix():
            result = self.search([*known, M])
            if isinstance(result, Weights):
                break
        return result


def _foreign(stage: str, reason: str) -> Failure:
    return Failure(stage=stage, reason=f"{reason}: the function is not of this architecture")


def recover_field(box: BlackBox, architecture: Architecture, seed: int = 0) -> Recovery:
    """Weights over GF(p) of a lightning network with two to five layers, checked at random inputs.

    More than two layers need d ≥ 3. A large prime is needed: degrees 3^l must be below p.
    """
    field = box.domain
    layers = architecture.num_layers
    if not isinstance(field, PrimeField) or field.p <= 3**layers:
        raise DomainError(f"a box over {field.name} given; GF(p) with p above the degree {3**layers} is required")

    if layers > FIELD_LAYERS or (layers > 2 and architecture.widths[0] < 3):
        reason = "over GF(p) two layers are recovered, and three to five if d ≥ 3; use a box over Q"
        result: Weights | Failure = Failure(stage="architecture", reason=reason)
    else:
        result = _Field(box, architecture, field, seed).search([])
    if isinstance(result, Failure):
        return Recovery.stopped(result, queries=box.queries, seed=seed, domain=field)
    reason = f"equal outputs at {EXACT_CHECKS} random inputs over GF({field.p})"
    return Recovery.found(result, reason, 0.0, standing="probabilistic", queries=box.queries, seed=seed)
