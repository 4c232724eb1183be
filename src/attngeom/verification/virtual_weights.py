"""What the function of a network with one head shows of its virtual weights M_1, …, M_l and L.

Written independently of :mod:`attngeom.comparison`, from the statements in docs/theorems/comparison.md and
docs/theorems/dimension.md. Equal parts that are shown mean equal functions without any hypothesis; that other ones mean
other functions is what Theorems A, A' and S say.
"""

from __future__ import annotations

from flint import fmpq_mpoly

from attngeom.exact.domains import QQ, Array
from attngeom.layer.polynomial_maps import map_domain
from attngeom.limits.recheck import LAYER_PRODUCT_BITS, POWER_BITS, QUADRIC_WIDTH, TELLING_INPUTS
from attngeom.network.weights import Weights
from attngeom.verification.budget import afford, height
from attngeom.verification.reading import require

Finding = tuple[bool | None, str]
"""Whether two functions are the same, None if that is not told, and why."""


def decide_virtual(first: Weights, second: Weights) -> Finding:
    """What (M, L) and (M', L') say of two networks with one head and no skip connection."""
    architecture = first.architecture
    require(architecture.heads == 1 and not architecture.residual, "one head and no skip connection are required")
    one, two = (_virtual(side) for side in (first, second))
    if architecture.kind == "lightning":
        return _decide_lightning(first, second, one, two)
    return _decide_bounded(architecture.kind, architecture.tokens, architecture.mask.hides, one, two)


Virtual = tuple[list[Array], Array]


def _virtual(weights: Weights) -> Virtual:
    """M_i = L_{i−1}ᵀ A_i L_{i−1}, and L = V_l … V_1."""
    digits = sum(height(array.ravel()) * min(array.shape) for _, array in weights.tensors())
    afford(weights.architecture.num_layers * digits, LAYER_PRODUCT_BITS, "bits in products of layers")
    L, M = QQ.eye(weights.architecture.widths[0]), []
    for (head,) in weights.layers:
        M.append(QQ.matmul(QQ.matmul(head.K, L).T, QQ.matmul(head.Q, L)))
        L = QQ.matmul(head.value_matrix(QQ), L)
    return M, L


def _symmetric(M: Array) -> Array:
    return M + M.T


def _decide_bounded(kind: str, tokens: int, masked: bool, one: Virtual, two: Virtual) -> Finding:
    """Theorems A, A' and S: L is shown, and M_i is, unless a layer before it makes all tokens equal."""
    theorem = "Theorem S" if kind == "sigmoid" else "Theorem A'" if masked else "Theorem A"
    (M, L), (N, K) = one, two
    layers, plain = len(M), kind == "softmax"
    if not QQ.equal(L, K):
        return False, f"L = V_l … V_1 differs ({theorem})"
    if QQ.is_zero(L):
        return True, "L = V_l … V_1 = 0 for both: both functions are zero"
    if tokens == 1 and plain:
        return True, "one token attends to itself alone, and L is equal"
    if tokens == 1:
        M, N = ([_symmetric(x) for x in side] for side in (M, N))
        if layers > 1 and not all(map(QQ.equal, M, N)):
            return None, "several layers of sigmoid with one token"
    for i, (A, B) in enumerate(zip(M, N)):
        if not QQ.equal(A, B):
            return _differing(i, kind, tokens, masked, layers, A, B, theorem)
        blind = QQ.is_zero(_symmetric(A) if plain and tokens == 2 else A)
        if blind and not masked and i < layers - 1:
            if plain:
                return True, f"L and M_1, …, M_{i + 1} are equal, and layer {i + 1} is blind (Theorem A)"
            rest = zip(M[i + 1 :], N[i + 1 :])
            if all(QQ.equal(_symmetric(x), _symmetric(y)) for x, y in rest):
                return True, f"M_{i + 1} = 0 makes all tokens equal, and later symmetric parts are equal"
            return None, f"M_{i + 1} = 0, and what sigmoid shows then is not covered"
    return True, "the virtual weights (M, L) are equal"


def _differing(i: int, kind: str, tokens: int, masked: bool, layers: int, A: Array, B: Array, theorem: str) -> Finding:
    """M_i differs, L ≠ 0, and no layer before it hides it."""
    if kind == "sigmoid" and masked and layers > 1:
        return None, "Theorem S is about one layer, if there is a mask"
    if kind == "softmax" and masked and tokens == 2 and QQ.is_zero(A) != QQ.is_zero(B):
        return None, f"one of M_{i + 1}, M'_{i + 1} is zero, and Theorem A' does not cover that for t = 2"
    return False, f"M_{i + 1} differs, and nothing before hides it ({theorem})"


def _decide_lightning(first: Weights, second: Weights, one: Virtual, two: Virtual) -> Finding:
    """Both are zero; or what is shown is proportional, and the functions agree at an input where they are not zero."""
    architecture, untold = first.architecture, "what is shown of (M, L) is not proportional"
    whole, other = (_count_whole(M, architecture.tokens, architecture.mask.hides) for M, _ in (one, two))
    zeros = [_is_zero(side, n) for side, n in ((one, whole), (two, other))]
    if all(zeros):
        return True, "a factor that is shown is zero for both: both functions are zero"
    if any(zeros) or whole != other:
        return None, untold
    (M, L), (N, K) = one, two
    exchanged = _are_exchanged(one, two, whole)
    head = whole - 1 if exchanged else whole
    if not all(map(_proportional, M[:head], N[:head])):
        return None, untold
    later = [[_symmetric(x) for x in side[whole:]] for side in (M, N)]
    if not exchanged and not (_proportional(L, K) and all(map(_proportional, *later))):
        if not (QQ.rank(L) == QQ.rank(K) == 1 and _proportional(L[:, [_column(L)]], K[:, [_column(K)]])):
            return None, untold
        if _factors(L, later[0]) != _factors(K, later[1]):
            return None, untold
    X = _telling_input(first)
    if X is None:
        return None, "no input was found at which the outputs are not zero"
    if not QQ.equal(_output(first, X), _output(second, X)):
        return None, "what is shown of (M, L) is proportional, and the outputs at an input differ"
    words = "exchange of key and value vectors (F1)" if exchanged else "what is shown of (M, L) is proportional"
    return True, f"{words}, and the outputs at an input are equal and not zero"


def _count_whole(M: list[Array], tokens: int, masked: bool) -> int:
    """Of how many M_i more than M_i + M_iᵀ is shown: for one token none, without mask up to the first of rank one."""
    if tokens == 1:
        return 0
    if masked:
        return len(M)
    return next((i for i, A in enumerate(M, start=1) if QQ.rank(A) == 1), len(M))


def _is_zero(side: Virtual, whole: int) -> bool:
    M, L = side
    return QQ.is_zero(L) or any(map(QQ.is_zero, M)) or any(QQ.is_zero(_symmetric(x)) for x in M[whole:])


def _proportional(A: Array, B: Array) -> bool:
    """Two matrices that are not zero."""
    place = next(i for i, x in enumerate(A.ravel()) if x)
    a, b = A.ravel()[place], B.ravel()[place]
    return bool(b) and QQ.equal(A * b, B * a)


def _column(a: Array) -> int:
    return next(m for m in range(a.shape[1]) if any(a[:, m]))


def _row(a: Array) -> Array:
    """A row that is not zero."""
    row: Array = next(row for row in a if any(row))
    return row[None]


def _are_exchanged(one: Virtual, two: Virtual, whole: int) -> bool:
    """M_j = k qᵀ, M'_j ~ k' qᵀ, v ~ k', v' ~ k, and for i > j q_i ~ (k'·y)², q'_i ~ (k·y)²; j is the last one shown.

    With a mask j = l, where Σ (v·z)(k·z) over the tokens that are seen is symmetric in k and v as well.
    """
    (M, L), (N, K) = one, two
    if not whole or not QQ.rank(L) == QQ.rank(K) == QQ.rank(M[whole - 1]) == QQ.rank(N[whole - 1]) == 1:
        return False
    A, B = M[whole - 1], N[whole - 1]
    k, k_other = (x[:, [_column(x)]].T for x in (A, B))
    if not (_proportional(_row(A), _row(B)) and _proportional(_row(L), k_other) and _proportional(_row(K), k)):
        return False
    if not _proportional(L[:, [_column(L)]], K[:, [_column(K)]]) or _proportional(k, k_other):
        return False
    squares = ((M, k_other), (N, k))
    return all(_proportional(_symmetric(x), form.T * form) for side, form in squares for x in side[whole:])


def _factors(L: Array, later: list[Array]) -> dict[str, int]:
    """The irreducible factors of v·Π q_i^(3^(l−i)) with their multiplicities, L = h vᵀ."""
    afford(L.shape[1], QUADRIC_WIDTH, "variables of a quadric that is factored")
    y = map_domain(L.shape[1], 1).ring.gens()
    powers: dict[str, int] = {}

    def add(form: fmpq_mpoly, exponent: int) -> None:
        for factor, multiplicity in form.factor()[1]:
            name = str(factor / factor.leading_coefficient())
            powers[name] = powers.get(name, 0) + int(multiplicity) * exponent

    add(sum((c * x for c, x in zip(_row(L)[0], y)), start=y[0] * 0), 1)
    for i, S in enumerate(reversed(later)):
        form = sum((S[r, c] * y[r] * y[c] for r in range(len(y)) for c in range(len(y))), start=y[0] * 0)
        add(form, 3**i)
    return powers


def _telling_input(weights: Weights) -> Array | None:
    """A small integer input with an output that is not zero: polynomials vanish at few of them."""
    d, t = weights.architecture.widths[0], min(weights.architecture.tokens, 2)
    for number in range(TELLING_INPUTS):
        X = QQ.convert([[((7 * r + 3 * c + number * (r + 2 * c + 1)) % 11) - 5 for c in range(t)] for r in range(d)])
        if not QQ.is_zero(_output(weights, X)):
            return X
    return None


def _output(weights: Weights, X: Array) -> Array:
    """φ(X) over Q; of further tokens, which are zero, the outputs are zero."""
    layers = weights.architecture.num_layers
    afford(3**layers * (height(weights.vector()) + 8) * X.size, POWER_BITS, "bits of an output")
    visible = [[j <= i or not weights.architecture.mask.hides for i in range(X.shape[1])] for j in range(X.shape[1])]
    keep = QQ.convert([[int(x) for x in row] for row in visible])
    for (head,) in weights.layers:
        scores = QQ.matmul(QQ.matmul(head.K, X).T, QQ.matmul(head.Q, X)) * keep
        X = QQ.matmul(QQ.matmul(head.value_matrix(QQ), X), scores)
    return X
