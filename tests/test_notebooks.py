"""The notebooks run from top to bottom, and show what they are there to show."""

import importlib.util
from pathlib import Path

import pytest

from attngeom.drawing import Picture

FOLDER = Path(__file__).parents[1] / "notebooks"
SHOWN = {
    "engineer": {"Comparison", "ModelComparison", "Picture", "float"},
    "first_layer": {"Weights", "Certification", "Picture"},
    "geometer": {"Dimension", "IdealSummary", "Picture"},
    "ideal": {"Polynomial", "Picture", "dict", "bool"},
    "learning": {"LearningCoefficient", "Laws", "Picture"},
}
"""What the cells of each notebook must end in, beside text."""


def test_every_notebook_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_notebook_shows_its_answers(name):
    pytest.importorskip("marimo")
    spec = importlib.util.spec_from_file_location(f"notebook_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outputs, _ = module.app.run()
    kinds = {type(output).__name__ for output in outputs}
    assert SHOWN[name] <= kinds
    for output in outputs:
        if isinstance(output, Picture):
            assert output._repr_png_().startswith(b"\x89PNG")
        elif hasattr(output, "_repr_html_"):
            assert output._repr_html_()
