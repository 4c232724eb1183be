"""The notebooks run from top to bottom, and show what they are there to show."""

import importlib.util
import subprocess
import sys
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


@pytest.mark.parametrize("name", SHOWN)
def test_notebook_runs_in_jupyter(name, tmp_path):
    """What is exported for Jupyter runs there: its cells one after the other, with nothing between them of marimo."""
    pytest.importorskip("marimo")
    nbformat = pytest.importorskip("nbformat")
    out = tmp_path / f"{name}.ipynb"
    command = [sys.executable, "-m", "marimo", "export", "ipynb", FOLDER / f"{name}.py", "-o", out]
    subprocess.run([*command, "--sort", "topological"], check=True, capture_output=True)
    cells = nbformat.read(out, as_version=4).cells
    assert cells[0].cell_type == "code" and any(cell.cell_type == "markdown" for cell in cells)
    names = {}
    for cell in cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{name}.ipynb", "exec"), names)
