"""Rows of the derivative of a block over GF(p) at random inputs: each sample has tokens of its own, all roots exist."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.counts.sublayers import sublayers
from attngeom.models.proofs.blocks import BlockFunction
from attngeom.models.proofs.coordinates import ResiduePoint
from attngeom.models.proofs.formal import PRIME, Dual, RootsMissing, Tape
from attngeom.models.proofs.regions import Region
from attngeom.models.proofs.turns import MAX_DISTANCE, Turns
from attngeom.models.specification import GroupedAttention, TransformerBlock

MAX_FRUITLESS = 24
MAX_ENTRIES = 2**22
MAX_DRAWS = 2**14


def visible_distances(block: TransformerBlock) -> list[tuple[int, ...]]:
    """Distances of the tokens that a sample lists besides the last one, as far as the window reaches.

    One token is enough, and two where an output norm follows; tokens between them get weight 0.
    """
    own = block.attention
    if own is None:
        return [(1,)]
    others = 2 if block.attention_norms.output is not None else 1
    last = min(MAX_DISTANCE - 1, max(others, own.rotated + 1))
    if own.window is not None:
        last = min(last, own.window - 1)
    return list(combinations(range(1, last + 1), min(others, last)))


@dataclass(eq=False)
class ModelSamples:
    """Tokens of a block, those that cross-attention reads, distances, and the real vectors that stand for the last."""

    tokens: Array
    other: Array | None
    distances: Array
    real: Array
    tape: Tape

    def kept(self, places: Array) -> ModelSamples:
        return ModelSamples(
            tokens=self.tokens[places],
            other=None if self.other is None else self.other[places],
            distances=self.distances[places],
            real=self.real[places],
            tape=self.tape.kept(places),
        )


@dataclass(eq=False)
class BlockSampler:
    """Draws inputs at a point of the weights; the pieces of an MLP are those of one real point (`regions`)."""

    block: TransformerBlock
    width: int
    point: ResiduePoint
    rng: np.random.Generator
    turns: Turns

    def __post_init__(self) -> None:
        self.region = Region(self.rng)
        self.patterns = np.array(visible_distances(self.block), np.int64)

    def rows(self, samples: int) -> Array:
        """width rows for each of at least ``samples`` inputs."""
        batch = max(4, MAX_ENTRIES // (2 * self.point.size * self.width))
        found, count, fruitless = [], 0, 0
        while count < samples:
            drawn = self.draw(max(4, min(batch, samples - count)), self.patterns)
            fruitless = 0 if len(drawn.tokens) else fruitless + 1
            if fruitless > MAX_FRUITLESS:
                raise RootsMissing
            if len(drawn.tokens):
                output = self._evaluate(drawn, self.point)
                assert output.slope is not None and drawn.tape.good.all()
                found.append(output.slope.reshape(-1, self.point.size))
                count += len(drawn.tokens)
        return np.concatenate(found)

    def arguments(self, samples: int, distances: tuple[int, ...]) -> tuple[Array, Array]:
        """For at least ``samples`` inputs at these distances: all arguments of exponentials, and the inputs themselves.

        Rows are inputs.
        """
        found: list[Array] = []
        inputs: list[Array] = []
        fruitless = 0
        while sum(len(part) for part in inputs) < samples:
            drawn = self.draw(samples, np.array([distances], np.int64))
            fruitless = 0 if len(drawn.tokens) else fruitless + 1
            if fruitless > MAX_FRUITLESS:
                raise RootsMissing
            if len(drawn.tokens):
                self._evaluate(drawn, self.point.without_slopes)
                count = len(drawn.tokens)
                found.append(np.concatenate([*drawn.tape.arguments, np.zeros((count, 0), np.int64)], axis=1))
                parts = [drawn.tokens] + ([] if drawn.other is None else [drawn.other])
                inputs.append(np.concatenate([part.reshape(count, -1) for part in parts], axis=1))
        return np.concatenate(found), np.concatenate(inputs)

    def draw(self, size: int, patterns: Array) -> ModelSamples:
        """At most ``size`` inputs in which all roots exist: each is tried with many free values."""
        block, tries = self.block, 2 ** (1 + later_roots(self.block))
        # Without attention nothing but the token itself varies from one try to the next.
        repeated = tries if block.attention is not None else 1
        drawn = size * tries // repeated
        count = 1 + patterns.shape[1]
        tokens = self._tokens(drawn * count, block.attention, cross=False).reshape(drawn, count, self.width)
        other = None
        if block.cross is not None:
            pairs = self._tokens(2 * drawn, block.cross, cross=True).reshape(drawn, 2, self.width)
            other = pairs.repeat(repeated, axis=0)
        tokens = tokens.repeat(repeated, axis=0)
        near = patterns[self.rng.integers(0, len(patterns), len(tokens))]
        distances = np.concatenate([near, np.zeros((len(tokens), 1), np.int64)], axis=1)
        real = self.region.vectors(len(tokens), self.width)
        samples = ModelSamples(tokens, other, distances, real, Tape(self.rng, len(tokens)))
        self._evaluate(samples, self.point.without_slopes)
        good = samples.tape.good.reshape(size, tries)
        kept = np.flatnonzero(good.any(axis=1))
        return samples.kept(kept * tries + good[kept].argmax(axis=1))

    def _evaluate(self, samples: ModelSamples, point: ResiduePoint) -> Dual:
        function = BlockFunction(self.block, point, self.turns, samples.tape, region=self.region, real=samples.real)
        other = None if samples.other is None else Dual(samples.other)
        return function(Dual(samples.tokens), samples.distances, other)

    def _tokens(self, need: int, attention: GroupedAttention | None, cross: bool) -> Array:
        """Random token vectors for which the norms of the vector, its query and its key are squares."""
        found, count, fruitless = [np.zeros((0, self.width), np.int64)], 0, 0
        while count < need:
            draws = min(MAX_DRAWS, 2 * (need - count) * 2 ** token_roots(self.block, attention, cross))
            vectors = self.rng.integers(1, PRIME, (draws, self.width))
            tape = Tape(self.rng, draws)
            function = BlockFunction(self.block, self.point.without_slopes, self.turns, tape)
            u = Dual(vectors)
            if not cross:
                u = function.normalise("attention.input", self.block.attention_norms.input, u)
            if attention is not None:
                name = "cross" if cross else "attention"
                function.keys_values(name, attention, u[:, None])
                if not cross:
                    function.queries(name, attention, u)
            found.append(vectors[tape.good])
            count += len(found[-1])
            fruitless = 0 if tape.good.any() else fruitless + 1
            if fruitless > MAX_FRUITLESS:
                raise RootsMissing
        return np.concatenate(found)[:need]


def later_roots(block: TransformerBlock) -> int:
    """Number of square roots that depend on what tokens attend to, or on free values of an MLP."""
    count = 0
    for index, sublayer in enumerate(sublayers(block)):
        norms, part = sublayer.norms, sublayer.map
        first = block.attention is not None and index == 0
        later = (None if first else norms.input, norms.output, norms.stream)
        count += sum(norm is not None for norm in later)
        if isinstance(part, GroupedAttention) and sublayer.is_cross:
            if part.qk_norm is not None:
                count += 1 if part.qk_norm.is_joint else part.heads
            count += part.latent is not None and part.latent.query_norm is not None
    return count


def token_roots(block: TransformerBlock, attention: GroupedAttention | None, cross: bool) -> int:
    """Number of square roots that a token vector alone determines."""
    count = int(not cross and block.attention_norms.input is not None)
    if attention is not None and attention.qk_norm is not None:
        count += 2 if attention.qk_norm.is_joint else attention.heads + attention.groups
    if attention is not None and attention.latent is not None:
        count += (attention.latent.query_norm is not None) + (attention.latent.key_norm is not None)
    return count
