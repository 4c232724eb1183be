"""The function of a block over GF(p): what its last token becomes, with derivatives by all weights.

Formal values stand for exp, tanh, σ, Φ (see `formal`); tokens that are not listed get attention weight 0, which is a
legitimate specialisation of the formal exponentials, so a few tokens at arbitrary distances are enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.models.counts.sublayers import sublayers
from attngeom.models.programs import sublayer_name
from attngeom.models.proofs.activations import activate, clamped, clamped_gate
from attngeom.models.proofs.coordinates import ResiduePoint
from attngeom.models.proofs.formal import PRIME, Dual, Tape, constant, contract, inverse, join
from attngeom.models.proofs.regions import Pieces, Region
from attngeom.models.proofs.turns import Turns
from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, TransformerBlock


@dataclass(frozen=True, eq=False)
class BlockFunction:
    """Evaluates sublayers at a point; ``prefix`` stands in front of the names of the weights.

    ``token_tape`` holds the free values that depend on the last token alone (its score with itself, a parallel MLP);
    None: all samples have different last tokens, and the common tape serves. ``region`` and ``real``, one real vector
    for every sample, say which pieces of the MLP the samples are in; they are needed where an MLP is evaluated.
    """

    block: TransformerBlock
    point: ResiduePoint
    turns: Turns
    tape: Tape
    prefix: str = ""
    token_tape: Tape | None = None
    region: Region | None = None
    real: Array | None = None

    def __call__(self, tokens: Dual, distances: Array, other: Dual | None = None) -> Dual:
        """The last of the tokens (samples, tokens, width) after the block; ``other``: the encoder's stream."""
        block, current = self.block, tokens[:, -1]
        if block.parallel:
            return self._parallel(tokens, distances)
        for sublayer in sublayers(block):
            name, part, norms = self.prefix + sublayer_name(sublayer), sublayer.map, sublayer.norms
            if isinstance(part, GroupedAttention):
                if sublayer.is_cross:
                    if other is None:
                        raise InputError("a block with cross-attention given without the stream that it reads")
                    query, source = self.normalise(f"{name}.input", norms.input, current), other
                else:
                    source = self.normalise(f"{name}.input", norms.input, tokens)
                    query = source[:, -1]
                change = self.attend(name, part, query, source, distances)
            else:
                change = self.transform(name, part, self.normalise(f"{name}.input", norms.input, current))
            current = current + self.normalise(f"{name}.output", norms.output, change)
            current = self.normalise(f"{name}.stream", norms.stream, current)
        return current

    def _parallel(self, tokens: Dual, distances: Array) -> Dual:
        block, current = self.block, tokens[:, -1]
        total, source = current, tokens
        if block.attention is not None:
            name = f"{self.prefix}attention"
            source = self.normalise(f"{name}.input", block.attention_norms.input, tokens)
            total = total + self.attend(name, block.attention, source[:, -1], source, distances)
        if block.mlp is not None:
            name = f"{self.prefix}mlp"
            own = current if not block.shared_norm else source[:, -1]
            u = self.normalise(f"{name}.input", block.mlp_norms.input, own)
            total = total + replace(self, tape=self.token_tape or self.tape).transform(name, block.mlp, u)
        return total

    def normalise(self, name: str, norm: Norm | None, x: Dual) -> Dual:
        """gain ∘ n(x) + bias over the last axis."""
        if norm is None:
            return x
        width = x.value.shape[-1]
        size = pow(width, -1, PRIME)
        if norm.kind == "layer":
            mean = x.total(x.value.ndim - 1) * ((PRIME - size) % PRIME)
            x = x + mean[..., None]
        square = (x * x).total(x.value.ndim - 1) * size + Dual(np.array([constant(norm.eps)]))
        y = x * self.tape.reciprocal(self.tape.root(square))[..., None]
        if norm.gain:
            y = y * self.point.tensor(f"{name}.gain")
        return self.point.add(f"{name}.bias", y)

    def attend(self, name: str, attention: GroupedAttention, query: Dual, source: Dual, distances: Array) -> Dual:
        """What attention adds to a token with the given input that attends to the tokens of ``source``."""
        queries = self.queries(name, attention, query)
        keys, values = self.keys_values(name, attention, source)
        samples, heads = queries.value.shape[:2]
        groups, tokens = attention.groups, keys.value.shape[1]
        keys = self._turned(attention, keys, distances)
        queries = queries.reshape(samples, groups, heads // groups, attention.head_dim)
        scores = contract("sgna,stga->sgnt", queries, keys) * constant(attention.scale)
        scores = scores.reshape(samples, heads, tokens)
        scores = self._with_table(name, scores, attention.causal)
        if attention.softcap is not None:
            free = self._free_scores(scores.value)
            scores = scores.chain(free * constant(attention.softcap), (1 - free * free) % PRIME)
        weights = self._softmax(scores, f"{name}.sinks" if attention.sinks else None)
        weights = weights.reshape(samples, groups, heads // groups, tokens)
        mixed = contract("sgnt,stgv->sgnv", weights, values).reshape(samples, heads, attention.value_dim)
        return self.point.add(f"{name}.output_bias", self.point.linear(f"{name}.output", mixed, "hdv,shv->sd"))

    def queries(self, name: str, attention: GroupedAttention, u: Dual) -> Dual:
        """Shape (samples, heads, head_dim), before rotation."""
        if attention.latent is not None and attention.latent.query_rank is not None:
            u = self.point.add(f"{name}.query_latent_bias", self.point.linear(f"{name}.query_latent", u, "rl,sl->sr"))
            u = self.normalise(f"{name}.query_latent", attention.latent.query_norm, u)
        found = self.point.add(f"{name}.query_bias", self.point.linear(f"{name}.query", u, "hal,sl->sha"))
        return self._normalised(f"{name}.query_gain", attention, found)

    def keys_values(self, name: str, attention: GroupedAttention, u: Dual) -> tuple[Dual, Dual]:
        """Shapes (samples, tokens, groups, head_dim) and (samples, tokens, groups, value_dim), before rotation."""
        if attention.latent is None:
            keys = self.point.add(f"{name}.key_bias", self.point.linear(f"{name}.key", u, "gal,stl->stga"))
            values = self.point.add(f"{name}.value_bias", self.point.linear(f"{name}.value", u, "gvl,stl->stgv"))
            return self._normalised(f"{name}.key_gain", attention, keys), values
        latent = self.point.add(f"{name}.key_latent_bias", self.point.linear(f"{name}.key_latent", u, "rl,stl->str"))
        latent = self.normalise(f"{name}.key_latent", attention.latent.key_norm, latent)
        keys = self.point.linear(f"{name}.key", latent, "gal,stl->stga")
        values = self.point.linear(f"{name}.value", latent, "gvl,stl->stgv")
        if not attention.rotated:
            return keys, values
        turned = self.point.add(f"{name}.key_turned_bias", self.point.linear(f"{name}.key_turned", u, "gal,stl->stga"))
        shared = [turned] * attention.heads
        stacked = Dual(
            np.concatenate([part.value for part in shared], axis=2),
            None if turned.slope is None else np.concatenate([turned.slope] * attention.heads, axis=2),
        )
        return join([stacked, keys]), values

    def _normalised(self, gain: str, attention: GroupedAttention, x: Dual) -> Dual:
        """The QK-norm of x with heads and coordinates as last two axes."""
        if attention.qk_norm is None:
            return x
        norm, lead = attention.qk_norm.norm, x.value.ndim - 2
        flat = Norm(kind=norm.kind, eps=norm.eps, gain=False)
        if not attention.qk_norm.is_joint:
            y = self.normalise("", flat, x)
        else:
            shape = x.value.shape
            y = self.normalise("", flat, x.reshape(*shape[:lead], shape[-2] * shape[-1])).reshape(*shape)
        return y * self.point.tensor(gain) if norm.gain else y

    def _turned(self, attention: GroupedAttention, keys: Dual, distances: Array) -> Dual:
        """Keys rotated back by their distances; queries then stay as they are."""
        if attention.rotary is None:
            return keys
        pairs, size = attention.rotated // 2, attention.rotated
        table = self.turns.table(attention.rotary)[distances]
        cosine, sine = table[:, :, None, 0], table[:, :, None, 1]
        first, second = keys[..., :pairs], keys[..., pairs:size]
        factor = constant(attention.rotary.amplitude) ** 2 % PRIME
        turned = [first * cosine + second * sine, second * cosine + first * (PRIME - sine)]
        return join([*(part * factor for part in turned), keys[..., size:]])

    def _with_table(self, name: str, scores: Dual, causal: bool) -> Dual:
        """Scores plus a relative position table (buckets × heads), every token in a random bucket, the last in 0."""
        if f"{name}.relative" not in self.point:
            return scores
        table = self.point.tensor(f"{name}.relative")
        tokens = scores.value.shape[2]
        rows = np.stack(np.meshgrid(*[used_buckets(table.value.shape[1], causal)] * (tokens - 1), [0]), axis=-1)
        chosen = self.tape.choose(rows.reshape(-1, tokens))
        picked = table[0, chosen]
        slope = None if picked.slope is None else picked.slope.swapaxes(1, 2)
        return scores + Dual(picked.value.swapaxes(1, 2), slope)

    def _free_scores(self, scores: Array) -> Array:
        """Free values for the scores (samples, heads, tokens)."""
        if self.token_tape is None:
            return self.tape.free(scores)
        parts = [self.tape.free(scores[:, :, :-1]), self.token_tape.free(scores[:, :, -1])[:, :, None]]
        return np.concatenate(parts, axis=2)

    def _softmax(self, scores: Dual, sinks: str | None) -> Dual:
        """Free values for the exponentials; exp(sink) is the stored residue itself, its derivative the same."""
        exponentials = self._free_scores(scores.value)
        total = exponentials.sum(axis=2) % PRIME
        if sinks is not None:
            total = (total + self.point[sinks]) % PRIME
        self.tape.good &= (total != 0).all(axis=1)
        weights = exponentials * inverse(total)[..., None] % PRIME
        if scores.slope is None:
            return Dual(weights)
        mean = np.einsum("sht,shtz->shz", weights, scores.slope) % PRIME
        if sinks is not None:
            tensor = self.point.tensor(sinks)
            share = self.point[sinks] * inverse(total) % PRIME
            assert tensor.slope is not None
            mean = (mean + share[..., None] * tensor.slope) % PRIME
        return Dual(weights, weights[..., None] * ((scores.slope - mean[:, :, None]) % PRIME) % PRIME)

    def transform(self, name: str, part: MLP | Experts, u: Dual) -> Dual:
        """What the MLP or the experts add to a token with input u, in the pieces of the region."""
        assert self.region is not None and self.real is not None
        before, place = self._norm_before_mlp()
        real = self.region.normalise(f"{self.prefix}{place}", before, self.real)
        pieces, chosen, clear = self.region.read(name, part, real)
        self.tape.good &= clear
        if isinstance(part, MLP):
            return self._units(name, part, u, pieces[name])
        assert chosen is not None
        kept = self._routed(name, part, u, chosen)
        result = None
        for index in range(part.count):
            own = f"{name}.{index}"
            term = self._units(own, part.expert, u, pieces[own]) * kept[:, index, None]
            result = term if result is None else result + term
        assert result is not None
        if part.shared is None:
            return result
        return result + self._units(f"{name}.shared", part.shared, u, pieces[f"{name}.shared"])

    def _norm_before_mlp(self) -> tuple[Norm | None, str]:
        """The norm whose output the MLP reads: its own, a shared one, or the norm of the sum before it."""
        parts = sublayers(self.block)
        if parts[-1].norms.stream is not None and len(parts) > 1:
            return parts[-2].norms.stream, f"{sublayer_name(parts[-2])}.stream"
        return parts[-1].before, "attention.input" if self.block.shared_norm else "mlp.input"

    def _units(self, name: str, mlp: MLP, u: Dual, pieces: Pieces) -> Dual:
        up = self.point.add(f"{name}.up_bias", self.point.linear(f"{name}.up", u, "ml,sl->sm"))
        if not mlp.gated:
            hidden = activate(mlp.activation, up, self.tape, pieces)
        else:
            gate = self.point.add(f"{name}.gate_bias", self.point.linear(f"{name}.gate", u, "ml,sl->sm"))
            if mlp.limit is None:
                opened = activate(mlp.activation, gate, self.tape, pieces)
            else:
                opened = clamped_gate(mlp.activation, gate, mlp.limit, self.tape, pieces)
                up = clamped(up, mlp.limit, pieces)
            hidden = opened * (up + Dual(np.array([1])) if mlp.activation == "swiglu_oai" else up)
        return self.point.add(f"{name}.down_bias", self.point.linear(f"{name}.down", hidden, "dm,sm->sd"))

    def _routed(self, name: str, experts: Experts, u: Dual, chosen: Array) -> Dual:
        """The weights of the experts, 0 for those that do not run."""
        logits = self.point.add(f"{name}.router_bias", self.point.linear(f"{name}.router", u, "el,sl->se"))
        free = self.tape.free(logits.value)
        if experts.router == "softmax":
            weights = logits.chain(free, free)
            kept = weights * chosen
            total = (kept if experts.normalised else weights).total(1)
        else:
            kept = logits.chain(free, free * ((1 - free) % PRIME) % PRIME) * chosen
            total = kept.total(1)
        if experts.router == "softmax" or experts.normalised:
            kept = kept * self.tape.reciprocal(total)[..., None]
        return kept * constant(experts.factor)


def used_buckets(buckets: int, causal: bool) -> list[int]:
    """The buckets of other tokens: distance 0 has the first one, and of two sides the second has none for it.

    >>> used_buckets(4, causal=True), used_buckets(6, causal=False)
    ([1, 2, 3], [1, 2, 4, 5])
    """
    return [bucket for bucket in range(1, buckets) if causal or bucket != buckets // 2]
