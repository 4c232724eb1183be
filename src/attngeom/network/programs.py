"""An architecture as a program, which is what every kind of attention has in common: run, differentiated, proven."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from attngeom.exact.domains import Array
from attngeom.limits.memory import NODES_AT_ONCE
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.programs.builder import Builder
from attngeom.programs.domains import arithmetic_of
from attngeom.programs.operations import Point
from attngeom.programs.passes import run, value
from attngeom.programs.program import Program

INPUT = "X"
EXACT = frozenset(("parameter", "input", "constant", "gather", "contract", "add", "inverse"))
"""Operations that Q can evaluate."""


@lru_cache(maxsize=64)
def program_of(architecture: Architecture, tokens: int) -> Program:
    """The function of the architecture at so many tokens; parameters are its tensors, in storage order.

    >>> program = program_of(Architecture((3, 2), 2, kind="gla"), 2)
    >>> program.num_parameters, program.outputs
    (24, 4)
    """
    b, kind = Builder(), architecture.mechanism
    nodes = {name: b.parameter(name, shape) for name, shape in architecture.tensor_shapes()}
    x = b.input(INPUT, (architecture.widths[0], tokens))
    for index, layer in enumerate(architecture.layers):
        total = x if architecture.residual else None
        for place in range(layer.heads):
            head = {letter: nodes[architecture.tensor_name(index, place, letter)] for letter in layer.tensor_shapes}
            y = kind.attend(b, head, x, place)
            y = b.contract("ov,vt->ot", head["O"], y) if "O" in head else y
            total = y if total is None else b.add(total, y)
        assert total is not None
        shared = {letter: nodes[architecture.tensor_name(index, None, letter)] for letter, _ in layer.shared}
        for option in kind.options:
            total = option.output(b, shared, total)
        x = total
    return b.build(x)


def is_rational(architecture: Architecture) -> bool:
    """Whether rational weights and inputs have rational outputs.

    >>> [is_rational(Architecture((2, 2), 1, kind=kind)) for kind in ("lightning", "retnet", "gla")]
    [True, True, False]
    """
    return all(node.operation in EXACT for node in program_of(architecture, 2).nodes)


def run_network(weights: Weights, X: Array) -> Array:
    """The outputs (..., d_l, t) at inputs (..., d_0, t), over every domain that has the functions of the kind."""
    program = program_of(weights.architecture, X.shape[-1])
    samples = X.reshape(-1, *X.shape[-2:])
    tensors = {name: array[None] for name, array in weights.tensors()}
    size = sum(node.size for node in program.nodes)
    step = max(1, NODES_AT_ONCE // size)
    parts = []
    domain = weights.domain
    with domain.working():
        for start in range(0, len(samples), step):
            inputs = samples[start : start + step]
            traces = run(program, Point(arithmetic_of(domain), {**tensors, INPUT: inputs}))
            parts.append(np.broadcast_to(value(program, traces), (len(inputs), *program.nodes[program.output].shape)))
    return np.concatenate(parts).reshape(*X.shape[:-2], *program.nodes[program.output].shape)
