"""The contract of a kind of attention, and of those whose weights are a function of one matrix of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from attngeom.errors import DomainError
from attngeom.exact.arrays import Array, swap
from attngeom.exact.domains import RR, Domain
from attngeom.network.mask import OPEN, Mask
from attngeom.network.options import PLAIN, Nodes, Options, Shape

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


ONE = Fraction(1)


@dataclass(frozen=True)
class Kind(ABC):
    """A kind of attention with its mask, temperature and options.

    A head maps X (d×t, tokens as columns) to v×t; :meth:`attend` appends that to a program, from which values,
    derivatives, ranks and proofs follow.
    """

    mask: Mask = OPEN
    temperature: Fraction = ONE
    options: Options = PLAIN

    name: ClassVar[str]
    is_recurrent: ClassVar[bool] = False
    """Whether it is a recurrence over the tokens, so that token i sees j ≤ i only."""
    is_normalised: ClassVar[bool] = False
    """Whether the coefficients of every output sum to 1."""
    has_temperature: ClassVar[bool] = False
    takes: ClassVar[tuple[str, ...]] = ()
    """The options that it takes."""

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        """Tensors that read the input, besides Q, K and V."""
        return {}

    def numbers(self) -> dict[str, Shape]:
        """Tensors that read nothing."""
        return {}

    def tensors(self, d: int, a: int, v: int) -> dict[str, Shape]:
        """The tensors of a head besides Q, K, V and O, for input width d, attention width a and value width v."""
        gates = self.gates(d, a)
        read = {"Q": (a, d), "K": (a, d), "V": (v, d), **gates}
        added = {name: shape for option in self.options for name, shape in option.tensors(read).items()}
        return {**gates, **self.numbers(), **added}

    @abstractmethod
    def attend(self, b: Builder, head: Nodes, x: int, place: int) -> int:
        """The node of the mixed values (v×t) of head number ``place`` at the node x of its input."""

    def head_symmetries(self) -> tuple[str, ...]:
        """The factors of the symmetry group of a head without options, by their names."""
        return ("query-key",)

    def symmetries(self) -> tuple[str, ...]:
        """The factors of the symmetry group of a head, by the names of :data:`attngeom.network.symmetry.group.SORTS`.

        >>> from attngeom.network.attention import find_kind
        >>> find_kind("gla")().symmetries()
        ('channels', 'scale')
        """
        names = self.head_symmetries()
        for option in self.options:
            names = option.symmetries(names, self.is_normalised)
        return names

    @property
    def has_linear_values(self) -> bool:
        """Whether every output is Σ_j c_ji V x_j, with numbers c_ji that V does not enter."""
        return True

    @property
    def adds_value_bias(self) -> bool:
        """Whether b_V is added to every output: not at the memory of cross-attention, which sees nothing."""
        return self.is_normalised and not self.options.get("memory")

    @property
    def orders_heads(self) -> bool:
        """Whether heads may change places: not where fixed numbers tell them apart."""
        return bool(self.options.get("alibi") != "fixed")

    def pair_weights(self, head: Mapping[str, Array], place: int, tokens: int, domain: Domain) -> Array | None:
        """Numbers c_ji with outputs Σ_j c_ji V x_j · x_jᵀ A x_i, of shape (j, i); None for other outputs."""
        return None

    def project(self, b: Builder, head: Nodes, letter: str, x: int) -> int:
        """W x, as the options have it."""
        y = b.contract("ad,dt->at", head[letter], x)
        for option in self.options:
            y = option.project(b, head, letter, y)
        return y

    def orient(self, b: Builder, head: Nodes, letter: str, x: int) -> int:
        """Queries or keys, as the options have them."""
        y = self.project(b, head, letter, x)
        for option in self.options:
            y = option.orient(b, y)
        return y

    def visible(self, t: int) -> Array:
        """Which token j (row) token i (column) sees."""
        shown = self.mask.visible(t)
        for option in self.options:
            shown = option.hide(shown)
        return shown

    def scores(self, b: Builder, head: Nodes, q: int, k: int, place: int) -> int:
        """The scores (j, i), divided by the temperature."""
        S = b.contract("aj,ai->ji", k, q)
        for option in self.options:
            S = option.score(b, head, S, place)
        return S if self.temperature == ONE else b.multiply(S, b.constant(np.array(1 / self.temperature, dtype=object)))

    def hidden(self, b: Builder, P: int) -> int:
        """P with zeros where nothing is seen."""
        shown = self.visible(b.shape(P)[0])
        return P if shown.all() else b.multiply(P, b.constant(shown.astype(np.int64)))

    def normalised(self, b: Builder, P: int) -> int:
        """P divided by its column sums over what is seen; columns that see nothing are zero."""
        P = self.hidden(b, P)
        blind: Array = np.asarray(~self.visible(b.shape(P)[0]).any(axis=0))
        total = b.sum(P, [0], keepdims=True)
        if blind.any():
            total = b.add(total, b.constant(blind[None].astype(np.int64)))
        return b.divide(P, total)


def softplus(b: Builder, a: int) -> int:
    """log(1 + exp(x))."""
    return b.formal("log", b.add(b.constant(1), b.exp(a)))


def scalar_gate(b: Builder, kind: Kind, head: Nodes, x: int) -> int:
    """The scalar gate that the option says, 1×t."""
    form = kind.options.get("gate", "sigmoid")
    line = kind.project(b, head, "u", x)
    if form != "sigmoid":
        line = b.add(line, head["c"])
    if form != "mamba":
        return b.sigmoid(line)
    return b.exp(b.scale(b.multiply(b.exp(head["eta"]), softplus(b, line)), -1))


def gate_numbers(form: str) -> dict[str, Shape]:
    """The tensors of a scalar gate that read nothing."""
    return {"sigmoid": {}, "biased": {"c": (1, 1)}, "mamba": {"c": (1, 1), "eta": (1, 1)}}[form]


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

    def telling_tokens(self, tokens: int, most: int) -> int:
        """A number s of tokens such that networks that differ at s tokens differ at t, small where there is such a one.

        With a mask the first tokens do not see the later ones; otherwise all are needed.
        """
        return min(tokens, most) if self.mask.hides else tokens

    def with_all_tokens(self, X: Array, tokens: int) -> Array:
        """An input or output at telling tokens as one at t tokens; with a mask the later tokens are left out."""
        return X

    def reference_scores(self, S: Array) -> Array | float:
        """The scores from which those of S (..., t, t) are measured: 0 where the size of a score is seen."""
        return 0.0

    def path_sizes(self, head: Mapping[str, Array], Y: Array) -> Array:
        """|V| |Y| P + |V| r P (1 − P) |S| of a head of floats: its rounding errors are in proportion to it.

        S are the scores, sums of absolute values; r is what errors of the scores move between tokens, here |Y|.
        """
        Q, K, V = (head[letter] for letter in "QKV")
        Z = np.abs(Y)
        sizes = swap(np.abs(K) @ Z) @ (np.abs(Q) @ Z)
        P = self.weights(swap(K @ Y) @ (Q @ Y), RR)
        reach, values = np.broadcast_to(self.reach(Y), Z.shape), np.abs(V)
        paths: Array = values @ Z @ P + values @ reach @ (P * (1 - P) * self.over_temperature(sizes, RR))
        return paths

    def reach(self, Y: Array) -> Array:
        """How far errors of the scores move an output, for values Y."""
        return np.abs(Y)

    @property
    def formal(self) -> Attention:
        """The rule with the same set of functions that is used mod p: A/τ runs over the same matrices as A."""
        return replace(self, temperature=ONE)

    def evaluates(self, domain: Domain) -> bool:
        """Whether a domain can compute P from scores; over others its entries are formal, or enclosed by balls."""
        return not domain.is_exact

    def growth(self, layers: int) -> float:
        """How many times relative errors of the weights those of the outputs are: each layer adds three."""
        return 3.0 * layers

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
