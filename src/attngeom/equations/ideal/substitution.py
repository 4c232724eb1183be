"""Proof that a polynomial vanishes on a variety: substitution of the parametrization, symbolically and exactly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations_with_replacement

from flint import fmpz_mpoly, fmpz_mpoly_ctx

from attngeom.equations.ideal.models import CrossColumn, LayerCoefficients, Model
from attngeom.errors import InputError

Terms = Mapping[tuple[int, ...], int]
"""A polynomial: sorted tuples of coordinate indices (with repetition) to integer coefficients."""


@lru_cache(maxsize=8)
def symbolic_coordinates(model: Model) -> list[fmpz_mpoly]:
    """Every coordinate, times one common integer, as a polynomial in the parameters.

    The parameters are V and A for each head, with A = Kᵀ Q and V = O W where their ranks are bounded.

    >>> [str(f) for f in symbolic_coordinates(CrossColumn(2, 2, targets=1))]
    ['2*V_0_0_0*A_0_0_0', 'V_0_0_0*A_0_1_0 + V_0_0_1*A_0_0_0', '2*V_0_0_1*A_0_1_0']
    """
    if not isinstance(model, (CrossColumn, LayerCoefficients)):
        raise InputError(f"model {type(model).__name__} given; a layer of attention is required")
    cross, ctx = _cross_coordinates(model)
    if isinstance(model, CrossColumn):
        return [f for row in cross for f in row.values()]
    found: list[fmpz_mpoly] = []
    for r, tag in model.blocks():
        if len(tag) == 2:
            found += [3 * f for f in cross[r].values()]
        else:
            found += [
                cross[r][k, l, m] + cross[r][k, m, l] + cross[r][l, m, k]
                for k, l, m in combinations_with_replacement(range(model.d), 3)
            ]
    if model.residual:
        found.append(ctx.gens()[-1])
    return found


def _cross_coordinates(
    model: CrossColumn | LayerCoefficients,
) -> tuple[list[dict[tuple[int, int, int], fmpz_mpoly]], fmpz_mpoly_ctx]:
    """2 y_{r,(k,l),m} for each row, as polynomials in the parameters."""
    d, m, heads = model.d, model.num_targets, model.heads
    low_rank = model.a < min(d, m)
    low_width = model.value_width is not None and model.value_width < min(d, model.d_out)
    inner = model.value_width or 0
    names = []
    for h in range(heads):
        for left, right, rank, bounded, rows, columns, full in (
            ("O", "W", inner, low_width, model.d_out, d, "V"),
            ("K", "Q", model.a, low_rank, d, m, "A"),
        ):
            if bounded:
                names += [f"{left}_{h}_{i}_{s}" for i in range(rows) for s in range(rank)]
                names += [f"{right}_{h}_{s}_{j}" for s in range(rank) for j in range(columns)]
            else:
                names += [f"{full}_{h}_{i}_{j}" for i in range(rows) for j in range(columns)]
    ctx = fmpz_mpoly_ctx.get([*names, "u"], "lex")
    variables = dict(zip([*names, "u"], ctx.gens()))

    def entry(full: str, left: str, right: str, bounded: bool, rank: int, h: int, i: int, j: int) -> fmpz_mpoly:
        if not bounded:
            return variables[f"{full}_{h}_{i}_{j}"]
        return sum(
            (variables[f"{left}_{h}_{i}_{s}"] * variables[f"{right}_{h}_{s}_{j}"] for s in range(rank)),
            start=ctx.constant(0),
        )

    rows_found = []
    for r in range(model.d_out):
        row = {}
        for k, l in combinations_with_replacement(range(d), 2):
            for t in range(m):
                total = ctx.constant(0)
                for h in range(heads):
                    v = [entry("V", "O", "W", low_width, inner, h, r, i) for i in (k, l)]
                    x = [entry("A", "K", "Q", low_rank, model.a, h, i, t) for i in (l, k)]
                    total = total + v[0] * x[0] + v[1] * x[1]
                row[k, l, t] = total
        rows_found.append(row)
    return rows_found, ctx


def substitute(terms: Terms, images: list[fmpz_mpoly]) -> fmpz_mpoly:
    """The polynomial with a polynomial put for every coordinate; common factors of the terms are shared."""
    ctx = images[0].context()
    total = ctx.constant(0)
    by_first: dict[int, dict[tuple[int, ...], int]] = {}
    for factors, coefficient in terms.items():
        if not factors:
            total = total + coefficient
        else:
            by_first.setdefault(factors[0], {})[factors[1:]] = coefficient
    for first, rest in by_first.items():
        total = total + images[first] * substitute(rest, images)
    return total


def vanishes_on(model: Model, terms: Terms) -> bool:
    """Whether a homogeneous polynomial in the coordinates vanishes on the variety: a proof either way.

    >>> vanishes_on(CrossColumn(2, 1), {(0, 3): 1, (1, 2): -1})
    True
    """
    return bool(substitute(terms, symbolic_coordinates(model)) == 0)
