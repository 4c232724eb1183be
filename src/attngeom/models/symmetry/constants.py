"""Factors of constants: biases that cancel or that only add up, what is written along 1, signs before output norms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Sampler
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights, MLPWeights, NormWeights
from attngeom.models.probes import AttentionProbe, Invariants
from attngeom.models.readers import has_bias, key_bias_is_invisible, value_bias_is_constant
from attngeom.models.residues import P, integers
from attngeom.models.specification import MLP
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.factor import AttentionFactor, Factor, Part, RedundantPart, Replay
from attngeom.models.symmetry.moves import ConstantShift, MeanShift, OutputSigns, StreamShift, TableShift
from attngeom.models.symmetry.places import place_constants, value_constant
from attngeom.models.tensor_errors import (
    Along,
    Errors,
    Loss,
    Noise,
    TensorPart,
    by_entry,
    lost,
    norm_errors,
    norms_of,
    size_of,
    summed_sizes,
    whole,
)


@dataclass(frozen=True)
class AttentionBiases(AttentionFactor):
    """Translations of the biases of one attention: of keys where softmax forgets them, of values into the output (L1).

    Output constants of which only the sum is seen: all of them in parallel blocks, means before a LayerNorm (L4).
    """

    topic = "biases"

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        """Constants of keys; those of values and outputs are constants of the block (counts/constants.py)."""
        spec = self.spec
        size = spec.groups * spec.rotations[0]
        yield RedundantPart(
            part="key_bias",
            count=size * (spec.key_bias and not spec.shows_key_constants),
            group=f"R^{size}, key constants of unrotated dimensions",
            lemma="L1: softmax ignores what does not depend on the key",
        )

    @property
    def shows_sum(self) -> str:
        """What of the output constants of attention and MLP shows in their sum alone: all, the mean, or nothing."""
        norms, last = self.block.norms, self.block.mlp_norms.input
        if not isinstance(self.block.mlp, MLP) or any(own.output is not None for own in norms):
            return "nothing"
        if self.block.parallel:
            return "all"
        return "mean" if last is not None and last.kind == "layer" else "nothing"

    @property
    def reads_own_norm(self) -> bool:
        """Whether values read the norm that queries read, not an encoder or a latent."""
        return self.place == "attention" and self.spec.latent is None

    @property
    def has_places(self) -> bool:
        """Whether every attention and the MLP have a bias of their output."""
        own = all(spec.output_bias for spec in self.block.attentions.values())
        return own and has_bias(self.block, "mlp.input", "down")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        spec, weights = self.spec, self.weights(layer)
        key, value = np.zeros(weights.key.bias.shape), np.zeros(weights.value.bias.shape)
        output = np.zeros(weights.output.shape[1])
        if spec.key_bias and key_bias_is_invisible(spec):
            key = sampler.shift(size=key.shape)
        if spec.value_bias and spec.output_bias and value_bias_is_constant(spec):
            value = sampler.shift(size=value.shape)
        mlp = self.block.mlp
        if isinstance(mlp, MLP) and mlp.down_bias and spec.output_bias and self.block.mlp_norms.stream is None:
            if self.shows_sum == "all":
                output = sampler.shift(size=output.shape)
            elif self.shows_sum == "mean":
                output = output + sampler.shift()
        yield ConstantShift(key, value, output, self.place)

    def fold(self, layer: LayerWeights) -> LayerWeights:
        weights, spec = self.weights(layer), self.spec
        if key_bias_is_invisible(spec):
            weights = weights.with_(key=Affine.linear(weights.key.weight))
        if value_bias_is_constant(spec):
            total = weights.output_bias + value_constant(weights)
            weights = weights.with_(output_bias=total, value=Affine.linear(weights.value.weight))
        layer = layer.with_(**{self.place: weights})
        if self.shows_sum == "nothing" or not isinstance(layer.mlp, MLPWeights):
            return layer
        if self.shows_sum == "mean" and not self.has_places:
            return layer
        moved = weights.output_bias if self.shows_sum == "all" else weights.output_bias.mean()
        mlp = layer.mlp.with_(down_bias=layer.mlp.down_bias + moved)
        return layer.with_(mlp=mlp, **{self.place: weights.with_(output_bias=weights.output_bias - moved)})

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        """The constant of the output, and of the MLP that may take it up."""
        before = self.weights(stored)
        norm = stored.norms.get(f"{self.place}.input") if self.reads_own_norm else None
        spread = np.abs(before.value.bias) if norm is None else summed_sizes(before.value, norm.bias)
        sizes = np.repeat(norms_of(spread), before.heads // before.groups) * norms_of(before.output)
        total = float(np.hypot(np.linalg.norm(sizes), np.linalg.norm(before.output_bias)))
        yield from lost(TensorPart(self.place, "output_bias"), total, size_of(self.weights(folded).output_bias))
        if isinstance(stored.mlp, MLPWeights) and isinstance(folded.mlp, MLPWeights):
            both = float(np.hypot(total, np.linalg.norm(stored.mlp.down_bias)))
            yield from lost(TensorPart("mlp", "down_bias"), both, size_of(folded.mlp.down_bias))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        """The constant of the output, and numbers of every head that only their order moves."""
        one, other = self.weights(target), self.weights(aligned)
        yield Errors(TensorPart(self.place, "output_bias"), whole(one.output_bias, other.output_bias))
        for name, numbers in one.head_numbers.items():
            yield Errors(TensorPart(self.place, name, Along.HEAD), by_entry(numbers, other.head_numbers[name]))

    def unfold(self, replay: Replay) -> None:
        """Key and value constants, and the split of the output constants, as in the stored pattern."""
        spec, wanted, now = self.spec, self.weights(replay.stored), self.weights(replay.pattern)
        key, value = np.zeros_like(now.key.bias), np.zeros_like(now.value.bias)
        output = np.zeros_like(now.output_bias)
        if key_bias_is_invisible(spec) and spec.key_bias:
            key = wanted.key.bias - now.key.bias
        if value_bias_is_constant(spec) and spec.value_bias and spec.output_bias:
            value = wanted.value.bias - now.value.bias
        replay.take(ConstantShift(key, value, output, self.place))
        # Value constants that have no place of their own go to the output bias in the end.
        gap = wanted.output_bias - place_constants(self.block, spec, self.weights(replay.pattern)).output_bias
        normed = any(name.endswith(".stream") for name in replay.stored.norms)
        if not spec.output_bias or normed or self.shows_sum == "nothing":
            return
        if has_bias(self.block, "mlp.input", "down"):
            output = gap if self.shows_sum == "all" else np.full_like(gap, gap.mean())
            replay.take(ConstantShift(np.zeros_like(key), np.zeros_like(value), output, self.place))


@dataclass(frozen=True)
class RelativeShift(AttentionFactor):
    """R of every head, added to all of its relative positions, which softmax forgets; and rows that nothing reads (L1).

    Where w_i is added to the scores of token i with all others, its weights stay. The rows of two distances that occur
    are seen by their difference: scores of equal tokens at both distances differ by it alone.
    """

    topic = "biases"

    @property
    def unused(self) -> Array:
        assert self.spec.relative is not None
        return self.spec.relative.unused(self.spec.sees_later)

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        heads, shift = self.spec.heads, self.spec.heads * self.spec.forgets_shifts
        yield RedundantPart(part="query_key", count=shift, group="a shift of the relative table per head", lemma="L1")
        rows = heads * len(self.unused)
        text = "rows of the relative table that no distance has"
        yield RedundantPart(part="query_key", count=rows, group=text, lemma="definition")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        table = self._table(layer)
        rows = np.zeros_like(table)
        if self.spec.forgets_shifts:
            rows += sampler.shift(size=(len(table), 1))
        rows[:, self.unused] += sampler.shift(size=(len(table), len(self.unused)))
        yield TableShift(rows, self.place)

    def fold_weights(self, weights: AttentionWeights) -> AttentionWeights:
        """The row of distance 0, and those never used, are zero."""
        assert weights.relative is not None
        table = weights.relative - weights.relative[:, :1] * self.spec.forgets_shifts
        table[:, self.unused] = 0
        return weights.with_(relative=table)

    def unfold(self, replay: Replay) -> None:
        replay.take(TableShift(self._table(replay.stored) - self._table(replay.pattern), self.place))

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        before, after = self._table(stored), self._table(folded)
        summed = float(np.hypot(size_of(before), np.sqrt(before.shape[1]) * size_of(before[:, 0])))
        return lost(TensorPart(self.place, "relative"), summed, size_of(after))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        tables = self._table(target), self._table(aligned)
        yield Errors(TensorPart(self.place, "relative", Along.HEAD), by_entry(*tables))

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """Differences to the row of distance 0."""
        assert probe.weights.relative is not None
        table = np.delete(integers(probe.weights.relative), self.unused, axis=1)
        table = (table - table[:, :1] * int(self.spec.forgets_shifts)) % P
        return Invariants(heads=[[int(value) for value in row] for row in table])

    def _table(self, layer: LayerWeights) -> Array:
        table = self.weights(layer).relative
        assert table is not None
        return table


@dataclass(frozen=True)
class StreamConstants(Factor):
    """Translations of post-LN blocks: writers along 1, the bias of the inner norm, readers along 1/gain (L4)."""

    topic = "norms"

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        assert isinstance(layer.mlp, MLPWeights)
        attention, units = layer.attention, layer.mlp.units
        constants = (float(sampler.shift()), float(sampler.shift()))
        output = sampler.shift(size=(attention.heads, attention.output.shape[2]))
        rows = sampler.shift(size=units)
        inner = sampler.shift(size=units), constants, sampler.shift(size=attention.output.shape[1])
        yield StreamShift(output, *inner)
        yield MeanShift("attention.stream", "up", rows)

    def fold(self, layer: LayerWeights) -> LayerWeights:
        """Writers centred, the bias of the inner norm moved into the MLP, readers along 1/gain removed."""
        inner, outer = self.block.attention_norms.stream, self.block.mlp_norms.stream
        assert inner is not None and outer is not None and self.block.mlp_norms.input is None
        assert isinstance(layer.mlp, MLPWeights) and layer.mlp.gate is None
        norm, mlp, attention = layer.norms["attention.stream"], layer.mlp, layer.attention
        gain = norm.gain
        up = mlp.up.after_norm(np.ones_like(gain), norm.bias)
        down, down_bias = mlp.down, mlp.down_bias + norm.bias
        if inner.kind == "layer" and np.all(gain != 0):
            along = (up.weight * gain).mean(axis=-1)
            up = Affine(up.weight - along[:, None] / gain, up.bias)
        if inner.kind == "layer":
            output = attention.output - attention.output.mean(axis=1, keepdims=True)
            attention = attention.with_(output=output, output_bias=attention.output_bias - attention.output_bias.mean())
        if outer.kind == "layer":
            down, down_bias = down - down.mean(axis=0), down_bias - down_bias.mean()
        norms = {**layer.norms, "attention.stream": norm.changed(gain, np.zeros_like(gain))}
        return layer.with_(attention=attention, mlp=mlp.with_(up=up, down=down, down_bias=down_bias), norms=norms)

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        """What the MLP took up of the inner norm."""
        before, after = stored.mlp, folded.mlp
        assert isinstance(before, MLPWeights) and isinstance(after, MLPWeights)
        shift = stored.norms["attention.stream"].bias
        spread = before.up.weight**2 @ shift**2 + before.up.bias**2
        both = float(np.hypot(size_of(shift), size_of(before.down_bias)))
        yield from lost(TensorPart("mlp", "up"), size_of(before.up.weight), size_of(after.up.weight))
        yield from lost(TensorPart("mlp", "up_bias"), float(np.sqrt(spread.sum())), size_of(after.up.bias))
        yield from lost(TensorPart("mlp", "down_bias"), both, size_of(after.down_bias))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        return _norms_at("stream", target, aligned)

    def unfold(self, replay: Replay) -> None:
        """The bias of the inner norm, and what is written along 1."""
        attention, mlp = replay.stored.attention, replay.stored.mlp
        assert isinstance(mlp, MLPWeights)
        inner = replay.stored.norms["attention.stream"]
        zeros = np.zeros_like(attention.output.mean(axis=1)), np.zeros(mlp.units)
        replay.take(StreamShift(*zeros, (0.0, 0.0), inner.bias))
        pattern = replay.pattern
        assert isinstance(pattern.mlp, MLPWeights)
        gaps = (
            float((attention.output_bias - pattern.attention.output_bias).mean()),
            float((mlp.down_bias - pattern.mlp.down_bias).mean()),
        )
        replay.take(StreamShift(attention.output.mean(axis=1), mlp.down.mean(axis=0), gaps, np.zeros_like(inner.bias)))
        replay.take(MeanShift("attention.stream", "up", (mlp.up.weight * inner.gain).mean(axis=-1)))


@dataclass(frozen=True)
class OutputNorm(Factor):
    """Signs of the gains of norms on outputs, which go with the rows that write; scales where lengths do not fix them.

    gain ∘ n(W y) shows the scale of W only by eps. If y has few coordinates, the lengths of W y do not fix all gains.
    """

    topic = "norms"

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        for reading in around.readings.values():
            norm, writer = reading.sublayer.norms.output, reading.sublayer.writer
            if norm is None:
                continue
            text = "R+ scale of what an output norm reads"
            yield RedundantPart(part="norm", count=int(norm.eps == 0), group=text, lemma="L5, eps = 0")
            if writer is not None and norm.gain:
                inner, bias = sum(writer), writer[1]
                # With a bias among the columns eps is one more coefficient of the length, and the scale is free again.
                loose = max(0, around.width - inner * (inner + 1) // 2 + (bias and norm.eps > 0))
                yield RedundantPart(part="norm", count=loose, group="gains against rows of few columns", lemma="L5")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        width = layer.attention.output.shape[1]
        yield OutputSigns(sampler.signs(width), sampler.signs(width))

    def fold(self, layer: LayerWeights) -> LayerWeights:
        return self._signs(layer).act(self.block, layer)

    def unfold(self, replay: Replay) -> None:
        replay.take(self._signs(replay.stored))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        return _norms_at("output", target, aligned)

    def _signs(self, layer: LayerWeights) -> OutputSigns:
        plain = NormWeights.plain(layer.attention.output.shape[1])
        norms = (layer.norms.get(name, plain) for name in ("attention.output", "mlp.output"))
        return OutputSigns(*(np.where(norm.gain < 0, -1.0, 1.0) for norm in norms))


def _norms_at(end: str, target: LayerWeights, aligned: LayerWeights) -> Iterator[Errors]:
    """Norms that no reader takes up, at the outputs of sublayers or behind the sum."""
    for name, norm in target.norms.items():
        if name.endswith(f".{end}"):
            other = aligned.norms[name]
            yield from norm_errors(name, (norm.gain, other.gain), (norm.bias, other.bias))
