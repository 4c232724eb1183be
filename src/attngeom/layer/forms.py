"""Heads of one layer added up: a layer of any kind as Σ W_k m_k over functions m_k of its input."""

from __future__ import annotations

from collections.abc import Iterable

from attngeom.exact.domains import Array, Domain
from attngeom.layer.coefficients import expand_matrices
from attngeom.network import Weights
from attngeom.network.attention import Attention
from attngeom.network.attention.kind import Key

HeadMatrices = tuple[Array, Array]
"""(A, V) of one head, V the whole value map."""
Form = dict[Key, Array]
"""A layer as Σ W_k m_k, where the m_k are functions of its input that are independent of each other."""


def head_matrices(weights: Weights) -> list[list[HeadMatrices]]:
    """(A, V) of all heads of each layer."""
    return [list(zip(A, V)) for A, V in zip(weights.attention_matrices(), weights.value_matrices())]


def layer_form(heads: Iterable[HeadMatrices], rule: Attention, tokens: int, domain: Domain) -> Form:
    """The layer in terms of independent functions: two layers are one function if and only if their forms are equal.

    Lightning: the coefficients. Other kinds: the sums of the :meth:`terms` of their heads, which the theorem of the
    kind says to be independent (without one, equal forms are equal functions, and nothing more). Entries that vanish
    are left out.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network.attention import Softmax
    >>> one = QQ.eye(1)
    >>> layer_form([(one, one), (-one, one)], Softmax(), 2, QQ)
    {(): array([[2]], dtype=object)}
    """
    form: Form = {}
    for A, V in heads:
        terms: Iterable[tuple[Key, Array]] = rule.terms(A, V, tokens, domain)
        if rule.is_polynomial:
            single, cross = expand_matrices(A, V, domain)
            terms = [((), (single if tokens == 1 else cross).reshape(len(V), -1))]
        for key, W in terms:
            form[key] = domain.reduce(form[key] + W) if key in form else W
    return {key: W for key, W in form.items() if not domain.is_zero(W)}


def are_equal(domain: Domain, one: Form, two: Form) -> bool:
    """Whether two forms without zero terms are equal."""
    return one.keys() == two.keys() and all(domain.equal(W, two[key]) for key, W in one.items())
