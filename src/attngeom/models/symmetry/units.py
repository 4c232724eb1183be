"""Parts of MLPs: order and scale of hidden units, order of experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine, pick_columns
from attngeom.models.layer import ExpertsWeights, LayerWeights, MLPWeights
from attngeom.models.specification import TransformerBlock


@dataclass(frozen=True, eq=False)
class Units:
    """Hidden unit i of the new MLP is unit order[i] of the old one, up times scale, down divided by it (L6).

    Without a gate the bias and weight of up are scaled together (ReLU). ``expert`` is the number of an expert, −1 for
    the MLP of a dense layer, −2 for the shared expert.
    """

    order: Array
    scales: Array
    expert: int = -1

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        def change(mlp: MLPWeights) -> MLPWeights:
            up, down = mlp.up.pick(self.order), pick_columns(mlp.down, self.order)
            if np.any(self.scales != 1):
                scales = self.scales.astype(up.weight.dtype)
                up, down = up.scaled(scales), down / scales
            return mlp.with_(gate=None if mlp.gate is None else mlp.gate.pick(self.order), up=up, down=down)

        if isinstance(layer.mlp, MLPWeights):
            return layer.with_(mlp=change(layer.mlp))
        if self.expert == -2:
            assert layer.mlp.shared is not None
            return layer.with_(mlp=layer.mlp.with_(shared=change(layer.mlp.shared)))
        experts = [change(e) if i == self.expert else e for i, e in enumerate(layer.mlp.experts)]
        return layer.with_(mlp=layer.mlp.with_(experts=tuple(experts)))

    def inverse(self) -> Units:
        back = np.argsort(self.order)
        return Units(back, 1 / self.scales[back], self.expert)


@dataclass(frozen=True, eq=False)
class ExpertOrder:
    """Expert i of the new layer is expert order[i] of the old one; a softmax router moves by a common affine map."""

    order: Array
    weight: Array
    bias: float

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        assert isinstance(layer.mlp, ExpertsWeights)
        mlp, router = layer.mlp, layer.mlp.router.pick(self.order)
        return layer.with_(
            mlp=mlp.with_(
                router=Affine(router.weight + self.weight, router.bias + self.bias),
                correction=None if mlp.correction is None else mlp.correction[self.order],
                experts=tuple(mlp.experts[i] for i in self.order),
            )
        )

    def inverse(self) -> ExpertOrder:
        return ExpertOrder(np.argsort(self.order), -self.weight, -self.bias)
