"""A calibration suite for estimators of learning coefficients: points where λ is a theorem, and a script to run.

At its points λ, half the rank of the Hessian and half the number of weights differ, or agree where they must; some have
multiplicity m > 1. Inputs are bounded. Every record suggests a step and a temperature from the top eigenvalue of the
Hessian, measured at samples. The script has a Langevin sampler of its own and an adapter for devinterp.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.domains import QQ, RR, Array
from attngeom.files import make_folder, to_json, write_atomic
from attngeom.interop.learning_benchmark import write_benchmark
from attngeom.interop.learning_suite_script import SCRIPT
from attngeom.learning.answer import LearningCoefficient, learning_coefficient
from attngeom.limits.rounding import DIFFERENCE_RANK, DIFFERENCE_STEP, STABLE_STEP
from attngeom.limits.trials import HESSIAN_INPUTS, INVERSE_TEMPERATURE
from attngeom.network.architecture import Architecture
from attngeom.network.layer import forward
from attngeom.network.weights import Weights

Tensors = Mapping[str, list[list[int]]]


@dataclass(frozen=True)
class SuitePoint:
    """A point by name, and why it is there."""

    name: str
    words: str
    architecture: Architecture
    tensors: Tensors

    @property
    def weights(self) -> Weights:
        return Weights.from_tensors(self.architecture, self.tensors, QQ)


def _head(Q: list[list[int]], K: list[list[int]], V: list[list[int]], layer: int = 0) -> dict[str, list[list[int]]]:
    return {f"layers.{layer}.Q": Q, f"layers.{layer}.K": K, f"layers.{layer}.V": V}


ONE, TWO = Architecture((2, 2), 1, tokens=2), Architecture((2, 2), 2, tokens=2)
SOFTMAX, NONE = Architecture((2, 2), 1, tokens=3, kind="softmax"), [[0, 0], [0, 0]]
POINTS = (
    SuitePoint("regular", "generic A and V: half the rank", ONE, _head([[1, 2]], [[2, -1]], [[1, 1], [0, 2]])),
    SuitePoint(
        "aligned",
        "A = k qᵀ, V = h kᵀ: larger than half the rank, where chains like to stay",
        ONE,
        _head([[1, -1]], [[1, 2]], [[1, 2], [-1, -2]]),
    ),
    SuitePoint("zero", "A = V = 0: multiplicity above one", ONE, _head([[0, 0]], [[0, 0]], NONE)),
    SuitePoint("no values", "V = 0, A generic: the attention matrix is free", ONE, _head([[1, 2]], [[2, -1]], NONE)),
    SuitePoint(
        "deficient factors",
        "K and Q of rank one with KᵀQ = 0, V of rank one: a product of factors",
        TWO,
        _head([[0, 0], [1, 1]], [[1, -1], [0, 0]], [[1, 2], [2, 4]]),
    ),
    SuitePoint("softmax", "one softmax head, generic", SOFTMAX, _head([[1, 2]], [[2, -1]], [[1, 1], [0, 2]])),
    SuitePoint("softmax, uniform", "softmax with K = Q = 0", SOFTMAX, _head([[0, 0]], [[0, 0]], [[1, 1], [0, 2]])),
    SuitePoint("softmax, no values", "softmax with V = 0", SOFTMAX, _head([[1, 2]], [[2, -1]], NONE)),
    SuitePoint(
        "two layers",
        "two lightning layers, regular: half the dimension, not half the weights",
        Architecture((2, 2, 2), 1, tokens=2),
        {**_head([[-1, 1]], [[1, 1]], [[1, -1], [0, 1]]), **_head([[1, 0]], [[-1, -1]], [[0, 1], [-1, 1]], 1)},
    ),
)  # fmt: skip


def hessian(weights: Weights, seed: int = 0) -> Array:
    """E ∇φ ∇φᵀ at float weights, by differences at samples of uniform inputs."""
    architecture, rng = weights.architecture, np.random.default_rng(seed)
    shape = (HESSIAN_INPUTS, architecture.widths[0], architecture.tokens)
    inputs, vector = rng.uniform(-1, 1, shape), np.asarray(weights.to(RR).vector(), dtype=float)
    columns = []
    for k in range(len(vector)):
        ends = []
        for sign in (1, -1):
            moved = vector.copy()
            moved[k] += sign * DIFFERENCE_STEP
            point = Weights.from_vector(architecture, moved, RR)
            ends.append(np.stack([np.asarray(forward(point, X), dtype=float) for X in inputs]).ravel())
        columns.append((ends[0] - ends[1]) / (2 * DIFFERENCE_STEP))
    J = np.stack(columns)
    return np.asarray(J @ J.T / HESSIAN_INPUTS)


def calibration(coefficient: LearningCoefficient, seed: int = 0) -> dict[str, Any]:
    """What an estimator may be misled to, and what it may be started with."""
    values = lapack.eigvalsh(hessian(coefficient.weights, seed))
    top = float(values[-1])
    rank = int(np.sum(values > DIFFERENCE_RANK * max(top, 1e-300))) if top > DIFFERENCE_RANK**2 else 0
    parameters = coefficient.weights.architecture.num_parameters
    scale = top if rank else 1.0
    return {
        "parameters": parameters,
        "half_parameters": str(Fraction(parameters, 2)),
        "half_hessian_rank": str(Fraction(rank, 2)),
        "suggested": {
            "inverse_temperature": INVERSE_TEMPERATURE,
            "step": float(f"{2 * STABLE_STEP / (INVERSE_TEMPERATURE * scale):.2g}"),
            "top_eigenvalue": float(f"{top:.2g}"),
            "localization": 1.0,
        },
    }


def write_suite(folder: str | Path, seed: int = 0) -> list[dict[str, Any]]:
    """Write a folder for each point, suite.json and run.py; the rows of the suite, λ and m computed now."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; give a new folder")
    folder = make_folder(folder)
    rows = []
    for point in POINTS:
        coefficient = learning_coefficient(point.weights, seed=seed)
        more = {"name": point.name, "words": point.words, **calibration(coefficient, seed)}
        place = point.name.replace(", ", "-").replace(" ", "-")
        write_benchmark(coefficient, folder / place, more)
        rows.append(
            {"folder": place, "lambda": str(coefficient.value), "multiplicity": coefficient.multiplicity, **more}
        )
    write_atomic(
        folder / "suite.json", to_json({"format": "attngeom/learning-suite", "version": 1, "points": rows}) + "\n"
    )
    write_atomic(folder / "run.py", SCRIPT)
    return rows
