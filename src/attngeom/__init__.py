"""Exact geometry of attention networks: dimensions, fibers, equations and certificates.

The names below are loaded when they are first used, so that ``import attngeom`` is cheap.
"""

from __future__ import annotations

import importlib
from typing import Any

from attngeom.rooms import checked, names_of
from attngeom.version import __version__ as __version__

_HOMES = {
    "canonical": ("canonicalize", "fingerprint", "teleport"),
    "certification": ("certify",),
    "comparison": ("compare",),
    "dimensions": ("dimension",),
    "equations": ("invariants",),
    "equations.ideal": ("implicitize",),
    "exact": ("GF", "QQ", "RR"),
    "inspection.geometry": ("inspect",),
    "interop": ("import_checkpoint", "import_state", "read_weights", "write_weights"),
    "layer.coefficients": ("Coefficients", "coefficients"),
    "layer.files": ("read_coefficients", "write_coefficients"),
    "learning": ("learning_coefficient",),
    "learning.track": ("track",),
    "network": ("Architecture", "Weights", "forward", "random_weights"),
    "rank.analysis": ("analyze",),
    "recovery.recover": ("recover",),
    "verification": ("verify",),
}
_NAMES = names_of(_HOMES)
_CALLED = {"laws": ("learning.laws", "conserved_quantities"), "net": ("rank.analysis", "analyze")}
"""Names of commands whose functions say more."""
_PACKAGES = ("atlas", "heads", "learning", "models", "papers")

__all__ = [*_NAMES, *_CALLED, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _NAMES or name in _CALLED:
        module, attribute = _CALLED.get(name) or (_NAMES[name], name)
        return checked(getattr(importlib.import_module(f"attngeom.{module}"), attribute), name)
    if name in _PACKAGES:
        return importlib.import_module(f"attngeom.{name}")
    raise AttributeError(f"module 'attngeom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
