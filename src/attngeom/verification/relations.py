"""Relations that are seen on paper: ranks of values whose sums are written out, constant parts, values at numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from flint import fmpq, fmpq_mat, fmpz_mat

from attngeom.limits.recheck import CHANGE_TERMS
from attngeom.verification.atoms import ONE, AtomTable, Polynomial, Value, add_to, multiply
from attngeom.verification.reading import require


def written_rank(table: AtomTable, values: Sequence[Value], constants: bool = False) -> int:
    """The rank over Q of values modulo functions of the weights, or modulo constants, as it is seen when sums are
    written out.

    It is at least the rank of the functions, which is at least that of their values mod a prime.
    """
    kinds = ("input", "pattern", "weight") if constants else ("input", "pattern")
    reached, rows = _reached(table, kinds), []
    for number, monomial in values:
        terms = _write_out(table, {monomial: number} if number else {})
        rows.append({m: c for m, c in terms.items() if c and any(reached[a] for a, _ in m)})
    return _sparse_rank(rows)


def _sparse_rank(rows: Sequence[Polynomial]) -> int:
    """The rank of rows with few entries each: one with a column of its own adds one to that of the others."""
    uses: dict[Any, set[int]] = {}
    for k, row in enumerate(rows):
        for m in row:
            uses.setdefault(m, set()).add(k)
    left, alone = set(range(len(rows))), [m for m, own in uses.items() if len(own) == 1]
    while alone:
        for k in uses[alone.pop()] & left:
            left.remove(k)
            for m in rows[k]:
                uses[m].discard(k)
                if len(uses[m]) == 1:
                    alone.append(m)
    columns = {m: k for k, m in enumerate(m for m, own in uses.items() if own)}
    matrix = fmpq_mat(len(left), len(columns))
    for i, k in enumerate(sorted(left)):
        for m, number in rows[k].items():
            matrix[i, columns[m]] = number
    return len(rows) - len(left) + int(matrix.rank())


def constant_part(table: AtomTable, value: Value) -> Polynomial:
    """The terms of a value, written out, that neither weights nor inputs reach."""
    reached, (number, monomial) = _reached(table, ("input", "pattern", "weight")), value
    terms = _write_out(table, {monomial: number} if number else {})
    return {m: c for m, c in terms.items() if not any(reached[a] for a, _ in m)}


def _reached(table: AtomTable, kinds: Sequence[str]) -> list[bool]:
    """For each atom whether it rests on one of these kinds."""
    flags: list[bool] = []
    for atom in table.atoms:
        parts = [*(atom.definition or ()), *([atom.argument[1]] if atom.argument else [])]
        flags.append(atom.kind in kinds or any(flags[a] for m in parts for a, _ in m))
    return flags


def check_numbers(function: str, values: Sequence[Value]) -> None:
    """Unproven unless these arguments, each one once, are rational numbers whose logarithms are independent over Q, or
    whose squares differ; by Schanuel's conjecture there are no other relations.

    >>> check_numbers("log", [(fmpq(2), ONE), (fmpq(3, 4), ONE)])
    >>> check_numbers("log", [(fmpq(2), ONE), (fmpq(1, 8), ONE)])
    Traceback (most recent call last):
    ...
    attngeom.verification.reading.Unproven: logarithms of numbers are related
    """
    are_known = function in ("log", "gauss") and all(not m for _, m in values)
    require(are_known, f"values of {function} of numbers are not known to be free")
    numbers = [number for number, _ in values]
    if function == "gauss":
        require(len({0, *(x * x for x in numbers)}) > len(numbers), "the sum of two values of Φ of numbers is 1")
        return
    require(min(numbers) > 0, "a logarithm of a number that is not positive")
    base, left = list[int](), [abs(int(part)) for x in numbers for part in (x.p, x.q)]
    while left:
        n = left.pop()
        other = next((b for b in base if gcd(n, b) > 1), None)
        if other is not None:
            base.remove(other)
            left += [n // gcd(n, other), other // gcd(n, other), gcd(n, other)]
        elif n > 1:
            base.append(n)
    exponents = [[_exponent(int(x.p), b) - _exponent(int(x.q), b) for b in base] for x in numbers]
    is_free = base and fmpq_mat(fmpz_mat(exponents)).rank() == len(numbers)
    require(bool(is_free), "logarithms of numbers are related")


def _exponent(n: int, b: int) -> int:
    """How often b divides n."""
    return 0 if n % b else 1 + _exponent(n // b, b)


def _write_out(table: AtomTable, terms: Polynomial) -> Polynomial:
    """The same polynomial with sums written out, the last first, as long as it stays short."""
    while True:
        whole = max((a for m in terms for a, e in m if e > 1 and table.atoms[a].definition), default=None)
        if whole is None:
            return terms
        result: Polynomial = {}
        for m, number in terms.items():
            is_there = dict(m).get(whole, 0) > 1
            rest = multiply(m, ((whole, -2),)) if is_there else m
            for n, c in ((table.atoms[whole].definition or {}) if is_there else {ONE: fmpq(1)}).items():
                add_to(result, multiply(rest, n), number * c)
        if len(result) > CHANGE_TERMS:
            return terms
        terms = result
