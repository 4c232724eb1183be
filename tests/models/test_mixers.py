"""Recurrent mixers and gated outputs: their groups by rank, what is not free, faults that are named, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.models import compare, open_model, teleport
from attngeom.models.affine import Affine
from attngeom.models.counts.redundancy import block_redundancy, redundancy
from attngeom.models.evaluation import apply_layer
from attngeom.models.families import specify
from attngeom.models.families.contract import block_of, plain_attention
from attngeom.models.mixers import RecurrentMixer
from attngeom.models.programs import block_program
from attngeom.models.specification import MLP, GroupedAttention, Norm, Norms, QKNorm, TransformerBlock
from attngeom.rank.lower import bound_rank
from tests.models.cases import expected, in_type, outputs, reference, relative, state_of

NORM = Norm(kind="rms", eps=1e-5)
SMALL = {"heads": 2, "groups": 1, "head_dim": 2, "value_dim": 2, "taps": 2, "norm": NORM}
KINDS = {
    "ssd": RecurrentMixer(rule="ssd", norm_over="group", gates_first=True, conv_bias=True, **SMALL),
    # With both biases of a query its two constants are told apart by the first tokens, not by the last one alone.
    "ssd with biases": RecurrentMixer(
        rule="ssd", norm_over="group", gates_first=True, bias=True, output_bias=True, **SMALL
    ),
    "delta": RecurrentMixer(rule="delta", norm_over="head", shares_gains=True, **SMALL),
    "lightning": RecurrentMixer(
        rule="lightning", norm_over="all", gate="sigmoid", slowing=0.5, **{**SMALL, "groups": 2, "taps": 1}
    ),
    "lru": RecurrentMixer(
        rule="lru", norm_over="head", gate="gelu_tanh", bias=True, conv_bias=True, output_bias=True,
        **{**SMALL, "groups": 2, "norm": None},
    ),
}  # fmt: skip
CONVOLVED = ("mamba2", "bamba", "granitemoehybrid", "nemotron_h", "qwen3_next", "qwen3_5_text")
HYBRIDS = (*CONVOLVED, "minimax", "recurrent_gemma")


@pytest.mark.parametrize("kind", KINDS)
def test_the_rank_of_small_mixers_is_the_count(kind):
    """Formal rank mod p at κ + 2 tokens: a lower bound if exponentials of logarithms are independent.

    Of RG-LRU at κ tokens, as each has a root for every channel.
    """
    block = TransformerBlock(attention=None, mlp=None, mixer=KINDS[kind], mixer_norms=Norms(input=NORM))
    counted = block_redundancy(block, 3)
    assert counted.standing == "estimate"
    program = block_program(block, 3, tokens=None if KINDS[kind].has_keys else KINDS[kind].taps)
    assert bound_rank(program, 0).value == block.parameters(3, 3) - counted.total


def test_the_rank_of_gated_attention_is_the_count():
    own = GroupedAttention(heads=2, groups=1, head_dim=2, value_dim=2, scale=0.5, output_gate=True)
    for spec in (own, replace(own, qk_norm=QKNorm(scope="per_head", norm=NORM)), replace(own, value_bias=True)):
        block = TransformerBlock(attention=spec, mlp=None, attention_norms=Norms(input=NORM))
        counted = block_redundancy(block, 4)
        assert counted.standing == "estimate"
        assert bound_rank(block_program(block, 4, others=2), 0).value == block.parameters(4, 4) - counted.total


@pytest.mark.parametrize("gated", [False, True])
def test_the_rank_of_blocks_that_scale_what_they_write_is_the_count(gated):
    norm = Norm(kind="layer", eps=1e-6, bias=True)
    mlp = MLP(width=2, activation="gelu", gated=gated, up_bias=True, down_bias=True)
    block = block_of(plain_attention(1, 4).bidirectional, mlp, norm, scales_outputs=True)
    counted = block_redundancy(block, 4)
    assert counted.total == block_redundancy(replace(block, scales_outputs=False), 4).total + 8
    assert bound_rank(block_program(block, 4), 0).value == block.parameters(4, 4) - counted.total


@pytest.mark.parametrize("family", HYBRIDS)
def test_rotations_and_lone_scales_are_not_free(family):
    """Elements of the groups that attention without a convolution would have change what is written."""
    model = reference(family)
    block, layer = model.block(0), model.layer(0)
    mixer, x = layer.mixer, np.random.default_rng(0).normal(size=(9, layer.width))
    y = apply_layer(x, block, layer)
    names = ("query", "key") if block.mixer.has_keys else ("value", "output_gate")
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(getattr(mixer, names[1]).weight.shape[1],) * 2))[0]
    lone = mixer.value.scaled(np.full(mixer.value.bias.shape, 1.5))
    rotated = {name: Affine(turn @ getattr(mixer, name).weight, getattr(mixer, name).bias) for name in names}
    for other in (mixer.with_(**rotated), mixer.with_(value=lone)):
        assert np.abs(apply_layer(x, block, layer.with_(mixer=other)) - y).max() > 1e-3


@pytest.mark.parametrize("family", HYBRIDS)
def test_a_fault_in_any_tensor_of_a_mixer_or_of_gated_attention_is_named(family):
    # In double precision: rounding of the file would hide small heads.
    state = {name: np.array(tensor, dtype=np.float64) for name, tensor in state_of(reference(family)).items()}
    model = open_model(state, reference(family).config)
    rng = np.random.default_rng(5)
    units = ("mixer.up_proj", "mixer.down_proj", "mixer.experts", "mixer.shared_experts", "mixer.gate")
    for name, tensor in state.items():
        if not any(word in name for word in ("mixer.", "mamba.", "linear_attn.", "self_attn.", "temporal_block.")):
            continue
        if any(word in name for word in units):
            continue
        spoilt = tensor.copy()
        spoilt.reshape(-1)[rng.integers(spoilt.size)] += 0.3
        other = open_model({**state, name: spoilt}, model.config)
        assert compare(model, other).blame.tensors == (name,)
        moved = compare(model, teleport(other, 2).moved())
        assert moved.same_function is False, name
        # A gain is seen through what it multiplies, a row through its taps.
        module = name.rsplit(".", 2)[0]
        assert any(tensor.startswith(module) for tensor in moved.blame.tensors), name


@pytest.mark.parametrize("family", CONVOLVED)
def test_one_large_tap_is_rounded_as_a_single_number_is(family):
    """Taps of a head may be few: they are no mean of many roundings, so that two steps of float32 are no suspicion."""
    model = in_type(reference(family), np.float32)
    name = next(name for name in model.tensors if name.endswith("conv1d.weight"))
    state = {key: model.tensors.raw(key) for key in model.tensors}
    taps = state[name].copy()
    place = np.unravel_index(np.abs(taps).argmax(), taps.shape)
    taps[place] = np.float32(1.5)  # by far the largest of its head
    state[name] = taps
    rounded = taps.copy()
    rounded[place] *= np.float32(1 + 2.0**-22)
    assert compare(open_model(state, model.config), open_model({**state, name: rounded}, model.config)).same_function


def test_decays_of_heads_with_small_steps_are_seen():
    """With tiny time steps random states hardly show by how much a state decays; others do."""
    state = state_of(in_type(reference("mamba2"), np.float32))
    name, steps = "backbone.layers.1.mixer.A_log", "backbone.layers.1.mixer.dt_bias"
    state[steps] = state[steps] - 9 * (np.arange(4) == 1)
    model, other = (
        open_model({k: v.astype(np.float32) for k, v in each.items()}, reference("mamba2").config)
        for each in (state, {**state, name: state[name] + 0.2 * (np.arange(4) == 1)})
    )
    found = compare(model, other)
    assert found.same_function is False and found.blame.tensors == (name,)


def test_decays_of_lightning_give_heads_their_places():
    """Two heads exchanged are another function, the channels of a head in another order are the same one."""
    model = reference("minimax")
    state, size = state_of(model), 6
    names = {
        "qkv_proj.weight": (3 * size, 0), "output_gate.weight": (size, 0), "norm.weight": (size, 0),
        "out_proj.weight": (size, 1),
    }  # fmt: skip

    def exchanged(order):
        new = dict(state)
        for name, (rows, axis) in names.items():
            name = f"model.layers.0.self_attn.{name}"
            parts = np.split(state[name], state[name].shape[axis] // rows, axis=axis)
            new[name] = np.concatenate([parts[i] for i in order], axis=axis)
        return open_model(new, model.config)

    assert compare(open_model(state, model.config), exchanged([0, 1, 2, 3])).same_function
    assert compare(open_model(state, model.config), exchanged([1, 0, 2, 3])).same_function is False


def test_tokens_that_a_norm_reads_are_seen_behind_it():
    """Gains of the norm of the tokens of MiniMax may be moved into the tokens: the norm maps R^d onto a ball."""
    model = reference("minimax")
    state, eps = state_of(model), model.config["rms_norm_eps"]
    tokens, gain = state["model.embed_tokens.weight"], state["model.layers.0.input_layernorm.weight"]
    new = gain * np.random.default_rng(3).uniform(1.2, 1.4, gain.shape)
    seen = tokens / np.sqrt((tokens**2).mean(axis=1, keepdims=True) + eps) * gain / new
    assert (seen**2).mean(axis=1).max() < 1
    back = seen * np.sqrt(eps / (1 - (seen**2).mean(axis=1, keepdims=True)))
    other = {**state, "model.embed_tokens.weight": back, "model.layers.0.input_layernorm.weight": new}
    one, two = (open_model(each, model.config) for each in (state, other))
    assert relative(outputs("minimax", two), expected("minimax")) < 1e-9
    assert compare(one, two).same_function
    assert [term.count for term in redundancy(one.spec).terms if "norm of tokens" in term.group] == [16]
    spoilt = {**other, "model.layers.0.input_layernorm.weight": new * (1 + 0.1 * (np.arange(len(new)) == 2))}
    assert compare(one, open_model(spoilt, model.config)).same_function is False


def test_published_sizes():
    """2 h_k d_k + h_v d_v + d_v for each of the 36 mixers of Qwen3-Next-80B."""
    config = {"model_type": "qwen3_next", "vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 48,
              "num_attention_heads": 16}  # fmt: skip
    spec = specify(config)
    mixers = [block for block in spec.stack.blocks if block.mixer is not None]
    assert len(mixers) == 36
    alone = replace(mixers[0], mlp=None, mlp_norms=Norms())
    assert block_redundancy(alone, 2048).total == 8320 + 2048
    assert abs(spec.parameters - 79.67e9) < 0.2e9


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("mamba2", {"time_step_limit": [0.001, 0.1]}),
        ("mamba2", {"hidden_act": "gelu"}),
        ("mamba2", {"num_heads": 3}),
        ("mamba2", {"n_groups": 3}),
        ("mamba2", {"conv_kernel": 1}),
        ("bamba", {"attn_layer_indices": "1"}),
        ("bamba", {"mamba_d_head": 5}),
        ("granitemoehybrid", {"layer_types": ["linear_attention"]}),
        ("granitemoehybrid", {"layer_types": ["linear_attention", "odd"]}),
        ("granitemoehybrid", {"position_embedding_type": "alibi"}),
        ("nemotron_h", {"layers_block_type": ["linear_attention", "odd"]}),
        ("nemotron_h", {"moe_latent_size": 4}),
        ("nemotron_h", {"mlp_bias": True}),
        ("qwen3_next", {"linear_num_value_heads": 3}),
        ("qwen3_next", {"hidden_act": "relu"}),
        ("minimax", {"hidden_act": "gelu"}),
        ("minimax", {"mlp_alpha_factor": 0}),
        ("minimax", {"full_attn_beta_factor": 0}),
        ("minimax", {"layer_types": ["linear_attention"]}),
        ("recurrent_gemma", {"block_types": ["recurrent", "odd"]}),
        ("recurrent_gemma", {"lru_width": 13}),
        ("recurrent_gemma", {"conv1d_width": 1}),
        ("recurrent_gemma", {"logits_soft_cap": 0}),
    ],
)
def test_variants_that_are_not_known_are_refused_in_one_line(family, changes):
    with pytest.raises(InputError) as caught:
        specify({**reference(family).config, **changes})
    assert len(str(caught.value)) <= 200 and "\n" not in str(caught.value)
