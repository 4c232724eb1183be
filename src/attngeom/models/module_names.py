"""Names of live modules of transformers 5 that differ from the names in checkpoints: renamed, experts split."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.families import decoders, llama

VIT = {
    "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value",
    "attention.o_proj": "attention.output.dense",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
    "relative_position_bias": "attention.attention.relative_position_bias",
}

GRANITE = {
    "experts.gate_up_proj": "input_linear.weight",
    "experts.down_proj": "output_linear.weight",
    "router.weight": "router.layer.weight",
}
"""Live names of the experts of Granite, below ``block_sparse_moe``, and those in checkpoints."""

EXPERTS = {
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "dots1", "glm4_moe", "olmoe", "qwen2_moe", "qwen3_moe", "qwen3_next"),
        decoders.EXPERTS,
    ),
    **dict.fromkeys(("mixtral", "minimax", "phimoe"), llama.EXPERTS),
}
"""Where checkpoints have the experts that are live in one tensor, gate rows over up rows, and their router."""


def to_disk_names(state: Mapping[str, Any], model_type: Any) -> Mapping[str, Any]:
    """The state dict with the names that checkpoints of the family have.

    >>> list(to_disk_names({"vit.layers.0.mlp.fc1.bias": 1}, "vit"))
    ['vit.encoder.layer.0.intermediate.dense.bias']
    >>> list(to_disk_names({"layers.1.lambda_1": 1, "beit.layers.0.attention.k_proj.weight": 1}, "beit"))
    ['encoder.layer.1.lambda_1', 'beit.encoder.layer.0.attention.attention.key.weight']
    """
    return {
        disk: tensor if place is None else tensor[place]
        for name, tensor in state.items()
        for disk, place in _pieces(name, state, model_type)
    }


def to_live_names(moved: Mapping[str, Array], state: Mapping[str, Any], model_type: Any) -> dict[str, Array]:
    """Tensors of a checkpoint under the names that a live state dict has, experts joined as they are there.

    >>> list(to_live_names({"embed_out.weight": np.ones(1)}, {"lm_head.weight": 1}, "gpt_neox"))
    ['lm_head.weight']
    """
    renamed = dict(moved)
    for name, tensor in state.items():
        pieces = _pieces(name, state, model_type)
        if not all(disk in renamed for disk, _ in pieces):
            continue
        values = [renamed.pop(disk) for disk, _ in pieces]
        if pieces[0][1] is None:
            renamed[name] = values[0]
            continue
        renamed[name] = np.empty(tuple(tensor.shape), values[0].dtype)
        for (_, place), value in zip(pieces, values):
            renamed[name][place] = value
    return renamed


def _pieces(name: str, state: Mapping[str, Any], model_type: Any) -> list[tuple[str, Any]]:
    """The tensors of a checkpoint that a live tensor holds, and the place of each; None: it is all of it."""
    if model_type == "dinov2":
        return [(re.sub("attention[.][qkvo]_proj", lambda part: VIT[part[0]], name), None)]
    if model_type in ("vit", "deit", "beit"):
        return [(_vit_name(name), None)]
    if model_type == "olmo_hybrid":
        return _hybrid_pieces(name, state)
    if model_type == "gpt_neox" and name == "lm_head.weight" and "embed_out.weight" not in state:
        return [("embed_out.weight", None)]
    if model_type in ("granitemoe", "granitemoeshared", "granitemoehybrid"):
        return [(re.sub(r"(?<=block_sparse_moe\.)[a-z_.]+$", lambda part: GRANITE.get(part[0], part[0]), name), None)]
    if model_type == "nemotron_h":
        disk = re.sub("^model[.]", "backbone.", name)
        base, marker, part = disk.partition("mixer.experts.")
        packed = marker and part in ("up_proj", "down_proj")
        return [(f"{base}{marker}{e}.{part}.weight", e) for e in range(len(state[name]))] if packed else [(disk, None)]
    if not isinstance(model_type, str) or model_type not in EXPERTS:
        return [(name, None)]
    stored = EXPERTS[model_type]
    base, marker, part = name.partition("mlp.experts.")
    if marker and part in ("gate_up_proj", "down_proj"):
        count, rows = (int(size) for size in state[name].shape[:2])
        places = {stored.gate: slice(rows // 2), stored.up: slice(rows // 2, rows)}
        places = places if part == "gate_up_proj" else {stored.down: slice(rows)}
        return [
            (f"{base}{stored.expert.format(e)}{row}.weight", (e, place))
            for e in range(count)
            for row, place in places.items()
        ]
    name = name.replace("mlp.router.", f"{decoders.EXPERTS.router}.")
    return [(name.replace(f"{decoders.EXPERTS.router}.", f"{stored.router}."), None)]


def _hybrid_pieces(name: str, state: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Norms before mixers have names of their own, their convolutions are apart."""
    base, _, rest = name.partition("linear_attn.conv1d.weight")
    if base != name and not rest:
        sizes = (int(state[f"{base}linear_attn.{part}_proj.weight"].shape[0]) for part in "qkv")
        ends = np.cumsum([0, *sizes]).tolist()
        rows = zip("qkv", ends, ends[1:])
        return [(f"{base}linear_attn.{part}_conv1d.weight", slice(first, last)) for part, first, last in rows]
    layer = re.match(r".*layers[.][0-9]+[.]", name)
    if layer is None or f"{layer[0]}linear_attn.A_log" not in state:
        return [(name, None)]
    name = name.replace(".input_layernorm.", ".attention_layer_norm.")
    return [(name.replace(".post_attention_layernorm.", ".feedforward_layer_norm."), None)]


def _vit_name(name: str) -> str:
    match = re.fullmatch(r"((?:vit\.|deit\.|beit\.)?)layers\.(\d+)\.(.+\.)?(\w+)", name)
    if match is None:
        return name
    prefix, layer, module, part = match.groups(default="")
    module = module.removesuffix(".")
    stored = f"{VIT.get(module, module)}." if module else ""
    return f"{prefix}encoder.layer.{layer}.{stored}{part}"
