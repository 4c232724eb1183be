"""Pairs of weights made to mislead a comparison, with the truth known from how they were made.

Exact pairs are rational. "Same" pairs are equal functions by construction, whatever the ranks. "Different" pairs are
told by their exact outputs (lightning), or by outputs enclosed at several sizes of the input (softmax).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from flint import fmpq

from attngeom.exact import QQ
from attngeom.exact.domains import Balls
from attngeom.network import Architecture, Head, Weights, forward, random_symmetry, random_weights


@dataclass(frozen=True, eq=False)
class Pair:
    """Two weights, whether they are one function (None: not known), and how they were made."""

    name: str
    first: Weights
    second: Weights
    same: bool | None


def random_architecture(rng: np.random.Generator, kind: str, **fixed: object) -> Architecture:
    """A small architecture of any variant; ``fixed`` overrules what is drawn."""
    layers = int(rng.integers(1, 4))
    residual = bool(rng.integers(2)) if rng.integers(3) == 0 else False
    heads = int(rng.integers(1, 4)) if rng.integers(2) else 1
    width = int(rng.integers(1, 4))
    drawn: dict[str, object] = {
        "layers": layers,
        "tokens": int(rng.integers(1, 5)),
        "heads": heads,
        "residual": residual,
        "causal": bool(rng.integers(2)) if rng.integers(3) == 0 else False,
        "value_width": int(rng.integers(1, 4)) if heads > 1 or rng.integers(4) == 0 else None,
    } | fixed
    layers = drawn.pop("layers")
    widths = [width] * (layers + 1) if drawn["residual"] else [int(x) for x in rng.integers(1, 4, size=layers + 1)]
    widths = drawn.pop("widths", widths)
    attention = drawn.pop("attention", [int(x) for x in rng.integers(1, 4, size=layers)])
    return Architecture(widths, attention, kind=kind, **drawn)


def change(weights: Weights, **tensors: object) -> Weights:
    """The weights with some tensors replaced, names with underscores for dots."""
    named = dict(weights.tensors()) | {name.replace("_", "."): array for name, array in tensors.items()}
    return Weights.from_tensors(weights.architecture, named, weights.domain)


def with_layers(weights: Weights, layers: list[list[Head]]) -> Weights:
    return Weights(weights.architecture, weights.domain, tuple(tuple(heads) for heads in layers))


def degenerate(weights: Weights, rng: np.random.Generator) -> Weights:
    """Some tensors zero, some of rank one, some heads copies of others, entries from a small set."""
    layers = []
    for heads in weights.layers:
        new: list[Head] = []
        for head in heads:
            tensors = dict(head.tensors)
            for name in tensors:
                fate = rng.integers(8)
                if fate == 0:
                    tensors[name] = tensors[name] * 0
                elif fate == 1:
                    tensors[name] = QQ.matmul(tensors[name][:, :1], tensors[name][:1])
                elif fate == 2:
                    tensors[name] = QQ.convert(rng.integers(-1, 2, size=tensors[name].shape))
            if new and rng.integers(3) == 0:
                twin = new[int(rng.integers(len(new)))]
                sign = int(rng.choice([-1, 1]))
                tensors |= {"Q": twin.Q, "K": twin.K * sign}
                if rng.integers(2):
                    tensors |= {"V": twin.V * int(rng.choice([-1, 1, 2]))}
                    tensors |= {} if twin.O is None else {"O": twin.O}
            new.append(Head(**tensors))
        layers.append(new)
    return with_layers(weights, layers)


def orbit(rng: np.random.Generator, kind: str) -> Pair:
    """w and g · w."""
    architecture = random_architecture(rng, kind)
    first = random_weights(architecture, QQ, int(rng.integers(10**6)))
    if rng.integers(2):
        first = degenerate(first, rng)
    return Pair("orbit", first, random_symmetry(architecture, QQ, int(rng.integers(10**6))).apply(first), True)


def changed(rng: np.random.Generator, kind: str) -> Pair:
    """w and g · w with one entry changed, by much or by little."""
    pair = orbit(rng, kind)
    vector = pair.second.vector().copy()
    amount = fmpq(1, 10 ** int(rng.integers(0, 30))) if rng.integers(2) else fmpq(int(rng.integers(1, 9)))
    vector[int(rng.integers(len(vector)))] += amount
    second = Weights.from_vector(pair.second.architecture, vector, QQ)
    return Pair("changed", pair.first, second, False if differs(pair.first, second, rng) else None)


def unrelated(rng: np.random.Generator, kind: str) -> Pair:
    """Two draws from a small set, so that coincidences happen."""
    architecture = random_architecture(rng, kind)
    first, second = (degenerate(random_weights(architecture, QQ, int(rng.integers(10**6))), rng) for _ in range(2))
    return Pair("unrelated", first, second, False if differs(first, second, rng) else None)


def split_heads(rng: np.random.Generator, kind: str) -> Pair:
    """Σ_h V_h with one A, distributed over the heads in two ways; one head may cancel another."""
    architecture = random_architecture(rng, kind, heads=3, value_width=2)
    first = random_weights(architecture, QQ, int(rng.integers(10**6)))
    one, two = [], []
    for heads in first.layers:
        a, b, c = heads
        # O_b V_b is written as O_b (V_b − N) + O_b N, with the same Q and K.
        part = QQ.convert(rng.integers(-3, 4, size=b.V.shape))
        one.append([a, b, Head(b.Q, b.K, b.V * 0, b.O)])
        two.append([Head(b.Q, b.K, part, b.O), a, Head(b.Q * 2, b.K / 2, b.V - part, b.O)])
        del c
    return Pair("split heads", with_layers(first, one), with_layers(first, two), True)


def after_blind(rng: np.random.Generator, kind: str) -> Pair:
    """Softmax without skip: all tokens are equal after a layer with A = 0, or skew and t = 2; later A are not seen."""
    tokens = int(rng.integers(2, 4))
    layers = int(rng.integers(2, 4))
    width = int(rng.integers(2, 4))
    architecture = Architecture((width,) * (layers + 1), width, tokens=tokens, kind="softmax")
    first = random_weights(architecture, QQ, int(rng.integers(10**6)))
    blind = int(rng.integers(layers - 1))
    half = QQ.convert(rng.integers(-3, 4, size=(width, width)))
    skew = half - half.T if tokens == 2 else half * 0
    tensors = {f"layers_{blind}_K": QQ.eye(width), f"layers_{blind}_Q": skew}
    first = change(first, **tensors)
    later = {f"layers_{layers - 1}_Q": QQ.convert(rng.integers(-3, 4, size=(width, width)))}
    second = random_symmetry(architecture, QQ, int(rng.integers(10**6))).apply(change(first, **later))
    return Pair("after a blind layer", first, second, True)


def two_tokens(rng: np.random.Generator, kind: str) -> Pair:
    """One softmax layer, t = 2: (A_h, V_h) → (−A_h, −V_h) for heads with ΣV_h = 0."""
    architecture = random_architecture(rng, "softmax", layers=1, tokens=2, heads=3, value_width=2)
    weights = random_weights(architecture, QQ, int(rng.integers(10**6)))
    a, b, c = weights.layers[0]
    c = Head(c.Q, c.K, b.V, -b.O)
    flipped = [a, *(Head(-head.Q, head.K, -head.V, head.O) for head in (b, c))]
    return Pair("two tokens", with_layers(weights, [[a, b, c]]), with_layers(weights, [flipped]), True)


def one_token(rng: np.random.Generator, kind: str) -> Pair:
    """One token: softmax sees no A, lightning sees A + Aᵀ."""
    width = int(rng.integers(1, 4))
    architecture = random_architecture(rng, kind, tokens=1, attention=width, layers=2, widths=[width] * 3)
    first = random_weights(architecture, QQ, int(rng.integers(10**6)))
    layers = []
    for heads in first.layers:
        new = []
        for head in heads:
            half = QQ.convert(rng.integers(-3, 4, size=(width, width)))
            A = head.attention_matrix(QQ) + (half - half.T if kind == "lightning" else half)
            new.append(Head(A, QQ.eye(width), head.V, head.O))
        layers.append(new)
    return Pair("one token", first, with_layers(first, layers), True)


def identity_layers(rng: np.random.Generator, kind: str) -> Pair:
    """A skip connection around layers that add nothing: they may stand anywhere."""
    architecture = random_architecture(rng, kind, layers=3, residual=True, attention=2)
    first = random_weights(architecture, QQ, int(rng.integers(10**6)))
    layers = list(first.layers)
    idle = [[Head(h.Q, h.K, h.V * 0, h.O) for h in heads] for heads in layers]
    if architecture.heads >= 2:
        a = layers[0][0]
        idle[0][:2] = [a, Head(a.Q, a.K, -a.V, a.O)]
    if rng.integers(4) == 0:
        return Pair("identity layers", with_layers(first, idle), with_layers(first, idle[::-1]), True)
    one, two = [layers[0], idle[0], layers[2]], [idle[1], layers[0], layers[2]]
    return Pair("identity layers", with_layers(first, one), with_layers(first, two), True)


def residues_agree(rng: np.random.Generator, kind: str) -> Pair:
    """V = 1 and V = 1 + a product of primes that everybody knows."""
    from attngeom.comparison.separation import random_prime
    from attngeom.exact.numbers import BIG_PRIME, WORD_PRIME

    architecture = random_architecture(rng, kind, widths=[1, 1], layers=1, attention=1, heads=1, residual=False)
    first = random_weights(architecture, QQ, int(rng.integers(10**6)))
    ones = {name.replace(".", "_"): QQ.convert(np.ones(array.shape, dtype=int)) for name, array in first.tensors()}
    known = WORD_PRIME * BIG_PRIME
    for seed in range(3):
        for _ in range(8):
            known *= random_prime(np.random.default_rng(seed))
        generator = np.random.default_rng(seed)
        known *= random_prime(generator) * random_prime(generator) * random_prime(generator)
    first = change(first, **ones)
    name = next(name for name in ones if name.endswith("_V"))
    return Pair("known primes", first, change(first, **{name: ones[name] * (1 + fmpq(known))}), False)


EXACT: tuple[Callable[[np.random.Generator, str], Pair], ...] = (
    orbit,
    changed,
    unrelated,
    split_heads,
    after_blind,
    two_tokens,
    one_token,
    identity_layers,
    residues_agree,
)


def exact_pairs(count: int, seed: int) -> Iterator[Pair]:
    """Rational pairs of all kinds in turn, each also with its sides exchanged."""
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        make = EXACT[index % len(EXACT)]
        kind = "softmax" if (index // len(EXACT)) % 2 else "lightning"
        pair = make(rng, kind)
        if rng.integers(2):
            pair = Pair(pair.name, pair.second, pair.first, pair.same)
        yield pair


def differs(first: Weights, second: Weights, rng: np.random.Generator) -> bool:
    """Whether some random input certainly tells two exact networks apart."""
    shape = (first.architecture.widths[0], first.architecture.tokens)
    softmax = first.architecture.kind == "softmax"
    for size in (1, 1, fmpq(1, 7), fmpq(1, 50), fmpq(1, 10**5)) if softmax else (1, 1, 1):
        X = QQ.convert(rng.integers(-9, 10, size=shape)) * size
        domain = Balls(700) if softmax else QQ
        outputs = [forward(weights.to(domain), domain.convert(X)) for weights in (first, second)]
        if not domain.equal(*outputs):
            return True
    return False
