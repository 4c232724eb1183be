"""Weights with given virtual weights (M_1..M_l, L), and their refinement to the values of a function, in floats."""

from __future__ import annotations

import numpy as np

from attngeom.canonical.form import pad_head
from attngeom.canonical.terms import row_gauge
from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array, Domain
from attngeom.exact.fitting import fit
from attngeom.groups.balance import balanced_factors
from attngeom.limits.rounding import FIT_FIBER, FIT_REST
from attngeom.limits.trials import POLISH_STEPS
from attngeom.network import Architecture, VirtualWeights, Weights, forward
from attngeom.network.tangent import jacobian


def lift_virtual(virtual: VirtualWeights, architecture: Architecture) -> Weights:
    """Weights of one head whose virtual weights are the given ones, if the architecture can hold them.

    Layer i+1 sees inputs in the span U_i of the rows of L and of M_j, M_jᵀ for j > i; coordinates in a basis of U_i
    give V_i and A_i, padded by zeros. Over floats the spans and the factors of A_i are cut to the widths by singular
    values; over exact domains a rank that does not fit is an error.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> v = random_weights(Architecture((3, 2, 2), 2), QQ, seed=0).virtual()
    >>> QQ.equal(lift_virtual(v, Architecture((3, 2, 2), 2)).virtual().M[1], v.M[1])
    True
    """
    domain = virtual.domain
    if not architecture.has_virtual_weights or architecture.num_layers != len(virtual.M):
        raise InputError(f"{len(virtual.M)} virtual layers given; a network of that depth with one head is required")
    multiply, layers = domain.matmul, []
    before_dual = domain.eye(architecture.widths[0])
    for index, shape in enumerate(architecture.layers):
        A = multiply(before_dual.T, multiply(virtual.M[index], before_dual))
        after, after_dual = virtual.L, before_dual
        if index < architecture.num_layers - 1:
            after, after_dual = _span(virtual, index + 1, shape.d_out, domain)
        values = multiply(after, before_dual)
        K, Q = _factors(A, shape.attention, f"M_{index + 1}", domain)
        tensors = {"Q": Q, "K": K, "V": values}
        if shape.value_width is not None:
            S, tensors["V"] = _factors(values, shape.value_width, "a value map", domain)
            tensors["O"] = S.T
        layers.append((pad_head(shape, domain, **tensors),))
        before_dual = after_dual
    return Weights(architecture, domain, tuple(layers))


def _span(virtual: VirtualWeights, layer: int, width: int, domain: Domain) -> tuple[Array, Array]:
    """A basis R (r×d_0) of the visible span after ``layer`` layers, and S (d_0×r) with R S = I."""
    parts = [virtual.L]
    for M in virtual.M[layer:]:
        parts += [M, M.T]
    if domain.rounds:
        stacked = np.concatenate([part / (np.linalg.norm(part) or 1.0) for part in parts])
        basis = lapack.svd(stacked)[2][: min(width, stacked.shape[1])]
        return basis, basis.T
    gauge = row_gauge(np.concatenate(parts), domain)
    if len(gauge.pivots) > width:
        raise InputError(f"virtual weights that need {len(gauge.pivots)} coordinates given; layer {layer} has {width}")
    dual = domain.zeros((virtual.L.shape[1], len(gauge.pivots)))
    dual[list(gauge.pivots)] = domain.eye(len(gauge.pivots))
    return gauge.rows, dual


def _factors(W: Array, width: int, name: str, domain: Domain) -> tuple[Array, Array]:
    """S and T of at most ``width`` rows with Sᵀ T = W."""
    if domain.rounds:
        factors = balanced_factors(W, width)
        return factors.S, factors.T
    gauge = row_gauge(W, domain)
    if len(gauge.pivots) > width:
        raise InputError(f"{name} of rank {len(gauge.pivots)} given; at most {width} fits")
    return gauge.basis.T, gauge.rows


def relative_error(weights: Weights, X: Array, Y: Array) -> Array:
    """(φ(X) − Y) / ‖Y‖ for each input, flattened."""
    sizes = np.linalg.norm(Y, axis=(1, 2), keepdims=True)
    return ((forward(weights, X) - Y) / np.where(sizes > 0, sizes, 1.0)).ravel()


def largest_error(weights: Weights, X: Array, Y: Array) -> float:
    """The largest ‖φ(X) − Y‖ / ‖Y‖ of all inputs, infinite if an output is not finite."""
    error = float(np.linalg.norm(relative_error(weights, X, Y).reshape(len(X), -1), axis=1).max())
    return error if np.isfinite(error) else float("inf")


def polish(weights: Weights, X: Array, Y: Array) -> Weights:
    """Levenberg–Marquardt steps that fit φ(X) to Y, relative to the size of each Y; never worse than the start.

    Steps are measured relative to the norm of each tensor, so that it does not matter where the scale of the function
    sits. Directions along the fiber are not moved: the steps have least norm.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 2), RR, seed=0)
    >>> X = np.random.default_rng(0).standard_normal((20, 2, 2))
    >>> near = Weights.from_vector(w.architecture, w.vector() + 1e-3, RR)
    >>> bool(np.abs(relative_error(polish(near, X, forward(w, X)), X, forward(w, X))).max() < 1e-13)
    True
    """
    sizes = np.linalg.norm(Y, axis=(1, 2))
    keep = sizes > 0
    X, Y, sizes = X[keep], Y[keep], sizes[keep]
    scale = np.repeat(1 / sizes, Y.shape[1] * Y.shape[2])

    def at(vector: Array) -> Weights:
        return Weights.from_vector(weights.architecture, vector, RR)

    def derivative(vector: Array) -> tuple[Array, Array]:
        here = at(vector)
        units = np.concatenate([np.full(tensor.size, np.linalg.norm(tensor)) for _, tensor in here.tensors()])
        return (jacobian(here, X) * scale).T * units, units

    return at(
        fit(
            weights.vector(),
            lambda x: relative_error(at(x), X, Y),
            derivative,
            steps=POLISH_STEPS,
            cut=FIT_FIBER,
            rest=FIT_REST,
        )
    )
