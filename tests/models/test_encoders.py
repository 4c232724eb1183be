"""Encoders, encoder-decoders and vision: what their own options show of the weights, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.models import compare, fingerprint, open_model
from attngeom.models.families import specify
from attngeom.models.specification import RelativeTable
from tests.models.cases import DATA, changed, in_type, outputs, reference, relative, state_of, wrong

# Tables of relative positions: one for a stack (t5), one for each layer (umt5).

TABLES = {
    "t5": "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "umt5": "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
}


@pytest.mark.parametrize(("family", "name"), TABLES.items())
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_of_a_table_of_positions_differences_of_used_rows_are_seen(family: str, name: str, side: str) -> None:
    model, rng = reference(family), np.random.default_rng(0)

    def moved(table: np.ndarray) -> np.ndarray:
        table += rng.normal(size=table.shape[1])
        table[4] += side == "encoder"  # that of +0, where tokens see both ways
        return table

    same = changed(model, name.format(side), moved)
    assert relative(outputs(family, same), outputs(family, model)) < 1e-12
    assert compare(model, same).same_function is True

    def spoilt(table: np.ndarray) -> np.ndarray:
        table[1, 1] += 0.1
        return table

    other = changed(model, name.format(side), spoilt)
    found = compare(model, other)
    assert found.same_function is False and name.format(side) in str(found).splitlines()[0]
    assert fingerprint(model).digest != fingerprint(other).digest


def test_rows_of_tables_that_no_distance_has() -> None:
    """Far distances are few: rows between two logarithms have none, and the count says how many."""
    table = RelativeTable(rows=32, distance=10)
    assert set(table.index(40, 40, True).ravel()) == set(range(32)) - set(table.unused(True).tolist())
    assert 16 in table.unused(True) and len(table.unused(True)) > 1
    assert not RelativeTable(rows=32, distance=128).unused(False).size


# Settings that change the function are read or refused.


def config_of(family: str, **changes: object) -> dict[str, object]:
    return {**json.loads((DATA / family / "config.json").read_text()), **changes}


REFUSED = [
    ("umt5", {"is_encoder_decoder": False}),
    ("umt5", {"relative_attention_num_buckets": 3}),
    ("umt5", {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 8}),
    ("umt5", {"dense_act_fn": "no_such"}),
]


@pytest.mark.parametrize(("family", "changes"), REFUSED, ids=str)
def test_settings_that_are_not_described_are_refused(family: str, changes: dict[str, object]) -> None:
    specify(config_of(family))
    with pytest.raises(InputError) as error:
        specify(config_of(family, **changes))
    assert "\n" not in str(error.value) and len(str(error.value)) <= 200


# Encoder-decoders with norms of the sums (bart, marian), and biases of tied heads.


@pytest.mark.parametrize("family", ["bart", "mbart", "marian", "pegasus", "blenderbot"])
def test_the_bias_of_a_tied_head_is_seen(family: str) -> None:
    model, rng = in_type(reference(family), np.float64), np.random.default_rng(1)
    spoilt = changed(model, "final_logits_bias", lambda bias: bias + 0.1 * rng.normal(size=bias.shape))
    comparison = compare(model, spoilt)
    assert comparison.same_function is False and wrong(comparison) == {"head bias"}
    assert fingerprint(model).digest != fingerprint(spoilt).digest
    name = "model.decoder.layer_norm.bias"
    if name not in model.tensors:
        return
    state, shift = state_of(model), rng.normal(size=model.spec.width)
    state[name] += shift
    spoilt = open_model(state, model.config)
    assert compare(model, spoilt).layers[-1].tensor == name
    state["final_logits_bias"] -= state["model.shared.weight"] @ shift
    same = open_model(state, model.config)
    assert relative(outputs(family, same), outputs(family, model)) < 1e-12
    assert compare(model, same).same_function is True


@pytest.mark.parametrize("family", ["bart", "marian"])
def test_cross_attention_takes_up_the_last_norm_of_an_encoder(family: str) -> None:
    """Gains and bias of the norm behind the last layer of the encoder, which keys and values of the decoder read."""
    model, rng = in_type(reference(family), np.float64), np.random.default_rng(2)
    state, width = state_of(model), model.spec.width
    scale, shift = rng.uniform(0.5, 2, width), rng.normal(size=width)
    norm = "model.encoder.layers.1.final_layer_norm"
    state[f"{norm}.weight"] *= scale
    state[f"{norm}.bias"] = state[f"{norm}.bias"] * scale + shift
    for name in [name for name in state if "encoder_attn.k_proj" in name or "encoder_attn.v_proj" in name]:
        if name.endswith("weight"):
            state[name] /= scale
            state[name.replace("weight", "bias")] -= state[name] @ shift
    same = open_model(state, model.config)
    assert relative(outputs(family, same), outputs(family, model)) < 1e-12
    assert compare(model, same).same_function is True
    state[f"{norm}.bias"] += 0.1
    assert compare(model, open_model(state, model.config)).same_function is False


def test_the_positions_of_marian_are_sines_unless_a_file_has_others() -> None:
    model = reference("marian")
    encoder, name = model.spec.stacks[0], "model.encoder.embed_positions.weight"
    stored = {**state_of(model), name: model.positions(encoder)}
    assert compare(model, open_model(stored, model.config)).same_function is True
    stored[name] = stored[name] + 0.1 * np.eye(*stored[name].shape)
    assert compare(model, open_model(stored, model.config)).same_function is False


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_untied_stacks_read_token_tables_of_their_own(stack: str) -> None:
    tensors, config = state_of(reference("mbart")), config_of("mbart", tie_word_embeddings=False)
    names = [f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")]
    tensors |= {name: tensors["model.shared.weight"].copy() for name in (*names, "lm_head.weight")}
    same = outputs("mbart", open_model(tensors, config))
    assert relative(same, outputs("mbart", reference("mbart"))) < 1e-12
    unread = {**tensors, "model.shared.weight": tensors["model.shared.weight"] + 1}
    assert np.array_equal(outputs("mbart", open_model(unread, config)), same)
    name = f"model.{stack}.embed_tokens.weight"
    spoilt = {**tensors, name: tensors[name] + np.eye(*tensors[name].shape)}
    assert relative(outputs("mbart", open_model(spoilt, config)), same) > 1e-3
