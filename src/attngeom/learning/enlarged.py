"""The network in its matrices Θ = (A_h, V_h): the differential of the function in Θ, and the symmetries that act on Θ.

A product that has its largest rank moves in a manifold and keeps its factors. One of smaller rank is replaced by a
matrix whose entries are all free. A matrix on which the function does not depend at this point is left out: V_h if
A_h = 0 (lightning), A_h if V_h = 0. A lightning head with A_h = 0 = V_h becomes a free table T in S²⊗R^d⊗R^d'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from math import comb
from typing import Literal

import numpy as np

from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.layer.quadrics import context_products
from attngeom.learning.blocks import HeadBlocks
from attngeom.learning.pairs import Pair
from attngeom.network.layer import Formal, Gradient, Passes
from attngeom.network.symmetry import Between, Scale, linear_factors
from attngeom.network.symmetry.factor import Tensors
from attngeom.network.weights import Head, Weights

Form = Literal["factors", "matrix", "left out"]


@dataclass(frozen=True)
class HeadForm:
    """How one head enters Θ; ``is_dead`` marks the free table, beside which both matrices are left out."""

    attention: Form
    value: Form
    is_dead: bool
    dimension: int
    pair: Pair

    @classmethod
    def at(cls, blocks: HeadBlocks, is_lightning: bool) -> HeadForm:
        """The form of a head with these blocks."""
        A, V = blocks.attention, blocks.value
        if is_lightning and A.is_zero and V.is_zero:
            return cls("left out", "left out", True, A.rows * comb(A.rows + 1, 2) * V.rows, A.pair * V.pair)
        attention: Form = "left out" if V.is_zero else "factors" if A.is_smooth else "matrix"
        value: Form = "left out" if is_lightning and A.is_zero else "factors" if V.is_smooth else "matrix"
        seen = [block for block, form in ((A, attention), (V, value)) if form != "left out"]
        return cls(
            attention,
            value,
            False,
            sum(block.dimension for block in seen),
            reduce(Pair.__add__, [block.pair for block in seen]),
        )


@dataclass(frozen=True, eq=False)
class Enlarged:
    """A point of Θ-space over some domain, with the forms of its heads."""

    weights: Weights
    forms: tuple[tuple[HeadForm, ...], ...]

    @property
    def dimension(self) -> int:
        """dim Θ."""
        return sum(form.dimension for heads in self.forms for form in heads)

    @property
    def num_columns(self) -> int:
        """The entries of the tensors that are varied, before any of them is made."""
        total = 0
        for layer, forms in zip(self.weights.architecture.layers, self.forms):
            d, e, v = layer.d_in, layer.d_out, layer.value_width
            sizes = {
                "attention": {"factors": 2 * layer.attention * d, "matrix": d * d, "left out": 0},
                "value": {"factors": d * e if v is None else v * (d + e), "matrix": d * e, "left out": 0},
            }
            for form in forms:
                total += sizes["attention"][form.attention] + sizes["value"][form.value]
                total += form.dimension if form.is_dead else 0
        return total

    @property
    def pair(self) -> Pair:
        """(λ, m) of ‖Θ − Θ_0‖², that of the table being ‖A_h‖² ‖V_h‖²."""
        return reduce(Pair.__add__, [form.pair for heads in self.forms for form in heads])

    def heads(self) -> tuple[tuple[Head, ...], ...]:
        """The network whose tensors are the coordinates of Θ, and constants."""
        domain = self.weights.domain
        return tuple(
            tuple(_enlarge(head, form, domain) for head, form in zip(heads, forms))
            for heads, forms in zip(self.weights.layers, self.forms)
        )

    def passes(self, X: Array, formal: Formal | None = None) -> Passes:
        """The network at inputs X (N, t, d_0); with formal attention weights the scores are not used."""
        architecture = self.weights.architecture
        return Passes.at(self.heads(), X, architecture.rule, self.weights.domain, architecture.residual, formal)

    def jacobian(self, X: Array, C: Array, formal: Formal | None = None) -> Array:
        """Rows ∂⟨C_n, φ(X_n)⟩/∂Θ for inputs X (N, t, d_0) and cotangents C (N, t, d_l), tokens in rows."""
        architecture, domain = self.weights.architecture, self.weights.domain
        with domain.working():
            passes = self.passes(X, formal)
            columns: list[Array] = []
            indices = reversed(range(architecture.num_layers))
            for index, (layer, bar, gradients) in zip(indices, passes.backward(C)):
                rows = self._columns(index, gradients, layer.X, bar)
                columns = [part.reshape(len(X), -1) for part in rows] + columns
            return np.concatenate(columns, axis=1)

    def _columns(self, index: int, gradients: list[Gradient], X: Array, C: Array) -> Iterator[Array]:
        remaining, domain = iter(gradients), self.weights.domain
        for head, form in zip(self.heads()[index], self.forms[index]):
            Q, K, V = (next(remaining) for _ in range(3))
            O = None if head.O is None else next(remaining)
            if form.is_dead:
                # ∂⟨C, Σ_i T(Σ_j x_j x_j, x_i)⟩/∂T.
                yield domain.matmul(swap(C), context_products(swap(X), self.weights.architecture.mask, domain))
            if form.attention != "left out":
                yield Q.product(domain)
            if form.attention == "factors":
                yield K.product(domain)
            if form.value != "left out":
                yield V.product(domain)
                if O is not None:
                    yield O.product(domain)

    def action(self) -> Array:
        """Rows ξ·Θ_0 for the scales of lightning heads and the changes of basis between layers, in all of (A_h, V_h).

        These are tangent to the orbit of Θ_0, along which the function stays the same.
        """
        domain = self.weights.domain
        # Heads in their matrices, as K = 1 and Q = A.
        tensors: Tensors = {}
        for index, heads in enumerate(self.weights.layers):
            for h, head in enumerate(heads):
                A, V = head.attention_matrix(domain), head.value_matrix(domain)
                tensors |= {(index, h, "Q"): A, (index, h, "K"): domain.eye(len(A)), (index, h, "V"): V}
        rows = [
            self._row(tensors, changes)
            for factor in linear_factors(self.weights.architecture)
            if isinstance(factor, (Scale, Between))
            for changes in factor.tangents(tensors, domain)
        ]
        return np.stack(rows) if rows else domain.zeros((0, 1))

    def _row(self, tensors: Tensors, changes: Tensors) -> Array:
        """The changes of all (A_h, V_h) that are not left out, Ȧ = K̇ᵀ A + Q̇."""
        domain, parts = self.weights.domain, []
        moved = {place: changes.get(place, domain.zeros(array.shape)) for place, array in tensors.items()}
        for index, forms in enumerate(self.forms):
            for h, form in enumerate(forms):
                Q, K, V = ((index, h, letter) for letter in "QKV")
                if form.attention != "left out":
                    parts.append(domain.reduce(moved[Q] + domain.matmul(moved[K].T, tensors[Q])).ravel())
                if form.value != "left out":
                    parts.append(moved[V].ravel())
        return np.concatenate(parts) if parts else domain.zeros((1,))


def enlarge(weights: Weights, blocks: tuple[tuple[HeadBlocks, ...], ...]) -> Enlarged:
    """The point of Θ-space below the weights; the blocks hold the ranks.

    >>> from attngeom.exact import QQ
    >>> from attngeom.learning.blocks import head_blocks
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 3, 3), 3), QQ, seed=0)
    >>> enlarge(w, head_blocks(w)).dimension
    36
    """
    lightning = weights.architecture.rule.has_scale
    return Enlarged(weights, tuple(tuple(HeadForm.at(head, lightning) for head in heads) for heads in blocks))


def plain(weights: Weights) -> Enlarged:
    """The same network in its own weights: every factor is kept, so the Jacobian is that of W ↦ φ_W."""
    form = HeadForm("factors", "factors", False, 0, Pair.coordinates(0))
    return Enlarged(weights, tuple(tuple(form for _ in heads) for heads in weights.layers))


def _enlarge(head: Head, form: HeadForm, domain: Domain) -> Head:
    Q, K, V, O = head.Q, head.K, head.V, head.O
    if form.attention == "matrix":
        K, Q = domain.eye(K.shape[1]), head.attention_matrix(domain)
    if form.value == "matrix":
        V, O = head.value_matrix(domain), None
    return Head(Q, K, V, O)
