"""A reader's walk through six requests enters few files: what is one thing is in one place."""

import pytest

from tests.walk import SOURCE, walk

INPUTS = SOURCE.parents[1] / "tests" / "golden" / "inputs"
MOST = {
    "dim --widths 3,3,3 --attention 2 --prove": 39,
    "compare {in}/deep.safetensors {in}/deep_moved.safetensors": 45,
    "certify {in}/coefficients_layer.json": 30,
    "implicitize --d 3 --a 2 --max-degree 3": 44,
    "model compare {in}/llama_model {in}/llama_model": 45,
    "lambda {in}/layer.json": 28,
}
"""How many files each request enters at most: numbers that were reached, to be lowered."""


@pytest.mark.parametrize("request_line", MOST)
def test_a_request_enters_few_files(request_line):
    entered = walk(*request_line.replace("{in}", str(INPUTS)).split())
    assert "cli/app.py" in entered and len(entered) > MOST[request_line] // 2
    assert len(entered) <= MOST[request_line], sorted(entered)
