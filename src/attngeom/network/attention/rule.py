"""The contract of a kind of attention: what it does to the scores of a head, and how that is differentiated."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from attngeom.errors import DomainError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.network.attention.kind import ONE, Kind
from attngeom.network.options import Nodes

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder

Key = tuple[object, ...]
"""The name of a function of the input of a layer: entries of an attention matrix, or () for one without attention."""
View = Literal["scaled", "signed", "plain", "nothing"]
"""What heads show of their A: up to a factor that V takes, up to the sign of (A, V), all, or nothing."""


@dataclass(frozen=True)
class Attention(Kind):
    """A rule that turns scores S into weights P: output column i of a head is Σ_j P_ji V x_j.

    S and P have shape (..., t, t); entry (j, i) belongs to the score x_jᵀ A x_i. P_ji = 0 where the mask hides j
    from i; at temperature τ the rule is applied to S/τ. Derivatives are taken at P: ``push`` carries Ṡ to Ṗ, ``pull``
    is its transpose, ``second_derivative`` what curvature needs. Mod p a rule that is not polynomial is formal:
    ``draw`` gives P, whose entries stand for algebraically independent functions.
    """

    is_polynomial: ClassVar[bool]
    """Whether P is S itself, so that a layer is a cubic map and exact domains can evaluate it."""
    takes: ClassVar[tuple[str, ...]] = ("bias", "alibi", "rope", "window", "memory")
    head_theorem: ClassVar[str | None] = None
    """The theorem by which layers of heads are one function only if their :meth:`terms` add up to the same; or None."""

    @abstractmethod
    def shares(self, b: Builder, S: int) -> int:
        """P for scores S as nodes of a program."""

    def attend(self, b: Builder, head: Nodes, x: int, place: int) -> int:
        q, k = (self.orient(b, head, letter, x) for letter in "QK")
        P = self.shares(b, self.scores(b, head, q, k, place))
        return b.contract("cj,ji->ci", self.project(b, head, "V", x), P)

    def head_symmetries(self) -> tuple[str, ...]:
        return ("query-key", "scale") if self.has_scale else ("query-key",)

    @abstractmethod
    def view(self, tokens: int) -> View:
        """What heads at so many tokens show of their A."""

    @property
    def has_scale(self) -> bool:
        """Whether (λ A, V/λ) is the same head as (A, V)."""
        return self.is_polynomial

    @property
    def factors(self) -> str:
        """The tensors of a head each of which makes it zero if it is zero; without Q and K, A = 0 counts."""
        return "VO"

    def count_free(self, tokens: int, rank: int) -> int:
        """How many entries of the t×t weights of scores of a rank are independent, without a mask."""
        return tokens * tokens

    @property
    def can_be_silent(self) -> bool:
        """Whether very negative scores make a head zero, and large ones do not."""
        return False

    @property
    def drops_tokens(self) -> bool:
        """Whether few tokens show what many do: further ones may be zero, or hidden by the mask."""
        return self.is_polynomial or self.mask.hides

    @property
    def formal(self) -> Attention:
        """The rule with the same set of functions that is used mod p: A/τ runs over the same matrices as A."""
        return replace(self, temperature=ONE)

    @abstractmethod
    def weights(self, S: Array, domain: Domain) -> Array:
        """P for scores S; DomainError where the domain cannot evaluate it."""

    @abstractmethod
    def push(self, P: Array, dS: Array, domain: Domain) -> Array:
        """The derivative of P along a derivative of the scores."""

    def pull(self, P: Array, cotangent: Array, domain: Domain) -> Array:
        """The cotangent of the scores from that of P: the transpose of :meth:`push`, here of a symmetric one."""
        return self.push(P, cotangent, domain)

    @abstractmethod
    def second_derivative(self, P: Array, dP: Array, cotangent: Array, domain: Domain) -> Array:
        """The derivative of :meth:`pull` along a derivative of P, the cotangent held fixed."""

    def mix(self, q: Array, k: Array, v: Array, domain: Domain) -> Array:
        """Pᵀ v for queries, keys and values with tokens in rows (..., t, ·): row i is Σ_j P_ji v_j."""
        P = self.weights(domain.matmul(k, swap(q)), domain)
        return domain.matmul(swap(P), v)

    def draw(self, shape: tuple[int, ...], copies: int | None, domain: Domain, rng: np.random.Generator) -> Array:
        """Random formal weights of shape (..., t, t) over a finite field, for kinds that are not polynomial."""
        while True:
            P = self.formal_weights(domain.random(shape, rng), copies, domain)
            if P is not None:
                return P

    def formal_weights(self, E: Array, copies: int | None, domain: Domain) -> Array | None:
        """Formal weights from free elements E (..., t, t) of a finite field; None if a sum of them vanishes.

        ``copies`` is None if the scores are independent. A number says that inputs of effective width one make them
        symmetric, S_ji = S_ij, and how many tokens the last one stands for.
        """
        raise DomainError(f"formal {self.name} attention was asked for; its weights are the scores")

    def terms(self, A: Array, V: Array, tokens: int, domain: Domain) -> Iterator[tuple[Key, Array]]:
        """A head as Σ W_k m_k over functions m_k of its input, each named by a key: heads with one A add up."""
        yield tuple(A.ravel().tolist()), V

    def over_temperature(self, S: Array, domain: Domain) -> Array:
        """S/τ."""
        return S if self.temperature == ONE else domain.times(S, domain.convert([1 / self.temperature]))

    def hide(self, S: Array) -> Array:
        """S with zeros where nothing is visible."""
        return S * self.mask.visible(S.shape[-1]).astype(np.int64).astype(S.dtype) if self.mask.hides else S


def up_to_sign(A: Array, V: Array, domain: Domain) -> tuple[Key, Array] | None:
    """One of (A, V) and (−A, −V), the same for both, with A as a key; None for A = 0."""
    entries = tuple(A.ravel().tolist())
    lead = next((x for x in entries if x), None)
    if lead is None:
        return None
    # One of x, −x is negative: any rule that tells them apart will do.
    return (tuple(-x for x in entries), domain.reduce(-V)) if lead < -lead else (entries, V)
