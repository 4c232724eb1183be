"""MLPs and experts as tensors: split, fused, one by one or packed."""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import ExpertsWeights, MLPWeights
from attngeom.models.layout.tables import Load, MLPLayout, read_linear, store_linear
from attngeom.models.specification import MLP, Experts


def read_mlp(spec: MLP, layout: MLPLayout, width: int, load: Load, prefix: str) -> MLPWeights:
    m, flip = spec.width, layout.transposed
    gate = None
    if layout.packing == "fused":
        both = read_linear(load, prefix + layout.up, 2 * m, width, spec.up_bias, flip)
        gate, up = both.pick(np.arange(m)), both.pick(np.arange(m, 2 * m))
    else:
        if spec.gated:
            gate = read_linear(load, prefix + layout.gate, m, width, spec.up_bias, flip)
        up = read_linear(load, prefix + layout.up, m, width, spec.up_bias, flip)
    down = read_linear(load, prefix + layout.down, width, m, spec.down_bias, flip)
    return MLPWeights(gate, up, down.weight, down.bias)


def write_mlp(spec: MLP, layout: MLPLayout, weights: MLPWeights, prefix: str) -> dict[str, Array]:
    flip = layout.transposed
    tensors = store_linear(prefix + layout.down, Affine(weights.down, weights.down_bias), spec.down_bias, flip)
    if layout.packing == "fused":
        assert weights.gate is not None
        weight = np.concatenate([weights.gate.weight, weights.up.weight])
        both = Affine(weight, np.concatenate([weights.gate.bias, weights.up.bias]))
        return tensors | store_linear(prefix + layout.up, both, spec.up_bias, flip)
    if weights.gate is not None:
        tensors |= store_linear(prefix + layout.gate, weights.gate, spec.up_bias, flip)
    return tensors | store_linear(prefix + layout.up, weights.up, spec.up_bias, flip)


def read_experts(spec: Experts, layout: MLPLayout, width: int, load: Load) -> ExpertsWeights:
    count, m = spec.count, spec.expert.width
    router = read_linear(load, layout.router, count, width, spec.router_bias, False)
    correction = load(layout.correction, (count,)) if spec.correction else None
    if layout.packing == "packed_experts":
        # Columns of the packed tensor alternate between gate and up.
        up = load(layout.up, (count, width, 2 * m)).transpose(0, 2, 1)
        up_bias = load(f"{layout.up}_bias", (count, 2 * m))
        down = load(layout.down, (count, m, width)).transpose(0, 2, 1)
        down_bias = load(f"{layout.down}_bias", (count, width))
        experts = tuple(
            MLPWeights(
                Affine(up[e, 0::2], up_bias[e, 0::2]), Affine(up[e, 1::2], up_bias[e, 1::2]), down[e], down_bias[e]
            )
            for e in range(count)
        )
    elif layout.packing == "stacked_experts":
        rows, down = (
            load(f"{layout.up}.weight", (count, 2 * m, width)),
            load(f"{layout.down}.weight", (count, width, m)),
        )
        none = np.zeros(width)
        experts = tuple(MLPWeights(Affine.linear(r[:m]), Affine.linear(r[m:]), out, none) for r, out in zip(rows, down))
    elif layout.packing == "beside_experts":
        rows = load(layout.up, (count, width, 2 * m)).transpose(0, 2, 1)
        down, none = load(layout.down, (count, m, width)).transpose(0, 2, 1), np.zeros(width)
        experts = tuple(MLPWeights(Affine.linear(r[:m]), Affine.linear(r[m:]), out, none) for r, out in zip(rows, down))
    else:
        experts = tuple(read_mlp(spec.expert, layout, width, load, layout.expert.format(e)) for e in range(count))
    shared = None if spec.shared is None else read_mlp(spec.shared, layout.of_shared, width, load, layout.shared)
    gate = read_linear(load, layout.shared_gate, 1, width, False, False) if spec.shared_gate else None
    return ExpertsWeights(router, correction, experts, shared, gate)


def write_experts(spec: Experts, layout: MLPLayout, weights: ExpertsWeights) -> dict[str, Array]:
    tensors = store_linear(layout.router, weights.router, spec.router_bias, False)
    if weights.correction is not None:
        tensors[layout.correction] = weights.correction
    if layout.packing == "packed_experts":
        gates = [expert.gate for expert in weights.experts if expert.gate is not None]
        ups = [expert.up for expert in weights.experts]
        rows = np.stack([np.stack([g.weight, u.weight], axis=1) for g, u in zip(gates, ups)])
        bias = np.stack([np.stack([g.bias, u.bias], axis=1) for g, u in zip(gates, ups)])
        tensors[layout.up] = rows.reshape(spec.count, -1, rows.shape[-1]).transpose(0, 2, 1)
        tensors[f"{layout.up}_bias"] = bias.reshape(spec.count, -1)
        tensors[layout.down] = np.stack([expert.down.T for expert in weights.experts])
        tensors[f"{layout.down}_bias"] = np.stack([expert.down_bias for expert in weights.experts])
    elif layout.packing in ("stacked_experts", "beside_experts"):
        pairs = [(expert.gate, expert.up) for expert in weights.experts if expert.gate is not None]
        rows = np.stack([np.concatenate([g.weight, u.weight]) for g, u in pairs])
        down = np.stack([expert.down for expert in weights.experts])
        if layout.packing == "stacked_experts":
            tensors |= {f"{layout.up}.weight": rows, f"{layout.down}.weight": down}
        else:
            tensors |= {layout.up: rows.transpose(0, 2, 1), layout.down: down.transpose(0, 2, 1)}
    else:
        for e, expert in enumerate(weights.experts):
            tensors |= write_mlp(spec.expert, layout, expert, layout.expert.format(e))
    if spec.shared is not None and weights.shared is not None:
        tensors |= write_mlp(spec.shared, layout.of_shared, weights.shared, layout.shared)
    if weights.shared_gate is not None:
        tensors |= store_linear(layout.shared_gate, weights.shared_gate, False, False)
    return tensors
