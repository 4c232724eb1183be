"""What the function of a rational lightning network with one head shows of its virtual weights (M, L).

Theorems F, F1 and Fc (docs/theorems/comparison.md): normal forms, a scale for each of them, and one equation between
the scales. Equal functions follow from equal forms without any hypothesis; the converse is what the theorems say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from flint import fmpq

from attngeom.exact.domains import QQ, Array
from attngeom.network import Weights


@dataclass(frozen=True)
class Shown:
    """Normal forms of what is seen, and the scales (λ_1..λ_l, ρ) of M_1..M_l and L beside them.

    ``symmetric_after`` is the number of layers of which M_i itself is seen; of later ones it is M_i + M_iᵀ.
    """

    forms: tuple[Hashable, ...]
    scales: tuple[fmpq, ...]
    symmetric_after: int


def show(weights: Weights) -> Shown | None:
    """What the function shows of (M, L); None if it is zero.

    One token sees M_i + M_iᵀ only. Without a mask this holds after the first layer j with M_j = k qᵀ (F1): all tokens
    then are multiples of one vector. If besides L = h vᵀ, only the product of v·y and the powers q_i(y)^(3^(l-i)),
    i > j, is seen, and k and v are exchangeable where it is a power of v·y.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 3, 3), (1, 2)), QQ, seed=0)
    >>> show(w).symmetric_after
    1
    """
    architecture, virtual = weights.architecture, weights.virtual()
    layers, one_token = architecture.num_layers, architecture.tokens == 1
    if QQ.is_zero(virtual.L) or any(map(QQ.is_zero, virtual.M)):
        return None
    whole = 0 if one_token else layers if architecture.mask.hides else _first_rank_one(virtual.M)
    later = [QQ.reduce(M + M.T) for M in virtual.M[whole:]]
    if any(map(QQ.is_zero, later)):
        return None
    normal = [_normalise(M) for M in virtual.M[:whole]]
    forms: list[Hashable] = [form for form, _ in normal]
    scales = [scale for _, scale in normal]
    if QQ.rank(virtual.L) >= 2:
        normal = [_normalise(matrix) for matrix in (*later, virtual.L)]
        forms += [form for form, _ in normal]
        return Shown(tuple(forms), (*scales, *(scale for _, scale in normal)), whole)
    image, v, scale = _split(virtual.L)
    factors: Counter[Hashable] = Counter({v: 1})
    for i, S in enumerate(later, start=whole + 1):
        root, constant = _factor(S)
        scales.append(constant)
        for factor, multiplicity in root.items():
            factors[factor] += multiplicity * 3 ** (layers - i)
    seen: Hashable = frozenset(factors.items())
    if whole and len(factors) == 1 and QQ.rank(virtual.M[whole - 1]) == 1:
        k, q, _ = _split(virtual.M[whole - 1])
        forms[-1], seen = q, frozenset((k, v))
    return Shown((*forms, image, seen), (*scales, scale), whole)


def virtual_scales(first: Weights, second: Weights) -> tuple[fmpq, ...] | None:
    """The scales (λ_1..λ_l, ρ) between what two functions show of (M, L), if ρ Π λ_i^(3^(l-i)) = 1, or None.

    If they exist the functions are equal: [G] Eq 13, which needs no hypothesis. Two zero functions have the scales 1.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 2), 2), QQ, seed=0)
    >>> virtual_scales(w, w)
    (1, 1)
    """
    if not first.architecture.has_virtual_weights:
        return None
    one, two = show(first), show(second)
    if one is None or two is None:
        return (fmpq(1),) * (first.architecture.num_layers + 1) if one is two else None
    scales = tuple(b / a for a, b in zip(one.scales, two.scales, strict=True))
    return scales if one.forms == two.forms and _satisfy_equation(list(scales)) else None


def _first_rank_one(M: tuple[Array, ...]) -> int:
    """The number of the first matrix of rank one, counted from 1; the number of all if there is none."""
    return next((i for i, matrix in enumerate(M, start=1) if QQ.rank(matrix) == 1), len(M))


def _normalise(a: Array) -> tuple[tuple[fmpq, ...], fmpq]:
    """The entries divided by the first nonzero one, and that one."""
    entries = a.ravel().tolist()
    scale = entries[QQ.pivot(a)]
    return tuple(x / scale for x in entries), scale


def _split(a: Array) -> tuple[Hashable, Hashable, fmpq]:
    """(k, q, c) with a = c k qᵀ for a matrix of rank one, the first nonzero entries of k and q being 1.

    >>> _split(QQ.convert([[0, 0], [2, 4]]))
    ((0, 1), (1, 2), 2)
    """
    row, column = divmod(QQ.pivot(a), a.shape[1])
    scale = a[row, column]
    return tuple(x / scale for x in a[:, column].tolist()), tuple(x / scale for x in a[row].tolist()), scale


def _factor(S: Array) -> tuple[Counter[Hashable], fmpq]:
    """The irreducible factors over Q of the form yᵀSy ≠ 0, with multiplicities, and the constant beside them.

    Forms of rank three or more are irreducible; one of rank two splits where its discriminant is a square.

    >>> _factor(QQ.convert([[2, 0], [0, -8]]))
    (Counter({(1, 2): 1, (1, -2): 1}), 2)
    """
    echelon = QQ.rref(S)
    if echelon.rank == 1:
        _, linear, scale = _split(S)
        return Counter({linear: 2}), scale
    entries, scale = _normalise(S)
    irreducible = Counter[Hashable]({entries: 1}), scale
    if echelon.rank > 2:
        return irreducible
    # yᵀSy = a u² + 2b uw + c w² in the coordinates u, w that the two rows of the echelon form are.
    i, j = echelon.pivots
    a, b, c = S[i, i], S[i, j], S[j, j]
    root = QQ.sqrt(b * b - a * c)
    if root is None:
        return irreducible
    u, w = echelon.matrix
    pair = [a * u + (b + root) * w, a * u + (b - root) * w] if a else [w, 2 * b * u + c * w]
    (one, _), (two, _) = map(_normalise, pair)
    product = QQ.reduce(QQ.convert(one)[:, None] * QQ.convert(two)[None, :])
    product = QQ.reduce(product + product.T)
    place = QQ.pivot(product)
    return Counter[Hashable]([one, two]), 2 * S.ravel()[place] / product.ravel()[place]


def _satisfy_equation(scales: list[fmpq]) -> bool:
    """Whether ρ Π λ_i^(3^(l-i)) = 1 for (λ_1..λ_l, ρ) ≠ 0: P_l = 1/ρ, where P_0 = 1 and P_i = P_{i-1}³ λ_i.

    Rational cube roots are unique, so P_l leads back to P_0, and no large power is taken.

    >>> _satisfy_equation([fmpq(2), fmpq(-1, 8), fmpq(1), fmpq(1)]), _satisfy_equation([fmpq(2), fmpq(1, 8), fmpq(1)])
    (False, True)
    """
    *factors, last = scales
    product = 1 / last
    for factor in reversed(factors):
        cube = product / factor
        product = fmpq(abs(cube.p).root(3) * (1 if cube > 0 else -1), cube.q.root(3))
        if product**3 != cube:
            return False
    return bool(product == 1)
