"""How pages look: nothing is cut without a hint on narrow screens, letters can be read in both schemes, one colour."""

import re
from pathlib import Path

import pytest

from attngeom.explore.server import __file__ as SERVER
from attngeom.explore.views import VIEWS
from attngeom.palette import DIMENSION

STYLE = (Path(SERVER).parent / "assets" / "explore.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", block)) for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
)
CUT = """() => [...document.querySelectorAll("main *")].filter((element) => {
  const box = element.getBoundingClientRect();
  const held = element.closest(".scroll");
  return box.width && box.right > innerWidth + 1 && !(held && held.classList.contains("cut"));
}).map((element) => element.outerHTML.slice(0, 80))"""


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [LIGHT, {**LIGHT, **DARK}])
def test_letters_can_be_read_in_both_schemes(scheme):
    for letters in ("ink", "word", "link"):
        for ground in ("paper", "shade", "alert"):
            low, high = sorted((luminance(scheme[letters]), luminance(scheme[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (letters, ground)


def test_the_dimension_has_one_colour():
    assert LIGHT["dimension"] == DIMENSION and "dimension" not in DARK
    assert re.search(r"\.part0 \{ fill: var\(--dimension\); \}", STYLE)


@pytest.mark.parametrize("name", VIEWS)
def test_browser_nothing_is_cut_without_a_hint(visit, assert_that, name):
    page = visit(name)
    assert_that(page.locator("#link")).to_be_visible()
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate(CUT) == []
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"


def test_browser_wide_tables_say_so(visit, assert_that):
    page = visit("equations")
    assert_that(page.locator("#families")).to_be_visible()
    assert page.locator(".cut").count() == 0
    page.set_viewport_size({"width": 400, "height": 800})
    assert_that(page.locator(".cut #families")).to_be_visible()
    told = "getComputedStyle(document.querySelector('.cut'), '::before').content"
    assert "scroll sideways" in page.evaluate(told)


def test_browser_shows_what_was_named_at_once(visit, assert_that):
    page = visit("")
    page.get_by_role("link", name="Checkpoint").first.click()
    assert_that(page.get_by_label("Checkpoint", exact=True)).to_have_value("2")
    assert_that(page.get_by_role("heading", name="Where it lies")).to_be_visible()
    visit("certificate")
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "valid")
