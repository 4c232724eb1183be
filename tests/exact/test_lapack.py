"""Linear algebra of floats near the end of their range, and that no module goes around it."""

import ast
from pathlib import Path

import numpy as np
import pytest

from attngeom.errors import InputError, RangeError, SingularError
from attngeom.exact import RR, lapack

SOURCE = Path(lapack.__file__).parents[1]
HOME = Path(lapack.__file__)
MATRIX = np.random.default_rng(0).standard_normal((3, 3))
GRAM = MATRIX @ MATRIX.T
SCALES = [2.0**-1060, 2.0**-900, 1.0, 2.0**900, 2.0**1018]
DEGREES = {
    # How each result scales with its matrix, where that is a matter of one power.
    "svdvals": (lambda a: lapack.svdvals(a), 1),
    "triangle": (lambda a: lapack.triangle(a), 1),
    "eigvalsh": (lambda a: lapack.eigvalsh(a), 1),
    "eig": (lambda a: np.sort(lapack.eig(a)[0]), 1),
    "norm": (lambda a: np.asarray(lapack.norm(a)), 1),
    "pivoted_qr": (lambda a: lapack.pivoted_qr(a)[0], 1),
    "solve": (lambda a: lapack.solve(a, a @ np.ones(3)), 0),
    "lstsq": (lambda a: lapack.lstsq(a, a @ np.ones(3)), 0),
    "cond": (lambda a: np.asarray(lapack.cond(a)), 0),
    "rank": (lambda a: np.asarray(lapack.matrix_rank(a)), 0),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", DEGREES)
def test_results_scale_with_the_matrix(name, scale):
    function, degree = DEGREES[name]
    # Denormal numbers keep few digits.
    accuracy = 1e-2 if scale < 1e-308 else 1e-12
    # Products, for NumPy 2.5 divides complex numbers by way of the inverse, which a denormal number does not have.
    assert np.allclose(function(GRAM * scale), function(GRAM) * scale**degree, rtol=accuracy, atol=0)


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_inverses_of_extreme_matrices_are_finite(scale):
    for inverse in (lapack.inv(GRAM * scale), lapack.pinv(GRAM * scale, rcond=1e-13)):
        assert np.allclose(inverse @ (GRAM * scale), np.eye(3))
    factor = lapack.cholesky(GRAM * scale) / np.sqrt(scale)
    assert np.allclose(factor @ factor.T, GRAM)


def test_determinants_beyond_the_range_are_infinite_or_zero():
    assert lapack.det(np.eye(2) * 1e300) == np.inf and lapack.det(np.eye(2) * 1e-300) == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_infinities_do_not_reach_lapack(value, capfd):
    bad = MATRIX.copy()
    bad[1, 2] = value
    for name in ("svd", "svdvals", "qr", "triangle", "pivoted_qr", "eig", "eigh", "eigvalsh", "matrix_rank", "det"):
        with pytest.raises(RangeError, match="range of floats"):
            getattr(lapack, name)(bad)
    with pytest.raises(RangeError):
        lapack.lstsq(bad, MATRIX)
    for broken in (lambda: lapack.inv(bad), lambda: lapack.solve(MATRIX, bad)):
        with pytest.raises(SingularError):
            broken()
    with pytest.raises(SingularError, match="positive"):
        lapack.cholesky(-GRAM)
    assert lapack.norm(bad) == lapack.cond(bad) == np.inf
    assert capfd.readouterr().out == ""


def test_singular_matrices_are_an_error_with_a_message():
    for broken in (lambda: lapack.inv(np.zeros((2, 2))), lambda: lapack.inv(np.full((1, 1), 1e-320))):
        with pytest.raises(SingularError, match="singular"):
            broken()


def uses_of_linalg(path):
    """Names of numpy.linalg or scipy.linalg that a module uses; norms and tools without LAPACK are harmless."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "linalg" in text else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "linalg":
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module in ("numpy.linalg", "scipy.linalg"):
            yield from (alias.name for alias in node.names)


def test_lapack_is_called_from_one_home():
    allowed = {"norm", "hadamard", "solve_triangular"}
    for path in SOURCE.rglob("*.py"):
        assert path == HOME or set(uses_of_linalg(path)) <= allowed, path
    assert not set(uses_of_linalg(HOME)) <= allowed


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, 10**400])
def test_exact_numbers_beyond_the_range_are_refused(number):
    with pytest.raises(InputError, match="finite numbers"):
        RR.convert([number])


def test_eigenvalues_of_the_largest_matrices_are_complex_numbers():
    turn = np.array([[0.0, -1.0], [1.0, 0.0]]) * 1.5e308
    assert np.allclose(np.sort_complex(lapack.eig(turn)[0] / 1.5e308), [-1j, 1j])
