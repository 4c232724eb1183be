"""Was this model made from that one? Disguises change nothing, enemies of a matching are met, strangers stay so."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from attngeom.cli.app import run as run_command
from attngeom.errors import InputError
from attngeom.models import Model, lineage, open_model, teleport
from attngeom.models.ancestry import content, streams
from attngeom.models.ancestry import lineage as lineages
from attngeom.models.ancestry.content import view_of
from attngeom.models.ancestry.pictures import describe, draw_map
from attngeom.models.ancestry.reference import reference as reference_table
from attngeom.models.ancestry.similarity import compare_spectra
from attngeom.models.orbits import PARTS
from attngeom.models.residual import has_free_stream
from attngeom.models.samples import GPT2, LLAMA, random_model, tensor_shapes
from tests.effort import choose
from tests.models.cases import FAMILIES, reference, state_of

SMALL = {**LLAMA, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3, "vocab_size": 96}
WHOLE = (*PARTS, "residual")


def noisy(model: Model, size: float, seed: int) -> Model:
    """Every weight times 1 + noise; what repeats another tensor goes on doing so."""
    rng = np.random.default_rng(seed)
    state = {name: w * (1 + size * rng.normal(size=w.shape)) for name, w in state_of(model).items()}
    state |= {copy: state[name] for copy, name in model.copied()}
    return open_model(state, model.config)


def numbers(child: Model, parent: Model) -> np.ndarray:
    found = lineage(child, [parent]).parents[0]
    layers = [(layer.matches, layer.similarity) for layer in found.layers]
    return np.array([found.similarity, found.heads, found.units, found.beyond[1], *np.ravel(layers)])


def disguised(model: Model, seed: int) -> Model:
    parts = WHOLE if has_free_stream(model.headed) else PARTS
    return teleport(model, seed, parts=parts).moved()


@pytest.mark.parametrize("family", FAMILIES)
def test_no_disguise_of_either_model_changes_anything(family):
    """200 disguises in the thorough run, of a noisy copy and of the model itself."""
    parent = reference(family)
    child = noisy(parent, 0.1, 3)
    plain = numbers(child, parent)
    assert 0.3 < plain[0] < 0.9999
    for seed in range(choose(1, 100)):
        for one, other in ((disguised(child, seed), parent), (child, disguised(parent, seed + 1000))):
            assert np.abs(numbers(one, other) - plain).max() < 1e-8


@pytest.mark.parametrize("config", [SMALL, {**GPT2, "n_embd": 48, "vocab_size": 96}], ids=["llama", "gpt2"])
def test_strangers_are_not_alike_and_disguises_do_not_change_that(config):
    one, other = random_model(config, 1), random_model(config, 2)
    found = lineage(one, [other])
    assert found.verdict is False and found.parents[0].similarity < 0.1
    again = lineage(disguised(one, 5), [disguised(other, 6)])
    assert abs(again.parents[0].similarity - found.parents[0].similarity) < 1e-8


def stacked(parts: list[tuple[Model, int]], outside: Model) -> Model:
    """A model whose layers are layers of others."""
    state = {name: w for name, w in state_of(outside).items() if ".layers." not in name}
    for place, (model, layer) in enumerate(parts):
        own = {n: w for n, w in state_of(model).items() if f".layers.{layer}." in n}
        state |= {name.replace(f".layers.{layer}.", f".layers.{place}."): w for name, w in own.items()}
    return open_model(state, {**outside.config, "num_hidden_layers": len(parts)})


def first_values(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Of recipes by which independent models begin alike: weights of positive mean, values that are −1 together."""
    if len(shape) == 1:
        return np.ones(shape)
    return rng.random(shape) if kind == "positive" else rng.normal(size=shape) / 50


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("kind", ["positive", "one value map"])
def test_recipes_that_begin_alike_accuse_nobody(kind, heads):
    """Their models are more alike than all of the reference; disguised copies of one of them are told all the same."""
    config = {
        **LLAMA, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 160, "num_attention_heads": heads,
        "num_key_value_heads": 1, "head_dim": 64 // heads,
    }  # fmt: skip
    models = []
    for seed in range(2):
        rng = np.random.default_rng([seed, heads])
        state = {name: first_values(kind, shape, rng) for name, shape in tensor_shapes(config).items()}
        if kind == "one value map":
            for layer in range(config["num_hidden_layers"]):
                values = np.linalg.qr(rng.normal(size=(64, 64)))[0][: 64 // heads]
                state[f"model.layers.{layer}.self_attn.v_proj.weight"] = values
                state[f"model.layers.{layer}.self_attn.o_proj.weight"] = -np.tile(values.T, heads)
        models.append(open_model(state, config))
    found = lineage(models[0], [models[1]])
    assert found.parents[0].similarity > found.table.largest_independent
    assert found.verdict is None and "one recipe" in found.reason
    copy = lineage(disguised(noisy(models[0], 0.02, 1), 7), [models[0]])
    assert copy.parents[0].similarity > 0.9 and copy.verdict is True


def test_layers_in_another_order_are_named():
    base = random_model(SMALL, 1)
    child = disguised(stacked([(base, 2), (base, 0), (base, 0), (base, 1)], base), 4)
    found = lineage(child, [base])
    assert [layer.matches for layer in found.parents[0].layers] == [2, 0, 0, 1] and found.verdict
    assert min(layer.similarity for layer in found.parents[0].layers) > 0.999


def test_a_block_that_does_nothing_hides_no_other():
    base = random_model(SMALL, 1)
    state = state_of(stacked([(base, 0), (base, 1), (base, 1), (base, 2)], base))
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        state[f"model.layers.2.{name}.weight"][:] = 0
    child = open_model(state, {**SMALL, "num_hidden_layers": 4})
    found = lineage(disguised(child, 2), [base]).parents[0]
    assert [found.layers[i].matches for i in (0, 1, 3)] == [0, 1, 2]
    assert abs(found.similarity - 0.75) < 1e-6 and abs(found.layers[2].similarity) < 1e-6


def test_layers_of_two_parents_are_told_apart():
    one, other = random_model(SMALL, 1), random_model(SMALL, 2)
    child = noisy(stacked([(one, 0), (other, 1), (other, 2), (one, 2)], one), 0.02, 1)
    found = lineage(disguised(child, 3), [other, one, random_model(SMALL, 3)])
    assert found.best.path == found.parents[1].path
    best = [max(range(3), key=lambda k: found.parents[k].layers[i].similarity) for i in range(4)]
    assert best == [1, 0, 0, 1] and found.verdict
    named = [found.parents[k].layers[i].matches for i, k in enumerate(best)]
    assert named == [0, 1, 2, 2]


def test_the_test_that_is_told_first_is_that_of_the_token_table():
    """A merge by layers may be more like the parent that its tokens are not of."""
    one, other = random_model(SMALL, 1), random_model(SMALL, 2)
    child = disguised(stacked([(one, 0), (other, 1), (other, 2)], one), 3)
    found = lineage(child, [other, one], unused=range(60, 90))
    record = found.to_json()["test"]
    assert found.best.path == found.parents[0].path and found.parents[0].test.p > 0.01
    assert record["own"] == 30 and record["p"] == found.parents[1].test.p == found.tested.test.p
    assert found.tested is found.parents[1] and "parent" in record


def test_pruned_heads_and_units_are_found_again():
    base = random_model(SMALL, 1)
    state = state_of(base)
    for layer in range(3):
        place = f"model.layers.{layer}."
        for name, rows in (("q", slice(16, 32)), ("k", slice(8, 16)), ("v", slice(8, 16))):
            key = f"{place}self_attn.{name}_proj.weight"
            state[key] = np.ascontiguousarray(state[key][rows])
        key = f"{place}self_attn.o_proj.weight"
        state[key] = np.ascontiguousarray(state[key][:, 16:32])
        for name in ("gate", "up"):
            state[f"{place}mlp.{name}_proj.weight"] = np.ascontiguousarray(
                state[f"{place}mlp.{name}_proj.weight"][10:50]
            )
        key = f"{place}mlp.down_proj.weight"
        state[key] = np.ascontiguousarray(state[key][:, 10:50])
    config = {**SMALL, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 40}
    found = lineage(disguised(open_model(state, config), 7), [base]).parents[0]
    assert found.similarity > 1 - 1e-9


def test_an_mlp_that_became_experts_is_found_in_each():
    base = random_model(SMALL, 1)
    state, names = {}, {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
    for name, w in state_of(base).items():
        part = name.split(".")[-2]
        if part not in names:
            state[name] = w
            continue
        place = name.split("mlp.")[0] + "block_sparse_moe."
        state |= {f"{place}experts.{e}.{names[part]}.weight": w for e in range(2)}
        state[f"{place}gate.weight"] = np.random.default_rng(0).normal(size=(2, 48))
    config = {**SMALL, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 2}
    child = open_model(state, {**config, "num_experts_per_tok": 1})
    assert lineage(disguised(child, 1), [base]).parents[0].similarity > 1 - 1e-9


@pytest.mark.parametrize("change", ["more", "fewer", "other order"])
def test_other_vocabularies(change):
    base = random_model(SMALL, 1)
    state, rng = state_of(base), np.random.default_rng(0)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        w = state[name]
        state[name] = {"more": np.concatenate([w, rng.normal(size=(7, 48))]), "fewer": w[:80].copy()}.get(change, w)
    if change == "other order":
        order = rng.permutation(96)
        state |= {name: state[name][order] for name in ("model.embed_tokens.weight", "lm_head.weight")}
    rows = len(state["lm_head.weight"])
    child = noisy(open_model(state, {**SMALL, "vocab_size": rows}), 0.03, 2)
    found = lineage(disguised(child, 4), [base])
    assert found.verdict and found.parents[0].similarity > 0.8
    assert found.parents[0].stream == ("moments" if change == "other order" else "tokens")


def test_other_widths_and_kinds_of_stack_are_not_compared():
    base = random_model(SMALL, 1)
    wide = lineage(random_model({**SMALL, "hidden_size": 32}, 1), [base])
    assert wide.verdict is None and wide.standing == "undecided" and "width" in wide.reason
    assert wide.parents[0].similarity is None and 0 < wide.parents[0].spectra <= 1
    assert "singular values" in wide.text() and wide.to_json()["parents"][0]["left_out"] == wide.reason
    same = compare_spectra(view_of(disguised(base, 3)), view_of(base))
    assert same == pytest.approx(1.0)
    encoder = lineage(reference("bert"), [reference("gpt2")])
    assert encoder.verdict is None


def test_another_family_of_the_same_width_is_compared():
    """A GPT-2 and a Llama: heads with and without rotary positions are held against each other at distance 0."""
    one = random_model({**GPT2, "n_embd": 32}, 1)
    found = lineage(random_model(LLAMA, 1), [one])
    assert found.verdict is False and abs(found.parents[0].similarity) < 0.2


def test_shared_parts_are_said_with_their_symmetry():
    base = random_model(SMALL, 1, np.float32)
    state = {name: np.asarray(base.tensors.raw(name)).copy() for name in base.tensors}
    rng = np.random.default_rng(0)
    for name in state:
        if ".layers.1." in name:
            state[name] = (state[name] * (1 + 0.05 * rng.normal(size=state[name].shape))).astype(np.float32)
    child = open_model(state, SMALL)
    (parent,) = lineage(child, [base]).parents
    assert [(part.layer, part.symmetry) for part in parent.shared if part.part == "layer"] == [
        (0, "stored alike"), (2, "stored alike"),
    ]  # fmt: skip
    (parent,) = lineage(teleport(child, 1).moved(), [base]).parents
    assert {(part.layer, part.symmetry) for part in parent.shared if part.part == "layer"} == {
        (0, "a symmetry of the block"), (2, "a symmetry of the block"),
    }  # fmt: skip
    (parent,) = lineage(teleport(child, 1, parts=WHOLE).moved(), [base]).parents
    words = {part.symmetry for part in parent.shared if part.part == "layer"}
    assert words == {"a change of the stream and a symmetry of the block"}


def test_the_record_has_the_keys_of_the_contract():
    base = random_model(SMALL, 1)
    record = json.loads(json.dumps(lineage(base, [base], unused=range(40, 60)).to_json()))
    assert {"child", "parents", "reference", "standing", "reason", "test"} <= record.keys()
    assert {"path", "similarity", "heads", "units", "layers", "shared"} <= record["parents"][0].keys()
    assert {"layer", "matches", "similarity"} <= record["parents"][0]["layers"][0].keys()
    assert {"pairs", "largest_independent"} <= record["reference"].keys()
    assert {"tokens", "own", "p", "assumption"} <= record["test"].keys()
    assert record["reference"]["pairs"] >= 100 and reference_table().largest_independent < 0.5


@dataclass(frozen=True)
class Run:
    code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys):
    def call(*arguments: str) -> Run:
        code = run_command(list(arguments))
        return Run(code, *capsys.readouterr())

    return call


def save(model: Model, folder: Any, **files: Any) -> str:
    folder.mkdir()
    save_file({n: np.ascontiguousarray(model.tensors.raw(n)) for n in model.tensors}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(dict(model.config)))
    for name, text in files.items():
        (folder / f"{name}.json").write_text(json.dumps(text))
    return str(folder)


def test_commands_and_exit_codes(tmp_path, run):
    base, stranger = random_model(SMALL, 1, np.float32), random_model(SMALL, 2, np.float32)
    words = {"model": {"type": "BPE", "vocab": {f"w{i}": i for i in range(70)}}}
    a = save(base, tmp_path / "a", tokenizer=words)
    b = save(noisy(base, 0.05, 1), tmp_path / "b", tokenizer=words)
    c = save(stranger, tmp_path / "c")
    same = run("model", "lineage", b, c, a, "--json")
    record = json.loads(same.stdout)
    assert same.code == 0 and record["test"]["tokens"] == 26 and record["test"]["own"] == 26
    assert record["test"]["p"] < 1e-20 and "never saw" in record["test"]["assumption"]
    other = run("model", "lineage", b, c)
    assert other.code == 1 and "no test: no tokenizer.json" in other.stdout
    assert run("model", "lineage", save(random_model(LLAMA, 1), tmp_path / "d"), a).code == 3
    told = run("model", "lineage", b, c, "--unused", "90-95")
    assert "of 6 unused tokens find themselves" in told.stdout and "never saw them" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a"], "'parents'"), (["a", "missing"], "does not exist"), (["a", "b", "b"], "given twice"),
        (["a", "b", "--unused", "5,5"], "given twice"), (["a", "b", "--unused", "x"], "ids and ranges"),
        (["a", "b", "--unused", "500"], "ids 0 to 95"), (["a", "nan"], "NaN"), (["a", "torn"], "not a whole"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(tmp_path, run, arguments, words):
    base = random_model(SMALL, 1, np.float32)
    for name in ("a", "b"):
        save(base, tmp_path / name)
    state = state_of(base)
    state["model.layers.1.mlp.up_proj.weight"][0, 0] = np.nan
    save(base, tmp_path / "torn")
    (tmp_path / "torn" / "model.safetensors").write_bytes((tmp_path / "a" / "model.safetensors").read_bytes()[:-100])
    (tmp_path / "nan").mkdir()
    save_file(state, tmp_path / "nan" / "model.safetensors")
    (tmp_path / "nan" / "config.json").write_text(json.dumps(SMALL))
    places = [str(tmp_path / name) if len(name) < 8 and name.isalpha() and name != "x" else name for name in arguments]
    found = run("model", "lineage", *places)
    assert found.code == 2 and words in found.stderr and len(found.stderr.strip().splitlines()) == 1


def test_no_parent_is_refused():
    with pytest.raises(InputError, match="no parent"):
        lineage(random_model(SMALL, 1), [])


def test_last_bits_decide_no_order():
    """Equal layers and equal parents stand in their own order, whatever the kernels of the CPU make of them."""
    model = random_model(LLAMA, seed=3)
    answer = lineage(model, [model, model])
    parent = answer.parents[0]
    layers = tuple(
        replace(layer, similarity=value) for layer, value in zip(parent.layers, (1.0, 1 - 2**-52), strict=True)
    )
    lines = describe(replace(answer, parents=(replace(parent, layers=layers),)), every=True).splitlines()
    assert [line.split()[1] for line in lines if "is most like" in line] == ["0", "1"]
    worse = replace(parent, path="first", similarity=1 - 2**-52)
    assert replace(answer, parents=(worse, replace(parent, path="second", similarity=1.0))).best.path == "first"


def test_strangers_have_no_map_and_maps_fit_sixty_columns():
    one, other = random_model(SMALL, 1), random_model(SMALL, 2)
    text = lineage(one, [other]).text()
    assert "no map: no two layers are alike" in text and "│" not in text
    assert "█" in lineage(one, [one]).text()
    assert max(map(len, draw_map(np.eye(130)))) <= 60


WIDE = {**SMALL, "hidden_size": 256, "vocab_size": 60}


@pytest.fixture
def wide(monkeypatch):
    """Streams from width 256 on are wide, so that nothing has to be."""
    for module in (content, streams, lineages):
        monkeypatch.setattr(module, "SINGLE_PRECISION_WIDTH", 256)


def test_a_wide_stream_with_few_tokens_is_compared_in_their_span(wide):
    """Second moments would take minutes there; 120 named rows span 120 directions."""
    parent = random_model(WIDE, 1)
    child = noisy(parent, 0.1, 2)
    found = lineage(child, [parent], unused=range(50, 60))
    best = found.parents[0]
    assert best.stream == "tokens, which span 120 of 256 directions" and found.verdict is True
    assert best.similarity > 0.8 and best.width == 120 and best.test.own == 10
    assert [layer.matches for layer in best.layers] == [0, 1, 2]
    plain = numbers(child, parent)
    for seed in range(choose(2, 50)):
        for one, other in ((disguised(child, seed), parent), (child, disguised(parent, seed))):
            assert np.abs(numbers(one, other) - plain).max() < 1e-4
    stranger = lineage(random_model(WIDE, 5), [parent], unused=range(50, 60))
    assert stranger.verdict is False and stranger.parents[0].similarity < 0.1
    assert stranger.parents[0].test.p > 0.01


def test_an_exact_copy_in_the_span_is_shared_and_equal_up_to_the_block(wide):
    parent = random_model(WIDE, 1)
    best = lineage(teleport(parent, 3, parts=PARTS).moved(), [parent]).parents[0]
    assert abs(best.similarity - 1) < 1e-4
    assert {part.symmetry for part in best.shared if part.part == "layer"} == {"a symmetry of the block"}


def test_a_wide_stream_with_a_handful_of_tokens_is_left_open_in_one_sentence(wide):
    parent = random_model({**WIDE, "vocab_size": 20}, 1)
    found = lineage(noisy(parent, 0.01, 2), [parent])
    assert found.verdict is None and found.standing == "undecided"
    assert "span 40 of 256 directions, too few" in found.reason


def test_tokens_that_say_the_same_leave_a_wide_stream_to_fewer_directions(wide):
    """Equal rows and rows of zeros are no directions, however many there are."""
    parent = random_model({**WIDE, "vocab_size": 400}, 1)
    state = state_of(parent)
    for table in ("model.embed_tokens.weight", "lm_head.weight"):
        state[table][100:300], state[table][300:] = state[table][:1], 0.0
    parent = open_model(state, parent.config)
    best = lineage(noisy(parent, 0.0, 2), [parent]).parents[0]
    assert best.stream == "tokens, which span 200 of 256 directions" and best.similarity > 0.999


def test_heat_maps_show_their_titles_whole_and_count_layers():
    """Long paths and long reasons stay inside the picture, and no layer is numbered 0.5."""
    pytest.importorskip("matplotlib")
    base = random_model(SMALL, 1)
    found = lineage(base, [base])
    path = "/a/rather/long/path/to/some/folder/of/checkpoints/checkpoint-000123"
    parent = replace(found.parents[0], path=path)
    found = replace(found, parents=(parent,), reason=f"{path}: similarity 1.000, {'more alike than all others, ' * 3}")
    picture = found.plot()
    picture.canvas.draw()
    box = picture.bbox
    texts = [picture._suptitle, *(axes.title for axes in picture.axes)]
    for text in texts:
        extent = text.get_window_extent()
        assert box.x0 <= extent.x0 and extent.x1 <= box.x1, text.get_text()
    ticks = [*picture.axes[0].get_xticks(), *picture.axes[0].get_yticks()]
    assert all(float(tick).is_integer() for tick in ticks)
