"""What the function does not determine: heads, units, orders and tables that may differ in one model."""

from __future__ import annotations

import numpy as np
import pytest

from attngeom.models import Model, align, compare, open_model, teleport
from attngeom.models.orbits import PARTS
from attngeom.models.samples import random_model
from tests.models.cases import (
    changed,
    expected,
    in_type,
    outputs,
    reference,
    relative,
    state_of,
)


def test_undetermined_heads_and_units_are_not_called_different() -> None:
    """A silent head, keys without full rank, a silent unit: what they hold may differ without any effect."""
    gpt2, llama = reference("gpt2"), reference("llama")
    silent = changed(gpt2, "transformer.h.0.attn.c_proj.weight", lambda w: w * (np.arange(24) >= 8)[:, None])
    other = changed(silent, "transformer.h.0.attn.c_attn.weight", lambda w: w + (np.arange(72) < 8))
    assert compare(silent, other).same_function is True  # without the head
    # Where only one of the two is silent, the outputs tell them apart.
    assert compare(gpt2, silent).same_function is False
    wrong_elsewhere = changed(other, "transformer.h.0.mlp.c_fc.weight", lambda w: w * 1.1)
    assert compare(silent, wrong_elsewhere).same_function is False
    name = "model.layers.0.mlp.down_proj.weight"
    dead = changed(llama, name, lambda w: w * (np.arange(20) != 4))
    moved = changed(dead, "model.layers.0.mlp.up_proj.weight", lambda w: w + (np.arange(20) == 4)[:, None])
    # The invariants of a unit that writes nothing vanish, so the exact level sees that nothing changed.
    assert compare(dead, moved).same_function is True and compare(dead, moved).level == "exact"
    assert compare(dead, moved, level="rounding").same_function is True  # without the unit

    def flatten(w: np.ndarray) -> np.ndarray:
        w[:, 24] = w[:, 25]  # two equal key rows of head 0
        return w

    name = "transformer.h.0.attn.c_attn.weight"
    flat = changed(changed(gpt2, name, flatten), "transformer.h.0.attn.c_attn.bias", lambda b: b * 0)

    def swap(w: np.ndarray) -> np.ndarray:
        w[:, 0], w[:, 1] = w[:, 0] + 0.5, w[:, 1] - 0.5  # their queries, sum kept
        return w

    assert compare(flat, changed(flat, name, swap), level="rounding").same_function is not False


def test_silent_heads_are_left_out_exactly() -> None:
    """A head that writes nothing hides its queries: different invariants prove nothing until it is left out."""
    model = changed(
        reference("gpt2"), "transformer.h.0.attn.c_proj.weight", lambda w: w * (np.arange(24) >= 8)[:, None]
    )
    other = changed(
        model, "transformer.h.0.attn.c_attn.weight", lambda w: np.concatenate([w[:, :2] + 1, w[:, 2:]], axis=1)
    )
    assert compare(model, other, level="exact").same_function is True  # without the head


def test_mismatches_of_all_heads_are_there():
    """A change of one query row shows in its head alone, in units of what rounding explains."""
    model = reference("llama")
    state = {name: model.tensors.raw(name).astype(np.float64) for name in model.tensors}
    name = "model.layers.1.self_attn.q_proj.weight"
    state[name] = state[name].copy()
    state[name][0] *= 1.5
    found = compare(model, open_model(state, model.config), level="rounding")
    heads = [[m.ratio for _, m in layer.heads] for layer in found.layers if layer.heads]
    count = model.config["num_attention_heads"]
    assert [len(row) for row in heads] == [count] * model.layers
    assert max(heads[0]) < 1 and heads[1][0] > 10 and max(heads[1][1:]) < 1


def test_heads_of_a_stack_with_a_relative_table_share_their_order() -> None:
    """T5: one order for all layers and the table is a symmetry; in one layer alone it is none."""
    model = reference("t5")
    state = state_of(model)
    heads, order = 3, np.array([2, 0, 1])

    def reordered(layers: tuple[int, ...], table: bool) -> Model:
        moved = dict(state)
        for layer in layers:
            for part, axis in (("q", 0), ("k", 0), ("v", 0), ("o", 1)):
                name = f"encoder.block.{layer}.layer.0.SelfAttention.{part}.weight"
                shape = state[name].shape
                split = (heads, -1, shape[1]) if axis == 0 else (shape[0], heads, -1)
                moved[name] = np.take(state[name].reshape(split), order, axis=axis).reshape(shape)
        name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        if table:
            moved[name] = np.ascontiguousarray(state[name][:, order])
        return open_model(moved, model.config)

    good, bad = reordered((0, 1), True), reordered((0,), True)
    assert relative(outputs("t5", good), expected("t5")) < 1e-13 < relative(outputs("t5", bad), expected("t5"))
    assert compare(model, good).level == "exact" and compare(model, good).same_function is True
    assert compare(model, good, level="rounding").same_function is True
    assert compare(model, bad).same_function is False
    assert compare(model, reordered((0, 1), False)).same_function is False
    aligned = align(model, good).moved()
    assert max(np.abs(aligned.tensors.raw(n) - tensor).max() for n, tensor in state.items()) < 1e-11


def test_the_last_norm_of_a_post_norm_model_moves_into_its_head() -> None:
    model = reference("opt_projected")
    factors = 2.0 ** np.random.default_rng(0).integers(-2, 3, 24)
    last, out = "model.decoder.layers.1.final_layer_norm.", "model.decoder.project_out.weight"
    moved = model
    for name, factor in ((last + "weight", factors), (last + "bias", factors), (out, 1 / factors)):
        moved = changed(moved, name, lambda w, factor=factor: w * factor)
    assert compare(model, moved, level="exact").same_function is True
    assert compare(model, moved, level="rounding").same_function is True
    for name in (last + "bias", out):
        assert compare(model, changed(moved, name, lambda w: w * 1.01), level="exact").same_function is False
        assert compare(model, changed(moved, name, lambda w: w * 1.01), unit=2.0**-53).same_function is False


@pytest.mark.parametrize("seed", range(3))
def test_products_of_projected_tokens_are_granted_the_rounding_of_their_factors(seed: int) -> None:
    model = reference("opt_projected")
    moved = in_type(teleport(model, seed, parts=(*PARTS, "residual")).moved(), np.float32)
    assert compare(model, moved, scope="model", unit=2.0**-24).same_function is True


@pytest.mark.parametrize(("tied", "rank"), [(True, 8), (False, 8), (True, 6)])
def test_tables_that_a_post_norm_model_reads_without_a_norm(tied: bool, rank: int) -> None:
    """x + c goes into biases; x + 1 wᵀx is undone by q, k, v, unless the head is the token table (lemma P)."""
    config = {
        "model_type": "opt", "hidden_size": 8, "ffn_dim": 5, "num_hidden_layers": 2, "num_attention_heads": 2,
        "vocab_size": 20, "max_position_embeddings": 7, "do_layer_norm_before": False, "word_embed_proj_dim": rank,
        "tie_word_embeddings": tied,
    }  # fmt: skip
    model = random_model(config, dtype=np.float64)
    rng, state, prefix = np.random.default_rng(0), state_of(model), "model.decoder."
    shift, own = rng.normal(size=8), f"{prefix}layers.0.self_attn."
    free = not tied or rank < 8
    turn = np.eye(8) + np.outer(np.ones(8), rng.normal(size=8) / 4 * free)
    tables = {f"{prefix}embed_positions.weight": state[f"{prefix}embed_positions.weight"] @ turn.T + shift}
    if rank < 8:
        tables[f"{prefix}project_in.weight"] = turn @ state[f"{prefix}project_in.weight"]
    elif free:
        tables[f"{prefix}embed_tokens.weight"] = state[f"{prefix}embed_tokens.weight"] @ turn.T
    moved = {**state, **tables, f"{own}out_proj.bias": state[f"{own}out_proj.bias"] - shift}
    for name in (f"{own}{side}_proj" for side in "qkv"):
        moved[f"{name}.weight"] = state[f"{name}.weight"] @ np.linalg.inv(turn)
        moved[f"{name}.bias"] = state[f"{name}.bias"] - moved[f"{name}.weight"] @ shift
    assert compare(model, open_model(moved, config)).same_function
    assert compare(model, open_model(moved, config), level="exact").same_function is None
    moved[f"{own}q_proj.bias"] = moved[f"{own}q_proj.bias"] * 1.01
    assert compare(model, open_model(moved, config)).same_function is False


def test_what_no_distance_or_no_score_shows_of_a_table_is_not_compared() -> None:
    """Rows of distances beyond the positions of MPNet; a vector that all states of distances share, if keys read it."""
    mpnet = reference("mpnet")
    name = "mpnet.encoder.relative_attention_bias.weight"
    far = changed(mpnet, name, lambda w: w + (np.arange(len(w)) == 15)[:, None])
    assert compare(mpnet, far).same_function is True
    assert compare(mpnet, changed(mpnet, name, lambda w: w + (np.arange(len(w)) == 2)[:, None])).same_function is False
    deberta = reference("deberta-v2")
    name = "deberta.encoder.LayerNorm.bias"
    for kinds, same in (("c2p", True), ("p2c", False), ("c2p|p2c", False)):
        model = open_model(state_of(deberta), {**deberta.config, "pos_att_type": kinds, "norm_rel_ebd": "layer_norm"})
        other = open_model(state_of(changed(deberta, name, lambda b: b + np.arange(len(b)))), model.config)
        assert compare(model, other).same_function is same, kinds


def test_heads_that_pool_are_told_apart_by_what_they_make_of_states() -> None:
    """SigLIP: every tensor of the head that is changed is named; what its own symmetries move is left open."""
    model = reference("siglip_vision_model")
    own = [name for name in model.tensors if ".head." in name or name.startswith("head.")]
    assert len(own) == 11
    for name in own:
        found = compare(model, changed(model, name, lambda w: w + 0.1 * np.cos(np.arange(w.size)).reshape(w.shape)))
        assert found.same_function is False and found.blame.tensors == (name,)
    state, order = state_of(model), np.roll(np.arange(20), 3)
    up, bias, down = (next(n for n in own if n.endswith(end)) for end in ("fc1.weight", "fc1.bias", "fc2.weight"))
    moved = {**state, up: state[up][order], bias: state[bias][order], down: state[down][:, order]}
    assert compare(open_model(state, model.config), open_model(moved, model.config)).same_function is None
