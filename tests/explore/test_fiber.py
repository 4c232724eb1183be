"""The fiber walker: weights move, the function stays; downloads are compared with the library."""

import json

import numpy as np
import pytest

import attngeom
from attngeom.canonical.least_norm import least_norm
from attngeom.errors import AttnGeomError
from attngeom.exact import QQ, RR
from attngeom.explore.controls import read_state, write_query
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from attngeom.explore.views.fiber import IDENTITY, symmetry_of, walk

VIEW = find_view("fiber")


def state_of(query, shelf=None):
    return read_state(VIEW.controls, {"network": "deep", **query}, shelf or Shelf())


@pytest.mark.parametrize("network", ["layer", "deep"])
@pytest.mark.parametrize("base", ["start", "canonical"])
def test_moved_weights_have_the_same_function_by_compare(network, base):
    state = state_of({"network": network, "base": base, "c12": "0.5", "c21": "-1.25", "scale": "-2", "d21": "1.5"})
    found = walk(state)
    assert found.is_same and not found.given.equals(found.here)
    assert attngeom.compare(found.given, found.here).same_function is True


def test_least_norm_is_the_library_s_and_its_moments_vanish():
    found = walk(state_of({"base": "least"}))
    norm = np.linalg.norm(found.here.to(RR).vector())
    assert abs(norm - np.linalg.norm(least_norm(found.given.to(RR)).weights.vector())) < 1e-9
    assert not found.is_same and found.change < 1e-12


def test_sliders_are_the_group_element():
    state = state_of({**IDENTITY, "c12": "0.25", "d22": "3", "scale": "2"})
    architecture = walk(state).given.architecture
    symmetry = symmetry_of(state, architecture)
    assert symmetry.between[0].tolist() == [[1, 0], [0, 3]]
    assert symmetry_of(state_of({}), architecture).apply(walk(state).given).equals(walk(state).given)


def test_walks_repeat_and_stay_invertible():
    texts = {"network": "deep"}
    for number in range(1, 6):
        changed = VIEW.module.ACTIONS["random walk"](state_of(texts))
        assert changed == VIEW.module.ACTIONS["random walk"](state_of(texts)) and changed["step"] == str(number)
        texts |= changed
        assert walk(state_of(texts)).is_same


@pytest.mark.parametrize(
    "query", [{"c11": "0", "c12": "0"}, {"scale": "0"}, {"c11": "1e-9999999"}, {"network": "file"}]
)
def test_what_cannot_be_walked_is_refused(query):
    with pytest.raises(AttnGeomError) as refused:
        VIEW.show(state_of(query))
    assert len(str(refused.value)) <= 200


def test_files_that_are_too_large_are_refused(tmp_path):
    large = attngeom.random_weights(attngeom.Architecture((20, 20), 2), QQ, 0)
    attngeom.write_weights(large, tmp_path / "large.json")
    with pytest.raises(AttnGeomError, match="width 8"):
        VIEW.show(state_of({"network": "file", "file": "1"}, Shelf.of_paths([tmp_path / "large.json"])))


def test_browser_walks_and_takes_files_away(visit, assert_that, tmp_path):
    page = visit("fiber?" + write_query({"network": "deep", "seed": "3"}))
    before = page.locator("#norm").inner_text()
    page.get_by_label("C₁₂").fill("0.5")
    assert_that(page.locator("#norm")).not_to_have_text(before)
    assert_that(page.locator("#change")).to_contain_text("exactly")
    state = state_of({"seed": "3", "c12": "0.5"})
    assert page.locator("#norm").inner_text() == f"{np.linalg.norm(walk(state).here.to(RR).vector()):.4f}"
    with page.expect_download() as download:
        page.get_by_text("Take these weights").click()
    download.value.save_as(tmp_path / "here.json")
    assert attngeom.read_weights(tmp_path / "here.json").equals(walk(state).here)
    page.get_by_role("button", name="least norm").click()
    assert_that(page.locator("#change")).to_contain_text("rounding")
    page.get_by_role("button", name="random walk").click()
    assert_that(page.get_by_label("Steps walked")).to_have_value("1")
    page.get_by_label("Network").select_option("file")
    page.locator("#answer .refusal").wait_for()
    hostile = {"name": "<i>w</i>.json", "mimeType": "application/json", "buffer": b'{"format": "<script>"}'}
    page.get_by_label("open a file").set_input_files([hostile])
    assert_that(page.locator("#answer .refusal")).to_contain_text("<script>")
    good = (tmp_path / "here.json").read_bytes()
    page.get_by_label("open a file").set_input_files([{**hostile, "buffer": good}])
    assert_that(page.locator("#outputs")).to_be_visible()
    assert json.loads(good)["format"] == "attngeom/weights"
