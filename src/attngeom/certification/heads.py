"""Decide whether a layer of H heads of bounded ranks computes given coefficients, with a certificate.

docs/theorems/heads.md: flattening minors refute at once; where the flattenings have full rank every sum of H heads is
a direct sum, and the commutant decides, except over number fields; heads that are conjugate over Q(√D), D > 0, are
found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.certification.refutation import Violation, find_violation, nonzero_minor
from attngeom.certification.results import Decision, LayerVerdict
from attngeom.errors import InputError, check_positive
from attngeom.exact import lapack
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.multisets import pair_orbits, pairs
from attngeom.exact.numbers import WORD_PRIME
from attngeom.heads.pencil import Endomorphism, check_exact_size, trace_form
from attngeom.heads.results import FoundHead
from attngeom.heads.summands import Decomposition, decompose
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.splitting import LayerMatrices, LayerSplitting
from attngeom.limits.sizes import CLAIM_SIZE
from attngeom.network.symmetry.element import matrix_to_json


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadsCertification(Decision):
    """Whether Σ_h V_h X Xᵀ A_h X with ``heads`` real heads, rank A_h ≤ ``attention``, rank V_h ≤ ``value``, fits.

    "realizable": ``blocks`` hold heads that add up to the coefficients. "not_realizable": ``witness`` holds a violated
    linear relation, a flattening minor, or the commutant with an argument. "undecided": ``reason`` says why.
    """

    heads: int
    attention: int
    value: int
    blocks: tuple[FoundHead, ...] = ()
    kind = "heads"
    bounds = ("heads", "attention", "value")
    primes = (WORD_PRIME,)

    def evidence(self) -> dict[str, Any]:
        if self.verdict != "realizable":
            return dict(self.witness)
        return {"heads": [{"field": x.domain.written} | LayerMatrices.to_json(x) for x in self.blocks]}

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            **self.select("verdict", "standing", "reason"),
            "exact": self.is_exact,
            **self.select("heads", "attention", "value"),
        }
        if self.verdict == "realizable":
            record["weights"] = [block.to_json() for block in self.blocks]
        if self.witness:
            record["witness"] = dict(self.witness)
        return record

    def rows(self) -> Mapping[str, Any]:
        lines: dict[str, Any] = {"verdict": self.verdict, "reason": self.reason}
        if self.blocks:
            lines["heads"] = ", ".join(f"rank A = {block.a}, rank V = {block.v}" for block in self.blocks)
        return lines


def certify_heads(
    coefficients: Coefficients,
    attention: int | None,
    heads: int,
    value: int | None,
    violated: Violation | None,
    seed: int = 0,
) -> HeadsCertification:
    """The decision for coefficients over Q, t ≥ 2; ``violated`` is a linear relation that fails, if one does.

    >>> from attngeom.certification import certify
    >>> from attngeom.layer.coefficients import coefficients
    >>> from attngeom.network import Architecture, random_weights
    >>> c = coefficients(random_weights(Architecture((4, 4), 2, tokens=2, heads=2), QQ, seed=0))
    >>> certify(c, 2, heads=2, value=2).verdict, certify(c, 1, heads=2, value=2).verdict
    ('realizable', 'not_realizable')
    """
    for name, number in (("heads", heads), ("value", value)):
        if number is None:
            continue
        check_positive(name, number)
        if number > CLAIM_SIZE:
            raise InputError(f"{name} = {str(number)[:40]} given; at most {CLAIM_SIZE:,} is supported")
    d, d_out = coefficients.d, coefficients.d_out
    question = _HeadsQuestion(
        coefficients,
        heads,
        d if attention is None else min(attention, d),
        min(d, d_out) if value is None else min(value, d, d_out),
        seed,
    )
    if violated is not None:
        witness = {"violated": violated.evidence}
        reason = f"the linear relation {violated.family} ({violated.label}) has value {violated.value}, not 0"
        return question.answer("not_realizable", reason, witness=witness)
    if coefficients.t == 1:
        return question.answer("undecided", "one token: sums of heads are decided for t ≥ 2")
    check_exact_size(d, d_out)
    table = coefficients.table
    if QQ.is_zero(table):
        return question.answer("realizable", "the zero function, which no heads compute")
    return question.refute_by_minor(table) or question.decide(table)


@dataclass(frozen=True, eq=False)
class _HeadsQuestion:
    coefficients: Coefficients
    heads: int
    attention: int
    value: int
    seed: int

    def answer(self, verdict: LayerVerdict, reason: str, **found: Any) -> HeadsCertification:
        return HeadsCertification.of(verdict, reason, **vars(self), **found)

    def refute_by_minor(self, table: Array) -> HeadsCertification | None:
        """A minor of size H v + 1 or H a + 1 of a flattening, if one is not zero."""
        for side, bound, slices in (
            ("output", self.heads * self.value, table),
            ("target", self.heads * self.attention, np.swapaxes(table, 0, 1)),
        ):
            if bound >= len(slices):
                continue
            flat = slices.reshape(len(slices), -1)
            minor_places = nonzero_minor(GF(WORD_PRIME).convert(flat).T, bound + 1, WORD_PRIME)
            if minor_places is None:
                continue
            columns, rows = map(list, minor_places)
            value = QQ.det(flat[np.ix_(rows, columns)])
            S = table.shape[2]
            places = [[column // S, *pairs(self.coefficients.d)[column % S]] for column in columns]
            minor = {"side": side, "rows": rows, "columns": places, "value": str(value)}
            reason = f"the flattening of the {side}s has a minor of size {bound + 1} that is not 0; heads allow {bound}"
            return self.answer("not_realizable", reason, witness={"minor": minor})
        return None

    def decide(self, table: Array) -> HeadsCertification:
        decomposition = decompose(table, self.seed)
        if decomposition is None:
            return self.answer("undecided", "the numbers of the commutant are too long for an exact decision")
        real: list[LayerSplitting] = []
        solved = True
        for number in range(len(decomposition.summands)):
            heads = decomposition.real_heads(number)
            real += heads or ()
            solved &= heads is not None
        fits = all(split.rank_A <= self.attention and split.rank_V <= self.value for split in real)
        if solved and fits and len(real) <= self.heads:
            reason = f"{len(real)} head{'s' * (len(real) > 1)} within the ranks add up to the coefficients"
            return self.answer("realizable", reason, blocks=tuple(map(FoundHead.of, real)))
        if decomposition.pencil.shape != (self.heads * self.value, self.heads * self.attention):
            n, m = decomposition.pencil.shape
            reason = (
                f"the flattening ranks {n} and {m} are below H·v = {self.heads * self.value} or H·a ="
                f" {self.heads * self.attention}: sums that are not direct are not decided"
            )
            return self.answer("undecided", reason)
        return self._refute_direct_sum(decomposition)

    def _refute_direct_sum(self, decomposition: Decomposition) -> HeadsCertification:
        """Every sum of H heads would be direct: count the summands, look for real ones, look at each of them."""
        form = trace_form(decomposition.basis)
        rank = QQ.rank(form)
        if rank < self.heads:
            reason = f"the trace form of the commutant has rank {rank}, so there are at most {rank} summands"
            return self._refuted(decomposition, reason, {"count": rank})
        for number, (summand, split) in enumerate(zip(decomposition.summands, decomposition.splittings), start=1):
            if summand.kind not in ("brick", "local"):
                continue
            idempotent = QQ.matmul(summand.E, summand.E_inverse), QQ.matmul(summand.F, summand.F_inverse)
            argument: dict[str, Any] = {"idempotent": _pair(idempotent), "violated": None}
            if summand.sizes != (self.value, self.attention):
                reason = f"summand {number} is indecomposable with widths (v, a) = {summand.sizes}"
                return self._refuted(decomposition, reason, argument)
            if split.status == "none":
                violated = self._violation(decomposition.pencil.C, idempotent[0])
                argument["violated"] = violated.evidence
                reason = (
                    f"summand {number} is indecomposable and no head: {violated.family} has value {violated.value[:60]}"
                )
                return self._refuted(decomposition, reason, argument)
        if rank == self.heads:
            element = _negative_element(form)
            if element is not None:
                reason = "an element x of the commutant has tr(x²) < 0: the heads are not all real"
                return self._refuted(decomposition, reason, {"negative": [str(x) for x in element]})
        if any(summand.kind == "field" for summand in decomposition.summands):
            reason = "summands are closed under conjugation only: such heads are decided over Q(√D) alone"
            return self.answer("undecided", reason)
        if any(split.status == "complex" for split in decomposition.splittings):
            return self.answer(
                "undecided", "the linear factors of a head are conjugate; this is not certified for heads"
            )
        return self.answer("undecided", "a summand was not split further")

    def _violation(self, C: Array, X: Array) -> Violation:
        """An equation of single layers that the summand X C violates, with its targets first."""
        n, m, S = C.shape
        d = self.coefficients.d
        y = QQ.zeros((n, S, d))
        y[:, :, :m] = np.swapaxes(QQ.matmul(X, C.reshape(n, m * S)).reshape(n, m, S), 1, 2)
        return find_violation(y / pair_orbits(d)[:, None], d, self.attention, np.random.default_rng(self.seed))

    def _refuted(self, decomposition: Decomposition, reason: str, argument: Mapping[str, Any]) -> HeadsCertification:
        commutant = {
            "rows": list(decomposition.pencil.rows),
            "columns": list(decomposition.pencil.columns),
            "basis": [_pair(pair) for pair in decomposition.basis],
            "argument": dict(argument),
        }
        return self.answer("not_realizable", reason, witness={"commutant": commutant})


def _pair(pair: Endomorphism) -> dict[str, list[list[str]]]:
    return {name: matrix_to_json(matrix, QQ) for name, matrix in zip("XY", pair)}


def _negative_element(form: Array) -> Array | None:
    """Coefficients x with xᵀ form x < 0: an eigenvector in floats, rounded and checked."""
    sizes = np.array([[float(x) for x in row] for row in form])
    values, vectors = lapack.eigh(sizes / np.abs(sizes).max())
    x = QQ.convert(np.rint(vectors[:, 0] * 1e6).astype(np.int64))
    return x if values[0] < 0 and QQ.matmul(x[None], QQ.matmul(form, x[:, None]))[0, 0] < 0 else None
