"""Fibers of the parametrization: which weights compute the same function."""
