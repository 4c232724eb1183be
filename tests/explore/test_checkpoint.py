"""The view of checkpoints: heads, strata, λ and comparisons are those of the library, for files and model folders."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import attngeom
from attngeom.errors import AttnGeomError
from attngeom.exact import QQ, RR
from attngeom.explore.controls import read_state
from attngeom.explore.pages import math
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from attngeom.explore.views.checkpoint import MEASURES, facts_of_weights, head_differences
from attngeom.models import open_model
from attngeom.models.inspection import inspect_model
from attngeom.network import random_symmetry
from tests.explore.conftest import INPUTS

VIEW = find_view("checkpoint")
MODELS = Path(__file__).parents[1] / "models" / "data"


def state_of(*paths, measure="condition"):
    query = {"file": "1", "measure": measure} | ({"other": "2"} if len(paths) > 1 else {})
    return read_state(VIEW.controls, query, Shelf.of_paths(paths))


@pytest.mark.parametrize("name", ["layer.json", "deep.safetensors", "heads.json", "stratum_singular.json"])
def test_stratum_hypotheses_and_lambda_are_the_library_s(name):
    weights = attngeom.read_weights(INPUTS / name)
    page = VIEW.show(state_of(INPUTS / name))
    for found in (attngeom.inspect(weights), attngeom.learning_coefficient(weights)):
        assert f'class="badge {found.standing}"' in page
        for label, value in found.rows().items():
            assert value == found.reason or f"<dt>{math(label)}</dt><dd>{math(value)}</dd>" in page


def test_heads_have_their_rank_condition_and_twin():
    architecture = attngeom.Architecture((3, 3), 2, heads=2, value_width=1)
    weights = attngeom.random_weights(architecture, QQ, 0)
    twice = attngeom.Weights(architecture, QQ, ((weights.layers[0][0], weights.layers[0][0]),))
    first, second = facts_of_weights(twice)
    assert first.twin is None and second.twin == 0 and first.rank == second.rank == 2
    values = np.linalg.svd(RR.convert(twice.attention_matrices()[0][0]), compute_uv=False)
    assert first.condition == pytest.approx(values[0] / values[1])
    assert facts_of_weights(weights)[1].twin is None


@pytest.mark.parametrize("name", ["deep", "layer", "heads"])
def test_symmetries_are_found_and_no_head_is_missed(name):
    paths = INPUTS / f"{name}.json", INPUTS / f"{name}_moved.json"
    page = VIEW.show(state_of(*paths))
    assert 'data-verdict="same"' in page
    one, other = map(attngeom.read_weights, paths)
    found = attngeom.compare(one, other)
    assert max(max(row) for row in head_differences(one, other, found.symmetry)) == 0.0
    wrong = random_symmetry(one.architecture, one.domain, seed=5)
    assert max(max(row) for row in head_differences(one, other, wrong)) > 0


def test_different_functions_come_with_an_input():
    page = VIEW.show(state_of(INPUTS / "deep.json", INPUTS / "deep_other.json"))
    assert 'data-verdict="different"' in page and "separating input" in page


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_has_a_map(measure):
    assert MEASURES[measure] in VIEW.show(state_of(INPUTS / "heads.json", measure=measure))


def test_model_folders_are_opened_by_a_job():
    state = state_of(MODELS / "llama", MODELS / "llama")
    assert 'data-job="open"' in VIEW.show(state) and 'data-job="compare"' in VIEW.show(state)
    told = []
    page = VIEW.work("open", state, lambda done, total: told.append((done, total)))
    found = inspect_model(open_model(MODELS / "llama"))
    assert f"{found.redundancy.total:,}" in page and told[-1] == (found.spec.layers, found.spec.layers)
    assert page.count("<rect") == 4 * len(found.heads)


def changed_model(folder, target):
    """A copy whose first value projection has one wrong entry."""
    copy = shutil.copytree(folder, target / "changed")
    tensors = load_file(copy / "model.safetensors")
    name = next(name for name in tensors if name.endswith("h.0.attn.c_attn.weight"))
    tensors[name] = tensors[name].copy()
    tensors[name][0, -1] += 1
    save_file(tensors, copy / "model.safetensors")
    return copy


def test_model_folders_are_compared_by_a_job(tmp_path):
    assert 'data-verdict="same"' in VIEW.work("compare", state_of(MODELS / "gpt2", MODELS / "gpt2"), print)
    state = state_of(MODELS / "gpt2", changed_model(MODELS / "gpt2", tmp_path))
    page = VIEW.work("compare", state, print)
    assert "Likeness of layers" in page and "Was the second made from the first?" in page
    assert 'data-verdict="different"' in page and "rounding does not explain" in page
    assert "Difference of each head" in page
    with pytest.raises(AttnGeomError, match="two of one kind"):
        VIEW.work("compare", state_of(MODELS / "gpt2", INPUTS / "deep.json"), print)


def test_lines_to_copy_run(capsys):
    for paths in ((INPUTS / "deep.json",), (INPUTS / "deep.json", INPUTS / "deep_moved.json"), (MODELS / "gpt2",)):
        exec(VIEW.module.python(state_of(*paths)), {})
    assert "same function" in capsys.readouterr().out


def test_browser_opens_and_compares(visit, assert_that):
    page = visit("checkpoint")
    page.get_by_label("Checkpoint", exact=True).select_option("2")
    assert_that(page.get_by_role("heading", name="Every head")).to_be_visible()
    page.get_by_label("Map of heads").select_option("rank")
    assert_that(page.locator("#answer")).to_contain_text("Heads: rank of A")
    drop = page.get_by_label("open a file: Compare with")
    drop.set_input_files([INPUTS / "deep_moved.json"])
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "same")
    drop.set_input_files([{"name": "bad.safetensors", "mimeType": "", "buffer": b"\xff" * 100}])
    assert_that(page.locator("#answer .refusal")).to_be_visible()
