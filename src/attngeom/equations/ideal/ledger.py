"""The completeness ledger: what each family of invariants contributes to the minimal generators, what none explains.

The minimal generators of degree n are Q_n = I_n / R_1 · I_{n-1}. Each module of Q_n has a copy in I_n that is
orthogonal to R_1 · I_{n-1} in the Fischer product, so a member f of a family has a nonzero image in it exactly if
some Fischer product of f with that copy is nonzero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from attngeom.equations.family import Family
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.generators import HighestWeightVector, generator_vectors, module_spaces
from attngeom.equations.ideal.limits import check
from attngeom.equations.ideal.monomials import monomial_table, repetition_factorials
from attngeom.equations.ideal.records import DegreeSummary, IdealSummary
from attngeom.equations.ideal.weight_spaces import HighestWeightEngine
from attngeom.equations.registry import families
from attngeom.equations.variety import Variety
from attngeom.exact.domains import GF, Array
from attngeom.exact.domains.polynomials import exponent_table
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.partitions import Weight, module_dimension
from attngeom.limits.memory import LEDGER_ENTRIES
from attngeom.limits.trials import LEDGER_GROUP
from attngeom.limits.work import LEDGER_MEMBERS

if TYPE_CHECKING:
    from scipy import sparse

FIRST_CROSS_FAMILY, LAST_PAPER_FAMILY = 5, 10


@dataclass(frozen=True)
class FamilyEntry:
    """One family in its degree. ``literal_rank`` is the dimension that its members span in Q_n (None: too large).

    ``modules`` are those in which some member has a nonzero image, so the members generate them under GL × GL. If not
    all members were looked at, a module that is not listed may still be hit; else, if there are none, all members lie
    in R_1 · I_{n-1}.
    """

    number: int
    name: str
    literal_rank: int | None
    modules: tuple[Weight, ...]


@dataclass(frozen=True)
class LedgerRow:
    """One degree: minimal generators, what the families explain, and the modules that none does."""

    degree: int
    minimal_generators: int
    entries: tuple[FamilyEntry, ...]
    from_paper: int
    from_families: int
    unexplained: tuple[HighestWeightVector, ...]

    @property
    def is_closed(self) -> bool:
        return self.from_families == self.minimal_generators


class Quotient:
    """The Fischer pairing with the minimal generators of one degree: from I_n to coordinates of Q_n, mod p."""

    def __init__(self, variety: Variety, vectors: Sequence[HighestWeightVector]) -> None:
        check_isolated(variety, vectors)
        self.variety = variety
        self.table = monomial_table(variety)
        self.is_diagonal = np.array([c.label[-2][0] == c.label[-2][1] for c in coordinates(variety).all])
        keys, columns, values, owners = [], [], [], []
        size = 0
        for number, space in module_spaces(variety, vectors, whole=True):
            norms = self._norms(space.factors)
            codes = self.table.encode(space.factors)
            row, place = np.nonzero(space.coefficients)
            keys.append(codes[place])
            columns.append(size + row)
            values.append(space.coefficients[row, place] * norms[place])
            owners += [number] * len(space.coefficients)
            size += len(space.coefficients)
        from scipy import sparse  # slow to load, and few commands need it

        self.owners = np.array(owners, dtype=np.int64)
        self.keys, index = np.unique(np.concatenate(keys), return_inverse=True)
        entries = (np.concatenate(values), (index, np.concatenate(columns)))
        self.matrix = sparse.csr_matrix(entries, shape=(len(self.keys), size))

    def _norms(self, factors: Array) -> Array:
        """2^n times the Fischer norms of monomials in scaled coordinates: y_ii has norm 1, y_ij norm 1/2."""
        return np.asarray(2 ** self.is_diagonal[factors].sum(axis=1) * repetition_factorials(factors))

    def images(self, family: Family, members: Sequence[int]) -> sparse.csr_matrix:
        """The images of members of a family in Q_n: members × dim Q_n, mod p."""
        from scipy import sparse

        position = {name: i for i, name in enumerate(coordinates(self.variety).names)}
        rows, codes, values = [], [], []
        for row, member in enumerate(members):
            f = family.flint_polynomial(member)
            powers = exponent_table(f)
            term, variable = np.nonzero(powers)
            factors = np.array([position[name] for name in f.context().names()])[variable]
            codes.append(np.repeat(factors, powers[term, variable]).reshape(len(powers), family.degree))
            rows += [row] * len(powers)
            values += GF(WORD_PRIME).convert(np.array(f.coeffs(), dtype=object)).tolist()
        if not rows:
            return sparse.csr_matrix((len(members), self.matrix.shape[1]), dtype=np.int64)
        keys = self.table.encode(np.sort(np.concatenate(codes), axis=1))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        seen = self.keys[place] == keys
        entries = (np.array(values)[seen], (np.array(rows)[seen], place[seen]))
        polynomials = sparse.csr_matrix(entries, shape=(len(members), len(self.keys)))
        # 16-bit halves: coefficients, norms and many terms together would not fit into 64 bits.
        upper, lower = polynomials.copy(), polynomials
        upper.data, lower.data = polynomials.data >> 16, polynomials.data & 0xFFFF
        high, low = upper @ self.matrix, lower @ self.matrix
        high.data %= WORD_PRIME
        product = high * 65536 + low
        product.data %= WORD_PRIME
        product.eliminate_zeros()
        return product

    def hit_modules(self, images: sparse.csr_matrix) -> list[int]:
        """The numbers of the modules in which some row is nonzero."""
        return sorted(set(self.owners[np.unique(images.indices)].tolist()))


def choose_members(family: Family, most: int) -> list[int]:
    """All members, or ``most`` of them spread evenly."""
    count = family.count
    return list(range(count)) if count <= most else [i * count // most for i in range(most)]


def cross_families(variety: Variety, degree: int) -> list[Family]:
    """The families of one degree on cross-column coordinates."""
    return [f for f in families(variety) if f.degree == degree and f.number >= FIRST_CROSS_FAMILY]


def ledger_row(
    variety: Variety,
    summary: DegreeSummary,
    vectors: Sequence[HighestWeightVector],
    max_members: int = LEDGER_MEMBERS,
) -> LedgerRow:
    """The ledger of one degree; ``vectors`` are the highest weight vectors of its minimal generators."""
    entries = []
    explained: dict[bool, set[int]] = {True: set(), False: set()}
    quotient = Quotient(variety, vectors) if vectors else None
    for family in cross_families(variety, summary.degree):
        members = choose_members(family, max_members)
        rank: int | None = 0
        hit: list[int] = []
        if quotient is not None:
            images = quotient.images(family, members)
            hit = quotient.hit_modules(images)
            is_small = len(members) == family.count and images.shape[0] * images.shape[1] <= LEDGER_ENTRIES
            rank = (rank_mod_p(images.toarray(), WORD_PRIME) if hit else 0) if is_small else None
        entries.append(FamilyEntry(family.number, family.name, rank, tuple(vectors[i].shapes for i in hit)))
        explained[family.number <= LAST_PAPER_FAMILY].update(hit)
    sizes = [module_dimension(v.shapes, variety.groups) for v in vectors]
    everything = explained[True] | explained[False]
    return LedgerRow(
        degree=summary.degree,
        minimal_generators=summary.minimal_generators,
        entries=tuple(entries),
        from_paper=sum(sizes[i] for i in explained[True]),
        from_families=sum(sizes[i] for i in everything),
        unexplained=tuple(v for i, v in enumerate(vectors) if i not in everything),
    )


def ledger(variety: Variety, summary: IdealSummary, max_members: int = LEDGER_MEMBERS) -> list[LedgerRow]:
    """The ledger of all degrees of a run, for one output row and one head.

    >>> from attngeom.equations.ideal import implicitize
    >>> rows = ledger(Variety(3, 3), implicitize(Variety(3, 3), 3))
    >>> rows[-1].is_closed, [entry.name for entry in rows[-1].entries if not entry.modules]
    (True, [])
    """
    vectors = summary.vectors
    if vectors is None:
        vectors = tuple(generator_vectors(variety, summary.degrees, seed=summary.seed or 0))
    return [
        ledger_row(variety, degree, [v for v in vectors if v.degree == degree.degree], max_members)
        for degree in summary.degrees
    ]


def unexplained(
    variety: Variety, vectors: Sequence[HighestWeightVector], max_members: int
) -> list[HighestWeightVector]:
    """The vectors of one degree in whose modules no examined member of a family has a nonzero image.

    Members are asked a few at a time, until no module is left or all ``max_members`` of each family were asked.
    """
    if not vectors:
        return []
    quotient = Quotient(variety, vectors)
    left = set(range(len(vectors)))
    for family in cross_families(variety, vectors[0].degree):
        members = choose_members(family, max_members)
        for start in range(0, len(members), LEDGER_GROUP):
            if not left:
                return []
            left -= set(quotient.hit_modules(quotient.images(family, members[start : start + LEDGER_GROUP])))
    return [vector for place, vector in enumerate(vectors) if place in left]


def check_isolated(variety: Variety, vectors: Sequence[HighestWeightVector]) -> None:
    """Each module of minimal generators must be its isotypic part of I_n: then it is orthogonal to R_1 · I_{n-1}."""
    for vector in vectors:
        lam, mu = vector.shapes
        engine = HighestWeightEngine(len(lam), len(mu))
        if len(engine.ideal(lam, mu, variety.a)) != sum(v.shapes == vector.shapes for v in vectors):
            raise ArithmeticError(f"S_{lam} ⊗ S_{mu} also occurs among products; the ledger cannot tell them apart")


def with_families(
    variety: Variety,
    degrees: Sequence[DegreeSummary],
    vectors: Sequence[HighestWeightVector],
    max_members: int = 48,
) -> tuple[DegreeSummary, ...]:
    """The degrees with the number of minimal generators in modules that the families reach.

    A few members of each family are enough to find its modules, and as many directions as the degree: modules of degree
    n have at most n rows.

    >>> from attngeom.equations.ideal import Run
    >>> variety = Variety(3, 3)
    >>> degrees = Run(variety, 3).degrees()
    >>> with_families(variety, degrees, generator_vectors(variety, degrees))[-1].from_families
    20
    """
    summaries = []
    for degree in degrees:
        check()
        own = [v for v in vectors if v.degree == degree.degree]
        left = unexplained(variety.restrict((degree.degree, degree.degree)), own, max_members)
        shapes = {vector.shapes for vector in left}
        missing = sum(m.dimension for m in degree.modules if m.shapes in shapes)
        texts = tuple((vector.shapes, vector.to_text()) for vector in left)
        summaries.append(replace(degree, from_families=degree.minimal_generators - missing, unexplained=texts))
    return tuple(summaries)
