"""How pages look: nothing is cut without a hint on narrow screens, letters can be read in both schemes, one colour."""

import itertools
import math
import re
from pathlib import Path

import pytest

from attngeom.drawing import DARK as DARK_INK
from attngeom.drawing import DIMENSION, MIDDLE, WARM
from attngeom.drawing import LIGHT as PALE
from attngeom.explore.server import __file__ as SERVER
from attngeom.explore.views import VIEWS

STYLE = (Path(SERVER).parent / "assets" / "explore.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", block)) for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
)
SCHEMES = (LIGHT, {**LIGHT, **DARK})
CUT = """() => [...document.querySelectorAll("main *")].filter((element) => {
  const box = element.getBoundingClientRect();
  const held = element.closest(".scroll");
  return box.width && box.right > innerWidth + 1 && !(held && held.classList.contains("cut"));
}).map((element) => element.outerHTML.slice(0, 80))"""

DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""The page has been told of its new size before it is drawn."""


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", SCHEMES)
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
    page.wait_for_function("innerWidth === 400")
    page.evaluate(DRAWN)
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


# What is left of red, green and blue of linear light without one of the three kinds of cones (Machado, Oliveira and
# Fernandes 2009, severity 1).
BLIND = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def seen(colour, matrix):
    """A colour as people without one kind of cones see it, in the coordinates of CIELAB."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    r, g, b = (min(max(sum(m * x for m, x in zip(row, linear)), 0), 1) for row in matrix)
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089
    fx, fy, fz = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("kind", BLIND)
def test_colours_differ_for_the_colour_blind(kind):
    """Colours that stand for different things differ by far more than the least difference that is noticed (2.3)."""
    for colours in (
        [DARK_INK, MIDDLE, PALE, WARM],
        *([scheme["plus"], scheme["minus"], scheme["paper"]] for scheme in SCHEMES),
    ):
        points = [seen(each, BLIND[kind]) for each in map(whole, colours)]
        for one, other in itertools.combinations(points, 2):
            assert math.dist(one, other) >= 15, (kind, colours)


def whole(colour):
    return colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])


STOPS = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary")].filter((element) =>
{   const box = element.getBoundingClientRect();
  return element.checkVisibility() && box.width && box.height && !element.disabled && element.tabIndex >= 0;
}).length"""
HERE = """() => { const here = document.activeElement;
  if (!window.stops) window.stops = [];
  if (here === document.body || window.stops.includes(here)) return null;
  window.stops.push(here);
  const style = getComputedStyle(here);
  return [here.outerHTML.slice(0, 80), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
}"""


@pytest.mark.parametrize("name", VIEWS)
def test_browser_every_control_is_reached_by_keyboard_and_shown(visit, assert_that, name):
    page = visit(name)
    assert_that(page.locator("#link")).to_be_visible()
    wanted, reached = page.evaluate(STOPS), 0
    groups = page.evaluate("new Set([...document.querySelectorAll('input[type=radio]')].map((x) => x.name)).size")
    radios = page.locator("input[type=radio]").count()
    while reached <= wanted:
        page.keyboard.press("Tab")
        if (here := page.evaluate(HERE)) is None:
            break
        reached += 1
        assert here[1], f"not marked: {here[0]}"
    assert reached >= wanted - radios + groups
