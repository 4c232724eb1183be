"""Factors of recurrent mixers: scales of convolved channels, gains, constants of time steps, orders of heads, channels.

Behind the convolution of a channel stands a SiLU, which commutes with no rotation and no scale: a scale is free between
the row of the channel and its taps alone; RG-LRU has none there, and a second scale between taps and what reads them.
Channels of queries and keys of a group can be ordered together, those of the values of a head with its gates and what
they write, groups, and the heads of a group, unless fixed decays give each its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Gauge, Group, RealScales, Sampler
from attngeom.limits.rounding import COLLINEAR_ROWS, RESIDUAL_MARGIN
from attngeom.models.affine import Affine
from attngeom.models.layer import LayerWeights, RecurrentWeights
from attngeom.models.matching import GOLDEN, match_channels
from attngeom.models.mixers import RecurrentMixer
from attngeom.models.specification import TransformerBlock
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.factor import (
    ColumnSlot,
    Displacement,
    Factor,
    Freedom,
    HeadWeights,
    Part,
    PartName,
    RedundantPart,
    Replay,
    RowFactor,
    RowSlot,
)
from attngeom.models.tensor_errors import (
    Along,
    Errors,
    Loss,
    Noise,
    Squares,
    TensorPart,
    by_entry,
    lost,
    size_of,
    whole,
)


@dataclass(frozen=True)
class MixerFactor(Factor):
    """A factor that acts inside the mixer of a block."""

    @property
    def own(self) -> RecurrentMixer:
        assert self.block.mixer is not None
        return self.block.mixer

    def mixer(self, layer: LayerWeights) -> RecurrentWeights:
        assert layer.mixer is not None
        return layer.mixer


@dataclass(frozen=True)
class TapSlot(ColumnSlot):
    """Taps of convolved channels: an array of rows.

    Those of a head may be few, and a few of them large: their rounding is that of single numbers, no mean of many.
    """

    def errors(self, place: str, one: HeadWeights, other: HeadWeights, growth: Array) -> Errors:
        return replace(super().errors(place, one, other, growth), growth=None)

    def weight(self, weights: HeadWeights) -> Array:
        own: Array = getattr(weights, self.name)
        return own

    def restore(self, weights: HeadWeights, rows: Array) -> Affine | Array:
        return rows

    def move(self, weights: HeadWeights, group: Group, element: Array) -> Affine | Array:
        return group.act(element, self.weight(weights))


@dataclass(frozen=True)
class ChannelScales(RowFactor):
    """(R*) of every channel: its row times s, its taps divided by s."""

    group = RealScales
    noun = ""

    @property
    def shape(self) -> tuple[int, int]:
        assert self.block.mixer is not None
        return self.block.mixer.channels[self.carried.name]

    def weights(self, layer: LayerWeights) -> Any:
        return layer.mixer

    def sets(self, layer: LayerWeights) -> int:
        return self.copies(layer)

    @property
    def margin(self) -> float:
        return RESIDUAL_MARGIN

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        part: PartName = "value_output" if self.topic == "vo" else "query_key"
        group = RealScales(self.shape[1])
        text = f"{group.symbol(self.shape[0])} between rows and taps of {self.noun}"
        yield RedundantPart(part=part, count=prod(self.shape), group=text, lemma="definition")

    def freedoms(self) -> Iterator[Freedom]:
        text = f"one scale of either sign for each of {prod(self.shape):,} channels, between its row and its taps"
        yield Freedom(f"{self.noun} of {self.place}", text, "none")

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        """Scales of the rows; of the taps where these fit and the rows do not."""
        goal, rows = (self.carried.weight(self.weights(layer)) for layer in (target, source))
        wanted, taps = (self.dual.weight(self.weights(layer)) for layer in (target, source))
        group = self.acting(source)
        by_taps = cosines(goal, rows) < COLLINEAR_ROWS * cosines(wanted, taps)
        return self.move(source, np.where(by_taps, 1 / group.match(wanted, taps), group.match(goal, rows)))


def cosines(one: Array, other: Array) -> Array:
    sizes = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return np.asarray(np.abs((one * other).sum(axis=-1)) / np.maximum(sizes, 1e-300))


@dataclass(frozen=True)
class QueryChannels(ChannelScales):
    topic, noun = "qk", "queries"
    carried, dual, stored_as = RowSlot("query"), TapSlot("query_taps"), ("QueryChannels", "scales")


@dataclass(frozen=True)
class KeyChannels(ChannelScales):
    topic, noun = "qk", "keys"
    carried, dual, stored_as = RowSlot("key"), TapSlot("key_taps"), ("KeyChannels", "scales")


@dataclass(frozen=True)
class ValueChannels(ChannelScales):
    topic, noun = "vo", "values"
    carried, dual, stored_as = RowSlot("value"), TapSlot("value_taps"), ("ValueChannels", "scales")


@dataclass(frozen=True, eq=False)
class GainScale(Part):
    """Gains of the norm of a mixer times ``scale``, columns of the output divided by it."""

    scale: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        mixer = layer.mixer
        assert mixer is not None
        return layer.with_(mixer=mixer.with_(gain=mixer.gain * self.scale, output=mixer.output / self.scale[:, None]))

    def inverse(self) -> GainScale:
        return GainScale(1 / self.scale)


@dataclass(frozen=True)
class MixerGains(MixerFactor):
    """(R*) of every gain of the norm of a mixer, against the columns that it multiplies."""

    topic = "norms"

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        count = prod(self.own.gains)
        yield RedundantPart(part="norm", count=count, group=f"(R*)^{count} gains of the mixer", lemma="definition")

    def freedoms(self) -> Iterator[Freedom]:
        yield Freedom(f"norm inside of {self.place}", "gains may be moved into the map that writes")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        shape = self.own.gains
        yield GainScale(sampler.scales(*shape) * sampler.signs(*shape))

    def fold(self, layer: LayerWeights) -> LayerWeights:
        mixer = self.mixer(layer)
        folded = mixer.with_(gain=np.ones_like(mixer.gain), output=mixer.output * mixer.gain[:, None])
        return layer.with_(mixer=folded)

    def unfold(self, replay: Replay) -> None:
        replay.take(GainScale(self.mixer(replay.stored).gain))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        """Those of gains that were not folded."""
        yield Errors(TensorPart(self.place, "gain"), whole(self.mixer(target).gain, self.mixer(aligned).gain))


@dataclass(frozen=True, eq=False)
class StepShift(Displacement):
    """Numbers of heads that go from the biases of the maps of time steps into those that are added to them."""

    numbers: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        mixer = layer.mixer
        assert mixer is not None
        assert mixer.step is not None and mixer.step_shift is not None
        step = Affine(mixer.step.weight, mixer.step.bias - self.numbers)
        return layer.with_(mixer=mixer.with_(step=step, step_shift=mixer.step_shift + self.numbers))


@dataclass(frozen=True)
class StepConstants(MixerFactor):
    """R of every head: of two constants of its time step the sum is seen."""

    topic = "biases"

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        text = f"R^{self.own.heads} between two constants of time steps"
        yield RedundantPart(part="query_key", count=self.own.heads, group=text, lemma="definition")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        yield StepShift(sampler.shift(size=self.own.heads))

    def folding(self, layer: LayerWeights) -> Part:
        return StepShift(self._constants(layer)[0])

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        before, after = self._constants(stored), self._constants(folded)
        summed = float(np.hypot(size_of(before[0]), size_of(before[1])))
        return lost(TensorPart(self.place, "step_shift"), summed, size_of(after[1]))

    def _constants(self, layer: LayerWeights) -> tuple[Array, Array]:
        mixer = self.mixer(layer)
        assert mixer.step is not None and mixer.step_shift is not None
        return mixer.step.bias, mixer.step_shift


@dataclass(frozen=True, eq=False)
class MixerOrder(Part):
    """Groups, heads and channels in another order: those of the new layer are numbers of the old one.

    ``keys`` (G, a) are channels of queries and keys of the old group of each new one, ``values`` (H, v) likewise. Where
    heads share gains, these stay, and what is written makes up for it.
    """

    groups: Array
    heads: Array
    keys: Array
    values: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        mixer = layer.mixer
        assert mixer is not None
        changes: dict[str, object] = {}
        for name in ("query", "key"):
            changes |= _picked(mixer, (name, f"{name}_taps", f"{name}_shift"), self.groups[:, None], self.keys)
        names = ("value", "output_gate", "value_taps", "value_shift", "damping")
        changes |= _picked(mixer, names, self.heads[:, None], self.values)
        changes |= _picked(mixer, ("step", "strength", *mixer.head_numbers), self.heads)
        for name, own in mixer.inner.items():
            places = self.heads[:, None, None], self.values[:, :, None], self.values[:, None]
            changes[name] = Affine(own.weight[places], own.bias[places[0][..., 0], self.values])
        output = np.take_along_axis(mixer.output[self.heads], self.values[:, None], axis=2)
        if len(mixer.gain) > 1:
            changes["gain"] = mixer.gain[self.heads[:, None], self.values]
        else:
            output = output * (mixer.gain[0][self.values] / mixer.gain)[:, None]
        return layer.with_(mixer=mixer.with_(output=output, **changes))

    def inverse(self) -> MixerOrder:
        groups, heads = np.argsort(self.groups), np.argsort(self.heads)
        return MixerOrder(groups, heads, np.argsort(self.keys)[groups], np.argsort(self.values)[heads])


def _picked(mixer: RecurrentWeights, names: tuple[str, ...], *places: Array) -> dict[str, object]:
    """Arrays and maps, as far as they exist, at new places of their first axes."""
    parts: dict[str, object] = {}
    for name in names:
        own = getattr(mixer, name)
        if own is not None:
            parts[name] = Affine(own.weight[places], own.bias[places]) if isinstance(own, Affine) else own[places]
    return parts


@dataclass(frozen=True)
class OrderOfChannels(MixerFactor):
    """Orders of groups, of the heads of each, of the channels of keys with queries, of those of values with gates."""

    topic = "heads"
    is_discrete = True

    def freedoms(self) -> Iterator[Freedom]:
        own = self.own
        share = own.heads // own.groups
        inner = "" if share == 1 else f", and of the {share} heads of each"
        if own.decays is None:
            text = f"any order of {own.groups} {'heads' if share == 1 else 'groups of heads'}{inner}"
            yield Freedom(f"heads of {self.place}", text)
        keys = f"of the {own.head_dim} channels of each q with its k, " if own.has_keys else ""
        text = f"any order {keys}of the {own.value_dim} of each v with its gate"
        yield Freedom(f"channels of {self.place}", text, "none")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        own, share = self.own, self.own.heads // self.own.groups
        heads = sampler.block_order(own.groups, share) if own.decays is None else np.arange(own.heads)
        keys = np.stack([sampler.order(own.head_dim) for _ in range(own.groups)])
        values = np.stack([sampler.order(own.value_dim) for _ in range(own.heads)])
        if own.shares_gains and not np.all(self.mixer(layer).gain):
            # A gain of zero hides what is written behind it: nothing makes up for another one there.
            values = np.tile(np.arange(own.value_dim), (own.heads, 1))
        yield MixerOrder(heads[::share] // share, heads, keys, values)

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        return MixerOrder(*match_channels(self.mixer(target), self.mixer(source), self.own.decays is not None))

    def fix(self, layer: LayerWeights, gauge: Gauge) -> LayerWeights:
        """Decreasing sizes of what no scale changes."""
        mixer = self.mixer(layer)
        values = _sizes(mixer, "value")
        keys = _sizes(mixer, "key") * _sizes(mixer, "query") if self.own.has_keys else values
        gates = ((mixer.output_gate.weight**2) @ _weights(mixer.output_gate)) + mixer.output_gate.bias**2
        by_key, by_value = np.argsort(-keys, kind="stable"), np.argsort(-values * gates, kind="stable")
        if self.own.decays is not None:
            places = np.arange(self.own.heads)
            return MixerOrder(places, places, by_key, by_value).act(self.block, layer)
        groups = np.argsort(-keys.sum(axis=1), kind="stable")
        steps = 1.0 if mixer.step is None else (mixer.step.weight**2) @ _weights(mixer.step)
        table = (values.sum(axis=1) * steps).reshape(len(groups), -1)
        share = table.shape[1]
        heads = np.concatenate([g * share + np.argsort(-table[g], kind="stable") for g in groups])
        return MixerOrder(groups, heads, by_key[groups], by_value[heads]).act(self.block, layer)

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        """What no other factor of the mixer moves."""
        one, other = self.mixer(target), self.mixer(aligned)
        for name, reader in one.readers.items():
            if name not in self.own.channels or not self.own.convolves:
                twin = other.readers[name]
                weight, bias = by_entry(reader.weight, twin.weight), by_entry(reader.bias, twin.bias)
                yield Errors(TensorPart(self.place, name, Along.HEAD), weight, bias)
        yield Errors(TensorPart(self.place, "output", Along.HEAD), by_entry(one.output, other.output))
        if self.own.norm is None:
            yield Errors(TensorPart(self.place, "gain"), whole(one.gain, other.gain))
        if one.damping is not None and other.damping is not None:
            yield Errors(TensorPart(self.place, "damping"), whole(one.damping, other.damping))
            shifts: tuple[str, ...] = ()
        else:
            shifts = tuple(f"{name}_shift" for name in self.own.channels if self.own.convolves)
        for name in (*one.head_numbers, *shifts):
            squares = by_entry(getattr(one, name), getattr(other, name))
            yield Errors(TensorPart(self.place, name, Along.HEAD), against_mean(squares))
        yield Errors(TensorPart(self.place, "output_bias"), whole(one.output_bias, other.output_bias))


def against_mean(squares: Squares) -> Squares:
    """Numbers of single heads may be tiny: they are measured against the mean of all, if that is larger."""
    return Squares(squares.gaps, np.maximum(squares.sizes, squares.sizes.mean()))


def _weights(reader: Affine) -> Array:
    """Numbers between 1 and 2 for the columns, which tell rows of few digits apart whose norms are equal."""
    return np.asarray(1 + np.arange(reader.weight.shape[-1]) * GOLDEN % 1)


def _sizes(mixer: RecurrentWeights, name: str) -> Array:
    """|row|² |taps|² of every channel."""
    rows: Affine = getattr(mixer, name)
    sizes = (rows.weight**2) @ _weights(rows) + rows.bias**2
    taps = getattr(mixer, f"{name}_taps")
    sizes = sizes if taps is None else sizes * (taps**2).sum(axis=-1)
    # What RG-LRU convolves has a scale of its own, against what is written.
    return np.asarray(sizes * (mixer.output**2).sum(axis=1) if mixer.inner else sizes)
