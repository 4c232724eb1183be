"""[G] Theorem 3.7: the fiber of a deep lightning network in its virtual weights (M, L) consists of rescalings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from attngeom.exact import GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, matmul_mod
from attngeom.exact.modular import laplace_expansion
from attngeom.limits.memory import FIBER_CHUNK
from attngeom.network import Architecture, Weights
from attngeom.network.tangent import jacobian
from attngeom.network.virtual import forward_recursion
from attngeom.network.weights import VirtualWeights
from attngeom.papers.layer_fibers import quadratic_forms
from attngeom.papers.records import Check, Checks, Work, finds
from attngeom.papers.symbolic import generic

FIELD = GF(WORD_PRIME)


def virtual_jacobian(M: list[Array], L: Array, tokens: int, seed: int) -> tuple[Array, slice]:
    """The Jacobian mod p in (M_1..M_l, L), one row for each entry, and the rows of M_l.

    The network with Q_i = M_i, K_i = I, V_1 = … = V_{l−1} = I and V_l = L has exactly these virtual weights.
    """
    d, d_out, l = len(L.T), len(L), len(M)
    architecture = Architecture((*(d,) * l, d_out), d, tokens=tokens)
    tensors = {name: FIELD.eye(d) for name, _ in architecture.tensor_shapes()}
    tensors |= {f"layers.{i}.Q": matrix for i, matrix in enumerate(M)} | {f"layers.{l - 1}.V": L}
    slots = architecture.slots()
    keep = np.concatenate([np.r_[slots[f"layers.{i}.Q"]] for i in range(l)] + [np.r_[slots[f"layers.{l - 1}.V"]]])
    X = FIELD.random((len(keep) // (tokens * d_out) + len(keep), d, tokens), np.random.default_rng(seed))
    J = jacobian(Weights.from_tensors(architecture, tensors, FIELD), X)[keep]
    return J, slice((l - 1) * d * d, l * d * d)


def special_points(d: int, l: int, rng: np.random.Generator) -> Iterator[tuple[str, list[Array]]]:
    """Weights that satisfy the hypotheses: random ones, and those where the printed proof has gaps."""
    yield "random", [FIELD.random((d, d), rng) for _ in range(l)]
    skew = FIELD.random((d, d), rng)
    yield "skew M₁", [FIELD.reduce(skew - skew.T), *(FIELD.random((d, d), rng) for _ in range(l - 1))]
    split = FIELD.zeros((d, d))
    split[0, 0], split[1, 1] = 1, WORD_PRIME - 1
    yield "M_i = diag(1, −1) for i > 1", [FIELD.random((d, d), rng), *[split] * (l - 1)]
    yield "M_i = diag(1, −1) for all i", [split] * l
    low = [matmul_mod(FIELD.random((d, 2), rng), FIELD.random((2, d), rng), WORD_PRIME) for _ in range(l)]
    yield "rank 2", low


@finds(
    "exact ranks mod p meet the l scalings; all networks with small entries compared at two random inputs mod p;"
    " the counterexample is an identity of polynomials",
    "d₀ = 2, l = 2, J = ((0, 1), (−1, 0)): (M₁, M₂, L) = (J, I, L) and (I, J, L) give the same function for every t"
    " and L ≠ 0; the first satisfies the hypotheses. M₁ must not be skew-symmetric either.",
    (WORD_PRIME,),
)
def run_deep_fibers(work: Work) -> Checks:
    """[G] Theorem 3.7 by infinitesimal fibers, linear uniqueness of M_l, and all networks with small entries."""
    rng = np.random.default_rng(work.seed)
    for d, l in work.choose(((2, 2), (3, 2), (2, 3)), ((2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (2, 4))):
        for name, M in special_points(d, l, rng):
            J, last = virtual_jacobian(M, FIELD.random((1, d), rng), 3, work.seed)
            kernel, label = len(J) - rank_mod_p(J, WORD_PRIME), f"d = {d}, l = {l}, {name}"
            unique = rank_mod_p(J[last], WORD_PRIME) == d * d
            statement = f"the fiber has dimension {kernel} = l, so it is the scalings near this point"
            yield Check(f"{label}: {statement}", kernel == l)
            yield Check(f"{label}: M_l is unique given the others (the function is linear in it)", unique)
    for search in work.choose(SEARCHES[:1], SEARCHES):
        count = search_networks(search, work.seed)
        label = f"d = 2, l = {search.layers}, d_l = 1, t = 3, {count.networks} networks with {search.name}"
        counted = f"{count.claimed} functions, {count.wrong} have"
        yield Check(f"{label}: no function under the hypotheses has other weights ({counted})", count.wrong == 0)
        statement = f"{label}: none has if M₁ is not skew-symmetric either ({count.corrected} functions)"
        yield Check(statement, count.wrong_corrected == 0, "correction")
        statement = f"{label}: {count.others} functions outside the hypotheses have other weights"
        yield Check(statement, count.others > 0, "support")
    for t in (2, 3):
        yield Check(f"t = {t}: φ(B, J, L) = det(B) φ(J, B, L) in Q[B, L, X]", swap_identity(t), "correction")
    statement = (
        "t = 2: the layer X ↦ X m, m = XᵀM X, is dominant: det(G ↦ Gm + Gᵀm + mG) is 3 det(m) times"
        " 3p² + 3ps + 3s² + q² + qr + r², m = ((p, q), (r, s))"
    )
    yield Check(statement, dominance_identity(), "correction")
    statement = "a positive definite form: its Gram matrix has the leading minors 3, 27/4, 27/4, 81/16"
    yield Check(statement, dominance_form() == ["3", "27/4", "27/4", "81/16"], "correction")
    irreducible, nonzero = not quadratic_forms()[1], has_linear_part()
    yield Check("rk M ≥ 2 makes the quadric xᵀM x irreducible", irreducible, "printed proof")
    yield Check("Equation 28 is not zero under the hypotheses", nonzero, "printed proof")
    yield Check("diag(1, −1) has rank 2 and the quadric (x₁ − x₂)(x₁ + x₂)", not irreducible, "correction")
    yield Check("M₁ = J has rank 2 and makes Equation 28 zero for l = 2", not nonzero, "correction")


def swap_identity(t: int) -> bool:
    """For d = 2 and generic B, L, X: the network (B, J, L) equals det B times the network (J, B, L), as polynomials.

    With G = X Xᵀ, G J G = det(G) J and Bᵀ J B = det(B) J, both are multiples of L G B G J X.
    """
    ring, B, L, X = generic(B=(2, 2), L=(1, 2), x=(2, t))
    J = ring.convert([[0, 1], [-1, 0]])
    first = forward_recursion(VirtualWeights((B, J), L, ring), X)
    second = forward_recursion(VirtualWeights((J, B), L, ring), X)
    determinant = ring.det(B)
    return bool(all(f == determinant * g for f, g in zip(first.ravel(), second.ravel())))


def dominance_identity() -> bool:
    """det(G ↦ G m + Gᵀ m + m G) = 3 det(m) (3p² + 3ps + 3s² + q² + qr + r²) in Q[p, q, r, s] (Theorem F).

    >>> dominance_identity()
    True
    """
    ring, m = generic(m=(2, 2))
    (p, q), (r, s) = m
    units = [ring.convert(unit) for unit in np.eye(4, dtype=np.int64).reshape(4, 2, 2)]
    columns = [(ring.matmul(G, m) + ring.matmul(G.T, m) + ring.matmul(m, G)).ravel() for G in units]
    form = 3 * p**2 + 3 * p * s + 3 * s**2 + q**2 + q * r + r**2
    return bool(laplace_expansion([list(row) for row in columns]) == 3 * (p * s - q * r) * form)


def dominance_form() -> list[str]:
    """The leading minors of the Gram matrix of 3p² + 3ps + 3s² + q² + qr + r², variables p, s, q, r."""
    half = "1/2"
    gram = QQ.convert([[3, "3/2", 0, 0], ["3/2", 3, 0, 0], [0, 0, 1, half], [0, 0, half, 1]])
    return [str(QQ.det(gram[:n, :n])) for n in range(1, 5)]


def has_linear_part() -> bool:
    """Whether Equation 28, the part of φ_1 linear in x_1, is nonzero for M_1 = J, M_2 = I at some of six inputs."""
    virtual = VirtualWeights((QQ.convert([[0, 1], [-1, 0]]), QQ.eye(2)), QQ.convert([[1, 0]]), QQ)
    tokens = product(([1, 0], [0, 1]), ([1, 2], [3, 1], [-2, 5]))
    return any(_linear_part(virtual, QQ.convert([*pair]).T) != 0 for pair in tokens)


def _linear_part(virtual: VirtualWeights, X: Array) -> object:
    """The coefficient of s in φ(s x_1, x_2)_1, a polynomial of degree 9 in s, by interpolation at s = 0 … 9."""
    nodes = range(10)
    vandermonde = QQ.convert([[s**k for k in nodes] for s in nodes])
    values = [forward_recursion(virtual, X * QQ.convert([[s, 1]]))[:, :1] for s in nodes]
    return QQ.matmul(QQ.inverse(vandermonde), np.concatenate(values))[1, 0]


@dataclass(frozen=True)
class Search:
    """All networks with matrices and vectors of a list: entries from a set, or a few chosen matrices."""

    layers: int
    name: str
    matrices: tuple[tuple[int, int, int, int], ...]
    vectors: tuple[tuple[int, int], ...]


def _all_entries(layers: int, entries: tuple[int, ...]) -> Search:
    matrices = tuple((a, b, c, d) for a, b, c, d in product(entries, repeat=4))
    return Search(layers, f"entries in {list(entries)}", matrices, tuple((a, b) for a, b in product(entries, repeat=2)))


MATRICES = (
    (0, 1, -1, 0), (1, 0, 0, 1), (1, 0, 0, -1), (0, 1, 1, 0), (1, 1, 0, 1), (1, 1, -1, 0), (1, -1, 1, 1), (1, 0, 0, 2),
    (2, 1, -1, 0), (1, 2, 3, 4), (0, 1, -2, 0), (1, 1, 0, -1), (0, 0, 0, 0), (1, 0, 0, 0), (0, 2, -2, 0), (1, 2, 2, 1),
)  # fmt: skip
SEARCHES = (
    _all_entries(2, (-1, 0, 1)),
    _all_entries(2, (0, 1, 2)),
    _all_entries(3, (0, 1)),
    Search(3, "16 chosen matrices", MATRICES, ((1, 0), (1, 1), (1, -2), (-1, 0), (2, 0), (0, 0))),
)


@dataclass(frozen=True)
class Count:
    """How many networks and functions a search saw: ``wrong`` ones satisfy the hypotheses and have other weights."""

    networks: int
    claimed: int
    wrong: int
    corrected: int
    wrong_corrected: int
    others: int


def search_networks(search: Search, seed: int) -> Count:
    """Compare all networks d = 2 → 1 of a search at two random inputs with three tokens mod p.

    Hypotheses of the theorem: L ≠ 0, rk M_i = 2, M_i not skew for i > 1; corrected: M_1 not skew either. A function
    has other weights if two of its networks are not rescalings of each other.
    """
    matrices = np.array(search.matrices).reshape(-1, 2, 2)
    vectors = np.array(search.vectors)
    X = FIELD.random((2, 2, 3), np.random.default_rng(seed))
    indices = np.array(list(product(range(len(matrices)), repeat=search.layers)))
    classes: dict[bytes, list[tuple[int, int]]] = {}
    for start in range(0, len(indices), FIBER_CHUNK):
        chosen = FIELD.reduce(matrices)[indices[start : start + FIBER_CHUNK].T]
        virtual = VirtualWeights(tuple(chosen), FIELD.reduce(vectors), FIELD)
        combined = np.concatenate([forward_recursion(virtual, x) for x in X], axis=-1)
        for network, vector in np.ndindex(combined.shape[:2]):
            classes.setdefault(combined[network, vector].tobytes(), []).append((start + network, vector))
    good = np.array([M[0, 0] * M[1, 1] != M[0, 1] * M[1, 0] for M in matrices])
    skew = np.array([not np.any(M + M.T) for M in matrices])
    claimed = good[indices].all(axis=1) & ~skew[indices[:, 1:]].any(axis=1)
    corrected = claimed & ~skew[indices[:, 0]]
    nonzero = [bool(v.any()) for v in vectors]
    canonical, lines = [_direction(M.ravel()) for M in matrices], [_direction(v) for v in vectors]
    counts = [0] * 5
    for members in classes.values():
        several = len({(*(canonical[i] for i in indices[n]), lines[v]) for n, v in members}) > 1
        is_claimed = any(claimed[n] and nonzero[v] for n, v in members)
        is_corrected = any(corrected[n] and nonzero[v] for n, v in members)
        # A network that satisfies the corrected hypotheses may share its function with one that does not.
        flags = (is_claimed, is_claimed and several, is_corrected, is_corrected and several, not is_claimed and several)
        counts = [count + flag for count, flag in zip(counts, flags)]
    return Count(len(indices) * len(vectors), *counts)


def _direction(vector: Array) -> tuple[int, ...]:
    """An integer vector up to scale: divided by the greatest common divisor and the sign of its first entry."""
    if not vector.any():
        return tuple(vector.tolist())
    divisor = int(np.gcd.reduce(vector)) * (1 if vector[np.flatnonzero(vector)[0]] > 0 else -1)
    return tuple((vector // divisor).tolist())
