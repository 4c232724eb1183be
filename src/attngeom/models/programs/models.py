"""Whole models as programs: the logit of a word behind two tokens, through embedding, blocks, last norm and head.

A token is a point Σ eᵢEᵢ of the affine hull of the rows of the table, Σ eᵢ = 1, and ``first``, ``second`` are its
coordinates e₁, e₂, …: true tokens are 0 and the unit vectors. A field of the weights that keeps the function of these
programs keeps that of true tokens. ``word`` is a linear form on the logits. Tokens between the two get attention weight
0, so that their distance is arbitrary; where no token sees later ones, the first sees itself alone.

Places list the distances that positions and windows allow, with the rows of the tables there; each is one row of the
output. Caps and scales of logits are invertible and left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from attngeom.models.counts.residual import follows_inner_gain
from attngeom.models.programs.blocks import BlockBuilder, Token, Weights
from attngeom.models.programs.parts import Parts, SeenVector, TokenPlaces
from attngeom.models.specification import Norm, TransformerSpec
from attngeom.programs import Builder, Program

TOKENS = ("first", "second")


@dataclass(frozen=True)
class ModelPlaces:
    """Where the two tokens stand: rows of the tables of positions and types, for each place; see TokenPlaces."""

    tokens: TokenPlaces
    positions: tuple[tuple[int, ...], tuple[int, ...]]
    types: tuple[tuple[int, ...], tuple[int, ...]]


def choose_model_places(spec: TransformerSpec) -> ModelPlaces:
    """All positions behind the first one that windows show, or as many distances as rotations need, or any."""
    stack = spec.stack
    own = [block.attention for block in stack.blocks if block.attention is not None]
    windows = [part.reach for part in own if part.reach is not None]
    reach = min(windows, default=None)
    turning = tuple(sorted({f for part in own if part.rotary is not None for f in part.rotary.frequencies}))
    rows = stack.positions - stack.unread_positions
    if stack.positions:
        last = max(1, rows - 1)
    else:
        last = max([1, *(part.rotated + 1 for part in own)]) if turning else 1
    last = last if reach is None else max(1, min(last, reach - 1))
    if turning and reach is None and not stack.positions:
        listed = [(0, kind) for kind in range(max(1, stack.token_types))]
        tokens = TokenPlaces(None, ((0,),) * len(listed), 1, frequencies=turning)
    else:
        listed = list(product(range(1, last + 1), range(max(1, stack.token_types))))
        tokens = TokenPlaces(tuple((m,) for m, _ in listed), (), 1)
    second = tuple(min(m, max(0, rows - 1)) for m, _ in listed)
    zeros = (0,) * len(listed)
    return ModelPlaces(tokens, (zeros, second), (tuple(kind for _, kind in listed), zeros))


def model_program(spec: TransformerSpec, *, weights: Weights = "acting") -> Program:
    """The logits of two tokens, of the second alone if none sees later ones, or their last states without a head.

    >>> from attngeom.models.presets import published
    >>> from attngeom.models.proofs.shrink import shrink
    >>> program = model_program(shrink(published("llama-3-8b")))
    >>> program.inputs, program.num_parameters
    ({'first': (19,), 'second': (19,), 'turn1': (2,), 'word': (20,)}, 816)
    """
    return ModelBuilder(spec, weights == "acting").build()


class ModelBuilder:
    """Builds the program of a model with one stack of token embeddings from its blocks."""

    def __init__(self, spec: TransformerSpec, acting: bool) -> None:
        self.spec, self.acting, self.b = spec, acting, Builder()
        self.places = choose_model_places(spec)
        self.tied = spec.head is not None and spec.head.tied
        self.both = any(block.attention is not None and block.attention.sees_later for block in spec.stack.kinds)

    def build(self) -> Program:
        b, stack = self.b, self.spec.stack
        first, second = (self.embed(number) for number in range(2))
        for layer in range(len(stack)):
            block = self.block(layer)
            new = block.run(first, [second] if self.both else [], later=True)
            first, second = new, block.run(second, [first])
        ends = [self.read_out(token) for token in ((first, second) if self.both else (second,))]
        if len(ends) == 1:
            return b.build(ends[0])
        return b.build(b.move(ends, np.stack(b.numbers(ends))))

    def block(self, layer: int) -> BlockBuilder:
        block, prefix = self.spec.stack.block(layer), f"layers.{layer}."
        kind = SpectralBlock if self.acting and follows_inner_gain(self.spec) else BlockBuilder
        return kind(block, self.spec.width, self.acting, self.places.tokens, self.b, prefix)

    def parts(self) -> Parts:
        return Parts(self.spec.stack.block(0), self.spec.width, self.acting, self.places.tokens, self.b)

    def embed(self, number: int) -> Token:
        """The sum of the rows of a token, one for every place, behind the norm of the embedding."""
        b, stack, spec, parts = self.b, self.spec.stack, self.spec, self.parts()
        x = self.row(TOKENS[number])
        # Without a head that reads it, the table takes up its scale.
        if spec.embedding_scale != 1.0 and not (self.acting and not self.tied):
            x = b.multiply(x, parts.number(Fraction(spec.embedding_scale)))
        x = b.broadcast(x, (self.places.tokens.count, spec.width))
        unread = 0 if self.acting else stack.unread_positions
        tables = (
            ("positions", stack.positions - (stack.unread_positions - unread), unread, self.places.positions[number]),
            ("types", stack.token_types, 0, self.places.types[number]),
        )
        for name, size, start, rows in tables:
            if size:
                table = b.parameter(name, (size, spec.width))
                x = b.add(x, b.move([table], b.numbers([table])[0][[start + row for row in rows]]))
        if stack.embedding_norm is None:
            return Token(x, SeenVector(x, spec.width))
        seen, whole = parts.stream_norm("embedding", stack.embedding_norm, x)
        return Token(whole, seen)

    def row(self, name: str) -> int:
        """A point of the affine hull of the rows of the table of tokens."""
        b, size = self.b, self.spec.vocabulary
        table = b.parameter("tokens", (size, self.spec.width))
        numbers = b.numbers([table])[0]
        origin = b.move([table], numbers[0])
        moves = b.subtract(b.move([table], numbers[1:]), origin)
        return b.add(origin, b.contract("v,vd->d", b.input(name, (size - 1,)), moves))

    def read_out(self, token: Token) -> int:
        """The logit of a word, or the last state."""
        b, spec, parts, norm = self.b, self.spec, self.parts(), self.spec.stack.final_norm
        head = spec.head
        if head is None or self.tied or not self.acting:
            u = SeenVector(token.stream, spec.width)
            u = u if norm is None else parts.scaled_norm("final", norm, token.stream)
        else:
            u = token.seen if norm is None else parts.norm("final", norm, SeenVector(token.stream, spec.width), None)
        if head is None:
            return u.node
        size = head.outputs or spec.vocabulary
        word = b.input("word", (size,))
        matrix = b.parameter("tokens" if self.tied else "head", (size, u.width))
        logit = b.contract("pl,l->p", u.node, b.contract("v,vl->l", word, matrix))
        if head.bias or u.constant:
            logit = b.add(logit, b.contract("v,v->", word, b.parameter("head_bias", (size,))))
        return logit


class SpectralBlock(BlockBuilder):
    """A block between a free table and a free head whose inner LayerNorm counts by d − 1 eigenvalues of its gains.

    Let D be the gains, P the projection onto 1^⊥. The stream is read through LayerNorms alone, so that D counts as PDP,
    and up to a rotation of 1^⊥, which tables, writers and readers follow, as its eigenvalues (Lemma P (c)): any
    orthogonal basis of 1^⊥ may have them.
    """

    def stream_norm(self, name: str, norm: Norm, x: int) -> tuple[SeenVector, int]:
        if name != f"{self.prefix}attention.stream":
            return super().stream_norm(name, norm, x)
        b, n, d = self.b, self.normalised(norm, x), self.width
        rows = [[1] * k + [-k] + [0] * (d - 1 - k) for k in range(1, d)]
        basis = b.constant(np.array(rows))
        lengths = b.constant(np.array([Fraction(1, k + k * k) for k in range(1, d)], dtype=object))
        spectrum = b.multiply(b.parameter(f"{name}.spectrum", (d - 1,)), lengths)
        whole = b.contract("pk,kd->pd", b.multiply(b.contract("pd,kd->pk", n, basis), spectrum), basis)
        if norm.bias:
            whole = b.add(whole, b.parameter(f"{name}.bias", (d,)))
        return self._seen(norm, n, d), whole
