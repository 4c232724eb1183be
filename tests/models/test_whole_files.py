"""Every tensor of a file counts: heads of all kinds, copies, unknown tensors, buffers; differences are explained."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.models import compare, fingerprint, open_model, teleport, write_teleport
from attngeom.models.live import _model_class
from attngeom.models.samples import GPT2, random_model
from tests.models.cases import changed, in_type, outputs, reference, state_of

HEADS = {
    "gpt2": ("GPT2ForSequenceClassification", {"score.weight": (3, 24)}),
    "bloom": ("BloomForTokenClassification", {"classifier.weight": (3, 24), "classifier.bias": (3,)}),
    "llama": ("LlamaForSequenceClassification", {"score.weight": (1, 24)}),
    "gpt_neox": ("GPTNeoXForQuestionAnswering", {"qa_outputs.weight": (2, 24), "qa_outputs.bias": (2,)}),
    "gemma2": ("Gemma2ForTokenClassification", {"score.weight": (4, 24), "score.bias": (4,)}),
    "bert": ("BertForSequenceClassification", {"bert.pooler.dense.weight": (24, 24), "bert.pooler.dense.bias": (24,),
                                               "classifier.weight": (2, 24), "classifier.bias": (2,)}),
    "deepseek_v3": ("DeepseekV3ForSequenceClassification", {"score.weight": (2, 20)}),
}  # fmt: skip
LM_HEADS = ("lm_head.", "embed_out.", "cls.")


def with_head(family: str):
    """The reference with the head of another class in place of its own."""
    model, rng = reference(family), np.random.default_rng(0)
    name, head = HEADS[family]
    state = {n: t for n, t in state_of(model).items() if not n.startswith(LM_HEADS)}
    state |= {n: rng.normal(size=shape) for n, shape in head.items()}
    return open_model(state, {**model.config, "architectures": [name]}), tuple(head)


@pytest.mark.parametrize("family", HEADS)
def test_heads_of_other_classes(family: str) -> None:
    model, names = with_head(family)
    whole = fingerprint(model)
    assert compare(model, model).same_function is True
    moved = teleport(model, 3).moved()
    assert compare(model, moved).same_function is True
    for name in names:
        zeroed = changed(model, name, np.zeros_like)
        found = compare(model, zeroed)
        assert found.same_function is False and name in str(found).splitlines()[0]
        assert fingerprint(zeroed).digest != whole.digest
        assert compare(moved, changed(moved, name, np.zeros_like)).same_function is False


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt_neox", "mixtral", "gpt_oss", "deepseek_v2"])
def test_base_models(family: str) -> None:
    """The final hidden states are the function, and the last norm is seen."""
    full = reference(family)
    base = full.places.base
    state = {n.removeprefix(base): t for n, t in state_of(full).items() if n.startswith(base)}
    model = open_model(state, {**full.config, "architectures": ["SomeModel"]})
    assert compare(model, teleport(model, 1).moved()).same_function is True
    norm = full.places.final_norm["decoder"].removeprefix(base) + ".weight"
    found = compare(model, changed(model, norm, lambda g: g * 1.01))
    assert found.same_function is False and norm in str(found).splitlines()[0]
    incomplete = {n: t for n, t in state_of(full).items() if not n.startswith(LM_HEADS)}
    with pytest.raises(InputError, match="missing"):
        open_model(incomplete, full.config)


def test_base_models_of_tied_families() -> None:
    """Their hidden states do not see what is added to token rows along 1; a tied head does."""
    full = reference("gpt2")
    state = {name.removeprefix("transformer."): tensor for name, tensor in state_of(full).items()}
    base = open_model(state, {**full.config, "architectures": ["GPT2Model"]})
    assert compare(base, full).same_function is True and compare(full, base).same_function is True
    assert compare(base, changed(base, "wte.weight", lambda w: w + 0.125)).same_function is True
    assert compare(full, changed(full, "transformer.wte.weight", lambda w: w + 0.125)).same_function is False


@pytest.mark.parametrize(
    ("family", "copy", "original"),
    [
        ("bert", "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("bert", "cls.predictions.decoder.bias", "cls.predictions.bias"),
        ("t5", "encoder.embed_tokens.weight", "shared.weight"),
        ("t5", "lm_head.weight", "shared.weight"),
        ("gpt2", "lm_head.weight", "transformer.wte.weight"),
    ],
)
def test_copies(family: str, copy: str, original: str) -> None:
    """A tensor that repeats another one changes nothing; one that only seems to is a tensor of its own."""
    model = reference(family)
    state = state_of(model)
    repeated = open_model({**state, copy: state[original].copy()}, model.config)
    assert compare(model, repeated).same_function is True and compare(model, repeated).level == "exact"
    own = open_model({**state, copy: 1.5 * state[original]}, model.config)
    assert compare(model, own).same_function is False and compare(repeated, own).same_function is False
    assert compare(own, own).same_function is True
    assert fingerprint(own).digest != fingerprint(model).digest == fingerprint(repeated).digest


def test_a_tensor_that_is_not_read_never_gives_same() -> None:
    model = reference("llama")
    state = state_of(model)
    extra = open_model({**state, "model.layers.0.extra.weight": np.ones(3)}, model.config)
    assert compare(extra, extra).same_function is True
    other = changed(extra, "model.layers.0.extra.weight", lambda w: 2 * w)
    for pair in ((model, extra), (extra, other)):
        found = compare(*pair)
        assert found.same_function is None and "extra.weight" in found.reason
    buffers = [open_model({**state, "model.rotary_emb.inv_freq": np.full(4, k)}, model.config) for k in (1.0, 2.0)]
    assert compare(model, buffers[0]).same_function is True
    found = compare(*buffers)
    assert found.same_function is None and "inv_freq" in found.reason
    assert fingerprint(buffers[0]).left_out == ("model.rotary_emb.inv_freq",)
    assert "inv_freq" in str(fingerprint(buffers[0])) and not fingerprint(model).left_out


def test_settings_behind_the_hidden_states() -> None:
    model, _ = with_head("llama")
    other = open_model(state_of(model), {**model.config, "pad_token_id": 5})
    assert compare(model, other).same_function is None


@pytest.mark.parametrize(
    ("family", "touched", "change"),
    [
        ("llama", ("model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"), "exchange"),
        ("gpt2", ("transformer.h.1.ln_2.bias",), "double"),
        ("gpt2", ("transformer.h.0.attn.c_attn.weight",), "double"),
        ("mistral", ("model.layers.0.input_layernorm.weight",), "double"),
        ("mistral", ("model.layers.1.self_attn.v_proj.weight",), "double"),
        ("qwen3", ("model.norm.weight",), "double"),
        ("deepseek_v2", ("model.layers.0.self_attn.kv_b_proj.weight",), "reverse"),
        ("vit", ("vit.embeddings.patch_embeddings.projection.bias",), "double"),
        ("cohere", ("model.layers.0.input_layernorm.weight",), "reverse"),
    ],
)  # fmt: skip
def test_the_headline_names_what_was_changed(family: str, touched: tuple[str, ...], change: str) -> None:
    model = reference(family)
    state = state_of(model)
    new = {"exchange": lambda i: state[touched[1 - i]], "double": lambda i: 2 * state[touched[i]],
           "reverse": lambda i: state[touched[i]][::-1]}[change]  # fmt: skip
    found = compare(model, open_model({**state, **{name: new(i) for i, name in enumerate(touched)}}, model.config))
    assert found.same_function is False and set(found.blame.tensors) == set(touched)
    headline, *lines = str(found).splitlines()
    assert all(name in headline for name in touched) and f"{len(state) - len(touched)} tensors are equal" in headline
    # The first line sums up the layers.
    assert lines[0].startswith("  layers: ") and " differ" in lines[0]
    for line in lines[1:]:
        assert any(name in line for name in touched) != line.endswith("(equal entries)") or "more" in line


def test_a_difference_is_told_in_eight_lines() -> None:
    """One sentence, the layers, the worst five, how many more there are."""
    model = reference("llama")
    noisy = {n: t * (1 + 0.01 * np.random.default_rng(0).normal(size=t.shape)) for n, t in state_of(model).items()}
    found = compare(model, open_model(noisy, model.config))
    lines = str(found).splitlines()
    assert found.same_function is False and len(lines) <= 8 and "--all" in lines[-1]
    assert lines[1].startswith("  layers: ")
    assert len(found.text(every=True).splitlines()) > 12
    named = {name for layer in found.layers for name, _ in layer.wrong}
    assert named <= set(noisy) | {f"{name}.weight" for name in named}


def test_biases_that_a_file_does_not_have_are_not_named() -> None:
    """Cohere's norms and maps have no biases, GPT-NeoX's have: a name that is printed is in the file."""
    for family in ("cohere", "falcon", "gpt_neox", "whisper"):
        model = reference(family)
        noisy = {n: t + 0.01 * np.random.default_rng(0).normal(size=t.shape) for n, t in state_of(model).items()}
        found = compare(model, open_model(noisy, model.config))
        names = {name.partition(" (")[0] for layer in found.layers for name, _ in layer.wrong}
        assert found.same_function is False and names <= set(noisy)


@pytest.mark.parametrize(
    ("family", "keys"),
    [
        ("deepseek_v3", {"num_key_value_heads": 2}),
        ("deepseek_v3", {"topk_group": None}),
        ("deepseek_v3", {"topk_group": 3}),
        ("deepseek_v3", {"head_dim": None}),
        ("deepseek_v2", {"num_key_value_heads": 1}),
        ("deepseek_v2", {"qk_nope_head_dim": 5}),
    ],
)
def test_configurations_that_transformers_cannot_run(family: str, keys: dict) -> None:
    model = reference(family)
    with pytest.raises(InputError):
        open_model(state_of(model), {**model.config, **keys})


def test_the_clamp_that_is_assumed_is_said() -> None:
    from attngeom.models.inspection import inspect_model

    texts = [remark.text for remark in inspect_model(reference("gpt_oss")).findings]
    assert sum("clamped at 7" in text for text in texts) == 1


def test_only_classes_of_models_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    class PreTrainedModel:
        pass

    class GPT2Model(PreTrainedModel):
        pass

    library = SimpleNamespace(PreTrainedModel=PreTrainedModel, GPT2Model=GPT2Model, pipeline=print, logging=json)
    monkeypatch.setattr("attngeom.models.live.import_module", lambda name: library)
    assert _model_class(["GPT2Model"]) is GPT2Model
    for names in (["pipeline"], ["logging"], ["NoSuchModel"], ["__doc__"], [], None, "GPT2Model", [3]):
        assert _model_class(names) is None


def test_teleport_draws_again_before_it_refuses(tmp_path) -> None:
    """In float16 a condition number of 10⁶ shows in every head: the next smaller one is taken, and said."""
    model = in_type(reference("llama"), np.float16)
    written, condition = write_teleport(model, tmp_path / "out", seed=1, condition=1e6, precision="keep")
    assert condition < 1e6 and written.check.same_function is not False
    assert np.abs(outputs("llama", open_model(tmp_path / "out")) - outputs("llama", model)).max() < 0.2


@pytest.mark.parametrize("seed", range(3))
def test_biases_of_many_units_are_not_refused(seed: int) -> None:
    config = {**GPT2, "n_embd": 64, "n_inner": 4096, "n_layer": 1}
    model = random_model(config, seed, np.float32)
    moved = {name: tensor.astype(np.float32) for name, tensor in teleport(model, seed).state().items()}
    assert compare(model, open_model(moved, config), level="rounding").same_function is True


LIMITED = """
import resource, sys
from pathlib import Path
from attngeom.models import open_model
from attngeom.models.inspection import inspect_model

model = open_model(Path(sys.argv[1]))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]), used + int(sys.argv[2])))
print(len(inspect_model(model).heads))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space")
def test_inspect_takes_the_memory_of_a_layer(tmp_path) -> None:
    """Heads of a bf16 layer have features that agree roughly: their scores are compared by factors, not as matrices."""
    from safetensors.numpy import save_file

    config = {"model_type": "llama", "vocab_size": 40, "hidden_size": 1024, "intermediate_size": 512,
              "num_hidden_layers": 1, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
              "architectures": ["LlamaForCausalLM"]}  # fmt: skip
    model = random_model(config, 0, np.float32)
    state = {name: (0.1 * model.tensors.raw(name)).astype(ml_dtypes.bfloat16) for name in model.tensors}
    save_file(state, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    limit = (
        12 * 8 * model.spec.parameters
    )  # some copies of the layer in float64; one table of scores takes twice as much
    assert limit < 64 * 1024 * 1024 * 16
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), str(limit)], capture_output=True, text=True, check=False,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.strip() == "16", done.stderr[-500:]


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("mixtral", "model.layers.0.block_sparse_moe.experts.{}.w2.weight"),
        ("deepseek_v3", "model.layers.1.mlp.experts.{}.up_proj.weight"),
        ("qwen3_moe", "model.layers.0.mlp.experts.{}.gate_proj.weight"),
    ],
)
def test_an_expert_that_writes_nothing_is_another_one(family: str, name: str) -> None:
    """Few states are sent to one expert: they are looked for."""
    model = reference(family)
    for expert in range(4):
        found = compare(model, changed(model, name.format(expert), np.zeros_like))
        assert found.same_function is False and name.format(expert) in found.reason
