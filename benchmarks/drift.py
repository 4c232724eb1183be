"""How far conserved quantities drift: gradient flow by RK4, gradient descent at three steps, Adam.

One loss, one start, one time T: every optimiser runs for the same T (Adam for as many steps as the smallest step of
descent). Drift is ‖h(w) − h(w_0)‖/‖w_0‖² for the vector h of all conservation laws, as ``attngeom track`` measures it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from attngeom.exact import RR
from attngeom.exact.domains import Array
from attngeom.learning.laws import Laws, conserved_quantities
from attngeom.learning.track import law_drifts
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.tangent import gradient
from contract import emit, require

ARCHITECTURES = (
    Architecture((3, 3, 3), 2),
    Architecture((3, 3, 3), 2, kind="softmax"),
    Architecture((4, 4), 2, kind="softmax", heads=2),
)
SAMPLES, TIME = 16, 0.4
Field = Callable[[Array], Array]


def squared_error(architecture: Architecture, seed: int) -> tuple[Field, Callable[[Array], float]]:
    """The gradient and the value of ½ Σ ‖φ(X_n) − Y_n‖² / N for random inputs and targets."""
    rng = np.random.default_rng(seed)
    # Half the usual size: a deep lightning network is of degree nine in its input.
    X = 0.5 * rng.standard_normal((SAMPLES, architecture.widths[0], architecture.tokens))
    Y = rng.standard_normal((SAMPLES, architecture.widths[-1], architecture.tokens))

    def residual(w: Array) -> tuple[Weights, Array]:
        weights = Weights.from_vector(architecture, w, RR)
        return weights, forward(weights, X) - Y

    def slope(w: Array) -> Array:
        weights, error = residual(w)
        return gradient(weights, X, error) / SAMPLES

    return slope, lambda w: float(np.sum(residual(w)[1] ** 2) / (2 * SAMPLES))


def descend(slope: Field, w: Array, step: float) -> Array:
    for _ in range(round(TIME / step)):
        w = w - step * slope(w)
    return w


def flow(slope: Field, w: Array, step: float) -> Array:
    """Runge and Kutta, order four."""
    for _ in range(round(TIME / step)):
        first = slope(w)
        second = slope(w - step / 2 * first)
        third = slope(w - step / 2 * second)
        w = w - step / 6 * (first + 2 * second + 2 * third + slope(w - step * third))
    return w


def adam(slope: Field, w: Array, step: float, count: int) -> Array:
    """Adam with its usual constants."""
    mean, square = np.zeros_like(w), np.zeros_like(w)
    for k in range(1, count + 1):
        g = slope(w)
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        w = w - step * (mean / (1 - 0.9**k)) / (np.sqrt(square / (1 - 0.999**k)) + 1e-8)
    return w


def measure(architecture: Architecture, laws: Laws, steps: tuple[float, ...], seed: int) -> None:
    slope, loss = squared_error(architecture, seed)
    start = random_weights(architecture, RR, seed).vector()
    runs: dict[str, Callable[[], Array]] = {f"RK4, step {steps[0]:g}": lambda: flow(slope, start, steps[0])}
    runs |= {f"descent, step {step:g}": lambda step=step: descend(slope, start, step) for step in steps}  # type: ignore[misc]
    runs["Adam, rate 0.01"] = lambda: adam(slope, start, 0.01, round(TIME / steps[-1]))
    print(f"{architecture.kind}, widths {architecture.widths}, {laws.count} laws, loss {loss(start):.4f} at the start")
    exact = np.inf
    for name, run in runs.items():
        started = time.process_time()
        end = run()
        seconds = time.process_time() - started
        points = [Weights.from_vector(architecture, w, RR) for w in (start, end)]
        found = law_drifts(laws, points)[1]
        require(found is not None and np.isfinite(found), "the drift is measured")
        require(loss(end) < loss(start), f"{name} goes down")
        drift = found or 0.0
        exact = drift if name.startswith("RK4") else exact
        require(exact <= drift or drift < 1e-12, "no optimiser keeps the laws better than the flow")
        case = f"{architecture.kind}, widths {','.join(map(str, architecture.widths))}, {name}"
        emit("drift of the conservation laws, relative to ‖w‖²", case, drift, unit="drift")
        print(f"  {name:22} loss {loss(end):.4f}  drift {drift:.1e}  {seconds:.2f} CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one architecture, larger steps")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    steps = (8e-3, 4e-3, 2e-3) if options.quick else (4e-3, 2e-3, 1e-3)
    for architecture in ARCHITECTURES[:1] if options.quick else ARCHITECTURES:
        measure(architecture, conserved_quantities(architecture), steps, options.seed)


if __name__ == "__main__":
    main()
