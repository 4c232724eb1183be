"""Parts of attention without norms: queries with keys, values with outputs, the order of heads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.models.layer import AttentionWeights, LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry.part import Which, on_attention


@dataclass(frozen=True, eq=False)
class GroupedQueryKey:
    """turned: q → c q, k → k / c̄ per group and frequency (L3); plain: K → C K, Q → C⁻ᵀ Q per group (L2)."""

    turned: Array
    plain: Array
    which: Which = "attention"

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        def change(weights: AttentionWeights) -> AttentionWeights:
            heads = weights.heads
            factors = np.repeat(self.turned, heads // len(self.turned), axis=0)
            back = self.back.transpose(0, 2, 1)
            return weights.with_(
                turned_query=weights.turned_query.scaled(factors),
                turned_key=weights.turned_key.scaled(1 / self.turned.conj()),
                key=weights.key.then(self.plain),
                query=weights.query.then(np.repeat(back, heads // len(back), axis=0)),
            )

        return on_attention(layer, self.which, change)

    @cached_property
    def back(self) -> Array:
        """C⁻¹ per group."""
        return lapack.inv(self.plain)

    def inverse(self) -> GroupedQueryKey:
        return GroupedQueryKey(1 / self.turned, self.back, self.which)


@dataclass(frozen=True, eq=False)
class GroupedValueOutput:
    """V → B V, O → O B⁻¹ per group (L2)."""

    matrices: Array
    which: Which = "attention"

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        def change(weights: AttentionWeights) -> AttentionWeights:
            back = np.repeat(self.back, weights.heads // len(self.matrices), axis=0)
            return weights.with_(value=weights.value.then(self.matrices), output=weights.output @ back)

        return on_attention(layer, self.which, change)

    @cached_property
    def back(self) -> Array:
        """B⁻¹ per group."""
        return lapack.inv(self.matrices)

    def inverse(self) -> GroupedValueOutput:
        return GroupedValueOutput(self.back, self.which)


@dataclass(frozen=True, eq=False)
class GroupedHeadOrder:
    """Query head i of the new layer is head heads[i] of the old one; groups likewise, and heads follow their group."""

    heads: Array
    groups: Array
    which: Which = "attention"

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        return on_attention(layer, self.which, self.pick)

    def pick(self, weights: AttentionWeights) -> AttentionWeights:
        """The heads of one attention in the new order."""
        shared = weights.turned_groups != weights.groups
        changes: dict[str, object] = {
            "turned_query": weights.turned_query.pick(self.heads),
            "query": weights.query.pick(self.heads),
            "turned_key": weights.turned_key if shared else weights.turned_key.pick(self.groups),
            "key": weights.key.pick(self.groups),
            "value": weights.value.pick(self.groups),
            "output": weights.output[self.heads],
        }
        for name, order in (("query_gain", self.heads), ("key_gain", self.groups), ("sinks", self.heads)):
            gains = getattr(weights, name)
            if gains is not None and len(gains) > 1:
                changes[name] = gains[order]
        return weights.with_(**changes)

    def inverse(self) -> GroupedHeadOrder:
        return GroupedHeadOrder(np.argsort(self.heads), np.argsort(self.groups), self.which)
