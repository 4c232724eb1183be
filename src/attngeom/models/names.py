"""The tensor of a checkpoint that holds a part of a layer, for messages that name what is wrong."""

from __future__ import annotations

from attngeom.models.layout import AttentionLayout, MLPLayout
from attngeom.models.model import Model
from attngeom.models.specification import Experts


def tensor_name(model: Model, layer: int, part: str) -> str:
    """The name on disk of ``query``, ``cross.value_bias``, ``experts.3.down``, ``norm mlp.input`` and so on.

    A bias that the file has no place for was folded out of the norm that the map reads, or is seen through the map.
    """
    model, layer = model.origin(layer)
    stack, index = model.place(layer)
    layout = model.places.blocks[stack.name]
    prefix = layout.prefix.format(index)
    if part.startswith("norm "):
        bias = part.startswith("norm bias ")
        key = part.split()[-1]
        name = f"{layout.norms.get(key, key)}.{'bias' if bias else 'weight'}"
    elif part.startswith("cross.") and layout.cross is not None:
        name = _attention_name(layout.cross, part.removeprefix("cross."))
    elif isinstance(stack.block(index).mlp, Experts) and _is_mlp(part):
        name = _expert_name(layout.experts or layout.mlp, part)
    elif _is_mlp(part):
        name = _mlp_name(layout.mlp, part)
    else:
        name = _attention_name(layout.attention, part)
    stored = model.stored(prefix + name)
    if file_name(stored) in model.tensors or not part.endswith("_bias"):
        return stored
    place = "mlp" if _is_mlp(part) else "cross" if part.startswith("cross.") else "attention"
    norm = model.stored(f"{prefix}{layout.norms.get(f'{place}.input', '')}.bias")
    return norm if norm in model.tensors else tensor_name(model, layer, part.removesuffix("_bias"))


def file_name(name: str) -> str:
    """The tensor of a name with the rows that are meant.

    >>> file_name("attn.c_attn.weight (query rows)")
    'attn.c_attn.weight'
    """
    return name.partition(" (")[0]


def _is_mlp(part: str) -> bool:
    words = ("gate", "up", "down", "router", "experts", "shared", "correction")
    return part.split(".")[0].removesuffix("_bias") in words


def _attention_name(layout: AttentionLayout, part: str) -> str:
    if part in ("query_gain", "key_gain"):
        return f"{layout.query_norm if part == 'query_gain' else layout.key_norm}.weight"
    if part in layout.extras:
        return layout.extras[part]
    ending = "bias" if part.endswith("_bias") else "weight"
    base = part.removesuffix("_bias")
    if layout.packing == "latent":
        latent = {
            "query": layout.fused or layout.query, "key": layout.value, "value": layout.value,
            "rotated_key": layout.key_down, "query_latent": layout.query_down, "key_latent": layout.key_down,
            "output": layout.output,
        }  # fmt: skip
        return f"{latent[base]}.{ending}"
    if base == "output":
        return f"{layout.output}.{ending}"
    if layout.packing == "split":
        return f"{getattr(layout, base.removeprefix('rotated_'))}.{ending}"
    return f"{layout.fused}.{ending} ({base} rows)"


def _mlp_name(layout: MLPLayout, part: str) -> str:
    ending = "bias" if part.endswith("_bias") else "weight"
    base = part.removesuffix("_bias")
    if layout.packing == "fused" and base in ("gate", "up"):
        return f"{layout.up}.{ending} ({base} rows)"
    return f"{getattr(layout, base)}.{ending}"


def _expert_name(layout: MLPLayout, part: str) -> str:
    if part in ("router", "router_bias"):
        return f"{layout.router}.{'bias' if part.endswith('bias') else 'weight'}"
    if part == "correction":
        return layout.correction
    if part.startswith("shared."):
        return layout.shared + _mlp_name(layout, part.removeprefix("shared."))
    _, expert, rest = part.split(".", 2)
    if layout.packing == "packed_experts":
        name = layout.down if rest.startswith("down") else layout.up
        return f"{name}{'_bias' if rest.endswith('_bias') else ''} (expert {expert}, {rest.removesuffix('_bias')})"
    return layout.expert.format(expert) + _mlp_name(layout, rest)
