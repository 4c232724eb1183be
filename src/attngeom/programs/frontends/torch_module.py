"""The PyTorch front door: a module is exported to core ATen, whose calls are run on traced arrays, one after another.

Index work is done by the operation of PyTorch itself, on the numbers 1 … n; everything else is a row of a table, in
terms of NumPy. What depends on neither weights nor inputs stays a plain array. Dropout is off (eval), and casts between
floating point types are left out.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.sizes import TRACED_WEIGHTS
from attngeom.programs.builder import Builder
from attngeom.programs.frontends import Reference
from attngeom.programs.frontends.aten_calls import call, decompositions
from attngeom.programs.frontends.numpy_function import Traced, as_node, shape_of
from attngeom.programs.frontends.torch_recording import record
from attngeom.programs.program import Program


def accepts(network: Any, weights: Any) -> bool:
    """A module of PyTorch; PyTorch is loaded if somebody has one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(network, torch.nn.Module)


def read(network: Any, inputs: Any, weights: Any, output: Any) -> tuple[Program, Reference]:
    """The program of a module at inputs of these shapes, and the module again for arrays."""
    import torch

    if weights is not None:
        raise InputError("weights given with a module, which has its own; leave them out")
    if any(torch.nn.parameter.is_lazy(parameter) for parameter in network.parameters()):
        raise InputError(
            "a module with weights that have no shape yet given (nn.Lazy…); run it once, or give the sizes"
        )
    total = sum(parameter.numel() for parameter in network.parameters())
    if total > TRACED_WEIGHTS:
        raise SizeError(f"a network of {total:,} weights given; at most {TRACED_WEIGHTS:,} are read: shrink the widths")
    counts: list[int] = []
    module = _prepare(network, output, counts)
    examples, free = _examples(inputs)
    names = _tied_names(module)
    try:
        builder, results = _read_exported(_export(module, tuple(examples)), names, examples, free)
    except NotExported as error:
        builder, results = _record(module, names, examples, free, str(error))
    if counts and counts[-1] > 1:
        builder.notes.append(
            f"this is about the first of {counts[-1]} tensors that the module returns: output=… takes others"
        )
    result = as_node(builder, results[0] if len(results) == 1 else results)

    def reference(tensors: dict[str, Array]) -> Array:
        # Tied weights are one tensor under several names.
        arrays = {known: torch.tensor(tensors[known]) for known in names.values()}
        own = {name: arrays[known] for name, known in names.items()}
        given = [torch.tensor(tensors[free[k]]) if k in free else x for k, x in enumerate(examples)]
        with torch.no_grad():
            outputs = torch.func.functional_call(module, own, tuple(given))
        return (
            np.concatenate([x.numpy().ravel() for x in outputs]) if len(outputs) > 1 else np.asarray(outputs[0].numpy())
        )

    return builder.build(result), reference


class NotExported(Exception):
    """What PyTorch said when it could not export a module."""


def _record(module: Any, names: Mapping[str, str], examples: list[Any], free: Mapping[int, str], words: str) -> Any:
    """A module that cannot be exported, run on numbers; if that does not go either, both reasons are one line."""
    try:
        return record(module, names, examples, free)
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever the module raises
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"PyTorch cannot export the module ({words[:55]}), and running it raised {type(error).__name__[:30]} "
            f"({lines[0][:40]}); give inputs that it takes"
        ) from None


def _read_exported(
    exported: Any, names: Mapping[str, str], examples: list[Any], free: Mapping[int, str]
) -> tuple[Builder, list[Any]]:
    """The calls of an exported module, one after another."""
    from torch.fx.node import map_arg

    builder, values = Builder(), dict[Any, Any]()
    signature, arguments = exported.graph_signature, iter(range(len(examples)))
    results: list[Any] = []
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            values[node] = _leaf(node.name, exported, signature, names, builder, arguments, examples, free)
        elif node.op == "call_function":
            args, options = map_arg((tuple(node.args), dict(node.kwargs)), lambda x: values[x])
            values[node] = call(node.target, args, options, builder, partial(_place, node))
        elif node.op == "output":
            kinds = [spec.kind.name for spec in signature.output_specs]
            if set(kinds) - {"USER_OUTPUT", "TOKEN"}:
                raise InputError("a module that writes in place to its weights, buffers or inputs met; write to a copy")
            results = [values[result] for result, kind in zip(node.args[0], kinds) if kind == "USER_OUTPUT"]
        else:
            raise InputError(f"{node.op} {str(node.target)[:60]} met in the exported module; branches are not traced")
    return builder, results


def _prepare(network: Any, output: Any, counts: list[int]) -> Any:
    """A copy in double precision for evaluation, that returns a tuple with one tensor; ``counts``: of how many."""
    import torch
    from torch.utils import _pytree

    try:
        inner = copy.deepcopy(network).eval().double()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        words = str(error).strip()[:80].replace("\n", " ")
        raise InputError(f"a module that cannot be copied given ({words}); keep weights as nn.Parameter") from None
    for part in inner.modules():
        config: Any = getattr(part, "config", None)
        # Fused attention is a call without parts; the eager form computes the same.
        if getattr(config, "_attn_implementation", None) is not None:
            config._attn_implementation = "eager"

    class Whole(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = inner

        def forward(self, *arguments: Any) -> Any:
            answer = self.network(*arguments)
            answer = answer if output is None else output(answer)
            leaves = [x for x in _pytree.tree_leaves(answer) if isinstance(x, torch.Tensor) and x.is_floating_point()]
            if not leaves:
                raise InputError("a network that returns nothing given; return its output")
            counts.append(len(leaves))
            # Beside the first output, models return caches and hidden states of other shapes.
            return tuple(leaves[:1])

    return Whole()


def _examples(inputs: Any) -> tuple[list[Any], dict[int, str]]:
    """Tensors to export with, and the names of those that vary; integers are constants."""
    import torch

    examples: list[Any] = []
    free: dict[int, str] = {}
    generator = torch.Generator().manual_seed(0)
    for place, given in enumerate(inputs):
        array = given.detach().cpu().numpy() if isinstance(given, torch.Tensor) else given
        if not isinstance(array, (tuple, list)):
            array = np.asarray(array)
            if array.dtype.kind in "iub" and array.ndim:
                examples.append(torch.tensor(array))
                continue
        shape = shape_of(array, f"input {place}")
        free[place] = "x" if len(inputs) == 1 else f"x{place}"
        examples.append(torch.randn(shape, dtype=torch.float64, generator=generator))
    return examples, free


def _export(module: Any, examples: tuple[Any, ...]) -> Any:
    """The module in core ATen; NotExported with the first line of what PyTorch says."""
    import io
    import logging
    import warnings
    from contextlib import redirect_stderr, redirect_stdout

    import torch

    # PyTorch prints the graph when it gives up; one line is enough.
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            exported = torch.export.export(module, examples, strict=False)
            return exported.run_decompositions(decompositions())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever export meets in the module
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise NotExported(words[0]) from None
        finally:
            logging.disable(logging.NOTSET)


def _tied_names(module: Any) -> dict[str, str]:
    """For each parameter the name of the weights that it is: the first one of those that share their numbers."""
    names: dict[str, str] = {}
    known: dict[int, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names[name] = known.setdefault(id(parameter), name.removeprefix("network."))
    return names


def _leaf(
    name: str,
    exported: Any,
    signature: Any,
    names: Mapping[str, str],
    builder: Builder,
    arguments: Any,
    examples: list[Any],
    free: Mapping[int, str],
) -> Any:
    """Weights and inputs are nodes; buffers, constants and integer inputs are plain arrays."""
    if name in signature.inputs_to_parameters:
        given = signature.inputs_to_parameters[name]
        return Traced(builder, builder.parameter(names[given], tuple(exported.state_dict[given].shape)))
    if name in signature.inputs_to_buffers:
        given = signature.inputs_to_buffers[name]
        stored = exported.state_dict if given in exported.state_dict else exported.constants
        return stored[given].detach().numpy()
    if name in signature.inputs_to_lifted_tensor_constants:
        return exported.constants[signature.inputs_to_lifted_tensor_constants[name]].detach().numpy()
    if name in signature.input_tokens:
        return None
    place = next(arguments)
    if place in free:
        return Traced(builder, builder.input(free[place], tuple(examples[place].shape)))
    return examples[place].numpy()


def _place(node: Any) -> str:
    """The line of the user's file that a call comes from, where PyTorch knows it."""
    trace = node.meta.get("stack_trace")
    if not trace:
        return ""
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    if not lines:
        return ""
    path, number = lines[-1].split(", line ")
    file = path.removeprefix('File "').rstrip('"').replace("\\", "/").rpartition("/")[2]
    return f" ({file}, line {number.partition(',')[0]})"
