"""The weights of one layer up to the query-key symmetry: the one record of a pair (A, V)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from attngeom.exact.domains import Array, Domain
from attngeom.exact.numbers import join_scale
from attngeom.network.balance import factor_attention
from attngeom.network.symmetry.files import matrix_to_json


@dataclass(frozen=True, eq=False)
class LayerMatrices:
    """A point (A, V) of weight space over ``domain``, with A = Kᵀ Q: A is d×d, V is d_out×d.

    >>> from attngeom.exact import QQ
    >>> LayerMatrices.zero(1, 2, QQ).to_json()
    {'A': [['0']], 'V': [['0'], ['0']]}
    """

    A: Array
    V: Array
    domain: Domain

    @classmethod
    def zero(cls, d: int, d_out: int, domain: Domain) -> LayerMatrices:
        return cls(domain.zeros((d, d)), domain.zeros((d_out, d)), domain)

    def to_json(self, attention: int | None = None) -> dict[str, Any]:
        """A and V row by row; with ``attention``, also Q and K of that width with Kᵀ Q = A."""
        arrays = {"A": self.A, "V": self.V}
        if attention is not None:
            arrays["Q"], arrays["K"] = factor_attention(self.A, attention, self.domain)
        return {name: matrix_to_json(array, self.domain) for name, array in arrays.items()}

    def scaled(self, exponent: int) -> Self:
        """The floats (A, V) of 2^exponent times the function: A and V take half of it each."""
        half = exponent // 2
        return replace(self, A=join_scale(self.A, half), V=join_scale(self.V, exponent - half))
