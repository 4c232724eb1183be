"""Proof of the redundancy of a small whole model by rank."""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.residues import BalancedResidues
from attngeom.models.counts.redundancy import redundancy
from attngeom.models.proofs.evidence import RankProof
from attngeom.models.proofs.formal import PRIME, RootsMissing
from attngeom.models.proofs.model_moves import model_moves
from attngeom.models.proofs.models import ModelFunction, check_model
from attngeom.models.proofs.regions import is_piecewise
from attngeom.models.specification import TransformerSpec

MAX_PARAMETERS = 4096
MAX_POINTS = 4


def prove_model(spec: TransformerSpec, *, seed: int = 0, subject: str = "model") -> RankProof:
    """Bounds of the dimension of the functions (logits) of a whole model by rank mod p; equal bounds are a proof.

    For one stack of token embeddings and at most 4,096 weights. The vocabulary has to be large enough for its pairs
    of tokens to show the model: a small one can have a larger fiber, which ends as undecided.
    """
    check_model(spec)
    if spec.parameters > MAX_PARAMETERS:
        raise SizeError(f"a model of {spec.parameters} weights given; at most {MAX_PARAMETERS} are proved by rank")
    try:
        formula = redundancy(spec).total
    except InputError:
        formula = None
    rng = np.random.default_rng(seed)
    piecewise = any(is_piecewise(block.mlp) for block in spec.stack.kinds)
    lower, upper, samples = 0, spec.parameters, 0
    for _ in range(MAX_POINTS):
        try:
            rank, bound, drawn = _bounds(ModelFunction(spec, rng))
        except RootsMissing:
            continue
        lower, upper, samples = max(lower, rank), min(upper, bound), samples + drawn
        if lower == upper or not piecewise:
            break
    return RankProof(
        subject=subject,
        parameters=spec.parameters,
        lower=lower,
        upper=upper,
        formula=formula,
        prime=PRIME,
        seed=seed,
        samples=samples,
    )


def _bounds(function: ModelFunction) -> tuple[int, int, int]:
    """Rank of the derivative, bound by the symmetries, and the number of pairs of tokens."""
    spec, size = function.spec, function.point.size
    derivative = function.rows(16 + 3 * size // (2 * spec.width))
    upper = checked_upper_bound(model_moves(spec, function.point), derivative)
    lower = rank_mod_p(derivative, PRIME)
    if lower < upper:
        derivative = function.rows(spec.vocabulary**2)
        lower = rank_mod_p(derivative, PRIME)
    return lower, upper, len(derivative) // (spec.vocabulary if spec.head else spec.width)


def checked_upper_bound(moves: Array, derivative: Array) -> int:
    """parameters − rank of the moves, after a check that the derivative annihilates every move."""
    field = BalancedResidues(PRIME)
    residues = field.from_integers(derivative)
    for start in range(0, len(moves), 64):
        if field.multiply(residues, field.from_integers(moves[start : start + 64]).T).any():
            raise AssertionError("an infinitesimal symmetry changes the function; please report this")
    size = int(derivative.shape[1])
    return size - (rank_mod_p(moves, PRIME) if len(moves) else 0)
