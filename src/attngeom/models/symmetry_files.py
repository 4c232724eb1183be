"""Recovered symmetries as safetensors: every array of every part, in the order in which the parts act."""

from __future__ import annotations

import numpy as np
from safetensors.numpy import save

from attngeom.errors import InputError
from attngeom.files import to_json
from attngeom.models.comparison import ModelComparison


def symmetry_bytes(found: ModelComparison) -> bytes:
    """Tensors ``layers.{i}.{k}.{part}.{field}`` that move the folded second model onto the folded first one."""
    if not found.symmetry:
        raise InputError(f"no symmetry was recovered ({found.reason[:100]}); compare models of the same kind")
    tensors: dict[str, np.ndarray] = {}
    for layer, symmetry in enumerate(found.symmetry):
        for number, part in enumerate(symmetry):
            name = f"layers.{layer}.{number}.{part.name}"
            for field, value in part.arrays().items():
                if np.iscomplexobj(value):
                    tensors[f"{name}.{field}.real"] = np.ascontiguousarray(value.real)
                    tensors[f"{name}.{field}.imag"] = np.ascontiguousarray(value.imag)
                else:
                    tensors[f"{name}.{field}"] = np.ascontiguousarray(value)
    summary = {"same_function": found.same_function, "level": found.level, "reason": found.reason}
    return bytes(save(tensors, metadata={"attngeom": to_json(summary)}))
