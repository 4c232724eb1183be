"""[G] Definition 3 and what it says between its theorems: cost, genericity, counts of parameters, skips, heads."""

from __future__ import annotations

from itertools import product

import numpy as np

from attngeom.dimensions import dimension
from attngeom.exact import BLAS_PRIME, GF, QQ, RR, WORD_PRIME
from attngeom.exact.domains import Array
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights
from attngeom.papers.dimensions import is_proven, one_layer_dimension
from attngeom.papers.records import Check, Checks, Work, finds


@finds(
    "shapes that make the composition defined",
    "widths (2, 1), a = 1: Q and K must have 2 columns, which gives 6 weights; Definition 3 gives 4",
)
def run_shapes(work: Work) -> Checks:
    """[G] Definition 3: Q_i, K_i act on the input of layer i, so the count is Σ d_{i−1}(2a_i + d_i)."""
    architecture = Architecture((2, 1), 1)
    count, printed, ours = architecture.num_parameters, 1 * (2 * 1 + 2), 2 * (2 * 1 + 1)
    yield Check(f"Σ d_i(2a_i + d_{{i−1}}) = {printed} counts the weights of widths (2, 1), a = 1", count == printed)
    yield Check(f"Σ d_{{i−1}}(2a_i + d_i) = {ours} does", count == ours, "correction")
    X = QQ.random((2, 3), np.random.default_rng(work.seed))
    output = forward(random_weights(architecture, QQ, work.seed), X)
    statement = "with Q, K of shape a×d_{i−1} the layer maps 2×3 inputs to 1×3 outputs"
    yield Check(statement, output.shape == (1, 3), "correction")


class Counter:
    """Products of rational matrices, with the number of scalar multiplications of the schoolbook method."""

    def __init__(self) -> None:
        self.multiplications = 0

    def matmul(self, a: Array, b: Array) -> Array:
        self.multiplications += a.shape[0] * a.shape[1] * b.shape[1]
        return QQ.matmul(a, b)


@finds("multiplications of the schoolbook products counted while the layer is evaluated")
def run_cost(work: Work) -> Checks:
    """[G] Section 2: (V (X Xᵀ) A) X takes t(d² + d d') + 2 d' d² multiplications, V X (Xᵀ A X) at least t² of them."""
    for d, d_out in work.choose(((2, 1), (3, 2)), ((1, 1), (2, 1), (3, 2), (5, 4))):
        counts, usual, same, label = [], [], True, f"d = {d}, d' = {d_out}"
        for t in range(1, 7):
            weights = random_weights(Architecture((d, d_out), d, tokens=t), QQ, work.seed)
            A, V = weights.layers[0][0].attention_matrix(QQ), weights.value_matrices()[0][0]
            X = QQ.random((d, t), np.random.default_rng(work.seed))
            count, direct = Counter(), Counter()
            output = count.matmul(count.matmul(count.matmul(V, count.matmul(X, X.T)), A), X)
            scores = direct.matmul(X.T, direct.matmul(A, X))
            same &= QQ.equal(output, forward(weights, X))
            same &= QQ.equal(output, direct.matmul(direct.matmul(V, X), scores))
            counts.append(count.multiplications)
            usual.append(direct.multiplications)
        expected = [t * (d * d + d * d_out) + 2 * d_out * d * d for t in range(1, 7)]
        yield Check(f"{label}, t = 1 … 6: {counts} multiplications, linear in t", counts == expected)
        yield Check(f"{label}: the result is the layer, either way", same, "support")
        second = np.diff(usual, 2).tolist()
        statement = f"{label}: by way of the t² scores, as softmax needs them, {usual}: second differences {second}"
        yield Check(statement, second == [2 * (d + d_out)] * 4)


@finds("one point over Q where the open conditions hold")
def run_genericity(work: Work) -> Checks:
    """[G] after Theorem 3.7: for d_i, a_i ≥ 2 its conditions hold on a nonempty Zariski open set of weights."""
    for widths, a in work.choose((((2, 2), 2), ((3, 2, 4), 2)), (((2, 2), 2), ((3, 2, 4), 2), ((2, 5, 3, 2), 3))):
        architecture = Architecture(widths, a, tokens=3)
        tensors = {name: QQ.convert(np.eye(*shape, dtype=np.int64)) for name, shape in architecture.tensor_shapes()}
        virtual = Weights.from_tensors(architecture, tensors, QQ).virtual()
        good = all(QQ.rank(M) >= 2 and not QQ.is_zero(M + M.T) for M in virtual.M) and QQ.rank(virtual.L) >= 2
        label = f"widths {widths}, a = {a}"
        yield Check(f"{label}: unit matrices give rk M_i ≥ 2, M_i not skew-symmetric, rk L ≥ 2", good)
    for widths, a in (((2, 2), 1), ((2, 1, 2), 2)):
        small = min(QQ.rank(M) for M in random_weights(Architecture(widths, a), QQ, work.seed).virtual().M)
        statement = f"d_i, a_i ≥ 2 is needed: widths {widths}, a = {a} has rk M_i = {small}"
        yield Check(statement, small < 2, "support")


@finds(
    "parameters counted from the shapes; dimensions proven", "d = l = 1: three weights Q, K, V, not 3/2", (BLAS_PRIME,)
)
def run_parameter_count(work: Work) -> Checks:
    """[G] Section 3.3: with a = δ = d the count is 3 d² l, not 3/2 d² l; the ratio to the dimension tends to 3."""
    cases = work.choose(((2, 2), (3, 2)), ((2, 2), (2, 3), (3, 2), (3, 3), (4, 3), (4, 4)))
    nets = {(d, l): Architecture((d,) * (l + 1), d, tokens=3) for d, l in cases}
    proven = all(is_proven(net, d * d * (l + 1) - l, work.seed) for (d, l), net in nets.items())
    yield Check("the dimension is d²(l + 1) − l", proven)
    counts = {(d, l): Architecture((d,) * (l + 1), d).num_parameters for d, l in product((1, 2, 3, 4), (1, 2, 3))}
    printed = all(2 * value == 3 * d * d * l for (d, l), value in counts.items())
    ours = all(value == 3 * d * d * l for (d, l), value in counts.items())
    yield Check("the number of parameters is (3/2) d² l, 50 % more than the dimension", printed)
    yield Check("the number of parameters is 3 d² l (2 d² l in the entries of A and V)", ours, "correction")
    d, l = QQ.polynomials(("d", "l")).gens()
    rest = 3 * d**2 * l - 3 * (d**2 * (l + 1) - l)
    statement = "the ratio to the dimension tends to 3 as d and l grow: 3 + 3(l − d²)/(d²(l + 1) − l)"
    yield Check(statement, rest == 3 * (l - d**2), "correction")


@finds(
    "two rational weights with equal outputs of degree 3 at 7 points; dimensions proven",
    "l = d = a = t = 1: x + V A x³ is the same for (A, V) = (1, 1) and (2, 1/2)",
    (BLAS_PRIME, WORD_PRIME),
)
def run_skip(work: Work) -> Checks:
    """[G] Section 4 expects (M, L) to be generically one-to-one with skip connections; the scale symmetry survives."""
    architecture = Architecture((1, 1), 1, tokens=1, residual=True)
    X = QQ.convert([[[x]] for x in range(-3, 4)])
    outputs = []
    for q, v in ((1, 1), (2, "1/2")):
        tensors = {"layers.0.Q": [[q]], "layers.0.K": [[1]], "layers.0.V": [[v]]}
        outputs.append(forward(Weights.from_tensors(architecture, tensors, QQ), X))
    yield Check("with a skip connection the function determines (M, L) generically", not QQ.equal(*outputs))
    for widths in work.choose(((2, 2), (2, 2, 2)), ((2, 2), (2, 2, 2), (3, 3, 3), (3, 3, 3, 3))):
        answer = dimension(Architecture(widths, 2, tokens=3, residual=True), prove=True, seed=work.seed)
        expected = (len(widths) - 1) * one_layer_dimension(widths[0], widths[0], 2)
        label = f"skip connections, widths {widths}, a = 2: dimension {answer.dimension} = Σ (2αd − α² + d² − 1)"
        yield Check(label, answer.is_proven and answer.dimension == expected, "support")
    field, net = GF(WORD_PRIME), Architecture((2, 2, 2), 2, tokens=3, residual=True)
    weights = random_weights(net, field, work.seed)
    inputs = field.random((4, 2, 3), np.random.default_rng(work.seed))
    moved = random_symmetry(net, field, work.seed).apply(weights)
    same = field.equal(forward(weights, inputs), forward(moved, inputs))
    yield Check("the scalings (λ_i A_i, V_i/λ_i) of every layer leave the function unchanged", same, "correction")


HEADS = (
    ("softmax", (4, 4), 2, 48, "the sum over the heads: nothing continuous is added (Theorem D)"),
    ("lightning", (4, 4), 2, 46, "the sum minus one scale each: nothing continuous is added (Theorem H)"),
    ("lightning", (3, 3), 3, 32, "two less than the sum minus scales: heads of full rank mix"),
)
"""Kind, widths, a = v, the dimension with two heads, and what it says."""


@finds("outputs of networks with heads in another order; dimensions proven by minors")
def run_heads(work: Work) -> Checks:
    """[G] Section 4: the order of heads is a symmetry; which other ones there are differs by kind."""
    for kind in ("lightning", "softmax"):
        architecture = Architecture((3, 3, 3), 2, tokens=3, kind=kind, heads=3, value_width=1)
        weights = random_weights(architecture, RR, work.seed)
        moved = {}
        for name, value in weights.tensors():
            before, head, after = name.rsplit(".", 2)
            moved[f"{before}.{(int(head) + 2) % 3}.{after}"] = value
        X = np.random.default_rng(work.seed).standard_normal((3, 3))
        gap = np.abs(forward(weights, X) - forward(Weights.from_tensors(architecture, moved, RR), X)).max()
        yield Check(f"{kind}: a cyclic order of three heads in every layer changes nothing", bool(gap < 1e-12))
    for kind, widths, a, expected, text in HEADS:
        architecture = Architecture(widths, a, tokens=2, kind=kind, heads=2, value_width=a)
        answer = dimension(architecture, prove=True, method="minor", seed=work.seed)
        label = f"{kind}, widths {widths}, H = 2, a = v = {a}: dimension {answer.dimension}, {text}"
        yield Check(label, answer.is_proven and answer.dimension == expected, "support")
