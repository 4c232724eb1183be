"""What a specification says about the function, apart from how a file stores it: for comparisons and fingerprints."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attngeom.models.specification import TransformerBlock, TransformerSpec

STORAGE = frozenset(
    {
        "family", "layout", "groups", "query_bias", "key_bias", "value_bias", "output_bias", "up_bias", "down_bias",
        "router_bias", "offset", "gain", "bias", "shared_norm", "other_parameters", "tied", "order", "scale",
        "amplitude", "heads_scale", "residual_scale", "scales_outputs",
    }
)  # fmt: skip
"""Fields that name storage, or constants that are multiplied into the weights before they are compared."""

LATER = frozenset(
    {
        "relative",
        "output_gate",
        "least_step",
        "chunk",
        "temperature",
        "scales_inputs",
        "nearness",
        "reflects",
        "slowing",
        "gate",
        "beside",
        "disentangled",
        "path",
        "embedding_width",
        "distances",
        "distance_norm",
    }
)
"""Options that have no setting where they are absent: fingerprints do not change with the options that are known."""

HARMLESS = frozenset(
    {
        "_name_or_path", "architectures", "auto_map", "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id",
        "decoder_start_token_id", "sep_token_id", "cls_token_id", "mask_token_id", "torch_dtype", "dtype",
        "quantization_config",
        "transformers_version", "use_cache", "initializer_range", "init_std", "initializer_factor", "attention_dropout",
        "hidden_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "embd_pdrop",
        "attn_pdrop", "dropout", "activation_dropout", "dropout_rate", "layerdrop", "encoder_layerdrop",
        "decoder_layerdrop", "classifier_dropout", "pretraining_tp", "output_router_logits", "router_aux_loss_coef",
        "task_specific_params", "id2label", "label2id", "problem_type", "gradient_checkpointing", "num_labels",
        "suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id", "output_attentions",
        "output_hidden_states", "return_dict", "is_encoder_decoder", "max_position_embeddings", "n_ctx",
        "reorder_and_upcast_attn", "slow_but_exact", "summary_type", "summary_use_proj", "summary_activation",
        "summary_first_dropout", "summary_proj_to_labels", "ep_size", "seq_aux", "aux_loss_alpha", "max_length",
        "num_nextn_predict_layers", "mask_feature_length", "mask_feature_prob", "mask_feature_min_masks",
        "mask_time_prob", "mask_time_length", "mask_time_min_masks", "apply_spec_augment", "chunk_size_feed_forward",
        "encoder_stride", "pooler_act", "pooler_output_size", "median_filter_width", "classifier_proj_size",
        "use_weighted_layer_sum", "chunk_size", "mamba_chunk_size", "time_step_min", "time_step_max",
        "time_step_floor", "time_step_rank", "rescale_prenorm_residual", "z_loss_coefficient", "num_logits_to_keep",
    }
)  # fmt: skip
"""Keys of config.json that do not change the function of the weights on given inputs."""


def flatten(value: Any, name: str = "") -> dict[str, Any]:
    """Nested descriptions as dotted names with plain values.

    >>> flatten({"a": {"b": 1}, "c": [2]})
    {'a.b': 1, 'c': [2]}
    """
    if isinstance(value, Mapping):
        flat: dict[str, Any] = {}
        for key, item in value.items():
            flat |= flatten(item, f"{name}.{key}" if name else str(key))
        return flat
    return {name: list(value) if isinstance(value, tuple) else value}


def block_settings(block: TransformerBlock) -> dict[str, Any]:
    """The constants of a block that change its function, storage left out."""
    settings = {key: value for key, value in flatten(block.to_json()).items() if not _is_storage(key)}
    absent = {key for key in settings if block.mixer is None and key.startswith("mixer")}
    absent |= {key for key, value in settings.items() if key.split(".")[-1] in LATER and value in (None, False)}
    return {key: value for key, value in settings.items() if key not in absent}


def _is_storage(key: str) -> bool:
    return key.split(".")[-1] in STORAGE


def model_settings(spec: TransformerSpec) -> dict[str, Any]:
    """All constants of the function: one entry per name, a list over the layers where they differ."""
    settings: dict[str, Any] = {
        "width": spec.width,
        "vocabulary": spec.vocabulary,
        "embedding_scale": spec.embedding_scale,
    }
    if spec.head is not None:
        settings |= {f"head.{name}": getattr(spec.head, name) for name in ("scale", "softcap", "outputs")}
    else:
        settings["head"] = None
    for stack in spec.stacks:
        outer = {key: value for key, value in stack.to_json().items() if key not in ("kinds", "order", "name")}
        outer = {key: value for key, value in outer.items() if value or key not in LATER}
        settings |= {f"{stack.name}.{k}": v for k, v in flatten(outer).items() if not _is_storage(k)}
        settings[f"{stack.name}.layers"] = len(stack)
        tables = [block_settings(block) for block in stack.blocks]
        for key in sorted({key for table in tables for key in table}):
            values = [table.get(key) for table in tables]
            same = all(value == values[0] for value in values)
            settings[f"{stack.name}.{key}"] = values[0] if same else values
    return settings


def settings_differences(one: TransformerSpec, other: TransformerSpec) -> dict[str, list[Any]]:
    """Constants of the function that differ, each with both values."""
    left, right = model_settings(one), model_settings(other)
    keys = sorted(left.keys() | right.keys())
    return {key: [left.get(key), right.get(key)] for key in keys if left.get(key) != right.get(key)}


SIZES = frozenset(
    {"width", "vocabulary", "layers", "heads", "head_dim", "value_dim", "count", "active", "dims", "positions",
     "token_types", "outputs", "key_rank", "query_rank", "head"}
)  # fmt: skip
"""Last words of settings that say how many of something there are."""


def is_size(key: str, pair: Sequence[Any]) -> bool:
    """Whether a setting is a size, or one of the models does not have it.

    >>> is_size("decoder.mlp.width", [8, 12]), is_size("decoder.final_norm.eps", [1e-5, 1e-6])
    (True, False)
    """
    return key.split(".")[-1] in SIZES or (None in pair and key.split(".")[-1] not in OPTIONAL)


OPTIONAL = frozenset({"window", "softcap", "limit", "chunk", "temperature"})
"""Constants that may be absent, which says as much as a value."""


def unknown_differences(one: Mapping[str, Any], other: Mapping[str, Any], read: Collection[str]) -> list[str]:
    """Keys that differ and that neither description has read; a family as such changes nothing."""
    return [key for key in storage_differences(one, other) if key not in read and key != "model_type"]


def head_differences(one: Mapping[str, Any], other: Mapping[str, Any], apart: Collection[str]) -> list[str]:
    """Keys that change what is behind the final hidden states, where the files have tensors for it."""
    listed = [config.get("architectures") for config in (one, other)]
    names = [name for given in listed if isinstance(given, list) for name in given if isinstance(name, str)]
    behind = {"pooler_act": any("pooler." in name for name in apart)}
    summary = any("multiple_choice_head." in name for name in apart)
    behind |= {f"summary_{word}": summary for word in ("type", "activation", "use_proj", "proj_to_labels")}
    behind["pad_token_id"] = any("SequenceClassification" in name for name in names)
    return [key for key, counts in behind.items() if counts and one.get(key) != other.get(key)]


def storage_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Keys of two config.json that differ and are not known to be harmless."""
    keys = sorted((one.keys() | other.keys()) - HARMLESS)
    return {key: [one.get(key), other.get(key)] for key in keys if one.get(key) != other.get(key)}
