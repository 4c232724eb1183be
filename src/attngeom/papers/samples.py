"""The sample threshold seen in fits: interpolating networks are the truth from D + 1 samples on, and never below D."""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom.dimensions import dimension
from attngeom.exact.domains import RR, Array
from attngeom.exact.fitting import fit
from attngeom.limits.rounding import FIT_EQUALS, FIT_INTERPOLATES
from attngeom.limits.trials import FIT_STARTS, FIT_STEPS, FITTED_TRUTHS, QUICK_TRUTHS
from attngeom.network import Architecture
from attngeom.network.layer import Passes
from attngeom.network.weights import Head
from attngeom.papers.records import Check, Checks, Work, finds

ARCHITECTURES = tuple(Architecture(widths, a, tokens=2) for widths, a in (((2, 1), 2), ((2, 2), 1), ((3, 1), 1)))
OFFSETS = (-1, 0, 1)
"""Numbers of samples, relative to the dimension."""


def _passes(architecture: Architecture, stack: Array, X: Array) -> Passes:
    shapes, slots = dict(architecture.tensor_shapes()), architecture.slots()
    tensors = [stack[:, slots[name]].reshape(len(stack), *shape) for name, shape in shapes.items()]
    return Passes.at(((Head(*tensors),),), X, architecture.rule, RR, architecture.residual)


def values(architecture: Architecture, stack: Array, X: Array, C: Array) -> Array:
    """⟨C_n, φ_w(X_n)⟩ for a stack of weights w of one layer, (p, N)."""
    return np.asarray(np.einsum("nto,pnto->pn", C, _passes(architecture, stack, X).output()))


def slopes(architecture: Architecture, stack: Array, X: Array, C: Array) -> Array:
    """The derivatives of the :func:`values` in the weights, (p, N, parameters)."""
    gradients = [gradient.product(RR) for gradient in _passes(architecture, stack, X).pull(C)]
    return np.concatenate([x.reshape(*x.shape[:2], -1) for x in gradients], axis=-1)


def fit_all(architecture: Architecture, starts: Array, X: Array, C: Array, wanted: Array) -> Array:
    """Least squares fits of the wanted numbers from every start of the stack."""

    def residual(stack: Array) -> Array:
        return values(architecture, stack, X, C) - wanted

    def derivative(stack: Array) -> tuple[Array, Array]:
        return slopes(architecture, stack, X, C), np.ones(stack.shape[-1])

    return fit(
        starts, residual, derivative, steps=FIT_STEPS, rest=FIT_INTERPOLATES / 100 * float(np.linalg.norm(wanted))
    )


def count_fits(architecture: Architecture, count: int, truths: int, seed: int) -> tuple[int, int]:
    """How many of all fits interpolate ``count`` random samples of a random truth, and how many of these equal it."""
    d_in, d_out, t = architecture.widths[0], architecture.widths[-1], architecture.tokens
    interpolating = equal = 0
    for truth in range(truths):
        rng = np.random.default_rng([seed, count, truth])
        true = rng.standard_normal((1, architecture.num_parameters))
        samples = [(rng.standard_normal((n, t, d_in)), rng.standard_normal((n, t, d_out))) for n in (count, 40)]
        starts = rng.standard_normal((FIT_STARTS, architecture.num_parameters))
        (X, C), held_out = samples
        wanted = values(architecture, true, X, C)
        fitted = fit_all(architecture, starts, X, C, wanted)
        close = _error(architecture, fitted, X, C, wanted) <= FIT_INTERPOLATES
        others = _error(architecture, fitted, *held_out, values(architecture, true, *held_out)) <= FIT_EQUALS
        interpolating += int(close.sum())
        equal += int((close & others).sum())
    return interpolating, equal


def _error(architecture: Architecture, stack: Array, X: Array, C: Array, wanted: Array) -> Array:
    """The largest relative residual of every fit."""
    outputs = values(architecture, stack, X, C)
    return np.asarray(np.abs(outputs - wanted).max(axis=1) / np.abs(wanted).max())


@finds("")
def run_samples(work: Work) -> Checks:
    """Shares of interpolating fits that equal the truth at N = D − 1, D, D + 1 scalar samples, one layer, t = 2."""
    rows: list[dict[str, Any]] = []
    truths = work.choose(QUICK_TRUTHS, FITTED_TRUTHS)
    for architecture in work.choose(ARCHITECTURES[1:2], ARCHITECTURES):
        D = dimension(architecture).dimension
        assert D is not None
        known = {
            "widths": list(architecture.widths),
            "attention": architecture.attention[0],
            "parameters": architecture.num_parameters,
            "dimension": D,
        }
        for count in (D + offset for offset in OFFSETS):
            interpolating, equal = count_fits(architecture, count, truths, work.seed)
            fits = {"fits": truths * FIT_STARTS, "interpolating": interpolating, "equal": equal}
            rows.append({**known, "samples": count, **fits})
    below, at, above = ([row for row in rows if row["samples"] - row["dimension"] == k] for k in OFFSETS)
    none, every = all(not row["equal"] for row in below), all(row["equal"] == row["interpolating"] for row in above)
    yield Check("with D − 1 samples no interpolating fit is the true function", none)
    yield Check("with D + 1 samples every interpolating fit is the true function", every)
    others = any(row["equal"] < row["interpolating"] for row in at)
    yield Check("with D samples some interpolating fits are other functions", others, "support")
    yield Check("at every size some fits interpolate", all(row["interpolating"] for row in rows), "support")
    few = all(row["samples"] <= row["parameters"] for row in rows)
    yield Check("D + 1 is at most the number of parameters", few, "support")
    shown = "; ".join(f"D = {r['dimension']}, N = {r['samples']}: {r['equal']} of {r['interpolating']}" for r in rows)
    evidence = (
        f"{truths * FIT_STARTS} least squares fits for each number of samples, all reported; fits that interpolate and"
        f" are the truth: {shown}. Theorem N (docs/theorems/training.md) proves the threshold for every architecture"
    )
    return {"evidence": evidence, "values": {"rows": rows}, "data": {"rows": rows}}
