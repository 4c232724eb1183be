"""Damped least squares: one or many fits, with matrices and operators, where derivatives lack rank."""

import numpy as np
from scipy.sparse.linalg import aslinearoperator

from attngeom.exact.fitting import fit

STARTS = np.array([[3.0, -2.0, 0.5], [0.1, 0.2, 0.3], [-5.0, 4.0, 4.0]])


def misfit(x):
    """x y = 2, x z = 3: a curve of solutions."""
    return np.stack([x[..., 0] * x[..., 1] - 2, x[..., 0] * x[..., 2] - 3], axis=-1)


def derivative(x):
    B = np.zeros((*x.shape[:-1], 2, 3))
    B[..., 0, 0], B[..., 0, 1], B[..., 1, 0], B[..., 1, 2] = x[..., 1], x[..., 0], x[..., 2], x[..., 0]
    return B, np.ones(3)


def test_stacks_are_fitted_like_their_members():
    found = fit(STARTS, misfit, derivative, steps=40)
    assert np.abs(misfit(found)).max() < 1e-13
    for start, x in zip(STARTS, found):
        assert np.allclose(fit(start, misfit, derivative, steps=40), x, rtol=1e-9)


def test_operators_are_fitted_like_matrices():
    def operator(x):
        B, units = derivative(x)
        return aslinearoperator(B / 3) * 1.0, units / 3

    found = fit(STARTS[0], misfit, operator, steps=40)
    assert np.abs(misfit(found)).max() < 1e-9


def test_directions_below_the_cut_rest_and_the_misfit_never_rises():
    def flat(x):
        return (x[:1] - 1) * np.array([1.0, 0.0]) + 1e-13 * x[1:] * np.array([0.0, 1.0])

    def slopes(x):
        return np.diag([1.0, 1e-13]), np.ones(2)

    x = fit(np.array([5.0, 7.0]), flat, slopes, steps=9, cut=1e-11)
    assert abs(x[0] - 1) < 1e-9 and x[1] == 7.0
    up = fit(np.array([2.0]), lambda x: np.exp(x), lambda x: (-np.exp(x)[:, None], np.ones(1)), steps=5)
    assert up[0] == 2.0
