"""Checkpoints of every family are read, computed and written back; bad folders are refused in one line."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attngeom.errors import AttnGeomError, InputError
from attngeom.models import FAMILIES as KNOWN
from attngeom.models import forward, open_model, specify
from attngeom.models.layout import read_layer, write_layer
from attngeom.models.matching import match_heads
from attngeom.models.unread import Unread
from tests.models.cases import DATA, FAMILIES, distance, expected, inputs, outputs, reference, relative, state_of


@pytest.mark.parametrize("family", FAMILIES)
def test_forward_reproduces_transformers(family: str) -> None:
    # BLOOM's slopes are rounded to float32 inside transformers; everything else agrees to the last digits.
    limit = 1e-8 if family == "bloom" else 1e-13
    assert relative(outputs(family, reference(family)), expected(family)) < limit


def test_parts_of_patches_at_the_border_of_an_image_are_not_read() -> None:
    model, image = reference("vit"), inputs("vit")["pixel_values"]
    wider = np.pad(image, ((0, 0), (0, 1), (0, 1)), constant_values=7.0)
    assert np.array_equal(forward(model, {"pixel_values": wider}), forward(model, {"pixel_values": image}))


@pytest.mark.parametrize("family", ["vit", "beit", "beit_plain", "clip_vision_model"])
@pytest.mark.parametrize("shape", [(3, 16, 16), (3, 8, 8), (3, 8, 18), (1, 12, 12), (12, 12)])
def test_images_of_another_size_are_refused_in_one_line(family, shape):
    with pytest.raises(InputError, match=r"an image of .* given; .* required") as caught:
        forward(reference(family), {"pixel_values": np.zeros(shape)})
    assert "\n" not in str(caught.value) and len(str(caught.value)) <= 200


def test_every_family_has_a_reference() -> None:
    types = {json.loads((DATA / name / "config.json").read_text())["model_type"] for name in FAMILIES}
    assert types == set(KNOWN)


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_round_trip(family: str) -> None:
    model = reference(family)
    for i in range(model.layers):
        stack, index = model.place(i)
        layout, block, layer = model.places.blocks[stack.name], model.block(i), model.layer(i)
        tensors = write_layer(block, layout, index, layer)
        for name, tensor in tensors.items():
            stored = model.tensors.raw(model.stored(name)).astype(float)
            # Scales of outputs lie in the maps that write: of all other tensors nothing changes.
            moved = block.scales_outputs and any(part in name for part in ("output.dense", "fc2", "_out.", "lambda"))
            assert (tensor.shape == stored.shape) if moved else np.array_equal(tensor, stored), name
        load = lambda name, shape, tensors=tensors: tensors[name].reshape(shape)
        assert distance(read_layer(block, layout, index, model.spec.width, load, load), layer) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_are_counted(family: str) -> None:
    model = reference(family)
    named = set(model.names.values())
    total = sum(int(np.prod(model.tensors.headers[name].shape)) for name in named)
    counted = model.spec.parameters - model.spec.other_parameters
    stored = ("correction", "final_logits_bias")
    untrained = sum(int(np.prod(model.tensors.headers[n].shape)) for n in named if any(word in n for word in stored))
    assert counted == total - untrained


def test_a_file_that_is_written_again_is_not_read_by_its_old_header(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "gpt2", tmp_path / "gpt2"))
    model, path = open_model(folder), folder / "model.safetensors"
    name = next(iter(model.tensors))
    assert np.array_equal(model.tensors.raw(name), load_file(path)[name])
    save_file({"other": np.zeros(3), **load_file(path)}, path)
    with pytest.raises(AttnGeomError, match="has changed since it was opened; open it again"):
        model.tensors.raw(name)


def test_state_dict_and_bare_prefix() -> None:
    model = reference("gpt2")
    state = {name.removeprefix("transformer."): tensor for name, tensor in state_of(model).items()}
    assert np.array_equal(open_model(state, model.config).layer(1).attention.output, model.layer(1).attention.output)
    with pytest.raises(InputError, match="config"):
        open_model(state)
    with pytest.raises(InputError, match="required"):
        open_model(3)


class FakeTensor:
    """What a torch tensor looks like from outside."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.dtype = array, array.shape, "torch.float32"

    def detach(self) -> FakeTensor:
        return self

    def cpu(self) -> FakeTensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.array


def test_module_is_duck_typed() -> None:
    model = reference("llama")

    class Module:
        def __init__(self) -> None:
            self.config = dict(model.config)

        def state_dict(self) -> dict[str, FakeTensor]:
            return {name: FakeTensor(tensor.astype(np.float32)) for name, tensor in state_of(model).items()}

    assert relative(outputs("llama", open_model(Module())), expected("llama")) < 1e-13


def shard(folder: Path, target: Path) -> None:
    """The same checkpoint in two shards with an index."""
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    half = len(names) // 2
    table = {}
    for number, part in enumerate((names[:half], names[half:])):
        file = f"model-0000{number + 1}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, target / file)
        table |= dict.fromkeys(part, file)
    (target / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    shutil.copy(folder / "config.json", target)


def test_shards(tmp_path: Path) -> None:
    shard(DATA / "llama", tmp_path)
    assert relative(outputs("llama", open_model(tmp_path)), expected("llama")) < 1e-13


def edit_index(folder: Path, **changes: str | None) -> None:
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    for name, value in changes.items():
        if value is None:
            del index["weight_map"][name]
        else:
            index["weight_map"][name] = value
    path.write_text(json.dumps(index))


def assert_refused(folder: Path, match: str) -> None:
    with pytest.raises(AttnGeomError, match=match) as caught:
        model = open_model(folder)
        for layer in range(model.layers):
            model.layer(layer)
        model.embedding()
    assert len(str(caught.value)) <= 260 and "\n" not in str(caught.value)


def test_bad_shards(tmp_path: Path) -> None:
    shard(DATA / "llama", tmp_path)
    good = (tmp_path / "model-00002-of-00002.safetensors").read_bytes()
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert_refused(tmp_path, "missing")
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(good[: len(good) // 2])
    assert_refused(tmp_path, "not a whole safetensors file")
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(good)
    edit_index(tmp_path, **{"lm_head.weight": "model-00002-of-00002.safetensors"})
    assert_refused(tmp_path, "disagree")
    edit_index(tmp_path, **{"lm_head.weight": "../model.safetensors"})
    assert_refused(tmp_path, "plain name")


def test_bad_folders(tmp_path: Path) -> None:
    assert_refused(tmp_path / "none", "does not exist")
    assert_refused(tmp_path, "safetensors")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    assert_refused(tmp_path, "pickled")
    shutil.copy(DATA / "llama" / "model.safetensors", tmp_path)
    assert_refused(tmp_path, "config.json")
    (tmp_path / "config.json").write_text("[1]")
    assert_refused(tmp_path, "JSON object")


def test_links_that_leave_are_refused(tmp_path: Path) -> None:
    shutil.copy(DATA / "llama" / "config.json", tmp_path)
    (tmp_path / "model.safetensors").symlink_to(DATA / "llama" / "model.safetensors")
    assert_refused(tmp_path, "leaves the folder")
    hub = tmp_path / "hub"
    (hub / "blobs").mkdir(parents=True)
    (hub / "snapshots" / "a").mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(DATA / "llama" / name, hub / "blobs" / name)
        (hub / "snapshots" / "a" / name).symlink_to(f"../../blobs/{name}")
    assert open_model(hub / "snapshots" / "a").layers == 2


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"hidden_size": 25}, "shape"),
        ({"num_hidden_layers": 3}, "missing"),
        ({"num_hidden_layers": 10**9}, "integer"),
        ({"num_hidden_layers": 2049}, "at most 2048 layers"),
        ({"head_dim": 2**28}, "rotated coordinates"),
        ({"hidden_size": 2**40}, "integer"),
        ({"num_attention_heads": 3}, "groups must divide|shape"),
        ({"num_attention_heads": 0}, "integer"),
        ({"rms_norm_eps": "x"}, "finite number"),
        ({"hidden_act": "swoosh"}, "activations"),
        ({"model_type": "mambo"}, "not known; to add it"),
        ({"rope_parameters": {"rope_type": "odd", "rope_theta": 1e4}}, "rope type"),
        ({"attention_bias": True}, "missing"),
    ],
)
def test_configs_that_do_not_fit(tmp_path: Path, changes: dict[str, object], match: str) -> None:
    shutil.copy(DATA / "llama" / "model.safetensors", tmp_path)
    config = json.loads((DATA / "llama" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    assert_refused(tmp_path, match)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda w: np.full_like(w, np.nan), "NaN"),
        (lambda w: np.full_like(w, np.inf), "NaN"),
        (lambda w: np.full_like(w, 1e39, dtype=np.float64), "beyond float32"),
        (lambda w: w.astype(np.int32), "type"),
        (lambda w: w[:-1], "shape"),
    ],
)
def test_bad_tensors(tmp_path: Path, change: object, match: str) -> None:
    shutil.copy(DATA / "llama" / "config.json", tmp_path)
    tensors = load_file(DATA / "llama" / "model.safetensors")
    name = "model.layers.1.mlp.down_proj.weight"
    tensors[name] = change(tensors[name])  # type: ignore[operator]
    save_file(tensors, tmp_path / "model.safetensors")
    assert_refused(tmp_path, match)


def test_variants_are_refused() -> None:
    config = json.loads((DATA / "opt" / "config.json").read_text())
    with pytest.raises(InputError, match="variant"):
        specify({**config, "word_embed_proj_dim": 10, "tie_word_embeddings": False})


def test_unread_tensors_are_named() -> None:
    state = state_of(reference("llama"))
    state["model.layers.0.extra.weight"] = np.ones(3)
    found = open_model(state, reference("llama").config).unread()
    assert found == {"model.layers.0.extra.weight": Unread.UNKNOWN}
    assert set(reference("whisper").unread()) == {
        f"model.encoder.conv{i}.{part}" for i in (1, 2) for part in ("weight", "bias")
    }


def test_heads_are_matched_where_one_model_has_none() -> None:
    """A feature that is zero in the first model and large in the second is no infinite cost."""
    full = reference("gpt2").layer(0).attention
    assert full is not None
    empty = replace(full, output=np.zeros_like(full.output))
    large = replace(full, output=1e30 * full.output)
    assert sorted(match_heads(empty, large)[0]) == list(range(full.heads))
