"""Factors of constants: biases that cancel or that only add up, what is written along 1, signs before output norms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Sampler
from attngeom.models.affine import Affine
from attngeom.models.layer import LayerWeights, MLPWeights, NormWeights
from attngeom.models.probes import AttentionProbe, Invariants
from attngeom.models.readers import (
    has_bias,
    key_bias_is_invisible,
    map_readers,
    post_norms,
    readers_of,
    value_bias_is_constant,
    with_writer,
    writer_of,
)
from attngeom.models.residues import P, integers
from attngeom.models.specification import MLP, PLACES
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.factor import AttentionFactor, Factor, Part, RedundantPart, Replay
from attngeom.models.symmetry.moves import ConstantShift, MeanShift, OutputSigns, StreamShift, TableShift
from attngeom.models.symmetry.places import place_constants, seen_rows, value_constant
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
    """Translations of the biases of one attention: of keys where softmax forgets them, of values into the output.

    Output constants of which only the sum is seen: all of them in parallel blocks, means before a LayerNorm (Lemma 4).
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
            lemma="Lemma 1: softmax ignores what does not depend on the key",
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
        weights = seen_rows(spec, weights)
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
    """R of every head, added to all of its relative positions, which softmax forgets; and rows that nothing reads.

    Of tables of images two: that of all rows that patches read, and that of those of the token in front.
    Where w_i is added to the scores of token i with all others, its weights stay. The rows of two distances that occur
    are seen by their difference: scores of equal tokens at both distances differ by it alone.
    """

    topic = "biases"

    @property
    def unused(self) -> Array:
        assert self.spec.relative is not None
        return self.spec.relative.unused(self.spec.sees_later)

    @property
    def sets(self) -> tuple[Array, ...]:
        """Sets of rows to which one number of every head may be added."""
        assert self.spec.relative is not None
        return self.spec.relative.shifted if self.spec.forgets_shifts else ()

    def firsts(self, table: Array) -> Array:
        """The first row of its set in place of every row; zeros where nothing is forgotten."""
        rows = np.zeros_like(table)
        for own in self.sets:
            rows[:, own] = table[:, own[:1]]
        return rows

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        heads, sets = self.spec.heads, len(self.sets)
        text = f"{'a shift' if sets == 1 else f'{sets} shifts'} of the relative table per head"
        yield RedundantPart(part="query_key", count=heads * sets, group=text, lemma="Lemma 1")
        rows = heads * len(self.unused)
        text = "rows of the relative table that no distance has"
        yield RedundantPart(part="query_key", count=rows, group=text, lemma="definition")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        table = self._table(layer)
        rows = np.zeros_like(table)
        for own in self.sets:
            rows[:, own] += sampler.shift(size=(len(table), 1))
        rows[:, self.unused] += sampler.shift(size=(len(table), len(self.unused)))
        yield TableShift(rows, self.place)

    def folding(self, layer: LayerWeights) -> Part:
        """The row of distance 0, the first one of every set, and those never used become zero."""
        table = self._table(layer)
        rows = -self.firsts(table)
        rows[:, self.unused] = -table[:, self.unused]
        return TableShift(rows, self.place)

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        before, after = self._table(stored), self._table(folded)
        summed = float(np.hypot(size_of(before), size_of(self.firsts(before))))
        return lost(TensorPart(self.place, "relative"), summed, size_of(after))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        tables = self._table(target), self._table(aligned)
        yield Errors(TensorPart(self.place, "relative", Along.HEAD), by_entry(*tables))

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """Differences to the first row of every set, that of distance 0."""
        assert probe.weights.relative is not None
        table = integers(probe.weights.relative)
        table = np.delete((table - self.firsts(table)) % P, self.unused, axis=1)
        return Invariants(heads=[[int(value) for value in row] for row in table])

    def _table(self, layer: LayerWeights) -> Array:
        table = self.weights(layer).relative
        assert table is not None
        return table


@dataclass(frozen=True)
class StreamConstants(Factor):
    """Translations of post-LN blocks: writers along 1, the biases of inner norms, readers along 1/gain (Lemma 4)."""

    topic = "norms"

    @property
    def _moves(self) -> dict[str, str]:
        """The sublayers with a norm of the sum, each with that before it; RMS norms of all have nothing to move."""
        posts = post_norms(self.block)
        kept = [norms.stream for norms in self.block.norms if norms.stream is not None]
        return posts if any(norm.kind == "layer" for norm in kept) else {}

    def _is_layer(self, name: str) -> bool:
        """Whether a norm of the sum is a LayerNorm."""
        places = {f"{place}.stream": norms for place, norms in zip(PLACES, self.block.norms)}
        norm = places[name].stream
        return norm is not None and norm.kind == "layer"

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        for place, before in self._moves.items():
            writer, along = writer_of(layer, place), self._is_layer(f"{place}.stream")
            columns, constant = sampler.shift(size=writer.weight.shape[1]) * along, sampler.shift(size=1) * along
            inner = sampler.shift(size=len(writer.bias)) * bool(before)
            yield StreamShift(place, columns, constant, inner)
            if before and self._is_layer(before):
                for number, (_, affine) in enumerate(readers_of(self.block, layer, before)):
                    yield MeanShift(before, number, sampler.shift(size=affine.bias.shape))

    def fold(self, layer: LayerWeights) -> LayerWeights:
        """Writers centred, the biases of inner norms moved into what is behind, readers along 1/gain removed."""
        assert not self._moves or (isinstance(layer.mlp, MLPWeights) and layer.mlp.gate is None)
        for place, before in self._moves.items():
            writer = writer_of(layer, place)
            bias = writer.bias + layer.norms[before].bias if before else writer.bias
            if self._is_layer(f"{place}.stream"):
                writer, bias = Affine(writer.weight - writer.weight.mean(axis=0), writer.bias), bias - bias.mean()
            layer = with_writer(layer, place, Affine(writer.weight, bias))
            layer = self._fold_inner(layer, before) if before else layer
        seen = {place: seen_rows(self.block.attentions[place], own) for place, own in layer.attentions.items()}
        return layer.with_(**seen) if self._moves else layer

    def _fold_inner(self, layer: LayerWeights, before: str) -> LayerWeights:
        """Readers that take up the bias of an inner norm and, behind a LayerNorm, are zero along 1/gain."""
        norm = layer.norms[before]
        centred = self._is_layer(before) and bool(np.all(norm.gain != 0))

        def change(name: str, reader: Affine) -> Affine:
            reader = reader.after_norm(np.ones_like(norm.gain), norm.bias)
            if not centred:
                return reader
            along = (reader.weight * norm.gain).mean(axis=-1)
            return Affine(reader.weight - along[..., None] / norm.gain, reader.bias)

        layer = map_readers(self.block, layer, before, change)
        plain = norm.changed(norm.gain, np.zeros_like(norm.gain))
        return layer.with_(norms={**layer.norms, before: plain})

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        """What sublayers took up of the inner norms before them."""
        for place, before in self._moves.items():
            if not before:
                continue
            shift, layers = stored.norms[before].bias, (stored, folded)
            for (name, one), (_, other) in zip(*(readers_of(self.block, layer, before) for layer in layers)):
                part = TensorPart(place, name.removeprefix("rotated_"))
                spread = one.column_squares @ shift**2 + size_of(one.bias) ** 2
                yield from lost(part, one.size, other.size)
                yield from lost(part.bias, float(np.sqrt(spread)), size_of(other.bias))
            before_bias, after = writer_of(stored, place).bias, writer_of(folded, place).bias
            written = TensorPart(place, "down_bias" if place == "mlp" else "output_bias")
            yield from lost(written, float(np.hypot(size_of(shift), size_of(before_bias))), size_of(after))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        return _norms_at("stream", target, aligned)

    def unfold(self, replay: Replay) -> None:
        """The biases of inner norms, and what is written along 1."""
        for place, before in self._moves.items():
            wanted = writer_of(replay.stored, place)
            inner = replay.stored.norms[before].bias if before else np.zeros_like(wanted.bias)
            replay.take(StreamShift(place, np.zeros(1), np.zeros(1), inner))
            now, along = writer_of(replay.pattern, place), self._is_layer(f"{place}.stream")
            columns, gap = wanted.weight.mean(axis=0) * along, (wanted.bias - now.bias).mean(keepdims=True) * along
            replay.take(StreamShift(place, columns, gap, np.zeros_like(inner)))
            if before and self._is_layer(before):
                gain = replay.stored.norms[before].gain
                for number, (_, affine) in enumerate(readers_of(self.block, replay.stored, before)):
                    replay.take(MeanShift(before, number, (affine.weight * gain).mean(axis=-1)))


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
            yield RedundantPart(part="norm", count=int(norm.eps == 0), group=text, lemma="Lemma 5, eps = 0")
            if writer is not None and norm.gain:
                inner, bias = sum(writer), writer[1]
                # With a bias among the columns eps is one more coefficient of the length, and the scale is free again.
                loose = max(0, around.width - inner * (inner + 1) // 2 + (bias and norm.eps > 0))
                yield RedundantPart(
                    part="norm", count=loose, group="gains against rows of few columns", lemma="Lemma 5"
                )

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        width = layer.attentions["attention"].output.shape[1]
        yield OutputSigns(sampler.signs(width), sampler.signs(width))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        return _norms_at("output", target, aligned)

    def folding(self, layer: LayerWeights) -> Part:
        plain = NormWeights.plain(layer.attentions["attention"].output.shape[1])
        norms = (layer.norms.get(name, plain) for name in ("attention.output", "mlp.output"))
        return OutputSigns(*(np.where(norm.gain < 0, -1.0, 1.0) for norm in norms))


def _norms_at(end: str, target: LayerWeights, aligned: LayerWeights) -> Iterator[Errors]:
    """Norms that no reader takes up, at the outputs of sublayers or behind the sum."""
    for name, norm in target.norms.items():
        if name.endswith(f".{end}"):
            other = aligned.norms[name]
            yield from norm_errors(name, (norm.gain, other.gain), (norm.bias, other.bias))
