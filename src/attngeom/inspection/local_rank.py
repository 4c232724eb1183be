"""The rank of the parametrization at a point: how many directions of weight space change the function there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.comparison.evaluation import reduce_weights
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import GF, RR, Array, Rationals
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.primes import WORD_PRIME, primes_from
from attngeom.inspection.ranks import Rank, measured_rank
from attngeom.network import Weights, random_weights
from attngeom.network.symmetry import infinitesimal_action
from attngeom.network.tangent import jacobian

MAX_PARAMETERS = 3000
MAX_TOKENS = 8
"""Longer inputs cost memory and see no more: further tokens are left out, which keeps lower bounds valid."""
INPUT_SCALES = (1.0, 0.5, 0.25, 0.125)
"""Softmax saturates at large scores and loses its derivatives: inputs of several sizes see past that."""


@dataclass(frozen=True)
class LocalRank:
    """Rank of the Jacobian at the given weights and at random ones of the same architecture.

    ``lower_bound`` and ``upper_bound`` are proven for rational weights (a rank mod p, and the parameters minus the rank
    of the infinitesimal symmetries); ``measured`` is the numerical rank for floats. ``generic`` is the rank mod p (or
    measured) at random weights, and ``defect`` what is lost against it.
    """

    num_parameters: int
    value: int
    lower_bound: int | None
    upper_bound: int | None
    generic: int
    measured: Rank | None
    prime: int | None
    seed: int

    @property
    def is_proven(self) -> bool:
        return self.lower_bound is not None and self.lower_bound == self.upper_bound

    @property
    def fiber_dimension(self) -> int:
        """The dimension of the kernel: that of the fiber wherever the rank is locally constant."""
        return self.num_parameters - self.value

    @property
    def defect(self) -> int:
        return self.generic - self.value

    def to_json(self) -> dict[str, Any]:
        return {
            "jacobian_rank": self.value,
            "generic_rank": self.generic,
            "defect": self.defect,
            "kernel_dimension": self.fiber_dimension,
            "lower_bound": self.lower_bound,
            "upper_bound": self.upper_bound,
            "proven": self.is_proven,
            "prime": self.prime,
            "measured": None if self.measured is None else self.measured.to_json(),
        }


def _samples(weights: Weights) -> int:
    """Enough inputs: without skip an output is L X Z, so each input gives at most t² new equations for the A_i."""
    architecture = weights.architecture
    t = min(architecture.tokens, MAX_TOKENS)
    per_input = t * (t + 1) // 2 if architecture.causal or architecture.kind == "softmax" else t * t
    return architecture.num_parameters // min(per_input, t * architecture.widths[-1]) + 4


def _scaled(J: Array) -> Array:
    """The nonzero columns at unit norm: this keeps the rank, and makes inputs of all scales count."""
    sizes = np.linalg.norm(J, axis=0)
    return J[:, sizes > 0] / sizes[sizes > 0]


def local_rank(weights: Weights, seed: int = 0) -> LocalRank:
    """The rank of W ↦ φ_W at these weights, with bounds; see :class:`LocalRank`.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture
    >>> local_rank(random_weights(Architecture((2, 2), 2), QQ, seed=0)).value
    7
    """
    architecture = weights.architecture
    if architecture.num_parameters > MAX_PARAMETERS:
        raise SizeError(
            f"{architecture.num_parameters} parameters given; local ranks are computed up to {MAX_PARAMETERS}"
        )
    rng = np.random.default_rng(seed)
    shape = (_samples(weights), architecture.widths[0], min(architecture.tokens, MAX_TOKENS))
    if not isinstance(weights.domain, Rationals) or architecture.kind == "softmax":
        point = weights.to(RR)
        X = rng.standard_normal(shape) * np.resize(INPUT_SCALES, shape[0])[:, None, None]
        measured = measured_rank(_scaled(jacobian(point, X)), RR)
        generic = measured_rank(_scaled(jacobian(random_weights(architecture, RR, seed), X)), RR).value
        return LocalRank(architecture.num_parameters, measured.value, None, None, generic, measured, None, seed)
    for p in primes_from(WORD_PRIME):
        try:
            residues = reduce_weights(weights, p)
        except InputError:
            continue
        break
    field = GF(p)
    X = field.random(shape, rng)
    lower = rank_mod_p(jacobian(residues, X), p)
    # The rank of the symmetries mod p is at most the rational one, so this bound is proven too.
    upper = architecture.num_parameters - rank_mod_p(infinitesimal_action(residues).rows, p)
    generic = rank_mod_p(jacobian(random_weights(architecture, field, seed), X), p)
    return LocalRank(architecture.num_parameters, lower, lower, upper, generic, None, p, seed)
