"""The worked example: equivariant optimisers keep symmetric runs symmetric, others do not."""

import importlib.util
from pathlib import Path

from attngeom.comparison import compare

PATH = Path(__file__).parents[2] / "examples" / "symmetric_training.py"


def test_symmetric_runs_stay_symmetric_where_the_optimiser_is_equivariant():
    spec = importlib.util.spec_from_file_location("symmetric_training", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    verdicts = {
        (optimiser, kind): compare(first, second, tolerance=1e-8).same_function
        for optimiser, kind, first, second in example.runs(steps=25)
    }
    assert verdicts == {
        ("gradient descent", "signed permutation"): True,
        ("gradient descent", "orthogonal"): True,
        ("gradient descent", "general"): False,
        ("Adam", "signed permutation"): True,
        ("Adam", "orthogonal"): False,
        ("Adam", "general"): False,
    }
