"""The view of equations: counts, formulas and values are those of the library."""

import json

import numpy as np
import pytest

import attngeom
from attngeom.cli.app import run
from attngeom.equations import Variety, families, find_family
from attngeom.equations.ideal import complete, implicitize
from attngeom.errors import AttnGeomError
from attngeom.exact import QQ
from attngeom.explore.controls import read_state
from attngeom.explore.formulas import show_polynomial
from attngeom.explore.pages import math
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from attngeom.explore.views.equations import point_of, value_at

VIEW = find_view("equations")


def state_of(query, shelf=None):
    return read_state(VIEW.controls, query, shelf or Shelf())


@pytest.mark.parametrize(("d", "a", "d_out"), [(2, 1, 1), (2, 2, 1), (3, 2, 1), (2, 1, 2), (5, 3, 1)])
def test_every_family_is_listed_and_vanishes_at_layers(d, a, d_out):
    for each in families(Variety(d, a, 2, d_out)):
        sizes = {"d": str(d), "a": str(a), "d_out": str(d_out), "family": each.name, "index": str(each.count - 1)}
        state = state_of(sizes)
        page = VIEW.show(state)
        assert each.name in page and f"{each.count:,}" in page
        assert value_at(state) == "0"


def test_values_at_cubic_maps_are_those_of_the_polynomial():
    state = state_of({"d": "2", "a": "1", "point": "cubic", "seed": "3", "family": "attention-rank"})
    member = find_family(Variety(2, 1, 2, 1), "attention-rank")
    expected = np.ravel(member.evaluate(point_of(state), 0, 1))[0]
    assert value_at(state) == str(expected) != "0"


def test_formula_command_and_python_agree(capsys):
    state = state_of({"d": "2", "a": "2", "family": "sylvester-resultant"})
    polynomial = find_family(Variety(2, 2, 2, 1), "sylvester-resultant").polynomial(0)
    assert show_polynomial(polynomial) in VIEW.show(state)
    assert run(VIEW.module.command(state).split()[1:]) == 0
    exec(VIEW.module.python(state), {})
    first, second = capsys.readouterr().out.splitlines()
    assert first == second == str(polynomial)


@pytest.mark.parametrize("form", VIEW.module.DOWNLOADS)
def test_exports_are_the_library_s(form):
    name, content = VIEW.module.DOWNLOADS[form](state_of({"d": "2", "a": "1", "family": "attention-rank"}))
    assert name.startswith("attention-rank.") and b"y" in content
    if form == "json":
        assert [json.loads(line)["family"] for line in content.splitlines()] == ["attention-rank"] * 3


def test_all_generators_are_those_of_the_theorem_and_of_a_run():
    state = state_of({"d": "2", "a": "1", "max_degree": "3"})
    for degree, module in complete(2, 1, 2).modules:
        assert math(module) in VIEW.show(state) and degree == 2
    computed = VIEW.work("ideal", state, lambda done, total: None)
    for each in implicitize(Variety(2, 1), 3).degrees:
        assert f"<td>{each.hilbert_function:,}</td>" in computed


def test_files_of_weights_and_coefficients_are_read(tmp_path):
    layer = attngeom.random_weights(attngeom.Architecture((2, 1), 1, tokens=2), QQ, 0)
    attngeom.write_weights(layer, tmp_path / "w.json")
    attngeom.write_coefficients(attngeom.coefficients(layer), tmp_path / "c.json")
    shelf = Shelf.of_paths([tmp_path / "w.json", tmp_path / "c.json"])
    for key in ("1", "2"):
        assert value_at(state_of({"point": "file", "file": key}, shelf)) == "0"
    # The sizes of the file count, not those of random layers.
    assert value_at(state_of({"d": "3", "a": "1", "point": "file", "file": "1"}, shelf)) == "0"
    attngeom.write_weights(
        attngeom.random_weights(attngeom.Architecture((2, 1), 1, tokens=3), QQ, 0), tmp_path / "3.json"
    )
    with pytest.raises(AttnGeomError, match="t = 3"):
        VIEW.show(state_of({"point": "file", "file": "1"}, Shelf.of_paths([tmp_path / "3.json"])))


@pytest.mark.parametrize("query", [{"d": "9"}, {"family": "<b>"}, {"index": "99999999"}, {"point": "file"}])
def test_what_is_not_there_is_refused(query):
    with pytest.raises(AttnGeomError):
        VIEW.show(state_of({"d": "2", "a": "1", **query}))


def test_browser_chooses_a_family_and_computes_the_ideal(visit, assert_that):
    page = visit("equations?d=2&a=1&d_out=1&max_degree=2")
    page.get_by_role("button", name="sylvester-resultant").click()
    assert_that(page.get_by_label("Family")).to_have_value("sylvester-resultant")
    assert_that(page.locator("#value")).to_have_text("0")
    page.get_by_label("Evaluate at").select_option("cubic")
    state = state_of({"d": "2", "a": "1", "family": "sylvester-resultant", "point": "cubic"})
    assert_that(page.locator("#value")).to_have_text(value_at(state))
    assert page.locator("#ideal svg").count() == 2
    page.get_by_role("button", name="Compute the ideal").click()
    page.locator("#job[data-stage=done] #computed").wait_for()
