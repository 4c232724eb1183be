"""Exact geometry of attention networks: dimensions, fibers, invariants and certificates.

The names below are loaded when they are first used, so that ``import attngeom`` is cheap.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "exact": ("GF", "QQ", "RR", "Balls", "QuadraticField"),
    "network": ("Architecture", "Weights", "forward", "random_symmetry", "random_weights"),
    "coefficients": ("Coefficients", "expand", "interpolate", "read_coefficients", "write_coefficients"),
    "fibers.align": ("align",),
    "fibers.canonical": ("canonical",),
    "fibers.geometry": ("inspect",),
    "fibers.recover": ("recover",),
    "certificates": ("certify", "verify"),
    "implicitization": ("CrossColumn", "implicitize"),
    "interop": ("import_checkpoint", "import_state", "read_weights", "write_weights"),
}
_NAMES = {name: module for module, names in _HOMES.items() for name in names}
# Packages that are used by their own name; ``dimension`` and ``invariants`` are functions as well.
_PACKAGES = ("atlas", "dimension", "invariants", "reproduce")

__all__ = [*_NAMES, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"attngeom.{_NAMES[name]}"), name)
    if name in _PACKAGES:
        return importlib.import_module(f"attngeom.{name}")
    raise AttributeError(f"module 'attngeom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
