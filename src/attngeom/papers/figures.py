"""The data of the figures of both papers, computed here and drawn elsewhere, with checks of what they show."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import fmpq

from attngeom.certification import certify
from attngeom.dimensions import dimension
from attngeom.dimensions.formulas import deep_lightning
from attngeom.dimensions.theorems import softmax_network
from attngeom.equations import Points, Variety, family
from attngeom.equations.ideal.formulas import cone_dimension
from attngeom.exact import BLAS_PRIME, QQ, RR, lapack
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.exact.multisets import pair_orbits
from attngeom.inspection.geometry import layer_stratum
from attngeom.layer.coefficients import Coefficients, array_shapes, count_cubics, quadric_table, symmetrize
from attngeom.network import Architecture, random_weights
from attngeom.network.tangent import jacobian
from attngeom.network.virtual import word
from attngeom.papers.records import Check, Finding, Work
from attngeom.verification import verify

SLICE_TEXT = "φ(x₁, x₂)₁ = x₁₁ (s² − w u²) + x₁₂ (x s u + y u²) + terms in x₁ alone, x₂ = (s, u)"
VERONESE_SLICE = ((-1, -2, -1), (-1, 0, 0), (-1, 0, -1), (-1, -2, 2), (0, 2, 2), (-1, -1, -2))
"""y_111, y_121, y_221, y_112, y_122, y_222 as constant + x-part + y-part of the plane of [I] Figure 1."""
DELTAS = tuple(range(3, 11))


def slice_coefficients(x: Any, y: Any, w: Any) -> Coefficients:
    """The cubic map of the point (x, y, w) of the slice of [G] Figure 1: d = t = 2, d' = 1."""
    cross = QQ.convert([[[1, 0], [0, x], [-w, y]]])
    single = symmetrize(cross, 2, QQ)
    shapes = array_shapes(2, 1, 2)
    parts = np.broadcast_to(single[:, None], shapes[0]), np.broadcast_to(cross[:, None, None], shapes[1])
    return Coefficients(2, 1, 2, *parts, QQ)


def slice_weights(x: Any, b: Any) -> tuple[Array, Array]:
    """A and V of the point (x, b x, b²): V = (1, b), columns of A equal to (1, −b) and (0, x)."""
    return QQ.convert([[1, 0], [-b, x]]), QQ.convert([[1, b]])


def run_umbrella(work: Work) -> Finding:
    """[G] Figure 1: a 3-D slice of M_{2,1,2}, t = 2: the surface y² = w x², its singular line, its dashed part."""
    ring = PolynomialDomain(("x", "y", "w"))
    x, y, w = ring.ring.gens()
    point = ring.convert([[[1, 0], [0, x * fmpq(1, 2)], [-w, y]]])
    quartic = family(Variety(2, 2), "veronese-catalecticant-2").evaluate(Points.of_cross(point, ring))[0, 0]
    equation = y**2 - w * x**2
    proportional = quartic == -equation or quartic == equation
    ring = PolynomialDomain(("x", "b"))
    s, b = ring.ring.gens()
    A, V = ring.convert([[1, 0], [-b, s]]), ring.convert([[1, b]])
    table = quadric_table(A, V, ring)[0]
    on_slice = ring.equal(table, ring.convert([[1, 0, -(b**2)], [0, s, b * s]]))
    verdicts = {"surface": True, "crossing": True, "pinch": True, "dashed": True, "valid": True}
    for k in range(1, work.choose(4, 12)):
        value = fmpq(k, 3)
        inside = certify(slice_coefficients(value, value * value, value * value))
        crossing, dashed = certify(slice_coefficients(0, 0, value**2)), certify(slice_coefficients(0, 0, -(value**2)))
        stratum = layer_stratum(*slice_weights(0, value), 2, 2, QQ)
        verdicts["surface"] &= inside.verdict == "realizable"
        verdicts["crossing"] &= (
            crossing.verdict == "realizable" and bool(stratum.is_singular) and stratum.fiber == "two points"
        )
        verdicts["dashed"] &= dashed.verdict == "closure_only"
        certificates = [found.certificate for found in (inside, crossing, dashed)]
        verdicts["valid"] &= all(c is not None and verify(c).valid for c in certificates)
    verdicts["pinch"] = bool(layer_stratum(*slice_weights(0, 0), 2, 2, QQ).is_boundary)
    proven = dimension(Architecture((2, 1), 2, tokens=2), prove=True)
    checks = (
        Check(
            "M_{2,1,2}, t = 2, has dimension 5 in the 40-dimensional space of cubic maps",
            proven.dimension == 5 and proven.is_proven and 2 * count_cubics(2, 2) == 40,
        ),
        Check("on the slice the quartic of the variety is y² − w x²: a surface", bool(proportional)),
        Check("V = (1, b), A = ((1, 0), (−b, x)) gives the points (x, b x, b²) of the slice", on_slice),
        Check("points of the surface with w > 0 are functions of layers", verdicts["surface"]),
        Check("the line x = y = 0, w > 0 is singular: two weights each", verdicts["crossing"]),
        Check("the line x = y = 0, w < 0 is in the Zariski closure only", verdicts["dashed"]),
        Check("its end x = y = w = 0 is a boundary point", verdicts["pinch"]),
        Check("every verdict has a certificate that verifies", verdicts["valid"], "support"),
    )
    grid_x, grid_b = np.linspace(-1.0, 1.0, 41), np.linspace(-1.15, 1.15, 61)
    data = {
        "x": grid_x.tolist(),
        "b": grid_b.tolist(),
        "line": [0.0, float(grid_b[-1] ** 2)],
        "dashed": [-1.0, 0.0],
        "slice": SLICE_TEXT,
    }
    return Finding(
        "the invariant on the slice as a polynomial; exact verdicts with certificates along the line",
        checks,
        {"slice": SLICE_TEXT, "equation": "y² = w x²"},
        primes=(BLAS_PRIME,),
        data=data,
    )


def run_word_diagram(work: Work) -> Finding:
    """[G] Figure 2: the word of Equation 12 for l = 1 … 4, built of mirror-symmetric blocks."""
    words = {l: word(l) for l in range(1, 5)}
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
    lengths = [len(letters) for letters in words.values()]
    checks = (
        Check(f"the words have {lengths} letters", lengths == [1, 4, 13, 40]),
        Check("the word is D_{l−1} M_l … D_0 M_1 with blocks D_i equal to their mirror images", symmetric),
    )
    data = {str(l): [[index, transposed] for index, transposed in letters] for l, letters in words.items()}
    return Finding("the letters from base-3 digits, compared with the recursion of Lemma 3.6", checks, data=data)


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
    values = lapack.svdvals(lapack.triangle(J))
    return int(np.sum(values > max(J.shape) * np.finfo(J.dtype).eps * values[0]))


def run_dimension_plot(work: Work) -> Finding:
    """[G] Figure 3: estimated and expected dimension for δ = 3 … 10, l = 2, t = 3, a = 2, softmax and lightning."""
    samples = work.choose(60, 250)
    checks, data = [], {"delta": list(DELTAS), "samples": samples}
    for kind, formula in (("softmax", softmax_network), ("lightning", deep_lightning)):
        expected, double, single, exact = [], [], [], []
        for delta in DELTAS:
            architecture = Architecture((delta,) * 3, 2, tokens=3, kind=kind)
            known, answer = formula(architecture), dimension(architecture, prove=True, seed=work.seed)
            assert known is not None
            ranks = estimate_rank(architecture, samples, work.seed)
            expected.append(known.value)
            exact.append(answer.dimension if answer.is_proven else None)
            double.append(ranks[0])
            single.append(ranks[1])
        data[kind] = {"expected": expected, "float64": double, "float32": single, "exact": exact}
        checks.append(
            Check(f"{kind}: the estimates {double} in double precision are the expected values", double == expected)
        )
        checks.append(
            Check(f"{kind}: the dimensions are proven to be the expected values", exact == expected, "support")
        )
    deeper = {}
    for a, value in zip((1, 2, 3, 4), (37, 52, 61, 64)):
        architecture = Architecture((4, 4, 4, 4), a, tokens=3, kind="softmax")
        deeper[str(a)] = [value, *estimate_rank(architecture, samples, work.seed)]
    short = sum(a[2] < a[0] for a in deeper.values())
    checks.append(
        Check(
            f"l = 3, δ = 4, a = 1 … 4: [expected, double, single] = {list(deeper.values())}",
            all(a[0] == a[1] for a in deeper.values()),
        )
    )
    checks.append(
        Check(f"in single precision the estimate falls short in {short} of these 4 cases", short > 0, "support")
    )
    evidence = (
        f"rank of the float64 Jacobian at {samples} random inputs; proven dimensions; the same Jacobian in single"
        " precision for comparison"
    )
    return Finding(
        evidence,
        tuple(checks),
        {"single precision, l = 3": deeper, **{kind: data[kind] for kind in ("softmax", "lightning")}},
        primes=(BLAS_PRIME,),
        data=data,
    )


def plane_point(theta: Any) -> tuple[Any, Any] | None:
    """The (x, y) of the plane of [I] Figure 1 where both slice quadrics vanish at (s : u) = (θ : 1), exactly."""
    rows, right = [], []
    for first in (0, 3):
        p, q, r = (QQ.convert(VERONESE_SLICE[first + i]) for i in range(3))
        total = p * theta**2 + q * (2 * theta) + r
        rows.append(total[1:])
        right.append(-total[0])
    determinant = rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]
    if determinant == 0:
        return None
    x = (right[0] * rows[1][1] - right[1] * rows[0][1]) / determinant
    y = (rows[0][0] * right[1] - rows[1][0] * right[0]) / determinant
    return x, y


def spread_parameters(distance: float) -> list[fmpq]:
    """Rational θ whose points in the window of the figure are about this far apart."""
    chosen: list[fmpq] = []
    last = (np.inf, np.inf)
    for angle in np.linspace(-np.pi / 2, np.pi / 2, 4001)[1:-1]:
        theta = fmpq(round(10_000 * float(np.tan(angle))), 10_000)
        found = plane_point(theta)
        if found is None or abs(found[0]) > 4 or abs(found[1]) > 4:
            continue
        here = float(found[0]), float(found[1])
        if np.hypot(here[0] - last[0], here[1] - last[1]) >= distance:
            chosen.append(theta)
            last = here
    return chosen


def plane_coordinates(x: Any, y: Any) -> Array:
    """The scaled cross-column coordinates (3×2) of a point of the plane."""
    values = [c[0] + c[1] * x + c[2] * y for c in VERONESE_SLICE]
    return np.array([[values[0], values[3]], [values[1], values[4]], [values[2], values[5]]], dtype=object)


def run_quartic_slice(work: Work) -> Finding:
    """[I] Figure 1: a plane section of the quartic Veronese invariant, with points from weights on it."""
    ring = PolynomialDomain(("x", "y"))
    x, y = ring.ring.gens()
    formal = ring.convert(plane_coordinates(x, y))
    quartic = family(Variety(2, 2), "veronese-catalecticant-2").evaluate(Points.of_cross(formal[None], ring))[0, 0]
    _, factors = quartic.factor()
    zero, realizable, valid = True, True, True
    points = []
    for theta in spread_parameters(work.choose(0.25, 0.12)):
        found = plane_point(theta)
        if found is None:
            continue
        coordinates = QQ.convert(plane_coordinates(*found))
        zero &= quartic(*found) == 0
        cross = (coordinates * pair_orbits(2)[:, None])[None]
        shapes = array_shapes(2, 1, 2)
        single = np.broadcast_to(symmetrize(cross, 2, QQ)[:, None], shapes[0])
        verdict = certify(Coefficients(2, 1, 2, single, np.broadcast_to(cross[:, None, None], shapes[1]), QQ))
        realizable &= verdict.verdict == "realizable"
        valid &= verdict.certificate is not None and verify(verdict.certificate).valid is True
        points.append([float(found[0]), float(found[1])])
    terms = [[list(map(int, exponents)), str(c)] for exponents, c in quartic.terms()]
    checks = (
        Check(f"the section is a plane curve of degree {quartic.total_degree()}", quartic.total_degree() == 4),
        Check("it is irreducible over Q", len(factors) == 1 and factors[0][1] == 1, "support"),
        Check(f"{len(points)} points that come from weights lie on it, exactly", bool(zero)),
        Check("each of them is the function of a layer, with a certificate that verifies", bool(realizable and valid)),
        Check("the variety is a hypersurface: dimension 5 in 6 coordinates", cone_dimension(2, 2, 2) == 5, "support"),
    )
    data = {"terms": terms, "points": points, "plane": [list(c) for c in VERONESE_SLICE]}
    return Finding(
        "the invariant on the plane as a polynomial; exact points and verdicts",
        checks,
        {"curve": str(quartic)},
        data=data,
    )
