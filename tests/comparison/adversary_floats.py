"""Float pairs made to mislead a comparison. Truth: True if the pair was made as one function, with errors of at most a
tenth of the tolerance; False if outputs differ by 1e-5 of their size, or certainly and by construction; else None."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import fmpq

from attngeom.exact import QQ, RR
from attngeom.exact.domains import Balls
from attngeom.network import Architecture, Head, Symmetry, Weights, forward, random_symmetry, random_weights
from attngeom.network.symmetry import Scale, factors
from attngeom.network.symmetry.factor import GroupFactor, LinearFactor
from tests.comparison import adversary
from tests.comparison.adversary import Pair, random_architecture, with_layers

TOLERANCE = 1e-9
CLEARLY = 1e-5
Maker = Callable[[np.random.Generator], Pair]


def draw_kind(rng: np.random.Generator) -> str:
    return str(rng.choice(["lightning", "softmax"]))


def seed_of(rng: np.random.Generator) -> int:
    return int(rng.integers(10**9))


def float_weights(architecture: Architecture, rng: np.random.Generator) -> Weights:
    return random_weights(architecture, RR, seed_of(rng))


def condition(n: int, rng: np.random.Generator, decades: float) -> np.ndarray:
    """An invertible matrix of floats with singular values over so many decades."""
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    values = 10.0 ** rng.uniform(-decades / 2, decades / 2, size=n)
    if rng.integers(3) == 0:
        return np.diag(values)
    return left @ np.diag(values) @ right


def exact_symmetry(architecture: Architecture, rng: np.random.Generator, decades: float) -> Symmetry:
    """A group element over Q, its matrices of the given condition."""

    def matrix(n: int) -> np.ndarray:
        return QQ.convert(condition(n, rng, decades))

    elements: dict[GroupFactor, object] = {}
    for factor in factors(architecture):
        if isinstance(factor, Scale):
            elements[factor] = QQ.convert([[fmpq(int(rng.choice([-3, -1, 1, 2, 7])), 2)]])
        elif isinstance(factor, LinearFactor):
            elements[factor] = matrix(factor.size)
        else:
            elements[factor] = factor.random(rng, matrix, QQ)
    return Symmetry(architecture, QQ, elements)


def move(weights: Weights, rng: np.random.Generator, decades: float) -> Weights:
    """g · w computed exactly, then rounded."""
    return exact_symmetry(weights.architecture, rng, decades).apply(weights.to(QQ)).to(RR)


def noisy(weights: Weights, size: float, rng: np.random.Generator) -> Weights:
    vector = weights.vector()
    return Weights.from_vector(weights.architecture, vector * (1 + size * rng.uniform(-1, 1, len(vector))), RR)


def orbit(rng: np.random.Generator) -> Pair:
    """w and g · w, rounded; mild gauges."""
    first = float_weights(random_architecture(rng, draw_kind(rng)), rng)
    return Pair("orbit", first, move(first, rng, 2), True)


def steep_orbit(rng: np.random.Generator) -> Pair:
    """w and g · w, rounded; gauges of condition up to 1e8."""
    first = float_weights(random_architecture(rng, draw_kind(rng)), rng)
    return Pair("steep orbit", first, move(first, rng, float(rng.uniform(2, 8))), True)


def float_orbit(rng: np.random.Generator) -> Pair:
    """w and g · w computed in floats."""
    first = float_weights(random_architecture(rng, draw_kind(rng)), rng)
    g = random_symmetry(first.architecture, RR, seed_of(rng))
    return Pair("orbit in floats", first, g.apply(first), True)


def noisy_orbit(rng: np.random.Generator) -> Pair:
    """w and g · w with relative errors of a tenth of the tolerance."""
    first = float_weights(random_architecture(rng, draw_kind(rng)), rng)
    return Pair("noisy orbit", first, noisy(move(first, rng, float(rng.uniform(0, 4))), TOLERANCE / 10, rng), True)


def unrelated(rng: np.random.Generator) -> Pair:
    architecture = random_architecture(rng, draw_kind(rng))
    return judged("unrelated", float_weights(architecture, rng), float_weights(architecture, rng), rng)


def near(rng: np.random.Generator) -> Pair:
    """One tensor or one entry of g · w changed by 1e-1 … 1e-8 of its size."""
    first = float_weights(random_architecture(rng, draw_kind(rng)), rng)
    second = move(first, rng, 1)
    vector, size = second.vector(), 10.0 ** rng.uniform(-8, -1)
    if rng.integers(2):
        vector[int(rng.integers(len(vector)))] *= 1 + size
    else:
        vector = vector * (1 + size * rng.standard_normal(len(vector)))
    return judged("near", first, Weights.from_vector(first.architecture, vector, RR), rng)


def scaled(rng: np.random.Generator) -> Pair:
    """Tensors times powers of ten, tiny or huge: a pair of one orbit, or an unrelated one."""
    kind = draw_kind(rng)
    architecture = random_architecture(rng, kind)
    first = float_weights(architecture, rng)
    same = bool(rng.integers(2))
    second = move(first, rng, 1) if same else float_weights(architecture, rng)
    factors = [10.0 ** rng.uniform(-80, 80 if kind == "lightning" else 5) for _ in first.tensors()]
    if rng.integers(3) == 0:
        factors = [1e-80] * len(factors)
    if architecture.residual or architecture.heads > 1:
        # Heads trade places, so all get one factor for each letter.
        letters = {letter: 10.0 ** rng.uniform(-80, 20 if kind == "lightning" else 5) for letter in "QKVO"}
        factors = [letters[name[-1]] for name, _ in first.tensors()]
    pair = [
        Weights.from_tensors(
            architecture, {name: a * factor for factor, (name, a) in zip(factors, weights.tensors())}, RR
        )
        for weights in (first, second)
    ]
    return Pair("scaled", pair[0], pair[1], True) if same else judged("scaled", pair[0], pair[1], rng)


def zeros(rng: np.random.Generator) -> Pair:
    """Some tensors of the first network set to zero."""
    architecture = random_architecture(rng, draw_kind(rng))
    second = float_weights(architecture, rng)
    tensors = dict(second.tensors())
    for name in tensors:
        if rng.integers(4) == 0:
            tensors[name] = tensors[name] * 0.0
    return judged("zeros", Weights.from_tensors(architecture, tensors, RR), second, rng)


def saturated(rng: np.random.Generator) -> Pair:
    """Softmax with scores of size 1e3 … 1e12, doubled in one head, or moved along the orbit."""
    architecture = random_architecture(rng, "softmax", tokens=int(rng.integers(2, 5)))
    first = float_weights(architecture, rng)
    size = 10.0 ** rng.uniform(3, 12)
    tensors = {name: a * size if name.endswith("Q") else a for name, a in first.tensors()}
    first = Weights.from_tensors(architecture, tensors, RR)
    if rng.integers(2):
        return Pair("saturated", first, move(first, rng, 1), True)
    name = str(rng.choice([name for name in tensors if name.endswith("Q")]))
    second = Weights.from_tensors(architecture, tensors | {name: tensors[name] * 2}, RR)
    return judged("saturated", first, second, rng)


def small_beside_large(rng: np.random.Generator) -> Pair:
    """V_1 = diag(10^k, 1, …) against a change of the small entries, which are all that layer 2 reads."""
    width = int(rng.integers(2, 5))
    heads, kind = int(rng.integers(1, 3)), draw_kind(rng)
    architecture = Architecture((width,) * 3, 2, kind=kind, heads=heads, value_width=width if heads > 1 else None)
    weights = float_weights(architecture, rng)
    large = np.ones(width)
    large[0] = 10.0 ** rng.uniform(3, 12)
    turn = np.linalg.qr(rng.standard_normal((width, width)))[0] if rng.integers(2) else np.eye(width)
    factor = 1 + 10.0 ** rng.uniform(-2, 0)
    changed = large.copy()
    changed[1] *= factor
    read = np.ones(width)
    read[0] = 0.0
    pair = []
    for values in (large, changed):
        layers = [[dict(head.tensors) for head in layer] for layer in weights.layers]
        for head in layers[0]:
            name = "O" if "O" in head else "V"
            head[name] = turn @ np.diag(values) @ (head[name] if heads > 1 else np.eye(width))
        for head in layers[1]:
            head |= {name: head[name] * read @ turn.T for name in "QKV"}
        pair.append(with_layers(weights, [[Head(**head) for head in layer] for layer in layers]))
    return judged("small beside large", pair[0], pair[1], rng)


def nothing(rng: np.random.Generator) -> Pair:
    """Two identity maps, or two zero functions."""
    if rng.integers(2):
        architecture = random_architecture(rng, draw_kind(rng), residual=True, widths=[3, 3, 3], layers=2)
        pair = []
        for _ in range(2):
            weights = float_weights(architecture, rng)
            idle = [[Head(**{**h.tensors, "V": h.V * 0.0}) for h in heads] for heads in weights.layers]
            pair.append(with_layers(weights, idle))
        return Pair("identity maps", pair[0], pair[1], True)
    architecture = Architecture((3, 3, 3), 3, tokens=1)
    pair = []
    for _ in range(2):
        weights = float_weights(architecture, rng)
        layers = []
        for (head,) in weights.layers:
            half = rng.standard_normal((3, 3))
            K = condition(3, rng, 1) if rng.integers(2) else np.eye(3)
            layers.append([Head(np.linalg.inv(K).T @ (half - half.T), K, head.V)])
        pair.append(with_layers(weights, layers))
    return Pair("zero functions", pair[0], pair[1], True)


def collapsed(rng: np.random.Generator) -> Pair:
    """Lightning, a = (1, 2, …): after attention of rank one only A + Aᵀ is seen."""
    layers = int(rng.integers(2, 13))
    architecture = Architecture((2,) * (layers + 1), (1, *([2] * (layers - 1))), tokens=int(rng.integers(2, 5)))
    first = float_weights(architecture, rng)
    place = int(rng.integers(1, layers))
    (head,) = first.layers[place]
    skew = rng.standard_normal() * np.array([[0.0, 1.0], [-1.0, 0.0]])
    if rng.integers(2):
        changed = Head(head.K.T @ head.Q + skew, np.eye(2), head.V)
    else:
        # The same sum as an update of Q: exact up to rounding.
        changed = Head(head.Q + np.linalg.inv(head.K).T @ skew, head.K, head.V)
    rows = [list(heads) for heads in first.layers]
    rows[place] = [changed]
    second = with_layers(first, rows)
    return Pair("collapsed", first, move(second, rng, 1) if rng.integers(2) else second, True)


def rounded_exact(rng: np.random.Generator) -> Pair:
    """The exact pairs that are one function, rounded: heads merged, blind layers, low ranks."""
    makers = (
        adversary.orbit,
        adversary.split_heads,
        adversary.after_blind,
        adversary.two_tokens,
        adversary.one_token,
        adversary.identity_layers,
    )
    pair = makers[int(rng.integers(len(makers)))](rng, draw_kind(rng))
    second = pair.second
    if rng.integers(2):
        second = exact_symmetry(second.architecture, rng, 1).apply(second)
    return Pair(f"rounded: {pair.name}", pair.first.to(RR), second.to(RR), True)


def steep(rng: np.random.Generator) -> Pair:
    """Weights with singular values over many decades, changed in the small directions or everywhere."""
    kind = draw_kind(rng)
    width, layers = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    architecture = random_architecture(rng, kind, widths=[width] * (layers + 1), layers=layers, attention=width)
    decades = float(rng.uniform(2, 12))
    first = float_weights(architecture, rng)
    tensors = {}
    for name, a in first.tensors():
        left, values, right = np.linalg.svd(a, full_matrices=False)
        tensors[name] = left * (values * 10.0 ** -np.linspace(0, decades, len(values))) @ right
    first = Weights.from_tensors(architecture, tensors, RR)
    second = move(first, rng, 1)
    changed = dict(second.tensors())
    name = str(rng.choice(list(changed)))
    left, values, right = np.linalg.svd(changed[name], full_matrices=False)
    values[-1] *= 1 + 10.0 ** rng.uniform(-6, 0)
    changed[name] = left * values @ right
    return judged("steep", first, Weights.from_tensors(architecture, changed, RR), rng)


FLOATS: tuple[Maker, ...] = (
    orbit,
    steep_orbit,
    float_orbit,
    noisy_orbit,
    unrelated,
    near,
    scaled,
    zeros,
    saturated,
    small_beside_large,
    nothing,
    collapsed,
    rounded_exact,
    steep,
)


def judged(name: str, first: Weights, second: Weights, rng: np.random.Generator) -> Pair:
    """The pair with truth False if its outputs clearly differ, and None otherwise."""
    return Pair(name, first, second, False if output_difference(first, second, rng) >= CLEARLY else None)


def output_difference(first: Weights, second: Weights, rng: np.random.Generator) -> float:
    """The largest relative difference of exact or enclosed outputs at random inputs, at sizes that suit the weights."""
    architecture = first.architecture
    is_transcendental = not architecture.rule.is_polynomial
    # Fractions of degree 3^l become long.
    domain = (
        Balls(2000 if architecture.num_layers > 3 else 600) if is_transcendental or architecture.num_layers > 3 else QQ
    )
    one, two = (weights.to(domain) for weights in (first, second))
    # Coefficients cancel where their sizes add up to more; of softmax and sigmoid rounding alone is left out.
    hidden = TOLERANCE if architecture.rule.is_polynomial else 1e-14
    largest = 0.0
    for size in sizes_of(first) if is_transcendental or architecture.residual else [0]:
        X = QQ.convert(rng.standard_normal((architecture.widths[0], architecture.tokens))) * fmpq(2) ** size
        outputs = [forward(weights, domain.convert(X)) for weights in (one, two)]
        if architecture.residual:
            outputs = [output - domain.convert(X) for output in outputs]
        elif all(
            relative(forward(absolute(weights), abs(domain.convert(X))), output, output) < hidden
            for weights, output in zip((one, two), outputs)
        ):
            # What is left where all paths cancel is rounding of the weights, which tells nothing.
            continue
        largest = max(largest, relative(outputs[0], outputs[1]))
    return largest


def absolute(weights: Weights) -> Weights:
    """All entries replaced by their absolute values: the sizes of all paths add up."""
    layers = [
        [Head(**{name: abs(a) for name, a in head.tensors.items()}) for head in heads] for heads in weights.layers
    ]
    return with_layers(weights, layers)


def sizes_of(weights: Weights) -> list[int]:
    """Sizes of inputs at which scores, or what is added to the input, are moderate."""
    sizes = {0}
    for A, V in zip(weights.attention_matrices(), weights.value_matrices()):
        for a, v in zip(A, V):
            product = np.abs(a).max() / float(weights.architecture.temperature)
            product = product * np.abs(v).max() if weights.architecture.rule.is_polynomial else product
            if product > 0:
                sizes |= {int(-np.log2(product) // 2) + k for k in (-2, 0, 1)}
    return sorted(sizes)[:: len(sizes) // 6 + 1]


def relative(first: np.ndarray, second: np.ndarray, gap: np.ndarray | None = None) -> float:
    """‖a − b‖, or ‖gap‖ if one is given, over max(‖a‖, ‖b‖): squares of exact numbers or balls, rounded at the end."""

    def square(a: np.ndarray) -> object:
        return sum((x * x for x in a.ravel().tolist()), fmpq(0))

    sizes = [square(first), square(second)]
    numbers = [number(x) for x in (square(first - second if gap is None else gap), *sizes)]
    if max(numbers[1:]) == 0:
        return 0.0
    top = max(numbers[1:])
    return float((numbers[0] / top) ** 0.5)


def number(x: object):
    """An exact number, or the midpoint of a ball, as a float of any exponent."""
    import mpmath

    if isinstance(x, fmpq):
        return mpmath.mpf(int(x.p)) / int(x.q)
    mid = x.mid().fmpq()
    radius = x.rad().fmpq() if hasattr(x.rad(), "fmpq") else fmpq(0)
    return mpmath.mpf(0) if abs(mid) <= radius else mpmath.mpf(int(mid.p)) / int(mid.q)
