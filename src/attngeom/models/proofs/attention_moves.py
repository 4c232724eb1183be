"""Infinitesimal symmetries of queries, keys, values and outputs: the groups of lemmas L2, L3 and L5."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.proofs.formal import PRIME, constant, inverse
from attngeom.models.proofs.moves import Change, Moves, Reader, kernel, without_mean
from attngeom.models.specification import GroupedAttention, Latent, Norm, QKNorm


def coordinates(attention: GroupedAttention) -> tuple[list[int], dict[float, list[tuple[int, int]]]]:
    """The coordinates of a head that do not turn, and the pairs that turn by each frequency."""
    half = attention.rotated // 2
    plain = list(range(attention.rotated, attention.head_dim))
    turning: dict[float, list[tuple[int, int]]] = {}
    for pair, frequency in enumerate(attention.rotary.frequencies if attention.rotary else ()):
        # The rotated key of latent attention is another map than the rest, also where it does not turn.
        if frequency or attention.latent is not None:
            turning.setdefault(frequency, []).append((pair, pair + half))
        else:
            plain += [pair, pair + half]
    return plain, turning


def members(attention: GroupedAttention, group: int) -> list[int]:
    """The query heads of a group."""
    size = attention.heads // attention.groups
    return list(range(group * size, (group + 1) * size))


class AttentionMoves:
    """Symmetries of one attention map; ``mean_unseen``: the mean of its output is not read."""

    def __init__(
        self, moves: Moves, name: str, attention: GroupedAttention, readers: tuple[Reader, Reader], mean_unseen: bool
    ) -> None:
        self.moves, self.point, self.name, self.attention = moves, moves.point, name, attention
        self.own, self.source = readers
        self.mean_unseen = mean_unseen
        self.absolute = attention.softcap is not None or attention.sinks
        self.key_constant_shown = self.absolute or attention.qk_norm is not None

    def weight(self, part: str) -> str:
        return f"{self.name}.{part}"

    def rows(self, part: str, changes: dict[tuple[int, int], list[tuple[int, int, int]]]) -> dict[str, Array]:
        """Row (head, i) of a tensor and of its bias += Σ factor · row (head', j), for entries (factor, head', j)."""
        found = {}
        for name in (self.weight(part), self.weight(f"{part}_bias")):
            if name in self.point:
                values, change = self.point[name], self.moves.zeros(name)
                for target, terms in changes.items():
                    for factor, head, row in terms:
                        change[target] = (change[target] + factor * values[head, row]) % PRIME
                found[name] = change
        return found

    def add_all(self) -> None:
        attention = self.attention
        if attention.latent is not None:
            self._latents(attention.latent)
        if attention.qk_norm is not None:
            self._qk_norm(attention.qk_norm)
        else:
            self._scores()
        self._values()
        if self.weight("relative") in self.point:
            self._relative_table()
        if attention.latent is None:
            self._mean_rows()
        if self.mean_unseen:
            self._columns(self.weight("output"))

    def _relative_table(self) -> None:
        """A shift of all buckets of a head, with its sink, unless a softcap sees it; the bucket that is never used."""
        attention, name = self.attention, self.weight("relative")
        for head in range(attention.heads):
            if not attention.causal:
                unused = self.moves.zeros(name)
                unused[len(unused) // 2, head] = 1
                self.moves.add({name: unused})
            if attention.softcap is None:
                column = self.moves.zeros(name)
                column[:, head] = 1
                change = {name: column}
                if attention.sinks:
                    change[self.weight("sinks")] = np.eye(attention.heads, dtype=np.int64)[head]
                self.moves.add(change)

    def _columns(self, name: str) -> None:
        for head, column in product(range(self.attention.heads), range(self.attention.value_dim)):
            change = self.moves.zeros(name)
            change[head, :, column] = 1
            self.moves.add({name: change})

    def _scores(self) -> None:
        """GL on plain coordinates, GL(μ, C) on pairs of the same frequency, per group."""
        attention = self.attention
        plain, turning = coordinates(attention)
        latent = attention.latent is not None
        offset = attention.rotated if latent else 0
        for group in range(attention.groups):
            heads = members(attention, group)
            for i, j in product(plain, plain):
                keys = self.rows("key", {(group, i - offset): [(1, group, j - offset)]})
                self.moves.add(keys | self.rows("query", {(head, j): [(-1, head, i)] for head in heads}))
        shared = "key_turned" if latent else "key"
        for group in range(1 if latent else attention.groups):
            heads = list(range(attention.heads)) if latent else members(attention, group)
            for pairs in turning.values():
                for (first, second), factor in product(product(pairs, pairs), ((1, 0), (0, 1))):
                    self.moves.add(self._complex(shared, group, heads, first, second, factor))
        if not latent:
            self._deficient_scores(plain)
            if attention.sinks and attention.softcap is None:
                self._sinks(plain)

    def _complex(
        self, keys: str, group: int, heads: list[int], to: tuple[int, int], of: tuple[int, int], factor: tuple[int, int]
    ) -> Change:
        """q_to += ε c q_of and k_of −= ε c̄ k_to for the complex rows of pairs, c = factor[0] + i factor[1]."""
        re, im = factor
        queries = {}
        for head in heads:
            queries[head, to[0]] = [(re, head, of[0]), (-im, head, of[1])]
            queries[head, to[1]] = [(im, head, of[0]), (re, head, of[1])]
        moved = {
            (group, of[0]): [(-re, group, to[0]), (-im, group, to[1])],
            (group, of[1]): [(im, group, to[0]), (-re, group, to[1])],
        }
        return self.rows(keys, moved) | self.rows("query", queries)

    def _matrix(self, part: str, reader: Reader, constant: bool) -> Array:
        """Rows of a reader as it acts: columns of n(x), and the constant if it is shown."""
        name, own = self.weight(part), self.weight(f"{part}_bias")
        weight = self.point[name]
        acting = reader.seen(weight)
        if not constant:
            return acting
        return np.concatenate([acting, reader.constant(weight, self.point.get(own))[..., None]], axis=-1)

    def _deficient_scores(self, plain: list[int]) -> None:
        """More plain coordinates than columns: queries may change where no key looks, and conversely."""
        keys = self._matrix("key", self.source, self.absolute)
        queries = self._matrix("query", self.own, True)
        for group in range(self.attention.groups):
            heads = members(self.attention, group)
            blind = kernel(keys[group][plain].T)
            for head in heads:
                self._columns_of("query", head, plain, blind)
            stacked = np.concatenate([queries[head][plain] for head in heads], axis=1)
            self._columns_of("key", group, plain, kernel(stacked.T))

    def _sinks(self, plain: list[int]) -> None:
        """Scores moved by a constant through the constants of queries or keys, and the sinks with them."""
        keys, queries = self._matrix("key", self.source, True), self._matrix("query", self.own, True)
        for group in range(self.attention.groups):
            heads = members(self.attention, group)
            for direction in kernel(keys[group][plain][:, :-1].T):
                moved = int((direction * keys[group][plain, -1] % PRIME).sum() % PRIME)
                for head in heads:
                    self._constant("query", self.own, head, plain, direction, {head: moved})
            stacked = np.concatenate([queries[head][plain][:, :-1] for head in heads], axis=1)
            for direction in kernel(stacked.T):
                effects = {head: int((direction * queries[head][plain, -1] % PRIME).sum() % PRIME) for head in heads}
                self._constant("key", self.source, group, plain, direction, effects)

    def _constant(
        self, part: str, reader: Reader, head: int, rows: list[int], direction: Array, effects: dict[int, int]
    ) -> None:
        """The constant of a reader moved, by its bias or by rows along 1/gain, and sinks by the effects."""
        name, own = self.weight(part), self.weight(f"{part}_bias")
        change: dict[str, Array] = {}
        scale = int(constant(self.attention.scale))
        if own in self.point:
            change[own] = self.moves.zeros(own)
            change[own][head, rows] = direction
        elif reader.mean_direction is not None and reader.bias is not None:
            change[name] = self.moves.zeros(name)
            row = reader.mean_direction * pow(reader.mean_constant, -1, PRIME) % PRIME
            change[name][head, rows] = direction[:, None] * row % PRIME
        else:
            return
        sinks = np.zeros(self.attention.heads, np.int64)
        for index, effect in effects.items():
            sinks[index] = effect * scale % PRIME
        self.moves.add(change | {self.weight("sinks"): sinks})

    def _columns_of(self, part: str, head: int, rows: list[int], directions: Array) -> None:
        """Every column of a tensor, and its bias, moved by each of the directions."""
        name, own = self.weight(part), self.weight(f"{part}_bias")
        for direction in directions:
            for column in range(self.point.shapes[name][-1]):
                change = self.moves.zeros(name)
                change[head, rows, column] = direction
                self.moves.add({name: change})
            if own in self.point:
                change = self.moves.zeros(own)
                change[head, rows] = direction
                self.moves.add({own: change})

    def _values(self) -> None:
        """GL(v) per group, and changes of values where no output looks."""
        attention = self.attention
        output = self.weight("output")
        for group in range(attention.groups):
            heads = members(attention, group)
            for i, j in product(range(attention.value_dim), repeat=2):
                change = self.moves.zeros(output)
                for head in heads:
                    change[head, :, j] = -self.point[output][head, :, i]
                self.moves.add(self.rows("value", {(group, i): [(1, group, j)]}) | {output: change})
            stacked = np.concatenate([self._written(head) for head in heads])
            self._columns_of("value", group, list(range(attention.value_dim)), kernel(stacked))

    def _written(self, head: int) -> Array:
        matrix = self.point[self.weight("output")][head]
        return without_mean(matrix.T).T if self.mean_unseen else matrix

    def _mean_rows(self) -> None:
        """Rows along 1/gain of LayerNorm readers, constants compensated or invisible; invisible key constants."""
        plain, _ = coordinates(self.attention)
        for part, reader in (("query", self.own), ("key", self.source), ("value", self.source)):
            name, own = self.weight(part), self.weight(f"{part}_bias")
            for head, row in product(*map(range, self.point.shapes[name][:2])):
                hidden = part == "key" and row in plain and not self.key_constant_shown
                if hidden and own in self.point:
                    self.moves.add({own: self._unit(own, head, row)})
                if reader.mean_direction is None:
                    continue
                if own in self.point or reader.bias is None or hidden:
                    change = {name: self._unit(name, head, row) * reader.mean_direction}
                    if own in self.point:
                        change[own] = -self._unit(own, head, row) * reader.mean_constant
                    self.moves.add(change)

    def _unit(self, name: str, head: int, row: int) -> Array:
        found = self.moves.zeros(name)
        found[head, row] = 1
        return found

    def shifts(self) -> list[tuple[Array, Array]]:
        """Changes of output bias and values that add a constant vector to the output, without sinks."""
        attention, point = self.attention, self.point
        width = point.shapes[self.weight("output")][1]
        found = []
        bias = self.weight("output_bias")
        if bias in point:
            for unit in np.eye(width, dtype=np.int64):
                found.append((self.moves.vector({bias: unit}), unit))
        if attention.latent is not None:
            return found + self._blind_outputs(Reader(point, None, "", attention.latent.key_rank))
        found += self._blind_outputs(self.source)
        if attention.sinks:
            return found
        outputs = point[self.weight("output")]
        name, own = self.weight("value"), self.weight("value_bias")
        direction = self.source.mean_direction
        for group, row in product(range(attention.groups), range(attention.value_dim)):
            effect = outputs[members(attention, group), :, row].sum(axis=0) % PRIME
            if own in point:
                found.append((self.moves.vector({own: self._unit(own, group, row)}), effect))
            elif direction is not None and self.source.bias is not None:
                change = {name: self._unit(name, group, row) * direction}
                found.append((self.moves.vector(change), effect * self.source.mean_constant % PRIME))
        return found

    def _blind_outputs(self, reader: Reader) -> list[tuple[Array, Array]]:
        """Outputs changed where values do not vary: the constant of the values remains."""
        attention, name = self.attention, self.weight("output")
        values = self._matrix("value", reader, attention.sinks)
        own = self.weight("value_bias")
        constants = reader.constant(self.point[self.weight("value")], self.point.get(own))
        found = []
        for group in range(attention.groups):
            for direction in kernel(values[group].T):
                remains = 0 if attention.sinks else int((direction * constants[group] % PRIME).sum() % PRIME)
                for head, row in product(members(attention, group), range(self.point.shapes[name][1])):
                    change = self.moves.zeros(name)
                    change[head, row] = direction
                    effect = np.zeros(self.point.shapes[name][1], np.int64)
                    effect[row] = remains
                    found.append((self.moves.vector({name: change}), effect))
        return found

    def _qk_norm(self, qk_norm: QKNorm) -> None:
        """Scales between the gains, or rotations if there are none; means of heads; scales of q and k if eps = 0."""
        attention, norm, shared = self.attention, qk_norm.norm, qk_norm.shares_gains
        for part in ("query", "query_bias", "key", "key_bias") if qk_norm.is_centred else ():
            name = self.weight(part)
            if name in self.point:
                count, _, *columns = self.point.shapes[name]
                for head, *column in np.ndindex(count, *columns):
                    shift = self.moves.zeros(name)
                    shift[(head, slice(None), *column)] = 1
                    self.moves.add({name: shift})
        plain, turning = coordinates(attention)
        sets = [[i] for i in plain] + [list(pair) for pairs in turning.values() for pair in pairs]
        if norm.gain:
            for group in range(1 if shared else attention.groups):
                heads = [0] if shared else members(attention, group)
                for rows in sets:
                    change = {}
                    for part, owners, sign in (("query_gain", heads, 1), ("key_gain", [group], -1)):
                        values = self.moves.zeros(self.weight(part))
                        places = np.ix_(owners, rows)
                        values[places] = sign * self.point[self.weight(part)][places]
                        change[self.weight(part)] = values
                    self.moves.add(change)
        else:
            self._rotations(plain, turning)
        if norm.eps == 0:
            parts = (("query", attention.heads), ("key", attention.groups))
            for part, count in parts:
                together = [list(range(count))] if qk_norm.is_joint else [[head] for head in range(count)]
                for some in together:
                    same = {(head, i): [(1, head, i)] for head in some for i in range(attention.head_dim)}
                    self.moves.add(self.rows(part, same))

    def _rotations(self, plain: list[int], turning: dict[float, list[tuple[int, int]]]) -> None:
        planes = [*combinations(plain, 2), *(pair for pairs in turning.values() for pair in pairs)]
        for group, (i, j) in product(range(self.attention.groups), planes):
            heads = members(self.attention, group)
            change = self.rows("key", {(group, i): [(1, group, j)], (group, j): [(-1, group, i)]})
            turned = [((head, i), [(1, head, j)]) for head in heads] + [((head, j), [(-1, head, i)]) for head in heads]
            self.moves.add(change | self.rows("query", dict(turned)))

    def _latents(self, latent: Latent) -> None:
        """O(r) of each latent (GL(r) without norm), gains moved into the matrices that read it, scale if eps = 0."""
        for part, norm, readers in self._latent_parts(latent):
            name = self.weight(part)
            maps = [tensor for tensor in (name, f"{name}_bias") if tensor in self.point]
            rank = len(self.point[name])
            has_gain = norm is not None and norm.gain
            gain = self.point[f"{name}.gain"] if has_gain else np.ones(rank, np.int64)
            for i, j in combinations(range(rank), 2) if norm is not None else product(range(rank), repeat=2):
                moved: dict[str, Array] = {}
                for tensor in maps:
                    moved[tensor] = self.moves.zeros(tensor)
                    moved[tensor][i] = self.point[tensor][j]
                    if norm is not None:
                        moved[tensor][j] = -self.point[tensor][i]
                for reader in readers:
                    moved[reader] = self._counter(reader, gain, i, j, norm is not None)
                self.moves.add(moved)
            for index in range(rank) if has_gain else ():
                unit = np.eye(rank, dtype=np.int64)[index]
                scaled = {reader: -self.point[reader] * unit for reader in readers}
                self.moves.add({f"{name}.gain": gain * unit} | scaled)
            if norm is not None and norm.eps == 0:
                self.moves.add({tensor: self.point[tensor] for tensor in maps})

    def _counter(self, reader: str, gain: Array, i: int, j: int, orthogonal: bool) -> Array:
        """The change of W with W diag(gain) n moved against n_i += ε n_j (and n_j −= ε n_i)."""
        weight = self.point[reader] * gain % PRIME
        change = self.moves.zeros(reader)
        change[..., j] = -weight[..., i] * int(inverse(gain)[j]) % PRIME
        if orthogonal:
            change[..., i] = weight[..., j] * int(inverse(gain)[i]) % PRIME
        return change

    def _latent_parts(self, latent: Latent) -> Iterator[tuple[str, Norm | None, list[str]]]:
        if latent.query_rank is not None:
            yield "query_latent", latent.query_norm, [self.weight("query")]
        yield "key_latent", latent.key_norm, [self.weight("key"), self.weight("value")]
