"""Modules that PyTorch cannot export, run once on numbers: what rests on constants alone is decided by these.

Loops over a fixed choice of experts, or over the places of a mask, take numbers out of tensors. That is no branch on
data as long as no weight and no input reaches the number: such a run writes down one and the same program at all
weights and inputs. A number that they do reach is refused with the line where it is taken.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.aten import DataIndex
from attngeom.programs.frontends.aten_calls import call, decompositions
from attngeom.programs.frontends.numpy_function import PACKAGE, Traced

NUMBERS = frozenset(["_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select", "unique", "_unique2"])
"""Operations whose result is a number of Python, or has a shape that rests on the entries."""


def record(module: Any, names: Mapping[str, str], examples: Sequence[Any], free: Mapping[int, str]) -> tuple[Any, Any]:
    """The builder with what a module computes, and its results as traced or plain arrays.

    ``names``: for each parameter the weights that it is; ``free``: the inputs that vary, by their place.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    builder, table = Builder(), decompositions()
    known: dict[int, Any] = {}
    alive: list[Any] = []

    def remember(tensor: Any, value: Any) -> None:
        if isinstance(tensor, (list, tuple)):
            for part, inner in zip(tensor, value):
                remember(part, inner)
        elif isinstance(tensor, torch.Tensor) and isinstance(value, (Traced, DataIndex)):
            alive.append(tensor)
            known[id(tensor)] = value

    class Recorder(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, target: Any, types: Any, args: Any = (), options: Any = None) -> Any:
            options = options or {}
            if target in table:
                with self:
                    parts = table[target](*args, **options)
                if parts is not NotImplemented:
                    return parts
            result = target(*args, **options)
            name = target.__name__.partition(".")[0]
            if "empty" in name:
                result.zero_()
            reached = any(id(x) in known for x in _tensors((args, options)))
            if not reached and name not in ("cos", "sin"):
                return result
            if name in NUMBERS:
                raise InputError(
                    f"a number made from data met (aten.{name}){_where()}; branches on data are not traced: use "
                    "torch.where, or fix the choice"
                )
            if target._schema.is_mutable:
                raise InputError(f"a write in place (aten.{name}) met{_where()}; return a new tensor instead")
            remember(result, call(target, _convert(args, known), _convert(options, known), builder, _where))
            return result

    parameters = dict(module.named_parameters(remove_duplicate=False))
    tensors = {own: torch.randn(parameters[name].shape, dtype=torch.float64) for name, own in names.items()}
    for own, tensor in tensors.items():
        remember(tensor, Traced(builder, builder.parameter(own, tuple(tensor.shape))))
    inputs = [x.clone() for x in examples]
    for place, name in free.items():
        remember(inputs[place], Traced(builder, builder.input(name, tuple(inputs[place].shape))))

    def run(weights: Mapping[str, Any], arguments: Sequence[Any]) -> Any:
        own = {name: weights[known_as] for name, known_as in names.items()}
        return torch.func.functional_call(module, own, tuple(arguments))

    with torch.no_grad(), Recorder():
        results = torch.func.functionalize(run, remove="mutations")(tensors, inputs)
    return builder, [known.get(id(x), np.asarray(x)) for x in results]


def _tensors(item: Any) -> list[Any]:
    import torch

    if isinstance(item, dict):
        item = list(item.values())
    if isinstance(item, (list, tuple)):
        return [x for part in item for x in _tensors(part)]
    return [item] if isinstance(item, torch.Tensor) else []


def _convert(item: Any, known: Mapping[int, Any]) -> Any:
    """Arguments with traced arrays for tensors that data reach, and plain arrays for all others."""
    import torch

    if isinstance(item, dict):
        return {key: _convert(x, known) for key, x in item.items()}
    if isinstance(item, (list, tuple)):
        return type(item)(_convert(x, known) for x in item) if type(item) in (list, tuple) else item
    if isinstance(item, torch.Tensor):
        return known[id(item)] if id(item) in known else item.detach().numpy()
    return item


def _where() -> str:
    """The line of the module that is being run."""
    import torch

    libraries = {PACKAGE, Path(torch.__file__).parent}
    frames = [frame for frame in traceback.extract_stack() if not libraries & set(Path(frame.filename).parents)]
    inner = [frame for frame in frames if frame.name == "forward"] or frames
    return f" ({Path(inner[-1].filename).name}, line {inner[-1].lineno})" if inner else ""
