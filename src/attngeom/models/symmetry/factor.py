"""The contract of a factor of the symmetry group of a block, and of the moves that it makes.

A factor is a group and the tensors on which it acts. It says how a move is drawn, found between two layers, and undone;
which point of its orbit is the canonical one, and how many dimensions the orbit has; what is folded away before layers
are compared, and how far the tensors differ that it brought together. Everything above loops over the list
:func:`attngeom.models.symmetry.block.factors` and asks no factor what it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Gauge, Group, Sampler
from attngeom.limits.rounding import RESIDUAL_MARGIN
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights, RecurrentWeights
from attngeom.models.probes import AttentionProbe, Invariants
from attngeom.models.specification import GroupedAttention, TransformerBlock
from attngeom.models.surroundings import PlacedSublayer, Surroundings
from attngeom.models.tensor_errors import Along, Errors, Loss, Noise, TensorPart, by_entry

HeadWeights = AttentionWeights | RecurrentWeights
PartName = Literal["query_key", "value_output", "key_bias", "value_bias", "norm", "hidden_units", "latents", "residual"]
PART_NAMES: tuple[PartName, ...] = get_args(PartName)


@dataclass(frozen=True, kw_only=True)
class RedundantPart:
    """``count`` redundant dimensions of one part, the group whose orbits they are, and the lemma that says so."""

    part: PartName
    count: int
    group: str
    lemma: str


class Part(ABC):
    """One move of a layer that keeps its function; a symmetry is a sequence of parts."""

    @abstractmethod
    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        """The layer moved."""

    @abstractmethod
    def inverse(self) -> Part:
        """What undoes the part."""

    @property
    def name(self) -> str:
        """The name of the part in files."""
        return type(self).__name__

    @property
    def condition(self) -> float:
        """How far the part may amplify rounding."""
        return 1.0

    def arrays(self) -> dict[str, Array]:
        """The arrays that fix the part, by the names that files give them."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in own.items() if isinstance(value, np.ndarray)}


@dataclass(frozen=True)
class Freedom:
    """What may be multiplied into ``tensors`` for nothing; ``rotations`` of their coordinates that are among it.

    None where nobody would ask for rotations: orders, gains.
    """

    tensors: str
    matrices: str
    rotations: Literal["all", "in planes", "none"] | None = None

    def to_json(self) -> dict[str, str | None]:
        return {"tensors": self.tensors, "matrices": self.matrices, "rotations": self.rotations}


class Displacement(Part):
    """A part that adds its arrays to weights, and is undone by their negatives."""

    def inverse(self) -> Displacement:
        negatives = {name: -value for name, value in self.arrays().items()}
        return replace(self, **negatives)  # type: ignore[type-var]  # every part is a dataclass


@dataclass
class Replay:
    """Two layers that take the same parts: the pattern on its way back to ``stored``, and the layer that follows."""

    block: TransformerBlock
    stored: LayerWeights
    pattern: LayerWeights
    layer: LayerWeights

    def take(self, part: Part) -> None:
        self.layer, self.pattern = (part.act(self.block, layer) for layer in (self.layer, self.pattern))


@dataclass(frozen=True)
class Factor:
    """One factor of the group of a block; ``place`` names the sublayer or the norm on which it acts.

    ``topic`` is the word by which users choose what is moved. Discrete factors are matched before the others, by
    features that no other factor changes; deferred ones last, and moved only where the moved layer is asked for.
    """

    block: TransformerBlock
    place: str
    topic: ClassVar[str] = ""
    is_discrete: ClassVar[bool] = False
    is_deferred: ClassVar[bool] = False

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        """The dimensions of the orbits of generic weights in a block in its place, by the parts of a count."""
        return iter(())

    def freedoms(self) -> Iterator[Freedom]:
        """What a quantiser, converter or merger may multiply into the weights of the block."""
        return iter(())

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        """Random moves."""
        return iter(())

    def match(self, target: LayerWeights, source: LayerWeights) -> Part | None:
        """The move that brings a folded source next to a folded target; None where folding left nothing to move."""
        return None

    def fix(self, layer: LayerWeights, gauge: Gauge) -> LayerWeights:
        """The point of the orbit of a folded layer in the gauge."""
        return layer

    def folding(self, layer: LayerWeights) -> Part | None:
        """The move that folds a layer; None where folding is no move of the factor, or there is nothing to fold."""
        return None

    def fold(self, layer: LayerWeights) -> LayerWeights:
        """The layer without what no reader can see of this factor."""
        part = self.folding(layer)
        return layer if part is None else part.act(self.block, layer)

    def unfold(self, replay: Replay) -> None:
        """Undo the folding of the pattern, and move the other layer alike."""
        now, wanted = self.folding(replay.pattern), self.folding(replay.stored)
        if now is not None and wanted is not None:
            replay.take(now)
            replay.take(wanted.inverse())

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        """Where folding summed more than it left: the parts, and the ratio of sizes."""
        return iter(())

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        """How far the tensors of the factor differ in two layers that its ``move`` brought together.

        A deferred move is not yet made in ``aligned``. ``noise`` is what folding lost.
        """
        return iter(())


@dataclass(frozen=True)
class AttentionFactor(Factor):
    """A factor that acts inside one attention, which ``place`` names."""

    @property
    def spec(self) -> GroupedAttention:
        return self.block.attentions[self.place]

    @property
    def each_group(self) -> str:
        """Whose coordinates an element acts on."""
        spec = self.spec
        return f"each of {spec.heads} heads" if self.share == 1 else f"each of {spec.groups} key-value heads"

    @property
    def share(self) -> int:
        """The number of query heads that read the same keys and values."""
        return self.spec.heads // self.spec.groups

    def query_columns(self, reading: PlacedSublayer) -> int:
        """Columns that a row of the queries shows: those of its latent, or of the stream and its constant."""
        latent = self.spec.latent
        through = None if latent is None else latent.query_rank
        return reading.own.columns(self.spec.query_bias) if through is None else through

    def key_columns(self, reading: PlacedSublayer, bias: bool, constants: bool) -> int:
        """The same of keys or values with or without a bias; the stream alone where ``constants`` are not shown."""
        if self.spec.latent is not None:
            return self.spec.latent.key_rank
        return reading.source.columns(bias) if constants else reading.source.seen

    @property
    def margin(self) -> float:
        """What expected errors of heads are multiplied by; products by latents round twice."""
        return RESIDUAL_MARGIN * (1 if self.spec.latent is None else 2)

    def weights(self, layer: LayerWeights) -> AttentionWeights:
        return layer.attentions[self.place]

    def fix(self, layer: LayerWeights, gauge: Gauge) -> LayerWeights:
        return layer.with_(**{self.place: self.fix_weights(self.weights(layer), gauge)})

    def fix_weights(self, weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
        """:meth:`fix` of the one attention."""
        return weights

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """Polynomials of the weights that the factor keeps, at random residues."""
        return Invariants()


@dataclass(frozen=True)
class RowSlot:
    """A map of an attention, batched over heads or groups, seen as rows (heads, n, ·)."""

    name: str

    def part(self, place: str) -> TensorPart:
        """The tensor whose rows these are: rotated and plain rows of a head lie in one."""
        return TensorPart(place, self.name.removeprefix("rotated_"), Along.HEAD)

    def errors(self, place: str, one: HeadWeights, other: HeadWeights, growth: Array) -> Errors:
        """How far the rows differ, head by head."""
        a, b = getattr(one, self.name), getattr(other, self.name)
        return Errors(self.part(place), by_entry(a.weight, b.weight), by_entry(a.bias, b.bias), growth)

    def weight(self, weights: HeadWeights) -> Array:
        """The rows without their constants."""
        own: Affine = getattr(weights, self.name)
        return own.weight

    def rows(self, weights: HeadWeights) -> Array:
        """The rows, each with its constant as a last entry."""
        own: Affine = getattr(weights, self.name)
        return own.rows

    def restore(self, weights: HeadWeights, rows: Array) -> Affine | Array:
        """The map whose rows are these; where there were no constants there are none."""
        own: Affine = getattr(weights, self.name)
        weight = rows[..., :-1]
        return Affine(weight, rows[..., -1]) if np.any(own.bias) else Affine.linear(weight)

    def move(self, weights: HeadWeights, group: Group, element: Array) -> Affine | Array:
        """The map with rows g T."""
        own: Affine = getattr(weights, self.name)
        return Affine(group.act(element, own.weight), group.act(element, own.bias[..., None])[..., 0])


@dataclass(frozen=True)
class ColumnSlot(RowSlot):
    """A map without constant whose columns are the rows that are meant."""

    def errors(self, place: str, one: HeadWeights, other: HeadWeights, growth: Array) -> Errors:
        return Errors(self.part(place), by_entry(getattr(one, self.name), getattr(other, self.name)), None, growth)

    def weight(self, weights: HeadWeights) -> Array:
        own: Array = getattr(weights, self.name)
        return np.swapaxes(own, -1, -2)

    def rows(self, weights: HeadWeights) -> Array:
        return self.weight(weights)

    def restore(self, weights: HeadWeights, rows: Array) -> Affine | Array:
        return np.ascontiguousarray(np.swapaxes(rows, -1, -2))

    def move(self, weights: HeadWeights, group: Group, element: Array) -> Affine | Array:
        own: Array = getattr(weights, self.name)
        return group.act_on_columns(element, own)


@dataclass(frozen=True)
class RowFactor(AttentionFactor):
    """A group that multiplies carried rows (G, n, ·) by g, and by g⁻* the dual rows (H, n, ·) of heads that share it.

    The function depends on the products of a dual with a carried row alone; a subclass says which tensors these are.
    """

    group: ClassVar[type[Group]]
    carried: ClassVar[RowSlot]
    dual: ClassVar[RowSlot]
    stored_as: ClassVar[tuple[str, str]]
    """The names of the part and of its array in files."""
    pivots_in_constants: ClassVar[bool] = True
    """Whether a constant may be the pivot of its row."""

    def size(self, layer: LayerWeights) -> int:
        return int(self.carried.weight(self.weights(layer)).shape[1])

    def acting(self, layer: LayerWeights) -> Group:
        """The group, of the size that it has in a layer."""
        return self.group(self.size(layer))

    def copies(self, layer: LayerWeights) -> int:
        """The number of groups of heads with an element of their own."""
        return len(self.carried.weight(self.weights(layer)))

    def sets(self, layer: LayerWeights) -> int:
        """The number of sets of rows whose norms are evened on their own."""
        return self.weights(layer).groups

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        yield self.move(layer, self.acting(layer).random(sampler, self.copies(layer)))

    def move(self, layer: LayerWeights, element: Array) -> Move:
        """The part of an element."""
        return Move(self, self.acting(layer), element)

    def scale(self, layer: LayerWeights, factors: Array) -> Move:
        """The part that multiplies each carried row by a positive number; factors (copies, n)."""
        return self.move(layer, self.acting(layer).diagonal(factors))

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        both = self.weights(target), self.weights(source)
        goal, rows = (self.carried.weight(weights) for weights in both)
        first, second = (self.dual.rows(weights) for weights in both)
        return self.move(source, self.acting(source).match(goal, rows, (first, second)))

    def fix_weights(self, weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
        carried, dual = self.carried.rows(weights), self.dual.rows(weights)
        if not carried.size:
            return weights
        new_carried, new_dual = np.empty_like(carried), np.empty_like(dual)
        copies, size, width = carried.shape
        share = len(dual) // copies
        columns = width if self.pivots_in_constants else self.carried.weight(weights).shape[-1]
        group = self.group(size)
        for copy in range(copies):
            heads = slice(copy * share, (copy + 1) * share)
            beside = dual[heads].transpose(1, 0, 2).reshape(size, -1)
            new_carried[copy], beside = group.fix(carried[copy], beside, gauge, columns)
            new_dual[heads] = beside.reshape(size, share, -1).transpose(1, 0, 2)
        changes = {
            slot.name: slot.restore(weights, rows)
            for slot, rows in ((self.carried, new_carried), (self.dual, new_dual))
        }
        return weights.with_(**changes)

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        assert isinstance(move, Move)
        return self.row_errors(self.weights(target), self.weights(aligned), move.group, move.element, noise)

    def row_errors(
        self, one: AttentionWeights, other: AttentionWeights, group: Group, element: Array, noise: Noise
    ) -> Iterator[Errors]:
        """The same for rows that an element of the group brought together."""
        slots = self.carried, self.dual
        known = all(slot.name in one.grams for slot in slots)
        grams = (one.grams[self.carried.name], one.grams[self.dual.name]) if known else None
        more = max(1.0, noise.get(self.carried.part(self.place), 1.0))
        growths = group.match_errors(self.carried.weight(one), self.dual.weight(one), element, more, grams)
        for slot, growth in zip(slots, growths):
            yield slot.errors(self.place, one, other, self.margin * growth)

    def stored_element(self, move: Move) -> Array:
        """The element as files hold it."""
        return move.element


@dataclass(frozen=True, eq=False)
class Move(Part):
    """An element of a linear factor: carried rows become g T, dual ones g⁻* S."""

    factor: RowFactor
    group: Group
    element: Array

    @property
    def name(self) -> str:
        return self.factor.stored_as[0]

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights, dual = self.factor.weights(layer), self.factor.dual
        across = self.group.adjoint(self.back)
        across = np.repeat(across, len(dual.weight(weights)) // len(across), axis=0)
        changes = {
            self.factor.carried.name: self.factor.carried.move(weights, self.group, self.element),
            dual.name: dual.move(weights, self.group, across),
        }
        return layer.with_(**{self.factor.place: weights.with_(**changes)})

    @cached_property
    def back(self) -> Array:
        """g⁻¹."""
        return self.group.inverse(self.element)

    def inverse(self) -> Move:
        return Move(self.factor, self.group, self.back)

    @property
    def condition(self) -> float:
        return self.group.condition(self.element)

    def arrays(self) -> dict[str, Array]:
        return {self.factor.stored_as[1]: self.factor.stored_element(self)}
