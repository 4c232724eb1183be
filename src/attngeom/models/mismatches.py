"""How far two aligned layers differ, per head and per unit, and how far rounding of their files would let them differ.

What is measured follows from the factors of the block: each states the errors of the tensors that it brought together,
with what rounding noise becomes that is pushed through the alignment, and how many digits folding lost.

Heads are listed one by one. Units are many: of them the count, the middle and the largest ratio are kept, and those
that rounding does not explain are listed, at most `LOCATED_UNITS` of them, the worst first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.rounding import FOLDING_ROUNDING, HEADS_AGREE, TENSORS_AGREE
from attngeom.limits.shown import LOCATED_UNITS
from attngeom.models.layer import LayerWeights
from attngeom.models.orbits import Recovered
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry import factors
from attngeom.models.tensor_errors import Along, Errors, Noise, TensorPart


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """Relative difference of one tensor in one head or unit, and what rounding explains."""

    of: TensorPart
    index: int | None
    value: float
    expected: float
    factor: float = TENSORS_AGREE

    @property
    def part(self) -> str:
        """The name of the tensor among the parts of a layer."""
        return self.of.name

    @property
    def place(self) -> str:
        """Where in the tensor: a head, a hidden unit, or a row; empty for all of it.

        >>> Mismatch(of=TensorPart("experts.0", "up", Along.UNIT), index=3, value=0.5, expected=0.1).place
        'unit 3'
        """
        return "" if self.index is None else f"{self.of.along} {self.index}"

    @property
    def ratio(self) -> float:
        return self.value / self.expected

    @property
    def allowed(self) -> float:
        """The bound that decides: up to it the tensors agree."""
        return self.factor * self.expected


@dataclass(frozen=True, kw_only=True)
class Mismatches:
    """The mismatches of one tensor in all its heads or units, as arrays."""

    of: TensorPart
    values: Array
    expected: Array
    is_aligned: bool = False
    """Whether a matrix aligned each head: what is expected is then a mean of many errors."""
    is_bound: bool = False
    """Whether what is expected is the bound itself, given by the user."""

    @property
    def factor(self) -> float:
        return 1.0 if self.is_bound else HEADS_AGREE if self.is_aligned else TENSORS_AGREE

    @property
    def ratios(self) -> Array:
        return self.values / self.expected

    def __getitem__(self, index: int) -> Mismatch:
        place = index if len(self.values) > 1 else None
        value, expected = float(self.values[index]), float(self.expected[index])
        return Mismatch(of=self.of, index=place, value=value, expected=expected, factor=self.factor)

    @property
    def worst(self) -> Mismatch:
        return self[int(self.ratios.argmax())]


def layer_mismatches(target: LayerWeights, symmetry: Recovered, unit: float, noise: Noise) -> list[Mismatches]:
    """All mismatches of a layer; ``unit`` is the roundoff of the files, ``noise`` the loss by folding per part."""
    errors: dict[TensorPart, Errors] = {}
    for factor, move in symmetry.moves:
        for own in factor.errors(target, symmetry.aligned, move, noise):
            errors[own.part] = errors[own.part] + own if own.part in errors else own
    result = []
    for own in errors.values():
        for part, values, growth in own.measured():
            # A head of zeros has no rounding to push through: half a unit stands in.
            limits = np.maximum(growth, 0.5) * max(1.0, noise.get(part, 1.0)) * max(unit, FOLDING_ROUNDING)
            aligned = own.growth is not None and part == own.part
            if len(values):
                result.append(Mismatches(of=part, values=values, expected=limits, is_aligned=aligned))
    return result


Losses = Mapping[tuple[TensorPart, int], tuple[float, float]]
"""The sizes of what folding summed for the first, second, … rows of a part, and of what is left of them."""


def folding_losses(block: TransformerBlock, stored: LayerWeights, folded: LayerWeights) -> Losses:
    """What folding summed in a layer and what it left, part by part."""
    losses: dict[tuple[TensorPart, int], tuple[float, float]] = {}
    seen: Counter[TensorPart] = Counter()
    for part, before, after in (item for factor in factors(block) for item in factor.lost(stored, folded)):
        losses[part, seen[part]] = before, after
        seen[part] += 1
    return losses


def noise_of(models: Sequence[Losses]) -> Noise:
    """The worst of the losses in several models, part by part: 1 means that folding lost no digits.

    What is left is that of the model that has more of it: what one model lost explains nothing of a tensor that is
    large in the other one.
    """
    left: dict[tuple[TensorPart, int], float] = {}
    for own in models:
        for key, (_, after) in own.items():
            left[key] = max(left.get(key, 0.0), after)
    noise: dict[TensorPart, float] = {}
    for own in models:
        for key, (before, _) in own.items():
            if left[key] > 0:
                noise[key[0]] = max(noise.get(key[0], 1.0), before / left[key])
    return noise


Name = Callable[[TensorPart], str]
Place = tuple[str, Mismatch]
"""The name of a tensor, and its mismatch at one head or unit."""


def mismatch_json(tensor: str, mismatch: Mismatch) -> dict[str, Any]:
    """A mismatch with the name of its tensor."""
    return {
        "tensor": tensor,
        "part": mismatch.part,
        "head": mismatch.index,
        "mismatch": mismatch.value,
        "misfit": mismatch.value,  # the key of 0.1, kept until the next major version
        "expected": mismatch.expected,
        "allowed": mismatch.allowed,
    }


@dataclass(frozen=True, kw_only=True)
class UnitMismatches:
    """Mismatches of all units of one MLP, in units of what rounding explains; ``listed`` are the worst beyond it."""

    place: str
    count: int
    median: float
    largest: float
    beyond: int
    listed: tuple[Place, ...]

    def to_json(self) -> dict[str, Any]:
        rows = [{**mismatch_json(name, m), "unit": m.index} for name, m in self.listed]
        for row in rows:
            del row["head"]
        return {
            "mlp": self.place,
            "count": self.count,
            "median_ratio": self.median,
            "largest_ratio": self.largest,
            "beyond_rounding": self.beyond,
            "listed": rows,
        }


def worst_by_head(mismatches: Sequence[Mismatches], name: Name, place: str) -> tuple[Place, ...]:
    """For each query head of an attention its worst tensor; heads of a group share keys and values."""
    chosen = [m for m in mismatches if m.of.along is Along.HEAD and m.of.place == place]
    return _worst(chosen, max((len(m.values) for m in chosen), default=0), name)


def worst_units(mismatches: Sequence[Mismatches], name: Name, limit: float) -> tuple[UnitMismatches, ...]:
    """For each MLP of the layer its units; ``limit`` is the ratio up to which rounding explains a mismatch."""
    by_place: dict[str, list[Mismatches]] = {}
    for m in mismatches:
        if m.of.along is Along.UNIT:
            by_place.setdefault(m.of.place, []).append(m)
    result = []
    for place, own in by_place.items():
        ratios = np.max([m.ratios for m in own], axis=0)
        beyond = np.flatnonzero(ratios > limit)
        worst = beyond[np.argsort(-ratios[beyond], kind="stable")][:LOCATED_UNITS]
        result.append(
            UnitMismatches(
                place=place, count=len(ratios), median=float(np.median(ratios)), largest=float(ratios.max()),
                beyond=len(beyond), listed=_worst(own, len(ratios), name, worst),
            )
        )  # fmt: skip
    return tuple(result)


def _worst(mismatches: Sequence[Mismatches], count: int, name: Name, chosen: Array | None = None) -> tuple[Place, ...]:
    """At each chosen one of ``count`` places the tensor of largest ratio; shorter tensors are shared by neighbours."""
    if not mismatches:
        return ()
    table = np.array([np.repeat(m.ratios, count // len(m.values)) for m in mismatches])
    places = []
    for place in range(count) if chosen is None else (int(i) for i in chosen):
        worst = mismatches[int(table[:, place].argmax())]
        at = place * len(worst.values) // count
        places.append((name(worst.of), replace(worst[at], index=place)))
    return tuple(places)
