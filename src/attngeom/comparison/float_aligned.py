"""Two float networks compared layer by layer, in the coordinates in which a symmetry puts one onto the other."""

from __future__ import annotations

from attngeom.comparison.float_layer import HeadSample, head_samples, relate_layers
from attngeom.comparison.samples import (
    Layers,
    Sample,
    best_known,
    is_far_from_zero,
    is_zero,
    relate,
)
from attngeom.exact import lapack
from attngeom.exact.domains import Array
from attngeom.network import Architecture, Symmetry


def agree_with_skip(architecture: Architecture, one: Layers, two: Layers, tolerance: float) -> bool:
    """Whether the layers beside a skip connection are equal in turn; layers that add nothing are left out."""
    sides = [
        [heads for heads in map(head_samples, side) if not all(_adds_nothing(head, tolerance) for head in heads)]
        for side in (one, two)
    ]
    return len(sides[0]) == len(sides[1]) and all(
        relate_layers(architecture, a, b, tolerance) == "close" for a, b in zip(*sides)
    )


def _adds_nothing(head: HeadSample, tolerance: float) -> bool:
    return is_zero(head.V, tolerance)


def agree_after(symmetry: Symmetry, gauge: Symmetry, one: Layers, two: Layers, tolerance: float) -> bool:
    """Whether every head of the first network is carried to its place in the second, close in (A, V).

    Both are written in the coordinates of the gauge of least norm of the second, where hidden directions are of equal
    size.
    """
    architecture = symmetry.architecture
    hidden = len(symmetry.between)
    bases = [
        [gauge.between[i] @ symmetry.between[i] for i in range(hidden)],
        [gauge.between[i] for i in range(hidden)],
    ]
    for index, layers in enumerate(zip(one, two)):
        sides = [_in_basis(head_samples(heads), base, index) for heads, base in zip(layers, bases)]
        places = symmetry.orders[index]
        moved = [sides[1][place] for place in places]
        if not all(_heads_agree(architecture, a, b, tolerance) for a, b in zip(sides[0], moved)):
            return False
    return True


def _in_basis(heads: list[HeadSample], bases: list[Array], index: int) -> list[HeadSample]:
    """The heads of a layer with input coordinates bases[index − 1] z and output coordinates bases[index] z."""
    found = []
    back = lapack.inv(bases[index - 1]) if bases and index > 0 else None
    after = bases[index] if index < len(bases) else None
    for head in heads:
        A, V = head.A, head.V
        if back is not None:
            A, V = Sample(back.T @ A.values @ back, A.exponent), Sample(V.values @ back, V.exponent)
        if after is not None:
            V = Sample(after @ V.values, V.exponent)
        found.append(HeadSample(A.normalised(), V.normalised()))
    return found


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
        pivot = head.A.values[:, place[0], place[1]][:, None, None]
        normal.append((Sample(head.A.values / pivot), Sample(head.V.values * pivot, head.A.exponent + head.V.exponent)))
    return all(relate(a, b, tolerance) == "close" for a, b in zip(*normal))
