"""(λ, m) at points with known values, at hostile points, and against other ways to compute it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import attngeom
from attngeom.errors import AttnGeomError, DomainError, InputError
from attngeom.exact import GF, QQ, RR, QuadraticField
from attngeom.learning import global_learning_coefficient, learning_coefficient, learning_table
from attngeom.learning.pairs import Pair
from attngeom.network import Architecture, Weights, random_symmetry, random_weights
from tests.learning.cases import POINTS, Point, aligned, build, head, matrix, network
from tests.learning.test_products import aoyagi_watanabe


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_known_values(point: Point) -> None:
    found = learning_coefficient(point.weights)
    assert (found.value, found.multiplicity, found.theorem) == (point.value, point.multiplicity, point.theorem)
    assert found.is_proven and found.lower == found.upper == point.value
    assert found.to_json()["lambda"] == str(point.value)


@pytest.mark.parametrize("point", [point for point in POINTS if point.theorem != "C"], ids=lambda point: point.name)
def test_symmetries_keep_the_answer(point: Point) -> None:
    moved = random_symmetry(point.weights.architecture, QQ, seed=3).apply(point.weights)
    assert learning_coefficient(moved).pair == Pair(point.value, point.multiplicity)


def test_a_gpt2_head_by_ranks() -> None:
    """d = 768, a = v = 64: the regular stratum and the dead head, from unit matrices."""
    unit = np.eye(64, 768, dtype=int)
    architecture = Architecture((768, 768), 64, tokens=2, value_width=64)
    zero = {f"layers.0.heads.0.{x}": np.zeros(s, dtype=int) for x, s in zip("QKVO", [(64, 768)] * 3 + [(768, 64)])}
    tensors = dict.fromkeys((f"layers.0.heads.0.{x}" for x in "QKV"), unit) | {"layers.0.heads.0.O": unit.T}
    for given, value, m in ((tensors, "188415/2", 1), (zero, "24064", 2)):
        weights = Weights.from_tensors(architecture, {k: x.astype(float) for k, x in given.items()}, RR)
        found = learning_coefficient(weights)
        assert (str(found.value), found.multiplicity, found.standing) == (value, m, "estimate")


def test_theorem_b_agrees_with_theorem_a1() -> None:
    """Where one head satisfies both, they say the same; at an aligned point Theorem B says nothing."""
    from attngeom.learning.blocks import head_blocks
    from attngeom.learning.certified import by_ranks

    agreed = 0
    for point in POINTS:
        if not point.theorem.startswith("A1") or point.weights.architecture.tokens < 2:
            continue
        found = by_ranks(point.weights, head_blocks(point.weights), 0, None)
        if found.pair is None:
            assert point.theorem == "A1.3" and found.lower is not None and found.upper is not None
            assert found.lower <= point.value <= found.upper
        else:
            assert found.pair == Pair(point.value, point.multiplicity), point.name
            agreed += 1
    assert agreed >= 10


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_balls_agree_with_the_theorems_on_one_head(kind: str) -> None:
    for weights in (head(2, 1, 1, (1, 1, 1), 1, kind=kind), head(2, 2, 2, (1, 0, 0), 0, kind=kind)):
        assert learning_coefficient(weights).pair == enclosed_pair(weights) == by_ranks_alone(weights)


def enclosed_pair(weights: Weights) -> Pair:
    """Theorem B from the ranks of the true differential in ball arithmetic, which must add up."""
    from attngeom.learning.blocks import head_blocks
    from attngeom.learning.certified import _in_balls
    from attngeom.learning.enlarged import enlarge

    theta = enlarge(weights, head_blocks(weights))
    ranks = _in_balls(theta, 2 * theta.dimension + 16, 0, None)
    assert ranks.jacobian + ranks.action == theta.dimension
    return theta.pair.less(ranks.action)


def by_ranks_alone(weights: Weights) -> Pair | None:
    """Theorem B as it is asked for: formal attention mod p where the scores are independent, else balls."""
    from attngeom.learning.blocks import head_blocks
    from attngeom.learning.certified import by_ranks

    return by_ranks(weights, head_blocks(weights), 0, None).pair


SOFT: list[tuple[str, Weights]] = [
    ("C", network((2, 2, 2), 2, {(0, 0): (1, 1, 1)}, kind="softmax", tokens=2)),
    ("C", network((2, 2, 2), 1, {(1, 0): (0, 1, 0)}, kind="softmax", tokens=3)),
    ("D", network((2, 2), 1, {(0, 0): (0, 1, 0)}, kind="softmax", heads=2, tokens=3)),
    ("D", network((2, 2), 1, {}, kind="softmax", heads=2, tokens=2)),
    ("D", network((2, 2), 1, {}, ((0, 0),), kind="softmax", heads=2, tokens=3)),
    ("D", network((2, 2), 1, {}, kind="softmax", heads=2, tokens=3, causal=True)),
    ("D", network((2, 2), 1, {(0, 0): (0, 1, 0)}, kind="softmax", heads=2, tokens=2)),
    ("S", network((2, 2), 1, {}, kind="sigmoid", heads=2, tokens=2)),
    ("S", network((2, 2), 2, {(0, 1): (1, 0, 0)}, kind="sigmoid", heads=2, tokens=3, causal=True)),
]


@pytest.mark.parametrize(("theorem", "weights"), SOFT)
def test_balls_agree_with_the_theorems_on_softmax_networks(theorem: str, weights: Weights) -> None:
    """Theorems C, D and S from their hypotheses, Theorem B from ranks of the true differential in ball arithmetic."""
    found = learning_coefficient(weights)
    assert found.theorem == theorem
    assert found.pair == enclosed_pair(weights) == by_ranks_alone(weights)


def lifts(weights: Weights, p: int, depth: int) -> list[int]:
    """#{w mod p^k, ≡ w_0 mod p, φ_w ≡ φ_w0 mod p^k} for one lightning head, t ≥ 2, counted level by level.

    Held fixed are entries that symmetries of the head make equal to their values at w_0: all k = 1 entries of K in the
    first column that is not zero mod p, and one entry of V.
    """
    names = dict(weights.tensors())
    K, Q, V = (np.array([[int(x) for x in row] for row in names[f"layers.0.{x}"]]) for x in "KQV")
    a, d = K.shape
    sizes = [K.size, Q.size, V.size]
    start = np.concatenate([K.ravel(), Q.ravel(), V.ravel()])
    fixed = [next(i for i in range(K.size) if K.ravel()[i] % p), next(i for i in range(V.size) if V.ravel()[i] % p)]
    free = np.array([i for i in range(len(start)) if i not in (fixed[0], K.size + Q.size + fixed[1])])

    def table(points: np.ndarray) -> np.ndarray:
        k, q, v = np.split(points, np.cumsum(sizes)[:-1], axis=1)
        A = np.einsum("nai,naj->nij", k.reshape(-1, a, d), q.reshape(-1, a, d))
        T = np.einsum("nrk,nlm->nrklm", v.reshape(-1, *V.shape), A)
        symmetric = T + T.transpose(0, 1, 3, 2, 4)
        # The coefficient of z_k² is half of the symmetric sum.
        symmetric[:, :, range(d), range(d), :] //= 2
        return symmetric.reshape(len(points), -1)

    goal = table(start[None])
    digits = np.stack(np.meshgrid(*[np.arange(p)] * len(free), indexing="ij"), axis=-1).reshape(-1, len(free))
    level, counts = start[None], []
    for k in range(1, depth):
        steps = np.zeros((len(digits), len(start)), dtype=np.int64)
        steps[:, free] = digits * p**k
        points = (level[:, None] + steps[None]).reshape(-1, len(start))
        level = points[np.all((table(points) - goal) % p ** (k + 1) == 0, axis=1)]
        counts.append(len(level))
    return counts


def test_counts_mod_powers_of_two_at_the_aligned_point() -> None:
    """N_k = 2^⌊k/2⌋ = 2^(k(6 − 2λ)) up to constants, 2λ = 11/2, in the six variables that symmetries leave.

    A point that is not aligned has 2λ = 6 there, and one solution for each k.
    """
    at = {"layers.0.K": [[1, 0]], "layers.0.Q": [[1, 0]], "layers.0.V": [[1, 0], [0, 0]]}
    architecture = Architecture((2, 2), 1, tokens=2)
    assert lifts(build(architecture, at), 2, 7) == [2 ** (k // 2) for k in range(2, 8)]
    assert lifts(build(architecture, {**at, "layers.0.V": [[0, 1], [0, 0]]}), 2, 7) == [1] * 6


HOSTILE = [
    ("K = 0", network((2, 2), 1, {(0, 0): (0, 1, 0)}, tokens=2)),
    ("a > d", network((2, 2), 5, {(0, 0): (2, 2, 1)}, tokens=2)),
    ("v > d", network((2, 2), 1, {}, tokens=2, value_width=4)),
    ("d = 1", network((1, 1), 1, {}, tokens=2)),
    ("d' = 1, v = 3", network((2, 1), 1, {}, ((0, 0),), tokens=2, value_width=3)),
    ("causal", network((2, 2, 2), 2, {}, tokens=2, causal=True)),
    ("huge entries", build(Architecture((2, 2), 1, tokens=2), {"layers.0.K": [[10**40, 1]], "layers.0.Q": [[1, 0]]})),
]


@pytest.mark.parametrize(("name", "weights"), HOSTILE, ids=[name for name, _ in HOSTILE])
def test_hostile_points(name: str, weights: Weights) -> None:
    found = learning_coefficient(weights)
    assert 0 <= found.lower <= found.upper <= Fraction(weights.architecture.num_parameters, 2)
    assert found.is_proven, found.reason
    assert str(found) and found.to_json()["theorem"] == found.theorem


EQUAL = {f"layers.0.heads.{h}.{x}": [[1], [1]] if x == "O" else [[1, 2]] for h in (0, 1) for x in "QKVO"}
UNDECIDED = [
    ("dead head beside a live one", network((2, 2), 1, {(0, 0): (0, 0, 0)}, ((0, 0),), heads=2, tokens=2)),
    ("two layers, the first dead", network((2, 2, 2), 1, {(0, 0): (0, 0, 0)}, ((0, 0),), tokens=2)),
    ("one token, K = Q = 0", head(2, 2, 1, (0, 0, 0), 2, tokens=1)),
    ("equal heads", build(Architecture((2, 2), 1, heads=2, tokens=2), EQUAL)),
]


@pytest.mark.parametrize(("name", "weights"), UNDECIDED, ids=[name for name, _ in UNDECIDED])
def test_what_is_not_proven_has_bounds(name: str, weights: Weights) -> None:
    found = learning_coefficient(weights)
    assert found.standing == "undecided" and found.value is None and found.multiplicity is None
    assert 0 <= found.lower < found.upper and "not proven" in found.reason
    assert found.to_json()["lambda"] is None and not found.is_proven


def test_regular_points_of_any_network() -> None:
    """Theorem R: the rank at the point is the largest one; also for one token."""
    seen = head(2, 2, 1, (0, 1, 0), 2, tokens=1)
    assert learning_coefficient(seen).theorem == "bounds" and learning_coefficient(seen).pair == Pair(Fraction(1))
    for options in ({"tokens": 1}, {"tokens": 1, "heads": 1, "causal": True}):
        weights = random_weights(Architecture((3, 3), 2, **options), QQ, seed=0)  # type: ignore[arg-type]
        found = learning_coefficient(weights)
        assert found.is_proven and found.theorem in ("R", "B")
        assert found.value == Fraction(attngeom.dimension(weights.architecture, prove=True).dimension or 0, 2)


def test_theorem_d_and_its_exceptions() -> None:
    """Softmax heads with different A_h; equal ones are left to the ranks, and t = 2 sees signs."""
    weights = network((2, 2), 1, {(0, 0): (0, 1, 0)}, kind="softmax", heads=2, tokens=3)
    found = learning_coefficient(weights)
    assert found.theorem == "D" and found.is_proven
    pair = network((2, 2), 1, {}, kind="softmax", heads=2, tokens=3, seed=1)
    tensors = dict(pair.tensors())
    tensors["layers.0.heads.1.K"], tensors["layers.0.heads.1.Q"] = (tensors[f"layers.0.heads.0.{x}"] for x in "KQ")
    assert learning_coefficient(Weights.from_tensors(pair.architecture, tensors, QQ)).theorem != "D"


def test_deep_softmax_stops_at_a_blind_layer() -> None:
    """M_1 = 0 hides M_2: λ counts L and A_1 only; for t = 2 a skew M_1 is as blind, for t = 3 it is not."""
    hidden = network((2, 2, 2), 2, {(0, 0): (0, 0, 0)}, kind="softmax", tokens=3)
    assert learning_coefficient(hidden).pair == Pair(Fraction(4, 2)) + Pair(Fraction(3, 2))
    skew = {"layers.0.K": [[1, 0], [0, 1]], "layers.0.Q": [[0, 1], [-1, 0]], "layers.1.K": [[1, 0], [0, 1]]}
    rest = {"layers.0.V": [[1, 0], [0, 1]], "layers.1.V": [[1, 0], [0, 1]], "layers.1.Q": [[1, 0], [0, 2]]}
    for tokens, value in ((2, 4), (3, 6)):
        weights = build(Architecture((2, 2, 2), 2, kind="softmax", tokens=tokens), skew | rest)
        assert learning_coefficient(weights).pair == Pair(Fraction(value))


def test_other_numbers() -> None:
    """Q(√2) as Q; floats measured; GF(p) and imaginary numbers are no real weights."""
    weights = aligned(2, 2, 1, (1, 1))
    field = QuadraticField(2)
    assert learning_coefficient(weights.to(field)).pair == Pair(Fraction(11, 4))
    floats = learning_coefficient(weights.to(RR))
    assert (floats.value, floats.standing, floats.theorem) == (Fraction(11, 4), "estimate", "A1.3")
    for domain in (GF(101), QuadraticField(-1)):
        with pytest.raises(DomainError, match="real weights"):
            learning_coefficient(weights.to(domain))
    blurred = head(3, 3, 1, (1, 1, 1), 3).to(RR)
    tensors = dict(blurred.tensors()) | {"layers.0.V": np.diag([1, 1e-13, 1e-15])}
    unclear = learning_coefficient(Weights.from_tensors(blurred.architecture, tensors, RR))
    assert unclear.standing == "undecided" and unclear.value is None


def test_floats_in_deep_networks_are_estimates() -> None:
    point = next(point for point in POINTS if point.name == "two layers, rk Q_1 = 2")
    found = learning_coefficient(point.weights.to(RR))
    assert (found.value, found.multiplicity, found.standing) == (point.value, point.multiplicity, "estimate")


def test_samples_instead_of_a_density() -> None:
    """Enough inputs are as good as a density; few make other weights equal, and say so."""
    rng = np.random.default_rng(0)
    for weights in (aligned(2, 2, 1, (1, 1)), head(2, 1, 2, (0, 0, 0), 1, kind="softmax")):
        many = learning_coefficient(weights, inputs=rng.integers(-3, 4, (12, 2, 2)))
        assert many.pair == learning_coefficient(weights).pair
    few = learning_coefficient(aligned(2, 2, 1, (1, 1)), inputs=rng.integers(-3, 4, (1, 2, 2)))
    assert few.standing == "undecided"
    with pytest.raises(InputError, match="shape"):
        learning_coefficient(aligned(2, 2, 1, (1, 1)), inputs=np.ones((3, 5, 2)))


def test_tables_hold_every_point() -> None:
    for architecture in (Architecture((2, 2), 2, tokens=2), Architecture((2, 1), 1, tokens=2, value_width=2)):
        rows = {row.words: row for row in learning_table(architecture).strata}
        for seed in range(12):
            rng = np.random.default_rng(seed)
            tensors = {
                name: matrix(*shape, int(rng.integers(0, min(shape) + 1)), rng)
                for name, shape in architecture.tensor_shapes()
            }
            found = learning_coefficient(build(architecture, tensors))
            row = rows[found.stratum.replace("; ", ", ")]
            assert row.pair == found.pair and row.theorem == found.theorem


@pytest.mark.parametrize(
    ("architecture", "words"),
    [
        (Architecture((1000, 1000), 500, tokens=2), "rank strata"),
        (Architecture((9, 9, 9, 9), 9, kind="softmax"), "rank strata"),
        (Architecture((2, 3, 2), 1, kind="softmax"), "equal hidden widths"),
        (Architecture((2, 2), 1, heads=2), "one head"),
    ],
)
def test_tables_that_are_refused(architecture: Architecture, words: str) -> None:
    with pytest.raises(AttnGeomError, match=words):
        learning_table(architecture)


def test_float_heads_that_may_be_equal_are_undecided() -> None:
    pair = network((2, 2), 1, {}, kind="softmax", heads=2, tokens=3, seed=1).to(RR)
    tensors = dict(pair.tensors())
    tensors["layers.0.heads.1.K"] = tensors["layers.0.heads.0.K"] * (1 + 1e-15)
    tensors["layers.0.heads.1.Q"] = tensors["layers.0.heads.0.Q"]
    found = learning_coefficient(Weights.from_tensors(pair.architecture, tensors, RR))
    assert found.standing == "undecided" and found.value is None


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_floats_of_any_size(size: float) -> None:
    """Scaled factors have the same ranks; what leaves the range of floats is refused or undecided, never a crash."""
    weights = aligned(3, 3, 2, (1, 1)).to(RR)
    scaled = {name: array * size for name, array in weights.tensors()}
    found = learning_coefficient(Weights.from_tensors(weights.architecture, scaled, RR))
    assert (found.value, found.multiplicity, found.standing) == (7, 2, "estimate")


def test_least_pair_is_that_of_regression() -> None:
    """One head with free V ≠ 0: (A, V) is fixed up to scale, so the rest is reduced-rank regression d → a → d."""
    for ranks in ((2, 2, 2), (3, 1, 1), (1, 1, 1)):
        found = global_learning_coefficient(head(3, 3, 4, ranks, 3))
        expected = aoyagi_watanabe(3, 3, 4, ranks[2])
        assert found.pair == Pair(expected.value + Fraction(8, 2), expected.multiplicity)
    zero = global_learning_coefficient(head(2, 2, 3, (2, 2, 2), 0))
    assert zero.is_proven and zero.pair == min(
        (
            row.pair
            for row in learning_table(Architecture((2, 2), 3, tokens=2)).strata
            if "A = 0" in row.words or "V = 0" in row.words
        ),
        key=lambda pair: pair.rank,
    )
    undecided = global_learning_coefficient(network((4, 4), 2, {}, heads=2))
    assert undecided.standing == "undecided" and undecided.upper == 23
