"""certify decides every case, and each verdict comes with a certificate that verifies."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from flint import fmpq

from attngeom.certification import certify
from attngeom.certification.results import Certification
from attngeom.errors import DomainError, InputError
from attngeom.exact import GF, QQ, RR
from attngeom.layer.coefficients import Coefficients, Term, expand_matrices
from attngeom.verification import verify
from tests.certification.cases import (
    change_one,
    change_table,
    conjugate_pair,
    cubics,
    from_matrices,
    from_table,
    random_layer,
    table,
)
from tests.effort import choose, repeat, thorough


def checked(coefficients: Coefficients, attention: int | None = None) -> Certification:
    """The decision, after its certificate was verified through JSON."""
    result = certify(coefficients, attention)
    assert result.certificate is not None and result.standing == "proven"
    said = {"verdict": result.verdict, "standing": result.standing, "reason": result.reason}
    assert dict(list(result.rows().items())[:3]) == said
    verdict = verify(result.certificate.to_json())
    assert verdict.valid, verdict.reason
    return result


def expands_to(result: Certification, coefficients: Coefficients) -> bool:
    for point in result.points:
        single, cross = expand_matrices(point.A, point.V, point.domain)
        if not np.all(single == coefficients.single[:, 0]):
            return False
        if coefficients.t > 1 and not np.all(cross == coefficients.cross[:, 0, 0]):
            return False
    return bool(result.points)


def test_random_layers_are_realizable_with_weights() -> None:
    rng = np.random.default_rng(0)
    for _ in repeat(120):
        coefficients, size = random_layer(rng)
        result = checked(coefficients, max(size, 1) if rng.random() < 0.5 else None)
        assert result.verdict == "realizable", result.reason
        assert expands_to(result, coefficients)


def test_one_changed_coefficient_is_refuted() -> None:
    rng = np.random.default_rng(1)
    for _ in repeat(120):
        coefficients, _ = random_layer(rng)
        result = checked(change_one(coefficients, rng))
        assert result.verdict == "not_realizable"
        assert result.violated is not None and result.violated.value != "0"


def test_a_changed_table_is_refuted_unless_it_still_splits() -> None:
    rng = np.random.default_rng(2)
    families = set()
    for _ in repeat(120):
        coefficients, _ = random_layer(rng)
        changed = change_table(coefficients, rng)
        result = checked(changed)
        if result.verdict == "not_realizable":
            assert result.violated is not None
            families.add(result.violated.family)
        elif result.verdict == "realizable":
            assert expands_to(result, changed)
        else:
            assert expands_to(result, changed) and result.verdict == "closure_only"
    assert {"segre-quadric", "slice-pencil", "sylvester-resultant"} <= families


def test_conjugate_pairs_are_closure_only() -> None:
    rng = np.random.default_rng(3)
    for _ in repeat(40):
        coefficients = conjugate_pair(rng)
        result = checked(coefficients, 1)
        assert result.verdict == "closure_only"
        assert result.rank == 1
        assert expands_to(result, coefficients)
        assert "-" in result.points[0].domain.written


def test_real_quadratic_factors_give_weights_in_their_field() -> None:
    # x² − 2y² for the first target.
    result = checked(from_table(table(2, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 0): -2}), 2))
    assert result.verdict == "realizable"
    assert result.points[0].domain.written == "Q(sqrt(2))"
    assert len(result.points) == 2


def test_rank_one_pair_has_two_points() -> None:
    A, V = QQ.convert([[1, 2], [0, 0]]), QQ.convert([[3, 5]])
    result = checked(from_matrices(A, V, 2))
    assert len(result.points) == 2
    assert result.rank == 1


def test_boundary_point_has_one_point() -> None:
    k = QQ.convert([[1], [2]])
    result = checked(from_matrices(QQ.matmul(k, QQ.convert([[3, 4]])), k.T, 2))
    assert len(result.points) == 1


def test_zero_function_is_realizable() -> None:
    assert checked(from_table(table(3, 2, {}), 2), 1).rank == 0


def test_rank_above_the_attention_width_is_refuted_by_a_minor() -> None:
    A, V = QQ.convert([[1, 0, 0], [0, 1, 0], [0, 0, 1]]), QQ.convert([[1, 1, 1], [0, 1, 2]])
    result = checked(from_matrices(A, V, 2), 2)
    assert result.verdict == "not_realizable"
    assert result.violated is not None
    assert (result.violated.family, result.violated.degree) == ("attention-rank", 3)
    assert checked(from_matrices(A, V, 2), 3).verdict == "realizable"


LOWEST = [
    # Quadrics x², xy, y² for three targets: every pencil has rank 2, but they span three dimensions.
    ("binary-restriction", 3, table(3, 1, {(0, 0, 0, 0): 1, (0, 0, 1, 1): 1, (0, 1, 1, 2): 1}), None),
    # x² and y²: no common factor.
    ("sylvester-resultant", 4, table(3, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 1): 1}), None),
    # x² and y² in two rows at one target: each row is a product, the two lack a common factor.
    ("sylvester-resultant", 4, table(3, 2, {(0, 0, 0, 0): 1, (1, 1, 1, 0): 1}), None),
    # A quadric of rank 3.
    ("slice-pencil", 3, table(3, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 0): 1, (0, 2, 2, 0): 1}), None),
    # The same, but two targets exceed attention width 1, which a quadric shows.
    ("attention-rank", 2, table(3, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 1): 1, (0, 2, 2, 0): 1}), 1),
    # Rows x·α_m with α = (x, y) and (y, x).
    ("segre-quadric", 2, table(2, 2, {(0, 0, 0, 0): 1, (0, 0, 1, 1): 1, (1, 0, 1, 0): 1, (1, 0, 0, 1): 1}), None),
]


@pytest.mark.parametrize(("family", "degree", "cross", "attention"), LOWEST, ids=[x[0] for x in LOWEST])
def test_violated_invariant_of_lowest_degree(
    family: str, degree: int, cross: np.ndarray, attention: int | None
) -> None:
    result = checked(from_table(cross, 2), attention)
    assert result.violated is not None
    assert (result.violated.family, result.violated.degree) == (family, degree)


def test_violation_between_rows_is_found_on_the_target_side() -> None:
    result = checked(from_table(table(3, 2, {(0, 0, 0, 0): 1, (1, 1, 1, 0): 1}), 2))
    assert result.violated is not None
    assert result.violated.data["slice"] == {"side": "target", "index": 0}


def test_term_outside_the_support_is_refuted() -> None:
    zero = from_table(table(2, 1, {}), 3)
    term = Term((0, 0), ((0, 0), (0, 1), (1, 2)), fmpq(3, 7))
    result = checked(dataclasses.replace(zero, outside=(term,)))
    assert result.violated is not None
    assert (result.violated.family, result.violated.value) == ("support", "3/7")


@pytest.mark.parametrize(("seed", "d"), [(0, 6), *thorough((0, 9), (1, 9))])
def test_large_layers_are_decided(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    coefficients = from_matrices(QQ.random((d, d), rng), QQ.random((d - 2, d), rng), 2)
    assert checked(coefficients).verdict == "realizable"
    assert checked(change_table(coefficients, rng)).verdict == "not_realizable"
    assert checked(coefficients, 4).verdict == "not_realizable"


# One token.


def test_random_single_token_layers_are_realizable() -> None:
    rng = np.random.default_rng(4)
    for _ in repeat(120):
        coefficients, size = random_layer(rng, tokens=(1,))
        result = checked(coefficients, max(size, 1) if rng.random() < 0.5 else None)
        assert result.verdict == "realizable", result.reason
        assert not result.points or expands_to(result, coefficients)


def test_changed_single_token_layers_are_decided() -> None:
    rng = np.random.default_rng(5)
    verdicts = set()
    for _ in repeat(120):
        coefficients, _ = random_layer(rng, tokens=(1,))
        verdicts.add(checked(change_one(coefficients, rng), 1).verdict)
    assert verdicts == {"realizable", "not_realizable", "closure_only"}


CUBICS = [
    # x³ + 2y³ + 4z³ − 6xyz is a norm from Q(∛2): one real linear factor, the others conjugate.
    ("norm form", cubics(3, [{(0, 0, 0): 1, (1, 1, 1): 2, (2, 2, 2): 4, (0, 1, 2): -6}]), 2, "realizable"),
    ("norm form, a=1", cubics(3, [{(0, 0, 0): 1, (1, 1, 1): 2, (2, 2, 2): 4, (0, 1, 2): -6}]), 1, "closure_only"),
    # x³ − 3xy² + y³ has three real roots over a cubic field.
    ("totally real", cubics(2, [{(0, 0, 0): 1, (0, 1, 1): -3, (1, 1, 1): 1}]), 1, "realizable"),
    ("one real root", cubics(2, [{(0, 0, 0): 1, (1, 1, 1): -2}]), 1, "closure_only"),
    ("definite factor", cubics(3, [{(0, 0, 2): 1, (1, 1, 2): 1}]), 1, "closure_only"),
    ("definite factor, a=2", cubics(3, [{(0, 0, 2): 1, (1, 1, 2): 1}]), 2, "realizable"),
    ("indefinite over Q(√2)", cubics(3, [{(0, 0, 2): 1, (1, 1, 2): -2}]), 1, "realizable"),
    ("rank 3 form, a=1", cubics(4, [{(0, 0, 3): 1, (1, 1, 3): -1, (2, 2, 3): 1}]), 1, "not_realizable"),
    ("signature (2, 1), a=2", cubics(4, [{(0, 0, 3): 1, (1, 1, 3): -1, (2, 2, 3): 1}]), 2, "realizable"),
    ("cube", cubics(2, [{(0, 0, 0): 8, (0, 0, 1): 12, (0, 1, 1): 6, (1, 1, 1): 1}]), 1, "realizable"),
    ("double line", cubics(3, [{(0, 0, 1): 1}]), 1, "realizable"),
    ("cuspidal cubic", cubics(3, [{(1, 1, 2): 1, (0, 0, 0): 1}]), None, "not_realizable"),
    ("nodal cubic", cubics(3, [{(1, 1, 2): 1, (0, 0, 0): 1, (0, 0, 2): 1}]), None, "not_realizable"),
    ("Fermat cubic in 4 variables", cubics(4, [{(k, k, k): 1 for k in range(4)}]), None, "not_realizable"),
    # Pairwise common quadratic factors, none in common.
    ("triangle", cubics(3, [{(0, 1, 2): 1}, {(0, 0, 1): 1}, {(0, 0, 2): 1}]), None, "not_realizable"),
    ("common line only", cubics(3, [{(0, 0, 0): 1}, {(0, 1, 1): 1}]), None, "not_realizable"),
    ("common quadric", cubics(3, [{(0, 0, 1): 1}, {(0, 0, 2): 1}, {(0, 0, 0): 5}]), 1, "realizable"),
]


@pytest.mark.parametrize(("coefficients", "attention", "verdict"), [x[1:] for x in CUBICS], ids=[x[0] for x in CUBICS])
def test_cubics_with_one_token(coefficients: Coefficients, attention: int | None, verdict: str) -> None:
    assert checked(coefficients, attention).verdict == verdict


# Floats.


def test_float_layers_are_recognised_at_every_scale() -> None:
    rng = np.random.default_rng(6)
    for _ in range(12):
        d, d_out, t = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        A, V = rng.standard_normal((d, d)) * 10.0 ** rng.integers(-20, 20), rng.standard_normal((d_out, d))
        result = certify(from_matrices(A, V, t, RR))
        assert result.verdict == "realizable", result.reason
        assert result.distance is not None and result.distance < 1e-9
        assert result.certificate is None


def test_float_layers_far_from_attention_are_refused() -> None:
    rng = np.random.default_rng(7)
    for _ in range(choose(4, 8)):
        d, d_out = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        cross = rng.standard_normal((d_out, d * (d + 1) // 2, d))
        result = certify(from_table(cross, 2, RR))
        assert result.verdict == "not_realizable", result.reason


def test_own_column_that_does_not_follow_from_the_others_is_refused() -> None:
    layer = from_matrices(QQ.eye(2), QQ.eye(2), 2)
    single = layer.single.copy()
    single[0] += 1
    found = checked(dataclasses.replace(layer, single=single))
    assert found.verdict == "not_realizable" and "symmetrization" in found.reason


def test_float_conjugate_pair_is_closure_only() -> None:
    cross = table(3, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 0): 2}).astype(float)
    found = from_table(cross, 2, RR)
    assert certify(found).verdict == "closure_only"
    outside = Term((0, 0), ((0, 1), (0, 1), (0, 1)), 0.5)
    assert certify(dataclasses.replace(found, outside=(outside,))).verdict == "not_realizable"


def test_float_noise_near_the_tolerance_is_undecided() -> None:
    rng = np.random.default_rng(8)
    coefficients = from_matrices(rng.standard_normal((3, 3)), rng.standard_normal((1, 3)), 2, RR)
    cross = coefficients.cross[:, 0, 0]
    noisy = from_table(cross + 1e-6 * rng.standard_normal(cross.shape), 2, RR)
    distance = certify(noisy, tolerance=1e-15).distance
    assert distance is not None
    result = certify(noisy, tolerance=distance / 1.05)
    assert result.verdict == result.standing == "undecided"
    assert certify(noisy, tolerance=distance * 2).verdict == "realizable"
    assert certify(noisy, tolerance=distance / 1e4).verdict == "not_realizable"


def test_lower_bound_is_below_the_distance_of_known_layers() -> None:
    from attngeom.layer.nearest import lower_bound

    rng = np.random.default_rng(9)
    for _ in repeat(30):
        d, d_out, t = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
        layer = from_matrices(rng.standard_normal((d, d)), rng.standard_normal((d_out, d)), t, RR)
        noise = 10.0 ** rng.integers(-6, 1)
        single = layer.single + noise * rng.standard_normal(layer.single.shape)
        cross = layer.cross + noise * rng.standard_normal(layer.cross.shape)
        moved = dataclasses.replace(layer, single=single, cross=cross)
        distance = np.sqrt(np.sum((single - layer.single) ** 2) + np.sum((cross - layer.cross) ** 2))
        assert lower_bound(layer) < 1e-12
        assert lower_bound(moved) <= distance * (1 + 1e-9)


@pytest.mark.parametrize("attention", [0, -1, True, 1.5])
def test_bad_attention_is_an_input_error(attention: object) -> None:
    with pytest.raises(InputError, match="positive integer"):
        certify(from_table(table(2, 1, {}), 2), attention)  # type: ignore[arg-type]


def test_finite_fields_are_a_domain_error() -> None:
    field = GF(101)
    with pytest.raises(DomainError, match="rational"):
        certify(from_matrices(field.eye(2), field.eye(2), 2, field))
