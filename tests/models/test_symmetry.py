"""Symmetries keep the function, canonical forms pick one point of the orbit, and recovery finds the way back."""

from __future__ import annotations

import re

import numpy as np
import pytest
from safetensors.numpy import load_file

from attngeom.errors import InputError
from attngeom.models import (
    Sampler,
    act,
    align,
    canonical,
    canonicalize,
    compare,
    compose,
    express,
    fingerprint,
    fold,
    inverse,
    open_model,
    random_symmetry,
    recover,
    teleport,
)
from attngeom.models.evaluation import apply_layer
from attngeom.models.layer import AttentionWeights, parts_of
from attngeom.models.orbits import PARTS
from tests.effort import choose, spread
from tests.models.cases import DATA, FAMILIES, ROTATABLE, distance, expected, outputs, reference, relative, state_of


def layers(family: str) -> list[tuple]:
    model = reference(family)
    return [(model.block(i), model.layer(i), bool(model.place(i)[0].relative_buckets)) for i in range(model.layers)]


def run(block, layer) -> np.ndarray:
    rng = np.random.default_rng(1)
    width = layer.width
    x, memory = rng.normal(size=(9, width)), rng.normal(size=(5, width))
    own = None if block.attention is None else block.attention.disentangled
    distances = None if own is None else rng.normal(size=(2 * own.span, width))
    return apply_layer(x, block, layer, memory, distances=distances)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_part_keeps_the_function(family: str) -> None:
    for block, layer, ordered in layers(family):
        y = run(block, layer)
        for part in PARTS:
            symmetry = random_symmetry(block, layer, Sampler(7), parts=[part], ordered=ordered)
            assert relative(run(block, act(block, layer, symmetry)), y) < 1e-14, part
            back = act(block, act(block, layer, symmetry), inverse(symmetry))
            assert distance(back, layer) < 1e-13


@pytest.mark.parametrize("family", FAMILIES)
def test_all_weights_move(family: str) -> None:
    for block, layer, ordered in layers(family):
        moved = act(block, layer, random_symmetry(block, layer, Sampler(3), ordered=ordered))
        before, after = parts_of(layer), parts_of(moved)
        places = [f"{place}.{name}" for place in layer.writers for name in ("output", "value.weight")]
        for name in places:
            assert np.linalg.norm(before[name] - after[name]) > 0.5 * np.linalg.norm(before[name])


def test_composition() -> None:
    block, layer, _ = layers("qwen3")[0]
    one, two = (random_symmetry(block, layer, Sampler(seed)) for seed in (1, 2))
    twice = act(block, act(block, layer, one), two)
    assert distance(act(block, layer, compose(one, two)), twice) == 0


def test_rotated_heads_have_no_linear_group() -> None:
    """GL on the rotated coordinates of queries and keys changes the function: only phases are free."""
    block, layer, _ = layers("llama")[0]
    weights = layer.attention
    mix = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    wrong = weights.with_(
        rotated_key=weights.rotated_key.then(mix[None]), rotated_query=weights.rotated_query.then(mix[None])
    )
    assert relative(run(block, layer.with_(attention=wrong)), run(block, layer)) > 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_folding(family: str) -> None:
    for block, layer, _ in layers(family):
        y, folded = run(block, layer), fold(block, layer)
        assert relative(run(block, folded), y) < 1e-14
        stored = express(block, folded)
        assert relative(run(block, stored), y) < 1e-14
        assert distance(fold(block, stored), folded) < 1e-13


def smallest_gap(form: AttentionWeights) -> float:
    """Of the norms of rows of the balanced form, which are the singular values or their roots, relative to them."""
    latents = [latent.down for latent in (form.key_latent, form.query_latent) if latent is not None]
    norms = [np.sort(np.linalg.norm(part.rows, axis=-1)) for part in (form.key, form.value, *latents)]
    return min(float((np.diff(some) / some[..., 1:]).min(initial=1.0)) for some in norms)


@pytest.mark.parametrize(("family", "gauge"), spread(FAMILIES, ["balanced", "rotated", "echelon"]))
def test_canonical_forms(family: str, gauge: str) -> None:
    for block, layer, ordered in layers(family):
        form = canonical(block, fold(block, layer), gauge, ordered=ordered)
        assert relative(run(block, form), run(block, layer)) < 2e-14
        moved = act(block, layer, random_symmetry(block, layer, Sampler(11), ordered=ordered))
        # Directions of close singular values are determined up to rounding over their gap.
        balanced = canonical(block, fold(block, layer), "balanced", ordered=ordered).attention
        bound = 1e-13 if gauge == "echelon" or balanced is None else 1e-14 / smallest_gap(balanced)
        assert bound < 2e-11
        for other in (moved, form):
            assert distance(canonical(block, fold(block, other), gauge, ordered=ordered), form) < bound


def test_echelon_entries_are_bounded() -> None:
    block, layer, _ = layers("gpt2")[0]
    form = canonical(block, fold(block, layer), "echelon").attention
    for rows in (*form.key.weight, *form.value.weight):
        assert np.abs(rows).max() <= 1.05 + 1e-9
        ones = [
            j for j in range(rows.shape[1]) if np.allclose(np.sort(np.abs(rows[:, j]))[::-1], [1, *[0] * 7], atol=1e-12)
        ]
        assert len(ones) >= len(rows)


def test_unknown_gauge_and_part() -> None:
    block, layer, _ = layers("gpt2")[0]
    with pytest.raises(InputError, match="gauge"):
        canonical(block, layer, "odd")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="part"):
        random_symmetry(block, layer, Sampler(0), parts=["odd"])


@pytest.mark.parametrize("family", FAMILIES)
def test_recovery(family: str) -> None:
    for block, layer, ordered in layers(family):
        goal = fold(block, layer)
        for seed in range(choose(1, 3)):
            moved = act(block, layer, random_symmetry(block, layer, Sampler(seed, 25.0), ordered=ordered))
            found = recover(block, goal, fold(block, moved), ordered=ordered)
            # Sixteen rounding errors, each as many times larger as the move is badly conditioned.
            assert distance(found.moved, goal) < 16 * 25.0 * np.finfo(float).eps
            own = block.attention
            assert found.condition == pytest.approx(25.0) or own is None or own.qk_norm is not None


@pytest.mark.parametrize("family", FAMILIES)
def test_whole_models(family: str) -> None:
    model, y = reference(family), expected(family)
    limit = 1e-8 if family == "bloom" else 3e-14
    moved = teleport(model, 5).moved()
    assert relative(outputs(family, moved), y) < limit
    one, two = canonicalize(model).moved(), canonicalize(moved).moved()
    assert relative(outputs(family, one), y) < limit
    worst = max(
        relative(two.tensors.raw(n), one.tensors.raw(n).astype(float)) for n in one.tensors if one.tensors.raw(n).any()
    )
    assert worst < 1e-13
    aligned = align(model, moved).moved()
    assert relative(outputs(family, aligned), y) < limit
    for name, tensor in state_of(model).items():
        assert np.abs(aligned.tensors.raw(name) - tensor).max() < 1e-12 * max(1.0, np.abs(tensor).max()), name


def spread_of_forms(model, seeds: range) -> float:
    """How far the canonical forms of copies, and the form of a form, are from the form of a model."""
    form = canonicalize(model).moved()
    copies = [form, *(teleport(model, seed).moved() for seed in seeds)]
    forms = [canonicalize(copy).state() for copy in copies]
    names = [name for name in form.tensors if np.any(form.tensors.raw(name))]
    return max(relative(other[name], form.tensors.raw(name).astype(float)) for other in forms for name in names)


@pytest.mark.parametrize("family", FAMILIES)
def test_canonical_forms_are_constant_on_the_orbit_and_idempotent(family: str) -> None:
    assert spread_of_forms(reference(family), range(choose(3, 20))) < 1e-13


@pytest.mark.parametrize("family", ["llama", "mistral", "phi3", "gpt2"])
def test_equal_entries_do_not_leave_the_pivot_to_rounding(family: str) -> None:
    """Few digits and plain gains, as in half precision at the start of training: largest entries are often equal."""
    model = reference(family)
    few = {n: np.round(3 * w / w.std()) / 16 if w.ndim > 1 else 1 + 0 * w for n, w in state_of(model).items()}
    assert spread_of_forms(open_model(few, model.config), range(2)) < 1e-13


def test_heads_without_full_rank_have_one_form() -> None:
    model, name = reference("gpt2"), "transformer.h.0.attn.c_attn.weight"
    spoiled = state_of(model)[name].astype(float)
    width = len(spoiled)
    for start in (width, 2 * width):
        spoiled[:, start + 1] = spoiled[:, start] - 0.5 * spoiled[:, start + 2]
    assert spread_of_forms(open_model({**state_of(model), name: spoiled}, model.config), range(2)) < 1e-13


@pytest.mark.parametrize("family", ROTATABLE)
def test_residual_rotation(family: str) -> None:
    model = reference(family)
    moved = teleport(model, 2, parts=(*PARTS, "residual")).moved()
    assert relative(outputs(family, moved), expected(family)) < 5e-14
    assert relative(moved.embedding(), model.embedding()) > 0.1
    aligned = align(model, moved, "model").moved()
    for name, tensor in state_of(model).items():
        assert np.abs(aligned.tensors.raw(name) - tensor).max() < 1e-11 * max(1.0, np.abs(tensor).max()), name


@pytest.mark.parametrize(
    "family", ["llama", "qwen2", "gpt_neox", "gptj", "gpt2", "cohere", "t5", "opt", "opt_projected"]
)
def test_canonical_residual_stream(family: str) -> None:
    """O(d), O(d − 1) under LayerNorm, signed orders for tied heads, orders and a sign for both."""
    model = reference(family)
    moved = teleport(model, 1 if family == "opt_projected" else 2, parts=(*PARTS, "residual")).moved()
    assert relative(moved.embedding(), model.embedding()) > 0.1
    assert relative(outputs(family, moved), expected(family)) < 5e-14
    assert compare(model, moved, level="rounding", scope="model").same_function is True
    one, two = (canonicalize(m, scope="model").moved() for m in (model, moved))
    assert relative(outputs(family, one), expected(family)) < 5e-14
    sizes = {n: max(1.0, float(np.abs(one.tensors.raw(n)).max())) for n in one.tensors}
    assert max(np.abs(two.tensors.raw(n) - one.tensors.raw(n)).max() / sizes[n] for n in one.tensors) < 1e-11


@pytest.mark.parametrize("family", ["vit", "whisper"])
def test_streams_behind_front_ends(family: str) -> None:
    """Patches and classifier follow O(d − 1); audio follows orders, the decoder orders and a sign of its own."""
    model = reference(family).headed
    moved = teleport(model, 2, parts=(*PARTS, "residual")).moved().headed
    y = outputs(family, model)
    assert (
        relative(y if family == "whisper" else y[0], load_file(DATA / family / "reference.safetensors")["logits"][0])
        < 1e-6
    )
    one, two, again = model, moved, moved
    for _ in range(2):
        assert relative(outputs(family, two), y) < 5e-14
        assert compare(model, two, level="rounding", scope="model").same_function is True
        one, two, again = (canonicalize(m, scope="model").moved().headed for m in (one, two, two))
    pairs = [(one, two), (two, again), (align(model, moved, "model").moved(), model)]
    for place, other in pairs:
        for name, tensor in state_of(other).items():
            assert np.abs(place.tensors.raw(name) - tensor).max() < 1e-11 * max(1.0, np.abs(tensor).max()), name
    assert compare(reference(family), moved).same_function is True
    if family == "vit":
        # Logits are the same in a rotated stream; the hidden states, which a model without a classifier gives, are not.
        bare = [
            open_model({n: t for n, t in state_of(m).items() if not n.startswith("classifier.")}, model.config)
            for m in (reference(family), moved)
        ]
        assert compare(*bare).same_function is False


def test_fixed_residual_streams_are_refused() -> None:
    vit = reference("vit")
    pooled = open_model({**state_of(vit), "vit.pooler.dense.weight": np.eye(24)}, vit.config)
    bare = open_model({n: t for n, t in state_of(vit).items() if not n.startswith("classifier.")}, vit.config)
    for model in (reference("bert"), pooled, bare):
        with pytest.raises(InputError, match="residual stream is fixed"):
            teleport(model, 0, parts=("residual",))


@pytest.mark.parametrize(("family", "activation"), [("arcee", "relu2"), ("nemotron", "relu"), ("llama", "relu"),
                                                    ("llama", "relu2"), ("arcee", "silu")])  # fmt: skip
@pytest.mark.parametrize("scale", [4.0, -4.0])
def test_scales_of_homogeneous_units(family: str, activation: str, scale: float) -> None:
    """φ(cx) = cⁿ φ(x) for c > 0 alone: a switch times c with its column divided by cⁿ is the same function or none."""
    own = reference(family)
    config, state = {**own.config, "hidden_act": activation}, state_of(own)
    model, moved = open_model(state, config), dict(state)
    degree = 2 if activation == "relu2" else 1
    for name, tensor in state.items():
        rows = np.where(np.arange(20) % 3 == 1, scale, 1.0)
        if f"layers.1.mlp.{'gate' if family == 'llama' else 'up'}_proj." in name:
            moved[name] = (tensor.T * rows).T
        if "layers.1.mlp.down_proj.weight" in name:
            moved[name] = tensor / np.abs(rows) ** degree
    other = open_model(moved, config)
    same = scale > 0 and activation != "silu"
    gap = relative(outputs(family, other), outputs(family, model))
    assert (gap < 1e-13) if same else (gap > 1e-4)
    assert compare(model, other).same_function is same
    assert (fingerprint(model).digest == fingerprint(other).digest) is same
    if same:
        assert relative(outputs(family, canonicalize(other).moved()), outputs(family, model)) < 1e-12


@pytest.mark.parametrize("family", ["gpt2", "vit", "opt", "bert", "bart", "gpt_neo"])
@pytest.mark.parametrize("gauge", ["echelon", "balanced"])
def test_heads_as_wide_as_the_stream(family: str, gauge) -> None:
    """Behind a LayerNorm such a head has a coordinate that no key meets: what queries have there is not seen."""
    given = reference(family)
    keys = [key for key in given.config if re.fullmatch("n_head|num_heads|(.*_)?attention_heads", key)]
    model = open_model(state_of(given), {**given.config, **dict.fromkeys(keys, 1)})
    form = canonicalize(model, gauge).moved()
    again = canonicalize(teleport(model, 3).moved(), gauge).moved()
    for other in (form, again):
        assert relative(outputs(family, other), outputs(family, model)) < 1e-11
        assert compare(model, other, level="rounding").same_function
