"""Figures are drawn from stored data alone, twice the same, and without plotly too."""

import builtins

import pytest

from attngeom.papers import FIGURES, Store, Work, find_claims, run_claim
from attngeom.papers.plots import DRAWINGS, draw_figures


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("plots"), Work(quick=True))
    for claim in find_claims(["G-figure-1", "G-figure-2", "I-figure-1"]):
        run_claim(claim, store.work, store)
    row = {"dimension": 6, "parameters": 8, "fits": 24}
    rows = [{**row, "samples": 5 + k, "interpolating": 20, "equal": 10 * k} for k in range(3)]
    store.save_data("G-section-1-samples", {"rows": rows})
    values = {"expected": [25, 40], "float64": [25, 40], "float32": [24, 40], "exact": [25, None]}
    store.save_data("G-figure-3", {"delta": [3, 4], "samples": 9, "softmax": values, "lightning": values})
    return store


@pytest.fixture(scope="module")
def figures(store):
    return draw_figures(store)


def test_every_figure_has_a_drawing():
    assert set(DRAWINGS) == set(FIGURES)


def test_figures_are_png_and_svg_with_captions(store, figures):
    assert [figure.id for figure in figures] == list(FIGURES)
    for figure in figures:
        assert figure.png.startswith(b"\x89PNG")
        assert figure.caption
        assert all((store.folder / name).stat().st_size > 1000 for name in figure.files)


def test_figures_are_drawn_the_same_twice(store, figures):
    svg = [(store.folder / f"figures/{name}.svg").read_bytes() for name in FIGURES]
    second = draw_figures(store)
    assert [figure.png for figure in figures] == [figure.png for figure in second]
    assert svg == [(store.folder / f"figures/{name}.svg").read_bytes() for name in FIGURES]


def test_figures_without_data_are_left_out(tmp_path):
    assert draw_figures(Store(tmp_path, Work())) == []


def test_missing_plotly_is_said_and_does_not_fail(store, monkeypatch):
    original = builtins.__import__

    def without_plotly(name, *more, **options):
        if name.startswith("plotly"):
            raise ImportError(name)
        return original(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without_plotly)
    figure = DRAWINGS["G-figure-1"](store.load_data("G-figure-1"), store.folder)
    assert "not installed" in figure.note
    assert not any(name.endswith(".html") for name in figure.files)
