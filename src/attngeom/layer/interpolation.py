"""Coefficients of a function that can only be called: exact interpolation, then a check that it was a layer's map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import triple_places, triples
from attngeom.layer.blackbox import BlackBox, QueryPlan, on_grid
from attngeom.layer.coefficients import Coefficients, array_shapes, check_size
from attngeom.layer.quadrics import polar_points, polarize
from attngeom.limits.memory import BLACK_BOX_BATCH
from attngeom.limits.trials import INTERPOLATION_CHECKS


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Coefficients of a black box and the number of queries; floats: the largest relative deviation at check inputs."""

    coefficients: Coefficients
    queries: int
    residual: float | None


def interpolate(
    box: Callable[[Array], Array],
    d: int,
    d_out: int,
    t: int,
    domain: Domain,
    seed: int = 0,
    tolerance: float = 1e-8,
) -> Interpolation:
    """The coefficients of a cubic map with the support of a lightning layer, from its values.

    ``box`` maps arrays of shape (batch, d, t) to (batch, d_out, t). A cubic form c has c(aaa) = F(e_a); its mixed
    coefficients follow from F(e_a ± e_b) and F(e_a + e_b + e_c); the cross part from F with two nonzero columns. The
    result is compared with the box at three random inputs; the first input where they differ is named in the
    error. Needs characteristic other than 2.

    >>> from attngeom.exact import QQ
    >>> cube = lambda X: QQ.convert(X * X * X * 5)
    >>> interpolate(cube, 1, 1, 1, QQ).coefficients.single[0, 0, 0]
    5
    """
    check_size(d, d_out, t, not domain.rounds)
    if domain.encloses or domain.characteristic in (2, 3):
        raise DomainError("interpolation over balls or in characteristic 2 or 3; use Q, floats or a larger prime")
    asked = box if isinstance(box, BlackBox) else BlackBox(box, domain)
    asked.d_out, before = d_out, asked.queries
    ask = _Queries(asked, (d, t))
    single_shape, cross_shape = array_shapes(d, d_out, t)
    single, cross = domain.zeros(single_shape), domain.zeros(cross_shape)
    for j in range(t):
        single[:, j] = _interpolate_single(ask, j, domain)
        for place, n in enumerate(n for n in range(t) if n != j):
            cross[:, j, place] = _interpolate_cross(ask, j, n, domain)
    coefficients = Coefficients(d, d_out, t, single, cross, domain)
    rng = np.random.default_rng(seed)
    shape = (INTERPOLATION_CHECKS, d, t)
    if domain.rounds:
        inputs = on_grid(domain.random(shape, rng))
    else:
        inputs = domain.convert(rng.integers(0, 2**31, size=shape))
    residual = _check(asked, coefficients, inputs, tolerance)
    return Interpolation(coefficients, asked.queries - before, residual)


@dataclass(frozen=True)
class _Queries:
    """The answers of a box to inputs of one shape (d, t), asked in batches."""

    box: BlackBox
    shape: tuple[int, int]

    def __call__(self, inputs: Array) -> Array:
        batches = (inputs[start : start + BLACK_BOX_BATCH] for start in range(0, len(inputs), BLACK_BOX_BATCH))
        return np.concatenate([self.box.domain.convert(self.box(batch)) for batch in batches])

    def columns(self, vectors: dict[int, Array], target: int) -> Array:
        """Column ``target`` of the answers when the given columns of X hold the rows of integer arrays."""
        count = len(next(iter(vectors.values())))
        inputs = np.zeros((count, *self.shape), dtype=np.int64)
        for column, rows in vectors.items():
            inputs[:, :, column] = rows
        return self(self.box.domain.convert(inputs))[:, :, target]


def _interpolate_single(ask: _Queries, j: int, domain: Domain) -> Array:
    """The cubic form in column j: an array (d_out, C(d+2, 3)).

    In place of its coefficients at aaa, aab, abb, abc first stand F(a), F(a − b), F(a + b), F(a + b + c).
    """
    d = ask.shape[0]
    unit, R = np.eye(d, dtype=np.int64), np.array(triples(d)).T
    k, l, m = R
    kinds = 2 * (l != m) + (k != l)  # aaa, abb, aab, abc: the order of the queries
    points = unit[k] + (k != l)[:, None] * unit[l] + np.array([0, 0, -1, 1])[kinds, None] * unit[m]
    order = np.argsort(kinds, kind="stable")
    form = ask.columns({j: points[order]}, j).T[:, np.argsort(order)]
    half = domain.convert([["1/2"]])[0, 0]
    a, b = np.triu_indices(d, 1)
    # F(a+b) ± F(a-b) isolates the even and the odd part in b.
    odd, even = triple_places(a, a, b, d), triple_places(a, b, b, d)
    minus, plus = form[:, odd], form[:, even]
    form[:, even] = domain.reduce(domain.reduce(plus + minus) * half - form[:, triple_places(a, a, a, d)])
    form[:, odd] = domain.reduce(domain.reduce(plus - minus) * half - form[:, triple_places(b, b, b, d)])
    distinct = np.flatnonzero(kinds == 3)
    for x, y, z in combinations_with_replacement(range(3), 3):
        if (x, y, z) != (0, 1, 2):
            known = triple_places(R[x, distinct], R[y, distinct], R[z, distinct], d)
            form[:, distinct] = domain.reduce(form[:, distinct] - form[:, known])
    return form


def _interpolate_cross(ask: _Queries, j: int, n: int, domain: Domain) -> Array:
    """The part linear in column j and quadratic in column n: an array (d_out, C(d+1, 2), d)."""
    d = ask.shape[0]
    unit = np.eye(d, dtype=np.int64)
    base = ask.columns({j: unit}, j)
    context = polar_points(d)
    values = ask.columns({j: np.repeat(unit, len(context), axis=0), n: np.tile(context, (d, 1))}, j)
    quadrics = domain.reduce(values.reshape(d, len(context), -1) - base[:, None, :])
    return swap(polarize(np.transpose(quadrics, (2, 0, 1)), domain))


def _check(box: BlackBox, coefficients: Coefficients, inputs: Array, tolerance: float) -> float | None:
    """Compare the polynomial with the box; name the first input where they differ."""
    plan, answers = box.ask("check", QueryPlan(inputs))
    given, predicted = box.domain.convert(answers), coefficients.evaluate(plan.inputs)
    worst = 0.0
    for X, left, right in zip(plan.inputs, given, predicted):
        if coefficients.domain.rounds:
            deviation = float(np.abs(left - right).max() / max(1.0, np.abs(right).max()))
            worst = max(worst, deviation)
            differs = deviation > tolerance
        else:
            differs = not coefficients.domain.equal(left, right)
        if differs:
            shown = [[coefficients.domain.format(x) for x in row] for row in X]
            raise InputError(
                "the black box is not a cubic map with the support of a lightning layer:"
                f" at X = {str(shown)[:200]} its value differs from its interpolated polynomial"
            )
    return worst if coefficients.domain.rounds else None
