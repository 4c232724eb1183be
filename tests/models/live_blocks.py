"""Counts of random blocks against ranks of torch: ``python tests/models/live_blocks.py FIRST NUMBER [RARE]``.

For the seeds FIRST, FIRST + 1, … a random kind is drawn; the derivative of its true function by all weights comes from
torch (forward mode, float64), at two points, and at up to ten while the rank is below what a theorem or a proof by rank
says. A theorem must give the largest rank, any other count may not exceed what is redundant, the lower bounds of proofs
may not exceed the rank. Blocks of relu, limit and experts have several regions: up to 60 points are tried, and those
that stay below are listed apart. Prints what disagrees, then a table; exit code 1 if anything is wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from attngeom.errors import AttnGeomError
from attngeom.models.counts.redundancy import block_redundancy
from attngeom.models.programs import block_program
from attngeom.models.proofs import prove_block
from tests.models.random_kinds import KindSampler
from tests.models.true_function import FloatRank, Sample, TrueFunction, rank_of

MAX_WEIGHTS, POINTS, MORE_POINTS, REGION_POINTS = 190, 2, 10, 60
UNCLEAR = 1e-3
"""Quotient of singular values above which a rank is not clear."""


def torch_rank(sample: Sample) -> FloatRank:
    """The rank of the derivative by torch at the point of the sample."""
    vector, x, other = (torch.from_numpy(values) for values in sample.draw())

    def function(weights: torch.Tensor) -> torch.Tensor:
        return TrueFunction(torch, torch.erf, sample.named(weights))(sample.block, x, other).reshape(-1)

    derivative = torch.func.jacfwd(function)(vector).numpy()
    if not np.isfinite(derivative).all():
        return FloatRank(0, 1.0)
    return rank_of(derivative)


def verdict(seed: int, rare: float) -> tuple[str, str]:
    """What became of one kind, and a line where it is wrong."""
    kind = KindSampler(seed, rare).kind()
    size = kind.block.parameters(kind.width, kind.width)
    if size > MAX_WEIGHTS:
        return "too large", ""
    try:
        found = block_redundancy(kind.block, kind.width)
    except AttnGeomError:
        return "refused", ""
    lower, standing, regions = 0, "refused", True
    try:
        proof = prove_block(kind.block, kind.width, seed=seed)
        lower, standing = proof.lower, proof.standing
        regions = any(block_program(kind.block, kind.width).places("pattern"))
    except AttnGeomError:
        pass
    count = size - found.total
    need, best = max(lower, count if found.is_proven else 0), FloatRank(-1, 1.0)
    for point in range(REGION_POINTS if regions else MORE_POINTS):
        if point >= POINTS and best.rank >= need:
            break
        rank = torch_rank(Sample(kind.block, kind.width, 10_000 * seed + point))
        best = max(best, rank, key=lambda one: (one.gap <= UNCLEAR, one.rank, -one.gap))
    name = f"{found.standing}, proof {standing}"
    line = f"seed {seed}: count {found.total}, redundant {size - best.rank}, gap {best.gap:.1g}, {found.reason}"
    if best.gap > UNCLEAR:
        return f"{name}: rank not clear", ""
    if best.rank > count:
        return f"{name}: WRONG, count too large", line
    if best.rank < need and regions:
        return f"{name}: not reached at {REGION_POINTS} points", f"{line}, proof says at most {size - lower}"
    if best.rank < need:
        return f"{name}: WRONG, more is redundant", f"{line}, proof says at most {size - lower}"
    return f"{name}: {'equal' if best.rank == count else 'more is redundant'}", ""


def main(first: int, number: int, rare: float) -> int:
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    for seed in range(first, first + number):
        outcome, line = verdict(seed, rare)
        counts[outcome] += 1
        if line:
            print(outcome, "|", line, flush=True)
    for outcome, count in sorted(counts.items()):
        print(f"{outcome:<60}{count:>8}")
    return int(any("WRONG" in outcome for outcome in counts))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.06))
