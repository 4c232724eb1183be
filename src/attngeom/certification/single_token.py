"""One token: the layer is Vx · (xᵀ A x), so each row of coefficients is a linear form times one quadratic form.

Cubics as products of a linear and a quadratic form, over Q and over the field of one root.

A cubic is a symmetric tensor y with F(x) = y(x, x, x). A linear factor is found on a line: at a root θ of F(r + θu) the
derivative of F is proportional to it. If that polynomial is irreducible over Q the factor lives in Q(θ).

Cubics as products of a linear and a quadratic form, over Q and over the field of one root.

A cubic is a symmetric tensor y with F(x) = y(x, x, x). A linear factor is found on a line: at a root θ of F(r + θu) the
derivative of F is proportional to it. If that polynomial is irreducible over Q the factor lives in Q(θ).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from flint import fmpq, fmpq_poly, nmod_mat

from attngeom.certification.refutation import Violation
from attngeom.certification.results import Certification, LayerQuestion
from attngeom.equations.families.slices import lie_matrix
from attngeom.errors import SizeError
from attngeom.exact.arrays import from_flint
from attngeom.exact.domains import QQ, Array, CubicField, CubicNumber, Domain
from attngeom.exact.modular import echelon_mod_p
from attngeom.exact.multisets import pair_orbits, pair_rows, triple_orbits, triple_places, triples
from attngeom.exact.numbers import BIG_PRIME
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.splitting import LayerMatrices, split_layer
from attngeom.limits.memory import CUBIC_TABLE
from attngeom.limits.trials import SPLITTING_LINES
from attngeom.network.symmetry.element import matrix_to_json


@dataclass(frozen=True, eq=False)
class Splitting:
    """F_n(x) = ν_n(x) · xᵀ B x: rows ν_n of V (d_out×d) and symmetric B over Q, or over the field of a cubic."""

    V: Array
    B: Array
    domain: Domain = QQ


def cubic_tensors(coefficients: Coefficients) -> Array:
    """The symmetric tensors y of shape (d_out, d, d, d)."""
    d, entries = coefficients.d, coefficients.d_out * coefficients.d**3
    if entries > CUBIC_TABLE // 10:
        raise SizeError(f"one token, d = {d}: tensors of {entries:,} entries are needed; at most {CUBIC_TABLE // 10:,}")
    scaled = coefficients.single[:, 0] / triple_orbits(d)
    k, l, m = np.sort(np.indices((d, d, d)), axis=0)
    return scaled[:, triple_places(k, l, m, d)]


def contract(tensor: Array, *vectors: Array) -> Any:
    """y(·, …, vectors): the last axes contracted."""
    for vector in reversed(vectors):
        tensor = (tensor * vector).sum(axis=-1)
    return tensor


def _divide(tensor: Array, form: Array) -> tuple[Array, Array] | None:
    """The form with first nonzero coefficient 1, and the symmetric B with y = sym(form ⊗ B); None if there is none.

    With form(e) = 1: B(e,e) = y(e,e,e), 2B(e,c) = 3y(e,e,c) − form(c)B(e,e), B(b,c) = 3y(e,b,c) − form(b)B(e,c) −
    form(c)B(e,b).
    """
    pivot = next((k for k, x in enumerate(form) if x != 0), None)
    if pivot is None:
        return None
    form = form / form[pivot]
    first = (tensor[pivot, pivot] * 3 - form * tensor[pivot, pivot, pivot]) / 2
    first[pivot] = tensor[pivot, pivot, pivot] * fmpq(1)
    B = tensor[pivot] * 3 - form[:, None] * first - first[:, None] * form
    B[pivot], B[:, pivot] = first, first
    product = form[:, None, None] * B + form[:, None] * B[:, None, :] + form * B[:, :, None]
    return (form, B) if np.all(product == tensor * 3) else None


def _line_polynomial(tensor: Array, r: Array, u: Array) -> fmpq_poly:
    """F(r + s u) as a polynomial in s."""
    return fmpq_poly([comb(3, k) * contract(tensor, *[u] * k, *[r] * (3 - k)) for k in range(4)])


def split_multiples(tensors: Array, matrix: Array, rng: np.random.Generator) -> Splitting | None:
    """The splitting when all rows are multiples h_n of one cubic; None if it has no linear factor over C."""
    n = next(i for i, row in enumerate(matrix) if not QQ.is_zero(row))
    tensor, d = tensors[n], tensors.shape[-1]
    pivot = next(k for k, x in enumerate(matrix[n]) if x != 0)
    h = matrix[:, pivot] / matrix[n, pivot]
    for attempt in range(SPLITTING_LINES):
        spread = 3 + attempt
        r, u = QQ.convert(rng.integers(-spread, spread + 1, (2, d)))
        g = _line_polynomial(tensor, r, u)
        if g.degree() < 3:
            continue
        _, factors = g.factor()
        for factor, multiplicity in factors:
            if factor.degree() == 1:
                p = r + u * (-factor[0] / factor[1])
                directions = [(p, p), (u, p), (u, u)][multiplicity - 1]
                splitting = _divide(tensor, contract(tensor, *directions))
                if splitting is not None:
                    return Splitting(h[:, None] * splitting[0], splitting[1])
        if len(factors) == 1 and factors[0][0].degree() == 3:
            return _split_cubic_field(tensor, r, u, factors[0][0], h)
    raise ArithmeticError(f"no line decided the factors in {SPLITTING_LINES} attempts; use another seed")


def _split_cubic_field(tensor: Array, r: Array, u: Array, g: fmpq_poly, h: Array) -> Splitting | None:
    """A cubic without rational factor on a line with irreducible g: it is a norm from Q(θ), or irreducible over C."""
    field = CubicField(tuple(g[k] / g[3] for k in range(4)))
    p = field.convert(r) + field.convert(u) * field.element(0, 1)
    lifted = field.convert(tensor)
    splitting = _divide(lifted, contract(lifted, p, p))
    if splitting is None:
        return None
    form, B = splitting
    return Splitting(np.array([[x * c for x in form] for c in h], dtype=object), B, field)


def split_independent(tensors: Array) -> Splitting | None:
    """The splitting when the rows span at least two dimensions: q is their greatest common divisor, if it is quadratic.

    ν_s F_n = ν_n F_s is linear in the forms ν; two independent rows determine them, and the others are divided.
    """
    d_out = len(tensors)
    first = next(i for i in range(d_out) if not QQ.is_zero(tensors[i]))
    second = next(
        i for i in range(first + 1, d_out) if QQ.rank(np.stack([tensors[first].ravel(), tensors[i].ravel()])) == 2
    )
    forms = _relation(tensors[first], tensors[second])
    if forms is None:
        return None
    splitting = _divide(tensors[first], forms)
    if splitting is None:
        return None
    form, B = splitting
    rows = [form if i == first else _divide_by_quadric(tensors[i], B) for i in range(d_out)]
    if any(row is None for row in rows):
        return None
    return Splitting(np.stack(rows), B)  # type: ignore[arg-type]  # no row is None


def _relation(F: Array, G: Array) -> Array | None:
    """ν with μ F = ν G for some μ, from the relations among the quartics z_k F, z_k G; None if there are none.

    The rank mod p bounds the rank from below, so "none" is exact; a relation on its pivot monomials is a candidate
    that division checks.
    """
    d = F.shape[0]
    cubics = np.stack([F, G])[:, *np.array(triples(d)).T] * triple_orbits(d)
    quartics, columns = quartic_multiples(cubics, d)
    if len(columns) == 2 * d:
        return None
    relations = QQ.nullspace(quartics.T)
    return -relations[0, d:]


def quartic_multiples(cubics: Array, d: int) -> tuple[Array, list[int]]:
    """The coefficients of z_k F_n, row (n, k), at quartic monomials that give the rank mod p, and their places.

    A row of ``cubics`` is a cubic F_n in d variables: the coefficients of its monomials, in lexicographic order.
    """
    number, words = len(cubics), comb(d + 3, 4)
    if number * d * words > CUBIC_TABLE:
        size = f"{number * d * words:,}"
        raise SizeError(f"one token, d = {d}: quartics of {size} coefficients are needed; at most {CUBIC_TABLE:,}")
    base = d ** np.arange(4)[::-1]
    quartics = np.array(list(combinations_with_replacement(range(d), 4))) @ base
    multiples = np.array([np.sort(np.insert(triples(d), 0, k, axis=1)) @ base for k in range(d)])
    places = np.searchsorted(quartics, multiples)

    def table(values: Array, zeros: Array) -> Array:
        for n, k in np.ndindex(number, d):
            zeros[n * d + k, places[k]] = values[n]
        return zeros

    modular = table(residues(cubics), np.zeros((number * d, words), dtype=np.int64))
    columns = list(echelon_mod_p(modular, BIG_PRIME).columns)
    return table(cubics, QQ.zeros((number * d, words)))[:, columns], columns


def _divide_by_quadric(tensor: Array, B: Array) -> Array | None:
    """The linear form ν with y = sym(ν ⊗ B), or None, for B ≠ 0."""
    d = B.shape[0]
    e = next(
        x
        for x in (QQ.convert([int(k in (i, j)) for k in range(d)]) for i in range(d) for j in range(i, d))
        if contract(B, x, x) != 0
    )
    square = contract(B, e, e)
    at_e = contract(tensor, e, e, e) / square
    # 3y(e,e,c) = ν(c) B(e,e) + 2 ν(e) B(e,c).
    form = (3 * contract(tensor, e, e) - 2 * at_e * contract(B, e)) / square
    product = form[:, None, None] * B + form[:, None] * B[:, None, :] + form * B[:, :, None]
    return form if np.all(product == tensor * 3) else None


def inertia(B: Array) -> tuple[int, int]:
    """The numbers of positive and negative squares of a symmetric matrix over an ordered field.

    >>> inertia(QQ.convert([[0, 1], [1, 0]]))
    (1, 1)
    """
    B = B.copy()
    positive = negative = 0
    left = list(range(B.shape[0]))
    while left:
        pivot = next((k for k in left if B[k, k] != 0), None)
        if pivot is None:
            pair = next(((k, l) for k in left for l in left if k < l and B[k, l] != 0), None)
            if pair is None:
                break
            k, l = pair
            B[k] = B[k] + B[l]
            B[:, k] = B[:, k] + B[:, l]
            pivot = k
        sign = _sign(B[pivot, pivot])
        positive, negative = positive + (sign > 0), negative + (sign < 0)
        left.remove(pivot)
        column = B[:, pivot] / B[pivot, pivot]
        B = B - column[:, None] * B[pivot]
    return positive, negative


def _sign(x: Any) -> int:
    if isinstance(x, CubicNumber):
        return x.sign()
    return int(x > 0) - int(x < 0)


def residues(matrix: Array) -> Array:
    """A rational matrix, scaled to integers, mod 2^61 − 1."""
    return from_flint(nmod_mat(QQ.clear(matrix).matrix, BIG_PRIME), int)


def certify_single_token(question: LayerQuestion) -> Certification:
    """The decision for t = 1: real weights exist iff F_n = ν_n q with q of signature (p, n), max(p, n) ≤ attention.

    A real A of rank a with symmetric part B satisfies p, n ≤ a, and pairs of a positive and a negative square are
    products of two linear forms; over C only rank B ≤ 2a is needed. If max(p, n) > 1 then q is irreducible over the
    reals, so the splitting is the only one.
    """
    coefficients, rng = question.coefficients, np.random.default_rng(question.seed)
    tensors = cubic_tensors(coefficients)
    matrix = coefficients.single[:, 0]
    size = QQ.rank(matrix)
    if size == 0:
        return question.zero()
    splitting = split_multiples(tensors, matrix, rng) if size == 1 else split_independent(tensors)
    if splitting is None:
        violated = _refute_one(tensors, matrix, rng) if size == 1 else _refute_many(coefficients, rng)
        reason = f"{violated.family} ({violated.label[:120]}) has value {violated.value[:80]}, not 0"
        return question.answer("not_realizable", reason, violated=violated)
    return _decide_rank(question, splitting)


def _decide_rank(question: LayerQuestion, splitting: Splitting) -> Certification:
    attention = question.attention
    p, n = inertia(splitting.B)
    size, needed = p + n, max(p, n)
    signature = f"the quadratic form has signature ({p}, {n})"
    if splitting.domain.degree == 1:
        if attention is None or size <= attention:
            point = LayerMatrices(splitting.B, splitting.V, QQ)
            reason = f"each row is a linear form times one quadratic form, of rank {size}"
            return question.answer("realizable", reason, rank=size, points=(point,))
        if (p, n) == (1, 1):
            point = _factored_point(splitting)
            reason = "each row is a product of three real linear forms"
            return question.answer("realizable", reason, rank=1, points=(point,))
    domain = splitting.domain
    modulus = [str(c) for c in domain.modulus] if isinstance(domain, CubicField) else None
    form = {"modulus": modulus, "V": matrix_to_json(splitting.V, domain), "B": matrix_to_json(splitting.B, domain)}
    witness = {"form": form}
    bound = size if attention is None else attention
    field = "" if domain.degree == 1 else ", over the field of a real root of the cubic in the witness"
    if needed <= bound:
        width = size if size <= bound else needed
        reason = f"{signature}{field}, so a real A of rank {width} has it as symmetric part"
        return question.answer("realizable", reason, rank=width, witness=witness)
    if size <= 2 * bound:
        reason = (
            f"{signature}{field} and is the only quadratic factor: real weights need rank {needed}, complex {bound}"
        )
        return question.answer("closure_only", reason, rank=(size + 1) // 2, witness=witness)
    reason = f"{signature} and is the only quadratic factor: even complex weights need rank {(size + 1) // 2}"
    return question.answer("not_realizable", reason, witness=witness)


def _factored_point(splitting: Splitting) -> LayerMatrices:
    """A = k vᵀ with the two real linear factors of an indefinite form of rank 2, over Q or Q(√D)."""
    d = splitting.B.shape[0]
    table = QQ.zeros((1, d, d * (d + 1) // 2))
    table[0, 0] = splitting.B[pair_rows(d)] * pair_orbits(d)
    split = split_layer(table, QQ)
    point, domain = split.points[0], split.domain
    A = domain.matmul(point.A[:, :1], point.V)
    return LayerMatrices(A, domain.convert(splitting.V), domain)


def _refute_one(tensors: Array, matrix: Array, rng: np.random.Generator) -> Violation:
    """A nonzero maximal minor of the Lie flattening on a plane: irreducible plane cubics have finite stabilizers."""
    n = next(i for i, row in enumerate(matrix) if not QQ.is_zero(row))
    d = tensors.shape[-1]
    for attempt in range(SPLITTING_LINES):
        plane = np.eye(3, d, dtype=np.int64) if attempt == 0 else rng.integers(-2 - attempt, 3 + attempt, (3, d))
        vectors = QQ.convert(plane)
        cubic = np.array([contract(tensors[n], *three) for three in combinations_with_replacement(vectors, 3)])
        places, factors = lie_matrix(3)
        lie = cubic[places] * factors
        integers = residues(lie)
        rows = echelon_mod_p(integers, BIG_PRIME).rows
        if len(rows) == 8:
            value = QQ.to_flint(lie[list(rows)]).det()
            combination = [int(i == n) for i in range(len(matrix))]
            data = {"combination": combination, "plane": plane.tolist(), "rows": list(rows)}
            label = f"row={n} plane={plane.tolist()} rows={rows}"
            return Violation("lie-plane", label, 8, data, str(value))
    raise ArithmeticError("no plane section without linear factor was found; use another seed")


def _refute_many(coefficients: Coefficients, rng: np.random.Generator) -> Violation:
    """Two combinations of rows without a common quadratic factor: the quartics z_k F, z_k G are independent."""
    d, d_out = coefficients.d, coefficients.d_out
    words = list(combinations_with_replacement(range(d), 4))
    for attempt in range(SPLITTING_LINES):
        if attempt < d_out * d_out:
            n, s = divmod(attempt, d_out)
            if n == s:
                continue
            mix = np.eye(d_out, dtype=np.int64)[[n, s]]
        else:
            mix = rng.integers(-2 - attempt, 3 + attempt, (2, d_out))
        quartics, columns = quartic_multiples(QQ.matmul(QQ.convert(mix), coefficients.single[:, 0]), d)
        if len(columns) == 2 * d:
            value = QQ.to_flint(quartics).det()
            monomials = [list(words[c]) for c in columns]
            data = {"combinations": mix.tolist(), "monomials": monomials}
            label = f"combinations={mix.tolist()} monomials={monomials}"
            return Violation("shared-quadric", label, 2 * d, data, str(value))
    raise ArithmeticError("no two combinations without a common quadratic factor were found; use another seed")
