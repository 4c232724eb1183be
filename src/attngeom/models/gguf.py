"""GGUF files as checkpoints of the Hugging Face model that they were made from: names, orders of rows, types.

A converter renames every tensor and changes some: it stores the query and key rows of Llama pair by pair, adds the one
that Gemma leaves out of its gains, turns the transposed matrices of GPT-2. Here every tensor is given back as the
folder has it, so that all questions about models can be asked of the file. The file does not hold all that fixes the
function, so the configuration comes from the folder, or lies beside the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from attngeom.errors import FormatError, InputError
from attngeom.exact.arrays import Array
from attngeom.models.comparison import ModelComparison, compare
from attngeom.models.model import Model, assemble
from attngeom.models.reading import BLOCK_TYPES, DTYPES, Header, Tensors

RowOrder = Literal["pairs", "halves"]
"""How the query and key rows of a file with interleaved rotation lie: as converters put them, or as in the folder."""

LLAMA = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GPT2 = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
GEMMA2 = {
    **LLAMA,
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


@dataclass(frozen=True)
class Conversion:
    """What converters make of one family: ``architecture`` in the file, names below a layer and outside of them.

    ``pairs``: query and key rows are stored pair by pair; ``offset`` is added to gains; ``transposed``: matrices of
    layers are stored so.
    """

    architecture: str
    names: Mapping[str, str]
    layer: str = "model.layers.{}."
    pairs: bool = False
    offset: float = 0.0
    transposed: bool = False


CONVERSIONS: Mapping[str, Conversion] = {
    "llama": Conversion("llama", LLAMA, pairs=True),
    "mistral": Conversion("llama", LLAMA, pairs=True),
    "qwen2": Conversion("qwen2", LLAMA),
    "qwen3": Conversion("qwen3", LLAMA),
    "phi3": Conversion("phi3", {**LLAMA, "ffn_up": "mlp.gate_up_proj"}),
    "gemma": Conversion("gemma", LLAMA, offset=1.0),
    "gemma2": Conversion("gemma2", GEMMA2, offset=1.0),
    "gemma3_text": Conversion("gemma3", GEMMA2, offset=1.0),
    "gpt2": Conversion("gpt2", GPT2, layer="transformer.h.{}.", transposed=True),
}
"""By the model type of the folder."""

IGNORED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Tables of frequencies, which the configuration fixes."""


def open_gguf(path: str | Path, config: Mapping[str, Any], order: RowOrder = "pairs") -> Model:
    """The model of a GGUF file, with the configuration of the folder that it was made from.

    ``order`` says how query and key rows lie in a file whose converter should have changed their order (Llama).
    """
    place = Path(path)
    return assemble(_tensors(place, config, order), config, place.parent)


def _tensors(place: Path, config: Mapping[str, Any], order: RowOrder) -> Tensors:
    """The tensors of a file under the names, and in the form, of the folder."""
    if not place.is_file():
        raise InputError(f"{place} does not exist; give a GGUF file")
    conversion = CONVERSIONS.get(str(config.get("model_type")))
    if conversion is None:
        known = ", ".join(CONVERSIONS)
        raise InputError(f"GGUF of model_type {str(config.get('model_type'))[:40]!r} given; known: {known}")
    reader = _read(place)
    written = _architecture(reader)
    if written != conversion.architecture:
        given = f"{place}: architecture {written[:40]!r} beside model_type {config.get('model_type')!r} given"
        raise InputError(f"{given}; {conversion.architecture!r} is required")
    headers, fetchers = {}, {}
    for tensor in reader.tensors:
        if tensor.name in IGNORED:
            continue
        name, kind = _name(tensor.name, conversion), tensor.tensor_type.name
        shape = tuple(int(n) for n in reversed(tensor.shape))
        turns = conversion.transposed and len(shape) == 2 and tensor.name.startswith("blk.")
        headers[name] = Header(shape[::-1] if turns else shape, kind, place.name)
        fetchers[name] = _fetcher(tensor, name, conversion, config, order)
    again = _tensors, (place, dict(config), order)
    return Tensors(headers, lambda name: fetchers[name](), str(place), again)


def _read(path: Path) -> Any:
    try:
        from gguf import GGUFReader
    except ImportError:
        raise InputError("a GGUF file given; install what reads it: pip install 'attngeom[gguf]'") from None
    try:
        return GGUFReader(str(path))
    except Exception as error:  # the package raises what it meets in a broken file
        raise FormatError(f"{path}: not a whole GGUF file: {str(error)[:80]}") from None


def _architecture(reader: Any) -> str:
    field = reader.fields.get("general.architecture")
    return "" if field is None else bytes(field.parts[field.data[0]]).decode("utf-8", "replace")


def _name(stored: str, conversion: Conversion) -> str:
    """The name in the folder of a tensor of the file; unknown ones keep theirs."""
    module, _, part = stored.rpartition(".")
    prefix = ""
    if module.startswith("blk."):
        _, layer, module = module.split(".", 2) if module.count(".") >= 2 else ("", "", "")
        prefix = conversion.layer.format(layer)
    return f"{prefix}{conversion.names[module]}.{part}" if module in conversion.names else stored


def _fetcher(
    tensor: Any, name: str, conversion: Conversion, config: Mapping[str, Any], order: RowOrder
) -> Callable[[], Array]:
    def fetch() -> Array:
        array = _values(tensor)
        if conversion.pairs and order == "pairs" and name.rpartition(".")[0].endswith(("q_proj", "k_proj")):
            heads = config.get("num_attention_heads") if ".q_proj." in name else config.get("num_key_value_heads")
            return _halves(array, int(heads or config["num_attention_heads"]))
        if conversion.offset and "norm" in name:
            return np.asarray(array - array.dtype.type(conversion.offset))
        if conversion.transposed and array.ndim == 2 and tensor.name.startswith("blk."):
            return np.ascontiguousarray(array.T)
        return array

    return fetch


def _values(tensor: Any) -> Array:
    kind = tensor.tensor_type.name
    shape = tuple(int(n) for n in reversed(tensor.shape))
    if kind == "BF16":
        return np.asarray(np.asarray(tensor.data).view(DTYPES["BF16"]).reshape(shape))
    if kind in DTYPES:
        return np.asarray(tensor.data).reshape(shape)
    if kind in BLOCK_TYPES:
        from gguf.quants import dequantize

        return np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32).reshape(shape)
    raise InputError(f"tensor {tensor.name[:60]} of type {kind} given; known: {', '.join((*DTYPES, *BLOCK_TYPES))}")


def _halves(rows: Array, heads: int) -> Array:
    """Rows 0, 1, 2, … of every head that were stored pair by pair, first all firsts, then all seconds.

    >>> _halves(np.arange(4)[:, None], 1).ravel().tolist()
    [0, 2, 1, 3]
    """
    if heads <= 0 or rows.shape[0] % (2 * heads):
        raise FormatError(f"{rows.shape[0]} rows of {heads} heads given; an even number for each head is required")
    split = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2).reshape(rows.shape))


def compare_gguf(model: Model, path: str | Path, **options: Any) -> ModelComparison:
    """Whether a GGUF file computes the function of the folder that it was made from; options as for `compare`.

    Where it does not, the rows of queries and keys are tried in the order of the folder: the classic fault of
    converters, and the reason names it.
    """
    comparison = compare(model, open_gguf(path, model.config), **options)
    if comparison.same_function or not CONVERSIONS[str(model.config.get("model_type"))].pairs:
        return comparison
    other = compare(model, open_gguf(path, model.config, order="halves"), **options)
    if not other.same_function:
        return comparison
    fault = "query and key rows lie as in the folder, not pair by pair: the converter did not change their order"
    return replace(comparison, same_function=False, standing="estimate", reason=f"{fault}; {comparison.reason}")
