"""The view of dimensions: what the page shows is what the library computes."""

import time
from urllib.parse import parse_qsl, urlsplit

import pytest

import attngeom
from attngeom.cli.app import run
from attngeom.explore.controls import read_state
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from attngeom.explore.views.dimension import answer_of
from attngeom.models.counts.redundancy import redundancy
from attngeom.models.presets import published
from tests.explore.asking import SECONDS

VIEW = find_view("dimension")
CASES = [
    ({"widths": "3,3,3", "attention": "2", "tokens": "3"}, attngeom.Architecture((3, 3, 3), 2)),
    (
        {"widths": "4,4", "attention": "", "heads": "2", "kind": "softmax", "residual": "1", "causal": "1"},
        attngeom.Architecture((4, 4), 2, heads=2, kind="softmax", residual=True, causal=True),
    ),
]


@pytest.mark.parametrize(("query", "architecture"), CASES)
def test_answer_and_lines_to_copy_agree_with_the_library(query, architecture, capsys):
    state = read_state(VIEW.controls, query, Shelf())
    expected = attngeom.dimension(architecture)
    assert answer_of(state).architecture == architecture
    assert answer_of(state).dimension == expected.dimension
    page = VIEW.show(state)
    assert f">{expected.dimension} <small>of {expected.num_parameters} parameters" in page
    assert expected.rows()["formula"].split(",")[0] in page and all(
        str(size) in page for size in expected.fiber.values()
    )
    assert run([*VIEW.module.command(state).split()[1:], "--json"]) == 0
    assert f'"dimension": {expected.dimension},' in capsys.readouterr().out
    exec(VIEW.module.python(state), {})
    assert f"dimension          {expected.dimension}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("query", "standing"),
    [
        ({"widths": "768,768,768", "attention": "", "heads": "12", "kind": "softmax", "residual": "1"}, "theorem"),
        # A bottleneck of width 1 leaves few dimensions to a network that takes long to evaluate.
        ({"widths": "300,300,1,300", "attention": "300", "heads": "128", "value_width": "64"}, "undecided"),
    ],
)
def test_large_architectures_are_answered_at_once_and_not_computed(query, standing):
    state = read_state(VIEW.controls, {"tokens": "2", "causal": "1", **query}, Shelf())
    answer = answer_of(state)
    assert answer.standing == standing and answer.lower is None


@pytest.mark.parametrize(
    "query",
    [{"widths": "3"}, {"widths": "3,-1"}, {"widths": "999999,2"}, {"attention": "x"}, {"heads": "2", "attention": ""}],
)
def test_bad_sizes_are_refused_with_one_line(query):
    with pytest.raises(attngeom.errors.AttnGeomError) as refused:
        VIEW.show(read_state(VIEW.controls, query, Shelf()))
    assert len(str(refused.value)) <= 200 and "\n" not in str(refused.value)


def test_browser_shows_what_the_library_computes(visit, assert_that):
    page = visit("dimension")
    assert_that(page.locator("#dimension .number")).to_have_text("23 of 42 parameters")
    page.get_by_label("Kind of attention").select_option("softmax")
    expected = attngeom.dimension(attngeom.Architecture((3, 3, 3), 2, kind="softmax"))
    assert_that(page.locator("#dimension .number")).to_contain_text(f"{expected.dimension} of")
    shown = dict(parse_qsl(urlsplit(page.url).query))
    assert shown["kind"] == "softmax" and shown["widths"] == "3,3,3"
    page.locator("#link").click()
    assert_that(page.locator("#dimension .number")).to_contain_text(f"{expected.dimension} of")
    page.get_by_label("Widths", exact=False).first.fill("4,3,5")
    expected = attngeom.dimension(attngeom.Architecture((4, 3, 5), 2, kind="softmax"))
    assert_that(page.locator("#dimension .number")).to_contain_text(f"{expected.dimension} of")
    page.get_by_role("button", name="Prove it").click()
    page.locator("#job[data-stage=done] #proof .badge.proven").wait_for()
    page.get_by_label("Published model").select_option("gpt2")
    assert_that(page.locator(".legend").first).to_contain_text(f"{redundancy(published('gpt2')).total:,}")


def test_browser_refuses_bad_input_and_cancels_long_work(visit, assert_that):
    page = visit("dimension?widths=90,90,90,90&attention=40&kind=softmax&causal=1&method=krylov")
    page.get_by_role("button", name="Prove it").click()
    page.get_by_role("button", name="Cancel").click()
    page.locator("#job[data-stage=cancelled]").wait_for()
    page.get_by_label("Widths").first.fill("<img src=x>")
    assert_that(page.locator("#answer .refusal")).to_contain_text("<img src=x>")


def test_browser_ends_work_that_a_change_overtook(visit, assert_that, server):
    """The form changes before the server has said by which key the work can be ended."""
    page = visit("dimension?widths=90,90,90,90&attention=40&kind=softmax&causal=1&method=krylov")
    held, before = [], set(server.jobs._jobs)

    def stages():
        return [job.stage for key, job in list(server.jobs._jobs.items()) if key not in before]

    page.route("**/job/prove", lambda route: held.append(route))
    page.get_by_role("button", name="Prove it").click()
    page.get_by_label("Widths").first.fill("3,3")
    assert_that(page.locator("#dimension .number")).to_contain_text("of 249 parameters")
    held[0].continue_()
    end = time.monotonic() + SECONDS
    while not stages() or "running" in stages():
        assert time.monotonic() < end
        page.wait_for_timeout(20)
    assert stages() == ["cancelled"] and page.locator("#job button").count() == 0


def test_two_windows_do_not_disturb_each_other(browser, server):
    first, second = browser.new_page(), browser.new_page()
    first.goto(server.address + "dimension?widths=3,3&attention=2")
    second.goto(server.address + "dimension?widths=5,5&attention=2")
    before = first.locator("#dimension .number").inner_text()
    second.get_by_label("Tokens").fill("1")
    second.wait_for_url("**tokens=1**")
    assert first.locator("#dimension .number").inner_text() == before
    first.close()
    second.close()


def test_keyboard_and_narrow_page(visit, assert_that):
    page = visit("dimension")
    assert_that(page.locator("#link")).to_be_visible()
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.keyboard.press("Tab")
    reached = set()
    for _ in range(24):
        reached.add(page.evaluate("document.activeElement.name || document.activeElement.textContent"))
        page.keyboard.press("Tab")
    assert {"model", "kind", "widths", "attention", "heads", "tokens", "causal", "residual", "Prove it"} <= reached
