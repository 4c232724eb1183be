"""Verdicts: exact, within rounding, and different with the tensor that is wrong."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.models import Model, align, compare, comparison, open_model, teleport
from attngeom.models.affine import Affine, multiply
from attngeom.models.findings import equal_rows
from attngeom.models.orbits import PARTS
from attngeom.models.residual import has_free_stream
from tests.effort import choose, spread
from tests.models.cases import (
    FAMILIES,
    ROTATABLE,
    changed,
    in_type,
    outputs,
    reference,
    relative,
    scaled,
    state_of,
)

TYPES = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
Q, K, V, O = (f"model.layers.1.self_attn.{name}_proj.weight" for name in "qkvo")


def rounded_pair(family: str, dtype, seed: int):
    model = in_type(reference(family), dtype)
    return model, in_type(teleport(model, seed).moved(), dtype)


@pytest.mark.parametrize("family", FAMILIES)
def test_same_model(family: str) -> None:
    found = compare(reference(family), reference(family))
    assert found.same_function is True and found.level == "exact" and found.standing == "probabilistic"


@pytest.mark.parametrize(
    ("family", "dtype"), spread(FAMILIES, TYPES), ids=lambda x: x if isinstance(x, str) else np.dtype(x).name
)
def test_rounded_pairs_are_the_same(family: str, dtype) -> None:
    found = compare(*rounded_pair(family, dtype, 3))
    assert found.same_function is True and found.level == "rounding", str(found)


@pytest.mark.parametrize("dtype", TYPES[1:], ids=lambda t: np.dtype(t).name)
def test_one_noisy_head_is_found(dtype) -> None:
    """Three units of noise in one head are not called the same; ten times as much is called different."""
    for seed in range(choose(1, 3)):
        one, two = rounded_pair("llama", dtype, seed)
        unit = {"float32": 2.0**-24, "float16": 2.0**-11}.get(np.dtype(dtype).name, 2.0**-8)
        rng = np.random.default_rng(seed)
        for size, verdict in ((3, None), (40, False)):
            state = state_of(two)
            rows = state[Q][8:16]
            state[Q][8:16] = rows * (1 + size * unit * rng.normal(size=rows.shape))
            noisy = open_model({n: t.astype(dtype) for n, t in state.items()}, two.config)
            found = compare(one, noisy)
            assert found.same_function is verdict
            marked = [m for layer in found.layers for _, m in (*layer.wrong, *layer.suspects)]
            assert {m.part for m in marked} == {"query"} and len(marked) == 1


@pytest.mark.parametrize(("inner", "outer", "rows"), [(K, Q, [0, 4]), (V, O, [0])])
def test_rows_of_a_head_may_have_any_size(inner: str, outer: str, rows: list[int]) -> None:
    """A row 10²⁰ times smaller, its partner as much larger: the same model, and another one if the row differs."""
    model = in_type(reference("llama"), np.float64)
    state = state_of(model)
    state[inner][rows] *= 2.0**-66
    heads = [8 * head + row for head in (0, 1) for row in rows]  # two heads of width 8 share a group
    state[outer][heads if outer == Q else (slice(None), heads)] *= 2.0**66
    uneven = open_model(state, model.config)
    assert compare(model, uneven).same_function is True
    moved = state_of(align(model, uneven).moved())
    assert max(np.abs(moved[name] - tensor).max() for name, tensor in state_of(model).items()) < 1e-12
    assert relative(outputs("llama", teleport(uneven, 1).moved()), outputs("llama", model)) < 1e-13
    other = changed(uneven, inner, lambda w: np.where(np.arange(len(w))[:, None] == 0, np.roll(w, 1, axis=1), w))
    assert compare(uneven, other).same_function is False
    assert compare(other, uneven).same_function is False


@pytest.mark.parametrize("family", ["deepseek_v3", "t5", "falcon_new"])
def test_uneven_rows_of_every_kind_of_head(family: str) -> None:
    """Rows of queries, keys, values of any sizes, by powers of two: told apart or not, but never an error."""
    model, rng = in_type(reference(family), np.float64), np.random.default_rng(0)
    state = state_of(model)
    for name, tensor in state.items():
        if tensor.ndim == 2 and any(word in name for word in ("attention", "attn", "SelfAttention")):
            state[name] = np.ldexp(tensor, rng.integers(-30, 30, size=(len(tensor), 1)))
    other = open_model(state, model.config)
    assert compare(other, other).same_function is True
    assert compare(model, other).same_function is False
    assert compare(other, model).same_function is False


def test_settings_are_part_of_the_verdict() -> None:
    model = reference("llama")
    for key, value in (("rms_norm_eps", 1e-5), ("hidden_act", "gelu"), ("sliding_window", 4)):
        other = open_model(
            state_of(model),
            {**model.config, "model_type": "mistral" if key == "sliding_window" else "llama", key: value},
        )
        found = compare(model, other)
        assert found.same_function is False and found.level == "config" and found.config_differences
    unknown = open_model(state_of(model), {**model.config, "mystery_factor": 2.0})
    found = compare(model, unknown)
    assert found.same_function is None and "mystery_factor" in found.reason
    harmless = open_model(state_of(model), {**model.config, "use_cache": False})
    assert compare(model, harmless).same_function is True


ROPE = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
LONG = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4,
        "original_max_position_embeddings": 16}  # fmt: skip


@pytest.mark.parametrize(
    ("family", "one", "two", "same"),
    [
        ("mistral", {"rope_parameters": ROPE}, {"rope_parameters": {**ROPE, "factor": 4.0}}, False),
        ("mistral", {"rope_parameters": ROPE}, {"rope_parameters": ROPE, "max_position_embeddings": 64}, False),
        ("mistral", {"rope_parameters": LONG}, {"rope_parameters": {**LONG, "long_factor": [3.0] * 4}}, False),
        ("mistral", {"max_position_embeddings": 32}, {"max_position_embeddings": 64}, True),
        ("t5", {"feed_forward_proj": "relu"}, {"feed_forward_proj": "relu", "dense_act_fn": "silu"}, False),
        ("t5", {"dense_act_fn": "relu"}, {"dense_act_fn": "relu", "feed_forward_proj": "silu"}, True),
        ("t5", {"scale_decoder_outputs": True}, {"scale_decoder_outputs": False}, False),
        ("whisper", {"scale_embedding": False}, {"scale_embedding": True}, True),
        ("qwen2", {"use_sliding_window": False}, {"use_sliding_window": False, "sliding_window": 3}, True),
    ],
)  # fmt: skip
def test_keys_of_the_configuration(family: str, one: dict, two: dict, same: bool) -> None:
    """Keys that change the function of transformers, on contexts of any length, and keys that do not."""
    model = reference(family)
    left, right = (open_model(state_of(model), {**model.config, **keys}) for keys in (one, two))
    assert compare(left, right).same_function is same


@pytest.mark.parametrize(
    ("family", "keys"),
    [
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}),
        ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 0}}),
        ("deepseek_v3", {"head_dim": 6}),
        ("deepseek_v2", {"num_experts_per_tok": 3}),
        ("t5", {"is_encoder_decoder": False}),
        ("llama", {"hidden_act": ["silu"]}),
        ("gemma2", {"layer_types": [{}, {}]}),
        ("gpt2", {"n_layer": 10**8}),
        ("gemma2", {"query_pre_attn_scalar": 0}),
        ("whisper", {"num_mel_bins": 7}),
        ("vit", {"num_channels": 4}),
        ("deepseek_v3", {"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "mscale_all_dim": 1e308}}),
    ],
)
def test_configurations_that_no_model_has_are_refused(family: str, keys: dict) -> None:
    model = reference(family)
    with pytest.raises(InputError):
        open_model(state_of(model), {**model.config, **keys})


def test_scale_moved_into_the_weights() -> None:
    """Gemma-2's scale is a setting: half of it with doubled queries is the same function, exactly."""
    model = reference("gemma2")
    state = {name: tensor * 2 if "q_proj" in name else tensor for name, tensor in state_of(model).items()}
    other = open_model(state, {**model.config, "query_pre_attn_scalar": 28})
    assert compare(model, other).level == "exact" and compare(model, other).same_function is True
    assert compare(model, other, level="rounding").same_function is True
    assert compare(model, open_model(state, model.config)).same_function is False


def test_qk_norm_scale_is_not_a_symmetry() -> None:
    """Qwen3 q_proj times 3 changes the output by eps only: not the same function; float16 files leave it open."""
    model = reference("qwen3")
    other = scaled(model, layers__0__self_attn__q_proj=3.0)
    assert compare(in_type(model, np.float64), in_type(other, np.float64)).same_function is False
    assert compare(model, other).same_function is None


@pytest.mark.parametrize("family", ROTATABLE)
def test_rotated_streams(family: str) -> None:
    """A rotated stream is the same function, whether it was asked for or not; no exact proof says otherwise."""
    model = reference(family)
    moved = teleport(model, 6, parts=(*PARTS, "residual")).moved()
    found = compare(model, moved, level="rounding")
    assert found.same_function is True and "rotated residual stream" in found.reason
    assert compare(model, moved, level="rounding", scope="model").same_function is True
    assert compare(model, moved, level="exact").same_function is None


@pytest.mark.parametrize("family", ["gemma2", "olmo2", "bloom"])
def test_norms_behind_sublayers_leave_orders_of_the_stream(family: str) -> None:
    model = reference(family)
    moved = teleport(model, 6, parts=(*PARTS, "residual")).moved()
    assert relative(outputs(family, moved), outputs(family, model)) < 1e-13
    assert compare(model, moved, level="rounding").same_function is True
    forgotten = open_model(
        {**state_of(moved), **{n: t for n, t in state_of(model).items() if ".1." in n}}, model.config
    )
    assert compare(model, forgotten, level="rounding").same_function is False


@pytest.mark.parametrize(
    ("family", "name", "axis"),
    [
        ("gpt2", "transformer.wpe.weight", 1), ("gpt2", "transformer.h.0.mlp.c_proj.bias", 0),
        ("gpt_neox", "gpt_neox.embed_in.weight", 1), ("vit", "vit.embeddings.position_embeddings", 2),
        ("bert", "bert.embeddings.token_type_embeddings.weight", 1),
        ("cohere", "model.layers.0.mlp.down_proj.weight", 0),
    ],
)  # fmt: skip
def test_what_layer_norms_do_not_see(family: str, name: str, axis: int) -> None:
    """Whole numbers added along 1 are exact in float16 tensors widened to float64: no level sees them."""
    model = reference(family)
    moved = changed(model, name, lambda w: w + np.arange(w.shape[-1] if axis == 0 else 1) * 0 + 3.0)
    assert relative(outputs(family, moved), outputs(family, model)) < 1e-12
    assert compare(model, moved).same_function is True
    if family != "vit":
        assert compare(model, moved).level == "exact"


def test_tables_hand_vectors_to_each_other() -> None:
    """Token, position and segment tables of BERT are always added: only their sum is seen, but for a tied decoder."""
    speaking, vector = reference("bert"), 8.0 * np.arange(24)
    state = {name: tensor for name, tensor in state_of(speaking).items() if not name.startswith("cls.")}
    bert = open_model(state, {**speaking.config, "architectures": ["BertModel"]})
    tables = [f"bert.embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type")]
    moved = changed(changed(bert, tables[0], lambda w: w + vector), tables[1], lambda w: w - 2 * vector)
    assert compare(bert, moved).same_function is False
    moved = changed(moved, tables[2], lambda w: w + vector)
    assert compare(bert, moved, level="exact").same_function is True
    assert compare(bert, moved, level="rounding").same_function is True
    with_decoder = open_model({**state_of(speaking), **state_of(moved)}, speaking.config)
    assert compare(speaking, with_decoder).same_function is False  # its logits change by the same for all tokens
    assert compare(bert, changed(bert, tables[2], lambda w: w[::-1])).same_function is False
    vit, names = reference("vit"), ("vit.embeddings.cls_token", "vit.embeddings.position_embeddings")
    moved = changed(vit, names[0], lambda w: w + vector)
    assert compare(vit, moved).same_function is False
    first = (np.arange(10) == 0)[:, None]
    assert compare(vit, changed(moved, names[1], lambda w: w - vector * first)).same_function is True


def test_groups_that_no_part_describes_are_not_called_different() -> None:
    """Equal gains of a QK-norm free a phase, equal frequencies more: weights differ and outputs do not."""
    qwen = reference("qwen3")
    for name in state_of(qwen):
        if name.endswith(("q_norm.weight", "k_norm.weight")):
            qwen = changed(qwen, name, np.ones_like)
    turn = np.kron([[0.6, -0.8], [0.8, 0.6]], np.eye(4))
    moved = qwen
    for name in ("q_proj", "k_proj"):
        place = f"model.layers.0.self_attn.{name}.weight"
        moved = changed(moved, place, lambda w: (turn @ w.reshape(-1, 8, 24)).reshape(w.shape))
    found = compare(qwen, moved)
    assert found.same_function is None and "outputs at random states agree" in found.reason
    assert compare(qwen, moved, level="exact").same_function is None
    broken = changed(moved, "model.layers.0.self_attn.v_proj.weight", lambda w: w * 1.1)
    assert compare(qwen, broken).same_function is False


def test_only_differences_of_expert_corrections_are_seen() -> None:
    model = reference("deepseek_v3")
    name = "model.layers.1.mlp.gate.e_score_correction_bias"
    assert compare(model, changed(model, name, lambda c: c + 0.5), level="exact").same_function is True
    assert compare(model, changed(model, name, lambda c: c + 0.5), level="rounding").same_function is True
    assert compare(model, changed(model, name, lambda c: -c)).same_function is False
    swapped = changed(model, name, lambda c: c[[1, 0, 2, 3]])
    # Both experts of the kept group are active: the choice sees the sums of the groups alone.
    assert compare(model, swapped, level="exact").same_function is True
    assert compare(model, swapped, level="rounding").same_function is True
    free = {**model.config, "n_group": 1, "topk_group": 1}
    one, two = (open_model(state_of(m), free) for m in (model, swapped))
    assert compare(one, two).same_function is False
    near = open_model(state_of(changed(model, name, lambda c: c + 1e-6 * np.eye(4)[0])), free)
    assert compare(one, near, unit=2.0**-53).same_function is False
    certain = [open_model(state_of(changed(model, name, lambda c, k=k: k * np.eye(4)[0])), free) for k in (50, 60)]
    assert compare(*certain).same_function is None and compare(*certain, level="exact").same_function is None


def test_tolerance_and_bad_options() -> None:
    model = reference("llama")
    noisy = scaled(model, layers__0__mlp__down_proj=1.001)
    assert compare(model, noisy, level="rounding", tolerance=1e-2).same_function is True
    assert compare(model, noisy, level="rounding", tolerance=1e-4).same_function is False
    with pytest.raises(InputError):
        compare(model, model, tolerance=-1)
    with pytest.raises(InputError):
        compare(model, model, level="odd")  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["llama", "cohere"])
def test_an_embedding_of_zeros_is_another_function(family: str) -> None:
    model = reference(family)
    assert compare(model, changed(model, "model.embed_tokens.weight", np.zeros_like)).same_function is False


def test_biases_of_latents_are_seen() -> None:
    """Each entry counts, of the rotated key too; the tensor is named."""
    model = reference("deepseek_biased")
    for name, entry in (("q_a_proj", 3), ("kv_a_proj_with_mqa", 2), ("kv_a_proj_with_mqa", 9), ("o_proj", 0)):
        tensor = f"model.layers.0.self_attn.{name}.bias"
        other = changed(model, tensor, lambda b, at=entry: b + 0.01 * (np.arange(len(b)) == at))
        assert compare(model, other, level="exact").same_function is False
        found = compare(model, other, level="rounding")
        assert {blamed for layer in found.layers for blamed, _ in layer.wrong} == {tensor}


def test_tied_head_and_its_copy() -> None:
    """A tied model and an untied one whose head is a copy of the embedding are the same function, exactly."""
    model = reference("gemma2")
    state = {**state_of(model), "lm_head.weight": state_of(model)["model.embed_tokens.weight"]}
    untied = open_model(state, {**model.config, "tie_word_embeddings": False})
    assert compare(model, untied).level == "exact" and compare(model, untied).same_function is True
    assert compare(model, untied, level="rounding").same_function is True
    other = changed(untied, "lm_head.weight", lambda w: w * 1.01)
    assert compare(model, other).same_function is False
    norm = changed(model, "model.norm.weight", lambda g: g + 0.01)
    assert compare(model, norm).same_function is False
    # A file that has a head of its own has one, whatever its config says.
    assert compare(other, open_model(state_of(other), model.config), level="exact").same_function is True


@pytest.mark.parametrize("family", ["llama", "gpt_neox", "gpt2", "t5", "gemma2"])
def test_streams_that_fit_none_are_told_without_a_change_of_streams(family: str, monkeypatch) -> None:
    """The shortcut never speaks against a rotated copy, and answers stay what they are without it."""
    asked: list[bool] = []
    told = comparison.fits_no_stream
    monkeypatch.setattr(comparison, "fits_no_stream", lambda *views: asked.append(told(*views)) or asked[-1])
    rng = np.random.default_rng(36)
    model = in_type(reference(family), ml_dtypes.bfloat16)
    parts = [*PARTS, "residual"] if has_free_stream(model.headed) else PARTS
    copies = [in_type(teleport(model, seed, parts=parts).moved(), ml_dtypes.bfloat16) for seed in range(2)]
    assert all(compare(model, copy).same_function is True for copy in copies) and not any(asked)
    state = state_of(model)
    for share in (0.02, 0.3, 3.0):
        noisy = {n: (t * (1 + share * rng.normal(size=t.shape))).astype(t.dtype) for n, t in state.items()}
        other = open_model(noisy, model.config)
        quick = compare(model, other).to_json()
        with monkeypatch.context() as inside:
            inside.setattr(comparison, "fits_no_stream", lambda *views: False)
            slow = compare(model, other).to_json()
        assert {**quick, "entropy": None} == {**slow, "entropy": None}, share
    if has_free_stream(model.headed):
        assert asked[-1], "noise of three times the weights is no change of a stream"


def test_rows_that_occur_twice() -> None:
    """−0.0 is 0.0, a bias tells rows apart, and rows that only begin alike are no twins."""
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(9, 12))
    weight[4], weight[7, :8], weight[2, 0], weight[6] = weight[1], weight[3, :8], 0.0, weight[5]
    weight[8] = weight[2]
    weight[8, 0] = -0.0
    bias = np.zeros(9)
    bias[6] = 1.0
    assert equal_rows(Affine(weight, bias)) == [[1, 4], [2, 8]]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(700, 400), (1, 3), (0, 3), (3, 0)])
def test_products_are_widened_block_by_block(order: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    matrix, x = np.asarray(rng.normal(size=shape), np.float32, order=order), rng.normal(size=(shape[1], 2))
    product = multiply(matrix, x)
    assert product.dtype == np.float64 and np.allclose(product, matrix.astype(np.float64) @ x, rtol=1e-12, atol=1e-12)


def test_a_summary_by_layer() -> None:
    """Which layers agree, in runs, and how far the others are off; nothing where all agree."""
    model = in_type(reference("llama"), np.float32)
    edited = changed(model, "model.layers.1.mlp.up_proj.weight", lambda w: 1.5 * w)
    lines = compare(model, edited).text().splitlines()
    assert lines[1].startswith("  layers: 1 differs (mismatch 5.0e-01); 0, ") and lines[1].endswith("outside agree")
    assert "layers:" not in compare(model, model).text()


def test_gains_that_are_stored_as_differences_to_one_lose_digits() -> None:
    """Gemma stores gain − 1: of a small gain few digits are left, and what reads it is known no better."""
    model = in_type(reference("gemma"), np.float32)
    state = {name: model.tensors.raw(name) for name in model.tensors}
    norm, *rest = (
        f"model.layers.0.{name}.weight" for name in ("input_layernorm", *(f"self_attn.{x}_proj" for x in "qkv"))
    )

    def with_gain(gain: float, size: float) -> Model:
        stored = state[norm].copy()
        stored[3] = np.float32(gain - 1)
        maps = {name: state[name] * np.where(np.arange(24) == 3, np.float32(size), 1) for name in rest}
        return open_model({**state, norm: stored, **{k: v.astype(np.float32) for k, v in maps.items()}}, model.config)

    one = with_gain(0.0101, 1000.0)
    gains = (0.0153, 0.0167, 0.0189)
    assert all(compare(one, with_gain(gain, 10.1 / gain)).same_function is True for gain in gains)
    assert compare(one, with_gain(0.0154, 10.1 / 0.0153)).same_function is False


@pytest.mark.parametrize("family", ["gpt2", "opt"])
@pytest.mark.parametrize("constant", [0.0, 0.3, 0.7, 0.123])
def test_a_bias_along_1_is_another_one_than_that_of_the_file(family: str, constant: float) -> None:
    """Where nothing but rounding is left of a bias, its loss of digits explains nothing of one that is there."""
    model = in_type(reference(family), np.float64)
    name = next(name for name in model.tensors if name.endswith(("1.mlp.c_proj.bias", "1.fc2.bias")))
    silent = changed(model, name, lambda bias: np.full_like(bias, constant))
    for one, other in ((model, silent), (silent, model)):
        found = compare(one, other, level="rounding")
        assert found.same_function is False and found.blame.tensors == (name,)
    assert compare(silent, silent, level="rounding").same_function


@pytest.mark.parametrize(("family", "is_free"), [("bloom", True), ("clip_vision_model", False), ("bert", False)])
def test_a_bias_of_the_norm_of_tables_along_1(family: str, is_free: bool) -> None:
    """Where all readers of the stream are LayerNorms, a number added to it everywhere is not seen."""
    model = in_type(reference(family), np.float64)
    names = "embeddings_layernorm.bias|pre_layrnorm.bias|embeddings.LayerNorm.bias"
    name = next(name for name in model.tensors if re.search(names, name))
    shifted = changed(model, name, lambda bias: bias + 0.125)
    assert (relative(outputs(family, shifted), outputs(family, model)) < 1e-12) is is_free
    assert compare(model, shifted).same_function is is_free
    spoilt = changed(model, name, lambda bias: bias + 0.125 * (np.arange(len(bias)) == 1))
    assert compare(model, spoilt).same_function is False
