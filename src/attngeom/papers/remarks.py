"""What the papers say between their theorems: cost, genericity, normalizers, heads, copies, stabilizers, lines."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from attngeom.dimensions import dimension
from attngeom.equations import Variety
from attngeom.equations.families.resultants import resultant_values
from attngeom.equations.families.veronese import exponents
from attngeom.equations.ideal.completeness import complete
from attngeom.equations.lines import restrict
from attngeom.equations.points import place
from attngeom.exact import GF, QQ, RR, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.exact.multisets import triples
from attngeom.exact.partitions import schur_dimension
from attngeom.exact.polynomials import polynomial_ring
from attngeom.layer.coefficients import expand_matrices
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.papers.expansion import generic_layer, layer_output, linear_relations
from attngeom.papers.records import Check, Finding, Work
from attngeom.papers.resultants import random_line
from attngeom.papers.single_column import cubic_point, lie_flattening, product_of_forms
from attngeom.papers.symbolic import collect
from attngeom.papers.veronese import veronese_determinant


class Counter:
    """Products of rational matrices, with the number of scalar multiplications of the schoolbook method."""

    def __init__(self) -> None:
        self.multiplications = 0

    def matmul(self, a: Array, b: Array) -> Array:
        self.multiplications += a.shape[0] * a.shape[1] * b.shape[1]
        return QQ.matmul(a, b)


def run_cost(work: Work) -> Finding:
    """[G] Section 2: (V (X Xᵀ) A) X takes t(d² + d d') + 2 d' d² multiplications, V X (Xᵀ A X) at least t² of them."""
    checks = []
    for d, d_out in work.choose(((2, 1), (3, 2)), ((1, 1), (2, 1), (3, 2), (5, 4))):
        counts, usual, same = [], [], True
        for t in range(1, 7):
            weights = random_weights(Architecture((d, d_out), d, tokens=t), QQ, work.seed)
            A, V = weights.layers[0][0].attention_matrix(QQ), weights.value_matrices()[0][0]
            X = QQ.random((d, t), np.random.default_rng(work.seed))
            count, direct = Counter(), Counter()
            G = count.matmul(X, X.T)
            output = count.matmul(count.matmul(count.matmul(V, G), A), X)
            scores = direct.matmul(X.T, direct.matmul(A, X))
            same &= QQ.equal(output, forward(weights, X))
            same &= QQ.equal(output, direct.matmul(direct.matmul(V, X), scores))
            counts.append(count.multiplications)
            usual.append(direct.multiplications)
        label = f"d = {d}, d' = {d_out}"
        expected = [t * (d * d + d * d_out) + 2 * d_out * d * d for t in range(1, 7)]
        checks.append(Check(f"{label}, t = 1 … 6: {counts} multiplications, linear in t", counts == expected))
        checks.append(Check(f"{label}: the result is the layer, either way", same, "support"))
        second = np.diff(usual, 2).tolist()
        statement = f"{label}: by way of the t² scores, as softmax needs them, {usual}: second differences {second}"
        checks.append(Check(statement, second == [2 * (d + d_out)] * 4))
    return Finding("multiplications of the schoolbook products counted while the layer is evaluated", tuple(checks))


def run_genericity(work: Work) -> Finding:
    """[G] after Theorem 3.7: for d_i, a_i ≥ 2 its conditions hold on a nonempty Zariski open set of weights."""
    checks = []
    for widths, a in work.choose((((2, 2), 2), ((3, 2, 4), 2)), (((2, 2), 2), ((3, 2, 4), 2), ((2, 5, 3, 2), 3))):
        architecture = Architecture(widths, a, tokens=3)
        tensors = {name: QQ.convert(np.eye(*shape, dtype=np.int64)) for name, shape in architecture.tensor_shapes()}
        virtual = Weights.from_tensors(architecture, tensors, QQ).virtual()
        good = all(QQ.rank(M) >= 2 and not QQ.is_zero(M + M.T) for M in virtual.M) and QQ.rank(virtual.L) >= 2
        label = f"widths {widths}, a = {a}"
        checks.append(Check(f"{label}: unit matrices give rk M_i ≥ 2, M_i not skew-symmetric, rk L ≥ 2", good))
    for widths, a in (((2, 2), 1), ((2, 1, 2), 2)):
        virtual = random_weights(Architecture(widths, a), QQ, work.seed).virtual()
        small = min(QQ.rank(M) for M in virtual.M)
        checks.append(
            Check(f"d_i, a_i ≥ 2 is needed: widths {widths}, a = {a} has rk M_i = {small}", small < 2, "support")
        )
    return Finding("one point over Q where the open conditions hold", tuple(checks))


def run_normalizers(work: Work) -> Finding:
    """[G] Section 3.4: Theorem 3.9 for every injective S > 0, and e^{x/τ} for A is e^x for A/τ."""
    n, a, b, c, v, w = polynomial_ring(("n", "a", "b", "c", "v", "w")).gens()
    difference = (a * v + n * b * w) * (a + n * c) - (a * v + n * c * w) * (a + n * b)
    e, x, y, t, k = polynomial_ring(("e", "x", "y", "t", "k")).gens()
    first_order = (1 + k * e * x) * t - (t + k * e * y) == k * e * (t * x - y)
    checks = [
        Check(
            "x_2 = … = x_t, n = t − 1: the difference of two layers is n S₁₁ (S'₁₂ − S₁₂)(V x₁ − V x₂) over the"
            " denominators, for all t and all values of S",
            difference == n * a * (c - b) * (v - w),
        ),
        Check(
            "for S smooth near 0, k = S'(0)/S(0): weights are 1/t + k (s_j − mean)/t + …, as in Theorem A", first_order
        ),
    ]
    for tau in ("1/2", "3"):
        warm = Architecture((3, 2), 2, tokens=3, kind="softmax", temperature=tau)
        weights = random_weights(warm, RR, work.seed)
        scaled = {
            name: value / float(warm.temperature) if name.endswith("Q") else value for name, value in weights.tensors()
        }
        cold = Weights.from_tensors(Architecture((3, 2), 2, tokens=3, kind="softmax"), scaled, RR)
        X = np.random.default_rng(work.seed).standard_normal((3, 3))
        gap = float(np.abs(forward(weights, X) - forward(cold, X)).max())
        checks.append(Check(f"τ = {tau}: the layer (A, V) at temperature τ is (A/τ, V), error {gap:.0e}", gap < 1e-12))
    return Finding("identities of polynomials in the values of S; layers in double precision", tuple(checks))


def run_heads(work: Work) -> Finding:
    """[G] Section 4: the order of heads is a symmetry; which other ones there are differs by kind."""
    checks = []
    for kind in ("lightning", "softmax"):
        architecture = Architecture((3, 3, 3), 2, tokens=3, kind=kind, heads=3, value_width=1)
        weights = random_weights(architecture, RR, work.seed)
        order = {0: 2, 1: 0, 2: 1}
        moved = {}
        for name, value in weights.tensors():
            before, head, after = name.rsplit(".", 2)
            moved[f"{before}.{order[int(head)]}.{after}"] = value
        X = np.random.default_rng(work.seed).standard_normal((3, 3))
        gap = np.abs(forward(weights, X) - forward(Weights.from_tensors(architecture, moved, RR), X)).max()
        checks.append(Check(f"{kind}: a cyclic order of three heads in every layer changes nothing", bool(gap < 1e-12)))
    for kind, widths, a, v, expected, text in (
        ("softmax", (4, 4), 2, 2, 48, "the sum over the heads: nothing continuous is added (Theorem D)"),
        ("lightning", (4, 4), 2, 2, 46, "the sum minus one scale each: nothing continuous is added (Theorem H)"),
        ("lightning", (3, 3), 3, 3, 32, "two less than the sum minus scales: heads of full rank mix"),
    ):
        architecture = Architecture(widths, a, tokens=2, kind=kind, heads=2, value_width=v)
        answer = dimension(architecture, prove=True, method="minor", seed=work.seed)
        label = f"{kind}, widths {widths}, H = 2, a = v = {a}: dimension {answer.dimension}, {text}"
        checks.append(Check(label, answer.is_proven and answer.dimension == expected, "support"))
    return Finding("outputs of networks with heads in another order; dimensions proven by minors", tuple(checks))


def run_rows(work: Work) -> Finding:
    """[I] Remark 4: the coefficients of row i are those of the layer with the single row V_i."""
    checks = []
    for d, d_out in work.choose(((2, 2), (3, 2)), ((2, 2), (3, 2), (3, 4))):
        ring = PolynomialDomain.of(v=(d_out, d), A=(d, d))
        A, V = ring.matrix("A", d, d), ring.matrix("v", d_out, d)
        whole = expand_matrices(A, V, ring)
        same = all(
            ring.equal(part[i], own[0])
            for i in range(d_out)
            for part, own in zip(whole, expand_matrices(A, V[[i]], ring))
        )
        checks.append(Check(f"d = {d}, d' = {d_out}: each row is the one-row layer of its row of V in Q[V, A]", same))
    return Finding("coefficients of generic weights, row by row", tuple(checks))


def run_copies(work: Work) -> Finding:
    """[I] Remark 11: coefficients depend neither on the target column nor on the context column."""
    checks = []
    for d, t in work.choose(((2, 3),), ((1, 4), (2, 3), (2, 4), (3, 3))):
        ring, V, A, X = generic_layer(d, 1, t)
        F, names = layer_output(V, A, X, ring), PolynomialDomain.of(x=(d, t)).variables
        found: dict[tuple[tuple[int, ...], ...], set[str]] = {}
        for j in range(t):
            for e, coefficient in collect(F[0, j], names).items():
                columns = [tuple(e[column::t]) for column in range(t)]
                context = next((c for i, c in enumerate(columns) if i != j and any(c)), (0,) * d)
                found.setdefault((columns[j], context), set()).add(str(coefficient))
        copies = all(len(values) == 1 for values in found.values())
        size = comb(d + 2, 3) + d * comb(d + 1, 2)
        label = f"d = {d}, t = {t}: {len(found)} families of copies, C(d+2,3) + d C(d+1,2) = {size}"
        checks.append(Check(label, copies and len(found) == size))
    return Finding("coefficients of the polynomial with generic weights, grouped by their rows", tuple(checks))


def run_stabilizers(work: Work) -> Finding:
    """[I] Remarks 18 and 20: the kernel of the Lie flattening is the stabilizer in sl_d, trivial for generic cubics."""
    rng = np.random.default_rng(work.seed)
    checks = []
    for d in work.choose((2, 3), (2, 3, 4, 5)):
        number = comb(d + 2, 3)
        fermat = QQ.convert([int(k == l == m) for k, l, m in triples(d)])
        full = QQ.rank(lie_flattening(cubic_point(fermat, d, QQ), d))
        checks.append(
            Check(f"d = {d}: Σ x_i³ has rank {full} = d² − 1: the generic stabilizer is zero", full == d * d - 1)
        )
        if d < 3:
            continue
        cubic = product_of_forms(QQ.random((3, d), rng), d, QQ)
        M = lie_flattening(cubic_point(cubic, d, QQ), d)
        kernel = QQ.nullspace(M)
        expected = 2 + d * (d - 3) - (1 if d > 3 else 0)
        label = (
            f"d = {d}: a product of three forms has a stabilizer of dimension {len(kernel)} in sl_d, orbit {QQ.rank(M)}"
        )
        checks.append(Check(label, len(kernel) == expected and M.shape == (number, d * d - 1)))
        killed = all(_apply(operator, cubic, d) for operator in kernel)
        checks.append(Check(f"d = {d}: every vector of the kernel, as Σ E_uv x_u ∂_v, kills the cubic", killed))
    return Finding("exact ranks over Q; the operators applied to the polynomial", tuple(checks))


def _apply(operator: Array, cubic: Array, d: int) -> bool:
    """Whether Σ E_uv x_u ∂_v F = 0 and tr E = 0, E given in the basis of sl_d of the Lie flattening."""
    ring = PolynomialDomain.of(x=(1, d))
    x = ring.matrix("x", 1, d)[0]
    F = sum((c * x[k] * x[l] * x[m] for c, (k, l, m) in zip(cubic, triples(d))), ring.zero)
    places = [(u, v) for u in range(d) for v in range(d) if u != v]
    E = QQ.zeros((d, d))
    for c, (u, v) in zip(operator, places):
        E[u, v] += c
    for i, c in enumerate(operator[len(places) :]):
        E[i, i] += c
        E[i + 1, i + 1] -= c
    total = ring.zero
    for u, v in np.ndindex(d, d):
        total += E[u, v] * x[u] * F.derivative(f"x_1_{v + 1}")
    return bool(total == 0)


def run_splits(work: Work) -> Finding:
    """[I] Remark 34: for every split r = i + j the matrix (D_{β+γ,L}), |β| = i, |γ| = j, has rank one."""
    checks = []
    for d, r in work.choose(((3, 2), (3, 3)), ((3, 2), (3, 3), (4, 3), (4, 4))):
        ring = PolynomialDomain.of(v=(1, d), A=(d, d))
        y = place(ring.matrix("A", d, d), ring.matrix("v", 1, d), Variety(d, d), ring).first_cross[0]
        K, targets = tuple(range(r)), list(combinations(range(d), r))[:2]
        D = {(alpha, L): veronese_determinant(y, alpha, K, L, d) for alpha in exponents(r, r) for L in targets}
        for i in range(1, r):
            columns = [(g, L) for g in exponents(r, r - i) for L in targets]
            rows = [[D[_add(b, g), L] for g, L in columns] for b in exponents(r, i)]
            first, rest = rows[0], rows[1:]
            zero = all(first[0] * row[k] == row[0] * first[k] for row in rest for k in range(len(first)))
            label = f"d = {d}, r = {r} = {i} + {r - i}: a {len(rows)}×{len(columns)} matrix of rank one in Q[v, A]"
            checks.append(Check(label, zero and first[0] != 0))
    return Finding("minors with the first row and column of the block matrices on generic weights", tuple(checks))


def _add(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b))


def run_line_count(work: Work) -> Finding:
    """[I] Remark 43: lines give enough resultants iff no quartic in the Plücker coordinates vanishes on all of them."""
    field, rng = GF(WORD_PRIME), np.random.default_rng(work.seed)
    checks = []
    for d in work.choose((3,), (3, 4)):
        needed, each = schur_dimension((4, 4), d), schur_dimension((2, 2), d)
        lines = np.stack([random_line(d, rng) for _ in range(needed)])
        minors = np.stack(
            [lines[:, 0, i] * lines[:, 1, j] - lines[:, 0, j] * lines[:, 1, i] for i, j in combinations(range(d), 2)],
            axis=1,
        )
        quartics = rank_mod_p(_powers(minors % WORD_PRIME), WORD_PRIME)
        label = f"d = {d}: fourth powers of the Plücker vectors of {needed} random lines span {quartics}"
        checks.append(Check(f"{label} = dim S_44", quartics == needed))
        points = field.random((needed * each + 5, comb(d + 1, 2), d), rng)
        for number in (needed, needed - 1) if d == 3 else ():
            values = resultant_values(restrict(points, lines[:number], field), field).reshape(len(points), -1)
            span = rank_mod_p(values, WORD_PRIME)
            label = f"d = {d}: {number} lines give {span} quartics, {each} each"
            checks.append(Check(f"{label}; {needed * each} are needed", span == number * each))
        module = {str(m): m.dimension for n, m in complete(d, d, d).modules if n == 4}
        statement = f"d = {d}: the quartic generators are {module}; resultants are S_44 ⊗ S_22"
        checks.append(Check(statement, needed * each in module.values(), "support"))
    evidence = "spans mod p, which are lower bounds, meet the dimensions of the modules"
    return Finding(evidence, tuple(checks), primes=(WORD_PRIME,))


def _powers(points: Array) -> Array:
    """All monomials of degree 4 in the coordinates of points mod p, one row for each point."""
    p, found = WORD_PRIME, points
    for _ in range(3):
        found = (found[:, :, None] * points[:, None, :] % p).reshape(len(points), -1)
    return found


def run_mixed(work: Work) -> Finding:
    """[I] Section 6: single-column coordinates are linear in the cross-column ones, so no mixed generator is needed."""
    checks = []
    for d in work.choose((2, 3), (2, 3, 4, 5)):
        relations, number = linear_relations(d), comb(d + 2, 3)
        block = relations[:, :number]
        diagonal = QQ.rank(block) == number and all(block[i, j] == 0 for i, j in np.ndindex(number, number) if i != j)
        checks.append(
            Check(
                f"d = {d}: the {number} symmetrization relations solve for the {number} single-column coordinates",
                diagonal,
            )
        )
    for d, a in ((3, 1), (3, 2), (3, 3), (4, 4)):
        degrees = sorted({n for n, _ in complete(d, a, d).modules})
        label = f"d = {d}, a = {a}: nonlinear minimal generators in cross-column coordinates alone, degrees {degrees}"
        checks.append(Check(f"{label}, none of degree d² − 1 = {d * d - 1}", max(degrees) < d * d - 1))
    return Finding("linear relations over Q; the list of generators of Theorem 6", tuple(checks))
