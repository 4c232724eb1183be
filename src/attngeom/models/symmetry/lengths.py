"""Factors of queries and keys under a QK-norm without gains: turns that keep lengths and commute with positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from attngeom.groups import Orthogonal, Phases
from attngeom.models.layer import LayerWeights
from attngeom.models.probes import AttentionProbe, Invariants
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.attention import GroupedQueryKey, RotaryScales
from attngeom.models.symmetry.factor import Freedom, Part, RedundantPart
from attngeom.models.symmetry.normalised import row_grams
from attngeom.models.tensor_errors import Errors, Noise, TensorPart, by_entry


@dataclass(frozen=True)
class TurnedPairs(RotaryScales):
    """U(1) of every rotated pair of a group: k → e^{iφ} k, q → e^{iφ} q."""

    group = Phases
    stored_as = ("TurnedPairs", "turned")

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        """One turn for every pair; U(m) for m pairs of one frequency has more. Scales, if eps = 0."""
        spec, reading = self.spec, around.readings[self.place]
        columns = self.key_columns(reading, spec.key_bias, True), self.share * self.query_columns(reading)
        group = Phases(sum(spec.rotations[1].values()))
        text, count = group.symbol(spec.groups), spec.groups * group.fiber(*columns)
        yield RedundantPart(part="query_key", count=count, group=text, lemma="Lemmas 1, 5")
        norm = spec.head_norm
        if norm is not None and norm.eps == 0:
            count = 2 if spec.is_joint else spec.heads + spec.groups
            text = f"(R+)^{count} scales of q and k"
            yield RedundantPart(part="query_key", count=count, group=text, lemma="Lemma 5, eps = 0")

    def freedoms(self) -> Iterator[Freedom]:
        if pairs := sum(self.spec.rotations[1].values()):
            text = f"a turn in each of {pairs} rotated planes, for {self.each_group}"
            yield Freedom(f"q, k of {self.place}", text, "in planes")

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        goal, own = self.weights(target), self.weights(source)
        duals = self.dual.weight(goal), self.dual.weight(own)
        element = self.acting(source).match(self.carried.weight(goal), self.carried.weight(own), duals)
        return self.move(source, element)

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """k̄ q of every pair, and what the norms see: ⟨Q y, Q y'⟩ and ⟨K x, K x'⟩."""
        grams = [row_grams(rows) for rows in (probe.query_rows, probe.key_rows)]
        share, rotary = self.share, self.spec.rotary
        lengths = [[*grams[0][h], *grams[1][h // share]] for h in range(probe.weights.heads)]
        is_generic = rotary is None or len({0.0, *rotary.frequencies}) == 1 + len(rotary.frequencies)
        scores = list(probe.rotated(probe.query_rows, probe.key_rows))
        return Invariants(scores=scores, lengths=lengths, is_generic=is_generic)

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        """Rows, and what scores are multiplied by."""
        yield from super().errors(target, aligned, move, noise)
        one, other = self.weights(target), self.weights(aligned)
        for name in ("query_gain", "key_gain"):
            yield Errors(TensorPart(self.place, name), by_entry(getattr(one, name), getattr(other, name)))


@dataclass(frozen=True)
class TurnedCoordinates(GroupedQueryKey):
    """O(a₀) per group on the coordinates that no position rotates."""

    group = Orthogonal
    stored_as = ("TurnedCoordinates", "plain")

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        spec, reading = self.spec, around.readings[self.place]
        columns = self.key_columns(reading, spec.key_bias, True), self.share * self.query_columns(reading)
        group = Orthogonal(spec.rotations[0])
        text, count = group.symbol(spec.groups), spec.groups * group.fiber(*columns)
        yield RedundantPart(part="query_key", count=count, group=text, lemma="Lemmas 1, 5")

    def freedoms(self) -> Iterator[Freedom]:
        if size := self.spec.rotations[0]:
            text = f"any orthogonal {size} × {size} matrix on unrotated coordinates, for {self.each_group}"
            yield Freedom(f"q, k of {self.place}", text, "all")
