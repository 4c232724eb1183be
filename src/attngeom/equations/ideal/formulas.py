"""Closed formulas for the cross-column ideal, t ≥ 2, one output row: theorems, proven in docs/theorems/completeness.md.

V = C^d holds the context directions, U = C^targets the target directions, α = min(a, d, targets) is the effective rank.
"""

from __future__ import annotations

from math import comb, prod

from attngeom.equations.ideal.records import GeneratorModule, make_module
from attngeom.errors import InputError
from attngeom.exact.partitions import Partition, partitions, schur_dimension
from attngeom.limits.work import BINOMIAL_FACTORS, FORMULA_FACTORS


def effective_rank(d: int, a: int, targets: int) -> int:
    """min(a, d, targets), after a check of the sizes.

    >>> effective_rank(3, 5, 2)
    2
    """
    if min(d, a, targets) < 1:
        raise InputError(f"d = {d}, a = {a}, targets = {targets} given; positive integers are required")
    return min(a, d, targets)


def hilbert_function(d: int, a: int, targets: int, n: int) -> int:
    """HF(n) = Σ_{μ ⊢ n, ℓ(μ) ≤ α} dim SⁿV · dim S_μV · dim S_μU minus excluded modules; HF(0) = 1, for all n.

    Excluded are λ = (2n-k, k), μ = (n), k odd, and the hooks λ = (2n-l, 1^l), μ = (n-l+1, 1^(l-1)), l ≥ 2 (Theorem 1).

    >>> [hilbert_function(3, 2, 3, n) for n in range(1, 5)]
    [18, 171, 1110, 5400]
    """
    rank = effective_rank(d, a, targets)
    if n == 0:
        return 1
    powers = comb(n + d - 1, n)
    total = powers * sum(schur_dimension(mu, d) * schur_dimension(mu, targets) for mu in partitions(n, rank))
    swapped = comb(powers, 2) * comb(n + targets - 1, n)
    hooks = sum(
        schur_dimension((2 * n - l, *(1,) * l), d) * schur_dimension((n - l + 1, *(1,) * (l - 1)), targets)
        for l in range(2, min(rank, n) + 1)
    )
    return total - swapped - hooks


def cone_dimension(d: int, a: int, targets: int) -> int:
    """The dimension of the affine cone, d - 1 + α(d + targets - α): pairs (v, A), rank A ≤ α, up to one scale.

    >>> cone_dimension(3, 2, 3)
    10
    """
    rank = effective_rank(d, a, targets)
    return d - 1 + rank * (d + targets - rank)


def determinantal_degree(rows: int, columns: int, rank: int) -> int:
    """The degree of the variety of rows×columns matrices of rank ≤ rank (Giambelli).

    >>> determinantal_degree(3, 3, 2), determinantal_degree(3, 3, 1)
    (3, 6)
    """
    numerator = prod(comb(rows + i, rank) for i in range(columns - rank))
    return numerator // prod(comb(rank + i, rank) for i in range(columns - rank))


def variety_degree(d: int, a: int, targets: int, rows: int = 1) -> int | None:
    """The degree of the projective variety of rows×d matrices V and d×targets matrices A of rank ≤ a.

    P(V) × P(A) is mapped by forms of bidegree (1, 1) without common zero: C(p + q, p) · deg{rank ≤ a}, p and q the
    dimensions, halved if rk A = rk V = 1 < d, where (v qᵀ, h kᵀ) is a second point ([G] Theorem 3.2). None if the
    product has too many factors.

    >>> variety_degree(2, 1, 2), variety_degree(2, 2, 2), variety_degree(3, 1, 3), variety_degree(2, 2, 2, rows=2)
    (3, 4, 45, 20)
    """
    rank = effective_rank(d, a, targets)
    inner, outer = rank * (d + targets - rank) - 1, rows * d - 1
    if max(rank * (targets - rank), inner) > FORMULA_FACTORS or min(inner, outer + 1) > BINOMIAL_FACTORS:
        return None
    total = comb(outer + inner, min(outer, inner)) * determinantal_degree(d, targets, rank)
    return total // 2 if rank == rows == 1 < d else total


def generator_shapes(d: int, a: int, targets: int) -> list[tuple[int, Partition, Partition]]:
    """(degree, λ, μ) of the modules S_λV ⊗ S_μU of minimal generators: all of them, for every size (Theorem 6).

    >>> generator_shapes(3, 1, 3)
    [(2, (3, 1), (1, 1)), (3, (2, 2, 2), (3,))]
    """
    rank = effective_rank(d, a, targets)
    shapes: list[tuple[int, Partition, Partition]] = [(3, (2, 2, 2), (3,))]
    if rank >= 2:
        shapes += [(3, (3, 3), (1, 1, 1)), (4, (4, 4), (2, 2)), (4, (3, 3, 1, 1), (2, 2))]
    if rank < min(d, targets):
        shapes.append((rank + 1, (rank + 2, *(1,) * rank), (1,) * (rank + 1)))
    return sorted(s for s in shapes if len(s[1]) <= d and len(s[2]) <= targets)


def generator_modules(d: int, a: int, targets: int) -> dict[int, tuple[GeneratorModule, ...]]:
    """The modules of minimal generators by degree, with their dimensions.

    >>> {n: sum(m.dimension for m in modules) for n, modules in generator_modules(4, 3, 4).items()}
    {3: 400, 4: 2535}
    """
    modules: dict[int, tuple[GeneratorModule, ...]] = {}
    for n, lam, mu in generator_shapes(d, a, targets):
        modules[n] = (*modules.get(n, ()), make_module((lam, mu), 1, (d, targets)))
    return modules
