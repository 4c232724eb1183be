"""Lightning attention: the scores themselves are the weights, so a layer is the cubic map V X Xᵀ A X."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array, Domain
from attngeom.limits.memory import MASKED_CHUNK
from attngeom.limits.trials import POINT_TOKENS
from attngeom.network.attention.kind import Attention, View

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder

Order = Literal["quadratic", "linear"]


def choose_order(d_out: int, attention: int, tokens: int) -> Order:
    """The order of multiplication with fewer flops once QX, KX and VX are known: t×t scores, or d_out×a sums.

    (VX)((KX)ᵀ(QX)) costs t²(a + d_out); ((VX)(KX)ᵀ)(QX) costs 2 t a d_out.

    >>> choose_order(4, 4, 3), choose_order(4, 4, 5)
    ('quadratic', 'linear')
    """
    return "linear" if 2 * attention * d_out < tokens * (attention + d_out) else "quadratic"


@dataclass(frozen=True)
class Lightning(Attention):
    """P = S, its upper triangle with a mask.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network.mask import Mask
    >>> Lightning(Mask(True)).weights(QQ.convert([[1, 2], [3, 4]]), QQ).tolist()
    [[1, 2], [0, 4]]
    """

    name: ClassVar[str] = "lightning"
    is_polynomial: ClassVar[bool] = True

    @property
    def factors(self) -> str:
        return "QKVO"

    def pair_weights(self, head: Mapping[str, Array], place: int, tokens: int, domain: Domain) -> Array | None:
        if not set(self.options.to_json()) <= {"window", "memory"}:
            return None
        return domain.convert(self.visible(tokens).astype(np.int64))

    def count_free(self, tokens: int, rank: int) -> int:
        return tokens * min(tokens, rank)

    def telling_tokens(self, tokens: int, most: int) -> int:
        """Zero tokens stay zero and change nothing for the others."""
        return min(tokens, POINT_TOKENS)

    def with_all_tokens(self, X: Array, tokens: int) -> Array:
        s = X.shape[-1]
        return np.concatenate([X, np.full((*X.shape[:-1], tokens - s), X.ravel()[0] * 0)], axis=-1) if s < tokens else X

    def path_sizes(self, head: Mapping[str, Array], Y: Array) -> Array:
        """|V| |Y| P with P = |S|."""
        Z = np.abs(Y)
        sizes = swap(np.abs(head["K"]) @ Z) @ (np.abs(head["Q"]) @ Z)
        paths: Array = np.abs(head["V"]) @ Z @ self.weights(sizes, RR)
        return paths

    def view(self, tokens: int) -> View:
        return "scaled"

    def evaluates(self, domain: Domain) -> bool:
        """Every one: the scores are the weights."""
        return True

    def growth(self, layers: int) -> float:
        """Errors of degree 3^l multiply by it."""
        return 3.0**layers

    def weights(self, S: Array, domain: Domain) -> Array:
        return self.hide(S)

    def shares(self, b: Builder, S: int) -> int:
        return self.hidden(b, S)

    def push(self, P: Array, dS: Array, domain: Domain) -> Array:
        return self.hide(dS)

    def second_derivative(self, P: Array, dP: Array, cotangent: Array, domain: Domain) -> Array:
        """Zero: the scores are the weights."""
        return domain.zeros(np.broadcast_shapes(dP.shape, cotangent.shape))

    def mix(self, q: Array, k: Array, v: Array, domain: Domain) -> Array:
        """The cheaper order of Pᵀ v = (q kᵀ) v = q (kᵀ v): time and memory at most linear in the number of tokens."""
        if choose_order(v.shape[-1], q.shape[-1], q.shape[-2]) == "quadratic":
            return super().mix(q, k, v, domain)
        return self.mix_linear(q, k, v, domain)

    def mix_linear(self, q: Array, k: Array, v: Array, domain: Domain) -> Array:
        """q (kᵀ v), the t×t matrix never formed.

        With a mask the sums Σ_{j ≤ i} k_j v_jᵀ run along the tokens in chunks; inside a chunk the triangle of scores is
        used, so memory stays O(chunk² + v a) beyond input and output.
        """
        multiply = domain.matmul
        if not self.mask.hides:
            return multiply(q, multiply(swap(k), v))
        state = domain.zeros((*q.shape[:-2], k.shape[-1], v.shape[-1]))
        parts = []
        for start in range(0, q.shape[-2], MASKED_CHUNK):
            queries, keys, values = (a[..., start : start + MASKED_CHUNK, :] for a in (q, k, v))
            inside = super().mix(queries, keys, values, domain)
            parts.append(domain.reduce(multiply(queries, state) + inside))
            state = domain.reduce(state + multiply(swap(keys), values))
        return np.concatenate(parts, axis=-2)
