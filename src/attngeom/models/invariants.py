"""Invariant polynomials of one layer at random residues: per head, per unit, and of the constants.

Rows read n where the file reads u = γ ∘ n + β: W is applied to γ ∘ x and to β, with Σ x = 0 after a LayerNorm. All
arithmetic is mod p = 2^61 − 1 on the exact values of the stored floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import ExpertsWeights, LayerWeights, MLPWeights, NormWeights, RecurrentWeights
from attngeom.models.layout import norm_specs
from attngeom.models.probes import PAIRS, AttentionProbe, Input, LatentInput, Vectors
from attngeom.models.readers import post_norms, switches, value_bias_is_constant
from attngeom.models.residues import P, apply, dot, integers, residue
from attngeom.models.specification import MLP, Experts, Norm, TransformerBlock
from attngeom.models.surroundings import shared_places
from attngeom.models.symmetry import factors
from attngeom.models.symmetry.factor import AttentionFactor

LABELS = {"attention": "self", "cross": "cross"}
"""What digests call the attentions."""


@dataclass(frozen=True, eq=False)
class LayerInvariants:
    """Lists of invariants: one per query head, self-attention first; one per hidden unit or expert; all others.

    ``is_generic``: none is zero that is not always zero, and no group is larger than the factors say.
    """

    heads: list[Any]
    units: list[Any]
    constants: list[Any]
    is_generic: bool


class LayerEvaluator:
    """Invariants of a layer as stored (not folded)."""

    def __init__(
        self,
        block: TransformerBlock,
        layer: LayerWeights,
        vectors: Vectors,
        *,
        memory: tuple[Norm, NormWeights] | None,
        order: Sequence[int] | None,
        flat: bool = False,
        closes: bool = False,
    ) -> None:
        """``order`` says which place each head has where heads have places (tables of relative positions).

        ``flat``: no reader of the stream sees what is written along 1. ``closes``: the head takes up the last norm.
        """
        self.block, self.layer, self.vectors, self.closes = block, layer, vectors, closes
        own = block.attention
        self.order = range(own.heads) if own is not None and own.alibi else order
        self.width = layer.width
        self.memory, self.flat = memory, flat
        self.is_generic = True
        self.joint: list[Any] = []
        self.value_constants: dict[str, int] = {}

    def run(self) -> LayerInvariants:
        """All invariants of the layer."""
        heads = [*self._mixer(), *(row for place in self.block.attentions for row in self._attention(place))]
        units = self._units_or_experts()
        return LayerInvariants(heads, units, self._constants(), self.is_generic)

    def _input(self, name: str, norm: Norm | None) -> Input:
        return Input(norm, self.layer.norms.get(name), self.width, self.vectors)

    def _signs(self, name: str) -> Array:
        """Signs of the gains of a norm on an output, which its rows can take up."""
        norm = self.layer.norms.get(name)
        return np.ones(self.width, dtype=object) if norm is None else np.where(norm.gain < 0, P - 1, 1).astype(object)

    def _writes_through_mean(self) -> bool:
        """What is written along 1 is not seen, in post-LN blocks and where all readers are LayerNorms."""
        stream = self.block.attention_norms.stream
        return self.flat or (stream is not None and stream.kind == "layer")

    @cached_property
    def output_probe(self) -> Array:
        probe = self.vectors.get("z", self.width, self._writes_through_mean())
        return np.asarray(probe * residue(self.block.residual_scale) * self._signs("attention.output") % P)

    @cached_property
    def down_probe(self) -> Array:
        probe = self.vectors.get("z", self.width, self._writes_through_mean())
        return np.asarray(probe * residue(self.block.residual_scale) * self._signs("mlp.output") % P)

    def _source(self, place: str) -> Input:
        """What keys and values of an attention read: the stream of the queries, or that of an encoder."""
        if place == "attention":
            return self._input("attention.input", self.block.attention_norms.input)
        norm, weights = self.memory if self.memory is not None else (None, None)
        return Input(norm, weights, self.layer.attentions[place].value.weight.shape[-1], self.vectors)

    def _attention(self, place: str) -> list[Any]:
        """Per head: which attention, its place among the heads where it has one, its scores, values, numbers."""
        weights, source = self.layer.attentions[place], self._source(place)
        queries = self._reading(place)
        latents = weights.query_latent, weights.key_latent
        query_in, key_in = (
            own if latent is None else LatentInput(own, latent) for own, latent in zip((queries, source), latents)
        )
        probe = AttentionProbe(
            self.block.attentions[place], weights, query_in, key_in, source, self.output_probe
        )  # fmt: skip
        scores: list[list[list[int]]] = [[[] for _ in PAIRS] for _ in range(weights.heads)]
        lengths: list[list[int]] = [[] for _ in range(weights.heads)]
        beside: list[list[int]] = [[] for _ in range(weights.heads)]
        for factor in factors(self.block):
            if not isinstance(factor, AttentionFactor) or factor.place != place:
                continue
            part = factor.invariants(probe)
            self.is_generic &= part.is_generic
            self.joint += part.joint
            scores = [[*map(add, own, more)] for own, more in zip(scores, part.scores)] if part.scores else scores
            lengths = part.lengths or lengths
            beside = [own + more for own, more in zip(beside, part.heads)] if part.heads else beside
        self.value_constants[place] = sum(probe.value_constants) % P
        ranks = [-1] * weights.heads if self.order is None or place != "attention" else self.order
        residues = []
        for h, rows in enumerate(scores):
            score = [value for row in rows for value in row]
            self.is_generic &= any(score)
            numbers = [residue(float(values[h])) for values in weights.head_numbers.values()]
            residues.append([LABELS[place], ranks[h], score + lengths[h], *beside[h], *numbers])
        return residues

    def _mixer(self) -> list[Any]:
        """Per head: its channels, each list sorted, and what its gates read.

        A scale of a row goes into its taps, so that products of what both see are kept; a gain goes into the output.
        """
        mixer = self.layer.mixer
        if mixer is None:
            return []
        source = self._reading("mixer")
        gains = np.broadcast_to(integers(mixer.gain), mixer.output.shape[::2])
        outputs = apply(mixer.output.transpose(0, 2, 1).reshape(-1, self.width), [self.output_probe])[:, 0]
        written = outputs.reshape(gains.shape) * gains % P
        marks, taken = source.read(mixer.output_gate, "y"), self._channels(mixer, "value", source)
        values = [taken, marks, written[..., None]]
        if mixer.inner:
            values = [self._filtered(mixer, taken * written[..., None] % P, marks), marks]
        keys = [self._channels(mixer, name, source) for name in ("key", "query") if getattr(mixer, name) is not None]
        by_head, by_group = (np.concatenate(parts, axis=-1) for parts in (values, keys or values))
        self.is_generic &= bool(np.all(by_head[..., 1] != 0) and np.all(by_group[..., 1] != 0) and np.all(written != 0))
        gates = [source.read(gate, "r") for gate in (mixer.step, mixer.strength) if gate is not None]
        numbers = [integers(own) for own in mixer.head_numbers.values()]
        spec = self.block.mixer
        if spec is not None and spec.decays is not None:
            # Fixed decays give every head its place.
            numbers.append(np.arange(mixer.heads))
        if spec is not None and spec.bias and spec.has_steps:
            # Of two constants of a time step the sum is seen.
            numbers[1], gates[0] = (numbers[1] + gates[0][..., 0]) % P, gates[0][..., 1:]
        share = mixer.heads // mixer.groups
        rows = []
        for h in range(mixer.heads):
            read = [int(x) for gate in gates for x in gate[h].ravel()]
            channels = [sorted([int(x) for x in row] for row in own) for own in (by_group[h // share], by_head[h])]
            rows.append(["mixer", *channels, read, [int(own[h]) for own in numbers]])
        return rows

    def _filtered(self, mixer: RecurrentWeights, read: Array, gate: Array) -> Array:
        """Channels of RG-LRU: what is read times what is written, and sums of what its gates make of all channels.

        In a column of a gate, as in the output, stands the inverse of the scale of the convolution that it reads.
        """
        spec, columns = self.block.mixer, []
        assert spec is not None and mixer.damping is not None
        taps = self._channels(mixer, "value", self._reading("mixer"))
        marks = gate[..., 1] * integers(mixer.damping) % P
        for own in mixer.inner.values():
            weight = integers(own.weight)
            for told in (taps[..., 1], taps[..., 1] * marks % P, taps[..., 2]):
                columns.append((weight * told[:, None] % P).sum(axis=-1) % P)
            columns.append(integers(own.bias))
        return np.concatenate([read, np.stack([*columns, integers(mixer.damping)], axis=-1)], axis=-1)

    def _channels(self, mixer: RecurrentWeights, name: str, source: Input) -> Array:
        """(heads, channels, 3): constant and value of the rows times a value of the taps, and the shift."""
        taps = getattr(mixer, f"{name}_taps")
        if taps is None:
            rows = source.read(getattr(mixer, name), "x")
            return np.concatenate([rows, np.zeros_like(rows[..., :1])], axis=-1)
        shift = integers(getattr(mixer, f"{name}_shift"))
        seen = apply(taps.reshape(-1, taps.shape[-1]), [self.vectors.get("taps", taps.shape[-1])])
        rows = source.read(getattr(mixer, name), "x") * seen.reshape(*shift.shape, 1) % P
        return np.concatenate([rows, shift[..., None]], axis=-1)

    def _units_or_experts(self) -> list[Any]:
        """One list of invariants per hidden unit of a dense MLP, or one per expert."""
        if self.layer.mlp is None:
            return []
        source = self._reading("mlp")
        if isinstance(self.layer.mlp, MLPWeights):
            assert isinstance(self.block.mlp, MLP)
            return self._units(self.block.mlp, self.layer.mlp, source)
        assert isinstance(self.block.mlp, Experts)
        return self._experts(self.block.mlp, self.layer.mlp, source)

    def _reading(self, place: str) -> Input:
        """What a sublayer reads: its own norm, one that it shares, or the norm of the sum before it."""
        name = "attention.input" if place in shared_places(self.block) else f"{place}.input"
        name = post_norms(self.block).get(place) or name
        return self._input(name, norm_specs(self.block).get(name))

    def _units(self, spec: MLP, mlp: MLPWeights, source: Input) -> list[Any]:
        down = apply(mlp.down.T, [self.down_probe])[:, 0]
        up = source.read(mlp.up, "y" if spec.gated else "x")
        gate = None if mlp.gate is None else source.read(mlp.gate, "x")
        free, degree = spec.has_unit_scale, spec.degree
        if degree and not switches(mlp, source.weights).all():
            self.is_generic = False
        signs = _first_signs(mlp.down) if degree == 1 and gate is None else None
        if signs is None and degree:
            # Even powers and products with up do not know the sign of the row that switches.
            signs = _row_signs(mlp.up if mlp.gate is None else mlp.gate, source)
        values = []
        for j in range(mlp.units):
            row: list[Any] = [] if gate is None else [int(gate[j, 1]), int(gate[j, 0])]
            if degree and gate is not None:
                row = [_power(gate[j], degree, int(up[j, k] * down[j] % P)) for k in (1, 0)]
            elif degree > 1:
                row = [_power(up[j], degree, int(down[j]))]
            elif free:
                row += [int(up[j, 1] * down[j] % P), int(up[j, 0] * down[j] % P)]
            else:
                row += [int(up[j, 1]), int(up[j, 0]), int(down[j])]
            if signs is not None:
                row.append(int(signs[j]))
            if not down[j] or not up[j, 1]:
                self.is_generic = False
            values.append(row)
        return values

    def _experts(self, spec: Experts, mlp: ExpertsWeights, source: Input) -> list[Any]:
        routes = source.read(mlp.router, "r")
        corrections = None if mlp.correction is None else integers(mlp.correction)
        if corrections is not None and spec.correction_seen == "groups":
            sums = corrections.reshape(spec.expert_groups, -1).sum(axis=1)
            corrections = np.repeat(sums, spec.count // spec.expert_groups)
        if corrections is not None:
            seen = int(spec.correction_seen != "nothing")
            corrections = (corrections * spec.count - corrections.sum()) * seen % P
            # A sigmoid lies between 0 and 1: a larger correction can decide the choice alone.
            self.is_generic &= mlp.correction is None or bool(np.ptp(mlp.correction) < 1)
        if spec.router == "softmax":
            # A common vector in all rows changes nothing: E times the row minus the sum of the rows is what is seen.
            routes = (routes * spec.count - routes.sum(axis=0)) % P
        values: list[Any] = []
        for e, expert in enumerate(mlp.experts):
            row = [int(routes[e, 0]), int(routes[e, 1])]
            if corrections is not None:
                row.append(int(corrections[e]))
            units = sorted(self._units(spec.expert, expert, source))
            values.append([row, units, dot(integers(expert.down_bias), self.down_probe)])
        if spec.shared is not None and mlp.shared is not None:
            units = sorted(self._units(spec.shared, mlp.shared, source))
            self.joint += [units, dot(integers(mlp.shared.down_bias), self.down_probe)]
        if mlp.shared_gate is not None:
            self.joint.append([int(x) for x in source.read(mlp.shared_gate, "r").ravel()])
        return values

    def _constants(self) -> list[Any]:
        """Constants of the outputs as far as they are seen, visible gains, joint invariants of heads and experts."""
        block, layer, probe = self.block, self.layer, self.vectors.get("r", self.width)
        values = list(self.joint)
        # The bias of an inner norm of the sum is a constant of the sublayer behind it.
        inner = {place: integers(layer.norms[name].bias) for place, name in post_norms(block).items() if name}
        parts = [
            (dot(integers(weights.output_bias) + inner.get(place, 0), self.output_probe) + self._seen_values(place)) % P
            for place, weights in layer.writers.items()
        ]
        last = 0
        if isinstance(layer.mlp, MLPWeights):
            last = dot(integers(layer.mlp.down_bias) + inner.get("mlp", 0), self.down_probe) % P
        for place in post_norms(block):
            norm, is_last = layer.norms[f"{place}.stream"], place == [*post_norms(block)][-1]
            if not (is_last and self.closes):
                values.append(dot((integers(norm.stored) + residue(norm.offset)) % P, probe))
                values += [dot(integers(norm.bias), probe)] if is_last else []
        for name in ("attention.output", "mlp.output"):
            if name in layer.norms:
                norm = layer.norms[name]
                gain = (integers(norm.stored) + residue(norm.offset)) * self._signs(name) % P
                values += [dot(gain, probe), dot(integers(norm.bias), probe)]
        return [*values, *self._sums(parts, last)]

    def _sums(self, parts: list[int], last: int) -> list[int]:
        """Which sums of the output constants are seen: all, the total, or the total and each without its mean."""
        normed = any(name.endswith(".output") for name in self.layer.norms)
        norm = self.block.mlp_norms.input
        if self.block.parallel and not normed:
            return [(sum(parts) + last) % P]
        if normed or norm is None or norm.kind != "layer":
            return [*parts, last]
        centred = self.vectors.get("z", self.width, True)
        sums = [(sum(parts) + last) % P]
        for place, weights in self.layer.attentions.items():
            sums.append((dot(integers(weights.output_bias), centred) + self._centred_values(place)) % P)
        return sums

    def _seen_values(self, place: str) -> int:
        """What the values of an attention add to every token, if that is a constant."""
        own = self.block.attentions.get(place)
        return self.value_constants[place] if own is not None and value_bias_is_constant(own) else 0

    def _centred_values(self, place: str) -> int:
        """The constant of the values seen by the centred probe."""
        weights, centred = self.layer.attentions[place], self.vectors.get("z", self.width, True)
        constants = self._source(place).read(weights.value)[..., 0]
        constants = np.repeat(constants, weights.heads // weights.groups, axis=0)
        outputs = apply(weights.output.transpose(0, 2, 1).reshape(-1, self.width), [centred])[:, 0]
        return dot(outputs, constants.reshape(-1))

    def sort_units(self, digests: tuple[str, ...]) -> list[Any]:
        if isinstance(self.block.mlp, Experts) and self.block.mlp.expert_groups > 1:
            size = self.block.mlp.count // self.block.mlp.expert_groups
            return sorted(sorted(digests[i : i + size]) for i in range(0, len(digests), size))
        return sorted(digests)


def _power(row: Array, degree: int, factor: int) -> list[int]:
    """Products of ``degree`` of the values of a row, times the factor: what its positive scales leave."""
    constant, value = int(row[0]), int(row[1])
    return [pow(value, k, P) * pow(constant, degree - k, P) * factor % P for k in range(degree, -1, -1)]


def _row_signs(reader: Affine, source: Input) -> Array:
    """Sign of the largest entry of every row as it is seen behind the norm: a positive scale keeps it."""
    rows = reader.weight * source.weights.gain
    if source.centred:
        rows = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray(np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]))


def _first_signs(down: Array) -> Array:
    """Sign of the first entry of every column that is not zero: a positive scale keeps it."""
    places = (down != 0).argmax(axis=0)
    return np.asarray(np.sign(down[places, np.arange(down.shape[1])]))
