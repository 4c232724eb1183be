"""When exponentials may be free values: their arguments and the inputs are linearly independent, modulo weights.

Let t be the coordinates of weights and inputs, f the arguments of the exponentials of all samples, algebraic over t
and over exponentials of others before them. If no combination of the f and t with integer coefficients, not all 0, is
constant, then t, exp t and exp f are algebraically independent (Ax 1971). Every sample has inputs of its own, so a
relation would be one between the arguments and inputs of a single sample, up to a function of the weights. Differences
of two inputs at the same weights do not show such a function, and a relation over the integers remains one mod p. The
signs of roots do not matter: no radicand is a square (`block_proof.check_provable`), so that signs are conjugate.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact.modular import rank_mod_p
from attngeom.models.proofs.coordinates import Shapes, random_point
from attngeom.models.proofs.formal import PRIME, RootsMissing
from attngeom.models.proofs.samples import BlockSampler, visible_distances
from attngeom.models.proofs.turns import Turns
from attngeom.models.specification import TransformerBlock

INPUTS, MAX_POINTS = 16, 24


def arguments_are_independent(
    block: TransformerBlock, width: int, shapes: Shapes, rng: np.random.Generator, turns: Turns
) -> bool:
    """Whether at every distance in use the arguments and the inputs of a sample are independent modulo weights.

    True is proved by a rank mod p; False means that they are related, or that too few points with all roots were found.
    """
    return all(_independent_at(distances, block, width, shapes, rng, turns) for distances in visible_distances(block))


def _independent_at(
    distances: tuple[int, ...],
    block: TransformerBlock,
    width: int,
    shapes: Shapes,
    rng: np.random.Generator,
    turns: Turns,
) -> bool:
    rows: list[np.ndarray] = []
    rank = 0
    for _ in range(MAX_POINTS):
        sampler = BlockSampler(block, width, random_point(shapes, rng), rng, turns)
        try:
            arguments, inputs = sampler.arguments(INPUTS, distances)
        except RootsMissing:
            continue
        if not arguments.shape[1]:
            return True
        values = np.concatenate([arguments, inputs], axis=1)
        rows.append((values[1:] - values[:1]) % PRIME)
        before, rank = rank, rank_mod_p(np.concatenate(rows), PRIME)
        if rank == values.shape[1]:
            return True
        if rank == before:
            return False
    return False
