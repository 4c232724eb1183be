"""Attention weights of other libraries: torch ``nn.MultiheadAttention`` and Hugging Face style projections.

Only bias-free attention without position encoding is modelled. A checkpoint that holds anything else is refused,
because the weights that are left compute another function; :mod:`attngeom.models` knows whole transformers. Who wants
the attention weights alone says ``idealised``, and then everything that was left out is named and stored.

And back: weights in the state dict of the library that they came from, in its names, shapes and types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import RR
from attngeom.files import read_json
from attngeom.interop.layouts import LAYOUTS, Projections, attention_blocks
from attngeom.interop.weights import TensorFile, as_float64, open_tensors
from attngeom.network import Architecture, Head, Weights
from attngeom.network.attention import find_kind

if TYPE_CHECKING:
    from attngeom.models.rewriting import Rewrite


ROTARY = "rotary position embedding"
SETTINGS = {
    "rope_theta": ROTARY,
    "rope_scaling": ROTARY,
    "rope_parameters": ROTARY,
    "rotary_pct": ROTARY,
    "rotary_dim": ROTARY,
    "rotary_emb_base": ROTARY,
    "attn_logit_softcapping": "bounded scores",
    "query_pre_attn_scalar": "a scale of the scores other than 1/√a",
    "alibi": "position encoding",
    "is_encoder_decoder": "cross-attention",
    "sliding_window": "a window of attention",
}
"""Settings of config.json that change the function, and what they are."""
TENSORS = {
    r"rotary|rope|inv_freq": ROTARY,
    r"(^|\.)sink[^.]*$": "attention sink",
    r"encoder_attn|EncDecAttention|crossattention": "cross-attention",
    r"(^|\.)bias_[kv]$|bias$": "bias",
    r"norm|\.ln|^ln": "normalization",
    r"relative|alibi|position|wpe": "position encoding",
    r"": "not an attention projection of the chosen blocks",
}
"""What a tensor is that no attention projection is made of, by its name; the first that fits."""


@dataclass(frozen=True, eq=False)
class CheckpointImport:
    """The weights, the blocks they come from, and what the algebra does not model.

    ``unmodelled`` maps each tensor or setting that was left out to the reason. With ``kind`` softmax the usual factor
    1/√a is multiplied into Q, so that scores are x_jᵀ Kᵀ Q x_i as everywhere in attngeom.
    """

    weights: Weights
    blocks: tuple[str, ...]
    unmodelled: Mapping[str, str]

    def __repr__(self) -> str:
        left = f", {len(self.unmodelled)} parts not modelled" if self.unmodelled else ""
        return f"CheckpointImport({self.weights!r}{left})"


def import_state(
    state: Any,
    heads: int | None = None,
    key_value_heads: int | None = None,
    blocks: Sequence[int] | None = None,
    kind: str = "softmax",
    causal: bool | None = None,
    residual: bool | None = None,
    tokens: int = 3,
    config: Mapping[str, Any] | None = None,
    idealised: bool = False,
) -> CheckpointImport:
    """Weights from a state dict of NumPy arrays or torch tensors, from a module that has one, or from an open file.

    ``blocks`` picks attention blocks by their place in the checkpoint (default: all, stacked as layers of one
    network). Grouped-query attention (fewer key-value heads) repeats keys and values for the heads of a group. What is
    not given is taken from the module or its configuration: heads, mask and skip connection.
    """
    if config is None:
        config = configuration_of(state)
    if heads is None and isinstance(own := getattr(state, "num_heads", None), int):
        heads = own
    source, shapes, load = _tensors(state)
    heads = heads if heads is not None else _config_int(config, "num_attention_heads", "n_head")
    if heads is None:
        raise InputError(f"the number of heads is not known for {source}; give it, or put config.json beside the file")
    if key_value_heads is None:
        key_value_heads = _config_int(config, "num_key_value_heads")
    if heads < 1 or (key_value_heads is not None and (key_value_heads < 1 or heads % key_value_heads)):
        raise InputError(f"{heads} heads and {key_value_heads} key-value heads given; the second must divide the first")
    layouts = attention_blocks(shapes)
    if not layouts:
        known = "; ".join(layout.describe() for layout in LAYOUTS)
        raise InputError(f"no attention weights found among {len(shapes)} tensors; known layouts: {known}")
    chosen = range(len(layouts)) if blocks is None else blocks
    if any(not 0 <= index < len(layouts) for index in chosen):
        raise InputError(f"blocks {list(chosen)} given; the checkpoint has blocks 0 to {len(layouts) - 1}")
    parts, used = [], set()
    for index in chosen:
        block = layouts[index]
        parts.append(block.layout.load(block.prefix, load))
        used |= set(block.names)
    layers, attention, value_width = _cut_heads(parts, heads, key_value_heads, kind)
    widths = [parts[0].Q.shape[1], *(part.O.shape[0] for part in parts)]
    causal = _is_causal(config) if causal is None else causal
    residual = "model_type" in config if residual is None else residual
    architecture = Architecture(widths, attention, tokens, kind, heads, value_width, residual, causal)
    unmodelled = {name: _what_is(name) for name in shapes if name not in used}
    unmodelled |= {f"config {key}": reason for key, reason in SETTINGS.items() if config.get(key) not in (None, False)}
    if any(part.K.shape[0] < part.Q.shape[0] for part in parts):
        unmodelled["keys and values"] = "shared by groups of heads, repeated here"
    if unmodelled and not idealised:
        name, reason = next(iter(unmodelled.items()))
        raise InputError(
            f"{name[:60]} ({reason}) and {len(unmodelled) - 1} more are not modelled; use attngeom model for the whole"
            " model, or --idealised (idealised=True) for its attention weights alone"
        )
    names = tuple(layouts[index].prefix for index in chosen)
    return CheckpointImport(Weights(architecture, RR, layers), names, unmodelled)


def _tensors(state: Any) -> tuple[str, Mapping[str, tuple[int, ...]], Callable[[str], Array]]:
    """The name of a state, the shapes of its tensors, and what loads one of them."""
    if isinstance(state, TensorFile):
        return str(state.path), state.shapes, state.load
    tensors = state_of(state)
    shapes = {name: tuple(np.shape(tensor)) for name, tensor in tensors.items()}
    return "the state", shapes, lambda name: as_float64(tensors[name], name)


def state_of(state: Any) -> Mapping[str, Any]:
    """The state dict of a module, or the mapping itself."""
    tensors = state.state_dict() if hasattr(state, "state_dict") else state
    if not isinstance(tensors, Mapping):
        raise InputError(
            f"{type(state).__name__} given; a state dict or a module with one is required (files: import_checkpoint,"
            " folders: models.open_model)"
        )
    return tensors


def configuration_of(module: Any) -> Mapping[str, Any]:
    """The configuration that a module carries, as a dictionary; empty where there is none."""
    configuration: Any = getattr(module, "config", None)
    if hasattr(configuration, "to_dict"):
        configuration = configuration.to_dict()
    return configuration if isinstance(configuration, Mapping) else {}


def import_checkpoint(
    path: str | Path,
    heads: int | None = None,
    key_value_heads: int | None = None,
    blocks: Sequence[int] | None = None,
    kind: str = "softmax",
    causal: bool | None = None,
    residual: bool | None = None,
    tokens: int = 3,
    idealised: bool = False,
) -> CheckpointImport:
    """Weights from a safetensors file; heads, mask and skip come from ``config.json`` beside it unless given."""
    path = Path(path)
    find_kind(kind)
    if path.is_dir():
        raise InputError(f"{path} is a folder; whole models are read by attngeom model, import takes one file of them")
    beside = path.with_name("config.json")
    config = read_json(beside) if beside.is_file() else {}
    if not isinstance(config, dict):
        raise InputError(f"{beside}: a JSON object is required")
    with open_tensors(path) as stream:
        return import_state(stream, heads, key_value_heads, blocks, kind, causal, residual, tokens, config, idealised)


def _config_int(config: Mapping[str, Any], *keys: str) -> int | None:
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _is_causal(config: Mapping[str, Any]) -> bool:
    """Whether the model of a configuration has a mask; bare attention blocks, without a model, have none."""
    if "model_type" not in config:
        return False
    # Every command reads weights by way of this package, and the room of models is slow to import.
    from attngeom.models.families import specify

    try:
        kinds = [kind for stack in specify(config).stacks for kind in stack.kinds]
    except InputError as error:
        raise InputError(
            f"the mask cannot be read from config.json ({str(error)[:110]}); say whether it is causal"
        ) from None
    masks = {kind.attention.causal for kind in kinds if kind.attention is not None}
    if len(masks) != 1:
        raise InputError("config.json has masked and unmasked attention; say whether the chosen blocks are causal")
    return masks.pop()


def score_scale(kind: str, width: int) -> float:
    """What other libraries multiply the scores with, and attngeom keeps in Q."""
    return 1.0 if not find_kind(kind).has_temperature else float(1 / np.sqrt(width))


def _cut_heads(
    parts: Sequence[Projections], heads: int, key_value_heads: int | None, kind: str
) -> tuple[tuple[tuple[Head, ...], ...], list[int], int]:
    """Cut the projections of each block into heads, repeating shared keys and values."""
    layers, attention, value_widths = [], [], set()
    for part in parts:
        if part.Q.shape[0] % heads or part.O.shape[1] % heads:
            raise InputError(f"{heads} heads given for {part.Q.shape[0]} query rows; the heads must divide them")
        width, value_width = part.Q.shape[0] // heads, part.O.shape[1] // heads
        groups = part.K.shape[0] // width
        if key_value_heads is not None and groups != key_value_heads:
            raise InputError(f"{key_value_heads} key-value heads given; the weights hold {groups} of width {width}")
        if groups * width != part.K.shape[0] or groups < 1 or heads % groups or part.V.shape[0] != groups * value_width:
            raise InputError(
                f"{heads} heads given; key shape {part.K.shape} and value shape {part.V.shape} do not fit them"
            )
        attention.append(width)
        value_widths.add(value_width)
        queries, outputs = np.split(part.Q * score_scale(kind, width), heads), np.split(part.O, heads, axis=1)
        keys, values = (np.repeat(np.split(x, groups), heads // groups, axis=0) for x in (part.K, part.V))
        layers.append(tuple(map(Head, queries, keys, values, outputs)))
    if len(value_widths) > 1:
        raise InputError(f"value widths {sorted(value_widths)} found; all blocks of one network need the same")
    return tuple(layers), attention, value_widths.pop()


def _what_is(name: str) -> str:
    return next(what for marks, what in TENSORS.items() if re.search(marks, name))


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
