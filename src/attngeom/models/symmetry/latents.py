"""Latents of multi-head latent attention: rotations that their norms allow, and their gains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Gauge, GeneralLinear, Orthogonal, Sampler
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LatentWeights, LayerWeights
from attngeom.models.probes import AttentionProbe, Invariants, LatentInput
from attngeom.models.specification import Norm
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.factor import AttentionFactor, Freedom, Part, RedundantPart, Replay
from attngeom.models.symmetry.moves import LatentTurn
from attngeom.models.tensor_errors import Errors, Noise, TensorPart, whole

SIDES = {"key_latent": ("key", "value"), "query_latent": ("query", "rotated_query")}
"""The latents and the maps that read them."""


@dataclass(frozen=True)
class Latents(AttentionFactor):
    """O(r) and (R*)^r of each latent: down → R down, readers X → X Rᵀ, gains D → D s, readers X → X / s."""

    topic = "qk"

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        latent, own = self.spec.latent, around.readings[self.place].own
        assert latent is not None
        for rank, norm in ((latent.query_rank, latent.query_norm), (latent.key_rank, latent.key_norm)):
            if rank is not None:
                yield _orbit(rank, norm, own.columns(latent.bias))

    def freedoms(self) -> Iterator[Freedom]:
        latent = self.spec.latent
        assert latent is not None
        for name, rank, norm in (
            ("query", latent.query_rank, latent.query_norm), ("key-value", latent.key_rank, latent.key_norm)
        ):  # fmt: skip
            if rank is None:
                continue
            if norm is not None and norm.kind == "layer":
                yield Freedom(f"{name} latent of {self.place}", "gains may be moved into what reads it")
                continue
            kind = "invertible" if norm is None else "orthogonal"
            folded = ", once the gains of its norm are in what reads it" if norm is not None and norm.gain else ""
            yield Freedom(f"{name} latent of {self.place}", f"any {kind} {rank} × {rank} matrix{folded}", "all")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        key, query = _ranks(self.weights(layer))
        yield LatentTurn(
            None if query is None else sampler.orthogonal(1, query)[0],
            sampler.orthogonal(1, key)[0],
            None if query is None else sampler.scales(query) * sampler.signs(query),
            sampler.scales(key) * sampler.signs(key),
        )

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        """Orthogonal Procrustes between the down-projections; gains are folded to one."""
        rotations: dict[str, Array] = {}
        for name, (goal, latent) in _latents(self.weights(target), self.weights(source)).items():
            rotations[name] = Orthogonal(len(goal.gain)).match(goal.down.weight, latent.down.weight)
        key, query = rotations["key_latent"], rotations.get("query_latent")
        return LatentTurn(query, key, None if query is None else np.ones(len(query)), np.ones(len(key)))

    def fix_weights(self, weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
        changes: dict[str, object] = {}
        for name, (latent, _) in _latents(weights, weights).items():
            group = Orthogonal(len(latent.gain))
            matrix, pivots = group.turn(latent.down.rows, gauge, latent.down.weight.shape[-1])
            down = latent.down.then(matrix)
            for place, column in enumerate(pivots):
                down.weight[place + 1 :, column] = 0.0
            changes[name] = replace(latent, down=down)
            for reader in SIDES[name]:
                affine: Affine = getattr(weights, reader)
                changes[reader] = Affine(affine.weight @ matrix.T, affine.bias)
        return weights.with_(**changes)

    def fold(self, layer: LayerWeights) -> LayerWeights:
        """Gains multiplied into the readers."""
        weights, changes = self.weights(layer), dict[str, object]()
        for name, (latent, _) in _latents(weights, weights).items():
            changes[name] = replace(latent, gain=np.ones_like(latent.gain))
            for reader in SIDES[name]:
                affine: Affine = getattr(weights, reader)
                changes[reader] = Affine(affine.weight * latent.gain, affine.bias)
        return layer.with_(**{self.place: weights.with_(**changes)})

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """⟨down x, down x'⟩ of each latent."""
        inputs = (probe.queries, probe.keys)
        return Invariants(joint=[own.gram() for own in inputs if isinstance(own, LatentInput)])

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        for name, (goal, latent) in _latents(self.weights(target), self.weights(aligned)).items():
            part, one, other = TensorPart(self.place, name), goal.down, latent.down
            yield Errors(part, whole(one.weight, other.weight), whole(one.bias, other.bias))

    def unfold(self, replay: Replay) -> None:
        weights = self.weights(replay.stored)
        key, query = weights.key_latent, weights.query_latent
        assert key is not None
        replay.take(
            LatentTurn(
                None if query is None else np.eye(len(query.gain)),
                np.eye(len(key.gain)),
                None if query is None else query.gain,
                key.gain,
            )
        )


def _orbit(rank: int, norm: Norm | None, columns: int) -> RedundantPart:
    """The group that the norm of a latent leaves, on a latent that reads so many columns."""
    if norm is None:
        # What fixes the span of fewer columns is counted by the readers of the latent, which see the span alone.
        count = GeneralLinear(rank).dimension if columns >= rank else 0
        return RedundantPart(part="latents", count=count, group=f"GL({rank})", lemma="Lemma 2")
    if norm.kind == "layer":
        return RedundantPart(part="latents", count=norm.gain * rank, group=f"(R*)^{rank}", lemma="Lemma 4")
    scales = norm.gain * rank + (norm.eps == 0)
    count = Orthogonal(rank).fiber(columns, 0) + scales
    return RedundantPart(part="latents", count=count, group=f"O({rank}) x (R*)^{scales}", lemma="Lemmas 5, 4")


def _ranks(weights: AttentionWeights) -> tuple[int, int | None]:
    assert weights.key_latent is not None
    return len(weights.key_latent.gain), None if weights.query_latent is None else len(weights.query_latent.gain)


def _latents(one: AttentionWeights, other: AttentionWeights) -> dict[str, tuple[LatentWeights, LatentWeights]]:
    """The latents that two attentions have."""
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in SIDES}
    return {name: pair for name, pair in pairs.items() if None not in pair}
