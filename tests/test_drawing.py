"""Answers show themselves: cards, formulas and pictures, without any change of the notebook around them."""

import subprocess
import sys
from html.parser import HTMLParser

import pytest

import attngeom
from attngeom.drawing import Picture, draw_parts
from attngeom.equations.ideal.records import GeneratorModule
from attngeom.exact import QQ, RR
from attngeom.exact.domains.polynomials import Polynomial
from attngeom.network import Architecture, random_weights
from attngeom.results import STANDINGS, Result
from tests.effort import choose

LAYER = random_weights(Architecture((3, 2), 2, tokens=2), QQ, seed=0)
DEEP = random_weights(Architecture((2, 2, 2), 1, heads=2), RR, seed=0)
ANSWERS = {
    "undecided dimension": lambda: attngeom.dimension(Architecture((2, 4, 4), (2, 3), heads=2, value_width=2)),
    "layer": lambda: attngeom.inspect(LAYER),
    "deep": lambda: attngeom.inspect(DEEP),
    "ideal": lambda: attngeom.implicitize(attngeom.equations.Variety(2, 2), 4),
    **choose({}, {"dimension": lambda: attngeom.dimension(Architecture((3, 3, 3), 2)), "weights": lambda: DEEP}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_pictures_are_figures_of_their_own(name, tmp_path):
    answer = ANSWERS[name]()
    pictures = [answer.plot(), answer.plot()]
    for picture, name in zip(pictures, ("one.svg", "two.svg")):
        assert isinstance(picture, Picture)
        picture.savefig(tmp_path / name)
    assert pictures[0]._repr_png_().startswith(b"\x89PNG")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_the_bar_shows_every_parameter():
    answer = attngeom.dimension(Architecture((3, 3, 3), 2))
    widths = [patch.get_width() for patch in answer.plot().axes[0].patches]
    assert widths[0] == answer.dimension and sum(widths) == answer.num_parameters


def test_no_backend_is_chosen():
    script = (
        "import sys, matplotlib; before = matplotlib.rcParams._get('backend');"
        "import attngeom.papers.plots, attngeom.atlas.figures, attngeom.drawing, attngeom.learning.track_plot;"
        "print(matplotlib.rcParams._get('backend') is before, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def tags(text):
    parser = Tags()
    parser.feed(text)
    assert not parser.open
    return parser.seen


class Hostile(Result):
    def to_json(self):
        return {}

    def rows(self):
        return {"<script>": "<img src=x onerror=alert(1)>", "&": "'\""}

    @property
    def recheck(self):
        return "<b>run</b>"


@pytest.mark.parametrize("standing", STANDINGS)
def test_cards_escape_what_they_show(standing):
    card = Hostile(standing=standing, reason="</div><script>")._repr_html_()
    assert set(tags(card)) == {"div", "span", "table", "tr", "th", "td"}
    assert standing in card


def test_a_card_says_how_to_check():
    card = attngeom.dimension(Architecture((3, 3, 3), 2))._repr_html_()
    tags(card)
    assert "attngeom verify c.json" in card and ">proven<" in card


def test_formulas():
    assert Polynomial.from_terms(("sc_1_0",), {(2,): "1/2"})._repr_latex_() == r"$\frac{1}{2} \mathrm{sc}_{1,0}^{2}$"
    module = GeneratorModule(((4, 4), (2, 2)), 2, 90)
    assert module._repr_latex_() == r"$2 \cdot S_{(4,4)} \otimes S_{(2,2)}$"
    assert module._repr_html_().count("□") == 12
    tags(module._repr_html_())
    assert r"\begin{pmatrix}" in LAYER._repr_latex_() and "Q_{0}" in LAYER._repr_latex_()
    assert repr(DEEP) == "Weights(lightning attention, widths 2,2,2, attention 1,1, 2 heads; 32 parameters over RR)"


def test_a_certification_does_not_repeat_its_coefficients():
    answer = attngeom.certify(attngeom.coefficients(LAYER))
    assert repr(answer.coefficients) == "Coefficients(3×2 → 2×2, 112 coefficients over QQ)"
    assert repr(answer) == str(answer) and "realizable" in str(answer) and len(str(answer)) < 1500
    tags(answer._repr_html_())


def test_names_are_completed_before_they_are_loaded():
    script = "import attngeom; print(set(attngeom.__all__) <= set(dir(attngeom)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_tables_of_an_atlas_draw_their_numbers():
    from attngeom.atlas.summary import SummaryTable

    table = SummaryTable(
        "sizes", ["kind", "parameters", "dimension"], [["softmax", "1,024", "512"], ["lightning", 8, ""]]
    )
    axes = table.plot().axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["softmax", "lightning"]
    assert sorted(bar.get_height() for bar in axes.patches) == [0, 8, 512, 1024]
    assert "<td" in table._repr_html_() and "| softmax |" in repr(table)


def test_tables_of_an_atlas_are_named_by_what_differs():
    from attngeom.atlas.summary import SummaryTable

    table = SummaryTable("generators", ["t", "d", "a", "n = 2"], [["≥ 2", 2, 1, "3"], ["≥ 2", 2, 2, "0"]], labels=3)
    axes = table.plot().axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2"]
    assert axes.get_xlabel() == "a (t ≥ 2, d 2)" and [bar.get_height() for bar in axes.patches] == [3, 0]


def test_spectra_leave_out_what_the_widths_make_zero():
    from attngeom.network.weights import head_spectra

    spectra = head_spectra(attngeom.random_weights(attngeom.Architecture((4, 4), 2, heads=2), attngeom.RR, seed=0))
    assert {name: len(values) for name, values in spectra.items()} == {"A 1.1": 2, "A 1.2": 2, "V 1.1": 2, "V 1.2": 2}
    assert min(map(min, spectra.values())) > 1e-9


@pytest.mark.parametrize("count", [2, 4, 9])
def test_legends_of_parts_lie_inside_of_the_picture(count):
    names = {f"gl(4) on self_attention.{k}.key_projection.weight.0, query.0": 16 + k for k in range(count)}
    picture = draw_parts("weights", {"dimension": 100} | names, "dimension")
    picture.canvas.draw()
    inside, legend = picture.bbox, picture.legends[0].get_window_extent()
    assert inside.x0 <= legend.x0 and legend.x1 <= inside.x1
    assert inside.y0 <= legend.y0 and picture.axes[0].get_window_extent().height > 20
