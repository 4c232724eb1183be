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
- Where weights add up to one, the biases of values add a constant to the output, any one if there is a bias of the
  output, or if values have as many coordinates as the output: then that bias is there alone.
- Behind few columns an output norm shows a quadratic form instead of its gains (:meth:`Parts.output_norm`).
- Coordinates of values, or of queries and keys that neither turn nor are normalised, count only as far as the products
  of their maps can have such a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from attngeom.models.programs.attention import AttentionParts
from attngeom.models.programs.mixers import MixerParts
from attngeom.models.programs.parts import SeenVector, SublayerOutput, TokenPlaces
from attngeom.models.specification import (
    Experts,
    GroupedAttention,
    Norm,
    RecurrentMixer,
    RelativeTable,
    TransformerBlock,
)
from attngeom.models.surroundings import Sublayer, sublayers
from attngeom.programs import Program

Weights = Literal["stored", "acting"]


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

    >>> from attngeom.models.specification import MLP, Norms
    >>> mlp = MLP(width=2, activation="silu", gated=True)
    >>> block = TransformerBlock(attention=None, mlp=mlp, mlp_norms=Norms(input=Norm(kind="rms", eps=1e-6)))
    >>> [block_program(block, 3, weights=own).num_parameters for own in ("stored", "acting")]
    [21, 18]
    """
    return BlockBuilder(block, width, weights == "acting", choose_places(block, buckets, others, tokens)).build()


def block_shapes(block: TransformerBlock, width: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the stored weights of a block."""
    return block_program(block, width, weights="stored").parameters


def choose_places(block: TransformerBlock, buckets: int, others: int = 1, tokens: int | None = None) -> TokenPlaces:
    """Some other tokens, two where an output norm follows, at as many distances as the rotation needs."""
    own = block.attention
    if block.mixer is not None:
        # As many as its taps reach, and one before them.
        count = block.mixer.taps + others if tokens is None else tokens - 1
        return TokenPlaces((tuple(range(count, 0, -1)),), (), count)
    if own is None:
        return TokenPlaces(None, (), 0)
    table = RelativeTable(rows=buckets) if buckets else own.relative
    if tokens is not None:
        return TokenPlaces((tuple(range(tokens - 1, 0, -1)),), (), tokens - 1)
    others = max(others, 2 if block.attention_norms.output is not None else 1)
    if own.reach is not None and own.reach <= others:
        others = own.reach - 1
    if table is not None:
        rows, itself = table.places(others, own.sees_later)
        turning = () if own.rotary is None else own.rotary.frequencies
        itself = () if not any(itself) else itself
        return TokenPlaces(None, rows, len(rows[0]), table.rows, turning, itself)
    if own.rotary is None:
        # Only the slopes of ALiBi tell distances, and constants in scores show nothing of the weights.
        return TokenPlaces((tuple(range(others, 0, -1)),), (), others)
    if own.reach is None:
        return TokenPlaces(None, (), others, frequencies=own.rotary.frequencies)
    last = min(max(others, own.rotated + 1), own.reach - 1)
    return TokenPlaces(tuple(combinations(range(last, 0, -1), others)), (), others)


@dataclass(frozen=True)
class Token:
    """A token between two blocks: its vector of the stream, and what maps without a norm of their own read of it."""

    stream: int
    seen: SeenVector


class BlockBuilder(AttentionParts, MixerParts):
    """Builds the program of a block from its sublayers."""

    def build(self) -> Program:
        others = [self.input_token(f"x{k + 1}") for k in range(self.places.others)]
        last = self.input_token("x0")
        b, whole, mixer = self.b, self.run(last, others).stream, self.block.mixer
        if mixer is None or not (mixer.bias and mixer.conv_bias and others):
            return b.build(whole)
        # The bias of queries meets one tap at the first token of a text, and the sum of all taps at later ones: both
        # are seen, as a sum and a difference, so that every output rests on both.
        alone = self.run(last, ()).stream
        both = [b.add(whole, alone), b.subtract(whole, alone)]
        return b.build(b.move(both, np.concatenate(b.numbers(both))))

    def input_token(self, name: str) -> Token:
        """An arbitrary vector of the stream."""
        node = self.b.input(name, (self.width,))
        return Token(node, SeenVector(node, self.width))

    def run(self, last: Token, others: Sequence[Token], later: bool = False) -> Token:
        """The last token after the block, one row for every place of the others; ``later``: they stand behind it."""
        b, block, width = self.b, self.block, self.width
        total = b.broadcast(last.stream, (self.places.count, width))
        before = token = last
        for sublayer in sublayers(block):
            kind, norms, part = sublayer.place, sublayer.norms, sublayer.map
            name = self.prefix + kind
            if block.shared_norm and kind == "mlp":
                read = self.read(f"{self.prefix}attention.input", block.attention_norms.input, before)
            else:
                together = block.parallel or (block.beside and kind == "attention")
                read = self.read(f"{name}.input", norms.input, before if together else token)
            read = self.at_places(read)
            rows = self.rows_for(norms.output or norms.stream)
            if isinstance(part, GroupedAttention):
                change = self._attention(name, sublayer, part, last, others, read, rows, later)
            elif isinstance(part, RecurrentMixer):
                home = f"{self.prefix}attention" if block.beside else name
                change = self.mix(name, part, self._sources(home, sublayer.before, others, last), rows)
            elif isinstance(part, Experts):
                change = self.experts(name, part, read, rows)
            else:
                change = self.units(name, part, read, rows)
            written = self.full(change.node)
            if block.residual_scale != 1.0 and not self.acting:
                written = b.multiply(written, self.number(block.residual_scale))
            if block.scales_outputs and not self.acting:
                written = b.multiply(written, b.parameter(f"{name}.scale", (width,)))
            if norms.output is not None:
                written = self.output_norm(f"{name}.output", norms.output, replace(change, node=written))
            total = b.add(total, written)
            token = Token(total, SeenVector(total, width))
            if norms.stream is not None:
                seen, total = self.stream_norm(f"{name}.stream", norms.stream, total)
                token = Token(total, seen)
        return token

    def read(self, name: str, norm: Norm | None, token: Token) -> SeenVector:
        """What a map reads of a token: behind its own norm, or as it is. One token has one norm, whoever reads it."""
        return token.seen if norm is None else self.norm(name, norm, SeenVector(token.stream, self.width), None)

    def _sources(self, name: str, norm: Norm | None, others: Sequence[Token], last: Token) -> list[SeenVector]:
        """What a map reads of all tokens, the last one behind the others."""
        return [self.read(f"{name}.input", norm, token) for token in (*others, last)]

    def _attention(
        self, name: str, sublayer: Sublayer, own: GroupedAttention, last: Token, others: Sequence[Token],
        read: SeenVector, rows: int, later: bool,
    ) -> SublayerOutput:  # fmt: skip
        if sublayer.is_cross:
            memory = [self.b.input(f"memory{k}", (self.width,)) for k in range(2)]
            sources = [SeenVector(node, self.width) for node in memory]
        else:
            sources = self._sources(name, self.block.attention_norms.input, others, last)
            read = sources[-1]
        return self.attend(name, own, read, sources, rows, sublayer.is_cross, later)
