"""Exact geometry of attention networks: dimensions, fibers, invariants and certificates."""

__version__ = "0.1.0"
