"""Restrictions of the slice quadrics to lines and their 2×2 minors: shared by resultants and binary restrictions."""

from __future__ import annotations

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.invariants.terms import Terms, add, cross, linear, multiply


def restriction_matrix(lines: Array) -> Array:
    """The integer matrices (…, 3, D) that send coordinates y_{S,m} to (q_m(p), B_m(p, r), q_m(r)) on lines (…, 2, d).

    >>> restriction_matrix(np.array([[1, 0], [1, 1]])).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 2, 1]]
    """
    p, r = lines[..., 0, :], lines[..., 1, :]
    k, l = np.triu_indices(lines.shape[-1])
    off = (k != l).astype(np.int64)
    rows = [p[..., k] * p[..., l] * (1 + off), p[..., k] * r[..., l] + off * p[..., l] * r[..., k]]
    return np.stack([*rows, r[..., k] * r[..., l] * (1 + off)], axis=-2)


def restrict(y: Array, lines: Array, domain: Domain) -> Array:
    """The binary quadrics on each of n lines: (…, n, 3, targets) from y (…, D, targets) and lines (n, 2, d)."""
    matrix = restriction_matrix(lines)
    flat = domain.matmul(domain.array(matrix.reshape(-1, matrix.shape[-1])), y)
    return flat.reshape(*y.shape[:-2], len(lines), 3, y.shape[-1])


def restricted_forms(line: Array, targets: int, row: int) -> list[list[Terms]]:
    """The 3×targets matrix of linear forms (q_m(p), B_m(p, r), q_m(r)) on one line."""
    d = line.shape[-1]
    matrix = restriction_matrix(line)
    labels = list(zip(*np.triu_indices(d)))
    return [
        [
            linear((cross(row, int(k), int(l), m), int(c)) for (k, l), c in zip(labels, form) if c)
            for m in range(targets)
        ]
        for form in matrix
    ]


def form_minor(forms: list[list[Terms]], u: int, w: int, pair: tuple[int, int]) -> Terms:
    """The 2×2 minor of rows u, w and the two targets of ``pair``, as a polynomial."""
    m, n = pair
    return add((1, multiply(forms[u][m], forms[w][n])), (-1, multiply(forms[u][n], forms[w][m])))
