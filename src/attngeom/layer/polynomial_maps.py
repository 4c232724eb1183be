"""Polynomial maps d×t → d_out×t of any degree over Q: the functions of deep lightning networks, and their files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.errors import DomainError, FormatError, InputError, SizeError, check_positive
from attngeom.exact.domains import QQ, Array, PolynomialDomain, as_fmpq
from attngeom.files import check_header, read_json, to_json, write_atomic
from attngeom.limits.sizes import MAP_DEGREE, MAP_VARIABLES
from attngeom.limits.work import MAP_TERMS
from attngeom.network import Weights, forward

FORMAT = "attngeom/coefficients"


@dataclass(frozen=True, eq=False)
class PolynomialMap:
    """F: d×t → d_out×t with entries ``outputs[i][j]``: polynomials over Q in x_r_c, r < d, c < t, column by column.

    ``degree`` is the one that is asked about, 3^l for l layers; other terms may occur.

    >>> from attngeom.network import Architecture, random_weights
    >>> expand_network(random_weights(Architecture((1, 1, 1), 1, tokens=2), QQ, seed=2)).outputs[0][1].total_degree()
    9
    """

    d: int
    d_out: int
    t: int
    degree: int
    outputs: tuple[tuple[Any, ...], ...]

    @cached_property
    def domain(self) -> PolynomialDomain:
        return map_domain(self.d, self.t)

    @property
    def is_zero(self) -> bool:
        return not any(f for row in self.outputs for f in row)

    def at(self, X: Array) -> list[list[Any]]:
        """F with polynomials or numbers, an array (d, t), in the place of the entries of X."""
        values = [X[r, c] for c in range(self.t) for r in range(self.d)]
        return [
            [f.compose(*values) if hasattr(values[0], "context") else f(*values) for f in row] for row in self.outputs
        ]

    def to_json(self) -> dict[str, Any]:
        """The JSON object: as for one layer, with monomials of ``degree`` entries."""
        sizes = {"degree": self.degree, "d": self.d, "d_out": self.d_out, "t": self.t}
        return {"format": FORMAT, "version": 1, **sizes, "terms": list(self._terms())}

    def _terms(self) -> Iterator[dict[str, Any]]:
        for i, row in enumerate(self.outputs):
            for j, f in enumerate(row):
                for exponents, value in f.terms():
                    entries = [[k % self.d, k // self.d] for k, e in enumerate(exponents) for _ in range(int(e))]
                    yield {"output": [i, j], "monomial": entries, "value": str(value)}


def map_domain(d: int, t: int) -> PolynomialDomain:
    """The polynomials over Q in the entries of X, column by column."""
    return PolynomialDomain(tuple(f"x_{r}_{c}" for c in range(t) for r in range(d)))


def generic_input(d: int, t: int) -> Array:
    """X with a variable for each entry."""
    gens = map_domain(d, t).ring.gens()
    return np.fromiter((gens[c * d + r] for r in range(d) for c in range(t)), dtype=object, count=d * t).reshape(d, t)


def expand_network(weights: Weights) -> PolynomialMap:
    """The function of a lightning network over Q, of any depth, as polynomials in the entries of X.

    >>> from attngeom.network import Architecture
    >>> ones = {f"layers.{i}.{name}": [[1]] for i in range(2) for name in "QKV"}
    >>> w = Weights.from_tensors(Architecture((1, 1, 1), 1, tokens=1), ones, QQ)
    >>> expand_network(w).outputs[0][0]
    x_0_0^9
    """
    architecture = weights.architecture
    if weights.domain != QQ or not architecture.is_homogeneous:
        raise InputError(
            "weights of another kind given; a lightning network over Q without skip connection is required:"
            " type attngeom inspect or compare"
        )
    d, t, degree = architecture.widths[0], architecture.tokens, 3**architecture.num_layers
    _check_size(d, t, degree)
    outputs = d_out = architecture.widths[-1]
    if comb(d * t + degree - 1, degree) * outputs * t > MAP_TERMS:
        raise SizeError(
            f"a map of degree {degree} in {d * t} variables given; {MAP_TERMS:,} terms are expanded at most"
        )
    ring = map_domain(d, t)
    values = forward(weights.to(ring), generic_input(d, t))
    return PolynomialMap(d, d_out, t, degree, tuple(tuple(row) for row in values.tolist()))


def _check_size(d: int, t: int, degree: int) -> None:
    if degree > MAP_DEGREE or d * t > MAP_VARIABLES:
        raise SizeError(
            f"a map of degree {degree} in {d * t} variables given; at most degree {MAP_DEGREE} and"
            f" {MAP_VARIABLES} variables are handled"
        )


def map_from_json(record: Any, degree: int, name: str = "coefficients") -> PolynomialMap:
    """Read the JSON object: exact values on monomials of ``degree`` entries; a file of one layer does not say it."""
    check_header(record, "coefficients", name)
    for key in ("d", "d_out", "t", "terms"):
        if key not in record:
            raise FormatError(f"{name}: key {key!r} is missing")
    given = record.get("degree", 3)
    if given != degree or type(given) is not int:
        raise FormatError(f"{name}: degree {str(given)[:40]} found; layers of this number give degree {degree}")
    d, d_out, t = (record[key] for key in ("d", "d_out", "t"))
    for label, value in (("d", d), ("d_out", d_out), ("t", t)):
        check_positive(label, value)
    _check_size(d, t, degree)
    terms = record["terms"]
    if not isinstance(terms, list) or d_out * t > MAP_TERMS:
        raise FormatError(f"{name}: terms of type {type(terms).__name__} found; a list is required")
    tables: list[list[dict[tuple[int, ...], fmpq]]] = [[{} for _ in range(t)] for _ in range(d_out)]
    for number, term in enumerate(terms):
        output, exponents, value = _read_term(term, d, d_out, t, degree, f"{name}: term {number}")
        table = tables[output[0]][output[1]]
        if exponents in table:
            raise FormatError(f"{name}: term {number} repeats an output and monomial; give each once")
        if value != 0:
            table[exponents] = value
    ring = map_domain(d, t).ring
    return PolynomialMap(d, d_out, t, degree, tuple(tuple(ring.from_dict(table) for table in row) for row in tables))


def _read_term(
    term: Any, d: int, d_out: int, t: int, degree: int, name: str
) -> tuple[tuple[int, int], tuple[int, ...], fmpq]:
    if not isinstance(term, dict) or set(term) != {"output", "monomial", "value"}:
        raise FormatError(f"{name}: an object with output, monomial and value is required")
    monomial = term["monomial"]
    if not isinstance(monomial, list) or len(monomial) != degree:
        raise FormatError(f"{name}: monomial {str(monomial)[:40]} found; {degree} [row, column] entries are required")
    exponents = [0] * (d * t)
    for entry in monomial:
        row, column = _read_entry(entry, d, t, name)
        exponents[column * d + row] += 1
    value = term["value"]
    if not isinstance(value, str) or any(mark in value for mark in ".eE"):
        raise DomainError(f'{name}: value {str(value)[:40]} found; deep networks are decided for exact strings "p/q"')
    return _read_entry(term["output"], d_out, t, name), tuple(exponents), as_fmpq(value)


def _read_entry(entry: Any, rows: int, columns: int, name: str) -> tuple[int, int]:
    if type(entry) is list and len(entry) == 2:
        row, column = entry
        if type(row) is int and type(column) is int and 0 <= row < rows and 0 <= column < columns:
            return row, column
    raise FormatError(f"{name}: {str(entry)[:40]} found; [row, column] with row < {rows}, column < {columns} needed")


def read_map(path: str | Path, layers: int) -> PolynomialMap:
    """The map in a JSON file, of the degree of so many layers."""
    return map_from_json(read_json(path), 3**layers, str(path))


def write_map(given: PolynomialMap, path: str | Path) -> None:
    """Write a JSON file: all of it, or nothing."""
    write_atomic(path, to_json(given.to_json()) + "\n")
