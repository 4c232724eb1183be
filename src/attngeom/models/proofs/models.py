"""The function of a small model over GF(p): logits of sequences of two tokens, with derivatives by all weights.

Tokens between the two get attention weight 0, so their distance is arbitrary. In a causal model the first token's
states do not depend on the second one: they are computed once per token, with one set of formal values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.models.counts.sublayers import sublayers
from attngeom.models.proofs.block_proof import check_provable
from attngeom.models.proofs.blocks import BlockFunction
from attngeom.models.proofs.coordinates import ResiduePoint, Shapes, block_shapes, norm_shapes, random_point
from attngeom.models.proofs.formal import PRIME, Dual, KeyedTape, RootsMissing, Tape, constant
from attngeom.models.proofs.regions import Region
from attngeom.models.proofs.turns import MAX_DISTANCE, Turns
from attngeom.models.specification import GroupedAttention, TransformerBlock, TransformerSpec


def model_shapes(spec: TransformerSpec) -> Shapes:
    """Names and shapes of all weights of a model with one stack."""
    stack, width = spec.stack, spec.width
    found: dict[str, tuple[int, ...]] = {"tokens": (spec.vocabulary, width)}
    if stack.positions:
        found["positions"] = (stack.positions, width)
    if stack.token_types:
        found["types"] = (stack.token_types, width)
    found |= norm_shapes("embedding", stack.embedding_norm, width)
    for layer, block in enumerate(stack.blocks):
        found |= block_shapes(block, width, f"layers.{layer}.")
    found |= norm_shapes("final", stack.final_norm, width)
    if spec.head is not None and not spec.head.tied:
        found["head"] = (spec.vocabulary, width)
    if spec.head is not None and spec.head.bias:
        found["head_bias"] = (spec.vocabulary,)
    return found


MAX_ROOTS = 11
MAX_DRAWS = 40


def check_model(spec: TransformerSpec) -> None:
    """Refuse what the proof by rank does not cover: two stacks, front ends, relative tables, no norm in front."""
    roots = 1 + sum(len(_roots(block)) for block in spec.stack.blocks)
    causal = all(block.attention is None or block.attention.causal for block in spec.stack.kinds)
    if roots * (1 if causal else 2) > MAX_ROOTS:
        raise SizeError(f"a model with {roots} norms per token given; the proof draws until all roots exist: too many")
    if len(spec.stacks) != 1 or not spec.stack.embeds_tokens or spec.other_parameters:
        raise InputError("a model with two stacks or a front end given; whole models are proved with one token stream")
    for block in spec.stack.kinds:
        check_provable(block, spec.width)
    if spec.width < 3 or _reach(spec) < 2 or spec.stack.positions - spec.stack.unread_positions == 1:
        raise InputError("a width below 3, a window of 1 token or one position given; not proved as a whole")
    if spec.embedding_rank:
        raise InputError("a model with projected tokens given; whole models are proved with one table of tokens")
    if spec.stack.relative_buckets or not spec.vocabulary:
        raise InputError("a model with a relative position table or without tokens given; not proved as a whole")
    sharp = any(
        own is not None and not own.causal and (own.sinks or own.softcap is not None)
        for own in (block.attention for block in spec.stack.kinds)
    )
    if sharp or len({block.attention.causal for block in spec.stack.kinds if block.attention is not None}) > 1:
        raise InputError(
            "attention to both sides with sinks or softcap, or of both kinds, given; not proved as a whole"
        )
    first = spec.stack.block(0) if spec.stack.order else None
    bare = first is not None and first.attention_norms.input is None and spec.stack.embedding_norm is None
    if first is None or (bare and not causal):
        raise InputError("attention to both sides that reads bare tables given; scores would depend on each other")


@dataclass(eq=False)
class ModelFunction:
    """Draws weights whose tokens have all roots, then gives rows of the derivative for random pairs of tokens."""

    spec: TransformerSpec
    rng: np.random.Generator
    point: ResiduePoint = field(init=False)

    def __post_init__(self) -> None:
        own = [block.attention for block in self.spec.stack.kinds if block.attention is not None]
        self.real = np.zeros((0, self.spec.width))
        self.turns = Turns(self.rng, [part.rotary for part in own if part.rotary is not None])
        self.region = Region(self.rng)
        self.point = random_point(model_shapes(self.spec), self.rng)
        self.causal = all(block.attention is None or block.attention.causal for block in self.spec.stack.kinds)
        self.singles = Tape(self.rng, self.spec.vocabulary)
        self.places = max(1, self.spec.stack.positions - self.spec.stack.unread_positions)
        self.reach = _reach(self.spec)
        self.store: list[Array] = []
        self._draw_tokens()

    def blocks(self, point: ResiduePoint, tape: Tape, own: Tape | None, real: Array) -> list[BlockFunction]:
        """The blocks; ``own`` holds the values of the first one that depend on the last token alone.

        ``real`` are the real vectors of the last tokens: where all layers add little, they are what every MLP reads.
        """
        return [
            BlockFunction(block, point, self.turns, tape, f"layers.{layer}.", None if layer else own, self.region, real)
            for layer, block in enumerate(self.spec.stack.blocks)
        ]

    def _real(self, vectors: Array, positions: Array, types: Array) -> Array:
        """Real vectors of tokens at positions and with types, behind the norm of the embedding."""
        stack = self.spec.stack
        for name, size, rows in (("positions", stack.positions, positions), ("types", stack.token_types, types)):
            if size:
                vectors = vectors + self.region.table(name, size, self.spec.width)[rows]
        return self.region.normalise("embedding", stack.embedding_norm, vectors)

    def _own(self, tokens: Array, positions: Array, store: list[Array], vocabulary: int) -> KeyedTape:
        keys = tokens * self.places + (positions if self.places > 1 else 0)
        return KeyedTape(self.rng, len(tokens), keys=keys, store=store, count=vocabulary * self.places)

    def embed(self, point: ResiduePoint, tape: Tape, tokens: Array, positions: Array, types: Array) -> Dual:
        """The input of the first block: sums of table rows, normalised if the stack does so."""
        stack = self.spec.stack
        x = point.tensor("tokens")[0, tokens] * constant(self.spec.embedding_scale)
        if stack.positions:
            x = x + point.tensor("positions")[0, positions + stack.unread_positions]
        if stack.token_types:
            x = x + point.tensor("types")[0, types]
        return self._norm(point, tape, "embedding", x)

    def _norm(self, point: ResiduePoint, tape: Tape, name: str, x: Dual) -> Dual:
        norm = self.spec.stack.embedding_norm if name == "embedding" else self.spec.stack.final_norm
        block = self.spec.stack.block(0)
        return BlockFunction(block, point, self.turns, tape).normalise(name, norm, x)

    def logits(self, point: ResiduePoint, tape: Tape, x: Dual) -> Dual:
        u = self._norm(point, tape, "final", x)
        head = self.spec.head
        if head is None:
            return u
        found = point.add("head_bias", point.linear("tokens" if head.tied else "head", u, "vl,sl->sv"))
        if head.softcap is not None:
            free = tape.free(found.value)
            found = found.chain(free * constant(head.softcap), (1 - free * free) % PRIME)
        return found * constant(head.scale)

    def _draw_tokens(self) -> None:
        """Replace the token table by rows for which the states of a lone token have roots, wherever it stands."""
        size, spec = self.spec.vocabulary, self.spec
        places = [(position, 0) for position in range(1, self.places)]
        roots = 1 + len(places) + len(_roots(spec.stack.block(0)))
        if self.causal:
            roots += sum(len(_roots(block)) for block in spec.stack.blocks)
        else:
            places += [(0, kind) for kind in range(max(1, spec.stack.token_types))]
        draws = min(2**14, size * 2**roots)
        rows: list[Array] = []
        records: list[list[Array]] = []
        stores: list[list[Array]] = []
        reals: list[Array] = []
        for _ in range(MAX_DRAWS):
            if sum(map(len, rows)) >= size:
                break
            table = self.rng.integers(1, PRIME, (draws, spec.width))
            shapes = {**self.point.shapes, "tokens": (draws, spec.width)}
            rest = self.point.values[size * spec.width :]
            point = ResiduePoint(shapes, np.concatenate([table.ravel(), rest]), False)
            tape = Tape(self.rng, draws)
            store: list[Array] = []
            real = self.region.vectors(draws, spec.width)
            if self.causal:
                self._alone(point, tape, store, real)
            for position, kind in places:
                self._first_roots(point, tape, position, kind)
            good = tape.good
            rows.append(table[good])
            reals.append(real[good])
            records.append([values[good] for values in tape.record])
            stores.append([values.reshape(draws, self.places, *values.shape[1:])[good] for values in store])
        if sum(map(len, rows)) < size:
            raise RootsMissing
        self.point.values[: size * spec.width] = np.concatenate(rows)[:size].ravel()
        self.real = np.concatenate(reals)[:size]
        self.singles.record += [np.concatenate(parts)[:size] for parts in zip(*records, strict=True)]
        kept = [np.concatenate(parts)[:size] for parts in zip(*stores, strict=True)]
        self.store += [values.reshape(size * self.places, *values.shape[2:]) for values in kept]

    def _alone(self, point: ResiduePoint, tape: Tape, store: list[Array], vectors: Array) -> list[Dual]:
        """The states of all lone tokens at position 0: the input of every block, then the output of the last one."""
        tokens = np.arange(point.shapes["tokens"][0])
        zeros = np.zeros_like(tokens)
        own = self._own(tokens, zeros, store, len(tokens))
        states = [self.embed(point, tape, tokens, zeros, zeros)]
        for block in self.blocks(point, tape, own, self._real(vectors, zeros, zeros)):
            states.append(block(states[-1][:, None], zeros[:, None]))
        tape.good &= own.good
        return states

    def _first_roots(self, point: ResiduePoint, tape: Tape, position: int, kind: int) -> None:
        """Mark tokens whose vector, query or key at a position, with a token type, has no root."""
        tokens = np.arange(point.shapes["tokens"][0])
        zeros = np.zeros_like(tokens)
        x = self.embed(point, tape, tokens, zeros + position, zeros + kind)
        first = BlockFunction(self.spec.stack.block(0), point, self.turns, tape)
        part = first.block.attention
        u = first.normalise("layers.0.attention.input", first.block.attention_norms.input, x)
        if part is not None:
            first.queries("layers.0.attention", part, u)
            first.keys_values("layers.0.attention", part, u[:, None])

    def rows(self, pairs: int) -> Array:
        """Derivatives of the logits of the second token for at least ``pairs`` different pairs, where roots exist."""
        size, spec = self.spec.vocabulary, self.spec
        later = sum(len(_roots(block)) for block in spec.stack.blocks) + 1
        tries = 2 ** min(12, 1 + later if self.causal else 2 + 2 * later)
        chosen = self.rng.permutation(size * size)[: min(pairs, size * size)]
        first, second = np.divmod(chosen, size)
        positions = self.rng.integers(1, max(2, min(self.places, self.reach)), len(chosen))
        far = self.rng.integers(1, self.reach, len(chosen))
        distances = positions if spec.stack.positions else far
        types = self.rng.integers(0, max(1, spec.stack.token_types), len(chosen))
        batch = max(1, 2**15 // tries)
        found = []
        for start in range(0, len(chosen), batch):
            some = slice(start, start + batch)
            sample = [values[some] for values in (first, second, positions, distances, types)]
            many = [np.repeat(values, tries) for values in sample]
            tape = Tape(self.rng, len(many[0]))
            self._pairs(self.point.without_slopes, tape, *many)
            good = tape.good.reshape(-1, tries)
            kept = np.flatnonzero(good.any(axis=1))
            if len(kept):
                tape = tape.kept(kept * tries + good[kept].argmax(axis=1))
                slope = self._pairs(self.point, tape, *[values[kept] for values in sample]).slope
                assert slope is not None
                found.append(slope.reshape(-1, self.point.size))
        if not found:
            raise RootsMissing
        return np.concatenate(found)

    def _pairs(
        self,
        point: ResiduePoint,
        tape: Tape,
        first: Array,
        second: Array,
        positions: Array,
        distances: Array,
        types: Array,
    ) -> Dual:
        """Logits of the second tokens; in a model that sees both sides also of the first ones."""
        zeros = np.zeros_like(first)
        if not self.causal:
            return self._both_sides(point, tape, first, second, positions, types)
        alone = Tape(self.rng, self.spec.vocabulary, self.singles.record)
        states = self._alone(point, alone, self.store, self.real)
        own = self._own(second, positions, self.store, self.spec.vocabulary)
        x = self.embed(point, tape, second, positions, zeros)
        turned = np.stack([distances, zeros], axis=1)
        real = self._real(self.real[second], positions, zeros)
        for state, block in zip(states, self.blocks(point, tape, own, real), strict=False):
            x = block(_together(state[first, :], x), turned)
        tape.good &= own.good
        return self.logits(point, tape, x)

    def _both_sides(
        self, point: ResiduePoint, tape: Tape, first: Array, second: Array, positions: Array, types: Array
    ) -> Dual:
        zeros = np.zeros_like(first)
        x = self.embed(point, tape, first, zeros, types)
        y = self.embed(point, tape, second, positions, zeros)
        near = np.zeros((len(first), 2), np.int64)
        left = self.blocks(point, tape, None, self._real(self.real[first], zeros, types))
        right = self.blocks(point, tape, None, self._real(self.real[second], positions, zeros))
        for one, two in zip(left, right, strict=True):
            x, y = one(_together(y, x), near), two(_together(x, y), near)
        return _together(self.logits(point, tape, x), self.logits(point, tape, y))


def _reach(spec: TransformerSpec) -> int:
    """The least window of the layers: only smaller distances are drawn."""
    windows = [block.attention.window for block in spec.stack.kinds if block.attention is not None]
    return min([MAX_DISTANCE, *(window for window in windows if window is not None)])


def _together(left: Dual, right: Dual) -> Dual:
    """(samples, 2, width) from two tokens."""
    value = np.stack([left.value, right.value], axis=1)
    if left.slope is None or right.slope is None:
        return Dual(value)
    return Dual(value, np.stack([left.slope, right.slope], axis=1))


def _roots(block: TransformerBlock) -> list[int]:
    """One entry for every square root that a token meets in a block."""
    found = []
    for sublayer in sublayers(block):
        part, norms = sublayer.map, sublayer.norms
        found += [1 for norm in (norms.input, norms.output, norms.stream) if norm is not None]
        if isinstance(part, GroupedAttention) and part.qk_norm is not None:
            found += [1] * (2 if part.qk_norm.is_joint else part.heads + part.groups)
        if isinstance(part, GroupedAttention) and part.latent is not None:
            found += [1 for norm in (part.latent.query_norm, part.latent.key_norm) if norm is not None]
    return found
