"""Heads that the function shows up to the sign of (A, V): softmax over two tokens, and sigmoid.

By Theorems D and S the function determines Σ V_h and, for each A ≠ 0 up to sign, W_A = Σ ±V_h over the heads with A_h =
±A, and nothing else. So all families of heads with one function can be listed where at most one head is spare: where
there are at most one more heads than classes ±A with W_A ≠ 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from attngeom.exact.domains import Array, Domain
from attngeom.layer.forms import HeadMatrices, layer_form
from attngeom.network.attention import Attention
from attngeom.network.attention.kind import Key


@dataclass(frozen=True)
class SignedHeads:
    """The data that a function shows: Σ V_h, and (A, W_A) for each class; A is zero for no class.

    ``silent`` are the heads, counted from 0, of a class with W_A = 0: the function does not show their A.
    """

    total: Array
    classes: tuple[HeadMatrices, ...]
    spare: int
    silent: tuple[int, ...]


def sort_heads(heads: Sequence[HeadMatrices], rule: Attention, tokens: int, domain: Domain) -> SignedHeads:
    """The classes of the heads of one layer; one token of sigmoid sees A + Aᵀ in place of A."""
    form = layer_form(heads, rule, tokens, domain)
    total = form.get((), domain.zeros(heads[0][1].shape))
    members: dict[Key, list[int]] = {}
    for index, (A, V) in enumerate(heads):
        for key in (key for key, _ in rule.terms(A, V, tokens, domain) if key):
            members.setdefault(key, []).append(index)
    silent = next((tuple(indices) for key, indices in members.items() if key not in form), ())
    classes = []
    for key, (first, *_) in members.items():
        A, V = heads[first]
        # W_A belongs to the one of A and −A that the key names.
        is_named = any(name == key and domain.equal(W, V) for name, W in rule.terms(A, V, tokens, domain))
        if key in form:
            classes.append((A if is_named else domain.reduce(-A), form[key]))
    return SignedHeads(total, tuple(classes), len(heads) - len(classes), silent)


def list_families(seen: SignedHeads, width: int, domain: Domain) -> Iterator[list[HeadMatrices]]:
    """All families of heads with rk V_h ≤ width that show the same, if at most one head is spare.

    One head of each class has ±(A, W_A), by some choice of signs. Without a spare head these must add up to Σ V_h. A
    spare head has A = 0 and what is missing, or it is the second head of a class, with the other sign: then V_1 − V_2 =
    W_A, and V_1 + V_2 is what the other classes leave. (With the same sign nothing may be missing, and then the spare
    head may be zero.) It is never alone in a class of its own, for W_A = 0 there.
    """
    for signs in product((1, -1), repeat=len(seen.classes)):
        family = [
            (A, W) if sign == 1 else (domain.reduce(-A), domain.reduce(-W)) for sign, (A, W) in zip(signs, seen.classes)
        ]
        rest = domain.reduce(seen.total - sum((W for _, W in family), domain.zeros(seen.total.shape)))
        fits = [domain.rank(W) <= width for _, W in family]
        if not seen.spare:
            if domain.is_zero(rest) and all(fits):
                yield family
            continue
        size = seen.classes[0][0].shape if seen.classes else None
        if all(fits) and size is not None and domain.rank(rest) <= width:
            yield [*family, (domain.zeros(size), rest)]
        half = domain.convert([[1]]) / 2
        for c, (A, W) in enumerate(family):
            # The other classes leave W + rest.
            if signs[c] == -1 or not all(fit for h, fit in enumerate(fits) if h != c):
                continue
            V = domain.reduce(domain.times(rest, half) + W)
            if domain.rank(V) <= width and domain.rank(rest) <= width:
                others = [head for h, head in enumerate(family) if h != c]
                yield [*others, (A, V), (domain.reduce(-A), domain.times(rest, half))]
