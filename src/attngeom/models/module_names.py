"""Names of live modules of transformers 5 that differ from the names in checkpoints: renamed and split on reading."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array

VIT = {
    "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value",
    "attention.o_proj": "attention.output.dense",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}


def to_disk_names(state: Mapping[str, Any], model_type: Any) -> Mapping[str, Any]:
    """The state dict with the names that checkpoints of the family have.

    >>> list(to_disk_names({"vit.layers.0.mlp.fc1.bias": 1}, "vit"))
    ['vit.encoder.layer.0.intermediate.dense.bias']
    """
    if model_type == "vit":
        return {_vit_name(name): tensor for name, tensor in state.items()}
    if model_type == "gpt_neox" and "embed_out.weight" not in state:
        return {"embed_out.weight" if name == "lm_head.weight" else name: tensor for name, tensor in state.items()}
    if model_type in ("deepseek_v2", "deepseek_v3"):
        return _split_experts(state)
    return state


def _vit_name(name: str) -> str:
    found = re.fullmatch(r"((?:vit\.)?)layers\.(\d+)\.(.+)\.(weight|bias)", name)
    if found is None:
        return name
    prefix, layer, module, part = found.groups()
    return f"{prefix}encoder.layer.{layer}.{VIT.get(module, module)}.{part}"


def _split_experts(state: Mapping[str, Any]) -> dict[str, Any]:
    """Experts stored in one tensor (gate rows over up rows), as one tensor each."""
    found: dict[str, Any] = {}
    for name, tensor in state.items():
        if name.endswith("mlp.experts.gate_up_proj"):
            half = int(tensor.shape[1]) // 2
            base = name.removesuffix("gate_up_proj")
            for e in range(int(tensor.shape[0])):
                found[f"{base}{e}.gate_proj.weight"] = tensor[e, :half]
                found[f"{base}{e}.up_proj.weight"] = tensor[e, half:]
        elif name.endswith("mlp.experts.down_proj"):
            base = name.removesuffix("down_proj")
            for e in range(int(tensor.shape[0])):
                found[f"{base}{e}.down_proj.weight"] = tensor[e]
        else:
            found[name] = tensor
    return found


def to_live_names(moved: Mapping[str, Array], state: Mapping[str, Any], model_type: Any) -> dict[str, Array]:
    """Tensors of a checkpoint under the names that a live state dict has, experts joined as they are there.

    >>> list(to_live_names({"embed_out.weight": np.ones(1)}, {"lm_head.weight": 1}, "gpt_neox"))
    ['lm_head.weight']
    """
    found = dict(moved)
    for name in state:
        base = name.removesuffix("gate_up_proj").removesuffix("down_proj")
        if name.endswith(("mlp.experts.gate_up_proj", "mlp.experts.down_proj")) and f"{base}0.up_proj.weight" in moved:
            parts = ("gate_proj", "up_proj") if name.endswith("gate_up_proj") else ("down_proj",)
            rows = [[moved[f"{base}{e}.{part}.weight"] for part in parts] for e in range(len(state[name]))]
            found[name] = np.stack([np.concatenate(row) for row in rows])
        elif name not in moved and model_type in ("vit", "gpt_neox"):
            (disk,) = to_disk_names({name: None}, model_type)
            if disk in found and disk not in state:
                found[name] = found.pop(disk)
    joined = {name for name in found if re.search(r"mlp\.experts\.\d+\.", name) and name not in state}
    whole = any(name.endswith("mlp.experts.gate_up_proj") for name in state)
    return {name: tensor for name, tensor in found.items() if not (whole and name in joined)}
