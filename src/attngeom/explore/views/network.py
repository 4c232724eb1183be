"""Your network: the dimension and the symmetries of a network that was traced when the server started.

The page sees a program, which is data: no code of a page or of a dropped file is ever run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod
from typing import Any

from attngeom.errors import InputError, SizeError
from attngeom.explore.controls import Control, State
from attngeom.explore.shelf import ShelfItem, named, quoted
from attngeom.explore.view import Facts, Progress
from attngeom.files import parse_json, read_bytes
from attngeom.limits.shown import LAW_EXAMPLES, PAGE_HEADS
from attngeom.limits.work import PAGE_NETWORK_WEIGHTS
from attngeom.programs.program import Program
from attngeom.rank.analysis import Analysis, analyze

START = "attngeom explore --net FILE.py:NAME"


def program_of(file: ShelfItem) -> Program:
    """The program that a file holds as data."""
    if file.name.lower().endswith(".py"):
        raise InputError(f"a Python file dropped; code is never run for a page: start {START}")
    return Program.from_json(parse_json(read_bytes(file.path), file.short))


def describe(program: Program) -> Facts:
    """Its tensors, its inputs, and how often each operation stands in it."""
    tensors = [(name, _shape(shape), f"{prod(shape):,}") for name, shape in program.parameters.items()]
    operations = Counter(node.operation for node in program.nodes)
    return {
        "tensors": tensors[:PAGE_HEADS],
        "about": {
            "weights": f"{program.num_parameters:,} in {len(tensors):,} tensors",
            "inputs": ", ".join(f"{name} {_shape(shape)}" for name, shape in program.inputs.items()) or "none",
            "outputs": f"{program.outputs:,} numbers",
            "operations": ", ".join(f"{count} {name}" for name, count in operations.most_common()),
            "SHA-256": program.digest,
        },
    }


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a number"


def split(answer: Analysis) -> list[tuple[str, int, str]]:
    """The weights: what the function sees, then what each symmetry hides, then what nothing explains."""
    first = ("dimension", "of the set of functions") if answer.lower_bound == answer.upper_bound else ("rank mod p", "")
    parts: Counter[str] = Counter()
    for part in answer.fiber:
        parts[f"{part.name} on {', '.join(part.tensors)}"] += part.count
    hidden = [(name, count, "") for name, count in parts.items()]
    rest = [("not explained by a symmetry", answer.unexplained, "")] if answer.unexplained else []
    return [(first[0], answer.dimension, first[1]), *hidden, *rest]


def show(state: State) -> Facts:
    """What was traced; the analysis is a job that begins by itself."""
    if state["file"] is None:
        return {"file": None, "start": START}
    program = program_of(state["file"])
    if program.num_parameters > PAGE_NETWORK_WEIGHTS:
        raise SizeError(f"{program.num_parameters:,} weights given; at most {PAGE_NETWORK_WEIGHTS:,} are analysed here")
    return {"file": state["file"], **describe(program)}


def run(state: State, progress: Progress) -> Facts:
    """The analysis of the program."""
    if state["file"] is None:
        raise InputError(f"no network is chosen; start {START}")
    program = program_of(state["file"])
    given: Any = analyze(program, seed=state["seed"], progress=lambda what, done, total: progress(done, total))
    answer: Analysis = replace(given, name=state["file"].short.rpartition(":")[2])
    return {"answer": answer, "parts": split(answer), "laws": answer.laws[:LAW_EXAMPLES]}


def command(state: State) -> str:
    return f"attngeom net {quoted(state['file'], 'FILE.py:NAME')}{_seed(state, ' --seed {}')}"


def python(state: State) -> str:
    given = f"trace_network({named(state['file'], 'FILE.py:NAME')!r}){_seed(state, ', seed={}')}"
    return f"import attngeom; from attngeom.cli.net import trace_network; print(attngeom.analyze({given}))"


def _seed(state: State, words: str) -> str:
    return words.format(state["seed"]) if state["seed"] else ""


CONTROLS = (
    Control("file", "Network", "file", hint="named by --net when the server starts", kinds=("program",)),
    Control("seed", "Seed", "number", "0"),
)
JOBS = {"analyze": run}
