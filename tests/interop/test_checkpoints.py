"""Checkpoints of other libraries compute the same function after import, and nothing is dropped in silence."""

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from attngeom.canonical import teleport
from attngeom.cli.app import run
from attngeom.errors import FormatError, InputError
from attngeom.interop import export_state, import_checkpoint, import_state
from attngeom.interop.weights import read_dropped
from attngeom.network import Weights, forward

RNG = np.random.default_rng(5)
E, HEADS, WIDTH = 6, 3, 2
GPT2_CONFIG = {"model_type": "gpt2", "n_embd": E, "n_layer": 1, "n_head": HEADS, "n_positions": 8, "vocab_size": 5}


def softmax(S):
    P = np.exp(S - S.max(axis=0))
    return P / P.sum(axis=0)


def reference(Q, K, V, O, X, heads, groups):
    """Attention as transformer libraries define it, with stacked projections and tokens as columns of X."""
    total = 0
    for head in range(heads):
        group = head // (heads // groups)
        q = Q[head * WIDTH : (head + 1) * WIDTH] @ X
        k, v = (M[group * WIDTH : (group + 1) * WIDTH] @ X for M in (K, V))
        total = total + O[:, head * WIDTH : (head + 1) * WIDTH] @ v @ softmax(k.T @ q / np.sqrt(WIDTH))
    return total


def projections(groups=HEADS):
    rows = {"Q": HEADS * WIDTH, "K": groups * WIDTH, "V": groups * WIDTH}
    matrices = {name: RNG.standard_normal((count, E)) for name, count in rows.items()}
    return {**matrices, "O": RNG.standard_normal((E, HEADS * WIDTH))}


def torch_state(p, prefix=""):
    stacked = np.concatenate([p["Q"], p["K"], p["V"]])
    return {f"{prefix}in_proj_weight": stacked, f"{prefix}out_proj.weight": p["O"]}


def llama_state(p, prefix="model.layers.0.self_attn."):
    names = {"Q": "q_proj", "K": "k_proj", "V": "v_proj", "O": "o_proj"}
    return {f"{prefix}{names[key]}.weight": p[key] for key in p}


def bert_state(p, prefix="encoder.layer.0.attention."):
    names = {"Q": "self.query", "K": "self.key", "V": "self.value", "O": "output.dense"}
    return {f"{prefix}{names[key]}.weight": p[key] for key in p}


def gpt_state(p, prefix="h.0.attn."):
    stacked = np.concatenate([p["Q"], p["K"], p["V"]])
    return {f"{prefix}c_attn.weight": stacked.T, f"{prefix}c_proj.weight": p["O"].T}


@pytest.mark.parametrize("layout", [torch_state, llama_state, bert_state, gpt_state])
def test_imported_block_computes_the_same_function(layout):
    p = projections()
    result = import_state(layout(p), heads=HEADS)
    X = RNG.standard_normal((E, 5))
    assert np.allclose(forward(result.weights, X), reference(**p, X=X, heads=HEADS, groups=HEADS))
    assert result.unmodelled == {}


@pytest.mark.parametrize("groups", [1, 3])
def test_grouped_query_heads_share_keys_and_values(groups):
    p = projections(groups)
    result = import_state(llama_state(p), heads=HEADS, key_value_heads=groups, idealised=groups < HEADS)
    X = RNG.standard_normal((E, 4))
    assert np.allclose(forward(result.weights, X), reference(**p, X=X, heads=HEADS, groups=groups))


def test_lightning_import_leaves_the_scores_unscaled():
    p = projections()
    weights = import_state(llama_state(p), heads=HEADS, kind="lightning").weights
    assert np.array_equal(weights.layers[0][0].Q, p["Q"][:WIDTH])


def test_what_is_not_modelled_is_named():
    state = {
        **llama_state(projections()),
        "model.layers.0.self_attn.q_proj.bias": np.ones(E),
        "model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(1),
        "model.layers.0.self_attn.q_norm.weight": np.ones(2),
        "model.layers.0.mlp.up_proj.weight": np.ones((8, E)),
        "model.embed_positions.weight": np.ones((9, E)),
    }
    with pytest.raises(InputError, match="attngeom model"):
        import_state(state, heads=HEADS)
    result = import_state(state, heads=HEADS, config={"rope_theta": 10000.0}, idealised=True)
    assert result.unmodelled == {
        "model.layers.0.self_attn.q_proj.bias": "bias",
        "model.layers.0.self_attn.rotary_emb.inv_freq": "rotary position embedding",
        "model.layers.0.self_attn.q_norm.weight": "normalization",
        "model.layers.0.mlp.up_proj.weight": "not an attention projection of the chosen blocks",
        "model.embed_positions.weight": "position encoding",
        "config rope_theta": "rotary position embedding",
    }


def test_blocks_are_taken_in_natural_order(tmp_path):
    blocks = {index: projections() for index in (0, 2, 10)}
    state = {}
    for index, p in blocks.items():
        state |= llama_state(p, f"model.layers.{index}.self_attn.")
    save_file(
        {name: np.ascontiguousarray(x, dtype=np.float32) for name, x in state.items()}, tmp_path / "m.safetensors"
    )
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": HEADS, "num_key_value_heads": HEADS}))
    result = import_checkpoint(tmp_path / "m.safetensors", residual=True)
    assert result.blocks == tuple(f"model.layers.{index}.self_attn." for index in (0, 2, 10))
    assert result.weights.architecture.num_layers == 3
    X = RNG.standard_normal((E, 4))
    expected = X
    for p in blocks.values():
        expected = expected + reference(**p, X=expected, heads=HEADS, groups=HEADS)
    assert np.allclose(forward(result.weights, X), expected, rtol=1e-4, atol=1e-4)
    last = import_checkpoint(tmp_path / "m.safetensors", blocks=[2], idealised=True)
    assert last.blocks == ("model.layers.10.self_attn.",)
    assert len(last.unmodelled) == 8


def with_value(V):
    return {**llama_state(projections()), "model.layers.0.self_attn.v_proj.weight": V}


@pytest.mark.parametrize(
    "state, arguments, words",
    [
        ({}, dict(heads=3), "no attention weights"),
        ({"a.weight": np.zeros((2, 2))}, dict(heads=3), "no attention weights"),
        (llama_state(projections()), dict(heads=4), "must divide"),
        (llama_state(projections()), dict(heads=0), "must divide"),
        (llama_state(projections()), dict(heads=3, key_value_heads=2), "must divide"),
        (llama_state(projections()), dict(heads=3, key_value_heads=1), "the weights hold 3"),
        (llama_state(projections()), dict(heads=3, blocks=[1]), "blocks 0 to 0"),
        (with_value(np.zeros((6, 5))), dict(heads=3), "widths"),
        (with_value(np.zeros(6)), dict(heads=3), "matrix"),
        (with_value(np.full((6, 6), np.nan)), dict(heads=3), "finite"),
        (with_value(np.zeros((6, 6), dtype=complex)), dict(heads=3), "real"),
        ({"in_proj_weight": np.zeros((7, 6)), "out_proj.weight": np.zeros((6, 6))}, dict(heads=3), "three equal"),
    ],
)
def test_bad_checkpoints_are_refused(state, arguments, words):
    with pytest.raises(InputError, match=words):
        import_state(state, **arguments)


def test_unknown_head_count_and_pickles_are_refused(tmp_path):
    save_file({k: np.ascontiguousarray(v) for k, v in llama_state(projections()).items()}, tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="number of heads"):
        import_checkpoint(tmp_path / "m.safetensors")
    (tmp_path / "m.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(FormatError, match="pickled"):
        import_checkpoint(tmp_path / "m.bin", heads=2)


@pytest.mark.parametrize("separate", [False, True])
def test_torch_multihead_attention_computes_the_same_function(separate):
    torch = pytest.importorskip("torch", reason="needs the optional torch extra (make torch)")
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(E, HEADS, bias=False, batch_first=True).double()
    state = module.state_dict()
    if separate:
        Q, K, V = state.pop("in_proj_weight").chunk(3)
        state |= {"q_proj_weight": Q, "k_proj_weight": K, "v_proj_weight": V}
    X = RNG.standard_normal((E, 4))
    tokens = torch.from_numpy(X.T.copy())[None]
    expected = module(tokens, tokens, tokens, need_weights=False)[0][0].detach().numpy().T
    assert np.allclose(forward(import_state(state, heads=HEADS).weights, X), expected)


def test_torch_biases_and_half_precision_are_reported_and_converted():
    torch = pytest.importorskip("torch", reason="needs the optional torch extra (make torch)")
    module = torch.nn.MultiheadAttention(E, HEADS).to(torch.bfloat16)
    result = import_state(module, heads=HEADS, idealised=True)
    assert result.unmodelled == {"in_proj_bias": "bias", "out_proj.bias": "bias"}
    assert result.weights.layers[0][0].Q.dtype == np.float64


@pytest.mark.parametrize(
    ("extra", "config", "reason"),
    [
        ({"a.norm.weight": np.ones(E)}, {}, "normalization"),
        ({"mlp.up.weight": np.ones((E, E))}, {}, "not an attention"),
        ({"model.layers.0.self_attn.sinks": np.ones(3)}, {}, "sink"),
        ({"decoder.encoder_attn.x": np.ones(3)}, {}, "cross-attention"),
        ({"x.bias": np.ones(3)}, {}, "bias"),
        ({}, {"rope_parameters": {"rope_theta": 1.0}}, "rotary"),
        ({}, {"attn_logit_softcapping": 50.0}, "bounded scores"),
        ({}, {"is_encoder_decoder": True}, "cross-attention"),
    ],
)
def test_what_changes_the_function_is_refused(extra, config, reason):
    state = {**llama_state(projections()), **extra}
    with pytest.raises(InputError, match=reason):
        import_state(state, heads=HEADS, config=config)
    assert import_state(state, heads=HEADS, config=config, idealised=True).unmodelled


def test_what_was_dropped_is_stored_and_repeated(tmp_path, capfd):
    state = {**llama_state(projections()), "mlp.up.weight": np.ones((E, E))}
    save_file({name: np.ascontiguousarray(x) for name, x in state.items()}, tmp_path / "m.safetensors")
    out = tmp_path / "w.safetensors"
    command = ["import", str(tmp_path / "m.safetensors"), "--heads", str(HEADS), "--out", str(out)]
    assert run(command) == 2
    assert "attngeom model" in capfd.readouterr().err and not out.exists()
    assert run([*command, "--idealised"]) == 0
    assert read_dropped(out) == {"mlp.up.weight": "not an attention projection of the chosen blocks"}
    capfd.readouterr()
    assert run(["compare", str(out), str(out)]) == 0
    assert "leaves out 1 parts of its model, mlp.up.weight" in capfd.readouterr().out
    assert run(["compare", str(out), str(out), "--json"]) == 0
    assert "mlp.up.weight" in capfd.readouterr().out


def test_folders_are_for_the_other_command(tmp_path):
    with pytest.raises(InputError, match="attngeom model"):
        import_checkpoint(tmp_path)


@pytest.mark.parametrize("make", [torch_state, llama_state, bert_state, gpt_state])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_state_comes_back_with_its_names_shapes_and_types(make, dtype):
    state = {name: array.astype(dtype) for name, array in make(projections()).items()} | {"other": np.ones(3)}
    imported = import_state(state, HEADS, idealised=True)
    back = export_state(imported.weights, state)
    assert back.keys() == state.keys() and back["other"] is state["other"]
    for name, array in state.items():
        assert back[name].dtype == array.dtype and back[name].shape == array.shape
        assert np.allclose(back[name].astype(float), array.astype(float), rtol=1e-15, atol=0)


def test_chosen_blocks_come_back_where_they_were():
    parts = [llama_state(projections(), f"model.layers.{i}.self_attn.") for i in range(3)]
    state = {name: array for part in parts for name, array in part.items()}
    imported = import_state(state, HEADS, blocks=[1], idealised=True)
    back = export_state(scaled(imported.weights, 2.0), state, blocks=[1])
    assert all(np.allclose(back[n], (2 if ".1." in n else 1) * state[n], rtol=1e-15) for n in state)
    with pytest.raises(InputError, match="3 blocks"):
        export_state(imported.weights, state, blocks=[3])


def test_shared_keys_come_back_once():
    state = llama_state(projections(groups=1))
    imported = import_state(state, HEADS, idealised=True)
    back = export_state(imported.weights, state, key_value_heads=1)
    assert all(np.allclose(back[name], state[name], rtol=1e-15) for name in state)
    with pytest.raises(InputError, match="cannot take weights of shape"):
        export_state(imported.weights, state)
    moved = teleport(imported.weights, seed=1).weights
    with pytest.raises(InputError, match="share keys and values"):
        export_state(moved, state, key_value_heads=1)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (False, False)),
        (GPT2_CONFIG, (True, True)),
        ({**GPT2_CONFIG, "model_type": "bert", "num_attention_heads": HEADS, "hidden_size": E,
          "num_hidden_layers": 1, "intermediate_size": 8,
          "max_position_embeddings": 8, "type_vocab_size": 2}, (True, False)),
    ],
)  # fmt: skip
def test_mask_and_skip_are_those_of_the_model(config, expected):
    architecture = import_state(gpt_state(projections()), HEADS, config=config, idealised=True).weights.architecture
    assert (architecture.residual, architecture.causal) == expected


def test_an_unknown_model_does_not_settle_the_mask():
    state, config = gpt_state(projections()), {"model_type": "strange"}
    with pytest.raises(InputError, match="the mask cannot be read"):
        import_state(state, HEADS, config=config, idealised=True)
    assert import_state(state, HEADS, causal=True, config=config, idealised=True).weights.architecture.causal


def test_a_module_says_its_heads_and_its_configuration():
    class Configuration:
        def to_dict(self):
            return GPT2_CONFIG

    class Module:
        config = Configuration()
        num_heads = HEADS

        def state_dict(self):
            return gpt_state(projections())

    assert import_state(Module(), idealised=True).weights.architecture.causal
    with pytest.raises(InputError, match="a state dict or a module"):
        import_state(3, HEADS)


def test_numbers_too_large_for_the_type_are_refused():
    state = {name: array.astype(np.float16) for name, array in llama_state(projections()).items()}
    weights = import_state(state, HEADS, idealised=True).weights
    with pytest.raises(InputError, match="overflows"):
        export_state(scaled(weights, 1e6), state)


def scaled(weights, factor):
    tensors = {name: array * factor for name, array in dict(weights.tensors()).items()}
    return Weights.from_tensors(weights.architecture, tensors, weights.domain)
