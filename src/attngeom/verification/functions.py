"""Recheck a claim that two networks with given rational weights are one function, or two.

Same: a group element, layers that agree, or what the function shows of (M, L). Different: an input with other outputs,
layers of heads that differ, or a theorem on (M, L). The theorems are those of docs/theorems/comparison.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.errors import FormatError, InputError
from attngeom.exact.domains import GF, QQ, Array, Balls, Domain
from attngeom.exact.numbers import BIG_PRIME, WORD_PRIME
from attngeom.limits.recheck import (
    BALL_PRODUCTS,
    ENCLOSING_BITS,
    JACOBIAN_PRODUCTS,
    MATRIX_PRODUCTS,
    RECHECKED_PARAMETERS,
)
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.results import Proof
from attngeom.verification.budget import afford, height
from attngeom.verification.forms_of_layers import agree_layerwise, form_of, pairs_of, same_forms
from attngeom.verification.reading import (
    digest_of,
    in_words,
    read_array,
    read_choice,
    read_list,
    read_matrix,
    read_object,
    read_places,
    read_tensors,
    require,
)
from attngeom.verification.virtual_weights import decide_virtual

KINDS = ("lightning", "softmax", "sigmoid")
ARGUMENTS = {"symmetry": ("orders", "scales", "bases"), "layers": (), "virtual": (), "input": ("input",)}


@dataclass(frozen=True, eq=False)
class FunctionsClaim:
    """Two networks of one architecture with rational weights compute the same function of all inputs, or they do not.

    Inputs have as many tokens as the architecture says.
    """

    same: bool
    first: Weights
    second: Weights

    @classmethod
    def from_json(cls, record: Any) -> FunctionsClaim:
        """Read the claim strictly; entries are rationals in lowest terms."""
        claim = read_object(record, ("kind", "architecture", "first", "second", "same"), "claim")
        architecture = Architecture.from_json(claim["architecture"])
        if architecture.kind not in KINDS or not architecture.is_plain:
            raise FormatError(f"{', '.join(KINDS)} attention without options is required")
        if type(claim["same"]) is not bool:
            raise FormatError("same must be true or false")
        afford(2 * architecture.num_parameters, RECHECKED_PARAMETERS, "parameters")
        return cls(claim["same"], *(read_tensors(architecture, claim[side], side) for side in ("first", "second")))

    def __str__(self) -> str:
        verdict = "the same function" if self.same else "different functions"
        names = " and ".join(map(digest_of, (self.first, self.second)))
        return (
            f"attention networks with {in_words(self.first.architecture)} at the weights with digests {names} are"
            f" {verdict}"
        )

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true; Unproven, FormatError or SizeError if the witness does not show it."""
        argument = read_choice(witness.get("argument"), ARGUMENTS, "argument")
        data = read_object(witness, ("argument", *ARGUMENTS[argument]), "witness")
        if argument == "virtual":
            same, why = decide_virtual(self.first, self.second)
            require(same is self.same, f"what the function shows of (M, L) does not say so: {why}")
            return Proof("certified", why)
        if argument == "layers":
            return Proof("certified", self._check_layers())
        require(self.same == (argument == "symmetry"), f"this argument does not show that same is {self.same}")
        return Proof("certified", self._check_symmetry(data) if self.same else self._check_input(data["input"]))

    def _check_layers(self) -> str:
        if self.same:
            require(agree_layerwise(self.first, self.second), "the layers are not seen to agree")
            return "the layers agree up to a change of basis between them"
        architecture = self.first.architecture
        require(architecture.num_layers == 1, "of several layers, different ones may be one function")
        forms = [form_of(pairs_of(side)[0], architecture) for side in (self.first, self.second)]
        require(not same_forms(*forms), "the layers are equal")
        theorem = {"lightning": "coefficients", "softmax": "Theorem D", "sigmoid": "Theorem S"}
        return f"what one layer determines differs ({theorem[architecture.kind]})"

    def _check_symmetry(self, data: Mapping[str, Any]) -> str:
        """Outputs of layer i of the second network are D_i times those of the first, D_0 = D_l = 1.

        For each head of the first network and its place in the second: D_{i−1}ᵀ A' D_{i−1} = λ A and λ V' D_{i−1} = D_i
        V, λ = 1 unless attention is lightning.
        """
        architecture = self.first.architecture
        layers, H = architecture.num_layers, architecture.heads
        widths = architecture.widths
        orders = [read_places(x, H, H, "order") for x in read_list(data["orders"], layers, "orders")]
        scales = read_array(data["scales"], (layers, H), QQ, "scales")
        given = read_list(data["bases"], layers - 1, "bases")
        bases = [read_array(x, (n, n), QQ, "basis") for x, n in zip(given, widths[1:-1])]
        bases = [QQ.eye(widths[0]), *bases, QQ.eye(widths[-1])]
        bits = sum(height(x.ravel()) for x in (self.first.vector(), self.second.vector(), scales, *bases))
        products = sum(6 * H * max(x.d_in, x.d_out) ** 3 for x in architecture.layers)
        afford(products * (1 + bits // 64), MATRIX_PRODUCTS, "products of numbers, times their words")
        require(all(x for x in scales.ravel()), "a scale is zero")
        free = architecture.kind == "lightning"
        require(free or all(x == 1 for x in scales.ravel()), "only lightning attention has scales")
        skips = not architecture.residual or all(QQ.equal(D, QQ.eye(len(D))) for D in bases)
        require(skips, "with a skip connection bases do not change")
        for i, (heads, moved) in enumerate(zip(pairs_of(self.first), pairs_of(self.second))):
            before, after = bases[i], bases[i + 1]
            for h, (A, V) in enumerate(heads):
                A_moved, V_moved = moved[orders[i][h]]
                scores = QQ.matmul(before.T, QQ.matmul(A_moved, before))
                require(QQ.equal(scores, A * scales[i, h]), f"layer {i + 1}, head {h + 1}: other scores")
                values = QQ.matmul(V_moved, before) * scales[i, h]
                require(QQ.equal(values, QQ.matmul(after, V)), f"layer {i + 1}, head {h + 1}: other values")
        return "every head of the first network is one of the second, seen through changes of basis"

    def _check_input(self, value: Any) -> str:
        architecture = self.first.architecture
        d, t = architecture.widths[0], architecture.tokens
        work = sum(H.heads * t * (3 * H.d_in * max(H.d_in, H.d_out) + 2 * t * H.d_in) for H in architecture.layers)
        polynomial = architecture.kind == "lightning"
        afford(2 * work, JACOBIAN_PRODUCTS if polynomial else BALL_PRODUCTS, "products at the input")
        X = read_array(read_matrix(value, d, t, "input"), (d, t), QQ, "input")
        domains: list[Domain] = [GF(WORD_PRIME), GF(BIG_PRIME)] if polynomial else list(map(Balls, ENCLOSING_BITS))
        for domain in domains:
            try:
                one, two = (evaluate(side.to(domain), domain.convert(X), domain) for side in (self.first, self.second))
            except InputError:
                # The prime divides a denominator.
                continue
            if not domain.equal(one, two):
                where = f"mod {domain.characteristic}" if polynomial else "in disjoint balls"
                return f"the outputs at the input of the witness differ, {where}"
        require(False, "the outputs at the input of the witness are not seen to differ")
        raise AssertionError


def evaluate(weights: Weights, X: Array, domain: Domain) -> Array:
    """φ(X), X of shape d×t: token i attends to j with score x_jᵀ KᵀQ x_i, over j ≤ i with a mask."""
    architecture, t = weights.architecture, X.shape[1]
    visible = np.triu(np.ones((t, t), dtype=bool)) if architecture.mask.hides else np.ones((t, t), dtype=bool)
    zero, inverse = domain.zeros((t, t)), 1 / architecture.temperature
    with domain.working():
        for heads in weights.layers:
            total = X if architecture.residual else domain.zeros((heads[0].value_matrix(domain).shape[0], t))
            for head in heads:
                S = domain.matmul(domain.matmul(head.K, X).T, domain.matmul(head.Q, X))
                if architecture.kind != "lightning":
                    S = domain.times(S, domain.convert([inverse]))
                if architecture.kind == "softmax":
                    powers = np.where(visible, domain.exp(S), zero)
                    S = powers / powers.sum(axis=0)
                elif architecture.kind == "sigmoid":
                    S = 1 / (1 + domain.exp(-S))
                part = domain.matmul(domain.matmul(head.value_matrix(domain), X), np.where(visible, S, zero))
                total = domain.reduce(total + part)
            X = total
    return X
