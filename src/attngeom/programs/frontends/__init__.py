"""From a network as it was written to a program: one file for each framework, loaded when it is needed.

A front end is a module with two functions: ``accepts(network, weights)`` tells whether this is its kind of network, and
``read(network, inputs, weights)`` returns the program with a function that computes the same from arrays, which
:func:`trace` compares with it. Adding one: write the file, import the framework inside of its functions, and name the
module in ``FRONTENDS``, before ``numpy_function``, which accepts every function.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attngeom.errors import AttnGeomError, InputError
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import TRACED_OUTPUTS
from attngeom.limits.trials import TRACED_POINTS
from attngeom.programs.angle_sums import add_angles
from attngeom.programs.arithmetic import RealArithmetic
from attngeom.programs.operations import Point
from attngeom.programs.passes import run, value
from attngeom.programs.program import Program
from attngeom.programs.regions import fix_signs
from attngeom.programs.trimming import split_fused, trim

FRONTENDS = ("torch_module", "jax_function", "numpy_function")
"""Modules of this folder, asked in this order."""

Reference = Callable[[dict[str, Array]], Array]
"""The network as it was given: from tensors by name to the output."""


def trace(network: Any, *inputs: Any, weights: Any = None, output: Any = None, seed: int = 0) -> Program:
    """The program of a network, compared with the network in float64 at random points: a mismatch is an error.

    ``network`` is a function ``f(weights, *inputs)`` of NumPy arrays (or what another front end accepts); ``weights`` a
    nested dictionary of arrays or shapes; each input a shape, an array of floats (an example), or an array of integers,
    which is a constant. ``output`` picks a part of the output: a function of the output, such as ``lambda y: y[-1]``.

    >>> program = trace(lambda w, x: w["V"] @ x, (3, 2), weights={"V": (2, 3)})
    >>> program.parameters, program.outputs
    ({'V': (2, 3)}, 4)
    """
    if isinstance(network, Program):
        return network
    for name in FRONTENDS:
        frontend = importlib.import_module(f"{__name__}.{name}")
        if frontend.accepts(network, weights):
            program: Program
            program, reference = frontend.read(network, inputs, weights, output)
            check_program(program)
            program = fix_signs(program, seed)
            notes, smaller = program.notes, trim(add_angles(trim(program)))
            # What is zero everywhere is left as it was written: a network of dimension 0 has weights too.
            program = smaller if smaller.depends_on_weights[smaller.output] else program
            compare(program, reference, seed)
            return split_fused(program).with_notes(*notes)
    raise InputError(f"{type(network).__name__} given; a function f(weights, x) or a module is required")


def check_program(program: Program) -> None:
    """InputError unless there are weights, and inputs reach the output if there are some."""
    if not program.num_parameters:
        raise InputError(
            "a network without weights given; name them, weights={'V': (2, 3)}, or give a module that has some"
        )
    if not program.depends_on_weights[program.output]:
        raise InputError("a network whose output depends on no weight given; return what the weights compute")
    if program.inputs and not program.depends_on_input[program.output]:
        raise InputError(
            "a network that ignores its input given; give integers for a table of values, or use the input"
        )


def compare(program: Program, reference: Reference, seed: int) -> None:
    """InputError unless program and network agree in float64 at random points, up to 1e-6 of the largest entry."""
    rng = np.random.default_rng(seed)
    shapes = {**program.parameters, **program.inputs}
    compared = False
    for _ in range(TRACED_POINTS):
        tensors = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
        traces = run(program, Point(RealArithmetic(), {name: x[None] for name, x in tensors.items()}))
        ours = value(program, traces)[0]
        with np.errstate(all="ignore"):
            theirs = _run(reference, tensors)
        if theirs.shape != ours.shape:
            raise InputError(f"the traced program gives shape {ours.shape}, the network {theirs.shape}: report this")
        both = np.isfinite(ours) & np.isfinite(theirs)
        if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)) and not both.any():
            continue
        compared |= bool(both.any())
        size = max(1.0, float(np.abs(theirs[both]).max(initial=0.0)))
        error = float(np.abs(ours - theirs)[both].max(initial=0.0)) / size
        if error > TRACED_OUTPUTS:
            raise InputError(
                f"the traced program differs from the network by {error:.1e}: it depends on values in a way that "
                "tracing does not see (branches, writes in place, random numbers)"
            )
    if not compared:
        raise InputError(
            f"the network gives no finite number at {TRACED_POINTS} random points (NaN constants, logarithms or roots "
            "of negative numbers?); write it so that it exists at generic weights and inputs"
        )


def _run(reference: Reference, tensors: dict[str, Array]) -> Array:
    """The network at arrays; InputError with what it raised."""
    try:
        return np.asarray(reference(tensors), dtype=np.float64)
    except AttnGeomError:
        raise
    except Exception as error:  # whatever the network raises
        words = (str(error).strip().splitlines() or [""])[0][:90]
        raise InputError(f"the network raised {type(error).__name__} at arrays: {words}") from None


def flatten(weights: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of nested dictionaries and lists, with dotted names.

    >>> flatten({"a": {"b": (2,)}, "c": [(1, 2)]})
    {'a.b': (2,), 'c.0': (1, 2)}
    """
    if isinstance(weights, Mapping):
        items = [(str(key), item) for key, item in weights.items()]
    elif isinstance(weights, list) or (isinstance(weights, tuple) and not all(isinstance(n, int) for n in weights)):
        items = [(str(key), item) for key, item in enumerate(weights)]
    else:
        return {prefix: weights}
    leaves: dict[str, Any] = {}
    for key, item in items:
        leaves |= flatten(item, f"{prefix}.{key}" if prefix else key)
    return leaves


def rebuild(weights: Any, leaves: Mapping[str, Any], prefix: str = "") -> Any:
    """The nested structure again, with other leaves."""
    if isinstance(weights, Mapping):
        return {k: rebuild(v, leaves, f"{prefix}.{k}" if prefix else str(k)) for k, v in weights.items()}
    if isinstance(weights, list) or (isinstance(weights, tuple) and not all(isinstance(n, int) for n in weights)):
        return [rebuild(v, leaves, f"{prefix}.{k}" if prefix else str(k)) for k, v in enumerate(weights)]
    return leaves[prefix]
