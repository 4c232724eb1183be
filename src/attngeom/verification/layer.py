"""Recheck a claim about one layer from its coefficients and witness alone."""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Any

import numpy as np
from flint import fmpq, nmod

from attngeom.errors import AttnGeomError, FormatError
from attngeom.exact.domains import QQ, Array, Domain, QuadraticField, as_fmpq
from attngeom.exact.matrices import rank
from attngeom.exact.primes import BIG_PRIME
from attngeom.layer.coefficients import Coefficients, expand_matrices
from attngeom.layer.files import coefficients_from_json
from attngeom.layer.labels import pair_index, pair_orbits, triple_index, triple_orbits
from attngeom.verification.cubics import check_form
from attngeom.verification.definitions import DEFINITIONS, NEEDS_TWO_TOKENS
from attngeom.verification.reading import Accessor
from attngeom.verification.records import Verdict

POINTS = 3


def check(claim: Mapping[str, Any], witness: Mapping[str, Any], provenance: Mapping[str, Any]) -> Verdict:
    """Whether the witness proves the claim."""
    text = "a claim about one layer"
    try:
        text, reason = _check(claim, witness)
    except _Rejected as error:
        return Verdict(False, error.claim or text, str(error))
    except (AttnGeomError, KeyError, TypeError, ValueError, ArithmeticError, IndexError) as error:
        return Verdict(False, text, f"malformed certificate: {str(error)[:200] or type(error).__name__}")
    return Verdict(True, text, reason)


class _Rejected(Exception):
    def __init__(self, reason: str, claim: str = "") -> None:
        super().__init__(reason)
        self.claim = claim


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _Rejected(reason)


def _check(claim: Mapping[str, Any], witness: Mapping[str, Any]) -> tuple[str, str]:
    expected = {"kind", "verdict", "attention", "rank", "coefficients"}
    _require(set(claim) == expected, f"the claim must have the keys {sorted(expected)}")
    attention, verdict = claim["attention"], claim["verdict"]
    _require(attention is None or (type(attention) is int and attention >= 1), "attention must be null or positive")
    coefficients = coefficients_from_json(claim["coefficients"], "claim")
    _require(coefficients.domain == QQ, "certificates are about exact coefficients")
    values = [term["value"] for term in claim["coefficients"]["terms"]]
    _require(all(_is_canonical(value) for value in values), "coefficients must be nonzero and in lowest terms")
    size = f"d = {coefficients.d}, d_out = {coefficients.d_out}, t = {coefficients.t}"
    bound = "any attention width" if attention is None else f"attention width {attention}"
    text = f"coefficients with {size} are {str(verdict)[:20]} by one layer of {bound}"
    try:
        if "form" in witness and verdict in ("realizable", "closure_only", "not_realizable"):
            return text, check_form(coefficients, verdict, attention, claim["rank"], witness)
        if verdict == "realizable":
            return text, _check_weights(coefficients, attention, claim["rank"], witness, real=True)
        if verdict == "closure_only":
            return text, _check_weights(coefficients, attention, claim["rank"], witness, real=False)
        if verdict == "not_realizable":
            _require(claim["rank"] is None, "a refutation claims no rank")
            return text, _check_refutation(coefficients, attention, witness)
        raise _Rejected(f"verdict {str(verdict)[:40]!r} is none of realizable, closure_only, not_realizable")
    except (_Rejected, FormatError) as error:
        raise _Rejected(str(error), text) from None


def _is_canonical(value: str) -> bool:
    return value != "0" and str(as_fmpq(value)) == value


def _read_field(name: Any, real: bool) -> Domain:
    if name == "Q":
        _require(real, "rational weights do not show that only complex weights exist")
        return QQ
    _require(isinstance(name, str) and name.startswith("Q(sqrt(") and name.endswith("))"), "unknown field")
    D = int(name[7:-2])
    _require(str(D) == name[7:-2] and (D > 0) == real, "the field must be real, or imaginary for closure_only")
    _require(D < 0 or isqrt(D) ** 2 != D, "the field must be quadratic")
    return QuadraticField(D)


def _read_matrix(value: Any, shape: tuple[int, int], domain: Domain) -> Array:
    _require(
        type(value) is list and len(value) == shape[0] and all(type(x) is list and len(x) == shape[1] for x in value),
        f"a {shape[0]}×{shape[1]} matrix is required",
    )
    _require(all(type(x) is str for row in value for x in row), "entries must be strings")
    array = domain.array(value).reshape(shape)
    written = [domain.format(x) for x in array.ravel()]
    _require(written == [x for row in value for x in row], "entries must be written in lowest terms")
    return array


def _check_weights(
    coefficients: Coefficients, attention: int | None, claimed: Any, witness: Mapping[str, Any], real: bool
) -> str:
    """Expand every point and compare all coefficients; check rank A and reality."""
    _require(set(witness) == {"field", "points"}, "the witness must have the keys field and points")
    d, d_out = coefficients.d, coefficients.d_out
    domain = _read_field(witness["field"], real)
    points = witness["points"]
    _require(type(points) is list and 1 <= len(points) <= 3, "one to three points are required")
    _require(not coefficients.outside, "a term lies outside the support of attention")
    for point in points:
        _require(type(point) is dict and set(point) == {"A", "V"}, "each point must have A and V")
        A, V = _read_matrix(point["A"], (d, d), domain), _read_matrix(point["V"], (d_out, d), domain)
        _compare(A, V, coefficients, domain)
        size = rank(A, domain)
        _require(type(claimed) is int and size == claimed, f"A has rank {size}, not {str(claimed)[:20]}")
        _require(attention is None or size <= attention, f"A has rank {size}, above the attention width {attention}")
        if not real:
            _check_no_real_weights(A, V, domain, coefficients.t)
    _require(len(points) == 1 or points[0] != points[1], "the points must differ")
    if real:
        return f"the weights over {witness['field']} expand to all coefficients, rank A = {claimed}"
    return (
        "the complex weights expand to all coefficients, and the fiber {(k qᵀ, h vᵀ), (v qᵀ, h kᵀ)} has no real point"
    )


def _compare(A: Array, V: Array, coefficients: Coefficients, domain: Domain) -> None:
    single, cross = expand_matrices(A, V, domain)
    for j in range(coefficients.t):
        _require(_same(coefficients.single[:, j], single), f"single-column coefficients differ at column {j}")
        for n in range(coefficients.t - 1):
            _require(_same(coefficients.cross[:, j, n], cross), f"cross-column coefficients differ at column {j}")


def _same(given: Array, found: Array) -> bool:
    return given.shape == found.shape and bool(np.all(found == given))


def _check_no_real_weights(A: Array, V: Array, domain: Domain, t: int) -> None:
    """A = k qᵀ, V = h vᵀ with k and v not proportional to real vectors: by [G] Thm 3.2 (t ≥ 2) no real weights."""
    _require(t >= 2, "two tokens are required for this argument")
    _require(isinstance(domain, QuadraticField), "complex weights are required")
    _require(rank(A, domain) == 1 and rank(V, domain) == 1, "rank A = rank V = 1 is required")
    column = next(column for column in A.T if any(column))
    row = next(row for row in V if any(row))
    assert isinstance(domain, QuadraticField)
    for vector in (column, row):
        parts = np.stack(domain.parts(vector))
        _require(rank(parts, QQ) == 2, "a factor is proportional to a real vector")


def _check_refutation(coefficients: Coefficients, attention: int | None, witness: Mapping[str, Any]) -> str:
    _require(set(witness) == {"violated"}, "the witness must name a violated invariant")
    violated = witness["violated"]
    keys = {"family", "degree", "data", "value"}
    _require(type(violated) is dict and set(violated) == keys, f"the invariant must have the keys {sorted(keys)}")
    definition = DEFINITIONS.get(violated["family"])
    _require(definition is not None, "unknown family")
    assert definition is not None
    data, family = violated["data"], violated["family"]
    _require(type(data) is dict, "the data must be an object")
    _require(family not in NEEDS_TWO_TOKENS or coefficients.t >= 2, "this invariant needs two tokens")
    degree = definition.degree(data)
    _require(violated["degree"] == degree and type(violated["degree"]) is int, f"the degree is {degree}")
    if family == "attention-rank":
        _require(attention is not None and degree == attention + 1, "the minor must have size attention + 1")
    value = definition.evaluate(data, accessor_of(coefficients))
    _require(type(violated["value"]) is str and str(value) == violated["value"], f"the value is {str(value)[:80]}")
    _require(value != 0, "the value is zero, so nothing is refuted")
    width = coefficients.d if attention is None else min(attention, coefficients.d)
    for seed in range(POINTS):
        layer = random_layer(coefficients.d, coefficients.d_out, coefficients.t, width, seed)
        _require(definition.evaluate(data, layer) == 0, "the invariant does not vanish on attention layers")
    bits = POINTS * (61 - (3 * degree).bit_length())
    return (
        f"{family} has exact value {str(value)[:80]}, and vanishes at {POINTS} random layers mod 2^61 - 1"
        f" (error below 2^-{bits} by Schwartz-Zippel, degree {3 * degree})"
    )


def accessor_of(coefficients: Coefficients) -> Accessor:
    """The scaled coefficients of a cubic map."""
    d = coefficients.d
    pair, pair_size, triple_size = pair_index(d), pair_orbits(d), triple_orbits(d)

    def cross(i: int, j: int, n: int, k: int, l: int, m: int) -> fmpq:
        s = pair[k, l]
        return coefficients.cross[i, j, n - (n > j), s, m] / int(pair_size[s])

    def single(i: int, j: int, k: int, l: int, m: int) -> fmpq:
        r = triple_index((k, l, m), d)
        return coefficients.single[i, j, r] / int(triple_size[r])

    def outside(output: tuple[int, int], monomial: tuple[tuple[int, int], ...]) -> fmpq:
        return coefficients.coefficient(output, monomial)  # type: ignore[arg-type]  # always three entries

    return Accessor(d, coefficients.d_out, coefficients.t, cross, single, outside)


def random_layer(d: int, d_out: int, t: int, width: int, seed: int) -> Accessor:
    """A random layer mod 2^61 − 1 with rank A ≤ width, its scaled coefficients computed one by one from (A, V)."""
    rng = np.random.default_rng([seed, d, d_out, width])

    def draw(rows: int, columns: int) -> list[list[nmod]]:
        return [[nmod(int(x), BIG_PRIME) for x in row] for row in rng.integers(0, BIG_PRIME, (rows, columns))]

    K, Q, V = draw(width, d), draw(width, d), draw(d_out, d)
    zero, half, third = nmod(0, BIG_PRIME), 1 / nmod(2, BIG_PRIME), 1 / nmod(3, BIG_PRIME)
    A = [[sum((k[l] * q[m] for k, q in zip(K, Q)), start=zero) for m in range(d)] for l in range(d)]

    def cross(i: int, j: int, n: int, k: int, l: int, m: int) -> nmod:
        return (V[i][k] * A[l][m] + V[i][l] * A[k][m]) * half

    def single(i: int, j: int, k: int, l: int, m: int) -> nmod:
        return (cross(i, j, j, k, l, m) + cross(i, j, j, k, m, l) + cross(i, j, j, l, m, k)) * third

    def outside(output: tuple[int, int], monomial: tuple[tuple[int, int], ...]) -> nmod:
        return zero

    return Accessor(d, d_out, t, cross, single, outside)
