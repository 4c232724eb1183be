"""Decide whether l lightning layers of one head compute a polynomial map: what holds at every depth refutes.

docs/theorems/depth.md: rotations of the tokens (Theorem T1), the factors of one token and their multiplicities in
base 3 (T2), the part that is linear in one token (T3). For one token this is a decision but for linear factors that are
not rational; for more tokens weights are searched by solving linear equations (T4, T5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import numpy as np

from attngeom.certification.map_parts import (
    coefficient_matrix,
    fits,
    fits_degrees,
    linear_matrix,
    peel,
    quadrics,
    symmetric_matrix,
)
from attngeom.certification.results import LayerVerdict
from attngeom.errors import InputError, check_positive
from attngeom.exact.domains import QQ, Array
from attngeom.layer.polynomial_maps import PolynomialMap, generic_input, map_domain
from attngeom.limits.sizes import DEEP_LAYERS
from attngeom.limits.trials import SECOND_LAYER_ROUNDS, SPARE_INPUTS
from attngeom.network.mask import OPEN, Mask
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.results import Result, Standing
from attngeom.verification.records import Certificate


@dataclass(frozen=True, kw_only=True, eq=False)
class LayersCertification(Result):
    """Whether ``layers`` lightning layers of one head, of any widths, compute the map.

    "realizable": ``attention`` are M_1, …, M_l and ``values`` is L: hidden widths d, V_i = 1 for i < l.
    "not_realizable": ``witness`` holds a relation that all such networks satisfy, and this map does not.
    """

    verdict: LayerVerdict
    map: PolynomialMap
    layers: int
    causal: bool
    attention: tuple[Array, ...] = ()
    values: Array | None = None
    witness: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_positive(self) -> bool | None:
        return None if self.verdict == "undecided" else self.verdict == "realizable"

    def evidence(self) -> dict[str, Any]:
        """What a certificate holds as witness."""
        if self.values is None:
            return dict(self.witness)
        return {"attention": [matrix_to_json(M, QQ) for M in self.attention], "values": matrix_to_json(self.values, QQ)}

    @cached_property
    def certificate(self) -> Certificate | None:
        if self.verdict == "undecided":
            return None
        claim = {"kind": "layers", **self.select("verdict", "layers", "causal"), "coefficients": self.map.to_json()}
        return Certificate(claim, self.evidence(), {"seed": self.seed, "primes": []})

    def to_json(self) -> dict[str, Any]:
        record = {**self.select("verdict", "standing", "reason"), "exact": True, **self.select("layers", "causal")}
        key = "weights" if self.values is not None else "witness"
        return record if self.verdict == "undecided" else {**record, key: self.evidence()}

    def rows(self) -> Mapping[str, Any]:
        return {"verdict": self.verdict, "standing": self.standing, "reason": self.reason}


def certify_layers(given: PolynomialMap, layers: int, causal: bool = False, seed: int = 0) -> LayersCertification:
    """Whether l lightning layers of one head, without skip connection, compute the map, over the reals.

    >>> from attngeom.layer.polynomial_maps import expand_network
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2, 2), 2, tokens=2), QQ, seed=0)
    >>> certify_layers(expand_network(w), 2).verdict
    'realizable'
    """
    check_positive("layers", layers)
    if not 2 <= layers <= DEEP_LAYERS:
        one = "certify its coefficients, without layers, for one"
        raise InputError(f"{str(layers)[:40]} layers given; 2 to {DEEP_LAYERS} are decided; {one}")
    if given.degree != 3**layers:
        raise InputError(f"a map of degree {given.degree} given; {layers} layers have degree {3**layers}")
    question = _Question(given, layers, causal, seed)
    if given.is_zero:
        return question.realizable(
            [QQ.zeros((given.d,) * 2)] * layers, QQ.zeros((given.d_out, given.d)), "the zero function"
        )
    return question.refute_linear() or question.decide()


@dataclass(frozen=True, eq=False)
class _Question:
    map: PolynomialMap
    layers: int
    causal: bool
    seed: int

    @property
    def mask(self) -> Mask:
        return Mask(self.causal)

    def answer(self, verdict: LayerVerdict, reason: str, **evidence: Any) -> LayersCertification:
        standing: Standing = "undecided" if verdict == "undecided" else "proven"
        return LayersCertification(standing=standing, verdict=verdict, reason=reason, **vars(self), **evidence)

    def realizable(self, attention: Sequence[Array], values: Array, reason: str) -> LayersCertification:
        return self.answer("realizable", reason, attention=tuple(attention), values=values)

    def refute_linear(self) -> LayersCertification | None:
        """A linear relation of Theorem T1 that fails: later tokens are seen, or a rotation of tokens is."""
        violation = self._hidden() if self.mask.hides else self._rotation()
        if violation is None:
            return None
        name, data, reason = violation
        return self.answer("not_realizable", reason, witness={name: data})

    def _hidden(self) -> tuple[str, dict[str, Any], str] | None:
        """With a mask, output j does not depend on tokens after j."""
        d = self.map.d
        for i, row in enumerate(self.map.outputs):
            for j, f in enumerate(row):
                for exponents, value in f.terms():
                    if any(exponents[(j + 1) * d :]):
                        data = {"output": [i, j], "exponents": [int(e) for e in exponents], "value": str(value)}
                        return "masked", data, f"output ({i}, {j}) depends on a later token"
        return None

    def _rotation(self) -> tuple[str, dict[str, Any], str] | None:
        """φ(XR) = φ(X)R: signs of single tokens, and the derivative along rotations in the plane of two tokens."""
        d, outputs = self.map.d, self.map.outputs
        for i, row in enumerate(outputs):
            for j, f in enumerate(row):
                for exponents, value in f.terms():
                    for k in range(self.map.t):
                        if sum(exponents[k * d : (k + 1) * d]) % 2 != (k == j):
                            data = {"output": [i, j], "exponents": [int(e) for e in exponents], "value": str(value)}
                            return "parity", data, f"output ({i}, {j}) is not odd in its token and even in the others"
        for k, l in combinations(range(self.map.t), 2):
            for i, row in enumerate(outputs):
                for j, f in enumerate(row):
                    rest = rotation_derivative(f, d, k, l)
                    rest = rest - row[l] if j == k else rest + row[k] if j == l else rest
                    if rest:
                        exponents, value = next(iter(rest.terms()))
                        data = {"tokens": [k, l], "output": [i, j], "exponents": [int(e) for e in exponents]}
                        reason = f"rotating tokens {k} and {l} does not rotate the outputs: Theorem T1"
                        return "rotation", {**data, "value": str(value)}, reason
        return None

    def decide(self) -> LayersCertification:
        """Theorems T2 and T3, then weights."""
        forms = one_token_forms(self.map)
        ring = map_domain(self.map.d, 1).ring
        if not any(forms):
            return self._without_forms()
        rank = QQ.rank(coefficient_matrix(forms))
        divisor = reduce(lambda f, g: f.gcd(g), forms)
        _, factors = divisor.factor()
        listed = [(f, int(e)) for f, e in factors]
        if rank >= 2:
            if divisor.total_degree() != 3**self.layers - 1 or not fits(listed, self.layers):
                return self._refuted_by_factors("common factor", listed)
            splits = [(quadrics(listed, self.layers, ring), [f // divisor for f in forms])]
        else:
            splits, is_open = self._choices(listed, ring, forms)
            if not splits and not is_open:
                return self._refuted_by_factors("factors", listed)
            if not splits:
                return self.answer("undecided", "only linear factors that are not rational can be the values")
        if self.map.t == 1:
            q, values = splits[0]
            return self._with_scale([symmetric_matrix(f) for f in q], linear_matrix(values), forms)
        if self.map.d == 1:
            return self._on_a_line(forms)
        return self._refute_minor() or self._search(splits)

    def _choices(
        self, listed: list[tuple[Any, int]], ring: Any, forms: list[Any]
    ) -> tuple[list[tuple[list[Any], list[Any]]], bool]:
        """All rational linear factors v with a fitting rest, and whether an irrational one may exist."""
        splits, is_open = [], False
        scales = [f.leading_coefficient() if f else QQ.convert([0])[0] for f in forms]
        for number, (v, e) in enumerate(listed):
            size = v.total_degree()
            if size > 3:
                continue
            # As if v split into linear forms, of which one belongs to the values.
            parts = [(1, e - 1), *([(1, e)] * (size - 1))]
            others = [(f.total_degree(), m) for k, (f, m) in enumerate(listed) if k != number]
            if not fits_degrees([*parts, *others], self.layers):
                continue
            if size > 1:
                is_open = True
                continue
            rest = [(f, m - (k == number)) for k, (f, m) in enumerate(listed)]
            splits.append((quadrics(rest, self.layers, ring), [v * c for c in scales]))
        return splits, is_open

    def _refuted_by_factors(self, what: str, listed: list[tuple[Any, int]]) -> LayersCertification:
        shape = ", ".join(f"degree {f.total_degree()} to the power {e}" for f, e in listed) or "none"
        reason = f"one token: the {what} ({shape}) are no form times quadrics to the powers 3^(l−i): Theorem T2"
        return self.answer("not_realizable", reason[:300], witness={"factors": self.layers})

    def _without_forms(self) -> LayersCertification:
        if self.map.t == 1:
            raise ArithmeticError("a zero map of one token that is not zero; this is a defect")
        refutation = self._refute_minor()
        return refutation or self.answer(
            "undecided", "the map vanishes on one token: some M_i is skew, which is not decided"
        )

    def _with_scale(self, attention: list[Array], values: Array, forms: list[Any]) -> LayersCertification:
        """The weights whose forms agree with the given ones up to a number, which the values take up."""
        expanded = evaluate_one_token(attention, values, self.map.d)
        ratio = next(f.leading_coefficient() / g.leading_coefficient() for f, g in zip(forms, expanded) if g)
        reason = f"one token: a linear form times {self.layers} quadrics to powers of 3"
        return self.realizable(attention, values * ratio, reason)

    def _on_a_line(self, forms: list[Any]) -> LayersCertification:
        """d = 1: numbers M_i are factors of the function, so M_i = 1, and one token shows L."""
        attention = [QQ.eye(1)] * self.layers
        values = QQ.convert([[f.leading_coefficient() if f else 0] for f in forms])
        if self._expands(attention, values):
            return self.realizable(attention, values, "d = 1: all M_i are 1, and L is seen at one token")
        return self.answer("undecided", "d = 1, and the map is no multiple of the one with all M_i = 1")

    def _expands(self, attention: Sequence[Array], values: Array) -> bool:
        """Whether the network is the map, as polynomials."""
        X, ring = generic_input(self.map.d, self.map.t), map_domain(self.map.d, self.map.t)
        for M in attention:
            X = lightning(X, ring.convert(M), self.mask)
        outputs = ring.matmul(ring.convert(values), X).tolist()
        return all(f == g for row, other in zip(outputs, self.map.outputs) for f, g in zip(row, other))

    def _refute_minor(self) -> LayersCertification | None:
        """Theorem T3: the part that is linear in one token and else in another one is a matrix of rank one."""
        T = linear_part(self.map, self.mask)
        for (a, b), (c, e) in (
            (rows, columns)
            for rows in combinations(range(self.map.d_out), 2)
            for columns in combinations(range(self.map.d), 2)
        ):
            minor = T[a][c] * T[b][e] - T[a][e] * T[b][c]
            if minor:
                exponents, value = next(iter(minor.terms()))
                data = {"rows": [a, b], "columns": [c, e], "exponents": [int(x) for x in exponents]}
                reason = "the part linear in one token is no column times a row: a quadric of Theorem T3 is not 0"
                return self.answer("not_realizable", reason, witness={"minor": {**data, "value": str(value)}})
        return None

    def _search(self, splits: list[tuple[list[Any], list[Any]]]) -> LayersCertification:
        """Two layers: M_1 from the linear part, L from the forms, M_2 by linear equations."""
        if self.layers > 2:
            return self._peeled()
        row = next((row for row in linear_part(self.map, self.mask) if any(row)), None)
        candidates = [] if row is None else first_attention(row)
        is_forced = len(splits) == len(candidates) == 1
        for first in candidates:
            for _, values in splits:
                L = linear_matrix(values)
                second, inputs = self._second_attention(first, L)
                if second is not None:
                    return self.realizable([first, second], L, "weights of two layers expand to the map")
                if inputs and is_forced and QQ.rank(first) >= 2 and QQ.rank(L) >= 2:
                    data = {"first": matrix_to_json(first, QQ), "values": matrix_to_json(L, QQ), "inputs": inputs}
                    reason = (
                        "M_1 and L are determined, and no M_2 solves the linear equations that are left: Theorem T4"
                    )
                    return self.answer("not_realizable", reason, witness={"linear": data})
        return self.answer("undecided", "every relation that is known holds; no weights were found by linear equations")

    def _peeled(self) -> LayersCertification:
        """Three layers and more: Theorem T5, where M_1 is determined up to scale; what it finds is expanded."""
        row = next((row for row in linear_part(self.map, self.mask) if any(row)), None)
        candidates = [] if row is None else first_attention(row)
        reason = "every relation that is known holds; weights are searched where rk M_1 ≥ 2, t ≥ d, without mask"
        if self.mask.hides or len(candidates) != 1 or QQ.rank(candidates[0]) < 2:
            return self.answer("undecided", reason)
        (first,) = candidates
        rest = peel(self.map, first, self.seed)
        if rest is None:
            return self.answer("undecided", f"{reason}; no map behind M_1 was found by linear equations")
        inner = certify_layers(rest, self.layers - 1, seed=self.seed)
        if inner.values is not None and self._expands((first, *inner.attention), inner.values):
            words = f"weights of {self.layers} layers expand to the map"
            return self.realizable([first, *inner.attention], inner.values, words)
        return self.answer("undecided", f"{reason}; of the map behind M_1: {inner.reason}"[:300])

    def _second_attention(self, first: Array, L: Array) -> tuple[Array | None, list[Any]]:
        """M_2 with L Z Zᵀ M_2 Z = F, Z = X Xᵀ M_1 X, checked as polynomials; or inputs at which there is none."""
        d, t, rng = self.map.d, self.map.t, np.random.default_rng(self.seed)
        rows, right, inputs = [], [], []
        for _ in range(SECOND_LAYER_ROUNDS):
            for _ in range((d * d + SPARE_INPUTS) // t + SPARE_INPUTS):
                X = QQ.convert(rng.integers(-5, 6, (d, t)))
                inputs.append(matrix_to_json(X, QQ))
                equations = second_equations(self.map, X, first, L, self.mask)
                rows += [row for row, _ in equations]
                right += [[value] for _, value in equations]
            solution = QQ.solve(np.array(rows, dtype=object), np.array(right, dtype=object))
            if solution is None:
                return None, inputs
            second = np.asarray(solution).reshape(d, d)
            if self._expands((first, second), L):
                return second, []
        return None, []


def second_equations(given: PolynomialMap, X: Array, first: Array, L: Array, mask: Mask) -> list[tuple[Array, Any]]:
    """Linear equations for the entries of M_2 at one input, for every entry of the output."""
    Z, F, equations = lightning(X, first, mask), given.at(X), []
    for k in range(given.t):
        seen = mask.seen(Z, k)
        S = QQ.matmul(QQ.matmul(L, seen), seen.T)
        equations += [(np.multiply.outer(S[i], Z[:, k]).ravel(), F[i][k]) for i in range(given.d_out)]
    return equations


def lightning(X: Array, M: Array, mask: Mask = OPEN) -> Array:
    """X Xᵀ M X over any ring, token k seeing tokens up to k with a mask."""
    columns = []
    for k in range(X.shape[1]):
        seen = mask.seen(X, k)
        columns.append(seen @ (seen.T @ (M @ X[:, k])))
    return np.stack(columns, axis=1)


def rotation_derivative(f: Any, d: int, k: int, l: int) -> Any:
    """Σ_r x_rl ∂f/∂x_rk − x_rk ∂f/∂x_rl: how f changes when token k turns towards token l."""
    gens = f.context().gens()
    total = f * 0
    for r in range(d):
        total = total + gens[l * d + r] * f.derivative(k * d + r) - gens[k * d + r] * f.derivative(l * d + r)
    return total


def one_token_forms(given: PolynomialMap) -> list[Any]:
    """F(x) = φ(x, 0, …, 0)_1, one form for each output row."""
    ring = map_domain(given.d, 1)
    X = ring.zeros((given.d, given.t))
    X[:, 0] = ring.ring.gens()
    return [row[0] for row in given.at(X)]


def evaluate_one_token(attention: Sequence[Array], values: Array, d: int) -> list[Any]:
    """The forms of one token of the network with these virtual weights."""
    ring = map_domain(d, 1)
    X = ring.convert([[x] for x in ring.ring.gens()])
    for M in attention:
        X = lightning(X, ring.convert(M))
    return [row[0] for row in ring.matmul(ring.convert(values), X).tolist()]


def linear_part(given: PolynomialMap, mask: Mask) -> list[list[Any]]:
    """T(y), d_out×d: the part of φ_k that is linear in token k and else depends on one other token y alone.

    k = 0 sees y = token 1; with a mask k = 1 sees y = token 0.
    """
    d, (own, other) = given.d, mask.places
    ring = map_domain(d, 1)
    X = ring.zeros((d, given.t))
    X[:, other] = ring.ring.gens()
    values = [X[r, c] for c in range(given.t) for r in range(d)]
    return [[f[own].derivative(own * d + m).compose(*values) for m in range(d)] for f in given.outputs]


def first_attention(row: Sequence[Any]) -> list[Array]:
    """M_1 up to scale from a nonzero row F_0(y) (M_1ᵀ y)ᵀ: one, or for rank one M_1 = k qᵀ one for each factor k."""
    divisor = reduce(lambda f, g: f.gcd(g), row)
    quotients = [f // divisor for f in row]
    if any(f.total_degree() == 1 for f in quotients):
        return [linear_matrix(quotients).T]
    q = QQ.convert([[f.leading_coefficient() if f else 0 for f in quotients]])
    factors = [f for f, _ in divisor.factor()[1] if f.total_degree() == 1]
    return [QQ.matmul(linear_matrix([k]).T, q) for k in factors]
