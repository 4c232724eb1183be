"""Weights from coefficients, from queries, from black boxes."""
