"""Find a violated invariant of lowest degree, without listing the families: ranks locate it, then few members remain.

All searching is done mod p; the value of what is found is computed over Q. Locations are random, so a miss is possible
mod one prime; a refutation never is wrong, because its value is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from attngeom.equations.families.cross_rows import SegreQuadrics
from attngeom.equations.families.lines import restrict, resultant_values, separating_line
from attngeom.equations.families.pluecker import target_squares
from attngeom.equations.families.slices import pencil_values
from attngeom.equations.minors import submatrix_minors
from attngeom.equations.variety import Points, Variety
from attngeom.errors import InputError
from attngeom.exact.domains import GF, QQ, Array, PrimeField
from attngeom.exact.modular import echelon_mod_p
from attngeom.exact.multisets import multiset_at, pair_index, pair_rows, pairs, triples
from attngeom.exact.numbers import WORD_PRIME, primes_from
from attngeom.exact.partitions import schur_dimension, two_row_tableau
from attngeom.limits.trials import REFUTATION_PRIMES


@dataclass(frozen=True)
class Violation:
    """A named invariant with the data that define it, and its exact nonzero value."""

    family: str
    label: str
    degree: int
    data: dict[str, Any]
    value: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def evidence(self) -> dict[str, Any]:
        """What certificates hold: all but the label, which is made for readers."""
        return {key: value for key, value in self.to_json().items() if key != "label"}


@dataclass(frozen=True, eq=False)
class Table:
    """Scaled cross coordinates y of shape (d_out, D, d) over Q, with their residues mod p, and a bound for rank A."""

    exact: Array
    residues: Array
    field: PrimeField
    d: int
    attention: int

    def slices(self) -> Iterator[tuple[dict[str, Any], Array, Array]]:
        """Every output row over targets, then every target over output rows: (place, exact, residues), D×number."""
        for i in range(self.exact.shape[0]):
            yield {"side": "row", "index": i}, self.exact[i], self.residues[i]
        if self.exact.shape[0] > 1:
            for m in range(self.d):
                yield {"side": "target", "index": m}, self.exact[:, :, m].T, self.residues[:, :, m].T


def find_violation(y: Array, d: int, attention: int | None, rng: np.random.Generator) -> Violation:
    """A violated invariant of lowest degree among families 5, 6, 9, 11 and 12, for a table that no layer has.

    ``y`` holds scaled cross coordinates, shape (d_out, D, d), over Q. Families 5 and 9 (for every output row and, by
    symmetry of the two factors, every target) with 11 cut out the products α_m ν_n, and 6 bounds the rank of A; 12
    gives the cubics that 5 lacks. So one of them is violated.
    """
    a = d if attention is None else attention
    primes = primes_from(WORD_PRIME)
    for _ in range(REFUTATION_PRIMES):
        field = GF(next(primes))
        try:
            table = Table(y, field.convert(y), field, d, a)
        except InputError:
            continue  # A denominator is divisible by this prime.
        for degree in range(2, max(4, a + 1) + 1):
            searches = [_find_rank] if degree == a + 1 <= d else []
            for search in [*searches, *SEARCHES.get(degree, ())]:
                violation = search(table, rng)
                if violation is not None:
                    return violation
    raise ArithmeticError("no violated invariant was located; this is a defect of the search")


def nonzero_minor(matrix: Array, size: int, p: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Rows and columns, increasing, of a nonzero minor of this size mod p."""
    columns = echelon_mod_p(matrix, p).columns[:size]
    if len(columns) < size:
        return None
    return echelon_mod_p(matrix[:, list(columns)], p).rows[:size], columns


def _find_rank(table: Table, rng: np.random.Generator) -> Violation | None:
    a = table.attention
    for i, flattening in enumerate(table.residues):
        minor = nonzero_minor(flattening, a + 1, table.field.p)
        if minor is not None:
            S, L = minor
            value = submatrix_minors(table.exact[i], np.array([S]), np.array([L]), QQ)[0]
            chosen = [list(pairs(table.d)[s]) for s in S]
            label = f"row={i} S=({', '.join(str(tuple(s)) for s in chosen)}) L={L}"
            data = {"row": i, "pairs": chosen, "targets": list(L)}
            return Violation("attention-rank", label, a + 1, data, str(value))
    return None


def _find_segre(table: Table, rng: np.random.Generator) -> Violation | None:
    d, field = table.d, table.field
    if table.exact.shape[0] < 2 or d < 2:
        return None
    z = field.random((d,), rng)
    k, l = pair_rows(d)
    weights = field.reduce(field.reduce(z[k] * z[l]) * np.where(k == l, 1, 2))
    values = field.matmul(weights[None, None, :], table.residues)[:, 0, :]
    minor = nonzero_minor(values, 2, field.p)
    if minor is None:
        return None
    (n, s), (m, r) = minor
    variety = Variety(d, d, d_out=2, targets=2)
    family = SegreQuadrics(variety)
    block = np.ix_([n, s], range(len(k)), [m, r])
    residues = family.evaluate(Points(None, table.residues[block][:, None, None], field))
    index = int(np.flatnonzero(residues)[0])
    exact = family.evaluate(Points(None, table.exact[block][:, None, None], QQ), index, index + 1)
    W = multiset_at(d, 4, index)
    label = f"rows={(n, s)} targets={(m, r)} W={W}"
    return Violation("segre-quadric", label, 2, {"rows": [n, s], "targets": [m, r], "W": list(W)}, str(exact[0]))


def _find_pencil(table: Table, rng: np.random.Generator) -> Violation | None:
    d, field = table.d, table.field
    for place, exact, residues in table.slices():
        number = residues.shape[1]
        mixed = field.matmul(residues, field.random((number, 1), rng))[:, 0][pair_index(d)]
        minor = nonzero_minor(mixed, 3, field.p)
        if minor is None:
            continue
        I, J = (np.array([x]) for x in minor)
        K = np.array(triples(number))
        values = pencil_values(residues, np.repeat(I, len(K), 0), np.repeat(J, len(K), 0), K, d, field)
        index = int(np.flatnonzero(values)[0])
        value = pencil_values(exact, I, J, K[index : index + 1], d, QQ)[0]
        data = {"slice": place, "I": list(minor[0]), "J": list(minor[1]), "K": K[index].tolist()}
        label = f"{place['side']}={place['index']} I={minor[0]} J={minor[1]} K={tuple(K[index].tolist())}"
        return Violation("slice-pencil", label, 3, data, str(value))
    return None


def _find_restriction(table: Table, rng: np.random.Generator) -> Violation | None:
    d, field = table.d, table.field
    for place, exact, residues in table.slices():
        if residues.shape[1] < 3:
            continue
        binary = restrict(residues, field.random((1, 2, d), rng).astype(object), field)[0]
        minor = nonzero_minor(binary, 3, field.p)
        if minor is None:
            continue
        L = minor[1]

        def minors(lines: Array, y: Array = residues, columns: tuple[int, ...] = L, domain: Any = field) -> Array:
            b = restrict(y[:, list(columns)], lines, domain)
            return submatrix_minors(b, np.arange(3)[None], np.arange(3)[None], domain)[..., 0]

        line = _first_line(minors, 3, d, field, rng)
        value = minors(line[None], exact, L, QQ)[0]
        p, r = line.tolist()
        data = {"slice": place, "line": [p, r], "targets": list(L)}
        label = f"{place['side']}={place['index']} p={tuple(p)} r={tuple(r)} L={L}"
        return Violation("binary-restriction", label, 3, data, str(value))
    return None


def _first_line(
    nonzero: Callable[[Array], Array], columns: int, d: int, field: PrimeField, rng: np.random.Generator
) -> Array:
    """The first separating line on which a form that is nonzero on a general line is nonzero.

    Indices are dropped while the form stays nonzero on general lines without them; at most 2·columns remain.
    """
    support = list(range(d))
    for index in range(d):
        smaller = [k for k in support if k != index]
        if len(smaller) < 2:
            break
        line: Array = np.zeros((1, 2, d), dtype=object)
        line[:, :, smaller] = field.random((1, 2, len(smaller)), rng).astype(object)
        if np.any(nonzero(line)):
            support = smaller
    total = schur_dimension((columns, columns), len(support))
    for start in range(0, total, 256):
        lines: Array = np.zeros((min(256, total - start), 2, d), dtype=np.int64)
        for offset in range(len(lines)):
            tableau = two_row_tableau(len(support), columns, start + offset)
            lines[offset][:, support] = separating_line(tableau, len(support))
        values = nonzero(lines)
        hits = np.flatnonzero(values.reshape(len(lines), -1).any(axis=1))
        if len(hits):
            first: Array = lines[hits[0]]
            return first
    raise ArithmeticError("separating lines missed a nonzero form; this is a defect")


def _find_resultant(table: Table, rng: np.random.Generator) -> Violation | None:
    d, field = table.d, table.field
    for place, exact, residues in table.slices():
        number = residues.shape[1]
        if number < 2 or d < 2:
            continue

        def general(targets: list[int], y: Array = residues) -> bool:
            """Whether the resultant of two general combinations on a general line is nonzero."""
            mix = field.random((len(targets), 2), rng)
            pencil = field.matmul(y[:, targets], mix)
            line = field.random((1, 2, d), rng).astype(object)
            return bool(np.any(resultant_values(restrict(pencil, line, field), field)))

        if not general(list(range(number))):
            continue
        targets = list(range(number))
        for m in range(number):
            smaller = [x for x in targets if x != m]
            if len(smaller) >= 2 and general(smaller):
                targets = smaller

        def values(lines: Array, y: Array = residues, chosen: list[int] = targets, domain: Any = field) -> Array:
            return resultant_values(restrict(y[:, chosen], lines, domain), domain)

        line = _first_line(values, 4, d, field, rng)
        index = int(np.flatnonzero(values(line[None])[0])[0])
        value = values(line[None], exact, targets, QQ)[0, index]
        square = [[[targets[x] for x in b] for b in product] for product in target_squares(len(targets))[index]]
        p, r = line.tolist()
        data = {"slice": place, "line": [p, r], "square": square}
        text = "+".join("".join(f"({b[0]},{b[1]})" for b in product) for product in square)
        label = f"{place['side']}={place['index']} p={tuple(p)} r={tuple(r)} targets={text}"
        return Violation("sylvester-resultant", label, 4, data, str(value))
    return None


SEARCHES: dict[int, tuple[Callable[[Table, np.random.Generator], Violation | None], ...]] = {
    2: (_find_segre,),
    3: (_find_pencil, _find_restriction),
    4: (_find_resultant,),
}
"""What looks for a violated invariant of each degree, beside the rank of A."""
