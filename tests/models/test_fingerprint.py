"""Fingerprints do not change under exact symmetries and storage, and change with one ulp anywhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from attngeom.models import act, compare, fingerprint, open_model, random_symmetry
from attngeom.models.fingerprints import layer_fingerprint
from attngeom.models.layout import write_layer
from attngeom.models.readers import key_bias_is_invisible
from attngeom.models.residues import P, apply, random_residues, residues
from tests.effort import choose
from tests.models.cases import FAMILIES, ExactSampler, changed, reference, state_of


def as_residue(value: float) -> int:
    number = Fraction(float(value))
    return number.numerator * pow(number.denominator, -1, P) % P


def test_residues_are_exact() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.1, -3e300, 5e-324, 2.0**61 - 1, 2.0**61])
    assert [int(r) for r in residues(values)] == [as_residue(v) for v in values]
    single = np.array([0.1, -7e-40, 1e38, -3.0], dtype=np.float32)
    assert [int(r) for r in residues(single)] == [as_residue(v) for v in single]


def test_products_are_exact() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(5, 5000)) * 10.0 ** rng.integers(-30, 30, (5, 5000))
    vectors = [random_residues(5000, "a"), random_residues(5000, "b", total_zero=True)]
    assert sum(vectors[1]) % P == 0
    found = apply(matrix, vectors)
    for row, result in zip(matrix, found):
        for vector, value in zip(vectors, result):
            assert sum(as_residue(a) * int(b) for a, b in zip(row, vector)) % P == value


def half(values: np.ndarray) -> np.ndarray:
    """The upper halves of float32, as bfloat16 stores them."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


def enemies(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Matrices at the borders between products of integers, of integers and a few rests, and of residues."""
    normal = rng.normal(size=shape)
    spread = normal * 2.0 ** rng.integers(-40, 1, shape)
    tiny = half(normal)
    tiny[rng.random(shape) < 2e-3] *= np.float32(2.0**-90)
    return {
        "half": half(normal),
        "float16": normal.astype(np.float16).astype(np.float64),
        "few small rests": tiny,
        "many small rests": half(spread),
        "subnormal": half(normal * 1e-41),
        "near the largest": half(normal * 1e37),
        "zeros": np.zeros(shape, dtype=np.float32),
        "largest sums": np.full(shape, (2.0**29 - 1) * 2.0**-70 * rng.choice([-1.0, 1.0])),
        "integers, then reals": np.concatenate([half(normal[:20]).astype(np.float64), normal[20:]]),
        "beyond the scale": half(normal) * 2.0**-950,
    }[kind]


KINDS = (
    "half", "float16", "few small rests", "many small rests", "subnormal", "near the largest", "zeros",
    "largest sums", "integers, then reals", "beyond the scale",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_columns", [False, True])
def test_products_are_exact_wherever_their_arithmetic_changes(kind, by_columns):
    rng = np.random.default_rng([4, KINDS.index(kind)])
    matrix = enemies(kind, rng, (40, 2100))
    vectors = [random_residues(2100, "a"), np.full(2100, P - 1, dtype=object)]
    found = apply(np.asfortranarray(matrix) if by_columns else matrix, vectors)
    for place in (0, 19, 20, 39):
        row = [as_residue(x) for x in matrix[place]]
        assert [sum(a * int(b) for a, b in zip(row, vector)) % P for vector in vectors] == found[place].tolist()


def exactly_moved(family: str, seed: int, dyadic: bool = True):
    """A symmetry of every layer without rounding; gains of latents, and of all heads, become powers of two first."""
    model = reference(family)
    state = state_of(model)
    if dyadic:
        for name in state:
            if any(part in name for part in ("_a_layernorm", "linear_attn.norm", "linear_attn.o_norm")):
                state[name] = 2.0 ** np.round(state[name])
        model = open_model(state, model.config)
    moved = dict(state)
    for i in range(model.layers):
        stack, index = model.place(i)
        block, layer = model.block(i), model.layer(i)
        symmetry = random_symmetry(block, layer, ExactSampler(seed + i), ordered=bool(stack.relative_buckets))
        new = write_layer(block, model.places.blocks[stack.name], index, act(block, layer, symmetry))
        moved |= {model.stored(name): tensor for name, tensor in new.items()}
    return model, open_model(moved, model.config)


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_symmetries_keep_it(family: str) -> None:
    model, moved = exactly_moved(family, 3)
    one, two = fingerprint(model), fingerprint(moved)
    assert one.digest == two.digest
    assert one.is_generic and one.error_probability < 1e-12
    names = set(model.layer_names(0))
    assert any(
        not np.array_equal(model.load(n, s), moved.load(n, s)) for n, s in model.layer_names(0).items() if n in names
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_one_ulp_changes_it(family: str) -> None:
    """Every tensor of the description is seen, except those that the theory calls invisible."""
    model = reference(family)
    rng = np.random.default_rng(0)
    attention = model.block(0).attention
    invisible = ("no such name",)
    if attention is not None and key_bias_is_invisible(attention):
        invisible = ("key.bias", "k_proj.bias", "k_lin.bias", "attn.k.bias")
    outside = set(model.outer_names())
    digest, first = fingerprint(model).outside, layer_fingerprint(model, 0).digest
    # A sixth of the tensors of each family in every run: over the families all kinds of them.
    step = choose(6, 1)
    for table, name in list(model.names.items())[FAMILIES.index(family) % step :: step]:
        if name.endswith(invisible) or (table not in outside and table not in model.layer_names(0)):
            continue

        def nudge(w: np.ndarray, name: str = name) -> np.ndarray:
            flat = w.reshape(-1)
            place = rng.integers(flat.size)
            if "c_attn.bias" in name or "query_key_value.bias" in name:
                place = 1  # a query bias: key biases of these fused tensors are invisible where they are not rotated
            if "k_layernorm.bias" in name:
                place = 0  # likewise: Persimmon rotates the first half of a head
            if "embed_positions" in name:
                place = flat.size - 1  # the first rows of BART and OPT stand for no position
            if "relative_attention_bias" in name:
                place = w.shape[-1]  # of neighbours: no position of MPNet is far enough from another for the last row
            flat[place] = np.nextafter(flat[place], np.inf)
            return w

        moved = changed(model, name, nudge)
        if table not in outside:
            assert layer_fingerprint(moved, 0).digest != first, name
        elif "final" not in name and "encoder.layer_norm" not in name:
            assert fingerprint(moved).outside != digest, name
        else:
            # The final norm of an encoder is read by the cross-attention of the decoder's layers.
            assert fingerprint(moved).digest != fingerprint(model).digest, name


@pytest.mark.parametrize("family", ["vit", "bert", "opt", "opt_projected"])
def test_key_biases_are_invisible(family: str) -> None:
    model = reference(family)
    name = next(n for n in model.names.values() if n.endswith(("key.bias", "k_proj.bias")))
    assert fingerprint(changed(model, name, lambda b: b + 1.0)).digest == fingerprint(model).digest


def test_key_biases_are_seen_under_rotation() -> None:
    model = reference("qwen2")
    name = "model.layers.0.self_attn.k_proj.bias"
    assert fingerprint(changed(model, name, lambda b: b + 1.0)).digest != fingerprint(model).digest


def interleaved(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of every head from half-split to interleaved pairs."""
    a = len(rows) // heads
    order = np.stack([np.arange(a // 2), np.arange(a // 2, a)], axis=1).reshape(-1)
    return rows.reshape(heads, a, -1)[:, order].reshape(rows.shape)


def test_rotary_layout_is_forgotten() -> None:
    """Cohere stores interleaved pairs: half-split rows give the same layer after the permutation."""
    half, model = reference("llama"), reference("cohere")
    state = state_of(half)
    config = {**half.config, "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}
    names = {name: name for name in state if ".layers.0." in name or "embed" in name or name == "model.norm.weight"}
    other = {name: state[name] for name in names}
    for name, heads in (("q_proj", 4), ("k_proj", 2)):
        full = f"model.layers.0.self_attn.{name}.weight"
        other[full] = interleaved(state[full], heads)
    cohere = open_model(
        {n: t for n, t in other.items() if "post_attention" not in n}, {**model.config, "num_hidden_layers": 1}
    )
    llama = open_model({n: t for n, t in state.items() if ".layers.1." not in n}, {**config, "num_hidden_layers": 1})
    one, two = layer_fingerprint(cohere, 0), layer_fingerprint(llama, 0)
    # The norms differ in kind, so compare heads after making the probes agree: RMS against LayerNorm is not the point.
    assert len(one.heads) == len(two.heads) == 4
    a, b = cohere.layer(0).attention, llama.layer(0).attention
    assert np.array_equal(a.rotated_query.weight, b.rotated_query.weight)
    assert np.array_equal(a.rotated_key.weight, b.rotated_key.weight)


def test_fused_and_split_agree() -> None:
    """Phi-3 stores q, k, v and gate, up in one tensor each: split as in the Llama family it is the same function."""
    source = reference("phi3")
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    model = open_model(state_of(source), {**source.config, "rope_parameters": rope})
    state = {}
    for name, tensor in state_of(model).items():
        if "qkv_proj" in name:
            for part, rows in zip("qkv", np.split(tensor, [32, 48])):
                state[name.replace("qkv_proj", f"{part}_proj")] = rows
        elif "gate_up_proj" in name:
            state[name.replace("gate_up_proj", "gate_proj")], state[name.replace("gate_up_proj", "up_proj")] = np.split(
                tensor, 2
            )
        else:
            state[name] = tensor
    split = open_model(state, {**model.config, "model_type": "llama"})
    assert fingerprint(split).digest == fingerprint(model).digest


def test_shared_and_repeated_keys_agree() -> None:
    model = reference("qwen2")
    state = state_of(model)
    for name in state:
        if any(part in name for part in ("k_proj", "v_proj")):
            heads = state[name].reshape(2, 8, -1)
            state[name] = np.repeat(heads, 2, axis=0).reshape(32, *state[name].shape[1:])
    expanded = open_model(state, {**model.config, "num_key_value_heads": 4})
    assert fingerprint(expanded).digest == fingerprint(model).digest


def test_negated_relu_unit_is_another_function() -> None:
    model = reference("opt")
    state = state_of(model)
    prefix = "model.decoder.layers.0."
    state[f"{prefix}fc1.weight"][3] *= -1
    state[f"{prefix}fc1.bias"][3] *= -1
    state[f"{prefix}fc2.weight"][:, 3] *= -1
    assert fingerprint(open_model(state, model.config)).digest != fingerprint(model).digest


def test_seed_changes_digests_and_dead_units_are_not_generic() -> None:
    model = reference("llama")
    assert fingerprint(model, 1).digest != fingerprint(model, 0).digest
    dead = changed(model, "model.layers.0.mlp.down_proj.weight", lambda w: w * (np.arange(20) != 4))
    assert not fingerprint(dead).is_generic


@pytest.mark.parametrize("family", ["electra_narrow", "albert", "electra", "bert", "deberta-v2"])
def test_tokens_that_a_head_reads_again_are_seen_along_1(family: str) -> None:
    """A number added to all entries of the table is not seen behind the norm of the tables, but by the head."""
    model = reference(family)
    name = next(name for name in model.tensors if name.endswith("word_embeddings.weight"))
    shifted = changed(model, name, lambda table: table + 0.125)
    assert fingerprint(shifted).digest != fingerprint(model).digest
    assert compare(model, shifted).same_function is False
    bare = {key: value for key, value in state_of(model).items() if not key.startswith(model.places.rereader)}
    base = [open_model(bare, model.config), changed(open_model(bare, model.config), name, lambda table: table + 0.125)]
    assert compare(*base).same_function
