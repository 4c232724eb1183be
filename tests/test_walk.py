"""A reader's walk through ordinary requests enters few files: what is one thing is in one place."""

from tests.walk import SOURCE, walk_all

INPUTS = SOURCE.parents[1] / "tests" / "golden" / "inputs"
MOST = {
    "dim --widths 3,3,3 --attention 2 --prove": 31,
    "dim --widths 4,4,4 --attention 2 --heads 2 --kind softmax --causal --prove": 31,
    "compare {in}/deep.safetensors {in}/deep_moved.safetensors": 39,
    "compare {in}/deep.json {in}/deep_other.json": 30,
    "compare {in}/heads.safetensors {in}/heads_moved.safetensors": 44,
    "compare {in}/residual.safetensors {in}/residual_other.safetensors": 39,
    "compare {in}/softmax.safetensors {in}/softmax_moved.safetensors": 44,
    "compare {in}/softheads.safetensors {in}/softheads_moved.safetensors": 43,
    "certify {in}/coefficients_layer.json": 25,
    "certify {in}/coefficients_layer_float.json": 29,
    "certify {in}/coefficients_segre.json": 30,
    "implicitize --d 3 --a 2 --max-degree 3": 44,
    "implicitize --d 2 --a 2 --max-degree 4 --complete": 45,
    "model compare {in}/llama_model {in}/llama_model": 42,
    "lambda {in}/layer.json": 26,
    "lambda {in}/token.json": 43,
}
"""How many files each request enters at most: numbers that were reached, to be lowered."""


def test_requests_enter_few_files():
    walks = walk_all([[word.replace("{in}", str(INPUTS)) for word in line.split()] for line in MOST])
    for (line, most), entered in zip(MOST.items(), walks, strict=True):
        assert "cli/app.py" in entered and len(entered) > most // 2, line
        assert len(entered) <= most, (line, sorted(entered))
