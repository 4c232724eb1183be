"""Damped least squares beside SciPy's ``least_squares``: weights fitted to values of a function from a start nearby.

The weights are not unique, so the derivative has no full rank. The same misfit and derivative are given to all.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.optimize import least_squares

from attngeom.exact import RR
from attngeom.exact.fitting import fit
from attngeom.limits.rounding import FIT_FIBER, FIT_REST
from attngeom.limits.trials import POLISH_STEPS
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.tangent import jacobian
from attngeom.recovery.virtual_lift import relative_error
from contract import emit, require

SIZES, QUICK = (2, 4, 6, 8, 10), (2, 4, 6)
ERROR, RUNS = 1e-3, 4
METHODS = ("ours", "SciPy trf", "SciPy lm")


def measure(d: int) -> None:
    architecture = Architecture((d, d, d), d, tokens=2)
    seconds, missed = dict.fromkeys(METHODS, 0.0), dict.fromkeys(METHODS, 0.0)
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        true = random_weights(architecture, RR, seed)
        X = rng.standard_normal((architecture.num_parameters // d + 8, d, 2))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        Y = forward(true, X)
        scale = np.repeat(1 / np.linalg.norm(Y, axis=(1, 2)), 2 * d)
        start = true.vector() * (1 + ERROR * rng.standard_normal(architecture.num_parameters))

        def misfit(x: np.ndarray, X: np.ndarray = X, Y: np.ndarray = Y) -> np.ndarray:
            return relative_error(Weights.from_vector(architecture, x, RR), X, Y)

        def derivative(x: np.ndarray, X: np.ndarray = X, scale: np.ndarray = scale) -> np.ndarray:
            return (jacobian(Weights.from_vector(architecture, x, RR), X) * scale).T

        for method in METHODS:
            before = time.process_time()
            try:
                if method == "ours":
                    bounds = {"cut": FIT_FIBER, "rest": FIT_REST}
                    x = fit(start, misfit, lambda x: (derivative(x), np.ones(x.size)), steps=POLISH_STEPS, **bounds)
                else:
                    limits = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "max_nfev": 2 * POLISH_STEPS}
                    x = least_squares(misfit, start, derivative, method=method.split()[1], **limits).x
            except np.linalg.LinAlgError:
                x = start
            seconds[method] += time.process_time() - before
            missed[method] = max(missed[method], float(np.abs(misfit(x)).max()))
    require(missed["ours"] < 1e-9, "our fit reaches the outputs")
    case = f"two layers, d = {d}, {architecture.num_parameters} weights"
    for method in METHODS:
        emit("least squares fits of weights", case, seconds[method] / RUNS, method, architecture.num_parameters)
        emit("largest relative misfit after the fit", case, missed[method], method, unit="of the outputs")
        print(f"{d:>3} {method:10} {seconds[method] / RUNS:>8.3f} s {missed[method]:>10.1e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    for d in QUICK if parser.parse_args().quick else SIZES:
        measure(d)


if __name__ == "__main__":
    main()
