"""Run a case in this process, turn what it printed and wrote into a JSON value, and compare two such values.

Times, versions and the paths of the run are masked. Floats are compared with a relative tolerance of 1e-9: numerical
libraries and a change of the order of sums move the last digits (relative errors of 1e-16, magnified by the condition
of these small problems to 1e-12 or so), while a wrong answer is off by far more. A list of floats is one vector or
matrix, so its entries are compared relative to its largest entry. Everything that is not a float must be equal.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from safetensors import safe_open

from attngeom.cli import main
from tests.golden.cases import Case

INPUTS = Path(__file__).parent / "inputs"
OUTPUTS = Path(__file__).parent / "outputs"
MASK = "(masked)"
RELATIVE = 1e-9
# Times differ between runs; versions, and the digests that cover them, differ between releases.
MASKED = {"seconds", "cpu_seconds", "versions", "libraries", "attngeom", "python", "sha256", "digest", "entropy"}
# Differences between numbers of size one, often zero up to rounding: no digit of a value below this is meaningful.
DIFFERENCES = {"residual", "difference", "noise", "error_estimate", "separation", "distance_to_singular"}
ROUNDING = 1e-12
# Differences of a few products of size one, without a search or a decomposition before: 2e-17 between kernels of CPUs.
FLOORS = dict.fromkeys(DIFFERENCES, ROUNDING) | {"drift": 1e-14, "largest_drift": 1e-14}
# The ratio of a singular value to the next one, which is rounding error where the ratio is large.
LARGE_GAP = 1e6
# Where an iterative search for a maximum stops; the change of outputs of 16 digits by errors of 1e-9 in the weights,
# which has seven: records differ by 4e-8 between the kernels of a Nehalem and of a Skylake.
PRECISION = {"gradient_after": 1e-6, "noise": 1e-6}
BALL = re.compile(r"\[(-?\d[\d.e+-]*) \+/- [\d.e+-]+\]")
# The rest of these lines is the text of a library.
LIBRARY = re.compile(r"(not a valid safetensors file|Invalid value for '--[a-z-]+'):.*")


def call(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the program with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with (
        mock.patch.object(sys, "argv", ["attngeom", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return 0 if code is None else code, out.getvalue(), err.getvalue()


def mask(value: Any) -> Any:
    """The value without times and versions (a file format has an integer, which stays).

    >>> mask({"version": "0.1.0", "seconds": 3.1, "d": [2]})
    {'version': '(masked)', 'seconds': '(masked)', 'd': [2]}
    """
    if isinstance(value, dict):
        hidden = {key for key, x in value.items() if key in MASKED or (key == "version" and isinstance(x, str))}
        return {key: MASK if key in hidden else mask(x) for key, x in value.items()}
    return [mask(x) for x in value] if isinstance(value, list) else value


def parse(text: str) -> Any:
    """One JSON value, masked, else a list of lines."""
    try:
        return mask(json.loads(text))
    except json.JSONDecodeError:
        return text.splitlines()


def read_output(path: Path) -> Any:
    """The content of a file that a command wrote: text, or the metadata and tensors of safetensors; None without it."""
    if not path.exists():
        return None
    if path.suffix != ".safetensors":
        return path.read_text()
    with safe_open(path, "np") as stream:
        metadata = {key: json.loads(text) for key, text in (stream.metadata() or {}).items()}
        tensors = {name: stream.get_tensor(name) for name in sorted(stream.keys())}
    content = {name: {"dtype": str(tensor.dtype), "entries": tensor.tolist()} for name, tensor in tensors.items()}
    return {"metadata": metadata, "tensors": content}


def run_case(case: Case, inputs: Path, out: Path) -> dict[str, Any]:
    """Run all steps of a case with the empty folder ``out``; what they said and wrote, as a JSON value."""

    def hide(text: str) -> str:
        return text.replace(str(out), "{out}").replace(str(inputs), "{in}")

    steps = []
    for step in case.steps:
        code, printed, complaint = call(step.arguments(inputs, out))
        answer = parse(hide(printed))
        if step.unordered:
            answer = {**answer, "facts": sorted(answer["facts"], key=lambda fact: json.dumps(fact, sort_keys=True))}
        lines = [LIBRARY.sub(rf"\1: {MASK}", line) for line in hide(complaint).splitlines()[:1]]
        steps.append({"line": step.line, "code": code, "stdout": answer, "stderr": lines})
    files = {}
    for name in case.files:
        found = read_output(out / name)
        files[name] = parse(hide(found)) if isinstance(found, str) else found
    return {"steps": steps, "files": files}


def entries(value: Any) -> list[float] | None:
    """The numbers of a nested list that holds nothing else and at least one float, else None.

    >>> entries([[1, 0.5], [2.0]]), entries([1, 2]), entries([0.5, "1/2"])
    ([1.0, 0.5, 2.0], None, None)
    """
    flat, stack, has_float = [], [value], False
    while stack:
        x = stack.pop()
        if isinstance(x, list):
            stack.extend(reversed(x))
        elif isinstance(x, (int, float)) and not isinstance(x, bool):
            flat.append(float(x))
            has_float = has_float or isinstance(x, float)
        else:
            return None
    return flat if has_float else None


def differences(expected: Any, found: Any, place: str = "", scale: float = 0.0) -> list[str]:
    """Where the two values differ, in words; an empty list if they agree. ``scale`` is the largest entry around.

    >>> differences({"a": [1.0, 1e-16]}, {"a": [1.0 + 1e-12, 0.0]})
    []
    >>> differences({"a": 1, "b": "x"}, {"a": 2, "b": "x"})
    ['/a: 1 recorded, 2 found']
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        lost = [
            f"{place}/{key}: only in the {'record' if key in expected else 'answer'}"
            for key in sorted(expected.keys() ^ found.keys())
        ]
        shared = [key for key in expected if key in found]
        return lost + [text for key in shared for text in differences(expected[key], found[key], f"{place}/{key}")]
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return [f"{place}: {len(expected)} entries recorded, {len(found)} found"]
        numbers = entries(expected)
        scale = max([scale, *map(abs, numbers)]) if numbers else 0.0
        pairs = enumerate(zip(expected, found))
        return [text for index, (x, y) in pairs for text in differences(x, y, f"{place}/{index}", scale)]
    return [] if agree(expected, found, place, scale) else [f"{place}: {expected!r} recorded, {found!r} found"]


def agree(expected: Any, found: Any, place: str, scale: float) -> bool:
    """Whether two values that are neither dicts nor lists agree."""
    key = place.rpartition("/")[2]
    if isinstance(expected, float) and isinstance(found, (int, float)) and not isinstance(found, bool):
        if key == "gap" and min(expected, found) >= LARGE_GAP:
            return True
        floor = max(RELATIVE * scale, FLOORS.get(key, 0.0))
        return math.isclose(expected, found, rel_tol=PRECISION.get(key, RELATIVE), abs_tol=floor)
    if isinstance(expected, str) and isinstance(found, str):
        balls = BALL.fullmatch(expected), BALL.fullmatch(found)
        if balls[0] and balls[1]:
            return math.isclose(float(balls[0][1]), float(balls[1][1]), rel_tol=RELATIVE)
    return type(expected) is type(found) and expected == found
