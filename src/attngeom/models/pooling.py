"""A head that pools: a learned query attends to the final hidden states, and an MLP is added (SigLIP).

What it holds is no part of the description: a witness, as :mod:`attngeom.models.witness` is for layers. Two of them are
told apart by what they make of random states; its own symmetries are not known, so that heads whose outputs agree there
are left open where their weights differ.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import scipy.special

from attngeom.exact.arrays import Array
from attngeom.limits.rounding import OUTPUT_ROUNDING, OUTPUTS_AGREE
from attngeom.limits.trials import WITNESS_STEPS
from attngeom.models.model import Model
from attngeom.models.recurrences import activate, normalise
from attngeom.models.specification import MLP

SHAPES: dict[str, tuple[int, ...]] = {
    "probe": (0, 0, 1), "attention.in_proj_weight": (3, 1), "attention.in_proj_bias": (3,),
    "attention.out_proj.weight": (1, 1), "attention.out_proj.bias": (1,), "layernorm.weight": (1,),
    "layernorm.bias": (1,),
}  # fmt: skip
"""The tensors, and how many times the width each axis is (0: one); those of the MLP follow from its units."""


def pooled(model: Model, states: Array) -> Array | None:
    """What the head makes of states (t, d); None where the file has no such head."""
    stack, d = model.spec.stack, model.spec.width
    attention, units, norm = stack.block(0).attention, stack.block(0).mlp, stack.final_norm
    if not model.places.pooling or attention is None or norm is None or not isinstance(units, MLP):
        return None
    shapes = {name: tuple(d * times or 1 for times in shape) for name, shape in SHAPES.items()}
    shapes |= {"mlp.fc1.weight": (units.width, d), "mlp.fc1.bias": (units.width,)}
    shapes |= {"mlp.fc2.weight": (d, units.width), "mlp.fc2.bias": (d,)}
    own: dict[str, Any] = {}
    for name, shape in shapes.items():
        stored = model.stored(model.places.pooling + name)
        if stored not in model.tensors or model.tensors.headers[stored].shape != shape:
            return None
        own[name] = model.tensors.raw(stored).astype(np.float64)
    maps = own["attention.in_proj_weight"].reshape(3, attention.heads, -1, d)
    biases = own["attention.in_proj_bias"].reshape(3, attention.heads, -1, 1)
    read = own["probe"].reshape(1, d), states, states
    q, k, v = (W @ x.T + b for W, x, b in zip(maps, read, biases))
    shares = scipy.special.softmax(np.einsum("hai,haj->hij", q, k) * q.shape[1] ** -0.5, axis=2)
    mixed = np.einsum("hij,haj->iha", shares, v).reshape(1, d)
    y = mixed @ own["attention.out_proj.weight"].T + own["attention.out_proj.bias"]
    u = normalise(y, norm) * own["layernorm.weight"] + own["layernorm.bias"]
    hidden = activate(u @ own["mlp.fc1.weight"].T + own["mlp.fc1.bias"], units.activation)
    return np.asarray(y + hidden @ own["mlp.fc2.weight"].T + own["mlp.fc2.bias"])


def pools_otherwise(one: Model, other: Model, names: Collection[str], unit: float) -> bool:
    """Whether the named tensors are all of the heads, and these differ at random states beyond rounding."""
    prefix = one.stored(one.places.pooling)
    if not one.places.pooling or not all(name.startswith(prefix) for name in names):
        return False
    states = np.random.default_rng(0).normal(size=(WITNESS_STEPS, one.spec.width))
    ours, theirs = pooled(one, states), pooled(other, states)
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return False
    size = max(float(np.abs(ours).max()), float(np.abs(theirs).max()), 1e-300)
    noise = OUTPUTS_AGREE * max(unit, OUTPUT_ROUNDING)
    return float(np.abs(ours - theirs).max()) > noise * size
