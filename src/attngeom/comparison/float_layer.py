"""Layers of floats, decided without hypotheses: coefficients (lightning), or heads by Theorem D (softmax).

Deep networks are compared layer by layer beside a skip connection, and in the coordinates in which a symmetry puts one
onto the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from attngeom.comparison.results import UNTOLD, Ruling
from attngeom.comparison.samples import (
    Layers,
    Relation,
    Sample,
    best_known,
    bilinear,
    is_far_from_zero,
    is_zero,
    joint,
    relate,
    total,
    value_sample,
)
from attngeom.exact import lapack
from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array
from attngeom.exact.multisets import splits
from attngeom.layer.coefficients import quadric_table, symmetrize
from attngeom.limits.memory import QUADRIC_TABLE
from attngeom.network import Architecture, Symmetry


@dataclass(frozen=True, eq=False)
class HeadSample:
    """A and V (the whole value map) of one head for all copies."""

    A: Sample
    V: Sample


def head_samples(heads: list[dict[str, np.ndarray]]) -> list[HeadSample]:
    """(A, V) of the heads of one layer."""
    samples = []
    for head in heads:
        Q, K = (Sample(head[name]).normalised() for name in "QK")
        samples.append(HeadSample(K.transposed().times(Q), value_sample(head)))
    return samples


def relate_layers(
    architecture: Architecture, one: list[HeadSample], two: list[HeadSample], tolerance: float
) -> Relation:
    """How the functions of two layers compare; far means that no copies of them are equal."""
    if architecture.view != "scaled":
        return _relate_heads(architecture, one, two, tolerance)
    d_out, d = one[0].V.value.shape
    if d_out * d * d * (d + 1) // 2 > QUADRIC_TABLE:
        return "unclear"
    return _relate_tables(_table(one, architecture.tokens), _table(two, architecture.tokens), tolerance)


def judge_layer(architecture: Architecture, one: list[HeadSample], two: list[HeadSample], tolerance: float) -> Ruling:
    """The verdict on networks of one layer."""
    relation = relate_layers(architecture, one, two, tolerance)
    lightning = architecture.view == "scaled"
    what = "the coefficients of the layer" if lightning else "the heads of the layer, those with one A added up,"
    if relation == "close":
        return Ruling(True, f"{what} agree")
    if relation == "far" and (lightning or architecture.rule.is_normalised):
        theorem = "" if lightning else " (Theorem D)"
        return Ruling(False, f"{what} differ beyond what the tolerance explains{theorem}")
    return UNTOLD


def _table(heads: list[HeadSample], tokens: int) -> Sample:
    """The coefficients c(S, m) of the layer, (copies, d_out, C(d+1,2), d); of one token c(R) at every R = S ⊎ {m}."""
    tables = (bilinear(lambda A, V: quadric_table(A, V, RR), head.A, head.V) for head in heads)
    cross = total([table.normalised() for table in tables]).map(swap)
    return (cross.map(_of_one_token) if tokens == 1 else cross).normalised()


def _of_one_token(cross: Array) -> Array:
    rows, parts, ends = splits(cross.shape[-1])
    single, table = symmetrize(cross, cross.shape[-1], RR), np.empty_like(cross)
    table[..., parts, ends] = single[..., rows]
    return table


def _relate_tables(one: Sample, two: Sample, tolerance: float) -> Relation:
    """Tables compared entry by entry, and in every direction of output and of query."""
    relations: set[Relation] = set()
    for axis in (1, 3):
        a, b = (x.map(partial(_flattened, axis=axis)) for x in (one, two))
        relations.add(relate(a, b, tolerance))
    return joint(relations)


def _flattened(tables: Array, axis: int) -> Array:
    return np.moveaxis(tables, axis, 1).reshape(len(tables), tables.shape[axis], -1)


@dataclass(eq=False)
class _Group:
    """Heads with one A, up to sign where the sign is not seen; ΣV of each side with those signs."""

    A: Sample
    totals: list[Sample]


def _relate_heads(
    architecture: Architecture, one: list[HeadSample], two: list[HeadSample], tolerance: float
) -> Relation:
    tokens = architecture.tokens if architecture.rule.is_normalised else 3
    totals = [total([head.V for head in side]) for side in (one, two)]
    relation = relate(totals[0], totals[1], tolerance)
    if tokens == 1:
        return relation
    # For t ≥ 3 the groups below say all there is to say; ΣV alone proves a difference.
    relations: set[Relation] = {relation if tokens == 2 or relation == "far" else "close"}
    groups: list[_Group] = []
    for side, heads in enumerate((one, two)):
        for head in heads:
            if is_zero(head.V, tolerance) or (tokens == 2 and is_zero(head.A, tolerance)):
                continue
            if not _place(groups, head, side, tokens, tolerance):
                return "far" if relation == "far" else "unclear"
    if tokens == 2 and not all(is_far_from_zero(group.A) for group in groups):
        # A head whose A may or may not be zero may belong to the mean instead.
        return "far" if relation == "far" else "unclear"
    return joint(relations | {relate(group.totals[0], group.totals[1], tolerance) for group in groups})


def _place(groups: list[_Group], head: HeadSample, side: int, tokens: int, tolerance: float) -> bool:
    """Add a head to its group, or to a new one; False if its A is neither close to others nor far from them."""
    home: tuple[_Group, int] | None = None
    for group in groups:
        for sign in (1, -1) if tokens == 2 else (1,):
            relation = relate(head.A.map(partial(np.multiply, sign)), group.A, tolerance)
            if relation == "close" and home is None:
                home = group, sign
            elif relation != "far":
                return False
    if home is None:
        home = _Group(head.A, [Sample(np.zeros_like(head.V.values))] * 2), 1
        groups.append(home[0])
    group, sign = home
    group.totals[side] = total([group.totals[side], head.V.map(partial(np.multiply, sign))])
    return True


def agree_with_skip(architecture: Architecture, one: Layers, two: Layers, tolerance: float) -> bool:
    """Whether the layers beside a skip connection are equal in turn; layers that add nothing are left out."""
    sides = [
        [heads for heads in map(head_samples, side) if not all(is_zero(head.V, tolerance) for head in heads)]
        for side in (one, two)
    ]
    return len(sides[0]) == len(sides[1]) and all(
        relate_layers(architecture, a, b, tolerance) == "close" for a, b in zip(*sides)
    )


def agree_after(symmetry: Symmetry, gauge: Symmetry, one: Layers, two: Layers, tolerance: float) -> bool:
    """Whether every head of the first network is carried to its place in the second, close in (A, V).

    Both are written in the coordinates of the gauge of least norm of the second, where hidden directions are of equal
    size.
    """
    bases = tuple(g @ s for g, s in zip(gauge.between, symmetry.between)), gauge.between
    for index, layers in enumerate(zip(one, two)):
        heads, others = (_in_basis(head_samples(side), base, index) for side, base in zip(layers, bases))
        pairs = zip(heads, (others[place] for place in symmetry.orders[index]))
        if not all(_heads_agree(symmetry.architecture, a, b, tolerance) for a, b in pairs):
            return False
    return True


def _in_basis(heads: list[HeadSample], bases: tuple[Array, ...], index: int) -> list[HeadSample]:
    """The heads of a layer with input coordinates bases[index − 1] z and output coordinates bases[index] z."""
    samples = []
    back = lapack.inv(bases[index - 1]) if bases and index > 0 else None
    after = bases[index] if index < len(bases) else None
    for head in heads:
        A, V = head.A, head.V
        if back is not None:
            A, V = A.map(lambda a: back.T @ a @ back), V.map(lambda v: v @ back)
        if after is not None:
            V = V.map(partial(np.matmul, after))
        samples.append(HeadSample(A.normalised(), V.normalised()))
    return samples


def _heads_agree(architecture: Architecture, one: HeadSample, two: HeadSample, tolerance: float) -> bool:
    if is_zero(one.V, tolerance) and is_zero(two.V, tolerance):
        return True
    if not architecture.rule.has_scale:
        return relate(one.A, two.A, tolerance) == relate(one.V, two.V, tolerance) == "close"
    if is_zero(one.A, tolerance) and is_zero(two.A, tolerance):
        return True
    if not is_far_from_zero(one.A) or not is_far_from_zero(two.A):
        return False
    place = best_known(one.A, two.A)
    normal = []
    for head in (one, two):
        pivot = head.A.entry(place)
        normal.append((head.A.over(pivot), bilinear(np.multiply, head.V, pivot)))
    return all(relate(a, b, tolerance) == "close" for a, b in zip(*normal))
