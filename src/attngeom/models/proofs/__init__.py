"""Proof by rank: the derivative of a block or a model over GF(p), and its infinitesimal symmetries."""
