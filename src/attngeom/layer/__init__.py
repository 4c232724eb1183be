"""One layer as a polynomial map: coefficients, their files, interpolation, splitting into (A, V)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attngeom.rooms import names_of, open_room

if TYPE_CHECKING:
    from attngeom.layer.blackbox import BlackBox
    from attngeom.layer.coefficients import Coefficients
    from attngeom.layer.files import read_coefficients, write_coefficients
    from attngeom.layer.interpolation import interpolate
    from attngeom.layer.nearest import nearest_layer
    from attngeom.layer.splitting import split_layer

__all__ = [
    "BlackBox",
    "Coefficients",
    "interpolate",
    "nearest_layer",
    "read_coefficients",
    "split_layer",
    "write_coefficients",
]

_NAMES = names_of(
    {
        "blackbox": ("BlackBox",),
        "coefficients": ("Coefficients",),
        "files": ("read_coefficients", "write_coefficients"),
        "interpolation": ("interpolate",),
        "nearest": ("nearest_layer",),
        "splitting": ("split_layer",),
    }
)
__getattr__, __dir__ = open_room(__name__, _NAMES)
