"""Blocks of transformers as programs: one small function for each option of a sublayer, and its only home.

The last token is the output. The tokens that it attends to are inputs of their own, ``x1``, ``x2``, at distances that
are listed (a window, a table of relative positions), or free: the turns of a rotation by all distances are dense in a
torus, so that points of the torus are inputs (``turn1``, …). All else that a block may see has the same weights.

A program has either the *stored* weights of the block, or *acting* ones, into which the stored ones go by a map that
is dominant, so that both have the same functions up to closure:

- What reads a norm g∘n(x) + β by Wu + b reads n(x) by W·diag g with the constant Wβ + b. Behind a LayerNorm, whose n(x)
  have sum 0, only the differences of the columns count; then the constant is free as soon as β or b is there.
- What is written into a LayerNorm counts up to a multiple of (1, …, 1): its last row is 0.
- A residual scale is taken into what writes.
- Without sinks the biases of values add a constant to the output, any one if there is a bias of the output, or if
  values have as many coordinates as the output: then that bias is there alone.
- Behind few columns an output norm shows a quadratic form instead of its gains (:meth:`BlockBuilder.output_norm`).
- Coordinates of values, or of queries and keys that neither turn nor are normalised, count only as far as the products
  of their maps can have such a rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from typing import Literal

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.commensurable import classes
from attngeom.models.counts.sublayers import Sublayer, sublayers
from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, Rotary, TransformerBlock
from attngeom.programs import Builder, Program

Weights = Literal["stored", "acting"]
GELU_CUBIC, GELU_SCALE, QUICK = 0.044715, math.sqrt(2 / math.pi), 1.702
BELOW_ALL = 4
"""More than two scores between 0 and 1 differ by: what takes an expert out of the choice."""


def block_program(
    block: TransformerBlock,
    width: int,
    *,
    weights: Weights = "acting",
    buckets: int = 0,
    others: int = 1,
    tokens: int | None = None,
) -> Program:
    """What a block makes of its last token, for all places of the other tokens that show its weights.

    ``buckets`` > 0 adds a relative position table; ``others``: how many other tokens are listed at least, as far as the
    window shows them; ``tokens``: that many consecutive tokens instead, in true places.

    >>> from attngeom.models.specification import Norms
    >>> mlp = MLP(width=2, activation="silu", gated=True)
    >>> block = TransformerBlock(attention=None, mlp=mlp, mlp_norms=Norms(input=Norm(kind="rms", eps=1e-6)))
    >>> [block_program(block, 3, weights=own).num_parameters for own in ("stored", "acting")]
    [21, 18]
    """
    return BlockBuilder(block, width, weights == "acting", choose_places(block, buckets, others, tokens)).build()


def block_shapes(block: TransformerBlock, width: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the stored weights of a block."""
    return block_program(block, width, weights="stored").parameters


def sublayer_name(sublayer: Sublayer) -> str:
    if isinstance(sublayer.map, GroupedAttention):
        return "cross" if sublayer.is_cross else "attention"
    return "mlp"


@dataclass(frozen=True)
class SeenVector:
    """What maps read: a vector as a node, its last axis of length ``width``; ``constant``: every reader has a bias."""

    node: int
    width: int
    constant: bool = False


@dataclass(frozen=True)
class SublayerOutput:
    """What a map writes, (places, rows): a linear map of ``columns`` (places, k), and of 1 if it has a bias.

    None for sums of several such maps.
    """

    node: int
    columns: int | None = None
    bias: bool = False


@dataclass(frozen=True)
class TokenPlaces:
    """Where the other tokens of a sequence stand: lists of distances, of buckets of a table, or anywhere (None)."""

    distances: tuple[tuple[int, ...], ...] | None
    buckets: tuple[tuple[int, ...], ...]
    others: int
    table: int = 0

    @property
    def count(self) -> int:
        return max(1, len(self.distances or ()), len(self.buckets))


def choose_places(block: TransformerBlock, buckets: int, others: int = 1, tokens: int | None = None) -> TokenPlaces:
    """Some other tokens, two where an output norm follows, at as many distances as the rotation needs."""
    own = block.attention
    if own is None:
        return TokenPlaces(None, (), 0)
    if tokens is not None:
        return TokenPlaces((tuple(range(tokens - 1, 0, -1)),), (), tokens - 1)
    others = max(others, 2 if block.attention_norms.output is not None else 1)
    if own.window is not None and own.window <= others:
        others = own.window - 1
    if buckets:
        used = [bucket for bucket in range(1, buckets) if own.causal or bucket != buckets // 2]
        return TokenPlaces(None, tuple(product(used, repeat=others)), others, buckets)
    if own.rotary is None:
        # Only the slopes of ALiBi tell distances, and constants in scores show nothing of the weights.
        return TokenPlaces((tuple(range(others, 0, -1)),), (), others)
    if own.window is None:
        return TokenPlaces(None, (), others)
    last = min(max(others, own.rotated + 1), own.window - 1)
    return TokenPlaces(tuple(combinations(range(last, 0, -1), others)), (), others)


class BlockBuilder:
    """Builds the program of a block from its sublayers; names of weights are those of the stored ones."""

    def __init__(self, block: TransformerBlock, width: int, acting: bool, places: TokenPlaces) -> None:
        self.block, self.width, self.acting, self.places = block, width, acting, places
        self.b = Builder()

    def build(self) -> Program:
        b = self.b
        others = [b.input(f"x{k + 1}", (self.width,)) for k in range(self.places.others)]
        last = b.input("x0", (self.width,))
        return b.build(self.run(last, others))

    def run(self, last: int, others: Sequence[int]) -> int:
        """The last token after the block, one row for every place of the others."""
        b, block, width = self.b, self.block, self.width
        total = b.broadcast(last, (self.places.count, width))
        # One token has one norm, whoever reads it: two roots of one number would not be free.
        plain = stream = SeenVector(last, width)
        for sublayer in sublayers(block):
            name, norms, part = sublayer_name(sublayer), sublayer.norms, sublayer.map
            if block.shared_norm and name == "mlp":
                read = self.norm("attention.input", block.attention_norms.input, plain, None)
            else:
                read = self.norm(f"{name}.input", norms.input, plain if block.parallel else stream, None)
            read = self._at_places(read)
            rows = self._rows(norms.output or norms.stream)
            if isinstance(part, GroupedAttention):
                change = self._attention(name, sublayer, part, last, others, read, rows)
            elif isinstance(part, Experts):
                change = self.experts(name, part, read, rows)
            else:
                change = self.units(name, part, read, rows)
            written = self._full(change.node)
            if block.residual_scale != 1.0 and not self.acting:
                written = b.multiply(written, self.number(block.residual_scale))
            if norms.output is not None:
                written = self.output_norm(f"{name}.output", norms.output, replace(change, node=written))
            total = b.add(total, written)
            stream = SeenVector(total, width)
            if norms.stream is not None:
                stream, total = self.stream_norm(f"{name}.stream", norms.stream, total)
        return total

    def _at_places(self, x: SeenVector) -> SeenVector:
        """What is read of a token, once for every place of the others."""
        shape = self.b.shape(x.node)
        return replace(x, node=self.b.broadcast(x.node, (self.places.count, *shape))) if len(shape) == 1 else x

    def _rows(self, follower: Norm | None) -> int:
        """How many rows are written: the mean is not seen by a LayerNorm that follows."""
        return self.width - 1 if self.acting and follower is not None and follower.kind == "layer" else self.width

    def _full(self, x: int) -> int:
        """Vectors with a last row of 0 if one was left out."""
        if self.b.shape(x)[-1] == self.width:
            return x
        numbers = self.b.numbers([x])[0]
        return self.b.move([x], np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, 1)]))

    # Norms

    def normalised(self, norm: Norm, x: int, axes: int = 1) -> int:
        """n(x) over the last axis, or over the last ``axes``."""
        b, shape = self.b, self.b.shape(x)
        last = range(len(shape) - axes, len(shape))
        if norm.kind == "layer":
            x = b.subtract(x, b.mean(x, last, keepdims=True))
        letters = "abcdef"[: len(shape)]
        out = letters[: len(shape) - axes]
        square = b.contract(f"{letters},{letters}->{out}", x, x)
        mean = b.multiply(square, self.number(Fraction(1, math.prod(shape[k] for k in last))))
        scale = b.inverse(b.root(b.add(mean, self.number(norm.eps))))
        return b.contract(f"{letters},{out}->{letters}", x, scale)

    def norm(self, name: str, norm: Norm | None, x: SeenVector, size: int | None) -> SeenVector:
        """What readers see of g∘n(x) + β."""
        if norm is None:
            return x
        size = size or self.width
        if not self.acting:
            return self.scaled_norm(name, norm, x.node)
        return self._seen(norm, self.normalised(norm, x.node), size)

    def _seen(self, norm: Norm, n: int, size: int) -> SeenVector:
        if norm.kind == "layer" and size > 1:
            n = self.b.move([n], self.b.numbers([n])[0][..., : size - 1])
        return SeenVector(n, size - (norm.kind == "layer"), norm.bias)

    def scaled_norm(self, name: str, norm: Norm, x: int) -> SeenVector:
        """g∘n(x) + β with its weights."""
        y, size = self.normalised(norm, x), self.b.shape(x)[-1]
        if norm.gain:
            y = self.b.multiply(y, self.b.parameter(f"{name}.gain", (size,)))
        if norm.bias:
            y = self.b.add(y, self.b.parameter(f"{name}.bias", (size,)))
        return SeenVector(y, size)

    def output_norm(self, name: str, norm: Norm, y: SublayerOutput) -> int:
        """g∘n(y) + β behind a map y = Wz.

        g∘n(Wz) is (diag g W)z divided by the root of zᵀSz/d + eps, S = WᵀW. Where W has so few columns that S is any
        form, beside whatever diag g W, then S acts in the place of g; with a bias in z it takes up eps.
        """
        b = self.b
        k = 0 if y.columns is None else b.shape(y.columns)[-1] + y.bias
        if not self.acting or norm.kind != "rms" or not norm.gain or not 0 < k * (k + 1) <= 2 * self.width:
            return self.scaled_norm(name, norm, y.node).node
        assert y.columns is not None
        z = y.columns
        if y.bias:
            ones = b.constant(np.ones((b.shape(z)[0], 1), dtype=np.int64))
            z = b.move([z, ones], np.concatenate(b.numbers([z, ones]), axis=1))
        upper = np.triu(np.ones((k, k), dtype=np.int64))
        table = np.where(upper, (np.cumsum(upper) * upper.ravel()).reshape(k, k), 0)
        form = b.parameter(f"{name}.form", (k * (k + 1) // 2,))
        square = b.contract("pk,pk->p", b.contract("pj,jk->pk", z, b.move([form], np.maximum(table, table.T))), z)
        if not y.bias:
            square = b.add(square, self.number(norm.eps))
        return b.contract("pd,p->pd", y.node, b.inverse(b.root(square)))

    def stream_norm(self, name: str, norm: Norm, x: int) -> tuple[SeenVector, int]:
        """The stream behind a norm of the sum: what maps read of it, and the stream itself."""
        whole = self.scaled_norm(name, norm, x)
        return (self._seen(norm, self.normalised(norm, x), self.width) if self.acting else whole), whole.node

    # Linear maps

    def linear(self, name: str, x: SeenVector, rows: tuple[int, ...], bias: bool) -> int:
        """W x + b with W of shape (*rows, width) at the last axis of x; leading axes of x stay in front."""
        b = self.b
        out, lead = "abc"[: len(rows)], "pq"[: len(b.shape(x.node)) - 1]
        if x.width:
            y = b.contract(f"{out}l,{lead}l->{lead}{out}", b.parameter(name, (*rows, x.width)), x.node)
        else:
            y = b.constant(np.zeros((*b.shape(x.node)[:-1], *rows), dtype=np.int64))
        if bias or (self.acting and x.constant):
            y = b.add(y, b.parameter(f"{name}_bias", rows))
        return y

    def number(self, x: float | Fraction) -> int:
        return self.b.constant(np.array(Fraction(x), dtype=object))

    # Attention

    def _attention(
        self, name: str, sublayer: Sublayer, own: GroupedAttention, last: int, others: Sequence[int], read: SeenVector,
        rows: int,
    ) -> SublayerOutput:  # fmt: skip
        b = self.b
        if sublayer.is_cross:
            sources = [SeenVector(b.input(f"memory{k}", (self.width,)), self.width) for k in range(2)]
        else:
            before = self.block.attention_norms.input
            sources = [self.norm(f"{name}.input", before, SeenVector(x, self.width), None) for x in (*others, last)]
            read = sources[-1]
        return self.attend(name, own, read, sources, rows, sublayer.is_cross)

    def attend(
        self, name: str, own: GroupedAttention, read: SeenVector, sources: Sequence[SeenVector], rows: int, cross: bool
    ) -> SublayerOutput:
        """What attention adds to a token that attends to sources, the last of which is itself but for ``cross``."""
        b, count = self.b, self.places.count
        if self.acting:
            own = self.acting_sizes(own, read, sources[0], rows)
        heads, groups = own.heads, own.groups
        query = self.query(name, own, read)
        lead = b.shape(query)[:-2]
        query = b.reshape(query, (*lead, groups, heads // groups, own.head_dim))
        pairs = [self.key_value(name, own, source) for source in sources]
        scores = []
        for place, (key, _) in enumerate(pairs):
            is_self = not cross and place == len(pairs) - 1
            key = key if is_self or cross else self.turned(own, key, place)
            words = "p" * len(lead), "p" * (len(b.shape(key)) - 2)
            out = max(words, key=len)
            score = b.contract(f"{words[0]}gna,{words[1]}ga->{out}gn", query, key)
            score = b.multiply(score, self.number(own.scale))
            score = b.reshape(score, (*b.shape(score)[: len(out)], heads))
            if not cross:
                score = self.placed(name, own, score, None if is_self else place)
            scores.append(b.broadcast(self.capped(own, score), (count, heads)))
        mixed = self.average(name, own, scores, [value for _, value in pairs])
        output = b.parameter(f"{name}.output", (heads, rows, own.value_dim))
        y = b.contract("phv,hdv->pd", mixed, output)
        if own.output_bias:
            y = b.add(y, b.parameter(f"{name}.output_bias", (rows,)))
        return SublayerOutput(y, b.reshape(mixed, (count, heads * own.value_dim)), own.output_bias)

    def acting_sizes(self, own: GroupedAttention, read: SeenVector, source: SeenVector, rows: int) -> GroupedAttention:
        """Attention with the same functions whose values and plain coordinates are as few as their maps allow."""
        share, latent = own.heads // own.groups, own.latent
        keys, values = source.width + (own.key_bias or source.constant), source.width
        queries = read.width + (own.query_bias or read.constant)
        if latent is not None:
            keys = values = latent.key_rank
            queries = queries if latent.query_rank is None else latent.query_rank
        elif own.value_bias or source.constant:
            if not own.sinks and self._has_free_constant(own):
                own = replace(own, value_bias=False)
            elif not own.sinks and own.groups * own.value_dim >= rows:
                own = replace(own, value_bias=False, output_bias=True)
            else:
                values += 1
        plain = own.unrotated
        if own.qk_norm is None:
            plain = min(plain, keys, share * queries)
        return replace(own, head_dim=own.rotated + plain, value_dim=min(own.value_dim, values, share * rows))

    def _has_free_constant(self, own: GroupedAttention) -> bool:
        """Whether any constant may be added to what attention writes: by its own bias, or by that of an MLP beside."""
        mlp = self.block.mlp
        return own.output_bias or (self.block.parallel and isinstance(mlp, MLP) and mlp.down_bias)

    def average(self, name: str, own: GroupedAttention, scores: Sequence[int], values: Sequence[int]) -> int:
        """The mean of values weighted by exponentials of scores; a sink is a token without value."""
        b = self.b
        exponentials = [b.exp(score) for score in scores]
        total = exponentials[0]
        for other in exponentials[1:]:
            total = b.add(total, other)
        if own.sinks:
            total = b.add(total, b.exp(b.parameter(f"{name}.sinks", (own.heads,))))
        shares, mixed = b.inverse(total), None
        grouped = (self.places.count, own.groups, own.heads // own.groups)
        for exponential, value in zip(exponentials, values):
            share = b.reshape(b.multiply(exponential, shares), grouped)
            part = b.contract("pgn,gv->pgnv", share, value)
            mixed = part if mixed is None else b.add(mixed, part)
        assert mixed is not None
        return b.reshape(mixed, (self.places.count, own.heads, own.value_dim))

    def query(self, name: str, own: GroupedAttention, u: SeenVector) -> int:
        """(…, heads, head_dim), before rotation."""
        if own.latent is not None and own.latent.query_rank is not None:
            u = self.latent(f"{name}.query_latent", own.latent.query_rank, own.latent.query_norm, own.latent.bias, u)
        query = self.linear(f"{name}.query", u, (own.heads, own.head_dim), own.query_bias)
        return self.qk_normalised(f"{name}.query_gain", own, query)

    def key_value(self, name: str, own: GroupedAttention, u: SeenVector) -> tuple[int, int]:
        """(groups, head_dim) and (groups, value_dim), before rotation."""
        if own.latent is None:
            key = self.linear(f"{name}.key", u, (own.groups, own.head_dim), own.key_bias)
            if self.acting and not own.sinks and self._has_free_constant(own):
                u = replace(u, constant=False)
            value = self.linear(f"{name}.value", u, (own.groups, own.value_dim), own.value_bias)
            return self.qk_normalised(f"{name}.key_gain", own, key), value
        latent = self.latent(f"{name}.key_latent", own.latent.key_rank, own.latent.key_norm, own.latent.bias, u)
        key = self.linear(f"{name}.key", latent, (own.heads, own.unrotated), False)
        value = self.linear(f"{name}.value", latent, (own.heads, own.value_dim), False)
        if own.rotated:
            shared = self.linear(f"{name}.key_turned", u, (1, own.rotated), own.latent.bias)
            first, second = self.b.numbers([shared, key])
            joined = np.concatenate([np.repeat(first, own.heads, axis=0), second], axis=1)
            key = self.b.move([shared, key], joined)
        return key, value

    def latent(self, name: str, rank: int, norm: Norm | None, bias: bool, u: SeenVector) -> SeenVector:
        """A latent of latent attention, behind its norm."""
        y = SeenVector(self.linear(name, u, (rank,), bias), rank)
        return self.norm(name, norm, y, rank)

    def qk_normalised(self, name: str, own: GroupedAttention, x: int) -> int:
        """The QK-norm of (…, heads, coordinates), of each head or of all together, times its gains."""
        if own.qk_norm is None:
            return x
        b, norm, shape = self.b, own.qk_norm.norm, self.b.shape(x)
        y = self.normalised(norm, x, 2 if own.qk_norm.is_joint else 1)
        count = 1 if own.qk_norm.shares_gains else shape[-2]
        if not norm.gain:
            return y
        gain = b.parameter(name, (count, own.head_dim))
        return b.multiply(y, b.reshape(gain, (own.head_dim,)) if count == 1 else gain)

    def turned(self, own: GroupedAttention, key: int, place: int) -> int:
        """The key of another token rotated back by its distance; queries stay as they are."""
        if own.rotary is None:
            return key
        b, pairs = self.b, own.rotated // 2
        cos, sin = self.turns(own.rotary, place)
        if own.rotary.amplitude != 1.0:
            cos, sin = (b.multiply(x, self.number(Fraction(own.rotary.amplitude) ** 2)) for x in (cos, sin))
        back, one = b.scale(sin, -1), self.number(1)
        sources = [cos, sin, back, one]
        turn, rise, fall, same = b.numbers(sources)
        table = np.zeros((len(turn), own.head_dim, own.head_dim), dtype=np.int64)
        first, second = np.arange(pairs), np.arange(pairs, 2 * pairs)
        table[:, first, first] = table[:, second, second] = turn
        table[:, first, second], table[:, second, first] = rise, fall
        rest = np.arange(2 * pairs, own.head_dim)
        table[:, rest, rest] = same
        return b.contract("pab,gb->pga", b.move(sources, table), key)

    def turns(self, rotary: Rotary, place: int) -> tuple[int, int]:
        """Cosines and sines (places, pairs) of the distance of another token; a free point of the torus if any is."""
        if self.places.distances is not None:
            distances = np.array([row[place] for row in self.places.distances], dtype=np.float64)
            return self.b.circle(np.outer(distances, rotary.frequencies))
        members = classes(rotary.frequencies)
        angles = {frequency: (k, n) for k, own in enumerate(members) for frequency, n in own.items()}
        b, count = self.b, max(1, len(members))
        slope = b.input(f"turn{place + 1}", (count,))
        square = b.multiply(slope, slope)
        scale = b.inverse(b.add(self.number(1), square))
        cos = b.multiply(b.subtract(b.constant(np.ones(count, dtype=np.int64)), square), scale)
        sin = b.multiply(b.scale(slope, 2), scale)
        rows = [self._multiple(cos, sin, *angles.get(frequency, (0, 0))) for frequency in rotary.frequencies]
        table = [b.reshape(b.move(column, np.stack(b.numbers(column))), (1, len(rows))) for column in zip(*rows)]
        return table[0], table[1]

    def _multiple(self, cos: int, sin: int, number: int, n: int) -> tuple[int, int]:
        """Cosine and sine of the n-th multiple of the angle of a class, by squaring."""
        b = self.b
        x, y = (b.move([part], b.numbers([part])[0][number]) for part in (cos, sin))
        result: tuple[int, int] | None = None
        if not n:
            return self.number(1), self.number(0)
        for bit in bin(n)[2:]:
            if result is not None:
                result = self._turn(result, result)
            if bit == "1":
                result = (x, y) if result is None else self._turn(result, (x, y))
        assert result is not None
        return result

    def _turn(self, one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int]:
        b, (a, c), (d, e) = self.b, one, two
        return b.subtract(b.multiply(a, d), b.multiply(c, e)), b.add(b.multiply(a, e), b.multiply(c, d))

    def placed(self, name: str, own: GroupedAttention, score: int, place: int | None) -> int:
        """Scores with what depends on the distance alone: a slope of each head, or a table of relative positions."""
        b = self.b
        if own.alibi and place is not None:
            assert self.places.distances is not None
            slopes = alibi_slopes(own.heads) * (own.scale if own.alibi == "scaled" else 1.0)
            distances = np.array([row[place] for row in self.places.distances])
            score = b.add(score, b.constant(-np.outer(distances, slopes)))
        if self.places.table:
            table = b.parameter(f"{name}.relative", (self.places.table, own.heads))
            used = [0] if place is None else [row[place] for row in self.places.buckets]
            score = b.add(score, b.move([table], b.numbers([table])[0][used]))
        return score

    def capped(self, own: GroupedAttention, score: int) -> int:
        """c·tanh(s/c)."""
        if own.softcap is None:
            return score
        b = self.b
        small = b.tanh(b.multiply(score, self.number(1 / Fraction(own.softcap))))
        return b.multiply(small, self.number(own.softcap))

    # Hidden units

    def units(self, name: str, mlp: MLP, u: SeenVector, rows: int) -> SublayerOutput:
        """down(φ(gate) ∘ up), or down(φ(up))."""
        b = self.b
        up = self.linear(f"{name}.up", u, (mlp.width,), mlp.up_bias)
        if mlp.gated:
            gate = self.linear(f"{name}.gate", u, (mlp.width,), mlp.up_bias)
            if self.acting and mlp.limit is not None:
                # Acting rows are measured in limits, so that random ones reach them.
                gate, up = (b.multiply(x, self.number(mlp.limit)) for x in (gate, up))
            gate, up = self.limited(mlp, gate, up)
            one = mlp.activation == "swiglu_oai"
            hidden = b.multiply(self.activation(mlp.activation, gate), b.add(up, self.number(1)) if one else up)
        else:
            hidden = self.activation(mlp.activation, up)
        down = b.parameter(f"{name}.down", (rows, mlp.width))
        y = b.contract("pm,dm->pd", hidden, down)
        if mlp.down_bias:
            y = b.add(y, b.parameter(f"{name}.down_bias", (rows,)))
        return SublayerOutput(y, hidden, mlp.down_bias)

    def limited(self, mlp: MLP, gate: int, up: int) -> tuple[int, int]:
        """min(gate, limit) and up between −limit and limit."""
        if mlp.limit is None:
            return gate, up
        b, limit = self.b, self.number(mlp.limit)
        low = b.scale(b.maximum(b.scale(up, -1), b.scale(limit, -1)), -1)
        return b.scale(b.maximum(b.scale(gate, -1), b.scale(limit, -1)), -1), b.maximum(low, b.scale(limit, -1))

    def activation(self, name: str, x: int) -> int:
        b = self.b
        if name == "relu":
            return b.relu(x)
        if name == "gelu":
            return b.gelu(x)
        if name == "tanh":
            return b.tanh(x)
        if name == "sigmoid":
            return b.sigmoid(x)
        if name == "gelu_tanh":
            cube = b.multiply(b.multiply(b.multiply(x, x), x), self.number(GELU_CUBIC))
            # (1 + tanh z)/2 = σ(2z).
            return b.multiply(x, b.sigmoid(b.multiply(b.add(x, cube), self.number(2 * GELU_SCALE))))
        slope = b.multiply(x, self.number(QUICK)) if name in ("quick_gelu", "swiglu_oai") else x
        return b.multiply(x, b.sigmoid(slope))

    def experts(self, name: str, part: Experts, u: SeenVector, rows: int) -> SublayerOutput:
        """The experts that run, weighted by the router, and the shared one."""
        b = self.b
        kept = self.routed(name, part, self.linear(f"{name}.router", u, (part.count,), part.router_bias))
        total = None
        for index in range(part.count):
            weight = b.move([kept], b.numbers([kept])[0][..., index : index + 1])
            term = b.multiply(weight, self.units(f"{name}.{index}", part.expert, u, rows).node)
            total = term if total is None else b.add(total, term)
        assert total is not None
        if part.shared is not None:
            total = b.add(total, self.units(f"{name}.shared", part.shared, u, rows).node)
        return SublayerOutput(total)

    def routed(self, name: str, part: Experts, logits: int) -> int:
        """The weights of the experts, 0 for those that do not run."""
        b = self.b
        shares = b.softmax(logits, 1) if part.router == "softmax" else b.sigmoid(logits)
        kept = b.multiply(shares, self.chosen(part, shares)) if part.active < part.count else shares
        if part.normalised:
            kept = b.divide(kept, b.sum(kept, [1], keepdims=True))
        return kept if part.factor == 1.0 else b.multiply(kept, self.number(part.factor))

    def chosen(self, part: Experts, shares: int) -> int:
        """1 for the experts of the best groups that are the best of them, else 0."""
        b = self.b
        if part.expert_groups > 1:
            size = part.count // part.expert_groups
            split = b.reshape(shares, (*b.shape(shares)[:-1], part.expert_groups, size))
            best = b.multiply(split, self.largest(split, min(size, 2 if part.router == "sigmoid" else 1)))
            groups = self.largest(b.sum(best, [-1]), part.active_groups)
            mask = b.move([groups], np.repeat(b.numbers([groups])[0], size, axis=-1))
            below = b.multiply(b.subtract(mask, self.number(1)), self.number(BELOW_ALL))
            shares = b.add(b.multiply(shares, mask), below)
        return self.largest(shares, part.active)

    def largest(self, x: int, count: int) -> int:
        """1 for the largest entries of the last axis, else 0."""
        order = self.b.order(x)
        numbers = self.b.numbers([order])[0][..., :count, :]
        return self.b.sum(self.b.move([order], numbers), [-2])


def alibi_slopes(heads: int) -> Array:
    """2^(−8k/n) for n the power of two below the number of heads, then every other one of the next power."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2.0 ** (-8 * (k + 1) / power) for k in range(power)]
    slopes += [2.0 ** (-8 * (2 * k + 1) / (2 * power)) for k in range(heads - power)]
    return np.array(slopes)
