"""Run a program at a point, push changes of the weights through it, pull cotangents of the output back to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.rounding import rounding_errors
from attngeom.programs.operations import OPERATIONS, Point, Trace
from attngeom.programs.program import Program

Traces = list[Trace | None]


def run(program: Program, point: Point, needed: Callable[[int], bool] | None = None) -> Traces:
    """What every node computes at a point; nodes that are not needed are left out.

    >>> from attngeom.programs import Builder
    >>> from attngeom.programs.arithmetic import RealArithmetic
    >>> b = Builder()
    >>> program = b.build(b.multiply(b.parameter("w", (2,)), b.input("x", (2,))))
    >>> traces = run(program, Point(RealArithmetic(), {"w": np.array([[2.0, 3.0]]), "x": np.array([[5.0, 7.0]])}))
    >>> value(program, traces).tolist(), pull(program, traces, np.array([[1.0, 1.0]]))["w"].tolist()
    ([[10.0, 21.0]], [[5.0, 7.0]])
    """
    traces: Traces = []
    for place, node in enumerate(program.nodes):
        if needed is not None and not needed(place):
            traces.append(None)
            continue
        values = [_result(traces, source) for source in node.inputs]
        traces.append(OPERATIONS[node.operation].run(node, values, point, place))
    return traces


def _result(traces: Traces, place: int) -> Array:
    trace = traces[place]
    assert trace is not None
    return trace.result


def value(program: Program, traces: Traces) -> Array:
    """The output, with its leading axis."""
    return _result(traces, program.output)


def push(program: Program, traces: Traces, changes: Mapping[str, Array]) -> list[Array | None]:
    """The change of every node when the weights change so; None is zero."""
    moved: list[Array | None] = []
    for node, trace in zip(program.nodes, traces):
        if trace is None:
            moved.append(None)
        elif node.operation == "parameter":
            moved.append(changes.get(node.data["name"]))
        else:
            moved.append(OPERATIONS[node.operation].push(trace, [moved[source] for source in node.inputs]))
    return moved


def pull(program: Program, traces: Traces, cotangent: Array) -> dict[str, Array]:
    """For each sample the gradient of ⟨cotangent, output⟩ with respect to every weight: one row of the Jacobian."""
    depends = program.depends_on_weights
    back: list[Array | None] = [None] * len(program.nodes)
    back[program.output] = cotangent
    rows = {}
    for place in range(program.output, -1, -1):
        arrived, trace, node = back[place], traces[place], program.nodes[place]
        if arrived is None or trace is None or not depends[place]:
            continue
        back[place] = None
        if node.operation == "parameter":
            rows[node.data["name"]] = arrived
            continue
        for source, part in zip(node.inputs, OPERATIONS[node.operation].pull(trace, arrived)):
            if part is None or not depends[source]:
                continue
            before = back[source]
            back[source] = part if before is None else trace.domain.reduce(before + part)
    lead = len(cotangent)
    for name, shape in program.parameters.items():
        if name not in rows:
            rows[name] = np.zeros((1, *shape))
        rows[name] = np.broadcast_to(rows[name], (lead, *shape))
    return rows


def needed_entries(program: Program, output: int | None = None) -> list[Array]:
    """For each node which of its entries the output, or one entry of it, rests on, as flags of its shape."""
    flags = [np.zeros(node.shape, dtype=bool) for node in program.nodes]
    flags[program.output].reshape(-1)[slice(None) if output is None else output] = True
    for place in range(program.output, -1, -1):
        node, own = program.nodes[place], flags[place]
        if not own.any():
            continue
        if node.operation == "gather":
            sizes = [program.nodes[source].size for source in node.inputs]
            used = np.zeros(sum(sizes) + 1, dtype=bool)
            used[node.data["index"].reshape(node.shape)[own]] = True
            for source, part in zip(node.inputs, np.split(used[:-1], np.cumsum(sizes)[:-1])):
                flags[source] |= part.reshape(flags[source].shape)
        elif node.operation == "contract":
            terms, out = node.data["subscripts"].split("->")
            for word, source in zip(terms.split(","), node.inputs):
                rest = tuple(k for k, letter in enumerate(out) if letter not in word)
                reached = own.any(axis=rest) if rest else own
                order = [letter for letter in out if letter in word]
                axes = [order.index(letter) for letter in word if letter in order]
                shape = [n if letter in order else 1 for letter, n in zip(word, program.nodes[source].shape)]
                flags[source] |= np.transpose(reached, axes).reshape(shape)
        elif node.operation == "pattern" and node.data["kind"] == "order":
            flags[node.inputs[0]] |= np.asarray(own.any(axis=(-1, -2)))[..., None]
        else:
            for source in node.inputs:
                flags[source] |= own
    return flags


def vanishing_entries(program: Program, traces: Traces) -> list[Array]:
    """For each node which of its entries are zero in the whole region of these traces: what patterns multiply by 0.

    Nodes without a trace have no such entries.

    >>> from attngeom.programs import Builder
    >>> from attngeom.programs.arithmetic import RealArithmetic
    >>> b = Builder()
    >>> x = b.parameter("x", (2,))
    >>> program = b.build(b.multiply(b.positive(x), x))
    >>> traces = run(program, Point(RealArithmetic(), {"x": np.array([[-1.0, 2.0]])}))
    >>> vanishing_entries(program, traces)[program.output].tolist()
    [[True, False]]
    """
    flags: list[Array] = []
    for node, trace in zip(program.nodes, traces):
        if trace is None:
            flags.append(np.zeros((1, *node.shape), dtype=bool))
            continue
        inner = [flags[source] for source in node.inputs]
        lead = len(trace.result)
        if node.operation in ("pattern", "constant"):
            own = trace.result == 0
        elif node.operation == "gather":
            flat = [np.broadcast_to(x.reshape(len(x), -1), (lead, x[0].size)) for x in inner]
            own = np.concatenate([*flat, np.ones((lead, 1), dtype=bool)], axis=1)[:, node.data["index"].ravel()]
        elif node.operation == "contract":
            present = [(~x).astype(np.float64) for x in inner]
            own = trace.domain.contract(node.data["subscripts"], *present) == 0
        elif node.operation == "add":
            own = np.logical_and.reduce(np.broadcast_arrays(*inner))
        else:
            own = np.zeros((1, *node.shape), dtype=bool)
        flags.append(np.asarray(own).reshape(-1, *node.shape))
    return flags


def error_bounds(traces: Traces, zeros: Sequence[Array]) -> list[Array]:
    """For each node of a pass in floats how far its entries may be from the real numbers; those that vanish are 0.

    Nodes without a trace have the bound 0, which no other node reads.
    """
    errors: list[Array] = []
    for trace, gone in zip(traces, zeros):
        if trace is None:
            errors.append(np.zeros(gone.shape))
            continue
        node, inner = trace.node, [errors[k] for k in trace.node.inputs]
        own = rounding_errors(node.operation, node.data, trace.values, inner, trace.result, trace.domain.contract)
        errors.append(np.where(gone, 0.0, own))
    return errors
