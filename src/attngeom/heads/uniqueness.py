"""Are the heads of this layer unique? Theorem H (lightning), D (softmax), S (sigmoid); else a second set of heads.

Heads of softmax over two tokens, and of sigmoid, are shown up to the sign of (A, V).
By Theorems D and S the function determines Σ V_h and, for each A ≠ 0 up to sign, W_A = Σ ±V_h over the heads with A_h =
±A, and nothing else. So all families of heads with one function can be listed where at most one head is spare: where
there are at most one more heads than classes ±A with W_A ≠ 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.exact.precise import measured_rank
from attngeom.heads.factors import Homs, ReducedHead, factor, find_homs, reduce_heads
from attngeom.heads.results import HeadPair, Uniqueness
from attngeom.layer.coefficients import quadric_table
from attngeom.layer.forms import HeadMatrices, are_equal, head_matrices, layer_form
from attngeom.limits.work import SIGN_CHOICES
from attngeom.network import Weights
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
    W_A, and V_1 + V_2 is what the other classes leave; or, if nothing is missing, with the same sign: V_1 + V_2 = ±W_A.
    It is never alone in a class of its own, for W_A = 0 there.
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
            if not all(fit for h, fit in enumerate(fits) if h != c):
                continue
            others = [head for h, head in enumerate(family) if h != c]
            if domain.is_zero(rest) and domain.rank(W) <= 2 * width:
                left, right, _ = factor(W, domain)
                parts = (domain.matmul(left[:, place], right[place]) for place in (slice(width), slice(width, None)))
                yield [*others, *((A, V) for V in parts)]
            # The other classes leave W + rest.
            V = domain.reduce(domain.times(rest, half) + W)
            if signs[c] == 1 and domain.rank(V) <= width and domain.rank(rest) <= width:
                yield [*others, (A, V), (domain.reduce(-A), domain.times(rest, half))]


def heads_unique(weights: Weights) -> Uniqueness:
    """Whether the head functions of one layer are unique up to order among all layers of its architecture.

    Lightning, t ≥ 2: by Theorem H, if [O_1 … O_H] and [Q_1; …; Q_H] have full rank; a nonzero homomorphism between
    two heads gives a second set of heads without any hypothesis. Softmax: by Theorem D, sigmoid by Theorem S. Rational
    weights are decided exactly, floats by gaps of singular values, as an estimate.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> heads_unique(random_weights(Architecture((4, 4), 2, heads=2), QQ, seed=0)).verdict
    'unique'
    """
    architecture = weights.architecture
    heads = reduce_heads(weights)
    exact = weights.domain.is_exact
    if architecture.heads == 1:
        return Uniqueness(
            standing="theorem", reason="one head is the layer itself", verdict="unique", theorem="one head"
        )
    if architecture.is_cubic:
        uniqueness = _decide_lightning(weights, heads)
    elif architecture.rule.head_theorem is not None:
        uniqueness = _decide_bounded(weights, heads, architecture.rule.head_theorem)
    else:
        uniqueness = _undecided(f"{architecture.kind} attention: there is no theorem on its heads here")
    if exact and uniqueness.verdict == "not_unique" and uniqueness.witness is None:
        raise ArithmeticError("no second set of heads was found although one must exist; this is a defect")
    return uniqueness


def _undecided(reason: str, pairs: tuple[HeadPair, ...] = (), commutant: int | None = None) -> Uniqueness:
    return Uniqueness(
        standing="undecided", reason=reason, verdict="undecided", theorem=None, pairs=pairs, commutant=commutant
    )


def _refuted(
    reason: str,
    theorem: str,
    weights: Weights,
    candidates: Iterator[list[HeadMatrices]],
    pairs: tuple[HeadPair, ...] = (),
    commutant: int | None = None,
) -> Uniqueness:
    """Not unique: the first candidate that was checked is the witness; floats have none."""
    exact = weights.domain.is_exact
    return Uniqueness(
        standing="proven" if exact else "estimate",
        reason=reason,
        verdict="not_unique",
        theorem=theorem,
        pairs=pairs,
        commutant=commutant,
        witness=_first_witness(weights, candidates) if exact else None,
    )


def _decide_lightning(weights: Weights, heads: Sequence[ReducedHead]) -> Uniqueness:
    architecture, domain = weights.architecture, weights.domain
    if architecture.tokens < 2:
        return _undecided("one token: Theorem H needs t ≥ 2")
    zero = [head.index for head in heads if head.is_zero]
    if zero:
        reason = f"head {zero[0] + 1} is zero, and φ = 2φ + (−φ) makes use of it"
        return _refuted(reason, "Theorem H", weights, _double(weights, zero[0]))
    homs = {(h.index, g.index): find_homs(h, g, domain) for h in heads for g in heads}
    total = sum(space.dimension for space in homs.values())
    pairs = tuple(HeadPair(s, t, hom.dimension) for (s, t), hom in homs.items() if s != t and hom.dimension)
    if pairs and all(homs[p.source, p.target].is_clear for p in pairs):
        first = pairs[0]
        reason = f"a homomorphism from head {first.source + 1} to head {first.target + 1} mixes them"
        return _refuted(reason, "Theorem H", weights, _mixed(heads, homs, pairs, domain), pairs, total)
    if not all(hom.is_clear for hom in homs.values()):
        return _undecided("floats do not tell whether spaces of two heads are nested", pairs, total)
    layer = architecture.layers[0]
    totals = sum(head.v for head in heads), sum(head.a for head in heads)
    ranks = (
        measured_rank(np.concatenate([head.O for head in heads], axis=1), domain),
        measured_rank(np.concatenate([head.Q for head in heads]), domain),
    )
    clear = all(rank.is_clear for rank in ranks) and all(rank.is_clear for head in heads for rank in head.ranks)
    if not clear:
        return _undecided("floats do not tell the ranks of the weights", pairs, total)
    if (ranks[0].value, ranks[1].value) != totals:
        reason = (
            f"[O_1 … O_H] has rank {ranks[0].value} of {totals[0]} and [Q_1; …] rank {ranks[1].value} of {totals[1]};"
            " Theorem H needs full ranks"
        )
        return _undecided(reason, pairs, total)
    value_width = layer.value_width if layer.value_width is not None else min(layer.d_in, layer.d_out)
    widest = layer.heads * value_width, layer.heads * min(layer.attention, layer.d_in)
    if totals != widest:
        reason = (
            f"proven only among layers with Σ rank V_h ≤ {totals[0]} and Σ rank A_h ≤ {totals[1]} (Theorem H);"
            f" the architecture allows {widest[0]} and {widest[1]}"
        )
        return _undecided(reason, pairs, total)
    return Uniqueness(
        standing="theorem" if domain.is_exact else "estimate",
        reason="[O_1 … O_H] and [Q_1; …] have full rank, and there is no homomorphism between two heads",
        verdict="unique",
        theorem="Theorem H",
        commutant=total,
    )


def _double(weights: Weights, zero: int) -> Iterator[list[HeadMatrices]]:
    """Heads with φ_h = 2φ_h + (−φ_h) for the first h that is not the given zero head; of a zero layer, φ − φ."""
    domain = weights.domain
    heads = head_matrices(weights)[0]
    # A softmax head with A = 0 takes the mean, a lightning head with A = 0 is zero.
    blind = "Q" not in weights.architecture.rule.factors
    live = [i for i, (A, V) in enumerate(heads) if not domain.is_zero(V) and (blind or not domain.is_zero(A))]
    other = next((i for i in live if i != zero), None)
    if other is None:
        A, V = domain.zeros(heads[0][0].shape), domain.zeros(heads[0][1].shape)
        A[0, 0], V[0, 0] = domain.one, domain.one
        yield [(A, V), (A, domain.reduce(-V)), *[(a, domain.zeros(v.shape)) for a, v in heads[2:]]]
        return
    A, V = heads[other]
    heads[zero], heads[other] = (A, domain.reduce(-V)), (A, domain.reduce(V + V))
    yield heads


def _mixed(
    heads: Sequence[ReducedHead], homs: Mapping[tuple[int, int], Homs], pairs: Sequence[HeadPair], domain: Domain
) -> Iterator[list[HeadMatrices]]:
    """Heads with O_h + ε O_g X and Q_g − ε Y Q_h in place of O_h and Q_g, for the homomorphisms (X, Y): h → g."""
    multiply = domain.matmul
    for pair in pairs:
        h, g, hom = heads[pair.source], heads[pair.target], homs[pair.source, pair.target]
        if hom.X is None or hom.Y is None:
            continue
        for step in (1, 2, 3):
            epsilon = domain.convert([step])
            changed = [(multiply(x.K.T, x.Q), multiply(x.O, x.W)) for x in heads]
            O = domain.reduce(h.O + domain.times(multiply(g.O, hom.X), epsilon))
            Q = domain.reduce(g.Q - domain.times(multiply(hom.Y, h.Q), epsilon))
            changed[h.index] = changed[h.index][0], multiply(O, h.W)
            changed[g.index] = multiply(g.K.T, Q), changed[g.index][1]
            yield changed


def _first_witness(weights: Weights, candidates: Iterator[list[HeadMatrices]]) -> Weights | None:
    """The first candidate with the same layer and other heads, as weights of the architecture."""
    for heads in candidates:
        witness = _build(weights, heads)
        if _is_witness(weights, witness):
            return witness
    return None


def _build(weights: Weights, heads: Sequence[HeadMatrices]) -> Weights:
    """Weights of the architecture with these (A, V), whose ranks must fit."""
    architecture, domain = weights.architecture, weights.domain
    layer = architecture.layers[0]
    assert layer.value_width is not None
    tensors: dict[str, Array] = {}
    for index, (A, V) in enumerate(heads):
        Kt, Q, _ = factor(A, domain)
        O, W, _ = factor(V, domain)
        for letter, rows in (("Q", Q), ("K", Kt.T), ("V", W), ("O", O.T)):
            width = layer.attention if letter in "QK" else layer.value_width
            padded = domain.zeros((width, rows.shape[1]))
            padded[: len(rows)] = rows
            tensors[architecture.tensor_name(0, index, letter)] = padded.T if letter == "O" else padded
    return Weights.from_tensors(architecture, tensors, domain)


def _is_witness(weights: Weights, other: Weights) -> bool:
    """Whether both have one function and other head functions, exactly; lightning with t ≥ 2, softmax and sigmoid."""
    domain, rule, tokens = weights.domain, weights.architecture.rule, weights.architecture.tokens
    sides = [head_matrices(side)[0] for side in (weights, other)]
    if not are_equal(domain, *(layer_form(heads, rule, tokens, domain) for heads in sides)):
        return False

    def name(A: Array, V: Array) -> str:
        if weights.architecture.is_cubic:
            return str(quadric_table(A, V, domain).tolist())
        # The function of one head with V = 0 does not show A.
        return str((None if domain.is_zero(V) else _seen(A, weights).tolist(), V.tolist()))

    one, two = (sorted(name(A, V) for A, V in heads) for heads in sides)
    return one != two


def _seen(A: Array, weights: Weights) -> Array:
    """What the function of one head with V ≠ 0 shows of A: one token of softmax nothing, of sigmoid A + Aᵀ."""
    domain, architecture = weights.domain, weights.architecture
    if architecture.tokens > 1:
        return A
    return domain.zeros(A.shape) if architecture.view == "nothing" else domain.reduce(A + A.T)


def _decide_bounded(weights: Weights, heads: Sequence[ReducedHead], theorem: str) -> Uniqueness:
    """Theorem D for t ≥ 3: heads with different A and V ≠ 0 are unique; else up to signs that can be changed."""
    architecture, domain = weights.architecture, weights.domain
    if not domain.is_exact:
        return _undecided(f"{theorem} compares attention matrices, which floats do not tell apart; give exact weights")
    matrices = head_matrices(weights)[0]
    dead = next((i for i, (_, V) in enumerate(matrices) if domain.is_zero(V)), None)
    if dead is not None:
        reason = f"head {dead + 1} has V = 0, and φ = 2φ + (−φ) makes use of it"
        return _refuted(reason, theorem, weights, _double(weights, dead))
    shown = [_seen(A, weights) for A, _ in matrices]
    for i, j in combinations(range(len(matrices)), 2):
        if domain.equal(shown[i], shown[j]):
            why = "both have the same A" if architecture.tokens > 1 else "one token sees no difference of their A"
            reason = f"a part of V can be moved between heads {i + 1} and {j + 1}: {why}"
            return _refuted(reason, theorem, weights, _moved(heads, matrices, i, j, domain))
    if architecture.view == "plain":
        reason = "the A_h are pairwise different and no V_h is zero"
        return Uniqueness(standing="theorem", reason=reason, verdict="unique", theorem=theorem)
    return _decide_signed(weights, matrices, theorem)


def _moved(
    heads: Sequence[ReducedHead], matrices: list[HeadMatrices], i: int, j: int, domain: Domain
) -> Iterator[list[HeadMatrices]]:
    """V_i + o wᵀ and V_j − o wᵀ with o in the image of V_i and w in the rows of V_j: no rank grows."""
    for step in (1, 2, 3):
        part = domain.times(heads[i].O[:, :1] * heads[j].W[:1], domain.convert([step]))
        changed = list(matrices)
        changed[i] = matrices[i][0], domain.reduce(matrices[i][1] + part)
        changed[j] = matrices[j][0], domain.reduce(matrices[j][1] - part)
        yield changed


def _decide_signed(weights: Weights, matrices: list[HeadMatrices], theorem: str) -> Uniqueness:
    """Heads that are shown up to the sign of (A, V): all families with one function, if at most one head is spare."""
    architecture, domain = weights.architecture, weights.domain
    seen = sort_heads(matrices, architecture.rule, architecture.tokens, domain)
    if seen.silent:
        names = " and ".join(str(h + 1) for h in seen.silent)
        reason = f"heads {names} have opposite A and equal V, which does not show A"
        changed = [(domain.reduce(A + A), V) if h in seen.silent else (A, V) for h, (A, V) in enumerate(matrices)]
        return _refuted(reason, theorem, weights, iter([changed]))
    if 2 ** len(seen.classes) > SIGN_CHOICES:
        return _undecided(f"{len(seen.classes)} heads have too many choices of signs")
    if seen.spare > 1:
        return _undecided(f"{seen.spare} heads with A = 0, or with A = −A_h for another one: {theorem} leaves it open")
    width = architecture.layers[0].value_width
    assert width is not None
    families = (
        family for family in list_families(seen, width, domain) if _is_witness(weights, _build(weights, family))
    )
    if (other := next(families, None)) is not None:
        reason = "other signs of (A, V) have the same sum of values"
        if seen.spare:
            reason = "other signs of (A, V), or another part of a head with A = 0, have the same function"
        return _refuted(reason, theorem, weights, iter([other]))
    reason = "no other choice of signs of (A, V) has the same sum of values"
    if seen.spare:
        reason = "no other choice of signs of (A, V), and of the head that is left, has values of these ranks"
    return Uniqueness(standing="theorem", reason=reason, verdict="unique", theorem=theorem)
