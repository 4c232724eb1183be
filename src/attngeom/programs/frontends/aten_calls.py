"""One call of core ATen on plain and traced arrays: index work by PyTorch itself, everything else by the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.aten import IGNORED, INDEX_WORK, LINEAR, RANDOM, DataIndex
from attngeom.programs.frontends.aten_layers import OPERATIONS
from attngeom.programs.frontends.numpy_function import Traced, index_work
from attngeom.programs.frontends.numpy_linear import apply_linear

_KEPT = """
softplus gelu elu leaky_relu silu hardtanh mish hardswish hardsigmoid _prelu_kernel _softmax _safe_softmax
native_layer_norm logsumexp logcumsumexp
"""
KEPT = tuple(_KEPT.split())
"""Operations with rows of their own, which would otherwise be taken apart into branches on data."""


CHOICES = ("index", "gather", "index_select", "take")
"""Operations that pick entries of their first argument."""


def decompositions() -> dict[Any, Callable[..., Any]]:
    """How PyTorch takes operations apart into core ATen, without those that have rows of their own."""
    import torch

    table = torch.export.default_decompositions()
    for name in KEPT:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    return dict(table)


def call(target: Any, args: Any, options: Any, builder: Builder, where: Callable[[], str]) -> Any:
    """What an operation of ATen makes of these arguments; ``where`` tells the line that it comes from."""
    name = getattr(target, "__name__", str(target)).partition(".")[0]
    if name == "getitem":
        return args[0][args[1]]
    if name == "with_effects":
        # Checks of errors, in order: a token and what is called.
        return None, call(args[1], args[2:], options, builder, where)
    if name in IGNORED:
        return None
    if name in RANDOM:
        raise InputError(f"aten.{name}, a random operation, met{where()}; a network is a function: take it out")
    if has_data((args, options), DataIndex) or (name in CHOICES and has_data(args[1:])):
        raise InputError(f"an index made from data met in aten.{name}{where()}; give a dense form or a fixed choice")
    try:
        if name not in ("cos", "sin") and not has_data((args, options)):
            made = _on_numbers(target)(*args, **options)
            # Whatever lies in fresh memory is written over, or the comparison with the network tells.
            return np.zeros_like(made) if "empty" in name else made
        if name in INDEX_WORK:
            return index_work(builder, _on_numbers(target), args, options)
        if name in LINEAR and not has_data((args[1:], options)):
            return apply_linear(args[0], lambda unit: _on_numbers(target)(unit, *args[1:], **options))
        if name in OPERATIONS:
            return OPERATIONS[name](builder, *args, **options)
    except InputError as error:
        raise InputError(f"{error}{where()}") from None
    except SizeError:
        raise
    except (TypeError, ValueError, IndexError, NotImplementedError, RuntimeError, MemoryError) as error:
        raise InputError(f"aten.{name} as it is called here is not known ({str(error)[:60]}){where()}") from None
    instead = "write it with sums, products, exp, sqrt, maximum and indexing, or fix the choice"
    if any(word in name for word in ("fft", "complex", "as_real")):
        instead = "complex numbers are not traced: write real and imaginary parts"
    raise InputError(f"aten.{name} met{where()}; {instead}")


def has_data(item: Any, kind: type = Traced) -> bool:
    """Whether something in nested arguments depends on weights or inputs."""
    if isinstance(item, (list, tuple)):
        return any(has_data(x, kind) for x in item)
    return any(has_data(x, kind) for x in item.values()) if isinstance(item, dict) else isinstance(item, kind)


def _on_numbers(target: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of PyTorch for arrays of NumPy."""
    import torch

    def convert(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            return torch.from_numpy(np.array(item, order="C"))
        return [convert(x) for x in item] if isinstance(item, (list, tuple)) else item

    def back(item: Any) -> Any:
        return [back(x) for x in item] if isinstance(item, (list, tuple)) else np.asarray(item)

    def run(*args: Any, **options: Any) -> Any:
        return back(target(*map(convert, args), **{key: convert(x) for key, x in options.items()}))

    return run
