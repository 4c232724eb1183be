"""The data of the figures of both papers, computed here and drawn elsewhere, with checks of what they show."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import fmpq

from attngeom.certification import certify
from attngeom.dimensions import dimension
from attngeom.dimensions.formulas import deep_lightning
from attngeom.dimensions.theorems import free_network
from attngeom.equations import Points, Variety, find_family
from attngeom.equations.ideal.formulas import cone_dimension
from attngeom.exact import BLAS_PRIME, QQ, RR, lapack
from attngeom.exact.domains import Array, Domain, PolynomialDomain
from attngeom.exact.multisets import pair_orbits
from attngeom.inspection.geometry import layer_stratum
from attngeom.layer.coefficients import Coefficients, count_cubics, quadric_table
from attngeom.network import Architecture, random_weights
from attngeom.network.tangent import jacobian
from attngeom.network.virtual import word
from attngeom.papers.dimensions import is_certified, is_proven
from attngeom.papers.records import Check, Checks, Work, finds

SLICE_TEXT = "φ(x₁, x₂)₁ = x₁₁ (s² − w u²) + x₁₂ (x s u + y u²) + terms in x₁ alone, x₂ = (s, u)"
VERONESE_SLICE = ((-1, -2, -1), (-1, 0, 0), (-1, 0, -1), (-1, -2, 2), (0, 2, 2), (-1, -1, -2))
"""y_111, y_121, y_221, y_112, y_122, y_222 as constant + x-part + y-part of the plane of [I] Figure 1."""
DELTAS = tuple(range(3, 11))


def slice_coefficients(x: Any, y: Any, w: Any) -> Coefficients:
    """The cubic map of the point (x, y, w) of the slice of [G] Figure 1: d = t = 2, d' = 1."""
    return Coefficients.of_cross(QQ.convert([[[1, 0], [0, x], [-w, y]]]), 2, QQ)


def umbrella_matrices(x: Any, b: Any, domain: Domain = QQ) -> tuple[Array, Array]:
    """A and V of the point (x, b x, b²): V = (1, b), columns of A equal to (1, −b) and (0, x)."""
    return domain.convert([[1, 0], [-b, x]]), domain.convert([[1, b]])


def quartic_at(cross: Any, ring: PolynomialDomain) -> Any:
    """The quartic D₂₀ D₀₂ − D₁₁² of d = 2 at scaled cross-column coordinates (3×2)."""
    quartics = find_family(Variety(2, 2), "veronese-catalecticant-2")
    return quartics.evaluate(Points.of_cross(ring.convert(cross)[None], ring))[0, 0]


@finds(
    "the invariant on the slice as a polynomial; exact verdicts with certificates along the line", primes=(BLAS_PRIME,)
)
def run_umbrella(work: Work) -> Checks:
    """[G] Figure 1: a 3-D slice of M_{2,1,2}, t = 2: the surface y² = w x², its singular line, its dashed part."""
    proven = is_proven(Architecture((2, 1), 2, tokens=2), 5, 0) and 2 * count_cubics(2, 2) == 40
    yield Check("M_{2,1,2}, t = 2, has dimension 5 in the 40-dimensional space of cubic maps", proven)
    ring = PolynomialDomain(("x", "y", "w"))
    x, y, w = ring.ring.gens()
    quartic = quartic_at([[1, 0], [0, x * fmpq(1, 2)], [-w, y]], ring)
    equation = y**2 - w * x**2
    yield Check("on the slice the quartic of the variety is y² − w x²: a surface", quartic in (equation, -equation))
    ring = PolynomialDomain(("x", "b"))
    x, b = ring.ring.gens()
    table = quadric_table(*umbrella_matrices(x, b, ring), ring)[0]
    on_slice = ring.equal(table, ring.convert([[1, 0, -(b**2)], [0, x, b * x]]))
    yield Check("V = (1, b), A = ((1, 0), (−b, x)) gives the points (x, b x, b²) of the slice", on_slice)
    surface, crossing, dashed, valid = True, True, True, True
    for value in (fmpq(k, 3) for k in range(1, work.choose(4, 12))):
        points = (value, value**2, value**2), (0, 0, value**2), (0, 0, -(value**2))
        answers = [certify(slice_coefficients(*point)) for point in points]
        stratum = layer_stratum(*umbrella_matrices(0, value), 2, 2, QQ)
        surface &= answers[0].verdict == "realizable"
        crossing &= answers[1].verdict == "realizable" and bool(stratum.is_singular) and stratum.fiber == "two points"
        dashed &= answers[2].verdict == "closure_only"
        valid &= all(map(is_certified, answers))
    yield Check("points of the surface with w > 0 are functions of layers", surface)
    yield Check("the line x = y = 0, w > 0 is singular: two weights each", crossing)
    yield Check("the line x = y = 0, w < 0 is in the Zariski closure only", dashed)
    pinch = layer_stratum(*umbrella_matrices(0, 0), 2, 2, QQ)
    yield Check("its end x = y = w = 0 is a boundary point", bool(pinch.is_boundary))
    yield Check("every verdict has a certificate that verifies", valid, "support")
    grid_x, grid_b = np.linspace(-1.0, 1.0, 41), np.linspace(-1.15, 1.15, 61)
    lines = {"line": [0.0, float(grid_b[-1] ** 2)], "dashed": [-1.0, 0.0]}
    return {
        "values": {"slice": SLICE_TEXT, "equation": "y² = w x²"},
        "data": {"x": grid_x.tolist(), "b": grid_b.tolist(), **lines, "slice": SLICE_TEXT},
    }


@finds("the letters from base-3 digits, compared with the recursion of Lemma 3.6")
def run_word_diagram(work: Work) -> Checks:
    """[G] Figure 2: the word of Equation 12 for l = 1 … 4, built of mirror-symmetric blocks."""
    words = {l: word(l) for l in range(1, 5)}
    lengths = [len(letters) for letters in words.values()]
    yield Check(f"the words have {lengths} letters", lengths == [1, 4, 13, 40])
    symmetric = True
    for l, letters in words.items():
        # The word is D_{l−1} M_l D_{l−2} M_{l−1} … D_0 M_1, and every D_i is symmetric: reversed and transposed.
        start = 0
        for i in range(l, 0, -1):
            block = letters[start : start + 3 ** (i - 1) - 1]
            mirrored = tuple((index, not transposed) for index, transposed in reversed(block))
            symmetric &= block == mirrored and letters[start + len(block)] == (i, False)
            start += len(block) + 1
        symmetric &= start == len(letters)
    yield Check("the word is D_{l−1} M_l … D_0 M_1 with blocks D_i equal to their mirror images", symmetric)
    return {"data": {str(l): [list(letter) for letter in letters] for l, letters in words.items()}}


def estimate_rank(architecture: Architecture, samples: int, seed: int) -> tuple[int, int]:
    """The numerical rank of the Jacobian at random weights and inputs, in double precision and rounded to single.

    Singular values above max(shape)·ε·σ_1 count, as in the usual routines.

    >>> estimate_rank(Architecture((2, 2), 2, tokens=2), 20, seed=0)[0]
    7
    """
    weights = random_weights(architecture, RR, seed)
    X = np.random.default_rng(seed).standard_normal((samples, architecture.widths[0], architecture.tokens))
    J = jacobian(weights, X).T
    return numerical_rank(J), numerical_rank(J.astype(np.float32))


def numerical_rank(J: Array) -> int:
    """The number of singular values above max(shape)·ε·σ_1, from the triangle of a QR factorization."""
    return lapack.matrix_rank(lapack.triangle(J), max(J.shape) * float(np.finfo(J.dtype).eps))


@finds("", primes=(BLAS_PRIME,))
def run_dimension_plot(work: Work) -> Checks:
    """[G] Figure 3: estimated and expected dimension for δ = 3 … 10, l = 2, t = 3, a = 2, softmax and lightning."""
    samples = work.choose(60, 250)
    data: dict[str, Any] = {}
    for kind, formula in (("softmax", free_network), ("lightning", deep_lightning)):
        nets = [Architecture((delta,) * 3, 2, tokens=3, kind=kind) for delta in DELTAS]
        expected = [known.value for known in map(formula, nets) if known is not None]
        answers = [dimension(net, prove=True, seed=work.seed) for net in nets]
        exact = [answer.dimension if answer.is_proven else None for answer in answers]
        double, single = zip(*(estimate_rank(net, samples, work.seed) for net in nets))
        data[kind] = {"expected": expected, "float64": list(double), "float32": list(single), "exact": exact}
        statement = f"{kind}: the estimates {list(double)} in double precision are the expected values"
        yield Check(statement, list(double) == expected)
        yield Check(f"{kind}: the dimensions are proven to be the expected values", exact == expected, "support")
    deeper = {}
    for a, value in zip((1, 2, 3, 4), (37, 52, 61, 64)):
        architecture = Architecture((4, 4, 4, 4), a, tokens=3, kind="softmax")
        deeper[str(a)] = [value, *estimate_rank(architecture, samples, work.seed)]
    short = sum(ranks[2] < ranks[0] for ranks in deeper.values())
    statement = f"l = 3, δ = 4, a = 1 … 4: [expected, double, single] = {list(deeper.values())}"
    yield Check(statement, all(ranks[0] == ranks[1] for ranks in deeper.values()))
    yield Check(f"in single precision the estimate falls short in {short} of these 4 cases", short > 0, "support")
    evidence = (
        f"rank of the float64 Jacobian at {samples} random inputs; proven dimensions; the same Jacobian in single"
        " precision for comparison"
    )
    return {
        "evidence": evidence,
        "values": {"single precision, l = 3": deeper, **data},
        "data": {"delta": list(DELTAS), "samples": samples, **data},
    }


def plane_point(theta: Any) -> tuple[Any, Any] | None:
    """The (x, y) of the plane of [I] Figure 1 where both slice quadrics vanish at (s : u) = (θ : 1), exactly."""
    p, q, r = np.moveaxis(QQ.convert(VERONESE_SLICE).reshape(2, 3, 3), 1, 0)
    (a, b, c), (d, e, f) = p * theta**2 + q * (2 * theta) + r
    determinant = b * f - c * e
    return None if determinant == 0 else ((c * d - a * f) / determinant, (a * e - b * d) / determinant)


def spread_points(distance: float) -> list[tuple[Any, Any]]:
    """Points of rational θ in the window of the figure that are about this far apart."""
    chosen: list[tuple[Any, Any]] = []
    last = np.full(2, np.inf)
    for angle in np.linspace(-np.pi / 2, np.pi / 2, 4001)[1:-1]:
        point = plane_point(fmpq(round(10_000 * float(np.tan(angle))), 10_000))
        here = np.full(2, np.inf) if point is None else np.array(point, dtype=float)
        if point is not None and np.abs(here).max() <= 4 and np.hypot(*(here - last)) >= distance:
            chosen.append(point)
            last = here
    return chosen


def plane_coordinates(x: Any, y: Any) -> Array:
    """The scaled cross-column coordinates (3×2) of a point of the plane."""
    return np.array([a + b * x + c * y for a, b, c in VERONESE_SLICE], dtype=object).reshape(2, 3).T


@finds("the invariant on the plane as a polynomial; exact points and verdicts")
def run_quartic_slice(work: Work) -> Checks:
    """[I] Figure 1: a plane section of the quartic Veronese invariant, with points from weights on it."""
    ring = PolynomialDomain(("x", "y"))
    quartic = quartic_at(plane_coordinates(*ring.ring.gens()), ring)
    _, factors = quartic.factor()
    points = spread_points(work.choose(0.25, 0.12))
    crosses = (QQ.convert(plane_coordinates(*point)) * pair_orbits(2)[:, None] for point in points)
    answers = [certify(Coefficients.of_cross(cross[None], 2, QQ)) for cross in crosses]
    certified = all(answer.verdict == "realizable" and is_certified(answer) for answer in answers)
    yield Check(f"the section is a plane curve of degree {quartic.total_degree()}", quartic.total_degree() == 4)
    yield Check("it is irreducible over Q", len(factors) == 1 and factors[0][1] == 1, "support")
    zero = all(quartic(*point) == 0 for point in points)
    yield Check(f"{len(points)} points that come from weights lie on it, exactly", zero)
    yield Check("each of them is the function of a layer, with a certificate that verifies", certified)
    hypersurface = cone_dimension(2, 2, 2) == 5
    yield Check("the variety is a hypersurface: dimension 5 in 6 coordinates", hypersurface, "support")
    terms = [[list(map(int, exponents)), str(c)] for exponents, c in quartic.terms()]
    drawn = [[float(x), float(y)] for x, y in points]
    data = {"terms": terms, "points": drawn, "plane": [list(c) for c in VERONESE_SLICE]}
    return {"values": {"curve": str(quartic)}, "data": data}
