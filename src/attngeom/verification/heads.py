"""Recheck a claim about several heads: expanded heads, a flattening minor, or the commutant of a direct sum.

Lemma 2 and the section on deciding of docs/theorems/heads.md say why each witness proves its claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.multisets import pair_index
from attngeom.exact.numbers import WORD_PRIME
from attngeom.layer.coefficients import Coefficients
from attngeom.limits.recheck import COMMUTANT_SLICES, MATRIX_PRODUCTS, PAIR_UNKNOWNS, SAMPLE_ENTRIES
from attngeom.limits.sizes import CLAIM_SIZE
from attngeom.results import Proof
from attngeom.verification.budget import afford, height
from attngeom.verification.definitions import DEFINITIONS
from attngeom.verification.expansion import expand_row
from attngeom.verification.layer import check_violated, compare_row, exact_rank, read_coefficients, read_field
from attngeom.verification.maps import determinant
from attngeom.verification.reading import (
    read_array,
    read_choice,
    read_index,
    read_indices,
    read_integer,
    read_matrix,
    read_object,
    read_rational,
    require,
    show,
)

VERDICTS = ("realizable", "not_realizable")
LINEAR = ("support", "sequence-copy", "symmetrization")

Pair = tuple[Array, Array]


@dataclass(frozen=True)
class HeadsClaim:
    """What a layer of ``heads`` heads, rank A ≤ ``attention`` and rank V ≤ ``value`` each, can compute over R."""

    verdict: str
    heads: int
    attention: int
    value: int
    coefficients: Coefficients

    @classmethod
    def from_json(cls, record: Any) -> HeadsClaim:
        """Read the claim strictly; SizeError if it is about too many coefficients."""
        claim = read_object(record, ("kind", "verdict", "heads", "attention", "value", "coefficients"), "claim")
        verdict = read_choice(claim["verdict"], VERDICTS, "verdict")
        sizes = {key: read_integer(claim[key], 1, CLAIM_SIZE, key) for key in ("heads", "attention", "value")}
        return cls(verdict, **sizes, coefficients=read_coefficients(claim["coefficients"]))

    def __str__(self) -> str:
        c = self.coefficients
        size = f"d = {c.d}, d_out = {c.d_out}, t = {c.t}"
        return (
            f"coefficients with {size} are {self.verdict} by one layer of {self.heads} heads with rank A ≤"
            f" {self.attention} and rank V ≤ {self.value}"
        )

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true; Unproven, FormatError or SizeError if the witness does not show it."""
        require(self.coefficients.t >= 2, "claims about heads need two tokens")
        if self.verdict == "realizable":
            return self._check_heads(read_object(witness, ("heads",), "witness")["heads"])
        if set(witness) == {"violated"}:
            return self._check_linear(witness["violated"])
        require(not self.coefficients.outside, "a term outside the support was left out of account")
        if set(witness) == {"minor"}:
            return self._check_minor(witness["minor"])
        if set(witness) == {"commutant"}:
            return self._check_commutant(witness["commutant"])
        given = show(sorted(map(str, witness)))
        raise FormatError(f"witness with {given} found; violated, minor or commutant is required")

    def _check_heads(self, heads: Any) -> Proof:
        """Expand every head over its field, add up, compare all coefficients; check the ranks.

        What heads over Q(√D) have at √D must add up to 0 for each D: then the sum is rational.
        """
        c = self.coefficients
        if type(heads) is not list or len(heads) > self.heads:
            raise FormatError(f"at most {self.heads} heads are required")
        require(not c.outside, "a term lies outside the support of attention")
        single, cross = QQ.zeros((c.d_out, c.single.shape[2])), QQ.zeros((c.d_out, c.cross.shape[3], c.d))
        irrational: dict[tuple[str, int, int], Array] = {}
        for head in heads:
            head = read_object(head, ("field", "A", "V"), "head")
            domain = read_field(head["field"], real=True)
            A = read_array(head["A"], (c.d, c.d), domain, "A")
            V = read_array(head["V"], (c.d_out, c.d), domain, "V")
            for name, matrix, bound in (("A", A, self.attention), ("V", V, self.value)):
                size = exact_rank(matrix, domain)
                require(size <= bound, f"{name} has rank {size}, above {bound}")
            for row in range(c.d_out):
                for place, (total, part) in enumerate(zip((single, cross), expand_row(A, V[row], domain))):
                    rational, *rest = domain.parts(part)
                    total[row] += rational
                    for x in rest:
                        key = head["field"], row, place
                        irrational[key] = irrational[key] + x if key in irrational else x
        require(all(QQ.is_zero(x) for x in irrational.values()), "the coefficients of the heads are not rational")
        for row in range(c.d_out):
            compare_row(c, row, single[row], cross[row])
        return Proof("certified", f"{len(heads)} heads within the ranks expand to all coefficients")

    def _check_linear(self, violated: Any) -> Proof:
        """A linear relation of single heads holds for their sums."""
        family = violated.get("family") if isinstance(violated, Mapping) else None
        require(family in LINEAR, "only linear relations of single heads hold for sums of heads")
        return check_violated(self.coefficients, None, violated)

    def _table(self) -> Array:
        """The table of quadrics (d_out, d, S) at target column 0 and context column 1."""
        return np.swapaxes(self.coefficients.cross[:, 0, 0], 1, 2)

    def _check_minor(self, minor: Any) -> Proof:
        """A nonzero minor of a flattening, larger than H times the bound on the ranks."""
        minor = read_object(minor, ("side", "rows", "columns", "value"), "minor")
        c, side = self.coefficients, read_choice(minor["side"], ("output", "target"), "side")
        size = self.heads * (self.value if side == "output" else self.attention) + 1
        count, others = (c.d_out, c.d) if side == "output" else (c.d, c.d_out)
        require(size <= count, "the flattening has too few rows for this minor")
        rows = read_indices(minor["rows"], size, count)
        index = pair_index(c.d)
        places = []
        for other, *pair in read_matrix(minor["columns"], size, 3, "columns [index, k, l]"):
            k, l = read_indices(pair, 2, c.d, strict=False)
            places.append((read_index(other, others), int(index[k, l])))
        table = self._table() if side == "output" else np.swapaxes(self._table(), 0, 1)
        value = determinant([[table[row, other, s] for other, s in places] for row in rows])
        require(read_rational(minor["value"]) == value, f"the value is {str(value)[:80]}")
        require(value != 0, "the minor is zero, so nothing is refuted")
        return Proof("certified", f"a minor of size {size} of the flattening has the exact value {str(value)[:80]}")

    def _check_commutant(self, record: Any) -> Proof:
        """The part of the table in some rows and columns is no direct sum of H real heads, as it would have to be."""
        keys = ("rows", "columns", "basis", "argument")
        record = read_object(record, keys, "commutant")
        c = self.coefficients
        n, m = self.heads * self.value, self.heads * self.attention
        require(n <= c.d_out and m <= c.d, "the flattenings have too few rows for a direct sum")
        afford(n * n + m * m, PAIR_UNKNOWNS, "unknowns of the commutant")
        C = self._table()[read_indices(record["rows"], n, c.d_out)][:, read_indices(record["columns"], m, c.d)]
        field = GF(WORD_PRIME)
        residues = field.convert(C)
        S = C.shape[2]
        require(rank_mod_p(residues.reshape(n, m * S), field.p) == n, "the flattening of the outputs has no full rank")
        transposed = np.swapaxes(residues, 0, 1).reshape(m, n * S)
        require(rank_mod_p(transposed, field.p) == m, "the flattening of the targets has no full rank")
        basis = _read_pairs(record["basis"], n, m)
        _check_complete(basis, C, residues)
        form = _trace_form(basis)
        argument = record["argument"]
        if not isinstance(argument, Mapping):
            raise FormatError("the argument must be an object")
        if set(argument) == {"count"}:
            rank = exact_rank(form, QQ)
            require(argument["count"] == rank and type(argument["count"]) is int, f"the trace form has rank {rank}")
            require(rank < self.heads, f"the trace form has rank {rank}, which allows {self.heads} heads")
            return Proof(
                "certified", f"the commutant has a trace form of rank {rank}, so there are at most {rank} summands"
            )
        if set(argument) == {"negative"}:
            return self._check_negative(argument["negative"], form)
        if set(argument) == {"idempotent", "violated"}:
            return self._check_summand(argument, C, basis)
        raise FormatError(f"argument with {show(sorted(map(str, argument)))} found; it is not known")

    def _check_negative(self, vector: Any, form: Array) -> Proof:
        """An element x of the commutant with tr(x²) < 0, where the trace form leaves room for H summands at most."""
        rank = exact_rank(form, QQ)
        require(rank == self.heads, f"the trace form has rank {rank}, not {self.heads}")
        x = read_array([vector], (1, len(form)), QQ, "element")
        value = QQ.matmul(x, QQ.matmul(form, x.T))[0, 0]
        require(value < 0, f"tr(x²) is {str(value)[:60]}, not negative")
        return Proof(
            "certified",
            f"tr(x²) = {str(value)[:60]} < 0 for an element of the commutant, so the heads are not all real",
        )

    def _check_summand(self, argument: Mapping[str, Any], C: Array, basis: Sequence[Pair]) -> Proof:
        """An indecomposable summand that is no head of widths (a, v)."""
        n, m, S = C.shape
        ((X, Y),) = _read_pairs([argument["idempotent"]], n, m)
        require(_commutes(X, Y, C), "the idempotent does not commute with the table")
        require(QQ.equal(QQ.matmul(X, X), X) and QQ.equal(QQ.matmul(Y, Y), Y), "it is no idempotent")
        inner = [(QQ.matmul(X, QQ.matmul(x, X)), QQ.matmul(Y, QQ.matmul(y, Y))) for x, y in basis]
        require(exact_rank(_trace_form(inner), QQ) == 1, "the summand may be decomposable")
        # The rank of an idempotent is its trace.
        sizes = int(np.trace(X).p), int(np.trace(Y).p)
        if argument["violated"] is None:
            require(sizes != (self.value, self.attention), "the summand has the widths of a head")
            return Proof(
                "certified", f"an indecomposable summand has widths (v, a) = {sizes}, which no head of the claim has"
            )
        violated = argument["violated"]
        family = violated.get("family") if isinstance(violated, Mapping) else None
        require(family in [name for name in DEFINITIONS if name not in LINEAR], "an equation of pairs is required")
        part = QQ.matmul(X, C.reshape(n, m * S)).reshape(n, m, S)
        equation = check_violated(_coefficients(part, self.coefficients.d), self.attention, violated)
        return Proof.from_parts(f"for an indecomposable summand, {equation.reason}", equation)


def _coefficients(part: Array, d: int) -> Coefficients:
    """The coefficients of two tokens with this table (n, m, S), targets from m on zero."""
    n, m, S = part.shape
    cross = QQ.zeros((n, S, d))
    cross[:, :, :m] = np.swapaxes(part, 1, 2)
    return Coefficients.of_cross(cross, 2, QQ)


def _read_pairs(value: Any, n: int, m: int) -> list[Pair]:
    if type(value) is not list or not 1 <= len(value) <= n * n + m * m:
        raise FormatError("a list of pairs (X, Y) is required")
    pairs = []
    for pair in value:
        pair = read_object(pair, ("X", "Y"), "pair")
        pairs.append((read_array(pair["X"], (n, n), QQ, "X"), read_array(pair["Y"], (m, m), QQ, "Y")))
    return pairs


def _commutes(X: Array, Y: Array, C: Array) -> bool:
    """X C_s = C_s Y for all s."""
    n, m, S = C.shape
    left = QQ.matmul(X, C.reshape(n, m * S)).reshape(n, m, S)
    right = np.swapaxes(QQ.matmul(np.swapaxes(C, 1, 2).reshape(n * S, m), Y).reshape(n, S, m), 1, 2)
    return QQ.equal(left, right)


def _check_complete(basis: Sequence[Pair], C: Array, residues: Array) -> None:
    """The pairs commute, are independent, and there are no more of them: no more than modulo a prime."""
    n, m, S = C.shape
    field, unknowns = GF(WORD_PRIME), n * n + m * m
    flat = np.stack([np.concatenate([X.ravel(), Y.ravel()]) for X, Y in basis])
    words = 1 + (height(flat.ravel()) + height(C.ravel())) // 64
    products = len(basis) * (n * m * S * (n + m) + len(basis) * unknowns)
    afford(products * words, MATRIX_PRODUCTS, "products of rational numbers for the commutant")
    require(rank_mod_p(field.convert(flat), field.p) == len(basis), "the pairs of the basis are not independent mod p")
    require(all(_commutes(X, Y, C) for X, Y in basis), "a pair of the basis does not commute with the table")
    rng = np.random.default_rng(0)
    counts = (COMMUTANT_SLICES, S) if S > COMMUTANT_SLICES else (S,)
    for count in counts:
        afford(count * n * m * unknowns, SAMPLE_ENTRIES, "entries of the equations of the commutant")
        mixed = np.moveaxis(residues, 2, 0)
        if count < S:
            mixed = field.matmul(field.random((count, S), rng), mixed.reshape(S, n * m)).reshape(count, n, m)
        system = np.concatenate(
            [np.concatenate([np.kron(np.eye(n, dtype=np.int64), c.T), -np.kron(c, np.eye(m, dtype=np.int64))], axis=1)
             for c in mixed]
        )  # fmt: skip
        if unknowns - rank_mod_p(system % field.p, field.p) == len(basis):
            return
    require(False, "the basis of the commutant is not complete")


def _trace_form(basis: Sequence[Pair]) -> Array:
    """tr(X_i X_j) + tr(Y_i Y_j)."""
    flat = np.stack([np.concatenate([X.ravel(), Y.ravel()]) for X, Y in basis])
    transposed = np.stack([np.concatenate([X.T.ravel(), Y.T.ravel()]) for X, Y in basis])
    return QQ.matmul(flat, transposed.T)
