"""The invariants that refutations name, from their definitions: scalar code that shares nothing with the search.

An :class:`Accessor` gives scaled coefficients one by one, of a given cubic map or of a random attention layer. Each
definition reads its JSON data strictly (canonical order, ranges) and returns the value of the invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, permutations, product
from typing import Any

from attngeom.errors import FormatError
from attngeom.limits.recheck import COEFFICIENTS_READ
from attngeom.verification.budget import afford
from attngeom.verification.maps import Accessor, determinant
from attngeom.verification.reading import (
    read_choice,
    read_index,
    read_indices,
    read_integers,
    read_list,
    read_object,
    show,
)

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Definition:
    """An equation of attention layers: ``evaluate(data, accessor)`` vanishes on them for every data that it accepts.

    ``degree(data)`` is its degree in the coefficients. Where ``cross`` is set it needs two tokens.
    """

    evaluate: Callable[[Data, Accessor], Any]
    degree: Callable[[Data], int]
    cross: bool = True


def _slice(data: Data, accessor: Accessor) -> tuple[Callable[[int, int, int], Any], int]:
    """The quadrics of one output row (over targets) or of one target (over output rows), and their number.

    The table α_m(z) ν_n(z) is symmetric in the two roles, so each equation of a row holds for a target as well.
    """
    place = read_object(data["slice"], ("side", "index"), "slice")
    if read_choice(place["side"], ("row", "target"), "side") == "row":
        i = read_index(place["index"], accessor.d_out)
        return (lambda k, l, m: accessor.y(i, k, l, m)), accessor.d
    m = read_index(place["index"], accessor.d)
    return (lambda k, l, n: accessor.y(n, k, l, m)), accessor.d_out


def _multisets(value: Any, size: int, bound: int, count: int) -> list[list[int]]:
    """So many different multisets of ``size`` indices, in increasing order."""
    multisets = [
        read_indices(x, size, bound, strict=False) for x in read_list(value, count, f"multisets of size {size}")
    ]
    if any(x >= y for x, y in pairwise(multisets)):
        raise FormatError("multisets in increasing order are required")
    return multisets


def _keys(data: Data, *names: str) -> None:
    read_object(data, names, "the data of the invariant")


def support(data: Data, accessor: Accessor) -> Any:
    """The coefficient of a monomial that no attention layer contains."""
    _keys(data, "output", "monomial")
    row, column = _pair(data["output"], accessor.d_out, accessor.t)
    listed = read_list(data["monomial"], 3, "entries [row, column]")
    p, q, r = (_pair(entry, accessor.d, accessor.t) for entry in listed)
    if not p <= q <= r:
        raise FormatError("the entries of the monomial must be in increasing order")
    others = [c for _, c in (p, q, r) if c != column]
    if not others or (len(others) == 2 and others[0] == others[1]):
        raise FormatError("the monomial lies in the support of attention")
    return accessor.outside((row, column), (p, q, r))


def _pair(value: Any, rows: int, columns: int) -> tuple[int, int]:
    row, column = read_list(value, 2, "numbers, row and column,")
    return read_index(row, rows), read_index(column, columns)


def sequence_copy(data: Data, accessor: Accessor) -> Any:
    """A copy of a coefficient at another column minus the first one."""
    if "R" in data:
        _keys(data, "row", "column", "R")
        i, j = read_index(data["row"], accessor.d_out), read_index(data["column"], accessor.t)
        k, l, m = read_indices(data["R"], 3, accessor.d, strict=False)
        return accessor.single(i, j, k, l, m) - accessor.single(i, 0, k, l, m)
    _keys(data, "row", "column", "context", "S", "m")
    i, j = read_index(data["row"], accessor.d_out), read_index(data["column"], accessor.t)
    n, m = read_index(data["context"], accessor.t), read_index(data["m"], accessor.d)
    if n == j:
        raise FormatError("context and target column must differ")
    k, l = read_indices(data["S"], 2, accessor.d, strict=False)
    return accessor.cross(i, j, n, k, l, m) - accessor.y(i, k, l, m)


def symmetrization(data: Data, accessor: Accessor) -> Any:
    """|orb R| y_R − Σ |orb S| y_{S,m}: as sums over all orders of R, each divided by its number of repetitions."""
    _keys(data, "row", "column", "R")
    i, j = read_index(data["row"], accessor.d_out), read_index(data["column"], accessor.t)
    R = read_indices(data["R"], 3, accessor.d, strict=False)
    if accessor.t < 2:
        raise FormatError("symmetrization needs two tokens")
    n = 1 if j == 0 else 0
    terms = (accessor.cross(i, j, n, min(k, l), max(k, l), m) for k, l, m in set(permutations(R)))
    return sum((accessor.single(i, j, *R) - term for term in terms), start=accessor.zero)


def attention_rank(data: Data, accessor: Accessor) -> Any:
    """A minor of the flattening (y_{S,m}) of one output row."""
    _keys(data, "row", "pairs", "targets")
    i = read_index(data["row"], accessor.d_out)
    rows = _multisets(data["pairs"], 2, accessor.d, max(1, _size("targets")(data)))
    targets = read_indices(data["targets"], len(rows), accessor.d)
    return determinant([[accessor.y(i, k, l, m) for m in targets] for k, l in rows])


def segre_quadric(data: Data, accessor: Accessor) -> Any:
    """The coefficient of z^W in T_nm T_sr − T_nr T_sm, as a sum over the distinct orders of W."""
    _keys(data, "rows", "targets", "W")
    n, s = read_indices(data["rows"], 2, accessor.d_out)
    m, r = read_indices(data["targets"], 2, accessor.d)
    W = read_indices(data["W"], 4, accessor.d, strict=False)
    y, orders = accessor.y, set(permutations(W))
    terms = (y(n, p, q, m) * y(s, u, v, r) - y(n, p, q, r) * y(s, u, v, m) for p, q, u, v in orders)
    return sum(terms, start=accessor.zero)


def slice_pencil(data: Data, accessor: Accessor) -> Any:
    """The coefficient of c^K in the minor (I, J) of the pencil Σ c_m T^(m)."""
    _keys(data, "slice", "I", "J", "K")
    y, number = _slice(data, accessor)
    I, J = read_indices(data["I"], 3, accessor.d), read_indices(data["J"], 3, accessor.d)
    K = read_indices(data["K"], 3, number, strict=False)
    minors = (determinant([[y(i, j, m) for j in J] for i, m in zip(I, order)]) for order in set(permutations(K)))
    return sum(minors, start=accessor.zero)


def _on_line(data: Data, accessor: Accessor) -> tuple[Callable[[int], tuple[Any, Any, Any]], int]:
    """m ↦ (q_m(p), B_m(p, r), q_m(r)) on the line through p and r."""
    y, number = _slice(data, accessor)
    p, r = read_integers(data["line"], 2, accessor.d)

    def form(m: int, u: list[int], w: list[int]) -> Any:
        terms = (y(k, l, m) * (a * b) for k, a in enumerate(u) if a for l, b in enumerate(w) if b)
        return sum(terms, start=accessor.zero)

    def restricted(m: int) -> tuple[Any, Any, Any]:
        return form(m, p, p), form(m, p, r), form(m, r, r)

    return restricted, number


def binary_restriction(data: Data, accessor: Accessor) -> Any:
    """A 3×3 minor of the quadrics restricted to a line."""
    _keys(data, "slice", "line", "targets")
    restricted, number = _on_line(data, accessor)
    return determinant(list(zip(*(restricted(m) for m in read_indices(data["targets"], 3, number)))))


def _square(data: Data, number: int) -> list[tuple[list[int], list[int]]]:
    """The element of S_22 that the data name: one product of 2-subsets that meet, or one of two sums of products.

    The resultant of Σ λ_m q_m and Σ μ_m q_m is a quadratic form in the minors of (λ, μ), which satisfy the Plücker
    relation: its coefficients in (λ, μ) at disjoint 2-subsets are these sums. Nothing else is the named equation.
    """
    square = data["square"]
    if type(square) is not list or any(type(x) is not list or len(x) != 2 for x in square):
        raise FormatError("products of two 2-subsets are required")
    pairs = [(read_indices(b, 2, number), read_indices(c, 2, number)) for b, c in square]
    if any(b > c for b, c in pairs):
        raise FormatError("the 2-subsets must be in increasing order")
    if len(pairs) == 1 and set(pairs[0][0]) & set(pairs[0][1]):
        return pairs
    w, x, y, z = (sorted({k for b, c in pairs for k in (*b, *c)}) + [0] * 4)[:4]
    sums = [[([w, x], [y, z]), ([w, y], [x, z])], [([w, y], [x, z]), ([w, z], [x, y])]]
    if pairs not in sums:
        raise FormatError("the products of 2-subsets are no coefficient of a resultant")
    return pairs


def sylvester_resultant(data: Data, accessor: Accessor) -> Any:
    """Σ over products of 2-subsets b, c of the polarized resultant of the quadrics restricted to a line."""
    _keys(data, "slice", "line", "square")
    restricted, number = _on_line(data, accessor)

    def minors(pair: list[int]) -> tuple[Any, Any, Any]:
        x, z = map(restricted, pair)
        return x[0] * z[1] - x[1] * z[0], x[0] * z[2] - x[2] * z[0], x[1] * z[2] - x[2] * z[1]

    products = ((minors(b), minors(c)) for b, c in _square(data, number))
    return sum((p[1] * q[1] - 2 * (p[0] * q[2] + q[0] * p[2]) for p, q in products), start=accessor.zero)


def cubic_on_plane(i: list[int], plane: list[list[int]], accessor: Accessor) -> dict[tuple[int, ...], Any]:
    """The ternary cubic Σ_n i_n F_n on the plane spanned by three rows, as scaled coefficients by sorted triple."""
    support = [k for k in range(accessor.d) if any(vector[k] for vector in plane)]
    rows = [n for n, factor in enumerate(i) if factor]
    afford(len(rows) * len(support) ** 3, COEFFICIENTS_READ, "coefficients for a cubic on a plane")
    zero = accessor.zero
    once = {(u, l, m): zero for u in range(3) for l in support for m in support}
    for k, l, m in product(support, repeat=3):
        y = sum((accessor.single(n, 0, *sorted((k, l, m))) * i[n] for n in rows), start=zero)
        for u in range(3):
            once[u, l, m] += y * plane[u][k]
    cubic: dict[tuple[int, ...], Any] = {}
    for u, v, w in combinations_with_replacement(range(3), 3):
        terms = (once[u, l, m] * (plane[v][l] * plane[w][m]) for l in support for m in support)
        cubic[u, v, w] = sum(terms, start=zero)
    return cubic


def lie_plane(data: Data, accessor: Accessor) -> Any:
    """A maximal minor of the Lie flattening sl_3 → S³ of a combination of output rows restricted to a plane."""
    _keys(data, "combination", "plane", "rows")
    combination = read_integers([data["combination"]], 1, accessor.d_out)[0]
    plane = read_integers(data["plane"], 3, accessor.d)
    rows = read_indices(data["rows"], 8, 10)
    cubic = cubic_on_plane(combination, plane, accessor)
    labels = list(cubic)

    def derivative(R: tuple[int, ...], u: int, v: int) -> Any:
        """The coefficient at x^R of x_u ∂F/∂x_v; an ordinary coefficient is (number of orders) × y."""
        if u not in R:
            return accessor.zero
        rest = list(R)
        rest[rest.index(u)] = v
        return cubic[tuple(sorted(rest))] * (rest.count(v) * len(set(permutations(rest))))

    matrix = []
    for R in (labels[place] for place in rows):
        entries = [derivative(R, u, v) for u, v in permutations(range(3), 2)]
        matrix.append(entries + [derivative(R, u, u) - derivative(R, u + 1, u + 1) for u in range(2)])
    return determinant(matrix)


def shared_quadric(data: Data, accessor: Accessor) -> Any:
    """A maximal minor of the 2d quartics z_k F, z_k G for two combinations F, G of output rows.

    If F = ν q and G = μ q then μ F = ν G is a relation among them, so all minors of size 2d vanish.
    """
    _keys(data, "combinations", "monomials")
    d = accessor.d
    combinations_given = read_integers(data["combinations"], 2, accessor.d_out)
    afford(4 * d * d * accessor.d_out, COEFFICIENTS_READ, "coefficients for the quartics")
    columns = _multisets(data["monomials"], 4, d, 2 * d)

    def coefficient(combination: list[int], k: int, W: list[int]) -> Any:
        """That of z_k F at z^W."""
        if k not in W:
            return accessor.zero
        rest = list(W)
        rest.remove(k)
        orders = len(set(permutations(rest)))
        terms = (accessor.single(n, 0, *rest) * (c * orders) for n, c in enumerate(combination) if c)
        return sum(terms, start=accessor.zero)

    return determinant([[coefficient(F, k, W) for W in columns] for F in combinations_given for k in range(d)])


def _size(key: str) -> Callable[[Data], int]:
    """The degree of a minor whose columns ``data[key]`` lists."""

    def size(data: Data) -> int:
        columns = data.get(key)
        if type(columns) is not list:
            raise FormatError(f"{key}: {show(columns)} found; a list is required")
        return len(columns)

    return size


DEFINITIONS: dict[str, Definition] = {
    "support": Definition(support, lambda data: 1, cross=False),
    "sequence-copy": Definition(sequence_copy, lambda data: 1),
    "symmetrization": Definition(symmetrization, lambda data: 1),
    "attention-rank": Definition(attention_rank, _size("targets")),
    "segre-quadric": Definition(segre_quadric, lambda data: 2),
    "slice-pencil": Definition(slice_pencil, lambda data: 3),
    "binary-restriction": Definition(binary_restriction, lambda data: 3),
    "sylvester-resultant": Definition(sylvester_resultant, lambda data: 4),
    "lie-plane": Definition(lie_plane, lambda data: 8, cross=False),
    "shared-quadric": Definition(shared_quadric, _size("monomials"), cross=False),
}
