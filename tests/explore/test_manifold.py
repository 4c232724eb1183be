"""The neuromanifold: what is drawn lies on the surface, and the chosen point has the verdict of the library."""

import json
import shlex

import pytest

from attngeom import certify
from attngeom.cli.app import run
from attngeom.errors import AttnGeomError
from attngeom.explore.controls import read_state
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from attngeom.explore.views.manifold import SPECIAL, decide, point_of, scene
from attngeom.papers.figures import slice_coefficients

VIEW = find_view("manifold")
EXPECTED = {
    "a smooth point": ("realizable", 1, "5/2 (m = 1)"),
    "the singular line": ("realizable", 2, "5/2 (m = 2)"),
    "the boundary point": ("realizable", 1, "9/4 (m = 2)"),
    "the closure only": ("closure_only", 2, None),
    "off the surface": ("not_realizable", 0, None),
}


def state_of(query):
    return read_state(VIEW.controls, query, Shelf())


@pytest.mark.parametrize("name", SPECIAL)
def test_special_points_have_their_verdict_weights_and_lambda(name, tmp_path, capsys):
    state = state_of(VIEW.module.ACTIONS[name](state_of({})))
    verdict, weights, learned = EXPECTED[name]
    found = decide(state)
    assert (found.verdict, len(found.points)) == (verdict, weights)
    assert VIEW.show(state).count("theorem A1.") == (weights if learned else 0)
    assert learned is None or learned in VIEW.show(state)
    exec(VIEW.module.python(state), {})
    (tmp_path / "coefficients.json").write_bytes(VIEW.module.DOWNLOADS["coefficients"](state)[1])
    names = {"coefficients.json": str(tmp_path / "coefficients.json")}
    run([*(names.get(word, word) for word in shlex.split(VIEW.module.command(state))[1:]), "--json"])
    first, second = capsys.readouterr().out.splitlines()
    assert first == verdict == json.loads(second)["verdict"]


def test_what_can_be_clicked_is_exact_and_on_the_variety():
    for pick in scene(state_of({}))["picks"][::37]:
        x, y, w = point_of(state_of(pick["set"]))
        assert y * y == w * x * x
        assert certify(slice_coefficients(x, y, w), 2).verdict == ("closure_only" if w < 0 else "realizable")


@pytest.mark.parametrize("query", [{"x": "a"}, {"x": "1 2"}, {"w": "1e5"}, {"y": "100000"}, {"x": ""}])
def test_bad_points_are_refused(query):
    with pytest.raises(AttnGeomError):
        VIEW.show(state_of({**query, "v": "1"}))


def test_browser_turns_clicks_and_takes_keys(visit, assert_that):
    page = visit("manifold")
    canvas = page.locator("#space")
    assert_that(canvas).to_be_visible()
    box = canvas.bounding_box()
    page.get_by_role("button", name="the closure only").click()
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "closure_only")
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    assert canvas.evaluate("canvas => canvas.toDataURL()") != before
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 220)
    page.mouse.up()
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "closure_only")
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.4)
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "realizable")
    chosen = {name: page.get_by_label(name, exact=True).input_value() for name in "xyw"}
    assert decide(state_of(chosen)).verdict == "realizable"
    assert_that(page.locator("#answer")).to_contain_text(f"({chosen['x']}, {chosen['y']}, {chosen['w']})")
