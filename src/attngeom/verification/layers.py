"""Recheck a claim about several lightning layers of one head from the map and the witness alone.

docs/theorems/depth.md has the relations: every one is evaluated here from its statement, as polynomials over Q.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import QQ, Array
from attngeom.layer.polynomial_maps import PolynomialMap, generic_input, map_domain, map_from_json
from attngeom.limits.recheck import COEFFICIENTS_READ, MAP_INPUT_ENTRY, MAP_INPUTS, MAP_OUTPUTS, RATIONAL_PRODUCTS
from attngeom.limits.sizes import DEEP_LAYERS, MAP_VARIABLES
from attngeom.results import Proof
from attngeom.verification.budget import afford
from attngeom.verification.reading import (
    read_array,
    read_choice,
    read_index,
    read_indices,
    read_integer,
    read_list,
    read_object,
    read_rational,
    require,
)


@dataclass(frozen=True)
class LayersClaim:
    """Whether l lightning layers of one head, of any widths, compute a polynomial map."""

    verdict: str
    layers: int
    causal: bool
    map: PolynomialMap

    @classmethod
    def from_json(cls, record: Any) -> LayersClaim:
        """Read the claim strictly; SizeError if it is about too many coefficients."""
        claim = read_object(record, ("kind", "verdict", "layers", "causal", "coefficients"), "claim")
        verdict = read_choice(claim["verdict"], ("realizable", "not_realizable"), "verdict")
        layers = read_integer(claim["layers"], 1, DEEP_LAYERS, "layers")
        if type(claim["causal"]) is not bool:
            raise FormatError("causal must be true or false")
        given = read_object(claim["coefficients"], ("format", "version", "degree", "d", "d_out", "t", "terms"), "map")
        sizes = [read_integer(given[key], 1, 10**6, key) for key in ("d", "d_out", "t")]
        afford(sizes[0] * sizes[2], MAP_VARIABLES, "variables")
        afford(sizes[1] * sizes[2], MAP_OUTPUTS, "outputs")
        terms = given["terms"]
        if type(terms) is not list:
            raise FormatError("the terms must be a list")
        afford(len(terms), COEFFICIENTS_READ, "terms")
        polynomials = map_from_json(claim["coefficients"], 3**layers, "claim")
        if any(read_rational(term["value"]) == 0 for term in terms):
            raise FormatError("a coefficient 0 found; only nonzero terms are listed")
        return cls(verdict, layers, claim["causal"], polynomials)

    def __str__(self) -> str:
        given = self.map
        mask = "causal " if self.causal else ""
        size = f"d = {given.d}, d_out = {given.d_out}, t = {given.t}"
        return (
            f"a map of degree {given.degree} with {size} is {self.verdict} by {self.layers} {mask}lightning layers of"
            " one head, of any widths"
        )

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true; Unproven, FormatError or SizeError if the witness does not show it."""
        if self.verdict == "realizable":
            return self._check_weights(witness)
        names = ("masked", "parity", "rotation", "factors", "minor", "linear")
        if not isinstance(witness, Mapping) or len(witness) != 1:
            raise FormatError(f"a witness with one of {', '.join(names)} is required")
        name = read_choice(next(iter(witness)), names, "witness")
        reason: str = getattr(self, f"_check_{name}")(witness[name])
        return Proof("certified", reason)

    def _check_weights(self, witness: Mapping[str, Any]) -> Proof:
        data, d, t = read_object(witness, ("attention", "values"), "witness"), self.map.d, self.map.t
        lists = read_list(data["attention"], self.layers, "matrices")
        ring = map_domain(d, t)
        afford(self.map.d_out * t * comb(d * t + self.map.degree - 1, self.map.degree), RATIONAL_PRODUCTS, "terms")
        Z = generic_input(d, t)
        for number, rows in enumerate(lists, start=1):
            Z = self._layer(Z, ring.convert(read_array(rows, (d, d), QQ, f"M_{number}")))
        L = read_array(data["values"], (self.map.d_out, d), QQ, "values")
        values = ring.matmul(ring.convert(L), Z).tolist()
        same = all(f == g for row, other in zip(values, self.map.outputs) for f, g in zip(row, other))
        require(same, "the weights expand to another map")
        return Proof("certified", f"the weights of {self.layers} layers expand to the map")

    def _layer(self, X: Array, M: Array) -> Array:
        """Column k is Σ_j x_j (x_jᵀ M x_k), over j ≤ k with a mask."""
        columns = []
        for k in range(X.shape[1]):
            seen = X[:, : k + 1] if self.causal else X
            columns.append(seen @ (seen.T @ (M @ X[:, k])))
        return np.stack(columns, axis=1)

    def _coefficient(self, f: Any, data: Mapping[str, Any], variables: int) -> str:
        """The coefficient that the data names, which must be what they say, and not 0."""
        exponents = [read_integer(e, 0, 2 * self.map.degree, "exponent") for e in _list(data["exponents"], variables)]
        value = f[tuple(exponents)]
        require(value == read_rational(data["value"]), f"the coefficient is {str(value)[:80]}")
        require(value != 0, "the coefficient is zero, so nothing is refuted")
        return str(value)[:60]

    def _output(self, data: Mapping[str, Any]) -> tuple[int, int]:
        i, j = read_list(data["output"], 2, "indices")
        return read_index(i, self.map.d_out), read_index(j, self.map.t)

    def _check_masked(self, record: Any) -> str:
        require(self.causal, "without mask every token is seen")
        data = read_object(record, ("output", "exponents", "value"), "masked")
        i, j = self._output(data)
        value = self._coefficient(self.map.outputs[i][j], data, self.map.d * self.map.t)
        require(any(data["exponents"][(j + 1) * self.map.d :]), "no later token occurs")
        return f"output ({i}, {j}) depends on a later token, with coefficient {value}"

    def _check_parity(self, record: Any) -> str:
        require(not self.causal, "parity holds without mask")
        data, d = read_object(record, ("output", "exponents", "value"), "parity"), self.map.d
        i, j = self._output(data)
        value = self._coefficient(self.map.outputs[i][j], data, d * self.map.t)
        degrees = [sum(data["exponents"][k * d : (k + 1) * d]) for k in range(self.map.t)]
        require(any(e % 2 != (k == j) for k, e in enumerate(degrees)), "the degrees in the tokens are as they must be")
        return f"a term of output ({i}, {j}) with coefficient {value} has a parity that no network has"

    def _check_rotation(self, record: Any) -> str:
        require(not self.causal, "rotations act without mask")
        data, d = read_object(record, ("tokens", "output", "exponents", "value"), "rotation"), self.map.d
        k, l = read_indices(data["tokens"], 2, self.map.t)
        i, j = self._output(data)
        f, x = self.map.outputs[i][j], self.map.domain.ring.gens()
        # X ↦ X + ε X E with E_lk = 1 and E_kl = −1 changes the outputs in the same way.
        change = sum(
            (x[l * d + r] * f.derivative(k * d + r) - x[k * d + r] * f.derivative(l * d + r) for r in range(d)),
            start=f * 0,
        )
        expected = self.map.outputs[i][l] if j == k else -self.map.outputs[i][k] if j == l else f * 0
        value = self._coefficient(change - expected, data, d * self.map.t)
        return f"rotations of tokens {k} and {l} are not followed by the outputs: a coefficient is {value}"

    def _forms(self) -> list[Any]:
        """φ(x, 0, …, 0)_1."""
        d, ring = self.map.d, map_domain(self.map.d, 1).ring
        values = [*ring.gens(), *([ring.constant(0)] * (d * (self.map.t - 1)))]
        return [row[0].compose(*values) for row in self.map.outputs]

    def _check_factors(self, record: Any) -> str:
        require(record == self.layers and type(record) is int, "the number of layers is required")
        forms = self._forms()
        require(any(forms), "the forms of one token are all zero")
        kept = [f for f in forms if f]
        divisor = kept[0]
        for f in kept[1:]:
            divisor = divisor.gcd(f)
        listed = [(f.total_degree(), int(e)) for f, e in divisor.factor()[1]]
        if divisor.total_degree() < self.map.degree:
            # Rows that are not proportional: F = L x · G, and G is the greatest common divisor.
            holds = divisor.total_degree() == self.map.degree - 1 and self._digits(listed)
            require(not holds, "the common factor has the multiplicities of a network")
            return "the common factor of the forms of one token is no product of quadrics to the powers 3^(l−i)"
        for n, (size, e) in enumerate(listed):
            # One linear form of the factor, if it splits into such, is that of the values; the others stay.
            rest = [*listed[:n], (1, e - 1), *([(1, e)] * (size - 1)), *listed[n + 1 :]]
            require(not self._digits(rest), f"factor {n + 1} may contain the values")
        return "no linear factor of the forms of one token leaves quadrics to the powers 3^(l−i)"

    def _digits(self, listed: list[tuple[int, int]]) -> bool:
        """Whether Σ degree·digit is 2 at each of l places in base 3, and no digit is left."""
        for _ in range(self.layers):
            if sum(size * (e % 3) for size, e in listed) != 2:
                return False
            listed = [(size, e // 3) for size, e in listed]
        return not any(e for _, e in listed)

    def _linear_part(self) -> list[list[Any]]:
        """∂φ_k/∂x_k at x_k = 0, one other token y, all others 0: k = 0, or with a mask k = 1."""
        require(self.map.t >= 2, "two tokens are required")
        d, ring = self.map.d, map_domain(self.map.d, 1).ring
        own, other = (1, 0) if self.causal else (0, 1)
        zero = [ring.constant(0)] * d
        values = [x for c in range(self.map.t) for x in (ring.gens() if c == other else zero)]
        return [[f[own].derivative(own * d + m).compose(*values) for m in range(d)] for f in self.map.outputs]

    def _check_minor(self, record: Any) -> str:
        data = read_object(record, ("rows", "columns", "exponents", "value"), "minor")
        a, b = read_indices(data["rows"], 2, self.map.d_out)
        c, e = read_indices(data["columns"], 2, self.map.d)
        T = self._linear_part()
        value = self._coefficient(T[a][c] * T[b][e] - T[a][e] * T[b][c], data, self.map.d)
        return f"a 2-minor of the part linear in one token has the coefficient {value}, not 0"

    def _check_linear(self, record: Any) -> str:
        require(self.layers == 2, "two layers are required")
        data, d, t = read_object(record, ("first", "values", "inputs"), "linear"), self.map.d, self.map.t
        M = read_array(data["first"], (d, d), QQ, "first")
        L = read_array(data["values"], (self.map.d_out, d), QQ, "values")
        require(QQ.rank(M) >= 2 and QQ.rank(L) >= 2, "M_1 and L of rank at least two are required")
        y = map_domain(d, 1).ring.gens()
        forms = [sum((M[r, m] * y[r] for r in range(d)), start=y[0] * 0) for m in range(d)]
        rows = [row for row in self._linear_part() if any(row)]
        require(bool(rows), "the part linear in one token is zero")
        require(all(_parallel(row, forms) for row in rows), "M_1 is not that of the part linear in one token")
        images = [sum((L[i, r] * y[r] for r in range(d)), start=y[0] * 0) for i in range(self.map.d_out)]
        require(any(self._forms()) and _parallel(self._forms(), images), "L is not that of the forms of one token")
        inputs = data["inputs"]
        if type(inputs) is not list or len(inputs) > MAP_INPUTS:
            raise FormatError("a list of inputs is required")
        system: list[list[Any]] = []
        for number, rows_of in enumerate(inputs):
            X = read_array(rows_of, (d, t), QQ, f"input {number}")
            require(all(abs(x) <= MAP_INPUT_ENTRY for x in X.ravel()), "an input is too large")
            Z = self._layer(X, M)
            values = [X[r, c] for c in range(t) for r in range(d)]
            for i, k in np.ndindex(self.map.d_out, t):
                seen = Z[:, : k + 1] if self.causal else Z
                left = seen @ (seen.T @ L[i])
                equation = [left[r] * Z[s, k] for r in range(d) for s in range(d)]
                system.append([*equation, self.map.outputs[i][k](*values)])
        full = np.array(system, dtype=object).reshape(len(system), d * d + 1)
        require(QQ.rank(full) > QQ.rank(full[:, :-1]), "the equations for M_2 have a solution at these inputs")
        return "M_1 and L are determined up to scale, and the linear equations for M_2 have no solution"


def _parallel(first: list[Any], second: list[Any]) -> bool:
    """Whether two vectors of forms are proportional over the rational functions."""
    n = range(len(first))
    return all(first[a] * second[b] == first[b] * second[a] for a in n for b in n if a < b)


def _list(value: Any, length: int) -> list[Any]:
    return read_list(value, length, "integers")
