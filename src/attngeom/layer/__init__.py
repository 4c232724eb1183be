"""One layer as a polynomial map: coefficients, their files, interpolation, splitting into (A, V)."""
