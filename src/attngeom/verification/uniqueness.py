"""Recheck a claim about given heads of one layer: no other heads of its widths have this function, or some have.

Written independently of :mod:`attngeom.heads`, from Theorems H and D2 of docs/theorems/heads.md. Head functions are
compared up to order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import QQ, Array
from attngeom.limits.recheck import HEAD_PAIRS, RECHECKED_PARAMETERS, RECHECKED_SIGNS
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.results import Proof
from attngeom.verification.budget import afford, afford_elimination, height
from attngeom.verification.forms_of_layers import Pair, afford_forms, form_of, pairs_of, same_forms, seen_matrix
from attngeom.verification.reading import digest_of, in_words, read_choice, read_object, read_tensors, require

KINDS = ("lightning", "softmax", "sigmoid")
THEOREMS = {"lightning": "H", "softmax": "D", "sigmoid": "S"}


@dataclass(frozen=True, eq=False)
class UniquenessClaim:
    """Every layer of the architecture with the function of these weights has their head functions; or one has not."""

    unique: bool
    weights: Weights

    @classmethod
    def from_json(cls, record: Any) -> UniquenessClaim:
        """Read the claim strictly; entries are rationals in lowest terms."""
        claim = read_object(record, ("kind", "architecture", "tensors", "unique"), "claim")
        architecture = Architecture.from_json(claim["architecture"])
        if architecture.kind not in KINDS or not architecture.is_plain or architecture.num_layers != 1:
            raise FormatError(f"one layer of {', '.join(KINDS)} attention without options is required")
        if type(claim["unique"]) is not bool:
            raise FormatError("unique must be true or false")
        afford(architecture.num_parameters, RECHECKED_PARAMETERS, "parameters")
        return cls(claim["unique"], read_tensors(architecture, claim["tensors"], "tensors"))

    def __str__(self) -> str:
        verdict = "are determined by the function of the layer, up to order" if self.unique else "are not unique"
        return (
            f"the head functions of one attention layer with {in_words(self.weights.architecture)} at the weights with"
            f" digest {digest_of(self.weights)} {verdict}, among all layers with these sizes"
        )

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true; Unproven, FormatError or SizeError if the witness does not show it."""
        architecture, (heads,) = self.weights.architecture, pairs_of(self.weights)
        if not self.unique:
            other = read_tensors(architecture, read_object(witness, ("tensors",), "witness")["tensors"], "tensors")
            return Proof("certified", self._check_other(heads, pairs_of(other)[0]))
        cited = read_object(witness, ("theorem",), "witness")["theorem"]
        name = read_choice(cited, (*THEOREMS.values(), "one"), "theorem")
        if name == "one":
            require(architecture.heads == 1, "one head is required")
            return Proof("certified", "one head is the layer itself")
        own = THEOREMS[architecture.kind]
        require(name == own, f"{architecture.kind} attention has Theorem {own}")
        require(architecture.heads >= 2, "two heads are required")
        _afford(heads)
        if name == "H":
            return Proof("certified", self._check_direct_sum(heads))
        return Proof("certified", self._check_signed(heads))

    def _check_other(self, heads: list[Pair], others: list[Pair]) -> str:
        architecture = self.weights.architecture
        afford_forms(architecture)
        forms = [form_of(side, architecture) for side in (heads, others)]
        require(same_forms(*forms), "the weights of the witness are not seen to have the same function")
        names = [_names(side, architecture) for side in (heads, others)]
        require(names[0] != names[1], "the weights of the witness have the same head functions")
        return "the weights of the witness have the same function and other head functions"

    def _check_direct_sum(self, heads: list[Pair]) -> str:
        """Theorem H (c) with Lemma 1, where the architecture allows no larger ranks."""
        architecture = self.weights.architecture
        (layer,) = architecture.layers
        require(architecture.tokens >= 2, "two tokens are required")
        ranks = [(QQ.rank(A), QQ.rank(V)) for A, V in heads]
        require(all(a and v for a, v in ranks), "a head is zero")
        width = min(layer.d_in, layer.d_out, layer.value_width or layer.d_in)
        most = min(layer.attention, layer.d_in), width
        require(all(own == most for own in ranks), f"ranks (A, V) below {most} leave room for other heads")
        outputs = QQ.rank(np.concatenate([V for _, V in heads], axis=1))
        queries = QQ.rank(np.concatenate([A for A, _ in heads]))
        require(outputs == sum(v for _, v in ranks), "the outputs of the heads are dependent")
        require(queries == sum(a for a, _ in ranks), "the queries of the heads are dependent")
        for h, (A_h, V_h) in enumerate(heads):
            for g, (A_g, V_g) in enumerate(heads):
                if g != h:
                    mixes = _has_homomorphism(A_h, V_h, A_g, V_g)
                    require(not mixes, f"a homomorphism from head {h + 1} to head {g + 1} mixes them")
        return "outputs and queries of the heads are independent, and no two heads mix (Theorem H)"

    def _check_signed(self, heads: list[Pair]) -> str:
        """Theorem D for three tokens of softmax and more; else Theorem D2: all choices of signs are tried."""
        architecture = self.weights.architecture
        (layer,) = architecture.layers
        require(all(not QQ.is_zero(V) for _, V in heads), "a head has V = 0")
        seen = [tuple(seen_matrix(A, architecture).ravel()) for A, _ in heads]
        require(len(set(seen)) == len(seen), "two heads have the same A")
        if architecture.kind == "softmax" and architecture.tokens > 2:
            return "the A_h are pairwise different and no V_h is zero (Theorem D)"
        require(architecture.kind == "sigmoid" or architecture.tokens == 2, "two tokens of softmax are required")
        form, size = form_of(heads, architecture), heads[0][0].shape
        total = sum((V for _, V in heads), heads[0][1] * 0)
        # Of one token A + Aᵀ is seen, and A may be half of it.
        part = 2 if architecture.tokens == 1 else 1
        classes = [(np.array(key, dtype=object).reshape(size) / part, W) for key, W in form.items() if key]
        spare = len(heads) - len(classes)
        require(spare < 2, "two heads or more are spare, and Theorem D2 leaves them open")
        shown = {key for key in form if key}
        named = {key for key in map(_up_to_sign, seen) if key}
        require(named == shown, "two heads with A and −A have the same V, which does not show A")
        afford(2 ** len(classes), RECHECKED_SIGNS, "choices of signs")
        own = _names(heads, architecture)
        width = min(layer.d_in, layer.d_out, layer.value_width or layer.d_in)
        for family in _families(classes, total, spare, width):
            require(_names(family, architecture) == own, "another choice of signs has the same function")
        return "no other choice of signs has values of these ranks and the same sum (Theorem D2)"


def _afford(heads: list[Pair]) -> None:
    afford(len(heads) ** 2, HEAD_PAIRS, "pairs of heads")
    stacked = sum(max(A.shape[0], V.shape[0]) for A, V in heads)
    afford_elimination(min(stacked, 2 * len(heads[0][0])), max(height(x.ravel()) for pair in heads for x in pair))


def _names(heads: list[Pair], architecture: Architecture) -> list[str]:
    """The functions of single heads, sorted: those of lightning by their coefficients, others by V and what is seen."""
    names = []
    for A, V in heads:
        if architecture.kind == "lightning":
            form = form_of([(A, V)], architecture)
            names.append(str([str(x) for W in form.values() for x in W.ravel()]))
        else:
            shown = None if QQ.is_zero(V) else [str(x) for x in seen_matrix(A, architecture).ravel()]
            names.append(str((shown, [str(x) for x in V.ravel()])))
    return sorted(names)


def _up_to_sign(key: tuple[Any, ...]) -> tuple[Any, ...]:
    lead = next((x for x in key if x), None)
    return () if lead is None else key if lead > 0 else tuple(-x for x in key)


def _has_homomorphism(A_h: Array, V_h: Array, A_g: Array, V_g: Array) -> bool:
    """Lemma 1: whether Hom(h, g) ≠ 0. Rows of W are those of V; rows of K span the columns of A."""

    def together(*parts: Array) -> int:
        return int(QQ.rank(np.concatenate(parts)))

    K_h, K_g = A_h.T, A_g.T
    if together(V_g) == together(K_h) == 1 == together(V_g, K_h):
        return together(V_h, K_g) < together(V_h) + together(K_g)
    return together(V_h, V_g) == together(V_h) and together(K_g, K_h) == together(K_g)


def _families(classes: list[Pair], total: Array, spare: int, width: int) -> Iterator[list[Pair]]:
    """All heads with the same function that Theorem D2 lists, with rk V ≤ width."""
    zero = classes[0][0] * 0 if classes else None
    for signs in product((1, -1), repeat=len(classes)):
        chosen = [(A * sign, W * sign) for sign, (A, W) in zip(signs, classes)]
        rest = total - sum((W for _, W in chosen), total * 0)
        fits = [QQ.rank(W) <= width for _, W in chosen]
        if not spare:
            if QQ.is_zero(rest) and all(fits):
                yield chosen
            continue
        if all(fits) and zero is not None and QQ.rank(rest) <= width:
            yield [*chosen, (zero, rest)]
        for c, (A, W) in enumerate(chosen):
            if signs[c] == 1 and all(fits[:c] + fits[c + 1 :]):
                first, second = W + rest / 2, rest / 2
                if QQ.rank(first) <= width and QQ.rank(second) <= width:
                    yield [*chosen[:c], *chosen[c + 1 :], (A, first), (-A, second)]
            if QQ.is_zero(rest) and all(fits[:c] + fits[c + 1 :]) and QQ.rank(W) <= 2 * width:
                # Two heads with this A, for W is a sum of two matrices of rank ≤ width: no family without equal A.
                yield [*chosen[:c], *chosen[c + 1 :], (A, W), (A, W * 0)]
