"""Invariant polynomials of one layer at random residues: per head, per unit, and of the constants.

Rows read n where the file reads u = γ ∘ n + β: W is applied to γ ∘ x and to β, with Σ x = 0 after a LayerNorm. All
arithmetic is mod p = 2^61 − 1 on the exact values of the stored floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.layer import (
    AttentionWeights,
    ExpertsWeights,
    LayerWeights,
    MLPWeights,
    NormWeights,
)
from attngeom.models.probes import Input, LatentInput, Vectors
from attngeom.models.readers import has_unit_scale, key_bias_is_invisible, switches, value_bias_is_constant
from attngeom.models.residues import P, apply, dot, integers, residue
from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, TransformerBlock


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
        assert block.attention is not None
        self.order = range(block.attention.heads) if block.attention.alibi else order
        self.width = layer.attention.output.shape[1]
        self.memory, self.flat = memory, flat
        rotary = block.attention.rotary
        # Equal or zero frequencies, and equal gains in a pair, have larger groups than the invariants know.
        self.is_generic = rotary is None or len({0.0, *rotary.frequencies}) == 1 + len(rotary.frequencies)
        centred = block.attention.qk_norm is not None and block.attention.qk_norm.is_centred
        self.is_generic &= centred or not _has_equal_gains(layer.attention)

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

    def heads(self) -> list[Any]:
        """One list of invariants per query head, self-attention first, then cross-attention."""
        own = self._input("attention.input", self.block.attention_norms.input)
        assert self.block.attention is not None
        found = self._attention("self", self.block.attention, self.layer.attention, own, own)
        if self.block.cross is not None and self.layer.cross is not None:
            queries = self._input("cross.input", self.block.cross_norms.input)
            norm, weights = self.memory if self.memory is not None else (None, None)
            source = Input(norm, weights, self.layer.cross.value.weight.shape[-1], self.vectors)
            found += self._attention("cross", self.block.cross, self.layer.cross, queries, source)
        return found

    def _attention(
        self, name: str, spec: GroupedAttention, weights: AttentionWeights, queries: Input, source: Input
    ) -> list[Any]:
        heads, extra = weights.heads, []
        query_in, key_in = queries, source
        if weights.query_latent is not None:
            query_in = LatentInput(queries, weights.query_latent)
            extra.append(query_in.gram())
        if weights.key_latent is not None:
            key_in = LatentInput(source, weights.key_latent)
            extra.append(key_in.gram())
        self._extra = getattr(self, "_extra", []) + extra
        qk = self._scores(spec, weights, query_in, key_in, source)
        probe = self.output_probe
        outputs = apply(weights.output.transpose(0, 2, 1).reshape(-1, self.width), [probe])[:, 0].reshape(heads, -1)
        values = np.repeat(key_in.read(weights.value, "w"), heads // weights.groups, axis=0)
        found = []
        for h in range(heads):
            ov = dot(outputs[h], values[h, :, 1])
            if not ov:
                self.is_generic = False
            place = self.order[h] if self.order is not None and name == "self" else -1
            row: list[Any] = [name, place, qk[h], ov]
            if not value_bias_is_constant(spec):
                row.append(dot(outputs[h], values[h, :, 0]))
            if weights.sinks is not None:
                row.append(residue(float(weights.sinks[h])))
            found.append(row)
        self._value_constant = getattr(self, "_value_constant", {})
        self._value_constant[name] = sum(dot(outputs[h], values[h, :, 0]) for h in range(heads)) % P
        return found

    def _scores(
        self, spec: GroupedAttention, weights: AttentionWeights, query_in: Input, key_in: Input, source: Input
    ) -> list[list[Any]]:
        heads = weights.heads
        scale = residue(spec.scale)
        amplitude = 1 if spec.rotary is None else residue(spec.rotary.amplitude) ** 2 % P
        share, turned_share = heads // weights.groups, heads // weights.turned_groups
        # Columns: constant, probe, and second probe for Gram invariants of a QK-norm.
        query_re, query_im = query_in.read_turned(weights.turned_query, "y", "y'")
        key_re, key_im = source.read_turned(weights.turned_key, "x", "x'")
        query, key = query_in.read(weights.query, "y", "y'"), key_in.read(weights.key, "x", "x'")
        if spec.qk_norm is not None and spec.qk_norm.is_centred:
            query_re, query_im, query = _centred(query_re, query_im, query)
            key_re, key_im, key = _centred(key_re, key_im, key)
        grams = self._gram_rows(spec, weights, (query_re, query_im, query), (key_re, key_im, key))
        if weights.query_gain is not None and weights.key_gain is not None:
            query_gain, key_gain = integers(weights.query_gain), integers(weights.key_gain)
            if weights.gain_rests is not None:
                query_gain, key_gain = (g + integers(r) for g, r in zip((query_gain, key_gain), weights.gain_rests))
            query_re, query_im, query = _with_gains(query_gain, query_re, query_im, query)
            key_re, key_im, key = _with_gains(key_gain, key_re, key_im, key)
        visible = not key_bias_is_invisible(spec)
        found: list[list[Any]] = []
        for h in range(heads):
            t, g = h // turned_share, h // share
            row: list[Any] = []
            for i in (0, 1):
                for j in (0, 1):
                    real = key_re[t, :, i] * query_re[h, :, j] + key_im[t, :, i] * query_im[h, :, j]
                    imag = key_re[t, :, i] * query_im[h, :, j] - key_im[t, :, i] * query_re[h, :, j]
                    row += [int(v * scale * amplitude % P) for v in (*real, *imag)]
                    if spec.qk_norm is not None:
                        row += [int(v * scale % P) for v in key[g, :, i] * query[h, :, j]]
                    elif i or visible:
                        row.append(dot(key[g, :, i], query[h, :, j]) * scale % P)
            if not any(row):
                self.is_generic = False
            found.append([*row, *grams[h]])
        return found

    def _gram_rows(
        self, spec: GroupedAttention, weights: AttentionWeights, query: tuple[Array, ...], key: tuple[Array, ...]
    ) -> list[list[int]]:
        """⟨Q y, Q y'⟩ and ⟨K x, K x'⟩ with their constants: what a QK-norm sees besides the products."""
        heads, groups = weights.heads, weights.groups
        if spec.qk_norm is None:
            return [[] for _ in range(heads)]

        def grams(parts: tuple[Array, ...], count: int) -> list[list[int]]:
            pairs = ((0, 0), (0, 1), (1, 2))
            return [[sum(dot(p[h, :, i], p[h, :, j]) for p in parts) % P for i, j in pairs] for h in range(count)]

        query_rows, key_rows = grams(query, heads), grams(key, groups)
        if not spec.qk_norm.is_joint:
            share = heads // groups
            return [[*query_rows[h], *key_rows[h // share]] for h in range(heads)]
        self._extra = getattr(self, "_extra", []) + [
            sum(column) % P for rows in (query_rows, key_rows) for column in zip(*rows)
        ]
        return [[] for _ in range(heads)]

    def units(self) -> list[Any]:
        """One list of invariants per hidden unit of a dense MLP, or one per expert."""
        source = self._mlp_input()
        if isinstance(self.layer.mlp, MLPWeights):
            assert isinstance(self.block.mlp, MLP)
            return self._units(self.block.mlp, self.layer.mlp, source)
        assert isinstance(self.block.mlp, Experts)
        return self._experts(self.block.mlp, self.layer.mlp, source)

    def _mlp_input(self) -> Input:
        if self.block.attention_norms.stream is not None and self.block.mlp_norms.input is None:
            return self._input("attention.stream", self.block.attention_norms.stream)
        if self.block.shared_norm:
            return self._input("attention.input", self.block.attention_norms.input)
        return self._input("mlp.input", self.block.mlp_norms.input)

    def _units(self, spec: MLP, mlp: MLPWeights, source: Input) -> list[Any]:
        down = apply(np.ascontiguousarray(mlp.down.T), [self.down_probe])[:, 0]
        up = source.read(mlp.up, "y" if spec.gated else "x")
        gate = None if mlp.gate is None else source.read(mlp.gate, "x")
        free = has_unit_scale(spec)
        if spec.activation == "relu" and not switches(mlp, source.weights).all():
            self.is_generic = False
        signs = _first_signs(mlp.down) if free and not spec.gated else None
        found = []
        for j in range(mlp.units):
            row = [] if gate is None else [int(gate[j, 1]), int(gate[j, 0])]
            if free:
                row += [int(up[j, 1] * down[j] % P), int(up[j, 0] * down[j] % P)]
            else:
                row += [int(up[j, 1]), int(up[j, 0]), int(down[j])]
            if signs is not None:
                row.append(int(signs[j]))
            if not down[j] or not up[j, 1]:
                self.is_generic = False
            found.append(row)
        return found

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
        found: list[Any] = []
        for e, expert in enumerate(mlp.experts):
            row = [int(routes[e, 0]), int(routes[e, 1])]
            if corrections is not None:
                row.append(int(corrections[e]))
            units = sorted(self._units(spec.expert, expert, source))
            found.append([row, units, dot(integers(expert.down_bias), self.down_probe)])
        if spec.shared is not None and mlp.shared is not None:
            units = sorted(self._units(spec.shared, mlp.shared, source))
            self._extra = [*getattr(self, "_extra", []), units, dot(integers(mlp.shared.down_bias), self.down_probe)]
        return found

    def constants(self) -> list[Any]:
        """Constants of the outputs as far as they are seen, visible gains, Gram invariants. Call after the others."""
        block, layer, probe = self.block, self.layer, self.vectors.get("r", self.width)
        assert block.attention is not None
        values = list(getattr(self, "_extra", []))
        own = dot(integers(layer.attention.output_bias), self.output_probe)
        if value_bias_is_constant(block.attention):
            own = (own + self._value_constant["self"]) % P
        parts = [own]
        if layer.cross is not None:
            parts.append(
                (dot(integers(layer.cross.output_bias), self.output_probe) + self._value_constant["cross"]) % P
            )
        last = 0
        if isinstance(layer.mlp, MLPWeights):
            last = dot(integers(layer.mlp.down_bias), self.down_probe)
        stream = layer.norms.get("attention.stream")
        if stream is not None:
            last = (last + dot(integers(stream.bias), self.down_probe)) % P
            values.append(dot((integers(stream.stored) + residue(stream.offset)) % P, probe))
            outer = layer.norms["mlp.stream"]
            values += (
                []
                if self.closes
                else [
                    dot((integers(outer.stored) + residue(outer.offset)) % P, probe),
                    dot(integers(outer.bias), probe),
                ]
            )
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
        layer, centred = self.layer, self.vectors.get("z", self.width, True)
        own = [(layer.attention, "self")] + ([(layer.cross, "cross")] if layer.cross is not None else [])
        found = [(sum(parts) + last) % P]
        for weights, name in own:
            found.append((dot(integers(weights.output_bias), centred) + self._centred_values(weights, name)) % P)
        return found

    def _centred_values(self, weights: AttentionWeights, name: str) -> int:
        """The constant of the values seen by the centred probe."""
        centred = self.vectors.get("z", self.width, True)
        source = self._input("attention.input", self.block.attention_norms.input)
        if name == "cross":
            norm, own = self.memory if self.memory is not None else (None, None)
            source = Input(norm, own, weights.value.weight.shape[-1], self.vectors)
        constants = np.repeat(source.read(weights.value)[..., 0], weights.heads // weights.groups, axis=0)
        outputs = apply(weights.output.transpose(0, 2, 1).reshape(-1, self.width), [centred])[:, 0]
        return dot(outputs, constants.reshape(-1))

    def sort_heads(self, digests: tuple[str, ...]) -> list[str]:
        """Digests in an order that no symmetry changes."""
        return sorted(digests)

    def sort_units(self, digests: tuple[str, ...]) -> list[Any]:
        if isinstance(self.block.mlp, Experts) and self.block.mlp.expert_groups > 1:
            size = self.block.mlp.count // self.block.mlp.expert_groups
            return sorted(sorted(digests[i : i + size]) for i in range(0, len(digests), size))
        return sorted(digests)


def _has_equal_gains(weights: AttentionWeights) -> bool:
    if weights.query_gain is None or weights.key_gain is None:
        return False
    f = weights.turned_key.weight.shape[1]
    pairs = [gain[:, :f] == gain[:, f : 2 * f] for gain in (abs(weights.query_gain), abs(weights.key_gain))]
    return bool(np.any(pairs[0].all(axis=0) & pairs[1].all(axis=0)))


def _centred(*parts: Array) -> list[Array]:
    """Values of the rows of every head less their mean."""
    total = sum(part.sum(axis=1, keepdims=True) for part in parts)
    share = pow(sum(part.shape[1] for part in parts), -1, P)
    return [(part - total * share) % P for part in parts]


def _with_gains(gain: Array, *parts: Array) -> tuple[Array, Array, Array]:
    """Values of the rows times the residues of their gains."""
    real, imag, plain = parts
    f = real.shape[1]
    cuts = (gain[:, :f], gain[:, f : 2 * f], gain[:, 2 * f :])
    first, second, rest = (part * cut[..., None] % P for part, cut in zip((real, imag, plain), cuts))
    return first, second, rest


def _first_signs(down: Array) -> Array:
    """Sign of the first entry of every column that is not zero: a positive scale keeps it."""
    places = (down != 0).argmax(axis=0)
    return np.asarray(np.sign(down[places, np.arange(down.shape[1])]))
