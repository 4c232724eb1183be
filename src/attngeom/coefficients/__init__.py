"""Coefficients of one lightning layer: labels, arrays, files, and interpolation of black boxes."""

from attngeom.coefficients.arrays import Coefficients, Term, expand

__all__ = ["Coefficients", "Term", "expand"]
