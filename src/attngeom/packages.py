"""Packages that are also functions: ``attngeom.dimension(architecture)`` beside ``attngeom.dimension.formulas``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Let a call of the module ``name`` be a call of ``function``."""

    class CallableModule(ModuleType):
        __call__ = staticmethod(function)

    sys.modules[name].__class__ = CallableModule
