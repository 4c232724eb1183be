"""A training run seen from its checkpoints: ranks with gaps, the nearest rank stratum, laws and their drift.

Everything here is measured in floats, so all of it is an estimate; what is exact of an architecture (its dimension, its
laws) is proven elsewhere and only compared with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.dimensions import PointRank, dimension, rank_at
from attngeom.errors import AttnGeomError, InputError
from attngeom.exact import lapack
from attngeom.exact.domains import QQ, RR, Array
from attngeom.exact.precise import count_above
from attngeom.inspection.hypotheses import in_range
from attngeom.learning.answer import learning_coefficient
from attngeom.learning.blocks import place_name, unit_size
from attngeom.learning.laws import Laws, conserved_quantities
from attngeom.learning.pairs import Pair
from attngeom.limits.rounding import RANK_NOISE
from attngeom.limits.sizes import TRACKED_CHECKPOINTS
from attngeom.limits.trials import BLOCKS_TRIED
from attngeom.limits.work import LOCAL_RANK_PARAMETERS
from attngeom.network.weights import Head, Weights
from attngeom.results import Result


@dataclass(frozen=True)
class BlockRank:
    """A matrix A = KᵀQ or value map of one head: its rank, the gap there, and how far the next lower rank is.

    ``gap`` is σ_r/σ_{r+1}, None if nothing lies below; ``distance`` is σ_n/‖·‖ for the largest possible rank n: by
    Eckart and Young the distance of the matrix, scaled to norm 1, to the matrices of smaller rank; 0 below rounding.
    """

    name: str
    rank: int
    full: int
    gap: float | None
    distance: float


@dataclass(frozen=True)
class Snapshot:
    """One checkpoint: its norm, its blocks, (λ, m) here, and the nearest singular stratum with (λ, m) there.

    ``pair`` is (λ, m) at the checkpoint, None where it is not known; ``nearest`` the block whose next smaller rank is
    nearest and singular, None if no block has one; ``nearest_pair`` is (λ, m) of the nearest stratum, at the weights
    with that block cut to the smaller rank. ``why`` and ``nearest_why`` say on what they rest. ``drift`` is ‖h(w) −
    h(w_0)‖/‖w_0‖² for the vector h of all laws, None if w_0 = 0.
    """

    name: str
    norm: float
    blocks: tuple[BlockRank, ...]
    pair: Pair | None
    why: str
    nearest: BlockRank | None
    nearest_pair: Pair | None
    nearest_why: str
    jacobian: PointRank | None
    drift: float | None

    @property
    def stratum(self) -> str:
        """The matrices that are not of full rank."""
        low = [f"rk {block.name} = {block.rank} of {block.full}" for block in self.blocks if block.rank < block.full]
        return ", ".join(low) or "generic"

    def to_json(self) -> dict[str, Any]:
        jacobian = None
        if self.jacobian is not None:
            gap = None if self.jacobian.measured is None else self.jacobian.measured.gap
            jacobian = {"rank": self.jacobian.rank, "gap": gap, "generic": self.jacobian.generic}
        return {
            "checkpoint": self.name,
            "norm": self.norm,
            "blocks": [asdict(block) for block in self.blocks],
            "stratum": self.stratum,
            "lambda": None if self.pair is None else str(self.pair.value),
            "multiplicity": None if self.pair is None else self.pair.multiplicity,
            "lambda_reason": self.why,
            "nearest": None if self.nearest is None else self.nearest.name,
            "distance": None if self.nearest is None else self.nearest.distance,
            "nearest_lambda": None if self.nearest_pair is None else str(self.nearest_pair.value),
            "nearest_multiplicity": None if self.nearest_pair is None else self.nearest_pair.multiplicity,
            "nearest_lambda_reason": self.nearest_why,
            "jacobian": jacobian,
            "drift": self.drift,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Track(Result):
    """The checkpoints of one run in their order, the laws that gradient flow would conserve, and the dimension.

    ``dimension`` is that of the set of functions, None for networks of more than 3,000 parameters.
    """

    seed: int
    laws: Laws
    dimension: int | None
    snapshots: tuple[Snapshot, ...]

    @property
    def largest_drift(self) -> float | None:
        """Of the laws, relative to ‖w_0‖²."""
        return max((x.drift for x in self.snapshots if x.drift is not None), default=None)

    @property
    def fall(self) -> tuple[str, str] | None:
        """The first two checkpoints in a row whose names differ in numbers alone, and those fall: step10 and step2."""
        for one, two in pairwise(Path(x.name).name for x in self.snapshots):
            (words, numbers), (same_words, later) = map(_split_numbers, (one, two))
            if words == same_words and numbers > later:
                return one, two
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "architecture": self.laws.architecture.to_json(),
            "dimension": self.dimension,
            "laws": {"count": self.laws.count, "is_complete": self.laws.is_complete},
            "largest_drift": self.largest_drift,
            "checkpoints": [snapshot.to_json() for snapshot in self.snapshots],
            **self.select("standing", "reason"),
            "status": self.reason,
            "seed": self.seed,
        }

    def rows(self) -> Mapping[str, Any]:
        drift = "cannot be told" if self.largest_drift is None else f"{digits.error(self.largest_drift)} of ‖w‖²"
        count = "not counted" if self.laws.count is None else f"{self.laws.count:,}"
        complete = "all there are" if self.laws.is_complete else "not proven to be all"
        last = self.snapshots[-1].nearest
        distance = "" if last is None else digits.error(last.distance, 2)
        nearest = "no block" if last is None else f"{last.name} to rank {last.full - 1}, {distance}"
        if (there := self.snapshots[-1].nearest_pair) is not None:
            nearest += f", (λ, m) of the nearest stratum {there}"
        end = self.snapshots[-1]
        return {
            "checkpoints": len(self.snapshots),
            **({} if self.fall is None else {"order": f"{self.fall[0]} stands before {self.fall[1]}; is that meant?"}),
            "(λ, m) at the end": "unknown" if end.pair is None else str(end.pair),
            "laws": f"{count} independent, {complete}",
            "largest drift": drift,
            "nearest singular stratum at the end": nearest,
            **self.select("standing", "reason"),
        }


def _split_numbers(name: str) -> tuple[list[str], list[int]]:
    """The words of a name, and the numbers between them."""
    parts = re.split(r"(\d+)", name)
    return parts[::2], list(map(int, parts[1::2]))


def track(checkpoints: Sequence[Weights], names: Sequence[str] | None = None, seed: int = 0) -> Track:
    """Ranks, strata, drift of conserved quantities along checkpoints of one architecture, in their order.

    Ranks and (λ, m) of exact weights are exact (the rank of the Jacobian: of lightning weights); all else is measured
    at the nearest floats. The laws are those of
    gradient flow: drift says how far the run was from it.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 3), 2), RR, seed=0)
    >>> track([w, w]).largest_drift
    0.0
    """
    if not 1 <= len(checkpoints) <= TRACKED_CHECKPOINTS:
        raise InputError(f"{len(checkpoints)} checkpoints given; 1 to {TRACKED_CHECKPOINTS:,} are required")
    labels = [f"checkpoint {k}" for k in range(len(checkpoints))] if names is None else list(names)
    architecture = checkpoints[0].architecture
    for label, weights in zip(labels, checkpoints, strict=True):
        if weights.architecture != architecture:
            raise InputError(
                f"{Path(label).name[:60]}: another architecture than the first; give checkpoints of one run"
            )
    floats = [_rounded(weights, Path(label).name[:60]) for label, weights in zip(labels, checkpoints)]
    laws = conserved_quantities(architecture, seed=seed)
    drifts = law_drifts(laws, floats)
    known = (
        dimension(architecture, seed=seed).dimension if architecture.num_parameters <= LOCAL_RANK_PARAMETERS else None
    )
    snapshots = tuple(_snapshot(*parts, known, seed) for parts in zip(labels, checkpoints, floats, drifts))
    return Track(
        standing="estimate",
        reason="ranks, distances and drifts are measured in floats",
        seed=seed,
        laws=laws,
        dimension=known,
        snapshots=snapshots,
    )


def _rounded(weights: Weights, label: str) -> Weights:
    """The nearest floats, none of which is 0 where the entry is not."""
    try:
        floats = weights.to(RR)
        lost = any(bool(x) and not y for x, y in zip(weights.vector().tolist(), floats.vector().tolist()))
    except InputError:
        lost = True
    if lost:
        raise InputError(
            f"{label}: entries beyond the range of floats given; finite ones of moderate size are required"
        )
    return floats


def law_drifts(laws: Laws, run: Sequence[Weights]) -> list[float | None]:
    """‖h(w) − h(w_0)‖/‖w_0‖² for the vector h of all laws, at every checkpoint.

    Weights are scaled by their largest entry first, so that no square overflows or vanishes.
    """
    size = max(float(np.abs(weights.vector()).max()) for weights in run) or 1.0
    first = _scaled(run[0], size)
    start, square = laws.vector(first), float(np.sum(first.vector() ** 2))
    if square == 0.0:
        return [None] * len(run)
    return [float(np.linalg.norm(laws.vector(_scaled(weights, size)) - start)) / square for weights in run]


def _scaled(weights: Weights, size: float) -> Weights:
    return Weights.from_vector(weights.architecture, weights.vector() / size, RR)


def _snapshot(
    name: str, given: Weights, weights: Weights, drift: float | None, known: int | None, seed: int
) -> Snapshot:
    """What is seen of the weights as given, and of their floats."""
    blocks = tuple(block for _, block, _ in _blocks(weights))
    if given.domain.is_exact:
        blocks = tuple(map(_with_rank, blocks, _exact_ranks(given)))
    is_seen_exactly = given.domain.is_exact and given.architecture.rule.evaluates(QQ)
    point = given if is_seen_exactly else weights
    jacobian = _jacobian(point, seed) if weights.architecture.num_parameters <= LOCAL_RANK_PARAMETERS else None
    pair, why = _own_pair(given, seed)
    nearest, nearest_pair, nearest_why = _nearest(weights, blocks, (pair, why), known, seed)
    size = float(np.abs(weights.vector()).max())
    norm = size * float(np.linalg.norm(weights.vector() / size)) if size else 0.0
    return Snapshot(name, norm, blocks, pair, why, nearest, nearest_pair, nearest_why, jacobian, drift)


def _own_pair(weights: Weights, seed: int) -> tuple[Pair | None, str]:
    """(λ, m) at the checkpoint itself, and why it is, or is not, known."""
    if weights.architecture.num_parameters > LOCAL_RANK_PARAMETERS:
        return None, f"(λ, m) is measured up to {LOCAL_RANK_PARAMETERS:,} parameters"
    return _pair_at(weights if weights.domain.is_exact else _in_reach(weights), seed)


def _nearest(
    weights: Weights, blocks: tuple[BlockRank, ...], own: tuple[Pair | None, str], known: int | None, seed: int
) -> tuple[BlockRank | None, Pair | None, str]:
    """The block whose next smaller rank is nearest among those that are singular, with (λ, m) there and why.

    A smaller rank is not singular if (λ, m) = (D/2, 1) there, as at generic weights of dimension D. Weights that have
    a smaller rank are in that stratum, with the pair that is their own.
    """
    ordered = sorted(blocks, key=lambda block: block.distance)
    if weights.architecture.num_parameters > LOCAL_RANK_PARAMETERS:
        return ordered[0], None, f"(λ, m) is measured up to {LOCAL_RANK_PARAMETERS:,} parameters"
    for block in ordered[:BLOCKS_TRIED]:
        pair, why = own if block.rank < block.full else _pair_at_cut(weights, block, seed)
        if pair is None or known is None or pair != Pair.coordinates(known):
            return block, pair, why
    return None, None, "no smaller rank of one of the nearest matrices is singular"


def _jacobian(weights: Weights, seed: int) -> PointRank | None:
    """The rank of the parametrization; None where it is too much work or beyond the range of floats.

    Scales change no rank where the function is homogeneous in every tensor.
    """
    is_scaled = weights.domain.rounds and weights.architecture.is_homogeneous
    try:
        return rank_at(_in_reach(weights) if is_scaled else weights, seed)
    except AttnGeomError:
        return None


Factors = tuple[Array, Array | None]
"""A matrix, or two whose product it is."""


def _blocks(weights: Weights) -> Iterator[tuple[tuple[int, int, str], BlockRank, Factors]]:
    """A and the value map of every head: their place (layer, head, letter), what was measured, and their factors."""
    for index, heads in enumerate(weights.layers):
        for place, head in enumerate(heads):
            tag = place_name(weights.architecture, index, place)
            value: Factors = (head.V, None) if head.O is None else (head.O, head.V)
            for letter, factors in (("A", (head.K.T, head.Q)), ("V", value)):
                yield (index, place, letter), _measure(f"{letter}{tag}", factors), factors


def _exact_ranks(weights: Weights) -> Iterator[int]:
    """The ranks of A and of the value map of every head, in the order of :func:`_blocks`."""
    for heads, values in zip(weights.attention_matrices(), weights.value_matrices()):
        for A, V in zip(heads, values):
            yield from (weights.domain.rank(A), weights.domain.rank(V))


def _with_rank(block: BlockRank, rank: int) -> BlockRank:
    """The block with its exact rank."""
    if rank == block.rank:
        return block
    return replace(block, rank=rank, gap=None, distance=block.distance if rank == block.full else 0.0)


def _measure(name: str, factors: Factors) -> BlockRank:
    """The rank, the gap and the relative distance to a smaller rank, from singular values of the matrix at norm 1."""
    left, right = factors
    full = min(left.shape) if right is None else min(left.shape[0], left.shape[1], right.shape[1])
    values = _singular_values(left, right)[:full]
    norm = float(np.linalg.norm(values))
    if norm == 0.0:
        return BlockRank(name, 0, full, None, 0.0)
    values = values / norm
    rank = count_above(values, max(left.shape) * RANK_NOISE, values[0])
    return BlockRank(name, rank.value, full, rank.gap, float(values[-1]) if rank.value == full else 0.0)


def _singular_values(left: Array, right: Array | None) -> Array:
    """Those of a matrix, or of a product by way of the small middle: the factors scaled, no large square formed."""
    left = unit_size(left)
    if right is None:
        return lapack.svdvals(left)
    right = unit_size(right)
    first, second = lapack.triangle(left), lapack.triangle(right.T)
    return lapack.svdvals(first @ second.T)


def _pair_at_cut(weights: Weights, block: BlockRank, seed: int) -> tuple[Pair | None, str]:
    """(λ, m) at the weights with the block cut to the next smaller rank, and why it is, or is not, known."""
    return _pair_at(cut_block(_in_reach(weights), block.name), seed)


def _in_reach(weights: Weights) -> Weights:
    """Weights of any size in the range of floats, where scales change no (λ, m): for one head, no skip connection."""
    return in_range(weights) if weights.architecture.has_virtual_weights else weights


def _pair_at(weights: Weights, seed: int) -> tuple[Pair | None, str]:
    try:
        coefficient = learning_coefficient(weights, seed=seed)
    except AttnGeomError as error:
        return None, str(error)
    return (
        coefficient.pair,
        coefficient.reason if coefficient.pair is None else f"Theorem {coefficient.theorem}: {coefficient.stratum}",
    )


def cut_block(weights: Weights, name: str) -> Weights:
    """The weights with one block replaced by the nearest matrix of smaller rank, its factors projected accordingly.

    With A = U Σ Wᵀ cut to U' Σ' W'ᵀ, the factors K U'U'ᵀ and Q W'W'ᵀ have that rank, and their product is the cut A.
    """
    for (index, place, letter), block, (left, right) in _blocks(weights):
        if block.name != name:
            continue
        matrix = left if right is None else left @ right
        U, _, W = lapack.svd(matrix, full_matrices=False)
        keep = max(block.full - 1, 0)
        before, after = U[:, :keep] @ U[:, :keep].T, W[:keep].T @ W[:keep]
        head = weights.layers[index][place]
        layers = [list(heads) for heads in weights.layers]
        layers[index][place] = _project(head, letter, before, after)
        return Weights(weights.architecture, RR, tuple(map(tuple, layers)))
    raise InputError(f"block {name[:40]!r} given; the weights have no such matrix")


def _project(head: Head, letter: str, before: Array, after: Array) -> Head:
    if letter == "A":
        return replace(head, K=head.K @ before, Q=head.Q @ after)
    if head.O is None:
        return replace(head, V=before @ head.V)
    return replace(head, O=before @ head.O, V=head.V @ after)
