"""Certificates for a learning coefficient: the weights, the pair, the theorem, and all ranks it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attngeom.exact.domains import QQ
from attngeom.learning.blocks import Block
from attngeom.learning.pairs import Pair
from attngeom.network.weights import Weights
from attngeom.verification.records import Certificate


def certify(
    weights: Weights, pair: Pair, theorem: str, blocks: tuple[Block, ...], witness: Mapping[str, Any], seed: int | None
) -> Certificate | None:
    """The certificate of a proven pair at rational weights; None if ranks were certified by balls, not mod p.

    Witness: the theorem; for each head the ranks of K, Q, A, O, W and V (None where V is one matrix); for Theorems B
    and R and for two bounds that meet, the prime, the seed of the samples, their number and their tokens.
    """
    if weights.domain != QQ or (witness and witness.get("prime") is None):
        return None
    claim = {
        "kind": "learning-coefficient",
        "architecture": weights.architecture.to_json(),
        "tensors": {name: [[str(x) for x in row] for row in array] for name, array in weights.tensors()},
        "lambda": str(pair.value),
        "multiplicity": pair.multiplicity,
    }
    ranks = [[*_listed(A), *_listed(V)] for A, V in zip(blocks[::2], blocks[1::2])]
    primes = [witness["prime"]] if witness else []
    return Certificate(claim, {"theorem": theorem, "ranks": ranks, **witness}, {"seed": seed, "primes": primes})


def _listed(block: Block) -> list[int | None]:
    return [None, None, block.rank] if block.point is None else [block.point.left, block.point.right, block.rank]
