"""Attention as a program: queries, keys, values, latents, QK-norms, rotations, tables, softcaps and sinks.

Turns by all distances are dense in a torus, one circle for each class of commensurable rotary frequencies: algebraic
frequencies that are linearly independent over Q are so together with π, so that by Kronecker the turns by m = 1, 2, …
are dense in the torus of their classes; the other angles of a class are multiples of one angle. Base 10,000 with 64
pairs has 16 classes. Frequencies are floats: a quotient that is a simple fraction up to rounding is taken to be one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from attngeom.errors import InputError
from attngeom.limits.rounding import FREQUENCY_ROUNDING
from attngeom.limits.sizes import FREQUENCY_RATIO, ROTATION_ORDER
from attngeom.models.programs.parts import Parts, SeenVector, SublayerOutput
from attngeom.models.specification import MLP, GroupedAttention, Norm, Rotary


class AttentionParts(Parts):
    """What attention adds to a token; one method for each option, and its only home."""

    def attend(
        self, name: str, own: GroupedAttention, read: SeenVector, sources: Sequence[SeenVector], rows: int, cross: bool,
        later: bool = False,
    ) -> SublayerOutput:  # fmt: skip
        """What attention adds to a token that attends to sources, the last of which is itself but for ``cross``.

        ``later``: the others stand behind it.
        """
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
            key = key if cross else self.rotated(own, key, None if is_self else place, later)
            words = "p" * len(lead), "p" * (len(b.shape(key)) - 2)
            out = max(words, key=len)
            score = b.contract(f"{words[0]}gna,{words[1]}ga->{out}gn", query, key)
            score = b.multiply(score, self.number(own.scale))
            score = b.reshape(score, (*b.shape(score)[: len(out)], heads))
            if not cross:
                score = self.placed(name, own, score, None if is_self else place)
            scores.append(b.broadcast(self.capped(own, score), (count, heads)))
        mixed = self.average(name, own, scores, [value for _, value in pairs])
        if own.output_gate:
            gate = self.linear(f"{name}.output_gate", read, (heads, own.value_dim), own.query_bias)
            mixed = b.multiply(mixed, b.sigmoid(gate))
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
            if own.shares_sum_to_one and self._has_free_constant(own):
                own = replace(own, value_bias=False)
            elif own.shares_sum_to_one and own.groups * own.value_dim >= rows:
                own = replace(own, value_bias=False, output_bias=True)
            else:
                values += 1
        plain = own.unrotated
        if own.qk_norm is None:
            plain = min(plain, keys, share * queries)
        # Coordinates of values that are gated one by one are not mixed by any matrix.
        kept = own.value_dim if own.output_gate else min(own.value_dim, values, share * rows)
        return replace(own, head_dim=own.rotated + plain, value_dim=kept)

    def _has_free_constant(self, own: GroupedAttention) -> bool:
        """Whether any constant may be added to what attention writes: by its own bias, or by that of an MLP beside."""
        mlp = self.block.mlp
        return own.output_bias or (self.block.parallel and isinstance(mlp, MLP) and mlp.down_bias)

    def average(self, name: str, own: GroupedAttention, scores: Sequence[int], values: Sequence[int]) -> int:
        """The mean of values weighted by exponentials of scores; a sink is a token without value."""
        b = self.b
        if len(values) == 1 and not own.sinks:
            return self._repeated(own, values[0])
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
            part = b.contract(f"pgn,{'p' * (len(b.shape(value)) - 2)}gv->pgnv", share, value)
            mixed = part if mixed is None else b.add(mixed, part)
        assert mixed is not None
        return b.reshape(mixed, (self.places.count, own.heads, own.value_dim))

    def _repeated(self, own: GroupedAttention, value: int) -> int:
        """The values of the only token, for each head of a group."""
        count = self.places.count
        numbers = self.b.numbers([value])[0]
        rows = np.broadcast_to(numbers[..., :, None, :], (count, own.groups, own.heads // own.groups, own.value_dim))
        return self.b.move([value], rows.reshape(count, own.heads, own.value_dim))

    def query(self, name: str, own: GroupedAttention, u: SeenVector) -> int:
        """(…, heads, head_dim), before rotation."""
        if own.latent is not None and own.latent.query_rank is not None:
            u = self.latent(f"{name}.query_latent", own.latent.query_rank, own.latent.query_norm, own.latent.bias, u)
        query = self.linear(f"{name}.query", u, (own.heads, own.head_dim), own.query_bias)
        return self.qk_normalised(f"{name}.query", own, query)

    def key_value(self, name: str, own: GroupedAttention, u: SeenVector) -> tuple[int, int]:
        """(groups, head_dim) and (groups, value_dim), before rotation."""
        if own.latent is None:
            key = self.linear(f"{name}.key", u, (own.groups, own.head_dim), own.key_bias)
            if self.acting and own.shares_sum_to_one and self._has_free_constant(own):
                u = replace(u, constant=False)
            value = self.linear(f"{name}.value", u, (own.groups, own.value_dim), own.value_bias)
            return self.qk_normalised(f"{name}.key", own, key), value
        latent = self.latent(f"{name}.key_latent", own.latent.key_rank, own.latent.key_norm, own.latent.bias, u)
        key = self.linear(f"{name}.key", latent, (own.heads, own.unrotated), False)
        value = self.linear(f"{name}.value", latent, (own.heads, own.value_dim), False)
        if own.rotated:
            shared = self.linear(f"{name}.key_rotated", u, (1, own.rotated), own.latent.bias)
            first, second = self.b.numbers([shared, key])
            joined = np.concatenate([np.repeat(first, own.heads, axis=-2), second], axis=-1)
            key = self.b.move([shared, key], joined)
        return key, value

    def latent(self, name: str, rank: int, norm: Norm | None, bias: bool, u: SeenVector) -> SeenVector:
        """A latent of latent attention, behind its norm."""
        y = SeenVector(self.linear(name, u, (rank,), bias), rank)
        return self.norm(name, norm, y, rank)

    def qk_normalised(self, name: str, own: GroupedAttention, x: int) -> int:
        """The QK-norm of (…, heads, coordinates), of each head or of all together, times its gains, and its biases."""
        if own.qk_norm is None:
            return x
        b, norm, shape = self.b, own.qk_norm.norm, self.b.shape(x)
        y = self.normalised(norm, x, 2 if own.qk_norm.is_joint else 1)
        count = 1 if own.qk_norm.shares_gains else shape[-2]
        if not norm.gain:
            return y
        rows = [b.parameter(f"{name}_{part}", (count, own.head_dim)) for part in ("gain", "shift")[: 1 + norm.bias]]
        gain, *shifts = (b.reshape(row, (own.head_dim,)) if count == 1 else row for row in rows)
        y = b.multiply(y, gain)
        return b.add(y, shifts[0]) if shifts else y

    def rotated(self, own: GroupedAttention, key: int, place: int | None, later: bool = False) -> int:
        """The key of another token rotated back by its distance, forth if it is later; queries stay as they are.

        The key of the token itself (None) has the amplitude alone.
        """
        if own.rotary is None or (place is None and own.rotary.amplitude == 1.0):
            return key
        b, pairs = self.b, own.rotated // 2
        if place is None:
            cos, sin = (b.constant(np.full((1, pairs), number, dtype=np.int64)) for number in (1, 0))
        else:
            cos, sin = self.turns(own.rotary, place)
        if own.rotary.amplitude != 1.0:
            cos, sin = (b.multiply(x, self.number(Fraction(own.rotary.amplitude) ** 2)) for x in (cos, sin))
        if later:
            sin = b.scale(sin, -1)
        back, one = b.scale(sin, -1), self.number(1)
        sources = [cos, sin, back, one]
        turn, rise, fall, same = b.numbers(sources)
        table = np.zeros((len(turn), own.head_dim, own.head_dim), dtype=np.int64)
        first, second = np.arange(pairs), np.arange(pairs, 2 * pairs)
        table[:, first, first] = table[:, second, second] = turn
        table[:, first, second], table[:, second, first] = rise, fall
        rest = np.arange(2 * pairs, own.head_dim)
        table[:, rest, rest] = same
        return b.contract(f"pab,{'p' * (len(b.shape(key)) - 2)}gb->pga", b.move(sources, table), key)

    def turns(self, rotary: Rotary, place: int) -> tuple[int, int]:
        """Cosines and sines (places, pairs) of the distance of another token; a free point of the torus if any is."""
        if self.places.distances is not None:
            distances = np.array([row[place] for row in self.places.distances], dtype=np.float64)
            return self.b.circle(np.outer(distances, rotary.frequencies))
        members = classes(self.places.frequencies)
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
            distances = np.array([row[place] for row in self.places.distances])
            score = b.add(score, b.constant(-np.outer(distances, own.slopes)))
        if self.places.table:
            table = b.parameter(f"{name}.relative", (self.places.table, own.heads))
            itself = self.places.own or (0,)
            used = list(itself) if place is None else [row[place] for row in self.places.buckets]
            score = b.add(score, b.move([table], b.numbers([table])[0][used]))
        return score

    def capped(self, own: GroupedAttention, score: int) -> int:
        """c·tanh(s/c)."""
        if own.softcap is None:
            return score
        b = self.b
        small = b.tanh(b.multiply(score, self.number(1 / Fraction(own.softcap))))
        return b.multiply(small, self.number(own.softcap))


def simple_quotient(one: float, other: float) -> Fraction | None:
    """one/other as a fraction of small denominator, if it is one up to rounding.

    >>> simple_quotient(0.1, 0.0001), simple_quotient(1.0, 0.7071067811865476)
    (Fraction(1000, 1), None)
    """
    quotient = max(one, other) / min(one, other)
    fraction = Fraction(quotient).limit_denominator(FREQUENCY_RATIO)
    if abs(quotient - fraction) > FREQUENCY_ROUNDING * quotient:
        return None
    return fraction if one >= other else 1 / fraction


def classes(frequencies: Iterable[float]) -> list[dict[float, int]]:
    """The frequencies that are not 0 as integer multiples of one angle for each class.

    >>> classes([1.0, 0.7071067811865476, 0.5, 0.75, 0.0])
    [{1.0: 4, 0.75: 3, 0.5: 2}, {0.7071067811865476: 1}]
    """
    groups: list[dict[float, Fraction]] = []
    for frequency in sorted({f for f in frequencies if f}, reverse=True):
        for members in groups:
            quotient = simple_quotient(frequency, next(iter(members)))
            if quotient is not None:
                members[frequency] = quotient
                break
        else:
            groups.append({frequency: Fraction(1)})
    multiples = []
    for members in groups:
        common = math.lcm(*(quotient.denominator for quotient in members.values()))
        whole = {frequency: int(quotient * common) for frequency, quotient in members.items()}
        share = math.gcd(*whole.values())
        multiples.append({frequency: number // share for frequency, number in whole.items()})
    return multiples


def check_frequencies(frequencies: Iterable[float]) -> None:
    """Refuse angles that are no free points: from π on, and rational multiples of π."""
    for frequency in frequencies:
        if frequency >= math.pi or (frequency and simple_root(frequency)):
            raise InputError(f"a rotary frequency of {frequency:.6g} given; proofs by rank need simple ones below pi")


def simple_root(frequency: float) -> bool:
    """Whether the angle is a multiple of π by a fraction of small denominator, so that its point is a root of unity."""
    turn = Fraction(frequency / math.pi).limit_denominator(ROTATION_ORDER)
    return abs(frequency / math.pi - turn) <= FREQUENCY_ROUNDING
