"""Factors of queries and keys under a QK-norm: scales between the two gains, signs, quarter turns, means of heads.

A norm of a head leaves signs of its rows and, of the rotations of a pair, quarter turns, which swap the gains. Where it
takes the mean away (Cohere), signs of single rows would change the mean: they go with all rows of a head, or of all
heads where they share gains and biases (Persimmon).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import ComplexScales, Gauge, GeneralLinear, Orthogonal, Sampler
from attngeom.groups.pivots import pivot_signs
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights
from attngeom.models.probes import AttentionProbe, Invariants, Rows
from attngeom.models.residues import P, dot, integers
from attngeom.models.surroundings import PlacedSublayer, Surroundings
from attngeom.models.symmetry.attention import GroupedQueryKey, RotaryScales
from attngeom.models.symmetry.factor import AttentionFactor, Freedom, Part, RedundantPart
from attngeom.models.symmetry.moves import Chain, HeadMeans, KeyShift, QKNormTurn, centred_turn, head_means
from attngeom.models.tensor_errors import Errors, Noise, TensorPart, by_entry


@dataclass(frozen=True)
class _GainFactor(AttentionFactor):
    """What both kinds of QK-norms share: the two gains of a pair or coordinate, and pairs that are rotated."""

    topic = "qk"

    def freedoms(self) -> Iterator[Freedom]:
        """With gains no rotation is free; without, those that keep lengths and commute with positions."""
        spec, norm = self.spec, self.spec.head_norm
        assert norm is not None
        plain, turning = spec.rotations
        pairs, place = sum(turning.values()), f"q, k of {self.place}"
        if norm.gain or spec.is_centred:
            where = " and ".join(
                text for count, text in ((pairs, f"{pairs} planes"), (plain, f"{plain} unrotated coordinates")) if count
            )
            yield Freedom(place, f"signs of rows, and scales between the two gains, in {where}", "none")
            return
        if pairs:
            text = f"a turn in each of {pairs} rotated planes, for {self.each_group}"
            yield Freedom(place, text, "in planes")
        if plain:
            text = f"any orthogonal {plain} × {plain} matrix on unrotated coordinates, for {self.each_group}"
            yield Freedom(place, text, "all")

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        """With gains one scale per pair and per unrotated coordinate; without, rotations; scales if eps = 0."""
        spec, norm, columns = self.spec, self.spec.head_norm, self.columns(around.readings[self.place])
        assert norm is not None
        plain, turning = spec.rotations
        pairs = sum(turning.values())
        if norm.gain:
            count = (1 if spec.shares_gains else spec.groups) * (pairs + plain)
            text = f"(R*)^{count} between the two gains"
        else:
            rotations = Orthogonal(plain).fiber(columns[1], self.share * columns[0])
            count = spec.groups * (pairs * (max(columns) > 0) + rotations)
            text = f"(U(1)^{pairs} x O({plain}))^{spec.groups}"
        yield RedundantPart(part="query_key", count=count, group=text, lemma="Lemmas 1, 5")
        if norm.eps == 0:
            count = 2 if spec.is_joint else spec.heads + spec.groups
            text = f"(R+)^{count} scales of q and k"
            yield RedundantPart(part="query_key", count=count, group=text, lemma="Lemma 5, eps = 0")

    def columns(self, reading: PlacedSublayer) -> tuple[int, int]:
        """Columns that queries and keys show."""
        return self.query_columns(reading), self.key_columns(reading, self.spec.key_bias, True)

    def gains(self, weights: AttentionWeights) -> tuple[Array, Array]:
        assert weights.query_gain is not None and weights.key_gain is not None
        return weights.query_gain, weights.key_gain

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        """Rows as far apart as those without a norm that nothing moved, and the gains."""
        one, other = self.weights(target), self.weights(aligned)
        groups, pairs, plain = one.groups, one.rotated_key.shape[1], one.key.shape[1]
        turns, still = np.ones((groups, pairs)), np.tile(np.eye(plain), (groups, 1, 1))
        yield from RotaryScales(self.block, self.place).row_errors(one, other, ComplexScales(pairs), turns, noise)
        yield from GroupedQueryKey(self.block, self.place).row_errors(one, other, GeneralLinear(plain), still, noise)
        for name, a, b in zip(("query_gain", "key_gain"), self.gains(one), self.gains(other)):
            yield Errors(TensorPart(self.place, name), by_entry(a, b))

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """Products of rows times gains, one by one, and what the norm sees: ⟨Q y, Q y'⟩ and ⟨K x, K x'⟩."""
        weights = probe.weights
        sides = [self.seen_rows(rows) for rows in (probe.query_rows, probe.key_rows)]
        grams = [row_grams(rows) for rows in sides]
        gains = [integers(gain) for gain in self.gains(weights)]
        if weights.gain_rests is not None:
            gains = [gain + integers(rest) for gain, rest in zip(gains, weights.gain_rests)]
        query, key = (_with_gains(gain, rows) for gain, rows in zip(gains, sides))
        scores = [
            [first + second for first, second in zip(*parts)]
            for parts in zip(probe.rotated(query, key), probe.plain(query, key))
        ]
        rotary = self.spec.rotary
        is_generic = rotary is None or len({0.0, *rotary.frequencies}) == 1 + len(rotary.frequencies)
        is_generic &= self.has_no_more_turns(weights)
        if self.spec.is_joint:
            joint = [sum(column) % P for rows in grams for column in zip(*rows)]
            return Invariants(scores=scores, joint=joint, is_generic=is_generic)
        share = weights.heads // weights.groups
        lengths = [[*grams[0][h], *grams[1][h // share]] for h in range(weights.heads)]
        return Invariants(scores=scores, lengths=lengths, is_generic=is_generic)

    def seen_rows(self, rows: Rows) -> Rows:
        """What the norm leaves of the rows before it divides by their length."""
        return rows

    def has_no_more_turns(self, weights: AttentionWeights) -> bool:
        """Whether the gains of every pair differ: where they are equal, more than quarter turns are free."""
        f = weights.rotated_key.weight.shape[1]
        pairs = [gain[:, :f] == gain[:, f : 2 * f] for gain in map(np.abs, self.gains(weights))]
        return not np.any(pairs[0].all(axis=0) & pairs[1].all(axis=0))

    def balance(self, weights: AttentionWeights) -> tuple[Array, Array]:
        """Scales that make norms of query and key gains equal per pair, and pairs whose second query gain is larger."""
        query_gain, key_gain = self.gains(weights)
        f, rows = weights.rotated_key.weight.shape[1], len(key_gain)
        grouped = query_gain.reshape(rows, -1, query_gain.shape[1])
        first, second = (grouped[..., :f] ** 2).sum(axis=1), (grouped[..., f : 2 * f] ** 2).sum(axis=1)
        query_sizes = np.concatenate([first + second, (grouped[..., 2 * f :] ** 2).sum(axis=1)], axis=1)
        key_sizes = _by_pair(key_gain**2, f)
        alive = (query_sizes > 0) & (key_sizes > 0)
        scales = (np.where(alive, key_sizes, 1.0) / np.where(alive, query_sizes, 1.0)) ** 0.25
        return scales, second > first


@dataclass(frozen=True)
class NormalisedQueryKey(_GainFactor):
    """(R*)^(f + a₀) between the gains of queries and keys, signs of rows, quarter turns of pairs (Lemma 5)."""

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        weights = self.weights(layer)
        query_gain, key_gain = self.gains(weights)
        f, plain = weights.rotated_key.weight.shape[1], weights.key.weight.shape[1]
        shared = 1 if self.spec.shares_gains else weights.groups
        yield QKNormTurn(
            sampler.signs(weights.groups, f + plain),
            sampler.scales(shared, f + plain),
            sampler.coins(shared, f),
            sampler.signs(*query_gain.shape),
            sampler.signs(*key_gain.shape),
        )

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        """Quarter turns that fit best, signs of the rows, scales between the gains."""
        goal, weights = self.weights(target), self.weights(source)
        query_gain, key_gain = self.gains(weights)
        f, rows = goal.rotated_key.weight.shape[1], len(key_gain)
        share = weights.heads // weights.groups

        def fits(rotated: Array) -> Array:
            """Re⟨goal, rotated⟩ per group and pair, over keys and the queries of the group, without the sign."""
            keys = (goal.rotated_key.weight.conj() * weights.rotated_key.weight * rotated).real.sum(axis=-1)
            queries = (goal.rotated_query.weight.conj() * weights.rotated_query.weight * rotated).real.sum(axis=-1)
            return np.asarray(np.abs(keys) + np.abs(queries).reshape(len(keys), share, f).sum(axis=1))

        straight, quarter = fits(np.array(1.0)), fits(np.array(1j))
        if rows == 1:
            straight, quarter = straight.sum(axis=0, keepdims=True), quarter.sum(axis=0, keepdims=True)
        turns = quarter > straight
        factors = np.where(turns, 1j, 1.0)
        inner = (goal.rotated_key.weight.conj() * weights.rotated_key.weight).sum(axis=-1) * factors
        plain = (goal.key.weight * weights.key.weight).sum(axis=-1)
        signs = np.where(np.concatenate([inner.real, plain], axis=1) < 0, -1.0, 1.0)
        other = np.concatenate([key_gain[:, f : 2 * f], key_gain[:, :f]], axis=1)
        pairs = np.where(np.concatenate([turns, turns], axis=1), other, key_gain[:, : 2 * f])
        have = np.concatenate([pairs, key_gain[:, 2 * f :]], axis=1)
        top, bottom = _by_pair(have * have, f), _by_pair(have * self.gains(goal)[1], f)
        scales = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), 1.0)
        return QKNormTurn(signs, scales, turns, np.ones_like(query_gain), np.ones_like(key_gain))

    def fix_weights(self, weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
        """Equal norms of query and key gains per pair, larger query gain first, pivot of every key row positive."""
        query_gain, key_gain = self.gains(weights)
        scales, turns = self.balance(weights)
        rotated = weights.rotated_key.weight * np.where(turns, 1j, 1.0)[..., None]
        stacked = np.concatenate([rotated.real, rotated.imag], axis=-1)
        signs = np.concatenate([pivot_signs(stacked), pivot_signs(weights.key.weight)], axis=1)
        signs = np.broadcast_to(signs, (weights.groups, signs.shape[1]))
        return QKNormTurn(signs, scales, turns, np.ones_like(query_gain), np.ones_like(key_gain)).turn(weights)

    def folding(self, layer: LayerWeights) -> Part:
        """The signs of the gains go with their rows, and nothing else."""
        weights = self.weights(layer)
        query_gain, key_gain = self.gains(weights)
        f, plain = weights.rotated_key.weight.shape[1], weights.key.weight.shape[1]
        rows = 1 if len(key_gain) == 1 else weights.groups
        signs = [np.where(gain < 0, -1.0, 1.0) for gain in (query_gain, key_gain)]
        ones = np.ones((weights.groups, f + plain))
        return QKNormTurn(ones, np.ones((rows, f + plain)), np.zeros((rows, f), bool), *signs)


@dataclass(frozen=True)
class CentredQueryKey(_GainFactor):
    """Under a centred QK-norm: scales between the gains, one sign per head, rows of pairs that change places, means."""

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        yield from super().orbits(around)
        queries, keys = self.columns(around.readings[self.place])
        count = self.spec.heads * queries + self.spec.groups * keys
        text = "means of the rows of every head of q, k"
        yield RedundantPart(part="query_key", count=count, group=text, lemma="Lemma 4, inside heads")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        weights, spec = self.weights(layer), self.spec
        f, plain, groups = weights.rotated_key.weight.shape[1], weights.key.weight.shape[1], weights.groups
        sides = [len(gain) for gain in self.gains(weights)]
        scales = sampler.scales(sides[1], f + plain) * sampler.signs(sides[1], f + plain)
        turns = sampler.coins(sides[1], f)
        moves = [
            Affine(sampler.shift((count, width)), sampler.shift(count) * bias)
            for count, width, bias in (
                (weights.heads, weights.query.weight.shape[-1], spec.query_bias),
                (groups, weights.key.weight.shape[-1], spec.key_bias),
            )
        ]
        yield centred_turn(scales, turns, *(sampler.signs(count) for count in sides))
        yield HeadMeans(*moves)

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        """Pairs whose rows change places, the sign of every head, scales between the gains with their signs."""
        goal, weights = self.weights(target), self.weights(source)
        share = weights.heads // weights.groups

        def inner(name: str, swapped: bool) -> Array:
            """⟨goal, rows⟩ per head and pair, real and imaginary rows having changed places if ``swapped``."""
            rows: Array = getattr(weights, name).weight
            rows = 1j * rows.conj() if swapped else rows
            return np.asarray((getattr(goal, name).weight.conj() * rows).real.sum(axis=-1))

        fits = [
            np.abs(inner("rotated_key", s))
            + np.abs(inner("rotated_query", s)).reshape(weights.groups, share, -1).sum(axis=1)
            for s in (False, True)
        ]
        fits = [self.of_gains(fit) for fit in fits]
        turns = np.asarray(fits[1] > fits[0])
        signs = []
        for side, count in (("query", share), ("key", 1)):
            straight, swapped = (inner(f"rotated_{side}", s) for s in (False, True))
            chosen = np.where(np.repeat(turns, count, axis=0) if len(turns) > 1 else turns, swapped, straight)
            plain = (getattr(goal, side).weight * getattr(weights, side).weight).sum(axis=(1, 2))
            signs.append(np.where(self.of_gains(chosen.sum(axis=1) + plain) < 0, -1.0, 1.0))
        f, plain_size = turns.shape[1], weights.key.weight.shape[1]
        still = centred_turn(np.ones((len(turns), f + plain_size)), turns, *signs)
        have, want = self.gains(still.turn(weights))[1], self.gains(goal)[1]
        top, bottom = _by_pair(have * have, f), _by_pair(have * want, f)
        return centred_turn(np.where(bottom != 0, top / np.where(bottom != 0, bottom, 1.0), 1.0), turns, *signs)

    def fix_weights(self, weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
        """Equal norms of gains, the pivot of all rows of a head positive, and the larger key gain of every pair."""
        key_gain, f = self.gains(weights)[1], weights.rotated_key.weight.shape[1]
        scales, turns = self.balance(weights)
        rows = [weights.rows(side) for side in ("query", "key")]
        heads = [pivot_signs(own.reshape(len(gain), -1)) for own, gain in zip(rows, self.gains(weights))]
        pairs = key_gain[:, : 2 * f].reshape(len(key_gain), 2, f)
        larger = np.abs(pairs).argmax(axis=1)
        chosen = np.take_along_axis(pairs, larger[:, None], axis=1)[:, 0]
        # A quarter turn changes the sign of the gain that comes first.
        chosen = np.where(turns & (larger == 1), -chosen, chosen) * heads[1][:, None]
        plain = key_gain[:, 2 * f :] * heads[1][:, None]
        scales = scales * np.where(np.concatenate([chosen, plain], axis=1) < 0, -1.0, 1.0)
        return centred_turn(scales, turns, *heads).turn(weights)

    def seen_rows(self, rows: Rows) -> Rows:
        """Values of the rows of every head less their mean."""
        total = sum(part.sum(axis=1, keepdims=True) for part in rows)
        share = pow(sum(part.shape[1] for part in rows), -1, P)
        real, imag, plain = ((part - total * share) % P for part in rows)
        return real, imag, plain

    def has_no_more_turns(self, weights: AttentionWeights) -> bool:
        return True

    def of_gains(self, fits: Array) -> Array:
        """Numbers of every head, added up where heads share their gains."""
        return fits.sum(axis=0, keepdims=True) if self.spec.shares_gains else fits

    def folding(self, layer: LayerWeights) -> Part:
        """Rows of every head of q and k less their mean, which a LayerNorm of the head takes away."""
        return HeadMeans(*(head_means(self.weights(layer), side) for side in ("query", "key"))).inverse()


@dataclass(frozen=True)
class ShiftedQueryKey(CentredQueryKey):
    """The same where heads share gains and biases of their norm: biases go with gains, one sign for all heads.

    What is added to unrotated keys behind their norm adds the same to all scores of a token.
    """

    @property
    def hides_shifts(self) -> bool:
        """Whether the biases of unrotated keys are not seen."""
        return not self.spec.shows_scores

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        yield from super().orbits(around)
        size = self.spec.unrotated * self.hides_shifts
        text = f"R^{size}, biases of the norm of keys in unrotated dimensions"
        yield RedundantPart(part="key_bias", count=size, group=text, lemma="Lemma 1")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        yield from super().random(layer, sampler)
        if self.hides_shifts:
            yield KeyShift(sampler.shift((1, self.spec.unrotated)))

    def folding(self, layer: LayerWeights) -> Part:
        """No means of heads, and no bias of unrotated keys."""
        means = super().folding(layer)
        if not self.hides_shifts:
            return means
        shift = KeyShift(-self.shifts(self.weights(layer))[1][:, self.spec.rotated :])
        return Chain((means, shift), Chain((means.inverse(), shift.inverse()), means))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        yield from super().errors(target, aligned, move, noise)
        both = (self.shifts(self.weights(layer)) for layer in (target, aligned))
        for name, a, b in zip(("query_shift", "key_shift"), *both):
            yield Errors(TensorPart(self.place, name), by_entry(a, b))

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """Products of the biases with one another and with rows times gains, besides those of these."""
        own, gains = super().invariants(probe), self.gains(probe.weights)
        sides = [self.seen_rows(rows) for rows in (probe.query_rows, probe.key_rows)]
        scaled = [_with_gains(integers(gain), rows) for gain, rows in zip(gains, sides)]
        added = [_spread(integers(shift), rows) for shift, rows in zip(self.shifts(probe.weights), sides)]
        if self.hides_shifts:
            added[1] = (*added[1][:2], added[1][2] * 0)
        scores = own.scores
        for query, key in ((scaled[0], added[1]), (added[0], scaled[1]), (added[0], added[1])):
            scores = [
                [[*before, *first, *second] for before, first, second in zip(head, pairs, plain)]
                for head, pairs, plain in zip(scores, probe.rotated(query, key), probe.plain(query, key))
            ]
        return replace(own, scores=scores)

    def shifts(self, weights: AttentionWeights) -> tuple[Array, Array]:
        assert weights.query_shift is not None and weights.key_shift is not None
        return weights.query_shift, weights.key_shift


def row_grams(rows: Rows) -> list[list[int]]:
    """Per head the inner products of constants and probes that a norm sees."""
    return [
        [sum(dot(part[head, :, i], part[head, :, j]) for part in rows) % P for i, j in ((0, 0), (0, 1), (1, 2))]
        for head in range(len(rows[0]))
    ]


def _with_gains(gain: Array, rows: Rows) -> Rows:
    """Values of the rows times the residues of their gains."""
    f = rows[0].shape[1]
    cuts = (gain[:, :f], gain[:, f : 2 * f], gain[:, 2 * f :])
    real, imag, plain = (part * cut[..., None] % P for part, cut in zip(rows, cuts))
    return real, imag, plain


def _spread(shift: Array, rows: Rows) -> Rows:
    """Biases of the norm as if they were values of the rows at every probe."""
    f = rows[0].shape[1]
    cuts = (shift[:, :f], shift[:, f : 2 * f], shift[:, 2 * f :])
    real, imag, plain = (part * 0 + cut[..., None] for part, cut in zip(rows, cuts))
    return real, imag, plain


def _by_pair(products: Array, pairs: int) -> Array:
    """Columns of real and imaginary parts added up, pair by pair, then those of plain coordinates."""
    return np.concatenate(
        [products[:, :pairs] + products[:, pairs : 2 * pairs], products[:, 2 * pairs :]], axis=1
    )  # fmt: skip
