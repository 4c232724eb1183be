"""The float pass and the programs of blocks are written apart, and give the same numbers."""

from pathlib import Path

import numpy as np
import pytest

import attngeom
from attngeom.exact.arrays import Array
from attngeom.models.evaluation import apply_layer
from attngeom.models.layer import AttentionWeights, ExpertsWeights, LayerWeights, MLPWeights
from attngeom.models.programs import block_program
from attngeom.models.specification import GroupedAttention, TransformerBlock
from attngeom.programs.arithmetic import RealArithmetic
from attngeom.programs.operations import Point
from attngeom.programs.passes import run, value
from tests.models.cases import reference

FAMILIES = ("llama", "gpt2", "qwen3", "olmo2", "gemma2", "cohere", "gptj", "bloom", "falcon", "mixtral", "gpt_oss",
            "granitemoeshared", "nemotron", "deepseek_v2", "deepseek_v3", "deepseek_biased")  # fmt: skip
TOKENS = 4
Tensors = dict[str, Array]


def of_attention(name: str, spec: GroupedAttention, own: AttentionWeights) -> Tensors:
    """The weights of an attention by the names and in the shapes of programs."""
    tensors: Tensors = {f"{name}.output": own.output, f"{name}.output_bias": own.output_bias}
    sides = {"query": (own.rotated_query, own.query), "value": (own.value,)}
    if spec.latent is None:
        sides["key"] = (own.rotated_key, own.key)
    else:
        sides |= {"key": (own.key,), "key_rotated": (own.rotated_key,)}
        for latent, weights in (("query_latent", own.query_latent), ("key_latent", own.key_latent)):
            if weights is not None:
                tensors |= {f"{name}.{latent}": weights.down.weight, f"{name}.{latent}.gain": weights.gain}
                tensors[f"{name}.{latent}_bias"] = weights.down.bias
    for side, parts in sides.items():
        rows = [x for part in parts for x in ((part.weight.real, part.weight.imag) if part.weight.dtype.kind == "c"
                                              else (part.weight,))]  # fmt: skip
        shifts = [x for part in parts for x in ((part.bias.real, part.bias.imag) if part.bias.dtype.kind == "c"
                                                else (part.bias,))]  # fmt: skip
        tensors |= {f"{name}.{side}": np.concatenate(rows, axis=1)}
        tensors |= {f"{name}.{side}_bias": np.concatenate(shifts, axis=1)}
    named = ("query_gain", "key_gain", "query_shift", "key_shift", "sinks")
    others = {part: getattr(own, part) for part in named}
    return tensors | {f"{name}.{part}": numbers for part, numbers in others.items() if numbers is not None}


def of_units(name: str, own: MLPWeights) -> Tensors:
    tensors = {f"{name}.up": own.up.weight, f"{name}.up_bias": own.up.bias}
    if own.gate is not None:
        tensors |= {f"{name}.gate": own.gate.weight, f"{name}.gate_bias": own.gate.bias}
    return tensors | {f"{name}.down": own.down, f"{name}.down_bias": own.down_bias}


def stored_tensors(block: TransformerBlock, layer: LayerWeights) -> Tensors:
    tensors: Tensors = {}
    for place, own in layer.attentions.items():
        tensors |= of_attention(place, block.attentions[place], own)
    if isinstance(layer.mlp, ExpertsWeights):
        tensors |= {"mlp.router": layer.mlp.router.weight, "mlp.router_bias": layer.mlp.router.bias}
        names = [f"mlp.{number}" for number in range(len(layer.mlp.experts))] + ["mlp.shared"]
        tensors |= {n: x for name, own in zip(names, layer.hidden.values()) for n, x in of_units(name, own).items()}
    else:
        assert layer.mlp is not None
        tensors |= of_units("mlp", layer.mlp)
    for name, norm in layer.norms.items():
        tensors |= {f"{name}.gain": norm.gain, f"{name}.bias": norm.bias}
    return tensors


@pytest.mark.parametrize("family", FAMILIES)
def test_the_float_pass_is_the_program_of_the_block(family: str) -> None:
    model = reference(family)
    number = next(n for n in range(model.layers) if model.block(n).attention is not None)
    block, layer, width = model.block(number), model.layer(number), model.spec.width
    program = block_program(block, width, weights="stored", tokens=TOKENS)
    x = np.random.default_rng(3).normal(size=(TOKENS, width))
    tensors = stored_tensors(block, layer)
    tensors = {name: tensors[name].reshape(shape)[None] for name, shape in program.parameters.items()}
    # x1 stands in front, x0 is the last token.
    tensors |= {f"x{(place + 1) % TOKENS}": x[None, place] for place in range(TOKENS)}
    result = value(program, run(program, Point(RealArithmetic(), tensors)))
    assert result.ravel() == pytest.approx(apply_layer(x, block, layer)[-1], rel=1e-9, abs=1e-9)


def test_nothing_but_witnesses_evaluates_models() -> None:
    """Of whole models, their layers and pairs of towers: no search of symmetries looks at outputs."""
    room = Path(attngeom.__file__).parent
    users = {str(path.relative_to(room)) for path in room.rglob("*.py") if "models.evaluation" in path.read_text()}
    assert users == {"models/__init__.py", "models/pair_comparison.py", "models/witness.py"}
