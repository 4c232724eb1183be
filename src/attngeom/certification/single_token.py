"""One token: the layer is Vx · (xᵀ A x), so each row of coefficients is a linear form times one quadratic form."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from attngeom.certification.refutation import Violation
from attngeom.certification.results import Certification, LayerQuestion
from attngeom.equations.families.slices import lie_matrix
from attngeom.exact.domains import QQ, Array, CubicField
from attngeom.exact.modular import echelon_mod_p
from attngeom.exact.multisets import pair_orbits, pair_rows
from attngeom.exact.numbers import BIG_PRIME
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.cubic_splitting import (
    Splitting,
    contract,
    cubic_tensors,
    inertia,
    quartic_multiples,
    residues,
    split_independent,
    split_multiples,
)
from attngeom.layer.splitting import LayerMatrices, split_layer
from attngeom.limits.trials import SPLITTING_LINES
from attngeom.network.symmetry.element import matrix_to_json


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
