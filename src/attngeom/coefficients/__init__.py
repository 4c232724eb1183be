"""Coefficients of one lightning layer: labels, arrays, files, and interpolation of black boxes."""

from attngeom.coefficients.arrays import Coefficients, Term, expand
from attngeom.coefficients.blackbox import Interpolation, interpolate
from attngeom.coefficients.files import read_coefficients, write_coefficients

__all__ = [
    "Coefficients",
    "Interpolation",
    "Term",
    "expand",
    "interpolate",
    "read_coefficients",
    "write_coefficients",
]
