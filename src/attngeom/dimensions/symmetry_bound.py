"""Upper bounds from the infinitesimal symmetries: they lie in the kernel of the differential at every point."""

from __future__ import annotations

import numpy as np

from attngeom.dimensions.layer_kernel import layer_kernels
from attngeom.errors import SizeError
from attngeom.exact.domains import GF, Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME, modulo_some_prime
from attngeom.exact.points import name_point
from attngeom.limits.memory import DENSE_BYTES
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry import count_generators, infinitesimal_action
from attngeom.network.weights import Weights, named_weights


def check_size(architecture: Architecture) -> None:
    """SizeError if the matrix of all symmetry vectors is too large."""
    count = sum(count_generators(architecture).values())
    if 8 * count * architecture.num_parameters > DENSE_BYTES:
        raise SizeError(
            f"{count:,} symmetry vectors of length {architecture.num_parameters:,}; use the parameter count"
        )


def symmetry_upper_bound(architecture: Architecture, seed: int = 0) -> int:
    """Parameters minus the rank mod p of the infinitesimal symmetries at one named point: a proven upper bound.

    Their generic rank over Q is at least the rank mod p at a point. Weaker than
    :func:`attngeom.dimensions.counts.upper_bound`, but with other means.

    >>> symmetry_upper_bound(Architecture((3, 3, 3), 2))
    23
    """
    check_size(architecture)
    weights = named_weights(architecture, GF(WORD_PRIME), name_point(seed))
    return architecture.num_parameters - rank_mod_p(infinitesimal_action(weights), WORD_PRIME)


def symmetry_upper_bound_at(weights: Weights) -> int:
    """Parameters minus the rank mod p of symmetry vectors and kernels of layers at rational weights: a proven bound.

    The rank mod p, for a prime that divides no denominator, is at most the rank over Q.
    """
    check_size(weights.architecture)
    kernels = layer_kernels(weights)

    def vectors(p: int) -> Array:
        return np.concatenate([infinitesimal_action(weights.to(GF(p))), GF(p).convert(kernels)])

    p, rows = modulo_some_prime(vectors, WORD_PRIME)
    return weights.architecture.num_parameters - rank_mod_p(rows, p)
