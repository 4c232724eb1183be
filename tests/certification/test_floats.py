"""Float coefficients at every scale: verdicts do not depend on powers of two, and every bound encloses the truth."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from flint import fmpq

from attngeom.certification import certify
from attngeom.errors import InputError, SizeError
from attngeom.exact import QQ, RR
from attngeom.exact.arrays import Array
from attngeom.layer.coefficients import Coefficients, expand_matrices, scale_to_one
from attngeom.layer.float_splitting import split_layer_floats
from attngeom.layer.nearest import lower_bound
from tests.certification.cases import from_matrices, from_table
from tests.effort import repeat, thorough

EXPONENTS = (-1020, -541, 1, 341, 900)


def scaled(coefficients: Coefficients, exponent: int) -> Coefficients:
    single, cross = np.ldexp(coefficients.single, exponent), np.ldexp(coefficients.cross, exponent)
    return dataclasses.replace(coefficients, single=single, cross=cross)


def dyadic_layer(rng: np.random.Generator, tokens: int = 0) -> Coefficients:
    """Small integer weights: the coefficients are floats without rounding, so the array is exactly that of a layer."""
    d, d_out, t = int(rng.integers(1, 4)), int(rng.integers(1, 4)), tokens or int(rng.integers(1, 4))
    rank = int(rng.integers(0, d + 1))
    A = rng.integers(-4, 5, (d, rank)) @ rng.integers(-4, 5, (rank, d))
    return from_matrices(A.astype(float), rng.integers(-4, 5, (d_out, d)).astype(float), t, RR)


def exact_distance_squared(coefficients: Coefficients, A: Array, V: Array) -> fmpq:
    """‖c − c(A, V)‖², over Q."""
    single, cross = expand_matrices(QQ.convert(A), QQ.convert(V), QQ)
    differences = [*(QQ.convert(coefficients.single) - single[:, None]).ravel()]
    differences += [*(QQ.convert(coefficients.cross) - cross[:, None, None]).ravel()]
    return sum((x * x for x in differences), start=fmpq(0))


def norm_squared(coefficients: Coefficients) -> fmpq:
    values = [*QQ.convert(coefficients.single).ravel(), *QQ.convert(coefficients.cross).ravel()]
    return sum((x * x for x in values), start=fmpq(0))


@pytest.mark.parametrize("seed", [0, 3, *thorough(1, 2)])
def test_verdicts_do_not_depend_on_powers_of_two(seed: int) -> None:
    rng = np.random.default_rng(seed)
    coefficients = dyadic_layer(rng)
    if seed % 2:
        cross = rng.standard_normal((2, 3, 2))
        coefficients = from_table(cross, 2, RR)
    reference = certify(coefficients, 1)
    for exponent in EXPONENTS:
        found = certify(scaled(coefficients, exponent), 1)
        assert found.verdict == reference.verdict
        assert found.reason == reference.reason
        for point in found.points:
            assert np.all(np.isfinite(point.A)) and np.all(np.isfinite(point.V))


def test_layers_are_never_refused_even_without_tolerance() -> None:
    rng = np.random.default_rng(1)
    for number in repeat(40):
        coefficients = scaled(dyadic_layer(rng), int(rng.choice(EXPONENTS)))
        for tolerance in (0.0, 1e-15, 1e-9)[number % 3 :: 3]:
            assert certify(coefficients, tolerance=tolerance).verdict in ("realizable", "undecided")
        assert lower_bound(scale_to_one(coefficients)[0]) == 0.0


def test_what_is_called_realizable_lies_within_the_tolerance_exactly() -> None:
    rng = np.random.default_rng(2)
    verdicts = set()
    for _ in repeat(40):
        layer = dyadic_layer(rng)
        noise = 10.0 ** rng.uniform(-13, -5)
        cross = layer.cross * (1 + noise * rng.standard_normal(layer.cross.shape))
        single = layer.single * (1 + noise * rng.standard_normal(layer.single.shape))
        moved = scaled(dataclasses.replace(layer, single=single, cross=cross), int(rng.choice(EXPONENTS)))
        tolerance = 10.0 ** rng.uniform(-12, -6)
        found = certify(moved, tolerance=tolerance)
        verdicts.add(found.verdict)
        limit = fmpq(*tolerance.as_integer_ratio()) ** 2 * norm_squared(moved)
        for point in found.points:
            assert exact_distance_squared(moved, point.A, point.V) <= limit
        if found.verdict == "not_realizable":
            # The layer that was moved is one that must be farther away than the tolerance.
            exponent = scale_to_one(moved)[1] - scale_to_one(layer)[1]
            back = scaled(layer, exponent)
            squares = [
                (QQ.convert(a) - QQ.convert(b)) ** 2
                for a, b in ((moved.single, back.single), (moved.cross, back.cross))
            ]
            assert sum((x for part in squares for x in part.ravel()), start=fmpq(0)) > limit
    assert {"realizable", "not_realizable"} <= verdicts


@pytest.mark.parametrize("value", [1e-320, 1e307, *thorough(1e-163, 1e-150, 1e80, 1e103, 1e150)])
def test_extreme_values_give_finite_answers(value: float) -> None:
    cross = np.array([[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]]) * value
    for coefficients in (from_table(cross, 2, RR), from_matrices(np.eye(2) * value, np.ones((1, 2)), 2, RR)):
        for tolerance in (0.0, 1e-9):
            found = certify(coefficients, tolerance=tolerance)
            assert "inf" not in found.reason and "nan" not in found.reason
            assert found.distance is not None and np.isfinite(found.distance)
    assert certify(from_table(cross, 2, RR)).verdict == "not_realizable"
    assert certify(from_matrices(np.eye(2) * value, np.ones((1, 2)), 2, RR)).verdict == "realizable"


@pytest.mark.parametrize("tolerance", [float("nan"), float("inf"), -1.0])
def test_tolerances_that_are_no_distance_are_refused(tolerance: float) -> None:
    with pytest.raises(InputError, match="tolerance"):
        certify(from_matrices(np.eye(2), np.eye(2), 2, RR), tolerance=tolerance)


def test_widths_whose_least_squares_take_minutes_are_refused() -> None:
    cross = np.zeros((1, 2, 1, 65 * 33, 65))
    cross[0, 0, 0, 0, 0] = 1.0
    coefficients = Coefficients(65, 1, 2, np.zeros((1, 2, 65 * 66 * 67 // 6)), cross, RR)
    with pytest.raises(SizeError, match="d ≤ 64"):
        certify(coefficients)
    with pytest.raises(SizeError, match="d ≤ 64"):
        split_layer_floats(coefficients.table + 1.0)
