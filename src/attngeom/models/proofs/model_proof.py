"""Proof of the redundancy of a small whole model: the rank of its program at pairs of tokens, and the count.

From below the dimension is the rank of the derivative at pairs of tokens mod p, if random values may stand for
functions there, which is checked. From above it is the number of weights minus the count of :mod:`attngeom.models.
counts`, whose symmetries hold for sequences of any length (docs/theorems/models.md, sections 2 and 3).
"""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError, SingularError, SizeError
from attngeom.exact.residues import Elimination
from attngeom.models.counts.redundancy import redundancy
from attngeom.models.programs.models import model_program
from attngeom.models.proofs.block_proof import RankProof, check_provable
from attngeom.models.proofs.independence import find_obstacle
from attngeom.models.proofs.tokens import Pairs, TokenPoint, both_are_read
from attngeom.models.specification import TransformerSpec
from attngeom.programs.arithmetic import CHAIN
from attngeom.programs.passes import needed_entries
from attngeom.programs.program import Program

MAX_PARAMETERS = 4096
MAX_ROOTS = 11
"""Roots of a token, and of two if both see each other: 2^11 draws for one with all of them."""
MAX_POINTS, MAX_REGIONS = 4, 9
"""Points that are tried where roots are missing, and regions of piecewise functions."""
SPARE = 16


def check_model(spec: TransformerSpec) -> None:
    """Refuse what the proof by rank does not cover: two stacks, front ends, relative tables, no norm in front."""
    stack = spec.stack
    if len(spec.stacks) != 1 or not stack.embeds_tokens or spec.other_parameters:
        raise InputError("a model with two stacks or a front end given; whole models are proved with one token stream")
    for block in stack.kinds:
        check_provable(block, spec.width)
    if any(block.mixer is not None for block in stack.kinds):
        raise InputError("a model with recurrent mixers given; whole models are proved at pairs of tokens, not states")
    own = [block.attention for block in stack.kinds if block.attention is not None]
    is_narrow = any(part.reach is not None and part.reach < 2 for part in own)
    if spec.width < 3 or is_narrow or stack.positions - stack.unread_positions == 1:
        raise InputError("a width below 3, a window of 1 token or one position given; not proved as a whole")
    if spec.embedding_rank:
        raise InputError("a model with projected tokens given; whole models are proved with one table of tokens")
    if stack.embedding_width or stack.path:
        raise InputError("narrow tables, or layers that run more than once, given; not proved as a whole")
    if stack.relative_buckets or not spec.vocabulary:
        raise InputError("a model with a relative position table or without tokens given; not proved as a whole")
    if len({part.sees_later for part in own}) > 1 or not stack.order:
        raise InputError("a model without layers, or with attention of both kinds, given; not proved as a whole")


def count_roots(program: Program) -> int:
    """The roots that rest on the second token, or on any where both see each other, behind one output."""
    flags = needed_entries(program, 0)
    both = both_are_read(program)
    return sum(int(flags[k].sum()) for k in program.places("root") if both or "second" in program.sources[k])


def prove_model(spec: TransformerSpec, *, seed: int = 0, subject: str = "model") -> RankProof:
    """Bounds of the dimension of the functions (logits) of a whole model by rank mod p; equal bounds are a proof.

    For one stack of token embeddings and at most 4,096 weights. The vocabulary has to be large enough for its pairs
    of tokens to show the model: a small one can have a larger fiber, which ends as undecided.
    """
    check_model(spec)
    if spec.parameters > MAX_PARAMETERS:
        raise SizeError(f"a model of {spec.parameters} weights given; at most {MAX_PARAMETERS} are proved by rank")
    formula = redundancy(spec).total
    program = model_program(spec)
    roots = count_roots(program)
    if roots > MAX_ROOTS:
        raise SizeError(f"a model with {roots} norms per token given; the proof draws until all roots exist: too many")
    both_orders = not both_are_read(program)
    obstacle = find_obstacle(program, f"attngeom/{seed}", both_orders)
    upper = spec.parameters - formula
    lower, samples = (0, 0) if obstacle else _rank(program, spec.width, upper, both_orders, seed)
    if lower > upper:
        raise AssertionError("the count of a model is larger than its redundancy; please report this")
    return RankProof(
        subject=subject,
        parameters=spec.parameters,
        lower=lower,
        upper=upper,
        formula=formula,
        prime=CHAIN[0],
        seed=seed,
        samples=samples,
        obstacle=obstacle,
    )


def _rank(program: Program, width: int, expected: int, both_orders: bool, seed: int) -> tuple[int, int]:
    """The largest rank at pairs of tokens over some points, and the number of pairs."""
    piecewise = any(program.places("pattern"))
    best, drawn, failed = 0, 0, 0
    for number in range(MAX_REGIONS if piecewise else MAX_POINTS):
        try:
            point = TokenPoint(program, f"attngeom/{seed}.{number}", number)
        except SingularError:
            continue
        pairs = _choose_pairs(point, both_orders, seed)
        few = pairs[: (expected + SPARE) * 3 // (2 * width) + SPARE]
        for own in (few, pairs) if len(few) < len(pairs) else (pairs,):
            attempts = point.find_attempts(own)
            there = attempts >= 0
            if not there.any():
                continue
            rows = point.rows(own[there], attempts[there], width)
            drawn += int(there.sum())
            best = max(best, Elimination(rows, point.prime, keep_upper=False).run().rank)
            if best >= expected:
                return best, drawn
        failed += 1
        if failed == MAX_POINTS and not piecewise:
            break
    return best, drawn


def _choose_pairs(point: TokenPoint, both_orders: bool, seed: int) -> Pairs:
    """All pairs of different tokens in a random order, each at a random place."""
    size = point.vocabulary
    rng = np.random.default_rng(seed)
    first, second = np.divmod(rng.permutation(size * size), size)
    kept = first != second if both_orders else first < second
    first, second = first[kept], second[kept]
    return Pairs(first, second, rng.integers(0, len(point.outputs), len(first)), np.arange(len(first)))
