"""Weights back into the state dict of the library that they came from, in its names, shapes and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import RR
from attngeom.interop.checkpoints import score_scale, state_of
from attngeom.interop.layouts import Projections, attention_blocks
from attngeom.interop.weights import as_float64
from attngeom.network import Weights

if TYPE_CHECKING:
    from attngeom.models.rewriting import Rewrite


def export_state(
    weights: Weights | Rewrite, state: Any, key_value_heads: int | None = None, blocks: Sequence[int] | None = None
) -> dict[str, Any]:
    """The state dict with the attention projections of these weights: the inverse of :func:`import_state`.

    Names, shapes and types are those of ``state``, whose other tensors are passed on as they are. ``blocks`` and
    ``key_value_heads`` as for the import. Heads that share keys and values must have equal ones. A whole model that
    was moved, put into canonical form or aligned (:mod:`attngeom.models`) takes the place of weights.
    """
    tensors = state_of(state)
    if not isinstance(weights, Weights):
        from attngeom.models.module_names import to_live_names

        moved = to_live_names(weights.changes(), tensors, weights.model.config.get("model_type"))
        if missing := sorted(set(moved) - set(tensors)):
            raise InputError(f"a state without {missing[0][:60]} given; the state of the model itself is required")
        return {name: _like(x, moved[name], name) if name in moved else x for name, x in tensors.items()}
    architecture = weights.architecture
    layouts = attention_blocks(tensors)
    chosen = list(range(len(layouts)) if blocks is None else blocks)
    if len(chosen) != architecture.num_layers or any(not 0 <= index < len(layouts) for index in chosen):
        raise InputError(
            f"{architecture.num_layers} layers given for blocks {chosen[:8]}; the state has {len(layouts)} blocks"
        )
    result = dict(tensors)
    for layer, index in enumerate(chosen):
        block = layouts[index]
        parts = _join_heads(weights.to(RR), layer, key_value_heads)
        for name, array in block.layout.store(block.prefix, parts).items():
            result[name] = _like(tensors[name], array, name)
    return result


def _join_heads(weights: Weights, layer: int, key_value_heads: int | None) -> Projections:
    """The projections of all heads of a layer in one matrix each; shared keys and values once."""
    architecture, heads = weights.architecture, weights.layers[layer]
    outputs = [head.O for head in heads if head.O is not None]
    if len(outputs) < len(heads):
        raise InputError("weights without output projection given; projections Q, K, V, O are required")
    groups = key_value_heads or len(heads)
    if not 1 <= groups <= len(heads) or len(heads) % groups:
        raise InputError(f"{len(heads)} heads and {groups} key-value heads given; the second must divide the first")
    share = len(heads) // groups
    for h, head in enumerate(heads):
        first = heads[h - h % share]
        if not (np.array_equal(head.K, first.K) and np.array_equal(head.V, first.V)):
            raise InputError(f"layer {layer}: heads {h - h % share} and {h} share keys and values; theirs differ")
    scale = score_scale(architecture.kind, architecture.attention[layer])
    return Projections(
        np.concatenate([head.Q for head in heads]) / scale,
        np.concatenate([head.K for head in heads[::share]]),
        np.concatenate([head.V for head in heads[::share]]),
        np.concatenate(outputs, axis=1),
    )


def _like(original: Any, array: Array, name: str) -> Any:
    """The array in the type of the original tensor, NumPy or torch."""
    if tuple(np.shape(original)) != array.shape:
        raise InputError(f"{name[:60]} of shape {tuple(np.shape(original))} cannot take weights of shape {array.shape}")
    if hasattr(original, "new_tensor"):
        tensor = original.new_tensor(array)
        written = as_float64(tensor, name)
    else:
        with np.errstate(over="ignore"):
            tensor = array.astype(np.asarray(original).dtype)
        written = tensor.astype(np.float64)
    if not np.all(np.isfinite(written)):
        raise InputError(f"{name[:60]} overflows in its type {tensor.dtype}; give smaller weights or a wider type")
    return tensor
